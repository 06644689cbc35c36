/*
 * ptrace_loop.c - what single-stepping costs at least: runs a program under ptrace and counts its steps,
 * nothing else. Tracer and program share a CPU, as in pt-capture. Prints the steps.
 */
#include <sched.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned long steps = 0;
	cpu_set_t set;
	int status;
	pid_t pid;

	if (argc < 2)
		return 2;
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof set, &set);
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int signal = WSTOPSIG(status);

		if (ptrace(PTRACE_SINGLESTEP, pid, 0, (long)(signal == 5 ? 0 : signal)) < 0)
			break;
		steps++;
	}
	fprintf(stderr, "%lu\n", steps);
	return steps ? 0 : 1;
}
