/*
 * cputime.c - runs a command and prints, to file descriptor 3, its CPU seconds (user + system, with those of
 * its waited-for children), wall seconds and peak RSS in MB. Exit status: the command's.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
	struct timespec a, b;
	struct rusage u;
	int status;
	pid_t pid;

	if (argc < 2)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &a);
	pid = fork();
	if (pid == 0) {
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &u) < 0)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &b);
	dprintf(3, "%.4f %.4f %ld\n", seconds(u.ru_utime) + seconds(u.ru_stime),
		(double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9, u.ru_maxrss / 1024);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
