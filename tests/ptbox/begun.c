/* begun IDLE FOLDER: makes IDLE threads that sleep; another waits until FOLDER (a process's /proc/PID/fd)
 * shows that it has opened files in numbers, and then makes threads and processes, each of which works now
 * and then for ever. Prints the threads' numbers, and "made" when all are there. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *sleeps(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static void *works(void *arg)
{
	volatile unsigned sum = 0;

	(void)arg;
	printf("%ld\n", syscall(SYS_gettid));
	fflush(stdout);
	for (;;) {
		for (unsigned i = 0; i < 100; i++)
			sum = sum * 3 + (sum & i ? 1 : i);
		usleep(20000);
	}
}

static int files(const char *folder)
{
	DIR *d = opendir(folder);
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* The thread that was made last: events are opened for it last. */
static void *makes(void *folder)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	fprintf(stderr, "waits\n");
	while (files(folder) < 20)
		;
	for (int i = 0; i < 40; i++) {
		pthread_create(&t, &a, works, NULL);
		if (i % 8 == 0 && fork() == 0)
			works(NULL);
		usleep(200);
	}
	fprintf(stderr, "made\n");
	return NULL;
}

int main(int argc, char **argv)
{
	int idle = argc > 2 ? atoi(argv[1]) : 0;
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	for (int i = 0; i < idle; i++)
		pthread_create(&t, &a, sleeps, NULL);
	pthread_create(&t, &a, makes, argv[2]);
	pause();
}
