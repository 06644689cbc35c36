/* records_draft.c - see records_draft.h. */
#include "schema/records_draft.h"

#include "schema/records_encode.h"

uint32_t ptr_draft_encode(const uint8_t *draft, uint32_t draft_bytes, uint8_t *block)
{
	struct ptr_previous previous = {0};
	const uint8_t *at = draft, *end = draft + draft_bytes;
	uint8_t *p = block;
	struct ptr_run run;
	uint32_t n;

	while (at < end)
		switch (*at++) {
		case PTR_DRAFT_RUN:
			memcpy(&run, at, sizeof run);
			p = put_run(&previous, p, &run);
			at += sizeof run;
			break;
		default:
			n = ptr_load_u32(at);
			memcpy(p, at + 4, n);
			p += n;
			at += 4 + n;
		}
	return (uint32_t)(p - block);
}
