/*
 * records_draft.h - a block of records that is encoded later: the RUNs as they were given, all else
 * encoded. To write a draft costs a copy, and its encoding can be left to another thread.
 *
 *     draft   (RUN, struct ptr_run | ENCODED, bytes as u32, bytes)...
 *
 * Private to the writer: records_write.c fills drafts, records_blocks.c encodes them.
 */
#ifndef SCHEMA_RECORDS_DRAFT_H
#define SCHEMA_RECORDS_DRAFT_H

#include <stdint.h>
#include <string.h>

#include "schema/records.h"

enum { PTR_DRAFT_RUN, PTR_DRAFT_ENCODED };
enum { PTR_DRAFT_HEAD = 5 }; /* of ENCODED: before the bytes */

static inline uint8_t *ptr_draft_run(uint8_t *p, const struct ptr_run *r)
{
	*p = PTR_DRAFT_RUN;
	memcpy(p + 1, r, sizeof *r);
	return p + 1 + sizeof *r;
}

/* The draft's block, which has room for PTR_BLOCK_MAX bytes: its bytes. */
uint32_t ptr_draft_encode(const uint8_t *draft, uint32_t draft_bytes, uint8_t *block);

#endif
