/*
 * mkrecords.c - writes a record stream of a made-up but consistent trace, for tests and for timing pt-load.
 *
 *   mkrecords [--runs N] [--paths N] [--threads N] [--calls N] [--errors N] [--events N] [--seed N]
 *             [--uuid TEXT] [--cyc] [--no-time] [--no-clock] [--slow-us N] > stream
 *
 * The same options give the same bytes. The shape is that of ../shared/bench: 12 to 32 edges a path,
 * few hot paths, several runs with one TSC, calls that nest. --slow-us sleeps between every 1000
 * runs, so that a test can interrupt its reader. The last line on standard error counts: runs=N
 * branches=N insns=N.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/records.h"

enum { FUNCTIONS = 300, BLOCKS = 8, DEPTH = 64 };

static struct {
	uint64_t runs, paths, threads, calls, errors, events, seed;
	const char *uuid;
	int cyc, no_time, no_clock;
	unsigned slow_us;
} opt = {.runs = 10000, .paths = 200, .threads = 2, .calls = 100, .errors = 2, .events = 5, .seed = 1};

static struct pt_error error;
static struct ptr_writer *w;
static uint64_t branches, insns;
static uint64_t state;

static uint64_t rnd(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return n ? (state >> 33) % n : 0;
}

static int64_t ok(int64_t ret)
{
	if (ret < 0) {
		fprintf(stderr, "mkrecords: %s\n", error.message);
		exit(1);
	}
	return ret;
}

static uint32_t put_ok(int64_t ret)
{
	return (uint32_t)ok(ret);
}

struct path {
	uint32_t number, count, insns;
};

static struct path *paths;
static uint64_t path_count;
static uint32_t symbols[FUNCTIONS], edges;

static uint64_t function_ip(uint64_t f)
{
	return (f % 10 ? 0x555555554000u : 0x7ffff7a00000u) + f * 0x100;
}

static void put_symbols(void)
{
	uint32_t dso[2];
	char name[64];

	dso[0] = put_ok(
	    ptr_put_dso(w, &(struct ptr_dso){.name = "/usr/bin/made-up", .build_id = "00ff17"}, &error));
	dso[1] = put_ok(
	    ptr_put_dso(w, &(struct ptr_dso){.name = "/lib/libmade, \"up\".so.6", .build_id = ""}, &error));
	for (uint64_t f = 0; f < FUNCTIONS; f++) {
		struct ptr_symbol s = {
		    .dso = dso[f % 10 == 0], .start = function_ip(f), .end = function_ip(f) + 0x100};

		snprintf(name, sizeof name, f == 7 ? "operator\"\"_s<int, 'x'>(%d)" : "function_%d", (int)f);
		s.name = name;
		symbols[f] = put_ok(ptr_put_symbol(w, &s, &error));
	}
}

/* Each distinct edge once, as pt-decode has it: an open hash by (from, to). */
static uint32_t edge_number(const struct ptr_edge *e)
{
	static struct {
		uint64_t from, to;
		uint32_t number;
	} slots[1 << 20];
	uint32_t i = (uint32_t)((e->from * 31 + e->to) * 0x9e3779b97f4a7c15u >> 44);

	while (slots[i].number && (slots[i].from != e->from || slots[i].to != e->to))
		i = (i + 1) % (1 << 20);
	if (!slots[i].number) {
		slots[i].from = e->from;
		slots[i].to = e->to;
		slots[i].number = put_ok(ptr_put_edge(w, e, &error));
		edges++;
	}
	return slots[i].number;
}

/* A path begins in one function and now and then calls or returns to another. */
static void put_path(void)
{
	struct ptr_path p = {.count = 4 + (uint32_t)rnd(20), .not_taken = (uint32_t)rnd(10)};
	struct path *mine = &paths[path_count++];
	uint64_t f = rnd(FUNCTIONS), to_f, block;

	p.start_ip = function_ip(f) + rnd(BLOCKS) * 0x20;
	mine->insns = 0;
	for (uint32_t i = 0; i < p.count; i++) {
		struct ptr_edge e = {0};

		block = rnd(BLOCKS);
		to_f = block < 6 ? f : (f * 7 + block) % FUNCTIONS;
		e.from = function_ip(f) + block * 0x20 + 0x1b;
		e.to = function_ip(to_f) + (to_f == f ? rnd(BLOCKS) * 0x20 : 0);
		e.kind = to_f != f ? (block == 6 ? PTR_CALL_DIR : PTR_RET) : block < 4 ? PTR_JCC : PTR_JMP;
		e.from_symbol = f % 50 == 49 ? 0 : symbols[f];
		e.to_symbol = to_f % 50 == 49 ? 0 : symbols[to_f];
		p.edge[i] = edge_number(&e);
		p.insns[i] = 1 + (uint32_t)rnd(12);
		mine->insns += p.insns[i];
		f = to_f;
	}
	mine->count = p.count;
	if (!rnd(50)) {
		p.tail_insns = 1 + (uint32_t)rnd(5);
		p.end_ip = function_ip(f) + 0x44;
		mine->insns += p.tail_insns;
	}
	mine->number = put_ok(ptr_put_path(w, &p, &error));
}

static void put_meta(void)
{
	char number[48];
	const char *pairs[][2] = {{"uuid", opt.uuid ? opt.uuid : number},
				  {"command", "made-up --trace"},
				  {"host", "nowhere"},
				  {"kernel", "6.1.0"},
				  {"engine", "step"},
				  {"synthetic", "1"},
				  {"start_time", "1700000000"},
				  {"cpu_name", "Made-up CPU"}};

	snprintf(number, sizeof number, "%032" PRIx64, opt.seed * 0x9e3779b97f4a7c15u);
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		ok(ptr_put_meta(w, pairs[i][0], pairs[i][1], &error));
	if (!opt.no_clock) {
		ok(ptr_put_meta(w, "time_zero", "18446744073709551000",
				&error)); /* perf's is often "negative" */
		ok(ptr_put_meta(w, "time_mult", "699050667", &error));
		ok(ptr_put_meta(w, "time_shift", "31", &error));
		ok(ptr_put_meta(w, "tsc_hz", "3072000000", &error));
	}
}

struct frame {
	struct ptr_call call;
	uint32_t path;
};

static void put_calls(uint32_t thread, uint64_t tsc, uint64_t last_run)
{
	static struct frame stack[DEPTH];
	static unsigned depth;
	static uint32_t call_paths[DEPTH][FUNCTIONS];
	static uint64_t done;

	for (int i = 0; i < 3 && done < opt.calls; i++) {
		if (depth < DEPTH && rnd(2)) {
			uint64_t f = rnd(depth < 4 ? 5 : 20);
			uint32_t parent = depth ? stack[depth - 1].path : 0;
			struct frame *s = &stack[depth];

			/* One parent per depth in this table: another parent makes another path. */
			if (!call_paths[depth][f] || depth) {
				struct ptr_call_path cp = {
				    .parent = parent, .symbol = symbols[f], .ip = function_ip(f)};

				call_paths[depth][f] = put_ok(ptr_put_call_path(w, &cp, &error));
			}
			s->path = call_paths[depth][f];
			s->call = (struct ptr_call){.thread = thread,
						    .stack = thread,
						    .call_path = s->path,
						    .call_tsc = tsc,
						    .call_branch = last_run * PTR_RUN_BRANCHES,
						    .branch_count = branches,
						    .insn_count = insns,
						    .depth = depth};
			depth++;
		} else if (depth) {
			struct ptr_call *c = &stack[--depth].call;

			c->return_tsc = tsc;
			c->return_branch = last_run * PTR_RUN_BRANCHES;
			c->branch_count = branches - c->branch_count;
			c->insn_count = insns - c->insn_count;
			c->cyc_count = opt.cyc ? c->insn_count / 2 : PTR_UNKNOWN;
			c->flags = rnd(100) ? 0 : PTR_CALL_NO_RETURN;
			ok(ptr_put_call(w, c, &error));
			done++;
		}
	}
}

static void put_error(uint32_t slice, uint64_t tsc, uint64_t i)
{
	struct ptr_error r = {.slice = slice,
			      .cpu = 1,
			      .tsc = tsc,
			      .tsc_end = i % 2 ? PTR_NO_TSC : tsc + 1000,
			      .ip = i % 2 ? 0 : function_ip(i),
			      .aux_offset = i % 3 ? 4096 * i : PTR_UNKNOWN,
			      .kind = i % 2 ? "overflow" : "no code",
			      .message = "made up"};

	ok(ptr_put_error(w, &r, &error));
}

/* What put_facts() is at: the slice, its counts, and those since the last CYC. */
struct progress {
	uint32_t *threads, slice;
	uint64_t tsc, slice_insns, slice_branches, slice_left, thread, cyc_insns;
};

static void put_threads(struct progress *p)
{
	uint32_t machine = put_ok(ptr_put_machine(w, &(struct ptr_machine){.name = "host"}, &error));
	char comm[32];

	for (uint64_t i = 0; i < opt.threads; i++) {
		snprintf(comm, sizeof comm, "worker %d", (int)i);
		p->threads[i] = put_ok(ptr_put_thread(
		    w,
		    &(struct ptr_thread){.machine = machine, .pid = 1000, .tid = 1000 + (int)i, .comm = comm},
		    &error));
	}
}

static void begin_slice(struct progress *p)
{
	struct ptr_slice s = {.cpu = (int)rnd(2), .vcpu = -1, .tsc = p->tsc};

	p->thread = rnd(opt.threads);
	s.thread = p->threads[p->thread];
	p->slice = put_ok(ptr_put_slice(w, &s, &error));
	p->slice_left = 1 + rnd(20000);
	p->slice_insns = p->slice_branches = p->cyc_insns = 0;
}

static void put_run(struct progress *p)
{
	struct ptr_run r = {.repeats = 1, .cyc_count = PTR_UNKNOWN};
	const struct path *path;

	if (path_count < opt.paths && (!path_count || rnd(opt.runs) < opt.paths * 4))
		put_path();
	/* Few hot paths: the product of two is a rough power law. */
	path = &paths[rnd(1 + rnd(path_count))];
	if (!opt.no_time && !rnd(opt.cyc ? 2 : 30))
		p->tsc += rnd(1000);
	r.slice = p->slice;
	r.tsc = p->tsc;
	r.path = path->number;
	if (!rnd(10))
		r.repeats = 1 + (uint32_t)rnd(rnd(20) ? 6 : PTR_RUN_BRANCHES / path->count);
	branches += (uint64_t)r.repeats * path->count;
	insns += (uint64_t)r.repeats * path->insns;
	p->slice_insns += (uint64_t)r.repeats * path->insns;
	p->slice_branches += (uint64_t)r.repeats * path->count;
	p->cyc_insns += (uint64_t)r.repeats * path->insns;
	if (opt.cyc && rnd(3)) {
		r.insn_count = p->cyc_insns;
		r.cyc_count = p->cyc_insns / 2 + 1;
		p->cyc_insns = 0;
	}
	ok(ptr_put_run(w, &r, path->count, &error));
}

static void put_facts(void)
{
	struct progress p = {.threads = calloc(opt.threads, sizeof *p.threads),
			     .tsc = opt.no_time ? PTR_NO_TSC : 0x123456789abc};

	put_threads(&p);
	for (uint64_t i = 0; i < opt.runs; i++) {
		if (opt.slow_us && i % 1000 == 0)
			usleep(opt.slow_us);
		if (!p.slice_left)
			begin_slice(&p);
		put_run(&p);
		if (opt.calls && opt.calls * 3 / opt.runs + 1 > rnd(3))
			put_calls(p.threads[p.thread], p.tsc, i + 1);
		if (opt.errors && i % (opt.runs / opt.errors + 1) == opt.runs / opt.errors / 2)
			put_error(p.slice, p.tsc, i);
		if (opt.events && i % (opt.runs / opt.events + 1) == 0)
			ok(ptr_put_event(w,
					 &(struct ptr_event){.slice = p.slice,
							     .cpu = 1,
							     .tsc = p.tsc,
							     .name = "cbr",
							     .fields = "{\"ratio\":30}"},
					 &error));
		if (!--p.slice_left || i + 1 == opt.runs)
			ok(ptr_put_slice_end(
			    w,
			    &(struct ptr_slice_end){.slice = p.slice,
						    .tsc = p.tsc,
						    .insn_count = p.slice_insns,
						    .cyc_count = opt.cyc ? p.slice_insns / 2 : PTR_UNKNOWN,
						    .branch_count = p.slice_branches},
			    &error));
	}
	free(p.threads);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"runs", 1, 0, 'r'},
						{"paths", 1, 0, 'p'},
						{"threads", 1, 0, 't'},
						{"calls", 1, 0, 'c'},
						{"errors", 1, 0, 'e'},
						{"events", 1, 0, 'v'},
						{"seed", 1, 0, 's'},
						{"uuid", 1, 0, 'u'},
						{"cyc", 0, 0, 'y'},
						{"no-time", 0, 0, 'n'},
						{"no-clock", 0, 0, 'k'},
						{"slow-us", 1, 0, 'l'},
						{0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		uint64_t n = optarg ? strtoull(optarg, NULL, 0) : 0;

		switch (c) {
		case 'r': opt.runs = n; break;
		case 'p': opt.paths = n; break;
		case 't': opt.threads = n; break;
		case 'c': opt.calls = n; break;
		case 'e': opt.errors = n; break;
		case 'v': opt.events = n; break;
		case 's': opt.seed = n; break;
		case 'u': opt.uuid = optarg; break;
		case 'y': opt.cyc = 1; break;
		case 'n': opt.no_time = 1; break;
		case 'k': opt.no_clock = 1; break;
		case 'l': opt.slow_us = (unsigned)n; break;
		default: return 2;
		}
	}
	signal(SIGPIPE, SIG_IGN);
	state = opt.seed;
	paths = calloc(opt.paths + 1, sizeof *paths);
	w = ptr_writer_create(1, NULL, &error);
	if (!w || !paths)
		ok(-1);
	put_meta();
	put_symbols();
	put_facts();
	ok(ptr_put_meta(w, "decode.container", "complete", &error));
	ok(ptr_writer_finish(w, &error));
	ptr_writer_destroy(w);
	free(paths);
	fprintf(stderr, "runs=%" PRIu64 " branches=%" PRIu64 " insns=%" PRIu64 " edges=%u\n", opt.runs,
		branches, insns, edges);
	return 0;
}
