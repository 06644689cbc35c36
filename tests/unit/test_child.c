/* test_child.c - a traced program that cannot begin: what is said of it (capture/record/child.h). */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "capture/record/child.h"
#include "tests/unit/check.h"

static void starts(char *program, int kill_by, const char *why)
{
	char *argv[] = {program, NULL};
	struct hw_child c = {0};
	struct pt_error e = {0};
	siginfo_t info;

	check(hw_child_start(&c, argv, false, &e) == 0, "forked");
	if (kill_by) {
		kill(c.pid, kill_by);
		waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT);
	}
	/* PT_ERR_CLOSED is what ends quietly. */
	check_case(hw_child_go(&c, program, &e) < 0 && e.kind == PT_ERR_REFUSED && strstr(e.message, why),
		   why, e.message);
	hw_child_end(&c);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	starts("/nonexistent/program", 0, "No such file or directory");
	starts("true", SIGKILL, "it was killed before it began");
	return sum_up();
}
