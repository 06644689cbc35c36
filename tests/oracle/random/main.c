/*
 * main.c - random programs, decoded: random_flow [-v] COUNT [FIRST]
 *
 * Each program FIRST..FIRST+COUNT-1 (default 1) is made, run and encoded (random.h); the flow must come to
 * the facts, branch for branch, with no error but the overflows. Its times must fit: no branch is earlier
 * than its run. Bytes come whole, and for every fourth program in pieces. Programs that libipt can follow go
 * to it, too: it must come to the same branches. Where only user space is traced, they are decoded once more
 * by a graph that numbers no paths: to as many branches, instructions and cycles at each time. -v shows the
 * first program that differs. The last line is "N passed, N failed".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow.h"
#include "tests/oracle/random/random.h"
#include "tests/unit/check.h"

/* What is reported of a time: the branches of runs, a slice that begins or ends, or an error. */
struct moment {
	uint64_t tsc, branches, insns, cycles;
	uint32_t timing;
	unsigned what; /* 0 a run, else a FACT */
};

struct got {
	struct fact *facts;
	size_t count, room;
	struct moment *moments;
	size_t moment_count, moment_room;
	uint64_t ptwrites;
	const struct pt_graph *graph;
	struct pt_code *codes[4]; /* user, kernel; the guest's */
};

static void add(struct got *g, uint64_t from, uint64_t to, unsigned kind, uint64_t tsc)
{
	if (g->count == g->room) {
		g->room = g->room ? g->room * 2 : 256;
		g->facts = realloc(g->facts, g->room * sizeof *g->facts);
		if (!g->facts)
			abort();
	}
	g->facts[g->count++] = (struct fact){.from = from, .to = to, .tsc = tsc, .kind = (uint8_t)kind};
}

/* Of a run: one that goes on at the same time is added to the one before. */
static void add_moment(struct got *g, const struct moment *m)
{
	struct moment *last = g->moment_count ? &g->moments[g->moment_count - 1] : NULL;

	if (!m->what && !m->branches && !m->cycles) /* straight code only */
		return;
	if (!m->what && last && !last->what && last->tsc == m->tsc && !last->cycles) {
		last->branches += m->branches;
		last->insns += m->insns;
		last->cycles += m->cycles;
		return;
	}
	if (!g->moments || g->moment_count == g->moment_room) {
		g->moment_room = g->moment_room ? g->moment_room * 2 : 256;
		g->moments = realloc(g->moments, g->moment_room * sizeof *g->moments);
		if (!g->moments)
			abort();
	}
	g->moments[g->moment_count++] = *m;
}

static void on_begin(void *arg, const struct pt_flow *f, uint64_t tsc, struct pt_code *code, uint64_t ip)
{
	(void)f;
	(void)code;
	(void)ip;
	add(arg, 0, 0, FACT_BEGIN, tsc);
	add_moment(arg, &(struct moment){.tsc = tsc, .what = FACT_BEGIN});
}

static void on_run(void *arg, const struct pt_flow *f, const struct pt_flow_run *run)
{
	const struct pt_graph *graph = ((const struct got *)arg)->graph;
	const struct pt_path *path = &graph->paths[run->path];
	bool timed = run->cyc_count != PTR_UNKNOWN;

	(void)f;
	add_moment(arg, &(struct moment){.tsc = run->tsc,
					 .branches = (uint64_t)graph->path_counts[run->path] * run->repeats,
					 .insns = timed ? run->insn_count : 0,
					 .cycles = timed ? run->cyc_count : 0,
					 .timing = run->timing});
	for (uint32_t r = 0; r < run->repeats; r++) {
		for (uint32_t i = 0; i < path->count; i++) {
			const struct pt_edge *edge = &graph->edges[graph->path_edges[path->first + i]];

			/* The machine's facts have no target where tracing stopped. */
			add(arg, edge->from, edge->ends_trace ? 0 : edge->to, edge->kind, run->tsc);
		}
	}
}

static void on_runs(void *arg, const struct pt_flow *f, const struct pt_flow_run *runs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		on_run(arg, f, &runs[i]);
}

static void on_end(void *arg, const struct pt_flow *f, uint64_t tsc, uint64_t insns, uint64_t cyc)
{
	(void)f;
	add(arg, insns, 0, FACT_END, tsc);
	add_moment(arg, &(struct moment){.tsc = tsc, .insns = insns, .cycles = cyc, .what = FACT_END});
}

static void on_error(void *arg, const struct pt_flow *f, const struct pt_flow_error *err)
{
	(void)f;
	add_moment(arg,
		   &(struct moment){
		       .tsc = err->tsc, .insns = err->aux_offset, .cycles = err->kind, .what = FACT_ERROR});
	if (err->kind == PT_FLOW_OVERFLOW)
		add(arg, 0, 0, FACT_OVERFLOW, err->tsc);
	else
		add(arg, err->ip, err->aux_offset, FACT_ERROR, err->tsc);
}

static bool on_missing(void *arg, struct pt_flow *f, uint64_t ip)
{
	(void)arg;
	(void)f;
	(void)ip;
	return false;
}

static void on_event(void *arg, const struct pt_flow *f, const char *name, uint64_t ip, const char *fields)
{
	struct got *g = arg;
	uint64_t payload;

	(void)f;
	(void)ip;
	if (!strcmp(name, "ptwrite") && sscanf(fields, "\"payload\":%" SCNu64, &payload) == 1)
		g->ptwrites = g->ptwrites * 31 + payload;
}

static void on_side(void *arg, struct pt_flow *f, const struct pt_vm_transition *t)
{
	struct got *g = arg;

	(void)t;
	pt_flow_set_code(f, g->codes[pt_flow_in_guest(f) ? 2 : 0], g->codes[pt_flow_in_guest(f) ? 3 : 1]);
}

static const struct pt_flow_env env = {.missing = on_missing, .side = on_side};
static const struct pt_flow_output output = {
    .begin = on_begin, .runs = on_runs, .end = on_end, .error = on_error, .event = on_event};

static void map(struct img_space *space, struct img_store *store, const struct region *r)
{
	struct pt_error e;
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .name = "x",
				  .name_bytes = 1,
				  .vaddr = r->base,
				  .bytes = r->code,
				  .size = r->bytes};

	if (img_space_map(space, r->base, r->base + r->bytes, r->base, img_store_memory(store, &image, &e),
			  &e) < 0)
		abort();
}

static void decode(const struct program *p, const struct config *c, const struct trace *t, struct dice *d,
		   bool pieces, struct got *ret)
{
	const uint8_t *at = t->packets, *end = at + t->bytes, *upto = end;
	struct img_space spaces[4];
	struct img_store *store = img_store_create();
	struct pt_graph graph;
	struct pt_flow_config config = {.graph = &graph,
					.clock = {.ctc_num = c->ctc_num,
						  .ctc_den = c->ctc_den,
						  .mtc_shift = c->mtc_shift,
						  .nominal_ratio = c->nominal_ratio,
						  .mtc = c->mtc},
					.env = &env,
					.env_arg = ret,
					.output = &output,
					.output_arg = ret};
	struct pt_flow *flow = pt_flow_create(&config);
	struct pt_error e;

	memset(ret, 0, sizeof *ret);
	ret->graph = &graph;
	for (unsigned i = 0; i < 4; i++)
		img_space_init(&spaces[i]);
	if (!store || !flow || pt_graph_init(&graph, &e) < 0)
		abort();
	for (uint32_t i = 0; i < p->count; i++)
		map(&spaces[p->regions[i].kernel + 2 * p->regions[i].guest], store, &p->regions[i]);
	for (unsigned i = 0; i < 4; i++)
		ret->codes[i] = pt_graph_code(&graph, &spaces[i]);
	pt_flow_set_code(flow, ret->codes[0], ret->codes[1]);
	while (pieces && upto == end && at < end) {
		const uint8_t *to = at + 1 + pick(d, 40);

		pt_flow_feed(flow, at, to < end ? to : end, (uint64_t)(at - t->packets), false, &at);
		if (to >= end)
			break;
	}
	pt_flow_feed(flow, at, end, (uint64_t)(at - t->packets), true, &at);
	pt_flow_finish(flow);
	pt_graph_deinit(&graph);
	for (unsigned i = 0; i < 4; i++)
		img_space_deinit(&spaces[i]);
	img_store_destroy(store);
	pt_flow_destroy(flow);
}

static void print(const char *what, const struct fact *f)
{
	static const char *const others[] = {"begin", "end", "overflow", "error"};

	printf("  %s %" PRIx64 " %" PRIx64 " %s %" PRIu64 "\n", what, f->from, f->to,
	       f->kind >= FACT_BEGIN ? others[f->kind - FACT_BEGIN] : ptr_kind_name(f->kind), f->tsc);
}

/* timed: the packets say when; deferred TIPs come later than their branches. Of a direct branch nothing says
 * whether it came before an MTC. */
static bool same(const struct trace *t, const struct got *g, bool timed, bool verbose)
{
	uint64_t last = 0;

	for (size_t i = 0; i < t->count || i < g->count; i++) {
		const struct fact *a = i < t->count ? &t->facts[i] : NULL,
				  *b = i < g->count ? &g->facts[i] : NULL;
		const char *why = NULL;

		if (!a || !b || a->kind != b->kind || a->from != b->from ||
		    (a->to != b->to && a->kind != FACT_ERROR))
			why = "differs";
		else if (timed && b->tsc != PT_CLOCK_UNKNOWN && b->kind < FACT_BEGIN && b->tsc > a->tsc + 2)
			why = "is earlier than its run";
		else if (b->tsc != PT_CLOCK_UNKNOWN && b->kind < FACT_BEGIN && b->tsc < last)
			why = "goes back in time";
		else if (timed && i && a[-1].kind != PTR_JMP && a[-1].kind != PTR_CALL_DIR &&
			 b->kind < FACT_BEGIN && a[-1].kind < FACT_BEGIN && b[-1].tsc != b->tsc &&
			 a[-1].tsc > b->tsc + 2)
			why = "follows a branch that is later than its run";
		if (b && b->tsc != PT_CLOCK_UNKNOWN && b->kind < FACT_BEGIN)
			last = b->tsc;
		if (!why)
			continue;
		if (verbose) {
			printf("fact %zu %s\n", i, why);
			for (size_t k = i > 6 ? i - 6 : 0; k <= i + 3; k++) {
				if (k < t->count)
					print(k == i ? "> true" : "  true", &t->facts[k]);
				if (k < g->count)
					print(k == i ? "> got " : "  got ", &g->facts[k]);
			}
		}
		return false;
	}
	if (t->ptwrites != g->ptwrites && verbose)
		printf("PTWRITE payloads differ\n");
	return t->ptwrites == g->ptwrites;
}

static bool same_moments(const struct got *a, const struct got *b, bool verbose)
{
	for (size_t i = 0; i < a->moment_count || i < b->moment_count; i++) {
		const struct moment none = {0}, *x = i < a->moment_count ? &a->moments[i] : &none,
				    *y = i < b->moment_count ? &b->moments[i] : &none;

		if (x->tsc == y->tsc && x->branches == y->branches && x->insns == y->insns &&
		    x->cycles == y->cycles && x->timing == y->timing && x->what == y->what)
			continue;
		for (int k = 0; verbose && k < 2; k++, x = y)
			printf("  moment %zu %s: tsc %" PRIu64 " branches %" PRIu64 " insns %" PRIu64
			       " cycles %" PRIu64 " timing %u what %u\n",
			       i, k ? "otherwise" : "at first", x->tsc, x->branches, x->insns, x->cycles,
			       x->timing, x->what);
		return false;
	}
	return true;
}

static void filters(const struct program *p, struct config *c, struct dice *d)
{
	for (uint32_t i = 0; i < c->ranges; i++) {
		const struct region *r = &p->regions[pick(d, p->count)];
		uint32_t from = pick(d, r->count), to = from + 1 + pick(d, r->count - from);

		while (!program_border(r, from))
			from--;
		while (to < r->count && !program_border(r, to))
			to++;
		c->from[i] = r->ins[from].ip;
		c->to[i] = to < r->count ? r->ins[to].ip - 1 : r->base + r->bytes - 1;
	}
}

static void configure(const struct program *p, struct config *c, struct dice *d)
{
	uint32_t who = pick(d, 4);

	memset(c, 0, sizeof *c);
	c->user = who != 0;
	c->os = who != 1;
	c->disretc = one_in(d, 4);
	c->long_tnt = one_in(d, 3);
	c->defer_tips = one_in(d, 3);
	c->fup_on_ptw = one_in(d, 2);
	c->tsc = !one_in(d, 4);
	c->mtc = c->tsc && one_in(d, 2);
	c->cyc = one_in(d, 3);
	c->balanced = one_in(d, 2);
	c->cr3_filter = one_in(d, 4) && !p->vm;
	c->mtc_shift = pick(d, 4);
	c->ctc_num = 160;
	c->ctc_den = 2;
	c->nominal_ratio = 20;
	c->cbr = 10 + pick(d, 30);
	c->ranges = one_in(d, 3) && !p->vm ? 1 + pick(d, 2) : 0;
	if (p->vm)
		c->user = c->os = true;
	c->async_one_in = one_in(d, 2) ? 20 + pick(d, 200) : 0;
	c->psb_one_in = one_in(d, 4) ? 0 : 30 + pick(d, 500);
	c->ovf_one_in = one_in(d, 3) ? 50 + pick(d, 500) : 0;
	c->steps = 50 + pick(d, 2000);
	filters(p, c, d);
}

struct totals {
	uint64_t branches, overflows, asyncs, disables, psbs, entries, agreed, declined, twice;
};

static void check_program(bool ok, uint64_t seed, const char *what)
{
	char text[100];

	snprintf(text, sizeof text, "program %" PRIu64 ": %s", seed, what);
	check(ok, text);
}

static bool one(uint64_t seed, bool verbose, struct totals *sum)
{
	struct dice d = {.state = seed * 0x9e3779b97f4a7c15u};
	struct program p;
	struct config c;
	struct trace t;
	struct got g, again;
	bool ok, same_times;

	program_make(&p, &d);
	configure(&p, &c, &d);
	machine_run(&p, &c, &d, &t);
	decode(&p, &c, &t, &d, seed % 4 == 0, &g);
	ok = same(&t, &g, !c.defer_tips, verbose);
	check_program(ok, seed, "the decoder comes to what was executed");
	decode(&p, &c, &t, &d, seed % 4 != 0, &again);
	same_times = same_moments(&g, &again, verbose);
	check_program(same_times, seed, "the same times and cycles whether it comes in pieces or whole");
	ok = ok && same_times;
	free(again.facts);
	free(again.moments);
	sum->twice++;
	/* libipt leaves the entry of a return that goes elsewhere on its stack, and takes any MOV to CR3 for
	 * what ended tracing; what else it cannot decode it says. */
	if (!t.overflows && !t.odd_returns && !p.vm && !(t.pips && t.disables)) {
		enum verdict v = libipt_judges(&p, &c, &t);

		sum->agreed += v == VERDICT_SAME;
		sum->declined += v == VERDICT_NONE;
		check_program(v != VERDICT_OTHER, seed,
			      "libipt comes to the same branches, if it decodes it");
		ok = ok && v != VERDICT_OTHER;
	}
	sum->branches += t.branches;
	sum->overflows += t.overflows;
	sum->asyncs += t.asyncs;
	sum->disables += t.disables;
	sum->psbs += t.psbs;
	sum->entries += t.entries;
	free(g.facts);
	free(g.moments);
	trace_free(&t);
	program_free(&p);
	return ok;
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && !strcmp(argv[1], "-v");
	uint64_t count = argc > 1 + verbose ? strtoull(argv[1 + verbose], NULL, 10) : 500;
	uint64_t first = argc > 2 + verbose ? strtoull(argv[2 + verbose], NULL, 10) : 1;
	bool all_right = true;
	struct totals sum = {0};

	for (uint64_t seed = first; seed < first + count; seed++)
		all_right = one(seed, verbose && all_right, &sum) && all_right;
	printf("%" PRIu64 " programs\n", count);
	printf("branches %" PRIu64 " overflows %" PRIu64 " interrupts %" PRIu64 " disables %" PRIu64
	       " PSBs %" PRIu64 " VM entries %" PRIu64 "\n",
	       sum.branches, sum.overflows, sum.asyncs, sum.disables, sum.psbs, sum.entries);
	printf("libipt: %" PRIu64 " programs the same, %" PRIu64 " not decoded; %" PRIu64 " decoded twice\n",
	       sum.agreed, sum.declined, sum.twice);
	return sum_up();
}
