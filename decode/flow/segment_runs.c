/*
 * segment_runs.c - runs of segments as records, encoded by the thread that decoded them; see segment.h.
 *
 * Once the flow's thread has taken over a run of a path, it says so to the decoder's
 * (pt_segment_know_path()), and the runs of that path in segments to come are encoded there. What is left to
 * the flow's thread is one call for all that follow each other: a span.
 *
 *     runs of a segment    a b c ? d e f g | h i j ... k |      ?: a path that has no number yet
 *                          --1--   ---2---   -----3-----        |: an entry, or a checkpoint
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "decode/flow/segment_log.h"
#include "schema/array.h"

/* Fewer are not worth a span. */
#define SPAN_RUNS_MIN 8
/* What is known of a path is fetched before it is its run's turn. */
#define RUNS_AHEAD 16

/* ---- What is known of paths ------------------------------------------------------------------------- */

#define NOT_TAKEN_MAX 0xffffffu /* 24 bits */

void pt_segment_know_path(struct pt_segment_numbers *numbers, uint32_t local, const struct pt_graph *graph,
			  uint32_t path)
{
	struct segment_known_path *known = &numbers->known[local];
	const struct pt_path *p = &graph->paths[path];
	uint64_t value = (uint64_t)path << 32 | p->number,
		 what = (uint64_t)p->code << 32 | p->not_taken << 8 | p->count;

	if (!p->number || !p->role || p->emulated || p->not_taken > NOT_TAKEN_MAX ||
	    (atomic_load_explicit(&known->path, memory_order_relaxed) == value &&
	     atomic_load_explicit(&known->what, memory_order_relaxed) == what))
		return;
	atomic_store_explicit(&known->path, 0, memory_order_relaxed);
	atomic_store_explicit(&known->what, what, memory_order_release);
	atomic_store_explicit(&known->path, value, memory_order_release);
}

struct path_info {
	uint32_t path, number; /* the flow's, and the record's */
	uint32_t code, not_taken;
	uint8_t count;
};

static bool read_path(const struct segment_known_path *known, struct path_info *ret)
{
	uint64_t path = atomic_load_explicit(&known->path, memory_order_acquire),
		 what = atomic_load_explicit(&known->what, memory_order_acquire);

	if (!path || atomic_load_explicit(&known->path, memory_order_relaxed) != path)
		return false;
	*ret = (struct path_info){.path = (uint32_t)(path >> 32),
				  .number = (uint32_t)path,
				  .code = (uint32_t)(what >> 32),
				  .not_taken = (uint32_t)what >> 8,
				  .count = (uint8_t)what};
	return true;
}

/* ---- Encoding: the decoder's thread ----------------------------------------------------------------- */

struct encoder {
	const struct pt_segment *segment;
	struct pt_segment_numbers *numbers;
	struct pt_kept_runs *kept;
	struct segment_span span; /* the last one, which may go on */
	bool counted;		  /* as in struct segment_offsets */
};

/* The span has an end here. False: no memory. */
static bool end_span(struct encoder *en)
{
	struct pt_kept_runs *kept = en->kept;
	struct segment_span *span = &en->span;

	if (span->encoded.count >= SPAN_RUNS_MIN) {
		if (pt_array_grow(&kept->spans, kept->span_count, &kept->span_room, NULL) < 0 ||
		    (en->numbers->sum_at && !pt_segment_sum_span(en->segment, en->numbers, span)))
			return false;
		kept->spans[kept->span_count++] = *span;
	}
	span->encoded.count = 0;
	return true;
}

static bool uses_code(struct pt_kept_runs *kept, uint32_t code)
{
	for (int i = 0; i < SEGMENT_CODES; i++) {
		if (kept->codes[i] == UINT32_MAX)
			kept->codes[i] = code;
		if (kept->codes[i] == code)
			return true;
	}
	return false;
}

/* Not the runs that depend on what the flow was before the segment (take_run() in segment_take.c). */
static bool is_encodable(struct encoder *en, size_t i, struct path_info *ret)
{
	const struct pt_flow_run *run = &en->segment->runs[i];
	bool counts = run->cyc_count != PTR_UNKNOWN && !en->counted;

	en->counted |= counts;
	return !counts && run->timing != FLOW_TIMING_UNSEEN &&
	       read_path(&en->numbers->known[run->path], ret) && uses_code(en->kept, ret->code);
}

static void add_sums(const struct pt_graph *g, const struct pt_flow_run *run, const struct path_info *info,
		     struct pt_graph_sums *sums)
{
	const struct pt_path_stats *stats = g->path_stats ? &g->path_stats[run->path] : NULL;

	sums->paths += run->repeats;
	sums->edges += (uint64_t)info->count * run->repeats;
	sums->not_taken += (uint64_t)info->not_taken * run->repeats;
	if (!stats)
		return;
	sums->hash += stats->hash * run->repeats;
	for (int k = 0; k < PTR_KINDS; k++)
		sums->by_kind[k] += (uint64_t)stats->by_kind[k] * run->repeats;
}

/* False: no memory. */
static bool encode(struct encoder *en, size_t i, const struct path_info *info)
{
	struct pt_kept_runs *kept = en->kept;
	const struct pt_flow_run *run = &kept->runs[i];
	struct pt_flow_encoded_runs *e = &en->span.encoded;
	bool has_cyc = run->cyc_count != PTR_UNKNOWN;
	const struct ptr_run r = {.tsc = run->tsc,
				  .timing = (enum ptr_timing)run->timing,
				  .path = info->number,
				  .repeats = run->repeats,
				  .cyc_count = run->cyc_count,
				  .insn_count = run->insn_count};

	if (!e->count)
		en->span =
		    (struct segment_span){.first = i,
					  .encoded = {.runs = run,
						      .paths = &kept->paths[i],
						      .cycles = kept->cycles ? &kept->cycles[i] : NULL,
						      .records = en->numbers->sum_at ? NULL : &kept->records,
						      .records_from = kept->records.count,
						      .kept = kept}};
	if ((e->records && ptr_runs_add(&kept->records, &r) < 0) || (has_cyc && !kept->cycles))
		return false;
	kept->paths[i] = info->path;
	if (info->number < kept->lowest_number)
		kept->lowest_number = info->number;
	if (info->count)
		e->last_taken = e->count;
	else if (!e->sums.edges)
		e->last_taken = e->count + 1;
	e->has_cyc |= has_cyc;
	if (kept->cycles)
		kept->cycles[i] = (e->count ? kept->cycles[i - 1] : 0) + (has_cyc ? run->cyc_count : 0);
	add_sums(en->segment->graph, run, info, &e->sums);
	e->count++;
	return true;
}

/* Runs between two entries or checkpoints. False: no memory. */
static bool encode_runs(struct encoder *en, size_t from, size_t to)
{
	const struct pt_segment *s = en->segment;

	for (size_t i = from; i < to; i++) {
		struct path_info info;

		if (i + RUNS_AHEAD < s->run_count)
			__builtin_prefetch(&en->numbers->known[s->runs[i + RUNS_AHEAD].path]);
		if (!(is_encodable(en, i, &info) ? encode(en, i, &info) : end_span(en)))
			return false;
	}
	return end_span(en);
}

static bool encode_segment(struct encoder *en)
{
	const struct pt_segment *s = en->segment;
	size_t from = 0, entry = 0, checkpoint = 0;

	while (from < s->run_count) {
		size_t to = s->run_count;

		for (; entry < s->entry_count && s->entries[entry].runs <= from; entry++)
			en->counted |= s->entries[entry].type == SEGMENT_BEGIN;
		while (checkpoint < s->checkpoint_count && s->checkpoints[checkpoint].runs <= from)
			checkpoint++;
		if (entry < s->entry_count && s->entries[entry].runs < to)
			to = s->entries[entry].runs;
		if (checkpoint < s->checkpoint_count && s->checkpoints[checkpoint].runs < to)
			to = s->checkpoints[checkpoint].runs;
		if (!encode_runs(en, from, to))
			return false;
		from = to;
	}
	return true;
}

static struct pt_kept_runs *kept_create(struct pt_segment *s, uint64_t generation)
{
	struct pt_kept_runs *kept = calloc(1, sizeof *kept);
	/* What comes after the last checkpoint is not taken over. */
	bool has_cyc = s->checkpoints[s->checkpoint_count - 1].flow.clock.has_cyc;

	if (!kept)
		return NULL;
	kept->paths = malloc(s->run_count * sizeof *kept->paths);
	if (has_cyc)
		kept->cycles = malloc(s->run_count * sizeof *kept->cycles);
	if (!kept->paths || (has_cyc && !kept->cycles)) {
		free(kept->paths);
		free(kept->cycles);
		free(kept);
		return NULL;
	}
	kept->users = 1;
	kept->runs = s->runs;
	kept->generation = generation;
	kept->lowest_number = UINT32_MAX;
	for (int i = 0; i < SEGMENT_CODES; i++)
		kept->codes[i] = UINT32_MAX;
	return kept;
}

/* What they are in does not move any more. */
static void place_sums(struct pt_kept_runs *kept)
{
	for (size_t i = 0; kept->path_sums && i < kept->span_count; i++)
		kept->spans[i].encoded.path_sums = kept->path_sums + kept->spans[i].path_sums;
}

void pt_segment_encode(struct pt_segment *segment, struct pt_segment_numbers *numbers)
{
	for (; segment; segment = segment->next) {
		struct encoder en = {.segment = segment, .numbers = numbers};
		uint64_t generation = atomic_load_explicit(&numbers->generation, memory_order_acquire);

		if (segment->run_count < SPAN_RUNS_MIN ||
		    !(segment->encoded = en.kept = kept_create(segment, generation)))
			continue;
		if (!encode_segment(&en))
			en.kept->span_count = 0;
		place_sums(en.kept);
	}
}

/* ---- Taking over: the flow's thread ----------------------------------------------------------------- */

static bool is_current(const struct pt_flow *f, uint32_t code)
{
	return code == UINT32_MAX || (f->user && f->user->id == code) || (f->kernel && f->kernel->id == code);
}

const struct segment_span *pt_segment_next_span(const struct segment_taking *t, size_t from, size_t to)
{
	struct pt_segment *s = t->segment;
	const struct pt_kept_runs *kept = s->encoded;

	if (!kept)
		return NULL;
	while (s->spans < kept->span_count && kept->spans[s->spans].first < from)
		s->spans++;
	if (s->spans == kept->span_count || kept->spans[s->spans].first >= to ||
	    kept->generation != atomic_load_explicit(&t->numbers->generation, memory_order_relaxed) ||
	    !pt_segment_numbers_hold(t->f, kept))
		return NULL;
	for (int i = 0; i < SEGMENT_CODES; i++)
		if (!is_current(t->f, kept->codes[i]))
			return NULL;
	return &kept->spans[s->spans++];
}

void pt_runs_keep(struct pt_kept_runs *kept)
{
	kept->users++;
}

void pt_runs_release(struct pt_kept_runs *kept)
{
	if (!kept || --kept->users)
		return;
	ptr_runs_deinit(&kept->records);
	free(kept->runs);
	free(kept->paths);
	free(kept->cycles);
	free(kept->spans);
	free(kept->path_sums);
	free(kept);
}
