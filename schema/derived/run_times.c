/* run_times.c - see run_times.h. */
#include "schema/derived/run_times.h"

#include <stdlib.h>

#include "schema/array.h"
#include "schema/records.h"

/* Runs have numbers, which begin anew after so many: a power of two that is more than are held. */
#define NUMBERS (1u << 31)
#define NONE	UINT32_MAX
/* Room for runs at first: mostly few are held, and these remain in the caches. */
enum { HELD_FIRST = 256 };
/* The rate of the intervals before is used when it is known from that many instructions. */
enum { RATE_INSNS = 256 };
/* Streams from this number on, which a damaged record stream may have, get no estimates. */
enum { STREAMS_MAX = 1 << 16 };

struct times_stream {
	uint32_t slice;	      /* of its last run */
	uint64_t tsc;	      /* at which the interval begins; PTR_NO_TSC before the first */
	uint32_t first, last; /* of the interval's runs, NONE */
	/* The first of the runs before the interval of which the last branches are direct ones, which may lie
	 * after its beginning; NONE. Their upper bound is the next timing packet. */
	uint32_t open;
	double rate_tsc, rate_insns; /* of the intervals before, of which the older ones count less */
};

struct ptr_times {
	struct ptr_timed_run *held;   /* a ring of a power of two: run n is at n % room */
	uint32_t room, head, count;   /* head: the number of the first one */
	struct times_stream *streams; /* by number */
	size_t stream_count, stream_room;
};

struct ptr_times *ptr_times_create(void)
{
	struct ptr_times *t = calloc(1, sizeof *t);

	if (t)
		t->held = malloc(HELD_FIRST * sizeof *t->held);
	if (t && t->held) {
		t->room = HELD_FIRST;
		return t;
	}
	free(t);
	return NULL;
}

void ptr_times_destroy(struct ptr_times *t)
{
	if (!t)
		return;
	free(t->streams);
	free(t->held);
	free(t);
}

static struct ptr_timed_run *run_at(const struct ptr_times *t, uint32_t number)
{
	return &t->held[number & (t->room - 1)];
}

/* Room for twice as many. False: no memory. */
static bool grow(struct ptr_times *t)
{
	uint32_t room = 2 * t->room;
	struct ptr_timed_run *held = malloc(room * sizeof *held);

	if (!held)
		return false;
	for (uint32_t i = 0, n = t->head; i < t->count; i++, n = (n + 1) % NUMBERS)
		held[n & (room - 1)] = *run_at(t, n);
	free(t->held);
	t->held = held;
	t->room = room;
	return true;
}

static struct times_stream *stream_of(struct ptr_times *t, uint32_t stream)
{
	while (stream >= t->stream_count) {
		if (pt_array_grow(&t->streams, t->stream_count, &t->stream_room, NULL) < 0)
			return NULL;
		t->streams[t->stream_count++] =
		    (struct times_stream){.tsc = PTR_NO_TSC, .first = NONE, .last = NONE, .open = NONE};
	}
	return &t->streams[stream];
}

/* The timing packet times the branch that the run begins with. */
static bool times_first_branch(uint32_t timing)
{
	return timing == PTR_TIME_CYC || timing == PTR_TIME_EXACT;
}

/* Of the instructions up to the run's first branch, those after its timing packet. A packet that times
 * neither the branch before nor the one after is taken to lie halfway between them. */
static double insns_after_packet(const struct ptr_timed_run *r)
{
	return r->timing == PTR_TIME_EXACT   ? 0
	       : r->timing == PTR_TIME_AFTER ? r->first_insns
					     : r->first_insns / 2.0;
}

static void settle_one(struct ptr_timed_run *r, uint64_t est, uint64_t next, uint64_t end)
{
	r->insns_next = r->insns - r->first_insns;
	r->tsc_est = est;
	r->tsc_next = next;
	r->tsc_end = end;
	r->settled = true;
}

/* ---- An interval ------------------------------------------------------------------------------------ */

/* What an interval between two timing packets consists of. */
struct interval {
	double tsc, insns;
	uint32_t gaps; /* in which tracing was off */
};

static struct interval interval_of(const struct ptr_times *t, const struct times_stream *s,
				   const struct ptr_timed_run *next)
{
	const struct ptr_timed_run *first = run_at(t, s->first);
	struct interval ret = {.tsc = (double)(next->tsc - s->tsc)};

	for (uint32_t i = s->first; i != NONE; i = run_at(t, i)->next) {
		ret.insns += (double)run_at(t, i)->insns;
		ret.gaps +=
		    run_at(t, i)->begins && !(i == s->first && times_first_branch(run_at(t, i)->timing));
	}
	ret.insns -= first->first_insns - insns_after_packet(first);
	if (next->begins)
		ret.gaps++;
	else
		ret.insns += next->first_insns - insns_after_packet(next);
	return ret;
}

/* How the interval's time is divided. TSC ticks. */
struct shares {
	double per_insn, per_gap;
};

static struct shares share(const struct times_stream *s, const struct interval *v)
{
	struct shares ret = {0, 0};

	if (v->insns > 0)
		ret.per_insn = v->tsc / v->insns;
	if (v->gaps) {
		double rate = s->rate_insns >= RATE_INSNS ? s->rate_tsc / s->rate_insns : 1;

		if (rate < ret.per_insn)
			ret.per_insn = rate;
		ret.per_gap = (v->tsc - v->insns * ret.per_insn) / v->gaps;
	}
	return ret;
}

static void update_rate(struct times_stream *s, const struct interval *v)
{
	if (v->gaps)
		return;
	s->rate_tsc = s->rate_tsc * 0.9 + v->tsc;
	s->rate_insns = s->rate_insns * 0.9 + v->insns;
}

static uint64_t at(uint64_t begin, double offset, uint64_t end)
{
	uint64_t tsc = begin + (uint64_t)(offset + 0.5);

	return tsc < end ? tsc : end;
}

/* The interval's runs get their times, of which `next` has the upper bound. */
static void interpolate(struct ptr_times *t, const struct times_stream *s, const struct ptr_timed_run *next,
			struct shares shares)
{
	uint64_t end = next->tsc;
	double x = 0; /* TSC ticks since the interval's beginning */

	for (uint32_t i = s->first; i != NONE; i = run_at(t, i)->next) {
		struct ptr_timed_run *r = run_at(t, i);
		const struct ptr_timed_run *after = r->next == NONE ? next : run_at(t, r->next);
		uint64_t est;

		if (i != s->first || r->timing != PTR_TIME_EXACT) {
			x += (i == s->first ? insns_after_packet(r) : r->first_insns) * shares.per_insn;
			x += r->begins ? shares.per_gap : 0;
		}
		est = at(s->tsc, x, end);
		x += (double)(r->insns - r->first_insns) * shares.per_insn;
		settle_one(r, est,
			   at(s->tsc, after->begins ? x : x + after->first_insns * shares.per_insn, end),
			   end);
		r->insns_next += after->begins ? 0 : after->first_insns;
	}
}

/* The last runs of the interval whose last branches are direct ones have no upper bound yet: the next packet
 * times none of them. Not the very last alone: it may consist of direct branches only. */
static void keep_direct_open(struct ptr_times *t, struct times_stream *s)
{
	uint32_t open = NONE;

	for (uint32_t i = s->first; i != NONE; i = run_at(t, i)->next)
		open = !run_at(t, i)->direct_last ? NONE : open == NONE ? i : open;
	s->open = open;
	for (; open != NONE; open = run_at(t, open)->next)
		run_at(t, open)->settled = false;
}

/* The interval is over. next: the first run after it; NULL unknown. */
static void end_interval(struct ptr_times *t, struct times_stream *s, const struct ptr_timed_run *next)
{
	if (s->first == NONE)
		return;
	if (next) {
		struct interval v = interval_of(t, s, next);
		struct shares shares = share(s, &v);

		update_rate(s, &v);
		interpolate(t, s, next, shares);
		if (!times_first_branch(next->timing))
			keep_direct_open(t, s);
	} else {
		for (uint32_t i = s->first; i != NONE; i = run_at(t, i)->next)
			settle_one(run_at(t, i), s->tsc, s->tsc, PTR_NO_TSC);
	}
	s->first = s->last = NONE;
}

/* The runs that end with direct branches get their upper bound. */
static void settle_open(struct ptr_times *t, struct times_stream *s, uint64_t tsc_end)
{
	for (; s->open != NONE; s->open = run_at(t, s->open)->next) {
		run_at(t, s->open)->tsc_end = tsc_end;
		run_at(t, s->open)->settled = true;
	}
}

static void settle_stream(struct ptr_times *t, struct times_stream *s)
{
	end_interval(t, s, NULL);
	settle_open(t, s, PTR_NO_TSC);
}

/* ---- In and out ------------------------------------------------------------------------------------- */

struct ptr_timed_run *ptr_times_room(struct ptr_times *t)
{
	if (t->count == t->room && !grow(t))
		return NULL;
	return run_at(t, t->head + t->count);
}

bool ptr_times_add(struct ptr_times *t)
{
	uint32_t i = (t->head + t->count) % NUMBERS;
	struct ptr_timed_run *r = run_at(t, i);
	struct times_stream *s = r->stream < STREAMS_MAX ? stream_of(t, r->stream) : NULL;

	if (!s && r->stream < STREAMS_MAX)
		return false;
	r->next = NONE;
	r->settled = false;
	t->count++;
	if (!s || r->tsc == PTR_NO_TSC) {
		settle_one(r, r->tsc, r->tsc, PTR_NO_TSC);
		return true;
	}
	r->begins |= r->slice != s->slice && !r->crosses;
	s->slice = r->slice;
	if (s->tsc != PTR_NO_TSC && r->tsc < s->tsc) /* only a damaged record stream has that */
		settle_stream(t, s);
	if (s->first == NONE || r->tsc != s->tsc || times_first_branch(r->timing)) {
		if (r->tsc != s->tsc || times_first_branch(r->timing))
			settle_open(t, s, r->tsc);
		end_interval(t, s, r);
		s->tsc = r->tsc;
	}
	if (s->first == NONE)
		s->first = i;
	else
		run_at(t, s->last)->next = i;
	s->last = i;
	return true;
}

bool ptr_times_put(struct ptr_times *t, const struct ptr_timed_run *run)
{
	struct ptr_timed_run *r = ptr_times_room(t);

	if (!r)
		return false;
	*r = *run;
	return ptr_times_add(t);
}

/* The ring is full: the run at its head gets the times that are known. */
static void settle_head(struct ptr_times *t)
{
	struct times_stream *s = &t->streams[run_at(t, t->head)->stream];

	if (s->open == t->head)
		settle_open(t, s, PTR_NO_TSC);
	else
		end_interval(t, s, NULL);
}

const struct ptr_timed_run *ptr_times_next(struct ptr_times *t)
{
	struct ptr_timed_run *r = run_at(t, t->head);

	if (!t->count)
		return NULL;
	if (!r->settled && t->count == PTR_TIMES_HELD)
		settle_head(t);
	if (!r->settled)
		return NULL;
	t->head = (t->head + 1) % NUMBERS;
	t->count--;
	return r;
}

struct ptr_timed_run *ptr_times_held(struct ptr_times *t, uint32_t n)
{
	return n < t->count ? run_at(t, t->head + n) : NULL;
}

void ptr_times_settle(struct ptr_times *t)
{
	for (size_t i = 0; i < t->stream_count; i++)
		settle_stream(t, &t->streams[i]);
}
