/*
 * due.c - which streams have something to decode before a time: a heap of all streams, by the time up
 * to which each is decoded. See internal.h.
 *
 * Sideband records may be many between two packets of a stream, and most streams idle: for each record, only
 * those are fed that are not as far as it.
 */
#include <stdlib.h>

#include "decode/session/internal.h"
#include "schema/array.h"

static void put(struct due_streams *d, size_t i, struct stream *st)
{
	d->heap[i] = st;
	st->due_place = i;
}

static void sift_up(struct due_streams *d, size_t i)
{
	struct stream *st = d->heap[i];

	for (; i && d->heap[(i - 1) / 2]->decoded_tsc > st->decoded_tsc; i = (i - 1) / 2)
		put(d, i, d->heap[(i - 1) / 2]);
	put(d, i, st);
}

static void sift_down(struct due_streams *d, size_t i)
{
	struct stream *st = d->heap[i];

	for (size_t child; (child = 2 * i + 1) < d->count; i = child) {
		if (child + 1 < d->count && d->heap[child + 1]->decoded_tsc < d->heap[child]->decoded_tsc)
			child++;
		if (d->heap[child]->decoded_tsc >= st->decoded_tsc)
			break;
		put(d, i, d->heap[child]);
	}
	put(d, i, st);
}

int pt_session_due_add(struct session *s, struct stream *st, struct pt_error *e)
{
	struct due_streams *d = &s->due;

	if (pt_array_grow(&d->heap, d->count, &d->heap_room, e) < 0 ||
	    pt_array_grow(&d->now, d->count, &d->now_room, e) < 0)
		return -1;
	st->number = d->count;
	put(d, d->count++, st);
	sift_up(d, st->due_place);
	return 0;
}

void pt_session_due_set(struct session *s, struct stream *st, uint64_t decoded_tsc)
{
	st->decoded_tsc = decoded_tsc;
	sift_up(&s->due, st->due_place);
	sift_down(&s->due, st->due_place);
}

static int by_number(const void *a, const void *b)
{
	const struct stream *x = *(struct stream *const *)a, *y = *(struct stream *const *)b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Adds what is due at and below the heap's place i. All places above one that is due are due, too. */
static size_t collect(const struct due_streams *d, size_t i, uint64_t stop_tsc, bool all, size_t n)
{
	for (; i < d->count && (all || d->heap[i]->decoded_tsc < stop_tsc); i = 2 * i + 2) {
		d->now[n++] = d->heap[i];
		n = collect(d, 2 * i + 1, stop_tsc, all, n);
	}
	return n;
}

struct stream *const *pt_session_due(struct session *s, uint64_t stop_tsc, bool all, size_t *ret_count)
{
	struct due_streams *d = &s->due;

	*ret_count = collect(d, 0, stop_tsc, all, 0);
	if (*ret_count > 1)
		/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
		qsort(d->now, *ret_count, sizeof *d->now, by_number);
	return d->now;
}

void pt_session_due_deinit(struct session *s)
{
	free(s->due.heap);
	free(s->due.now);
}
