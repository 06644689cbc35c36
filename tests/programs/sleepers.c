/* Threads that sleep in system calls while signals that nobody heeds, and ones that have a handler,
 * interrupt them. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];
static volatile sig_atomic_t handled;

static void on_usr(int sig)
{
	(void)sig;
	handled = handled + 1;
}

static void *reader(void *arg)
{
	int sum = 0, n;
	char c;

	(void)arg;
	while ((n = (int)read(ends[0], &c, 1)) != 0) {
		if (n < 0 && errno != EINTR)
			break;
		sum += n == 1 ? c : 0;
	}
	return (void *)(long)sum;
}

int main(void)
{
	struct sigaction a = {.sa_handler = on_usr, .sa_flags = SA_RESTART};
	pthread_t threads[2];
	long sum = 0;

	signal(SIGUSR1, SIG_IGN);
	sigaction(SIGUSR2, &a, NULL);
	if (pipe(ends) < 0)
		return 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, reader, NULL);
	for (char c = 1; c <= 20; c++) {
		for (int i = 0; i < 2; i++) {
			pthread_kill(threads[i], SIGURG);
			pthread_kill(threads[i], SIGUSR1);
			if (c % 4 == 0)
				pthread_kill(threads[i], SIGUSR2);
		}
		if (write(ends[1], &c, 1) != 1)
			return 1;
	}
	close(ends[1]);
	for (int i = 0; i < 2; i++) {
		void *ret;

		pthread_join(threads[i], &ret);
		sum += (long)ret;
	}
	printf("%ld, handled: %s\n", sum, handled ? "some" : "none");
	return 0;
}
