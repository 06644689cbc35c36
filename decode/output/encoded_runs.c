/* encoded_runs.c - see encoded_runs.h. */
#include "decode/output/encoded_runs.h"

#include "decode/output/calls.h"
#include "decode/output/sums.h"
#include "decode/output/vm_events.h"

struct encoded {
	struct pt_emit_stream *stream;
	const struct pt_graph *graph;
	const struct pt_flow_encoded_runs *runs;
	/* What there is in those that were not put one by one. */
	struct pt_graph_sums more;
};

/* ---- One by one ------------------------------------------------------------------------------------- */

static struct pt_flow_run run_at(const struct encoded *e, uint32_t i)
{
	struct pt_flow_run run = e->runs->runs[i];

	run.path = e->runs->paths[i];
	return run;
}

static void put_one(struct encoded *e, uint32_t i)
{
	const struct pt_flow_run run = run_at(e, i);
	const struct pt_path *path = &e->graph->paths[run.path];

	pt_emit_run(e->stream, &run);
	e->more.edges -= (uint64_t)path->count * run.repeats;
	e->more.not_taken -= (uint64_t)path->not_taken * run.repeats;
}

/* All that are to be put one by one are. */
static void count_others(const struct encoded *e)
{
	struct pt_emit_stream *s = e->stream;

	s->emit->branches += e->more.edges;
	s->slice_branches += e->more.edges;
	s->not_taken += e->more.not_taken;
}

/* Those in [from, to), from > 0. */
static void count_cycles(const struct encoded *e, uint32_t from, uint32_t to)
{
	struct pt_emit_stream *s = e->stream;
	const struct pt_flow_encoded_runs *runs = e->runs;

	if (!runs->has_cyc)
		return;
	for (uint32_t i = from; i < to && !s->has_cyc; i++)
		s->has_cyc = runs->runs[i].cyc_count != PTR_UNKNOWN;
	s->cycles += runs->cycles[to - 1] - runs->cycles[from - 1];
}

/* How many from i on fit into what the call stacks get next; 0: none. */
static uint32_t fitting(const struct encoded *e, uint32_t i)
{
	const struct pt_emit *m = e->stream->emit;
	uint32_t left = e->runs->count - i, room = m->calls ? pt_calls_room(m->stacks) : left;

	return left < room ? left : room;
}

/* ---- As records ------------------------------------------------------------------------------------- */

static void get_run(const void *arg, uint32_t record, struct ptr_run *ret)
{
	const struct encoded *e = arg;
	uint32_t i = record - e->runs->records_from;
	const struct pt_flow_run *run = &e->runs->runs[i];

	*ret = (struct ptr_run){.slice = e->stream->slice,
				.tsc = run->tsc,
				.timing = (enum ptr_timing)run->timing,
				.path = e->graph->paths[e->runs->paths[i]].number,
				.repeats = run->repeats,
				.cyc_count = run->cyc_count,
				.insn_count = run->insn_count};
}

/* Those in [from, to). */
static void put_records(const struct encoded *e, uint32_t from, uint32_t to)
{
	struct pt_emit_stream *s = e->stream;
	struct pt_emit *m = s->emit;
	const struct pt_flow_encoded_runs *runs = e->runs;
	const struct ptr_run_source source = {get_run, e};
	int64_t number = ptr_put_runs(m->writer, runs->records, runs->records_from + from,
				      runs->records_from + to, &source, &m->error);

	if (number < 0) {
		m->failed = true;
		return;
	}
	if (runs->last_taken >= from && runs->last_taken < to)
		s->last_branch = pt_emit_last_branch((uint64_t)number + runs->last_taken - from,
						     m->graph->path_counts[runs->paths[runs->last_taken]],
						     &runs->runs[runs->last_taken]);
	if (m->calls)
		pt_calls_runs(m->stacks, s, runs, from, to, (uint64_t)number);
	count_cycles(e, from, to);
}

static void put_all(struct encoded *e)
{
	struct pt_emit *m = e->stream->emit;
	uint32_t n;

	/* The first one: who runs may be new to the call stacks, and the slice to the records. */
	put_one(e, 0);
	for (uint32_t i = 1; i < e->runs->count && !m->failed; i += n) {
		n = fitting(e, i);
		if (!n) { /* this one makes room */
			put_one(e, i);
			n = 1;
			continue;
		}
		put_records(e, i, i + n);
		m->runs += n;
		m->encoded_runs += n;
	}
	if (m->failed)
		return;
	count_others(e);
	ptr_count_runs(m->writer, 0, e->more.edges);
}

/* ---- As sums ---------------------------------------------------------------------------------------- */

static void sum_calls(const struct encoded *e, uint32_t i, uint32_t n)
{
	struct pt_emit_stream *s = e->stream;
	struct pt_emit *m = s->emit;

	if (m->calls && n) {
		pt_calls_runs(m->stacks, s, e->runs, i, i + n, 0);
	} else if (m->calls) { /* this one makes room */
		const struct pt_flow_run run = run_at(e, i);

		pt_calls_run(m->stacks, s, &m->graph->paths[run.path], &run, 0);
	}
}

static void sum_all(struct encoded *e)
{
	struct pt_emit_stream *s = e->stream;
	struct pt_emit *m = s->emit;
	uint32_t count = e->runs->count, n;

	put_one(e, 0);
	if (m->failed)
		return;
	pt_sums_runs(m->sums, s, e->runs);
	for (uint32_t i = 1; i < count && !m->failed; i += n) {
		n = fitting(e, i);
		sum_calls(e, i, n);
		n += !n;
		count_cycles(e, i, i + n);
	}
	m->runs += count - 1;
	m->encoded_runs += count - 1;
	if (e->runs->last_taken < count)
		s->last_branch = 0;
	count_others(e);
}

/* ---- All of them ------------------------------------------------------------------------------------ */

bool pt_emit_encoded_runs(struct pt_emit_stream *s, const struct pt_flow_encoded_runs *runs)
{
	const struct pt_emit *m = s->emit;
	struct encoded e = {s, m->graph, runs, runs->sums};

	if (s->skipped || s->emulated.reading || m->failed || m->text || !m->definitions ||
	    (runs->records == NULL) != (m->sums != NULL) ||
	    (s->runs_wanted && m->vm->reads_runs(m->vm_arg, s)))
		return false;
	if (runs->records)
		put_all(&e);
	else
		sum_all(&e);
	return true;
}
