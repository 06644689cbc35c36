/* Handlers, a fault that one returns from by siglongjmp, an interrupting timer, raise, a blocked
 * signal, an ignored one. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile sig_atomic_t ticks, usr;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

static void on_timer(int sig)
{
	(void)sig;
	ticks = ticks + 1;
}

static void on_usr(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	usr = usr + 1;
}

int main(void)
{
	struct sigaction a = {.sa_sigaction = on_usr, .sa_flags = SA_SIGINFO};
	struct itimerval t = {{0, 3000}, {0, 3000}};
	volatile int *nowhere = NULL, faults = 0;
	sigset_t set;
	int sig;

	sigaction(SIGUSR1, &a, NULL);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGSEGV, on_fault);
	signal(SIGILL, on_fault);
	signal(SIGALRM, on_timer);
	for (int i = 0; i < 3; i++) {
		sig = sigsetjmp(back, 1);
		if (sig == 0) {
			if (i == 1)
				__asm__ volatile("ud2");
			*nowhere = 1;
		}
		faults += sig != 0;
	}
	raise(SIGUSR1);
	raise(SIGUSR2);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
	while (ticks < 2)
		;
	pause();
	t.it_value.tv_usec = t.it_interval.tv_usec = 0;
	setitimer(ITIMER_REAL, &t, NULL);
	printf("%d %d %d\n", faults, (int)usr, ticks >= 3);
	return 0;
}
