/* guest_merge.c - see guest_merge.h. */
#include "decode/guest_merge.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

bool pt_guest_merge_add(struct pt_guest_merge *g, const char *file)
{
	if (g->count == PT_GUEST_MERGE_MAX)
		return false;
	g->files[g->count++] = file;
	return true;
}

/* In the child process: does not return. */
static void exec_merge(const struct pt_guest_merge *g, const char *host, int out)
{
	const char *argv[PT_GUEST_MERGE_MAX + 8] = {"pt-capture", "merge", "-z", "-7", "--", host};
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);

	memcpy(argv + 6, g->files, g->count * sizeof *argv);
	dup2(out, 1);
	if (n > 0) {
		path[n] = 0;
		strcpy(strrchr(path, '/') + 1, "pt-capture");
		execv(path, (char **)argv);
	}
	execvp("pt-capture", (char **)argv);
	fputs("pt-decode: --guest needs pt-capture, beside pt-decode or in PATH\n", stderr);
	_exit(1);
}

int pt_guest_merge_start(struct pt_guest_merge *g, const char *host, int *ret_fd, struct pt_error *e)
{
	struct stat st;
	int ends[2];

	if (!host) {
		host = "/dev/stdin";
		if (fstat(0, &st) < 0 || !S_ISREG(st.st_mode))
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				       "--guest: the host's container is read more than once: name a file");
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return pt_fail_errno(e, "cannot make a pipe");
	g->child = fork();
	if (g->child == 0)
		exec_merge(g, host, ends[1]);
	close(ends[1]);
	if (g->child < 0) {
		close(ends[0]);
		return pt_fail_errno(e, "cannot start pt-capture");
	}
	*ret_fd = ends[0];
	return 0;
}

int pt_guest_merge_finish(struct pt_guest_merge *g, int fd, struct pt_error *e)
{
	char rest[65536];
	int status;

	if (!g->count)
		return 0;
	/* With --time not all is decoded. pt-capture would fail with EPIPE if the rest were not read. */
	while (read(fd, rest, sizeof rest) > 0)
		;
	close(fd);
	if (waitpid(g->child, &status, 0) < 0)
		return pt_fail_errno(e, "cannot wait for pt-capture");
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3))
		return WEXITSTATUS(status);
	return pt_fail(e, WIFEXITED(status) && WEXITSTATUS(status) == 2 ? PT_ERR_USAGE : PT_ERR_REFUSED,
		       PT_NO_OFFSET, "--guest: pt-capture merge could not join them");
}

void pt_guest_merge_abort(struct pt_guest_merge *g, int fd)
{
	if (!g->count)
		return;
	close(fd);
	waitpid(g->child, NULL, 0);
}
