/*
 * test_jit.c - code that a process makes while it runs, as it is read (capture/record/jit.h): which
 * bytes go into the container as valid from when, and which are unknown between two readings. The
 * process is a real one, the clock is the test's.
 */
#include "capture/record/jit.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE   4096u
#define NOBODY 0x3fffffff /* above each pid_max */

/* ---- The process: it obeys ---- */

static uint8_t *code; /* two pages, in both processes at the same address */
static int to_child[2], from_child[2];
static pid_t pid;

struct command {
	char what; /* w: bytes [at, at + n) become v; p: protection v */
	uint32_t at, n;
	int v;
};

static void obey(void)
{
	struct command c;

	while (read(to_child[0], &c, sizeof c) == sizeof c) {
		if (c.what == 'w')
			memset(code + c.at, c.v, c.n);
		else
			mprotect(code, (size_t)2 * PAGE, c.v);
		if (write(from_child[1], "", 1) != 1)
			break;
	}
	_exit(0);
}

static void command(char what, uint32_t at, uint32_t n, int v)
{
	struct command c = {what, at, n, v};
	char done;

	if (write(to_child[1], &c, sizeof c) != sizeof c || read(from_child[0], &done, 1) != 1)
		exit(1);
}

static void begin_process(void)
{
	/* cppcheck-suppress invalidFunctionArg ; -1 is what anonymous memory has */
	code = mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED || pipe2(to_child, O_CLOEXEC) || pipe2(from_child, O_CLOEXEC))
		exit(1);
	pid = fork();
	if (pid == 0) {
		close(to_child[1]);
		obey();
	}
}

/* ---- What it makes of it ---- */

static uint64_t now = 1000;

static uint64_t clock_ns(const void *arg)
{
	(void)arg;
	return now += 10;
}

struct found {
	enum { CODE, UNKNOWN } kind;
	uint64_t at, n, time_ns; /* at: offset in the two pages */
	int first;		 /* CODE: its first byte */
};

static struct found found[64];
static size_t count;

static void take_chunk(const struct ptc_chunk *c)
{
	struct pt_error e = {0};
	struct ptc_image image;
	uint64_t address, n, size;
	const uint8_t *p;
	uint32_t attr;

	if (c->type == PTC_IMAGE && ptc_parse_image(c, &image, &e) == 0)
		found[count++] = (struct found){CODE, image.vaddr - (uintptr_t)code, image.size,
						image.time_ns, image.bytes[0]};
	if (c->type != PTC_SIDEBAND || ptc_parse_sideband(c, &attr, &p, &size, &e))
		return;
	for (const uint8_t *last = p + size; p < last;) {
		struct perf_event_header h;
		uint64_t time_ns;

		memcpy(&h, p, sizeof h);
		memcpy(&address, p + 16, 8);
		memcpy(&n, p + 24, 8);
		memcpy(&time_ns, p + h.size - 24, 8);
		if (h.type == PERF_RECORD_MMAP2)
			found[count++] = (struct found){UNKNOWN, address - (uintptr_t)code, n, time_ns, 0};
		p += h.size;
	}
}

static void read_container(int fd)
{
	struct pt_error e = {0};
	struct ptc_reader *r;
	struct ptc_chunk c;

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	count = 0;
	while (r && count < 64 && ptc_next(r, &c, &e) > 0)
		take_chunk(&c);
	ptc_reader_destroy(r);
}

static bool has(struct found f)
{
	for (size_t i = 0; i < count; i++)
		if (found[i].kind == f.kind && found[i].at == f.at && found[i].n == f.n &&
		    found[i].time_ns == f.time_ns && found[i].first == f.first)
			return true;
	return false;
}

/* A reading and its settling, as two rounds do it. *ret_start: no later than it. */
static uint64_t look(struct hw_jit *j, uint64_t *ret_start)
{
	struct pt_error e = {0};
	uint64_t end;

	*ret_start = now + 20;
	check(hw_jit_read(j, true, &e) == 0, "read");
	end = now - 10;
	check(hw_jit_settle(j, &e) == 0, "settled");
	return end;
}

int main(void)
{
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct pt_error e = {0};
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	struct hw_jit *j = hw_jit_create(w, clock_ns, NULL);
	uint64_t start[8], end[8], mapped, first_mapped, again_mapped, forked;
	unsigned processes;

	check(hw_jit_name("//anon") && hw_jit_name("/memfd:x (deleted)") && !hw_jit_name("/usr/bin/x") &&
		  !hw_jit_name("[vdso]"),
	      "what no file has the code of");
	begin_process();
	check(hw_jit_bound(j) == UINT64_MAX, "nothing is read");
	/* Written first, then made executable, and not writable. */
	command('w', 0, 100, 0x11);
	command('p', 0, 0, PROT_READ | PROT_EXEC);
	first_mapped = mapped = now += 100;
	check(hw_jit_mapped(j, pid, (uintptr_t)code, (uint64_t)2 * PAGE, mapped, &e) == 0, "a mapping");
	check(hw_jit_bound(j) == mapped, "what comes of it may be as old as its record");
	look(j, &start[0]);
	check(hw_jit_bound(j) >= mapped && hw_jit_bound(j) <= start[0], "then as old as the reading");
	/* Writable and executable: what is written between two readings is unknown between them. */
	command('p', 0, 0, PROT_READ | PROT_WRITE | PROT_EXEC);
	again_mapped = mapped = now += 100;
	hw_jit_mapped(j, pid, (uintptr_t)code, (uint64_t)2 * PAGE, mapped, &e);
	look(j, &start[1]);
	command('w', 1000, 200, 0x22);
	end[2] = look(j, &start[2]);
	look(j, &start[3]); /* nothing new */
	command('w', 1050, 10, 0x33);
	command('w', PAGE + 64, 1, 0x44);
	end[4] = look(j, &start[4]);
	/* Made anew where it was, while it was not executable: again valid from its record on. */
	command('p', 0, 0, PROT_READ | PROT_WRITE);
	command('w', 0, 100, 0x55);
	command('p', 0, 0, PROT_READ | PROT_EXEC);
	now += 100;
	hw_jit_mapped(j, pid, (uintptr_t)code, (uint64_t)2 * PAGE, now, &e);
	end[5] = now;
	look(j, &start[5]);
	/* What was writable when it was read last, and is gone, may have changed in between. */
	command('p', 0, 0, PROT_READ | PROT_WRITE | PROT_EXEC);
	now += 100;
	hw_jit_mapped(j, pid, (uintptr_t)code, (uint64_t)2 * PAGE, now, &e);
	look(j, &start[6]);
	/* A child, which has ended before it is read: what is not fixed is unknown from its beginning on. */
	forked = now += 100;
	check(hw_jit_forked(j, NOBODY, pid, forked, &e) == 0, "a child");
	close(to_child[1]);
	waitpid(pid, NULL, 0);
	look(j, &start[7]);
	check(hw_jit_bound(j) == UINT64_MAX, "nothing more is to come");
	check(hw_jit_bytes(j, &processes) > PAGE && processes == 2, "counted");
	check(ptc_writer_finish(w, &e) == 0, "the container");
	hw_jit_destroy(j);
	ptc_writer_destroy(w);
	read_container(fd);
	check(has((struct found){CODE, 0, (uint64_t)2 * PAGE, first_mapped, 0x11}),
	      "written before it was executable: valid from the record on");
	check(has((struct found){CODE, 0, (uint64_t)2 * PAGE, again_mapped, 0x11}),
	      "found again after another record: valid from that one on");
	check(has((struct found){UNKNOWN, 1000, 200, start[1], 0}) &&
		  has((struct found){CODE, 1000, 200, end[2], 0x22}),
	      "written while it was executable: unknown from one reading to the next");
	check(has((struct found){UNKNOWN, 1050, 10, start[3], 0}) &&
		  has((struct found){CODE, 1050, 10, end[4], 0x33}),
	      "changed: the same");
	check(has((struct found){UNKNOWN, PAGE + 64, 1, start[3], 0}) &&
		  has((struct found){CODE, PAGE + 64, 1, end[4], 0x44}),
	      "in another page");
	check(has((struct found){CODE, 0, (uint64_t)2 * PAGE, end[5], 0x55}),
	      "made while it was not: from the record on");
	check(has((struct found){UNKNOWN, 0, PAGE, start[6], 0}) &&
		  has((struct found){UNKNOWN, PAGE, PAGE, start[6], 0}),
	      "its end: unknown from the last reading on");
	check(has((struct found){UNKNOWN, 0, PAGE, forked + 1, 0}),
	      "a child's end: unknown from its beginning on");
	check(count == 14, "and no more");
	close(fd);
	return sum_up();
}
