/* main.c - pt-capture [options] -- PROGRAM: traces a program by single-stepping it. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "capture/commands.h"
#include "schema/output.h"
#include "capture/pt/config.h"
#include "capture/step/engine.h"
#include "schema/version.h"

static const char usage[] =
    "\n"
    "Options of pt-capture [options] -- PROGRAM [ARGUMENTS]:\n"
    "  -o, --output FILE     write the container to FILE, not to standard output (then the program's own "
    "standard\n"
    "                        output goes to standard error)\n"
    "  -e, --event TERMS     perf's terms of intel_pt: cyc,mtc_period=3,noretcomp,psb_period=3,...\n"
    "      --truth FILE      also write every taken branch: tid, from, to\n"
    "      --max-steps N     trace N instructions, then let the program go on untraced\n"
    "  -z, --level N         zstd level, -7 (fastest) to 19; default 1\n"
    "  -q, --quiet           say nothing but errors\n"
    "  -v, --verbose         say more\n"
    "\n"
    "The program and all its threads and children are single-stepped with ptrace, and what Intel PT hardware "
    "would\n"
    "write is written; time is a model. Ctrl-C interrupts the program; a second one kills it; what was "
    "captured stays.\n"
    "Exit status: 0 captured, whatever the program's own status was (it is told, and is in the container); 1 "
    "failed;\n"
    "2 wrong usage.\n";

static volatile sig_atomic_t stop, stop_signal;

/* The program gets the signal, and two seconds to end by it. */
static void on_signal(int sig)
{
	if (sig != SIGALRM) {
		stop_signal = sig;
		alarm(2);
	}
	stop = stop + 1;
}

static void progress(uint64_t steps)
{
	fprintf(stderr, "\rpt-capture: %" PRIu64 " instructions", steps);
}

struct arguments {
	const char *output, *truth;
	uint64_t config, max_steps;
	int level;
	bool quiet, verbose;
	char **program;
};

static int parse(int argc, char **argv, struct arguments *a, struct pt_error *e)
{
	enum { TRUTH = 256, MAX_STEPS };
	static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
					      {"event", required_argument, NULL, 'e'},
					      {"truth", required_argument, NULL, TRUTH},
					      {"max-steps", required_argument, NULL, MAX_STEPS},
					      {"level", required_argument, NULL, 'z'},
					      {"quiet", no_argument, NULL, 'q'},
					      {"verbose", no_argument, NULL, 'v'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	char *end;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "+o:e:z:qvh", longs, NULL)) != -1) {
		switch (c) {
		case 'o': a->output = optarg; break;
		case 'e':
			if (pt_config_parse(optarg, &a->config, e) < 0)
				return -1;
			break;
		case TRUTH: a->truth = optarg; break;
		case MAX_STEPS:
			a->max_steps = strtoull(optarg, &end, 0);
			if (*end || !a->max_steps)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "--max-steps %s: not a number above 0", optarg);
			break;
		case 'z':
			a->level = (int)strtol(optarg, &end, 10);
			if (*end || end == optarg || a->level < -7 || a->level > 19)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "-z %s: not a level from -7 to 19", optarg);
			break;
		case 'q': a->quiet = true; break;
		case 'v': a->verbose = true; break;
		case 'h': fputs(usage, stdout); return 1;
		default: return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "see 'pt-capture --help'");
		}
	}
	if (optind == argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "no program to trace: pt-capture [options] -- PROGRAM");
	a->program = argv + optind;
	return 0;
}

/* execvp()'s search; *path is malloc()ed. */
static int find_program(const char *name, char **path, struct pt_error *e)
{
	const char *dirs = getenv("PATH");
	struct stat st;
	char head[5];
	FILE *f;

	if (strchr(name, '/')) {
		*path = strdup(name);
	} else {
		const char *p = dirs ? dirs : "/usr/local/bin:/usr/bin:/bin";

		*path = NULL;
		while (*p && !*path) {
			size_t n = strcspn(p, ":");
			char *try = NULL;

			if (asprintf(&try, "%.*s/%s", n ? (int)n : 1, n ? p : ".", name) < 0)
				try = NULL;
			if (try && access(try, X_OK) == 0 && stat(try, &st) == 0 && S_ISREG(st.st_mode))
				*path = try;
			else
				free(try);
			p += n + (p[n] == ':');
		}
		if (!*path)
			return pt_fail(
			    e, PT_ERR_REFUSED, PT_NO_OFFSET,
			    "no program is called %s in PATH; give its path, or look at the spelling", name);
	}
	if (!*path)
		return pt_fail_no_memory(e, NULL);
	if (stat(*path, &st) < 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "cannot run %s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "cannot run %s: it is no file", name);
	if (access(*path, X_OK) < 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "cannot run %s: %s (chmod +x?)", name,
			       strerror(errno));
	f = fopen(*path, "re");
	if (f && fread(head, 1, sizeof head, f) == sizeof head && !memcmp(head, "\177ELF\1", 5)) {
		fclose(f);
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s is a 32-bit program: stepping is for 64-bit ones only so far", name);
	}
	if (f)
		fclose(f);
	if (st.st_mode & (S_ISUID | S_ISGID) && geteuid() != 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s is set-user-ID, and would run without its privileges when traced: run "
			       "pt-capture as root",
			       name);
	return 0;
}

static void cpuid(unsigned leaf, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
	__asm__("cpuid" : "=a"(*a), "=b"(*b), "=c"(*c), "=d"(*d) : "a"(leaf), "c"(0));
}

static int put_meta(struct ptc_writer *w, const struct arguments *a, struct pt_error *e)
{
	struct utsname u;
	unsigned regs[13] = {0}, x, y, z, v;
	char command[4096] = "";
	int r = 0;

	for (char **p = a->program; *p; p++) {
		size_t n = strlen(command);

		snprintf(command + n, sizeof command - n, "%s%s", n ? " " : "", *p);
	}
	unsigned char id[16];

	if (getrandom(id, sizeof id, 0) == sizeof id) {
		char hex[33];

		for (size_t i = 0; i < sizeof id; i++)
			snprintf(hex + 2 * i, 3, "%02x", id[i]);
		r |= ptc_put_meta(w, "uuid", hex, e);
	}
	r |= ptc_put_meta(w, "tool", "pt-capture", e);
	r |= ptc_put_meta(w, "tool_version", PT_VERSION, e);
	r |= ptc_put_meta(w, "engine", "step", e);
	r |= ptc_put_meta(w, "synthetic", "1", e);
	r |= ptc_put_meta(w, "command", command, e);
	r |= ptc_put_metaf(w, e, "start_time", "%lld", (long long)time(NULL));
	if (uname(&u) == 0) {
		r |= ptc_put_meta(w, "host", u.nodename, e);
		r |= ptc_put_meta(w, "kernel", u.release, e);
		r |= ptc_put_meta(w, "arch", u.machine, e);
	}
	cpuid(0, &x, &regs[0], &regs[2], &regs[1]);
	r |= ptc_put_meta(w, "cpu_vendor", (char *)regs, e);
	cpuid(1, &x, &y, &z, &v);
	r |= ptc_put_metaf(w, e, "cpu_family", "%u",
			   (x >> 8 & 15) + ((x >> 8 & 15) == 15 ? x >> 20 & 255 : 0));
	r |= ptc_put_metaf(w, e, "cpu_model", "%u", (x >> 4 & 15) | (x >> 16 & 15) << 4);
	r |= ptc_put_metaf(w, e, "cpu_stepping", "%u", x & 15);
	cpuid(0x80000000, &x, &y, &z, &v);
	if (x >= 0x80000004) {
		memset(regs, 0, sizeof regs);
		for (unsigned i = 0; i < 3; i++)
			cpuid(0x80000002 + i, &regs[4 * i], &regs[4 * i + 1], &regs[4 * i + 2],
			      &regs[4 * i + 3]);
		r |= ptc_put_meta(w, "cpu_name", (char *)regs, e);
	}
	r |= ptc_put_metaf(w, e, "tsc_ctc_numerator", "%d", PT_MODEL_CTC_NUM);
	r |= ptc_put_metaf(w, e, "tsc_ctc_denominator", "%d", PT_MODEL_CTC_DEN);
	r |= ptc_put_metaf(w, e, "tsc_hz", "%d", PT_MODEL_TSC_HZ);
	r |= ptc_put_metaf(w, e, "nominal_ratio", "%d", PT_MODEL_NOMINAL);
	r |= ptc_put_metaf(w, e, "mtc_freq", "%u", pt_config_field(a->config, PT_CONFIG_MTC_PERIOD));
	r |= ptc_put_metaf(w, e, "pt_config", "0x%" PRIx64, a->config);
	r |= ptc_put_meta(w, "pt_user_only", "1", e);
	r |= ptc_put_meta(w, "time_zero", "0", e);
	r |= ptc_put_meta(w, "time_mult", "512", e);
	r |= ptc_put_meta(w, "time_shift", "10", e);
	return r < 0 ? -1 : 0;
}

/* For its owner only, as the container is. */
static FILE *open_truth(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

static int capture(const struct arguments *a, struct pt_error *e)
{
	unsigned thresh = pt_config_field(a->config, PT_CONFIG_CYC_THRESH);
	struct step_options o = {
	    .encode = {.tsc = a->config & PT_CONFIG_TSC,
		       .mtc = a->config & PT_CONFIG_MTC && a->config & PT_CONFIG_TSC,
		       .cyc = a->config & PT_CONFIG_CYC,
		       .retcomp = !(a->config & PT_CONFIG_NORETCOMP),
		       .mtc_shift = pt_config_field(a->config, PT_CONFIG_MTC_PERIOD),
		       .cyc_min = thresh ? 1u << (thresh - 1) : 0,
		       .psb_bytes = (uint64_t)2048 << pt_config_field(a->config, PT_CONFIG_PSB_PERIOD)},
	    .config = a->config,
	    .max_steps = a->max_steps,
	    .stop = &stop,
	    .stop_signal = &stop_signal};
	struct sigaction act = {.sa_handler = on_signal};
	struct step_result result;
	struct output out = {0};
	struct ptc_writer *w;
	struct timespec t0, t1;
	int r = -1;

	if (output_open_capture(&out, a->output, "a container", e) < 0)
		return -1;
	o.stdout_to_stderr = out.fd == 1;
	if (a->truth && !(o.truth = open_truth(a->truth))) {
		pt_fail_errno(e, "cannot write %s", a->truth);
		output_abort(&out);
		return -1;
	}
	if (!a->quiet && isatty(2))
		o.progress = progress;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGALRM, &act, NULL);
	if (!a->quiet)
		fprintf(stderr, "pt-capture: single-stepping %s: branches are real, time is a model\n",
			a->program[0]);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	w = ptc_writer_create(out.fd, a->level, e);
	if (w && put_meta(w, a, e) == 0 && step_run(a->program, &o, w, &result, e) == 0) {
		r = ptc_put_metaf(w, e, "exit_status", "%d", result.status);
		if (r == 0)
			r = ptc_writer_finish(w, e);
	}
	ptc_writer_destroy(w);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	if (o.truth && (fflush(o.truth) != 0 || ferror(o.truth)) && r == 0)
		r = pt_fail_errno(e, "cannot write %s", a->truth);
	if (o.truth)
		fclose(o.truth);
	if (r == 0)
		r = output_commit(&out, e);
	else
		output_abort(&out);
	if (r == 0 && result.untraced)
		fprintf(stderr,
			"%spt-capture: 32-bit programs that it began (%u) ran without being traced: stepping "
			"is for "
			"64-bit ones only\n",
			o.progress ? "\r" : "", result.untraced);
	if (r == 0 && !a->quiet) {
		double s = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9;

		fprintf(stderr,
			"%spt-capture: %s ended with status %d; %" PRIu64
			" instructions, %u thread%s, %.0f steps/s\n",
			o.progress ? "\r" : "", a->program[0], result.status, result.steps, result.threads,
			result.threads == 1 ? "" : "s", (double)result.steps / (s > 0 ? s : 1));
	}
	return r;
}

int cmd_step(int argc, char **argv)
{
	struct arguments a = {.config = PT_CONFIG_DEFAULT, .level = 1};
	struct pt_error e = {0};
	char *path = NULL;
	int r = parse(argc, argv, &a, &e);

	if (r > 0)
		return 0;
	if (r == 0)
		r = find_program(a.program[0], &path, &e);
	free(path);
	if (r == 0)
		r = capture(&a, &e);
	return r < 0 ? command_failed(&e) : 0;
}
