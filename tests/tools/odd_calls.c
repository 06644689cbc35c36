/*
 * odd_calls.c - writes a record stream of calls of every size and kind, and one line per call of what
 * the view `call` must say.
 *
 *   odd_calls CALLS SEED TRUTH > stream
 *
 * TRUTH:
 *   id|thread|call_path|call_branch|return_branch|call_tsc|return_tsc|elapsed_tsc|branch_count|insn_count|
 *   cyc_count|flags|parent
 * in the order of returning, empty where unknown. Hardly two calls are alike; numbers, distances and
 * times lie at, below and beyond what a text of call_group and call_shape holds; some runs have many
 * calls, many have none; stacks go on in other threads. Callers are found here as records.h defines them,
 * looking forward.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "schema/records.h"

enum { THREADS = 3, STACKS = 4, DEPTH = 40, PATHS = 300, RUNS_BETWEEN = 200 };

static struct pt_error error;
static uint64_t state, *run_tsc;

static uint64_t rnd(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

/* Often small, sometimes at a limit, seldom huge. */
static uint64_t size(void)
{
	static const uint64_t limits[] = {126,	 127,	2046,	       2047,	      32766,
					  32767, 32768, (1 << 30) - 2, (1 << 30) - 1, 1 << 30};

	switch (rnd(40)) {
	case 0: return limits[rnd(sizeof limits / sizeof *limits)];
	case 1: return rnd(2000) ? rnd(100000) : (uint64_t)1 << 40;
	default: return rnd(500);
	}
}

static int64_t ok(int64_t ret)
{
	if (ret < 0) {
		fprintf(stderr, "odd_calls: %s\n", error.message);
		exit(1);
	}
	return ret;
}

static struct ptr_call make_call(uint64_t run)
{
	struct ptr_call c = {.thread = rnd(200) ? 1 + (uint32_t)(run / 50 % THREADS) : 0,
			     .stack = 1 + (uint32_t)(rnd(200) ? run / 70 % STACKS : rnd(STACKS)),
			     .call_path = rnd(100) ? 1 + (uint32_t)rnd(PATHS) : 0,
			     .branch_count = size(),
			     .insn_count = size(),
			     .cyc_count = rnd(3) ? size() : PTR_UNKNOWN,
			     .flags = rnd(20) ? 0 : (uint32_t)rnd(8)};
	uint64_t back = rnd(4) ? rnd(8) : rnd(100) ? size() : rnd(200000);
	uint64_t from = back < run ? run - back : 1;

	c.call_branch = from * PTR_RUN_BRANCHES + rnd(rnd(4) ? 20 : PTR_RUN_BRANCHES);
	c.return_branch = run * PTR_RUN_BRANCHES + rnd(rnd(4) ? 20 : PTR_RUN_BRANCHES);
	c.call_tsc = run_tsc[from];
	c.return_tsc = run_tsc[run];
	switch (rnd(300)) {
	case 0: c.call_branch = 0; break;
	case 1: c.return_branch = 0; break;
	case 2: c.call_tsc = PTR_NO_TSC; break;
	case 3: c.return_tsc += 17; break;
	default: break;
	}
	return c;
}

static void print(FILE *f, bool known, uint64_t n)
{
	if (known)
		fprintf(f, "|%" PRId64, (int64_t)n);
	else
		fputc('|', f);
}

/* The calls so far, by their number from 1; and which of a stack and depth have no caller yet: the last one,
 * and by `before` those before it. */
struct calls {
	uint64_t count;
	struct ptr_call *all;
	uint64_t waiting[STACKS + 1][DEPTH + 1], *before, *parent;
};

static struct ptr_writer *w;

/* What calls need before them. The slice. */
static uint32_t put_definitions(const char *uuid, uint64_t tsc)
{
	struct ptr_path path = {.count = 1, .edge = {1}, .insns = {3}};

	ok(ptr_put_meta(w, "uuid", uuid, &error));
	ok(ptr_put_machine(w, &(struct ptr_machine){.name = "host"}, &error));
	for (int i = 1; i <= THREADS; i++)
		ok(ptr_put_thread(w, &(struct ptr_thread){.machine = 1, .pid = 1, .tid = i, .comm = "odd"},
				  &error));
	ok(ptr_put_edge(w, &(struct ptr_edge){.from = 0x1000, .to = 0x2000, .kind = PTR_CALL_DIR}, &error));
	ok(ptr_put_path(w, &path, &error));
	for (uint32_t i = 1; i <= PATHS; i++)
		ok(ptr_put_call_path(w, &(struct ptr_call_path){.parent = i / 2, .ip = 0x1000 + i}, &error));
	return (uint32_t)ok(
	    ptr_put_slice(w, &(struct ptr_slice){.thread = 1, .vcpu = -1, .tsc = tsc}, &error));
}

/* Call i is the caller of those that wait for one of its depth; it waits for its own. */
static void find_callers(struct calls *k, uint64_t i)
{
	const struct ptr_call *c = &k->all[i];

	for (uint64_t n = k->waiting[c->stack][c->depth + 1], next; n; n = next) {
		next = k->before[n];
		k->parent[n] = i;
	}
	k->waiting[c->stack][c->depth + 1] = 0;
	if (c->depth) {
		k->before[i] = k->waiting[c->stack][c->depth];
		k->waiting[c->stack][c->depth] = i;
	}
}

static void put_calls(struct calls *k, uint32_t slice, uint64_t tsc)
{
	uint64_t run = 0, runs;
	uint32_t depth = 0, more = 0;

	for (uint64_t i = 1; i <= k->count; i++) {
		struct ptr_call *c = &k->all[i];

		/* Seldom many calls in a run, or many runs without a call. */
		if (more)
			more--;
		else if (!rnd(2000))
			more = (uint32_t)rnd(300);
		runs = i == 1 ? 1 : more ? 0 : rnd(1000) ? rnd(2) : rnd(RUNS_BETWEEN);
		for (; runs; runs--) {
			if (!rnd(3))
				tsc += rnd(5000) ? size() : (uint64_t)1 << 35;
			run_tsc[++run] = tsc;
			ok(ptr_put_run(w,
				       &(struct ptr_run){.slice = slice,
							 .tsc = tsc,
							 .path = 1,
							 .repeats = 1,
							 .cyc_count = PTR_UNKNOWN},
				       1, &error));
		}
		/* Seldom the bottom, so that the path to it is long. */
		depth = rnd(3) ? (depth > 1 ? depth - 1 : 1) : 1 + (uint32_t)rnd(rnd(100) ? 8 : DEPTH - 1);
		/* Of many calls only the last: some callers are then further away than a text's
		 * number goes. */
		if (k->count > 100000 ? i + 2000 > k->count && !rnd(20) : !rnd(30000))
			depth = 0;
		*c = make_call(run);
		c->depth = depth;
		ok(ptr_put_call(w, c, &error));
		find_callers(k, i);
	}
}

static void print_call(FILE *truth, const struct calls *k, uint64_t i)
{
	const struct ptr_call *c = &k->all[i];
	bool from = c->call_tsc != PTR_NO_TSC, to = c->return_tsc != PTR_NO_TSC;

	fprintf(truth, "%" PRIu64, i);
	print(truth, c->thread, c->thread);
	print(truth, c->call_path, c->call_path);
	print(truth, c->call_branch, c->call_branch);
	print(truth, c->return_branch, c->return_branch);
	print(truth, from, c->call_tsc);
	print(truth, to, c->return_tsc);
	print(truth, from && to, c->return_tsc - c->call_tsc);
	print(truth, true, c->branch_count);
	print(truth, true, c->insn_count);
	print(truth, c->cyc_count != PTR_UNKNOWN, c->cyc_count);
	print(truth, true, c->flags);
	print(truth, k->parent[i], k->parent[i]);
	fputc('\n', truth);
}

int main(int argc, char **argv)
{
	static struct calls k;
	const uint64_t tsc = 1000000;
	FILE *truth;

	k.count = argc == 4 ? strtoull(argv[1], NULL, 0) : 0;
	k.all = calloc(k.count + 1, sizeof *k.all);
	k.before = calloc(k.count + 1, sizeof *k.before);
	k.parent = calloc(k.count + 1, sizeof *k.parent);
	run_tsc = calloc(k.count * (RUNS_BETWEEN + 1) + 1, sizeof *run_tsc);
	w = k.count ? ptr_writer_create(STDOUT_FILENO, NULL, &error) : NULL;
	truth = k.count ? fopen(argv[3], "w") : NULL;
	if (!w || !truth || !k.all || !k.before || !k.parent || !run_tsc) {
		fputs("usage: odd_calls CALLS SEED TRUTH > stream\n", stderr);
		return 2;
	}
	state = strtoull(argv[2], NULL, 0);
	put_calls(&k, put_definitions(argv[2], tsc), tsc);
	ok(ptr_writer_finish(w, &error));
	ptr_writer_destroy(w);
	for (uint64_t i = 1; i <= k.count; i++)
		print_call(truth, &k, i);
	free(k.all);
	free(k.before);
	free(k.parent);
	free(run_tsc);
	return fclose(truth) ? 1 : 0;
}
