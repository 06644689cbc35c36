/* A child that shares its parent's memory (vfork) is killed as it runs; then the parent runs the same code. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sum, rounds;

static void work(void)
{
	for (int i = 0; i < 100; i++) {
		sum += 1, sum ^= 2, sum += 3, sum ^= 4, sum += 5, sum ^= 6, sum += 7, sum ^= 8;
		sum += 1, sum ^= 2, sum += 3, sum ^= 4, sum += 5, sum ^= 6, sum += 7, sum ^= 8;
	}
	rounds++;
}

int main(void)
{
	for (int i = 0; i < 10; i++) {
		struct sigevent kill_it = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
		struct itimerspec soon = {.it_value = {0, 3000000 + 37000 * i}};
		timer_t timer;
		int status;
		pid_t child = vfork();

		if (child == 0) {
			if (timer_create(CLOCK_MONOTONIC, &kill_it, &timer) < 0 ||
			    timer_settime(timer, 0, &soon, NULL) < 0)
				_exit(1);
			for (;;)
				work();
		}
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
			return 1;
		work();
	}
	return rounds == 0;
}
