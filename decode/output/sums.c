/* sums.c - see sums.h. */
#include "decode/output/sums.h"

#include <stdalign.h>
#include <stdlib.h>

#include "decode/code/huge_pages.h"
#include "decode/flow/stretch.h"
#include "decode/output/calls.h"
#include "schema/array.h"
#include "schema/hash.h"

/* Of a path of the graph. number 0: it was not executed since the graph was recycled, or numbers forgotten. */
struct path_sum {
	alignas(64) uint64_t runs;	      /* a cache line */
	uint64_t repeats, insn_timed, cycles; /* cycles: as in struct pt_flow_path_sum */
	uint32_t number, machine;
	uint32_t interrupts; /* bit n: edge n is an interrupt whose handler was seen */
};

/* Of a path by its record number. runs 0: it was not executed before the graph was recycled. */
struct kept_sum {
	uint64_t runs, repeats, insn_timed, cycles;
	uint32_t machine;
	uint8_t edges;
};

struct slice_sum {
	struct ptr_slice slice;
	uint32_t number;
	struct ptr_slice_end end;
};

struct stretch_run {
	uint64_t insns;
	uint32_t path; /* of the graph; or kept's index of it */
	bool kept;
};

struct pt_stretch {
	struct pt_stretch *next;
	size_t count;		  /* PT_STRETCH_RUNS + 1: given up */
	struct stretch_run *runs; /* to divide its cycles among */
	size_t room;
};

struct pt_sums {
	struct pt_emit *emit;
	struct path_sum *paths; /* by the graph's numbers, path_room of them */
	uint32_t path_room;
	/* By record numbers, after the graph's numbers_after; kept_room of them. NULL: it was not recycled. */
	struct kept_sum *kept;
	uint32_t kept_room;
	struct slice_sum *slices; /* number n of the hash, by what they are of, is slices[n - 1] */
	size_t slice_count, slice_room;
	struct pt_hash slice_hash;
	struct pt_stretch *stretches;
	uint32_t moment; /* number of the path without edges, 0 not there yet */
};

struct pt_sums *pt_sums_create(struct pt_emit *emit)
{
	struct pt_sums *u = calloc(1, sizeof *u);

	if (!u)
		return NULL;
	u->emit = emit;
	u->path_room = emit->graph->path_room;
	u->paths = pt_pages_reserve(u->path_room, sizeof *u->paths);
	if (u->paths && pt_hash_init(&u->slice_hash, 8, NULL) == 0)
		return u;
	pt_sums_destroy(u);
	return NULL;
}

void pt_sums_destroy(struct pt_sums *u)
{
	if (!u)
		return;
	while (u->stretches) {
		struct pt_stretch *stretch = u->stretches;

		u->stretches = stretch->next;
		free(stretch->runs);
		free(stretch);
	}
	pt_pages_release(u->paths, u->path_room, sizeof *u->paths);
	pt_pages_release(u->kept, u->kept_room, sizeof *u->kept);
	pt_hash_deinit(&u->slice_hash);
	free(u->slices);
	free(u);
}

/* ---- Stretches of cycles -------------------------------------------------------------------------------- */

/* NULL: no memory. */
static struct pt_stretch *stretch_of(struct pt_sums *u, struct pt_emit_stream *s)
{
	if (s->stretch)
		return s->stretch;
	s->stretch = calloc(1, sizeof *s->stretch);
	if (!s->stretch) {
		pt_emit_no_memory(u->emit, "sums");
		return NULL;
	}
	s->stretch->next = u->stretches;
	u->stretches = s->stretch;
	return s->stretch;
}

static void stretch_reset(struct pt_stretch *stretch)
{
	stretch->count = 0;
}

/* Nothing of it is divided: it is too long, or not all of it is here. */
static void stretch_give_up(struct pt_stretch *stretch)
{
	free(stretch->runs);
	stretch->runs = NULL;
	stretch->room = 0;
	stretch->count = PT_STRETCH_RUNS + 1;
}

static bool gave_up(const struct pt_stretch *stretch)
{
	return stretch->count > PT_STRETCH_RUNS;
}

/* The run's path gets its share of the cycles of a stretch of so many instructions. */
static void time_path(struct pt_sums *u, const struct stretch_run *r, uint64_t cycles, uint64_t all_insns)
{
	uint64_t share = pt_cycles_share(cycles, r->insns, all_insns);

	if (r->kept) {
		u->kept[r->path].insn_timed += r->insns;
		u->kept[r->path].cycles += share;
	} else {
		u->paths[r->path].insn_timed += r->insns;
		u->paths[r->path].cycles += share;
	}
}

static void stretch_add(struct pt_emit *m, struct pt_stretch *stretch, const struct stretch_run *r)
{
	if (stretch->count >= PT_STRETCH_RUNS) {
		stretch_give_up(stretch);
		return;
	}
	if (pt_array_grow(&stretch->runs, stretch->count, &stretch->room, NULL) < 0) {
		pt_emit_no_memory(m, "sums");
		return;
	}
	stretch->runs[stretch->count++] = *r;
}

/* Shares the cycles out among the runs of the stretch, by their instructions. */
static void divide(struct pt_sums *u, struct pt_stretch *stretch, uint64_t cycles)
{
	uint64_t insns = 0;
	size_t count = gave_up(stretch) ? 0 : stretch->count;

	for (size_t i = 0; i < count; i++)
		insns += stretch->runs[i].insns;
	for (size_t i = 0; i < count && insns; i++)
		time_path(u, &stretch->runs[i], cycles, insns);
	stretch_reset(stretch);
}

/* One more run: of that path, which may be another graph's in *run. */
static void time_run(struct pt_sums *u, struct pt_emit_stream *s, const struct pt_flow_run *run,
		     uint32_t path)
{
	struct pt_stretch *stretch = s->stretch ? s->stretch : stretch_of(u, s);
	const struct stretch_run one = {.insns = (uint64_t)run->repeats * u->emit->graph->paths[path].insns,
					.path = path};

	if (!stretch)
		return;
	if (run->cyc_count == PTR_UNKNOWN) {
		if (!gave_up(stretch))
			stretch_add(u->emit, stretch, &one);
	} else if (stretch->count) {
		stretch_add(u->emit, stretch, &one);
		divide(u, stretch, run->cyc_count);
	} else if (one.insns) {
		time_path(u, &one, run->cyc_count, one.insns);
	}
}

void pt_sums_begin(struct pt_sums *u, struct pt_emit_stream *s)
{
	(void)u;
	if (s->stretch)
		stretch_reset(s->stretch);
}

bool pt_sums_written_run(struct pt_sums *u, struct pt_emit_stream *s, const struct pt_flow_run *run)
{
	bool whole = !s->stretch || !s->stretch->count;

	(void)u;
	if (whole)
		return true;
	stretch_give_up(s->stretch);
	if (run->cyc_count != PTR_UNKNOWN)
		stretch_reset(s->stretch);
	return false;
}

/* ---- Paths ---------------------------------------------------------------------------------------------- */

static uint32_t find_interrupts(const struct pt_graph *g, const struct pt_path *path)
{
	uint32_t ret = 0;

	for (uint32_t i = 0; i < path->count; i++) {
		const struct pt_edge *edge = &g->edges[g->path_edges[path->first + i]];

		if (edge->kind == PTR_ASYNC && edge->to)
			ret |= 1u << i;
	}
	return ret;
}

static void put_interrupts(struct pt_emit *m, const struct pt_emit_stream *s, const struct path_sum *sum,
			   const struct pt_flow_run *run)
{
	struct ptr_interrupt r = {.slice = s->slice, .path = sum->number, .tsc = run->tsc};

	for (uint32_t n = 0; n < run->repeats; n++)
		for (r.at = 0; r.at < PTR_PATH_EDGES; r.at++)
			if (sum->interrupts >> r.at & 1 && !m->failed)
				pt_emit_put(m, ptr_put_interrupt(m->writer, &r, &m->error));
}

/* The path's first execution. */
static void begin_path(struct pt_sums *u, struct path_sum *sum, const struct pt_emit_stream *s,
		       uint32_t number)
{
	struct pt_emit *m = u->emit;
	struct pt_path *path = &m->graph->paths[number];

	sum->number = pt_emit_path(m, path);
	/* As pt-load has it: of the thread's. */
	sum->machine = s->task ? pt_emit_machine(m, s->task->machine) : 0;
	if (m->detail.base <= PTR_DETAIL_VM)
		sum->interrupts = find_interrupts(m->graph, path);
}

void pt_sums_run(struct pt_sums *u, struct pt_emit_stream *s, const struct pt_flow_run *run)
{
	struct path_sum *sum = &u->paths[run->path];

	if (!sum->number)
		begin_path(u, sum, s, run->path);
	sum->runs++;
	sum->repeats += run->repeats;
	if (sum->interrupts)
		put_interrupts(u->emit, s, sum, run);
	time_run(u, s, run, run->path);
}

#define SUMS_AHEAD 8

static void add_sums(struct pt_sums *u, const struct pt_emit_stream *s,
		     const struct pt_flow_encoded_runs *runs)
{
	for (uint32_t i = 0; i < runs->path_sum_count; i++) {
		const struct pt_flow_path_sum *add = &runs->path_sums[i];
		struct path_sum *sum = &u->paths[add->path];

		if (i + SUMS_AHEAD < runs->path_sum_count)
			__builtin_prefetch(&u->paths[add[SUMS_AHEAD].path], 1);
		if (!sum->number)
			begin_path(u, sum, s, add->path);
		sum->runs += add->runs;
		sum->repeats += add->repeats;
		sum->insn_timed += add->insn_timed;
		sum->cycles += add->cycles;
	}
}

/* Those that are in a stretch with runs before or after. */
static void time_runs(struct pt_sums *u, struct pt_emit_stream *s, const struct pt_flow_encoded_runs *runs,
		      uint32_t from, uint32_t to)
{
	for (; from < to; from++) {
		if (!runs->has_cyc && s->stretch && gave_up(s->stretch))
			return;
		time_run(u, s, &runs->runs[from], runs->paths[from]);
	}
}

void pt_sums_runs(struct pt_sums *u, struct pt_emit_stream *s, const struct pt_flow_encoded_runs *runs)
{
	add_sums(u, s, runs);
	time_runs(u, s, runs, 1, runs->timed_from);
	time_runs(u, s, runs, runs->timed_to, runs->count);
}

void pt_sums_fetch(const struct pt_sums *u, const struct pt_flow_run *runs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(&u->paths[runs[i].path], 1);
}

/* ---- Written, or kept ----------------------------------------------------------------------------------- */

static void put_path(struct pt_emit *m, uint32_t number, const struct kept_sum *sum)
{
	const struct ptr_path_sum r = {.path = number,
				       .machine = sum->machine,
				       .runs = sum->runs,
				       .repeats = sum->repeats,
				       .insn_timed = sum->insn_timed,
				       .cycles = (double)sum->cycles / PT_CYCLE_SHARES};

	if (!m->failed)
		pt_emit_put(m, ptr_put_path_sum(m->writer, &r, sum->edges, &m->error));
}

/* What the graph's path adds to what is kept of it. */
static void add_kept(const struct pt_sums *u, uint32_t path, struct kept_sum *to)
{
	const struct path_sum *sum = &u->paths[path];

	if (!to->runs) {
		to->machine = sum->machine;
		to->edges = u->emit->graph->path_counts[path];
	}
	to->runs += sum->runs;
	to->repeats += sum->repeats;
	to->insn_timed += sum->insn_timed;
	to->cycles += sum->cycles;
}

/* In the order of their numbers in the stream: the graph's depend on what was decoded ahead. */
static void put_unkept(struct pt_sums *u)
{
	uint32_t count = u->emit->graph->path_count;
	uint64_t *order = malloc(((size_t)count + 1) * sizeof *order);
	size_t n = 0;

	if (!order) {
		pt_emit_no_memory(u->emit, "sums");
		return;
	}
	for (uint32_t i = 1; i < count; i++)
		if (u->paths[i].number)
			order[n++] = (uint64_t)u->paths[i].number << 32 | i;
	qsort(order, n, sizeof *order, pt_compare_u64);
	for (size_t k = 0; k < n; k++) {
		struct kept_sum sum = {0};

		add_kept(u, (uint32_t)order[k], &sum);
		put_path(u->emit, (uint32_t)(order[k] >> 32), &sum);
	}
	free(order);
}

static uint32_t kept_index(const struct pt_sums *u, uint32_t path)
{
	return u->paths[path].number - u->emit->graph->numbers_after;
}

static void keep_paths(struct pt_sums *u)
{
	for (uint32_t i = 1; i < u->emit->graph->path_count; i++)
		if (u->paths[i].number)
			add_kept(u, i, &u->kept[kept_index(u, i)]);
}

static void put_paths(struct pt_sums *u)
{
	uint32_t after = u->emit->graph->numbers_after;

	if (!u->kept) {
		put_unkept(u);
		return;
	}
	keep_paths(u);
	for (uint32_t n = 1; n <= u->emit->last_path - after; n++)
		if (u->kept[n].runs)
			put_path(u->emit, after + n, &u->kept[n]);
}

static void forget_paths(struct pt_sums *u)
{
	pt_pages_wipe(u->paths, u->emit->graph->path_count, sizeof *u->paths);
}

void pt_sums_recycle(struct pt_sums *u)
{
	/* No more paths have numbers (pt_emit_path()): the last one's edges, and the moment, may go beyond. */
	u->kept_room = u->emit->defined_limit + PTR_PATH_EDGES + 2;
	if (!u->kept && !(u->kept = pt_pages_reserve(u->kept_room, sizeof *u->kept))) {
		pt_emit_no_memory(u->emit, "sums");
		return;
	}
	keep_paths(u);
	for (struct pt_stretch *stretch = u->stretches; stretch; stretch = stretch->next)
		for (size_t i = 0; i < stretch->count && !gave_up(stretch); i++)
			if (!stretch->runs[i].kept) {
				stretch->runs[i].path = kept_index(u, stretch->runs[i].path);
				stretch->runs[i].kept = true;
			}
	forget_paths(u);
}

void pt_sums_forget_numbers(struct pt_sums *u)
{
	put_paths(u);
	forget_paths(u);
	if (u->kept)
		pt_pages_wipe(u->kept, u->kept_room, sizeof *u->kept);
	/* Their paths have no sums any more: the cycles of the stretches at hand are nobody's. */
	for (struct pt_stretch *stretch = u->stretches; stretch; stretch = stretch->next)
		if (stretch->count)
			stretch_give_up(stretch);
}

uint64_t pt_sums_moment(struct pt_sums *u, const struct pt_emit_stream *s, uint64_t tsc)
{
	struct pt_emit *m = u->emit;
	const struct ptr_path path = {.count = 0};
	struct ptr_run r = {
	    .slice = s->slice, .tsc = tsc, .timing = PTR_TIME_BEFORE, .repeats = 1, .cyc_count = PTR_UNKNOWN};
	int64_t number;

	if (!u->moment && !m->failed)
		u->moment = pt_emit_put(m, ptr_put_path(m->writer, &path, &m->error));
	if (m->failed)
		return 0;
	r.path = u->moment;
	number = ptr_put_run(m->writer, &r, 0, &m->error);
	m->failed = number < 0;
	return m->failed ? 0 : (uint64_t)number;
}

/* ---- Slices --------------------------------------------------------------------------------------------- */

static uint64_t slice_key(const struct ptr_slice *r)
{
	return pt_hash_mix(((uint64_t)r->thread << 32 | (uint32_t)r->cpu) +
			   pt_hash_mix((uint64_t)r->stream << 32 | (uint32_t)r->vcpu));
}

static uint64_t key_of_slice(const void *slices, uint32_t n)
{
	return slice_key(&((const struct slice_sum *)slices)[n - 1].slice);
}

static bool is_of(const struct ptr_slice *a, const struct ptr_slice *b)
{
	return a->thread == b->thread && a->cpu == b->cpu && a->vcpu == b->vcpu && a->stream == b->stream;
}

static uint32_t begin_slice(struct pt_sums *u, const struct ptr_slice *slice)
{
	struct pt_emit *m = u->emit;
	uint32_t number = pt_emit_put(m, ptr_put_slice(m->writer, slice, &m->error));

	if (m->failed)
		return 0;
	if (pt_array_grow(&u->slices, u->slice_count, &u->slice_room, NULL) < 0)
		goto no_memory;
	u->slices[u->slice_count++] =
	    (struct slice_sum){.slice = *slice,
			       .number = number,
			       .end = {.slice = number, .tsc = slice->tsc, .cyc_count = PTR_UNKNOWN}};
	if (pt_hash_insert(&u->slice_hash, slice_key(slice), (uint32_t)u->slice_count, key_of_slice,
			   u->slices, NULL) == 0)
		return number;
no_memory:
	pt_emit_no_memory(m, "sums");
	return 0;
}

uint32_t pt_sums_slice(struct pt_sums *u, const struct ptr_slice *slice)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(&u->slice_hash, slice_key(slice)); (n = u->slice_hash.slots[i]);
	     i = pt_hash_next(&u->slice_hash, i))
		if (is_of(&u->slices[n - 1].slice, slice))
			return u->slices[n - 1].number;
	return begin_slice(u, slice);
}

void pt_sums_slice_end(struct pt_sums *u, const struct ptr_slice_end *end)
{
	struct ptr_slice_end *sum;

	/* At this level all slices are from here: their numbers are those of the array. */
	if (!end->slice || end->slice > u->slice_count)
		return;
	sum = &u->slices[end->slice - 1].end;
	if (end->tsc != PTR_NO_TSC)
		sum->tsc = end->tsc;
	sum->insn_count += end->insn_count;
	sum->not_taken += end->not_taken;
	sum->branch_count += end->branch_count;
	if (end->cyc_count != PTR_UNKNOWN)
		pt_add_known(&sum->cyc_count, end->cyc_count);
}

void pt_sums_finish(struct pt_sums *u)
{
	struct pt_emit *m = u->emit;

	put_paths(u);
	pt_calls_put_sums(m->stacks);
	for (size_t i = 0; i < u->slice_count && !m->failed; i++)
		pt_emit_put(m, ptr_put_slice_end(m->writer, &u->slices[i].end, &m->error));
}
