/*
 * mappings - code that comes, moves and goes: files that are mapped elsewhere or replaced, that have no name,
 * that are no ELF files, copies of a program's own code in anonymous memory, coroutines.
 *
 *     mappings WHAT [FILE...]
 *
 * WHAT: move A B     maps A's code, calls it, moves it (mremap), maps B's where it was, calls both
 *       huge         moves a copy of its own code over it, as programs do that want huge pages
 *       memfd FILE   runs code from a file without a name; then executes FILE from one
 *       unlinked A   A is deleted while its code runs
 *       over A B     B's code is mapped over a part of A's
 *       dl A B       dlopen and dlclose in turn (dynamic program only)
 *       coroutine    swapcontext
 *       shared       a child that shares memory (clone with CLONE_VM) runs, too
 *       loop N       calls its own code N times
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096 };

typedef unsigned (*code)(unsigned n);

static void *die(const char *what)
{
	fprintf(stderr, "mappings: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* A file of code: its first byte is where it is called. */
static code map_code(const char *file, void *at)
{
	int fd = open(file, O_RDONLY);
	void *p;

	if (fd < 0)
		die(file);
	p = mmap(at, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);
	close(fd);
	return (code)(p == MAP_FAILED ? die("mmap") : p);
}

static unsigned call(code c, unsigned times)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < times; i++)
		sum += c(i);
	return sum;
}

static unsigned move(const char *a, const char *b)
{
	code c = map_code(a, NULL);
	unsigned sum = 0;

	for (int i = 0; i < 8; i++) {
		void *from = (void *)c;
		void *to = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		sum += call(c, 20);
		to = mremap(from, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		if (to == MAP_FAILED)
			die("mremap");
		sum += call((code)to, 20);
		c = map_code(b, from);
		sum += call(c, 20) + call((code)to, 20);
	}
	return sum;
}

static __attribute__((noinline, aligned(4096), section(".text.own"))) unsigned own(unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i <= n % 16; i++)
		sum = i % 3 ? sum * 5 + n : sum + (i ^ n);
	return sum;
}

static unsigned huge(void)
{
	void *at = (void *)own;
	unsigned sum = call(own, 20);

	for (int i = 0; i < 4; i++) {
		void *copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memcpy(copy, at, PAGE);
		if (mprotect(copy, PAGE, PROT_READ | PROT_EXEC))
			die("mprotect");
		if (mremap(copy, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
			die("mremap");
		sum += call(own, 20);
	}
	return sum;
}

static void copy_file(int to, const char *file)
{
	char bytes[65536];
	int fd = open(file, O_RDONLY);
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			die("write");
	close(fd);
}

static unsigned memfd(const char *a, const char *program)
{
	int fd = memfd_create("code", 0);
	char *argv[] = {"mappings", "loop", "20", NULL};
	unsigned sum = 0;
	void *p;

	copy_file(fd, a);
	p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	sum = call((code)p, 50);
	if (fork() == 0) {
		fd = memfd_create("program", MFD_CLOEXEC);
		copy_file(fd, program);
		fexecve(fd, argv, (char *[]){NULL});
		die("fexecve");
	}
	wait(NULL);
	return sum + call((code)p, 50);
}

static unsigned unlinked(const char *a)
{
	code c = map_code(a, NULL);

	if (unlink(a))
		die(a);
	return call(c, 50);
}

static unsigned over(const char *a, const char *b)
{
	unsigned sum = 0;

	for (int i = 0; i < 6; i++) {
		code c = map_code(i % 2 ? a : b, NULL);

		sum += call(c, 20);
		map_code(i % 2 ? b : a, (void *)c);
		sum += call(c, 20);
		munmap((void *)c, PAGE);
	}
	return sum;
}

static unsigned dl(const char *a, const char *b)
{
	unsigned sum = 0;

	for (int i = 0; i < 8; i++) {
		void *handle = dlopen(i % 2 ? b : a, RTLD_NOW);

		if (!handle)
			die(dlerror());
		sum += call((code)dlsym(handle, "run"), 20);
		dlclose(handle);
	}
	return sum;
}

static ucontext_t main_context, contexts[2];
static unsigned coroutine_sum;

static void coroutine(int which)
{
	for (unsigned i = 0; i < 40; i++) {
		coroutine_sum += own(i + (unsigned)which);
		swapcontext(&contexts[which], i == 39 ? &main_context : &contexts[!which]);
	}
}

static unsigned coroutines(void)
{
	static char stacks[2][65536];

	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
		makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
	}
	swapcontext(&main_context, &contexts[0]);
	return coroutine_sum;
}

static int child(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		call(own, 20);
		sched_yield();
	}
	return 0;
}

static unsigned shared(void)
{
	static char stack[65536];
	unsigned sum = 0;

	for (int i = 0; i < 3; i++) {
		int pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

		if (pid < 0)
			die("clone");
		for (int k = 0; k < 20; k++) {
			sum += call(own, 20);
			sched_yield();
		}
		waitpid(pid, NULL, 0);
	}
	return sum;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *a = argc > 2 ? argv[2] : NULL, *b = argc > 3 ? argv[3] : NULL;
	unsigned sum = 0;

	if (!strcmp(what, "move"))
		sum = move(a, b);
	else if (!strcmp(what, "huge"))
		sum = huge();
	else if (!strcmp(what, "memfd"))
		sum = memfd(a, b);
	else if (!strcmp(what, "unlinked"))
		sum = unlinked(a);
	else if (!strcmp(what, "over"))
		sum = over(a, b);
	else if (!strcmp(what, "dl"))
		sum = dl(a, b);
	else if (!strcmp(what, "coroutine"))
		sum = coroutines();
	else if (!strcmp(what, "shared"))
		sum = shared();
	else if (!strcmp(what, "loop"))
		sum = call(own, (unsigned)atoi(a));
	else
		return 2;
	printf("%s %u\n", what, sum);
	return 0;
}
