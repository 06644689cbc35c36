/* bytes.h - numbers at any address of what this machine, or perf on one like it, has written: little
 * endian, as they lie. */
#ifndef SCHEMA_BYTES_H
#define SCHEMA_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint32_t u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline uint64_t u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

#endif
