/*
 * vforks.c - processes that share their parent's address space for a while: vfork and exec, vfork and
 * an exec that fails, posix_spawn, clone(CLONE_VM) without CLONE_THREAD, and vfork in a program with
 * threads. vforks ROUNDS; static.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile unsigned sink;
static volatile int done;

static unsigned work(unsigned n)
{
	unsigned x = n;

	for (unsigned i = 0; i < 300; i++)
		x = x & 1 ? x * 3 + 1 : x / 2 + i;
	return x;
}

static void wait_for(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, __WALL) != pid)
		exit(1);
	sink += work(sink);
}

static void with_vfork(char **argv)
{
	pid_t pid = vfork();

	if (pid == 0) {
		sink += work(sink);
		execv(argv[0], argv);
		_exit(127);
	}
	wait_for(pid);
}

static void with_spawn(char **argv)
{
	pid_t pid;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ))
		exit(1);
	wait_for(pid);
}

static int child(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 20; i++)
		sink += work(i);
	return 0;
}

/* Shares memory, and runs beside its parent. */
static void with_clone(void)
{
	static char *stack;
	pid_t pid;

	if (!stack)
		stack =
		    mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	pid = clone(child, stack + 65536, CLONE_VM | SIGCHLD, NULL);
	child(NULL);
	wait_for(pid);
}

static void *busy(void *arg)
{
	while (!done)
		sink += work((unsigned)sink);
	return arg;
}

int main(int argc, char **argv)
{
	char *program[] = {"/usr/bin/true", NULL}, *missing[] = {"/usr/bin/no-such-program", NULL};
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	pthread_t thread;

	for (int i = 0; i < rounds; i++) {
		with_vfork(program);
		with_vfork(missing);
		with_spawn(program);
		with_clone();
	}
	if (pthread_create(&thread, NULL, busy, NULL))
		return 1;
	for (int i = 0; i < rounds; i++) {
		with_vfork(program);
		with_spawn(program);
		sched_yield();
	}
	done = 1;
	pthread_join(thread, NULL);
	return 0;
}
