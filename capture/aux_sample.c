/* aux_sample.c - see aux_sample.h. */
#include "capture/aux_sample.h"
#include "capture/pt_packet_len.h"

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

int aux_sample_next(struct aux_sample *s, const uint8_t *bytes, size_t n, size_t *ret_known,
		    uint64_t *ret_offset, struct pt_error *e)
{
	size_t known = n < s->last_bytes ? n : s->last_bytes;

	if (!s->last && !(s->last = malloc(UINT16_MAX)))
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for AUX samples");
	for (; known > 0; known--)
		if (memcmp(bytes, s->last + s->last_bytes - known, known) == 0 &&
		    aux_sample_has_time(bytes, known))
			break;
	if (known == 0 && s->last_bytes)
		s->end += AUX_SAMPLE_GAP;
	memcpy(s->last, bytes, n);
	s->last_bytes = n;
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
