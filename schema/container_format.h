/*
 * container_format.h - constants and numbers that container_write.c and container_read.c share;
 * private to them. The format itself is described in container.h.
 */
#ifndef SCHEMA_CONTAINER_FORMAT_H
#define SCHEMA_CONTAINER_FORMAT_H

#include <stdint.h>
#include <string.h>

#include "schema/bytes.h"

#define PTC_FILE_MAGIC	"\x89PTC\r\n\x1a\n" /* 8 bytes */
#define PTC_CHUNK_MAGIC "PTCK"
#define PTC_INDEX_MAGIC "PTCINDEX"
#define PTC_MAJOR	1
#define PTC_MINOR	3

/* Payload bytes before the variable part. */
#define PTC_AUX_HEAD	  32
#define PTC_SIDEBAND_HEAD 8
#define PTC_STREAM_BYTES  24
#define PTC_SYMBOL_BYTES  24
#define PTC_INDEX_BYTES	  32
#define PTC_END_BYTES	  24
#define PTC_INDEX_TAIL	  16

/* The machine is little endian (x86-64), as the format is. */
static inline uint16_t ptc_get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline uint8_t *ptc_set16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof v);
	return p + sizeof v;
}

static inline uint8_t *ptc_set32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof v);
	return p + sizeof v;
}

static inline uint8_t *ptc_set64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof v);
	return p + sizeof v;
}

#endif
