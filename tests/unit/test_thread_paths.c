/* test_thread_paths.c - sums for each thread and call path (export/thread_paths.h): each once, in order, and
 * all that was added, also when most are in the scratch file. */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "export/thread_paths.h"
#include "tests/unit/check.h"

enum { THREADS = 8, PATHS = 120000 };

static struct pt_error error;
static FILE *file;
static struct thread_path wanted[PATHS][THREADS];

static struct thread_paths *begin(void)
{
	struct thread_paths *t;

	file = tmpfile();
	t = thread_paths_create(file ? fileno(file) : -1, &error);
	check(t, "made");
	return t;
}

static void end(struct thread_paths *t)
{
	thread_paths_destroy(t);
	if (file)
		fclose(file);
}

static void test_none(void)
{
	struct thread_paths *t = begin();
	struct thread_path p;

	check(thread_paths_rewind(t, &error) == 0 && thread_paths_next(t, &p, &error) == 0, "none");
	end(t);
}

/* Adds count sums, by chance of all threads and of the first `paths`. */
static bool add_some(struct thread_paths *t, uint32_t count, uint32_t paths)
{
	uint64_t random = 1;

	for (uint32_t i = 0; i < count; i++) {
		struct thread_path p = {
		    .calls = 1 + i % 3, .insns = i, .has_cycles = i % 100 == 0, .has_elapsed = i % 70 == 0};
		struct thread_path *w;

		random = random * 6364136223846793005u + 1442695040888963407u;
		p.path = (uint32_t)(random >> 40) % paths;
		p.thread = (uint32_t)(random >> 33) % THREADS;
		p.cycles = p.has_cycles ? i : 0;
		p.elapsed_tsc = p.has_elapsed ? 2 * i : 0;
		w = &wanted[p.path][p.thread];
		w->calls += p.calls;
		w->insns += p.insns;
		w->cycles += p.cycles;
		w->elapsed_tsc += p.elapsed_tsc;
		w->has_cycles |= p.has_cycles;
		w->has_elapsed |= p.has_elapsed;
		if (thread_paths_add(t, &p, &error) < 0)
			return false;
	}
	return true;
}

static bool is_wanted(const struct thread_path *p)
{
	const struct thread_path *w = &wanted[p->path][p->thread];

	return w->calls == p->calls && w->insns == p->insns && w->cycles == p->cycles &&
	       w->has_cycles == p->has_cycles && w->elapsed_tsc == p->elapsed_tsc &&
	       w->has_elapsed == p->has_elapsed;
}

/* count: of sums that are added. */
static void test_sums(uint32_t count, uint32_t paths)
{
	struct thread_paths *t = begin();
	struct thread_path p, last = {0};
	bool right = true, ordered = true;
	uint32_t sums = 0, expected = 0;
	int more;

	memset(wanted, 0, sizeof wanted);
	check(add_some(t, count, paths), "all are added");
	for (uint32_t i = 0; i < PATHS; i++)
		for (uint32_t k = 0; k < THREADS; k++)
			expected += wanted[i][k].calls > 0;
	check(thread_paths_rewind(t, &error) == 0, "to the first");
	while ((more = thread_paths_next(t, &p, &error)) > 0) {
		right &= is_wanted(&p);
		ordered &= !sums || p.path > last.path || (p.path == last.path && p.thread > last.thread);
		last = p;
		sums++;
	}
	check(more == 0 && sums == expected, "each thread and path, once");
	check(right, "sums of all that was added");
	check(ordered, "by path, then thread");
	printf("%u sums\n", sums);
	end(t);
}

static void test_full(void)
{
	static const struct rlimit small = {1 << 20, RLIM_INFINITY};
	struct thread_paths *t = begin();
	int r = 0;

	check(setrlimit(RLIMIT_FSIZE, &small) == 0, "files have an end");
	for (uint32_t i = 0; r == 0 && i < 1 << 20; i++)
		r = thread_paths_add(t, &(struct thread_path){.thread = 1, .path = i, .calls = 1}, &error);
	check(r < 0 && error.kind == PT_ERR_IO, "the scratch file is full");
	end(t);
}

int main(void)
{
	test_none();
	test_sums(1000, 10);
	test_sums(3000000, PATHS); /* 960,000: four parts */
	signal(SIGXFSZ, SIG_IGN);
	test_full();
	return sum_up();
}
