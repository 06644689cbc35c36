/*
 * fuzz_rewrite.c - a container (container_input.h), given to the subcommands that make something else
 * of one: info, trim, merge, export. The input's last byte says how: bit 0: a time range, by TSC, not
 * by seconds; bit 1: merge takes it as the host's, too.
 */
#include "tests/fuzz/container_input.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>
#include <stdio.h>

#include "capture/commands.h"
#include "tests/fuzz/fuzz.h"

static void run(int (*command)(int argc, char **argv), char **argv)
{
	int argc = 0, status;

	while (argv[argc])
		argc++;
	optind = 0;
	status = command(argc, argv);
	if (status < 0 || status > 3)
		abort();
}

/* Nothing is left of what failed, nor beside what did not. */
static void clear(const char *folder)
{
	char line[128];

	snprintf(line, sizeof line, "rm -rf %s", folder);
	if (system(line) != 0) /* NOLINT(cert-env33-c): export makes folders */
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char in[40], guest[48], folder[40], out[64], perf[64], empty[64];
	static const uint8_t nothing[2];
	int fd, none, saved, null;

	if (size < 2)
		return 0;
	fd = fuzz_container(data, size - 1);
	none = fuzz_container(nothing, 1);
	snprintf(in, sizeof in, "/proc/self/fd/%d", fd);
	snprintf(empty, sizeof empty, "/proc/self/fd/%d", none);
	snprintf(guest, sizeof guest, "%s,7", in);
	snprintf(folder, sizeof folder, "/dev/shm/pt-fuzz.%d", (int)getpid());
	snprintf(out, sizeof out, "%s/out", folder);
	snprintf(perf, sizeof perf, "%s/perf.data", folder);
	clear(folder);
	if (mkdir(folder, 0700))
		abort();
	saved = dup(STDOUT_FILENO);
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	fflush(stdout);
	if (saved < 0 || null < 0 || dup2(null, STDOUT_FILENO) < 0)
		abort();
	run(cmd_info, (char *[]){"info", in, NULL});
	run(cmd_info, (char *[]){"info", "--json", in, NULL});
	run(cmd_trim, (char *[]){"trim", "-q", "-o", out, "--time",
				 data[size - 1] & 1 ? "tsc:+1..tsc:+0x100000" : "+0..+1", in, NULL});
	run(cmd_merge, (char *[]){"merge", "-o", out, data[size - 1] & 2 ? in : empty, guest, NULL});
	run(cmd_export, (char *[]){"export", "-q", "--perf-data", perf, in, NULL});
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(null);
	close(fd);
	close(none);
	clear(folder);
	return 0;
}
