/*
 * segment_sums.c - runs of segments, summed up by the thread that decoded them; see segment.h.
 *
 * With sums only (pt-decode --detail sums) a run is no record: its path was executed once more, in so many
 * cycles. So of a span (segment_runs.c) the flow's thread adds one sum for each path, and not each run:
 *
 *     runs of a span    a b a a c b a        all but the first, which the flow's thread takes by itself
 *     path_sums         b 2, a 3, c 1
 */
#include "decode/flow/segment_log.h"
#include "decode/flow/stretch.h"
#include "schema/array.h"

struct summing {
	const struct pt_segment *segment;
	struct pt_segment_numbers *numbers;
	struct pt_kept_runs *kept;
	struct segment_span *span;
};

/* The sum of run i of the span. NULL: no memory. */
static struct pt_flow_path_sum *sum_of(const struct summing *s, uint32_t i)
{
	struct pt_kept_runs *kept = s->kept;
	uint32_t path = s->span->encoded.paths[i], *at = &s->numbers->sum_at[s->span->encoded.runs[i].path];

	if (*at >= s->span->path_sums && *at < kept->path_sum_count && kept->path_sums[*at].path == path)
		return &kept->path_sums[*at];
	if (pt_array_grow(&kept->path_sums, kept->path_sum_count, &kept->path_sum_room, NULL) < 0)
		return NULL;
	*at = (uint32_t)kept->path_sum_count++;
	kept->path_sums[*at] = (struct pt_flow_path_sum){.path = path};
	return &kept->path_sums[*at];
}

static uint64_t insns_of(const struct summing *s, uint32_t i)
{
	const struct pt_flow_run *run = &s->span->encoded.runs[i];

	return (uint64_t)s->segment->graph->paths[run->path].insns * run->repeats;
}

/* Shares the cycles out among the runs [from, to), which have so many instructions. */
static void share(const struct summing *s, uint32_t from, uint32_t to, uint64_t insns, uint64_t cycles)
{
	if (!insns || to - from > PT_STRETCH_RUNS)
		return;
	for (uint32_t i = from; i < to; i++) {
		struct pt_flow_path_sum *sum = sum_of(s, i);

		sum->insn_timed += insns_of(s, i);
		sum->cycles += pt_cycles_share(cycles, insns_of(s, i), insns);
	}
}

static bool has_cycles(const struct pt_flow_encoded_runs *e, uint32_t i)
{
	return e->runs[i].cyc_count != PTR_UNKNOWN;
}

/* The stretches that are wholly in the span: from after its first run with cycles up to the last one. */
static void time_runs(const struct summing *s)
{
	struct pt_flow_encoded_runs *e = &s->span->encoded;
	uint32_t from = 1, to = e->count, begin;
	uint64_t insns = 0;

	while (from < e->count && !has_cycles(e, from))
		from++;
	e->timed_from = e->timed_to = e->count;
	if (from == e->count)
		return;
	while (!has_cycles(e, to - 1))
		to--;
	e->timed_from = begin = from + 1;
	e->timed_to = to;
	for (uint32_t i = begin; i < to; i++) {
		insns += insns_of(s, i);
		if (!has_cycles(e, i))
			continue;
		share(s, begin, i + 1, insns, e->runs[i].cyc_count);
		begin = i + 1;
		insns = 0;
	}
}

bool pt_segment_sum_span(const struct pt_segment *segment, struct pt_segment_numbers *numbers,
			 struct segment_span *span)
{
	const struct summing s = {segment, numbers, segment->encoded, span};
	struct pt_flow_encoded_runs *e = &span->encoded;

	span->path_sums = s.kept->path_sum_count;
	for (uint32_t i = 1; i < e->count; i++) {
		struct pt_flow_path_sum *sum = sum_of(&s, i);

		if (!sum)
			return false;
		sum->runs++;
		sum->repeats += e->runs[i].repeats;
	}
	e->path_sum_count = (uint32_t)(s.kept->path_sum_count - span->path_sums);
	time_runs(&s);
	return true;
}
