/*
 * seek.c - the AUX data of a time, found in a container that is a file without reading what is before and
 * after it (options.from_psb). See internal.h.
 *
 * Of each stream those chunks are read that may have what is selected: from the last one that begins a PSB+
 * not later than the time's beginning, up to the first one whose first PSB+ is later than its end, which
 * may begin with what is before that. Chunks in which no PSB+ says the host's time (the CPU was in a guest
 * throughout) are taken with the one before them.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/session/internal.h"
#include "decode/session/psb_time.h"
#include "schema/array.h"

/* The TSC of the first PSB+ of the chunk; UINT64_MAX: none counts, or it cannot be read. */
static uint64_t first_tsc(struct session *s, const struct ptc_aux_at *at)
{
	struct pt_error ignored = {0};
	struct ptc_chunk c;
	struct ptc_aux aux;

	if (ptc_read_at(s->seek.reader, at->offset, &c, &ignored) < 0 ||
	    ptc_parse_aux(&c, &aux, &ignored) < 0)
		return UINT64_MAX;
	return pt_psb_time_first(aux.bytes, aux.size);
}

/*
 * The last of a stream's chunks [low, high) whose first PSB+ is not later than tsc; low if there is none. A
 * chunk without a time is as the next before it that has one.
 */
static size_t last_not_later(struct session *s, const struct ptc_aux_at *list, size_t low, size_t high,
			     uint64_t tsc)
{
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2, at = middle;
		uint64_t t = first_tsc(s, &list[at]);

		while (t == UINT64_MAX && at > low + 1)
			t = first_tsc(s, &list[--at]);
		if (t == UINT64_MAX || t > tsc)
			high = at;
		else
			low = middle;
	}
	return low;
}

static int by_stream(const void *a, const void *b)
{
	const struct ptc_aux_at *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int add_part(struct session *s, const struct ptc_aux_at *list, size_t begin, size_t end,
		    struct pt_error *e)
{
	struct seek *k = &s->seek;
	size_t first = last_not_later(s, list, begin, end, k->from_tsc);
	size_t last = last_not_later(s, list, first, end, k->until_tsc);

	/* Up to where a time after the end is seen. */
	while (last + 1 < end && first_tsc(s, &list[++last]) == UINT64_MAX)
		;
	if (pt_array_grow(&k->parts, k->part_count, &k->part_room, e) < 0)
		return -1;
	k->parts[k->part_count++] = (struct seek_part){.stream = list[begin].stream,
						       .first_offset = list[first].offset,
						       .last_offset = list[last].offset};
	return 0;
}

static int find_parts(struct session *s, struct pt_error *e)
{
	struct ptc_aux_at *list;
	size_t count, end;
	int r = 0;

	if (ptc_aux_list(s->seek.reader, &list, &count, e) < 0)
		return -1;
	qsort(list, count, sizeof *list, by_stream);
	for (size_t begin = 0; r == 0 && begin < count; begin = end) {
		for (end = begin; end < count && list[end].stream == list[begin].stream; end++)
			;
		r = add_part(s, list, begin, end, e);
	}
	free(list);
	return r;
}

/* False: all is to be read. */
static bool bounds(struct session *s)
{
	const struct pt_selection *selection = &s->selected.selection;
	struct seek *k = &s->seek;

	if (selection->from.relative || selection->to.relative || s->timeless)
		return false;
	k->from_tsc = selection->from.given ? pt_time_bound_tsc(&selection->from, &s->perf_clock, 0) : 0;
	k->until_tsc =
	    selection->to.given ? pt_time_bound_tsc(&selection->to, &s->perf_clock, 0) : UINT64_MAX;
	return k->from_tsc != UINT64_MAX;
}

static bool skip(void *arg, uint32_t stream, uint64_t offset)
{
	struct session *s = arg;
	struct seek *k = &s->seek;
	struct pt_error ignored = {0};

	if (!k->planned) {
		k->planned = true; /* META is complete: it comes first */
		if (!bounds(s) || find_parts(s, &ignored) < 0)
			k->part_count = 0;
	}
	for (size_t i = 0; i < k->part_count; i++)
		if (k->parts[i].stream == stream)
			return offset < k->parts[i].first_offset || offset > k->parts[i].last_offset;
	return false;
}

void pt_session_seek(struct session *s, struct ptc_reader *r)
{
	s->seek.reader = r;
	ptc_reader_skip(r, skip, s);
}

bool pt_session_seek_done(const struct session *s)
{
	return s->seek.part_count && s->selected.after_end;
}

void pt_session_seek_deinit(struct session *s)
{
	free(s->seek.parts);
}
