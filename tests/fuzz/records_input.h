/*
 * records_input.h - a harness's input as a record stream. The first byte odd: as it is. Even: the
 * rest is blocks, each u16 size and records, and is given its headers and checksums here.
 */
#ifndef FUZZ_RECORDS_INPUT_H
#define FUZZ_RECORDS_INPUT_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "schema/crc32c.h"
#include "schema/records.h"
#include "schema/records_format.h"

static inline void fuzz_put(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		abort();
}

static inline void fuzz_put_blocks(int fd, const uint8_t *p, const uint8_t *end)
{
	uint8_t h[PTR_HEADER_BYTES];

	memcpy(h, PTR_MAGIC, 8);
	ptr_store_u16(h + 8, PTR_MAJOR);
	ptr_store_u16(h + 10, PTR_MINOR);
	ptr_store_u32(h + 12, (uint32_t)crc32(0, h, 12));
	fuzz_put(fd, h, sizeof h);
	for (uint32_t number = 0; end - p > 2; number++) {
		uint8_t b[PTR_BLOCK_HEADER_BYTES];
		uint32_t n = ptr_load_u16(p);

		if (n > end - p - 2)
			n = (uint32_t)(end - p - 2);
		memcpy(b, PTR_BLOCK_MAGIC, 4);
		ptr_store_u32(b + 4, number);
		ptr_store_u32(b + 8, n);
		ptr_store_u32(b + 12, ptc_crc32c(p + 2, n));
		ptr_store_u32(b + 16, (uint32_t)crc32(0, b, 16));
		fuzz_put(fd, b, sizeof b);
		fuzz_put(fd, p + 2, n);
		p += 2 + n;
	}
}

/* A file without a name that holds it, from its beginning. size >= 1. */
static inline int fuzz_records(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	if (data[0] & 1)
		fuzz_put(fd, data + 1, size - 1);
	else
		fuzz_put_blocks(fd, data + 1, data + size);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

#endif
