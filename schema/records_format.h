/*
 * records_format.h - what the record stream's writer and reader share: see records.h for the format.
 */
#ifndef SCHEMA_RECORDS_FORMAT_H
#define SCHEMA_RECORDS_FORMAT_H

#include <stdint.h>

#include "schema/leb128.h"
#include "schema/records.h"

#define PTR_MAGIC	"\x89PTR\r\n\x1a\n"
#define PTR_MAJOR	11
#define PTR_MINOR	0
#define PTR_BLOCK_MAGIC "PTRB"

enum {
	PTR_HEADER_BYTES = 16,
	PTR_BLOCK_HEADER_BYTES = 20,
	PTR_RUN_MASK = 0x0f, /* of a record's first byte: PTR_RUN + enum ptr_timing, and the rest are flags */
	PTR_RUN_SLICE = 0x10,
	PTR_RUN_TSC = 0x20,
	PTR_RUN_REPEATS = 0x40,
	PTR_RUN_CYC = 0x80,
	/* Of a CALL's first number, and how far its flags are shifted */
	PTR_CALL_FROM_ZERO = 1,
	PTR_CALL_STACK = 2,
	PTR_CALL_SHIFT = 2
};

/* Whether a record's first byte is a RUN's. */
static inline int ptr_is_run(uint8_t byte)
{
	return (uint8_t)((byte & PTR_RUN_MASK) - PTR_RUN) < PTR_TIMINGS;
}

static inline void ptr_store_u16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void ptr_store_u32(uint8_t *p, uint32_t v)
{
	ptr_store_u16(p, v);
	ptr_store_u16(p + 2, v >> 16);
}

static inline uint32_t ptr_load_u16(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t ptr_load_u32(const uint8_t *p)
{
	return ptr_load_u16(p) | ptr_load_u16(p + 2) << 16;
}

#endif
