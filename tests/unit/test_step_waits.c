/*
 * test_step_waits.c - a thread that does not run is known to be one: asleep, or a first thread that has ended
 * while others run, which no wait() reports. The step engine asked for the step of such a one for ever, when
 * another thread had called exec.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/step/internal.h"
#include "tests/unit/check.h"

static void *sleep_on(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void end_first(void)
{
	pthread_t t;

	pthread_create(&t, NULL, sleep_on, NULL);
	pthread_exit(NULL);
}

static void run_on(void)
{
	for (;;)
		__asm__ volatile("");
}

static pid_t child(void (*does)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		does();
		_exit(0);
	}
	return pid;
}

static bool waits_soon(pid_t pid)
{
	for (int i = 0; i < 1000 && !step_waits(pid); i++)
		usleep(10000);
	return step_waits(pid);
}

int main(void)
{
	pid_t ended = child(end_first), runs = child(run_on);

	check(waits_soon(ended), "a first thread that has ended, another has not");
	check(waitpid(ended, NULL, WNOHANG) == 0, "which wait() does not report");
	check(!step_waits(runs), "one that runs");
	kill(ended, SIGKILL);
	kill(runs, SIGKILL);
	while (wait(NULL) > 0)
		;
	return sum_up();
}
