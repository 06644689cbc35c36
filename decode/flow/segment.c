/* segment.c - see segment.h: the threads that decode ahead, from where a segment begins to its end. */
#include "decode/flow/segment_decoder.h"

#include <stdlib.h>

/* A checkpoint is made at least each so many bytes: where a segment ends, what came after the last one is
 * decoded again. */
#define CHECKPOINT_BYTES 8192
/* Where it is no more than this, it is left to the flow. */
#define REST_BYTES 48

/* ---- Segments --------------------------------------------------------------------------------------- */

static bool add_checkpoint(struct pt_segment_decoder *d, const uint8_t *at, uint64_t stop_tsc)
{
	struct pt_segment *s = d->segment;
	struct segment_checkpoint *c;

	if (s->checkpoint_count == s->checkpoint_room) { /* most segments have one or two, of 4 KB each */
		size_t room = s->checkpoint_room ? 2 * s->checkpoint_room : 1;

		c = realloc(s->checkpoints, room * sizeof *c);
		if (!c)
			return false;
		s->checkpoints = c;
		s->checkpoint_room = room;
	}
	c = &s->checkpoints[s->checkpoint_count++];
	c->at = at;
	c->stop_tsc = stop_tsc;
	c->runs = s->run_count;
	c->entries = s->entry_count;
	c->begun = d->begun;
	c->cyc_run = d->cyc_run;
	c->user_entered = d->user_entered;
	c->flow = *d->flow;
	return true;
}

/* The segment is what it was at its last checkpoint, or its begin; so is the flow. Returns the place. */
static const uint8_t *return_to_checkpoint(struct pt_segment_decoder *d)
{
	struct pt_segment *s = d->segment;
	const struct segment_checkpoint *c =
	    s->checkpoint_count ? &s->checkpoints[s->checkpoint_count - 1] : NULL;

	s->run_count = c ? c->runs : 0;
	s->entry_count = c ? c->entries : 0;
	*d->flow = c ? c->flow : s->begin;
	d->begun = c && c->begun;
	d->cyc_run = c && c->cyc_run;
	d->user_entered = c && c->user_entered;
	d->asked = false;
	return c ? c->at : s->begin_at;
}

struct pt_segment *pt_segment_next(const struct pt_segment *segment)
{
	return segment->next;
}

const uint8_t *pt_segment_begin(const struct pt_segment *segment)
{
	return segment->begin_at;
}

void pt_segment_destroy(struct pt_segment *segment)
{
	struct pt_segment *next;

	for (; segment; segment = next) {
		next = segment->next;
		if (segment->encoded)
			pt_runs_release(segment->encoded);
		else
			free(segment->runs);
		free(segment->entries);
		free(segment->checkpoints);
		free(segment);
	}
}

/* ---- Decoding --------------------------------------------------------------------------------------- */

/* The first of the stops that the clock has not reached; UINT64_MAX: none. */
static uint64_t next_stop(const struct pt_segment_stops *stops, uint64_t tsc)
{
	size_t lo = 0, hi = stops ? stops->count : 0;

	if (tsc == PT_CLOCK_UNKNOWN)
		return UINT64_MAX;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (stops->tsc[mid] <= tsc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return stops && lo < stops->count ? stops->tsc[lo] : UINT64_MAX;
}

/* The next packet that announces a VM entry or exit, in [from, end); end: none does. PIP: 02 43. */
static const uint8_t *find_transition(const struct pt_flow *f, const uint8_t *from, const uint8_t *end)
{
	struct pt_packet k;

	/* (memchr() is several times as fast as a search for both bytes.) */
	for (const uint8_t *p = from + 1; p < end && (p = memchr(p, 0x43, (size_t)(end - p))); p++)
		if (p[-1] == 0x02 && pt_packet_decode(p - 1, end, 0, &k) > 0 && k.type == PT_PIP &&
		    k.b != f->side.nr)
			return p - 1;
	return end;
}

/* Up to where the flow is fed at once, so that there is a checkpoint before what will need the environment: a
 * VM entry or exit, and a guest's PSB+, which has the guest's time. These are looked for from `from` on. */
static const uint8_t *next_checkpoint(const struct pt_segment_decoder *d, const uint8_t *at,
				      const uint8_t *from)
{
	const uint8_t *end = d->task->end - at > CHECKPOINT_BYTES ? at + CHECKPOINT_BYTES : d->task->end;
	const uint8_t *psb;

	end = find_transition(d->flow, from, end);
	psb = d->flow->side.nr && from < end ? pt_find_psb(from, end) : NULL;
	return psb ? psb : end;
}

/* Takes the packets of [*at, end), or some of them, into the segment. False: all of the task that can be
 * decoded was. */
static bool decode(struct pt_segment_decoder *d, const uint8_t **at, const uint8_t *end)
{
	const struct pt_segment_task *task = d->task;
	struct pt_flow *f = d->flow;
	uint64_t stop_tsc = next_stop(task->stops, f->clock.tsc);
	const uint8_t *before = *at;
	enum pt_flow_feed fed;

	f->stop_tsc = stop_tsc;
	f->user_wanted = f->unseen_wanted = false;
	fed = pt_flow_feed(f, before, end, task->aux_offset + (uint64_t)(before - task->psb), false, at);
	if ((pt_segment_user_unasked(d) || f->unseen_wanted) && !d->asked) {
		d->asked = true;
		d->asked_offset = task->aux_offset + (uint64_t)(before - task->psb);
	}
	if (d->ended || f->graph->full)
		return false;
	if (d->asked)
		return true;
	if (*at == before && fed == PT_FEED_MORE)
		return end != task->end; /* else a packet is longer than what was given of it */
	return add_checkpoint(d, *at, fed == PT_FEED_TIME ? stop_tsc : UINT64_MAX) &&
	       fed != PT_FEED_CACHE_FULL && (*at > before || end != task->end);
}

/* The environment was needed: the segment ends before that packet, and another one begins after it. Returns
 * where; NULL: none does. */
static const uint8_t *end_segment(struct pt_segment_decoder *d)
{
	const struct pt_segment_task *task = d->task;
	const uint8_t *packet = task->psb + (d->asked_offset - task->aux_offset);
	bool lost = d->lost;
	const uint8_t *at = return_to_checkpoint(d);

	/* A PSB+ is passed as a whole. */
	while (packet - at > REST_BYTES && !d->asked && pt_find_psb(at, packet) != at) {
		const uint8_t *before = at;

		if (!decode(d, &at, packet))
			return NULL;
		if (at == before)
			break;
	}
	if (d->asked)
		at = return_to_checkpoint(d);
	d->asked = true;
	d->lost = lost;
	return pt_segment_begin_next(d, at);
}

/* What follows a segment's begin, up to the task's end. */
static void go_on(struct pt_segment_decoder *d, const uint8_t *at)
{
	const struct pt_segment_task *task = d->task;
	const uint8_t *from = at;

	while (at && at < task->end) {
		const uint8_t *end = next_checkpoint(d, at, from);

		if (!decode(d, &at, end))
			return;
		from = at > end ? at : end + 1;
		if (d->asked)
			from = at = end_segment(d);
	}
}

#define FIRST_RUNS_MAX 65536

static size_t most_runs(const struct pt_segment *s)
{
	size_t most = 0;

	for (; s; s = s->next)
		most = s->run_count > most ? s->run_count : most;
	return most < FIRST_RUNS_MAX ? most : FIRST_RUNS_MAX;
}

/* Of the list, those that have something. */
static struct pt_segment *without_empty(struct pt_segment *first)
{
	struct pt_segment **at = &first;

	while (*at) {
		struct pt_segment *s = *at;

		if (s->checkpoint_count) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		s->next = NULL;
		pt_segment_destroy(s);
	}
	return first;
}

struct pt_segment *pt_segment_decode(struct pt_segment_decoder *d, const struct pt_segment_task *task)
{
	struct pt_segment *first;
	const uint8_t *begin;

	d->task = task;
	d->task_count++;
	d->segment = NULL;
	d->ended = false;
	begin = pt_segment_begin_task(d);
	first = d->segment;
	if (begin)
		go_on(d, begin);
	pt_flow_destroy(d->flow);
	d->flow = NULL;
	d->task = NULL;
	d->segment = NULL;
	first = without_empty(first);
	d->most_runs = most_runs(first);
	return first;
}
