/* run_times.c - see run_times.h. */
#include "schema/derived/run_times.h"

#include <stdlib.h>
#include <string.h>

#include "schema/records.h"

enum { NONE = PTR_TIMES_HELD, RATE_INSNS = 256 };

/* The packet is of what the run begins with. */
static bool is_of_it(uint32_t timing)
{
	return timing == PTR_TIME_CYC || timing == PTR_TIME_EXACT;
}

/* How much of what leads to the first branch of a run is behind its timing packet. Where that lies between two branches
 * that it is not of, half of what is between them. */
static double after_packet(const struct ptr_timed_run *r)
{
	return r->timing == PTR_TIME_EXACT   ? 0
	       : r->timing == PTR_TIME_AFTER ? r->first_insns
					     : r->first_insns / 2.0;
}

struct times_stream {
	uint32_t slice;	      /* of its last run */
	uint64_t tsc;	      /* of the stretch */
	uint32_t first, last; /* of its runs that are held, NONE */
	/* the first of the runs, up to the stretch's last, whose last branches may be younger than the stretch behind it began, NONE */
	uint32_t open;
	double rate_tsc, rate_insns; /* of the stretches before */
};

struct ptr_times {
	struct ptr_timed_run held[PTR_TIMES_HELD]; /* a ring: [head, head + count) */
	uint32_t head, count;
	struct times_stream *streams;
	uint32_t stream_count;
};

struct ptr_times *ptr_times_create(void)
{
	return calloc(1, sizeof(struct ptr_times));
}

void ptr_times_destroy(struct ptr_times *t)
{
	if (t)
		free(t->streams);
	free(t);
}

/* More streams than that, which only a damaged record stream has, get no estimates. */
enum { STREAMS_MAX = 1 << 16 };

static struct times_stream *stream_of(struct ptr_times *t, uint32_t stream)
{
	struct times_stream *streams;
	uint32_t n = stream + 16;

	if (stream < t->stream_count)
		return &t->streams[stream];
	streams = realloc(t->streams, n * sizeof *streams);
	if (!streams)
		return NULL;
	t->streams = streams;
	for (; t->stream_count < n; t->stream_count++)
		streams[t->stream_count] =
		    (struct times_stream){.tsc = PTR_NO_TSC, .first = NONE, .last = NONE, .open = NONE};
	return &streams[stream];
}

static void settle_one(struct ptr_timed_run *r, uint64_t est, uint64_t next, uint64_t end)
{
	r->insns_next = r->insns - r->first_insns;
	r->tsc_est = est;
	r->tsc_next = next;
	r->tsc_end = end;
	r->settled = true;
}

/* How a stretch's time is shared out. */
struct shares {
	double per_insn, per_gap; /* TSC */
};

static struct shares share(const struct times_stream *s, double tsc, double insns, uint32_t gaps)
{
	struct shares ret = {0, 0};

	if (insns > 0)
		ret.per_insn = tsc / insns;
	if (gaps) {
		double rate = s->rate_insns >= RATE_INSNS ? s->rate_tsc / s->rate_insns : 1;

		if (rate < ret.per_insn)
			ret.per_insn = rate;
		ret.per_gap = (tsc - insns * ret.per_insn) / gaps;
	}
	return ret;
}

static uint64_t at(uint64_t begin, double offset, uint64_t end)
{
	uint64_t tsc = begin + (uint64_t)(offset + 0.5);

	return tsc < end ? tsc : end;
}

/* The stretch is over: `next`, NULL unknown, is the first run behind it. */
static void end_stretch(struct ptr_times *t, struct times_stream *s, const struct ptr_timed_run *next)
{
	uint64_t end = next ? next->tsc : PTR_NO_TSC;
	double insns = 0, x = 0;
	uint32_t gaps = 0;
	struct shares shares;

	if (s->first == NONE)
		return;
	if (!next) {
		for (uint32_t i = s->first; i != NONE; i = t->held[i].next)
			settle_one(&t->held[i], s->tsc, s->tsc, PTR_NO_TSC);
		s->first = s->last = NONE;
		return;
	}
	for (uint32_t i = s->first; i != NONE; i = t->held[i].next) {
		insns += (double)t->held[i].insns;
		gaps += t->held[i].begins && !(i == s->first && is_of_it(t->held[i].timing));
	}
	insns -= t->held[s->first].first_insns - after_packet(&t->held[s->first]);
	if (!next->begins)
		insns += next->first_insns - after_packet(next);
	else
		gaps++;
	shares = share(s, (double)(end - s->tsc), insns, gaps);
	if (!gaps) {
		s->rate_tsc = s->rate_tsc * 0.9 + (double)(end - s->tsc);
		s->rate_insns = s->rate_insns * 0.9 + insns;
	}
	for (uint32_t i = s->first; i != NONE;) {
		struct ptr_timed_run *r = &t->held[i];
		const struct ptr_timed_run *behind = r->next == NONE ? next : &t->held[r->next];
		uint64_t est;

		if (i != s->first || r->timing != PTR_TIME_EXACT) {
			x += (i == s->first ? after_packet(r) : r->first_insns) * shares.per_insn;
			x += r->begins ? shares.per_gap : 0;
		}
		est = at(s->tsc, x, end);
		x += (double)(r->insns - r->first_insns) * shares.per_insn;
		settle_one(r, est,
			   at(s->tsc, behind->begins ? x : x + behind->first_insns * shares.per_insn, end),
			   end);
		r->insns_next += behind->begins ? 0 : behind->first_insns;
		i = r->next;
	}
	if (!is_of_it(next->timing)) {
		uint32_t open = NONE;

		/* Those before, too: the last may have direct branches only. */
		for (uint32_t i = s->first; i != NONE; i = t->held[i].next)
			open = !t->held[i].direct_last ? NONE : open == NONE ? i : open;
		s->open = open;
		for (; open != NONE; open = t->held[open].next)
			t->held[open].settled = false;
	}
	s->first = s->last = NONE;
}

static void push_open(struct ptr_times *t, struct times_stream *s, uint64_t tsc_end)
{
	for (; s->open != NONE; s->open = t->held[s->open].next) {
		t->held[s->open].tsc_end = tsc_end;
		t->held[s->open].settled = true;
	}
}

/* All that is known of the run at the head is known: it leaves. */
static void push_out(struct ptr_times *t)
{
	struct ptr_timed_run *r = &t->held[t->head];
	struct times_stream *s = &t->streams[r->stream];

	if (r->settled)
		return;
	if (s->open == t->head)
		push_open(t, s, PTR_NO_TSC);
	else
		end_stretch(t, s, NULL);
}

bool ptr_times_put(struct ptr_times *t, const struct ptr_timed_run *run)
{
	struct times_stream *s = run->stream < STREAMS_MAX ? stream_of(t, run->stream) : NULL;
	uint32_t i = (t->head + t->count) % PTR_TIMES_HELD;
	struct ptr_timed_run *r = &t->held[i];

	if (!s && run->stream < STREAMS_MAX)
		return false;
	*r = *run;
	r->next = NONE;
	r->settled = false;
	t->count++;
	if (!s || run->tsc == PTR_NO_TSC) {
		settle_one(r, run->tsc, run->tsc, PTR_NO_TSC);
		return true;
	}
	r->begins |= run->slice != s->slice && !run->crosses;
	s->slice = run->slice;
	if (s->tsc != PTR_NO_TSC && run->tsc < s->tsc) { /* no decoder writes that */
		end_stretch(t, s, NULL);
		push_open(t, s, PTR_NO_TSC);
	}
	if (s->first == NONE || run->tsc != s->tsc || is_of_it(run->timing)) {
		if (run->tsc != s->tsc || is_of_it(run->timing))
			push_open(t, s, run->tsc);
		end_stretch(t, s, r);
		s->tsc = run->tsc;
	}
	if (s->first == NONE)
		s->first = i;
	else
		t->held[s->last].next = i;
	s->last = i;
	return true;
}

const struct ptr_timed_run *ptr_times_next(struct ptr_times *t)
{
	struct ptr_timed_run *r = &t->held[t->head];

	if (!t->count)
		return NULL;
	if (!r->settled && t->count == PTR_TIMES_HELD)
		push_out(t);
	if (!r->settled)
		return NULL;
	t->head = (t->head + 1) % PTR_TIMES_HELD;
	t->count--;
	return r;
}

void ptr_times_settle(struct ptr_times *t)
{
	for (uint32_t i = 0; i < t->stream_count; i++) {
		struct times_stream *s = &t->streams[i];

		end_stretch(t, s, NULL);
		push_open(t, s, PTR_NO_TSC);
	}
}
