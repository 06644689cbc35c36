/* trim_streams.c - see trim_streams.h. */
#include "capture/container/trim_streams.h"
#include "schema/array.h"

#include <stdlib.h>
#include <string.h>

void trim_streams_deinit(struct trim_streams *s)
{
	free(s->all);
	*s = (struct trim_streams){0};
}

/* A PSB+ with a time. */
static void take_psb(struct trim_stream *s, const struct trim_range *range, uint64_t offset, size_t bytes,
		     uint64_t tsc)
{
	if (!s->timed)
		s->first_tsc = tsc;
	s->timed = true;
	if (tsc <= range->from_tsc) {
		s->at[0] = s->at[1];
		s->at_tsc[0] = s->at_tsc[1];
		s->at[1] = offset;
		s->at_tsc[1] = tsc;
		s->at_count += s->at_count < 2;
	} else if (tsc >= range->to_tsc && s->after_count < 2) {
		s->after_count++;
		s->to = offset + bytes;
		s->to_tsc = tsc;
	}
}

/* Looks for PSBs in the tail. Returns how many of its bytes need not be looked at again. */
static size_t search_tail(struct trim_stream *s, const struct trim_range *range)
{
	size_t at = 0;

	while (at < s->tail_bytes) {
		const uint8_t *q = memchr(s->tail + at, 0x02, s->tail_bytes - at);
		uint64_t tsc;
		int r;

		if (!q)
			return s->tail_bytes;
		at = (size_t)(q - s->tail);
		if (!pt_may_be_psb(q, s->tail_bytes - at)) {
			at++;
			continue;
		}
		r = s->tail_bytes - at < PT_PSB_BYTES ? -1 : pt_psb_plus(q, s->tail_bytes - at, &tsc);
		if (r < 0 && at == 0 && s->tail_bytes == sizeof s->tail)
			r = 0;
		if (r < 0)
			return at; /* with more bytes it may be one */
		if (r > 0)
			take_psb(s, range, s->tail_offset + at, (size_t)r, tsc);
		at += PT_PSB_BYTES;
	}
	return at < s->tail_bytes ? at : s->tail_bytes;
}

/* Looks for PSBs in the tail and n more bytes. */
static void scan(struct trim_stream *s, const uint8_t *p, size_t n, uint64_t offset,
		 const struct trim_range *range)
{
	if (s->tail_bytes && s->tail_offset + s->tail_bytes != offset)
		s->tail_bytes = 0;
	while (n) {
		/* The tail grows by what has room, is searched, and keeps what may go on. */
		size_t k = sizeof s->tail - s->tail_bytes, done;

		if (k > n)
			k = n;
		if (s->tail_bytes == 0)
			s->tail_offset = offset;
		memcpy(s->tail + s->tail_bytes, p, k);
		s->tail_bytes += k;
		p += k;
		offset += k;
		n -= k;
		done = search_tail(s, range);
		memmove(s->tail, s->tail + done, s->tail_bytes - done);
		s->tail_bytes -= done;
		s->tail_offset += done;
	}
}

int trim_streams_take(struct trim_streams *s, const struct ptc_chunk *c, const struct trim_range *range,
		      bool first_only, struct pt_error *e)
{
	struct trim_stream *one;
	struct ptc_aux aux;

	if (c->type == PTC_STREAM) {
		if (pt_array_grow(&s->all, s->count, &s->room, e))
			return -1;
		memset(&s->all[s->count++], 0, sizeof *s->all);
		return 0;
	}
	if (c->type != PTC_AUX || c->stream == 0 || c->stream > s->count)
		return 0;
	one = &s->all[c->stream - 1];
	if (first_only && one->timed)
		return 0;
	if (ptc_parse_aux(c, &aux, e))
		return -1;
	scan(one, aux.bytes, aux.size, aux.aux_offset, range);
	return 0;
}

uint64_t trim_streams_first_tsc(const struct trim_streams *s)
{
	uint64_t ret = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->all[i].timed && (!ret || s->all[i].first_tsc < ret))
			ret = s->all[i].first_tsc;
	return ret;
}

bool trim_streams_cut(struct trim_streams *s, struct trim_range *ret)
{
	bool any = false;

	*ret = (struct trim_range){.from_tsc = UINT64_MAX};
	for (size_t i = 0; i < s->count; i++) {
		struct trim_stream *one = &s->all[i];
		unsigned first = one->at_count == 2 ? 0 : 1;
		uint64_t start = one->at_count ? one->at_tsc[first] : one->first_tsc;

		one->from = one->at_count ? one->at[first] : 0;
		if (one->after_count < 2)
			one->to = one->to_tsc = UINT64_MAX;
		if (!one->timed) { /* nothing says when it was */
			one->to = one->from;
			continue;
		}
		any |= one->from < one->to;
		if (start < ret->from_tsc)
			ret->from_tsc = start;
		if (one->to_tsc > ret->to_tsc)
			ret->to_tsc = one->to_tsc;
	}
	return any;
}

int trim_streams_copy(const struct trim_streams *s, struct ptc_writer *w, const struct ptc_chunk *c,
		      struct pt_error *e)
{
	const struct trim_stream *one;
	struct ptc_aux a;
	uint64_t from, to;

	if (ptc_parse_aux(c, &a, e))
		return -1;
	if (c->stream == 0 || c->stream > s->count)
		return 0;
	one = &s->all[c->stream - 1];
	from = a.aux_offset < one->from ? one->from : a.aux_offset;
	to = a.aux_offset + a.size > one->to ? one->to : a.aux_offset + a.size;
	if (from >= to)
		return 0;
	/* What was lost after the piece was not lost before its end. */
	if (to < a.aux_offset + a.size)
		a.flags &= ~(uint64_t)PTC_AUX_TRUNCATED;
	a.bytes += from - a.aux_offset;
	a.aux_offset = from;
	a.size = to - from;
	return ptc_put_aux(w, c->stream, &a, e);
}
