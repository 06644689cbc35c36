/* aux_sample.c - see aux_sample.h. */
#include "capture/pt/aux_sample.h"
#include "capture/pt/packet_len.h"

#include <stdlib.h>
#include <string.h>

bool aux_sample_has_time(const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	uint64_t tsc;

	while ((p = memmem(p, (size_t)(end - p), "\x02\x82\x02\x82", 4))) {
		if (pt_is_psb(p, (size_t)(end - p)) && pt_psb_tsc(p, (size_t)(end - p), &tsc))
			return true;
		p++;
	}
	return false;
}

/*
 * The length of the longest beginning of b that is an end of a. By Knuth, Morris and Pratt's algorithm, since
 * both may be the same few bytes over and over: border[i] is the length of the longest beginning of b[0..i],
 * shorter than it, that is its end, too.
 */
static size_t overlap(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes, uint16_t *border)
{
	size_t k = 0;

	border[0] = 0;
	for (size_t i = 1; i < b_bytes; i++) {
		while (k && b[i] != b[k])
			k = border[k - 1];
		k += b[i] == b[k];
		border[i] = (uint16_t)k;
	}
	k = 0;
	for (size_t i = a_bytes > b_bytes ? a_bytes - b_bytes : 0; i < a_bytes; i++) {
		while (k && a[i] != b[k])
			k = border[k - 1];
		k += a[i] == b[k];
	}
	return k;
}

/* Keeps the sample, to compare the next one with it. */
static int keep(struct aux_sample *s, const uint8_t *bytes, size_t n, struct pt_error *e)
{
	if (n > s->last_room) {
		uint8_t *grown = realloc(s->last, n);

		if (!grown)
			return pt_fail_no_memory(e, "AUX samples");
		s->last = grown;
		s->last_room = n;
	}
	if (n)
		memcpy(s->last, bytes, n);
	s->last_bytes = n;
	return 0;
}

int aux_sample_next(struct aux_sample *s, const uint8_t *bytes, size_t n, size_t *ret_known,
		    uint64_t *ret_offset, struct pt_error *e)
{
	uint16_t *border = malloc((n + 1) * sizeof *border);
	size_t known;
	int ret;

	if (!border)
		return pt_fail_no_memory(e, "AUX samples");
	known = n && s->last_bytes ? overlap(s->last, s->last_bytes, bytes, n, border) : 0;
	free(border);
	/* Where all that they have in common has no time, less of it has none either. */
	if (!aux_sample_has_time(bytes, known))
		known = 0;
	ret = keep(s, bytes, n, e);
	if (ret)
		return ret;
	if (known == 0 && s->end)
		s->end += AUX_SAMPLE_GAP;
	*ret_known = known;
	*ret_offset = s->end;
	s->end += n - known;
	return 0;
}

void aux_sample_deinit(struct aux_sample *s)
{
	free(s->last);
	*s = (struct aux_sample){0};
}
