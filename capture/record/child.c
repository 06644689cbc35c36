/* child.c - see child.h. */
#include "capture/record/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void child(char **argv, bool stdout_to_stderr, int go, int failed)
{
	char c;
	ssize_t got;

	signal(SIGPIPE, SIG_DFL);
	if (stdout_to_stderr)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	do
		got = read(go, &c, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		execvp(argv[0], argv);
	if (got) {
		int why = errno;

		while (write(failed, &why, sizeof why) < 0 && errno == EINTR)
			;
	}
	_exit(127);
}

int hw_child_start(struct hw_child *c, char **argv, bool stdout_to_stderr, struct pt_error *e)
{
	int go[2], failed[2];

	if (pipe2(go, O_CLOEXEC))
		return pt_fail_errno(e, "cannot make a pipe");
	if (pipe2(failed, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return pt_fail_errno(e, "cannot make a pipe");
	}
	c->pid = fork();
	if (c->pid == 0) {
		close(go[1]);
		close(failed[0]);
		child(argv, stdout_to_stderr, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	c->go = go[1];
	c->failed = failed[0];
	if (c->pid < 0) {
		c->pid = 0;
		close(c->go);
		close(c->failed);
		return pt_fail_errno(e, "cannot fork");
	}
	return 0;
}

int hw_child_go(struct hw_child *c, const char *name, struct pt_error *e)
{
	int why;
	ssize_t got;
	/* EPIPE: it has ended. That is no broken pipe of ours, of which nothing is said. */
	bool ended = write(c->go, "", 1) < 0;

	if (ended && errno != EPIPE)
		return pt_fail_errno(e, "cannot start %s", name);
	do
		got = read(c->failed, &why, sizeof why);
	while (got < 0 && errno == EINTR);
	if (got == sizeof why)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "cannot run %s: %s", name, strerror(why));
	if (ended)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "cannot run %s: it was killed before it began", name);
	c->running = true;
	return 0;
}

bool hw_child_ended(struct hw_child *c)
{
	int status;

	if (!c->ended && c->pid && waitpid(c->pid, &status, WNOHANG) == c->pid) {
		c->ended = true;
		c->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	return c->ended;
}

void hw_child_end(struct hw_child *c)
{
	if (!c->pid)
		return;
	close(c->go);
	close(c->failed);
	if (!c->running)
		waitpid(c->pid, NULL, 0);
	c->pid = 0;
}
