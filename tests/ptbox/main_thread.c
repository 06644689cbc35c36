/*
 * main_thread - a program whose main thread has ended, as daemons do: /proc/PID/maps is empty from then on.
 *
 *     main_thread DONE [FILE]
 *
 * Two threads work until the file DONE is there: in the program's own code, the C library's and the vDSO's. The
 * first one maps FILE's code, too, deletes FILE, and calls it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef unsigned (*code)(unsigned n);

static const char *done, *file;

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static unsigned sort(unsigned n)
{
	int numbers[24];

	for (unsigned i = 0; i < 24; i++)
		numbers[i] = (int)(n * 7919 + i * i * 131) % 97;
	qsort(numbers, 24, sizeof *numbers, compare);
	return (unsigned)numbers[n % 24];
}

static code map_file(void)
{
	int fd = open(file, O_RDONLY);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (fd < 0 || p == MAP_FAILED || unlink(file))
		exit(1);
	close(fd);
	return (code)p;
}

static void *work(void *first)
{
	code called = first && file ? map_file() : sort;
	volatile unsigned sum = 0;
	struct timespec t;

	for (unsigned n = 0; access(done, F_OK); n++) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		sum += called(n) + sort(n);
		if (n % 16 == 0)
			usleep(1000);
	}
	exit(sum == 1);
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (argc < 2)
		return 2;
	done = argv[1];
	file = argv[2];
	pthread_create(&t, NULL, work, &done);
	pthread_create(&t, NULL, work, NULL);
	syscall(SYS_exit, 0); /* pthread_exit() wants libgcc_s.so */
	return 1;
}
