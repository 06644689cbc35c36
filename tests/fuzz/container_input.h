/*
 * container_input.h - a harness's input as a container.
 *
 * The first byte odd: the rest is a container as it is. Even: the rest is chunks, each u8 type, u8
 * stream, u16 size, payload, and is given its header, frame and checksums here; so that what is
 * after those is reached.
 */
#ifndef FUZZ_CONTAINER_INPUT_H
#define FUZZ_CONTAINER_INPUT_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "schema/container.h"
#include "schema/container_format.h"

static inline void fuzz_put(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		abort();
}

static inline void fuzz_put_chunk(int fd, uint32_t number, unsigned type, uint32_t stream, const uint8_t *p,
				  size_t n)
{
	static uint8_t frame[ZSTD_COMPRESSBOUND(65536)];
	uint8_t h[PTC_CHUNK_HEADER_BYTES] = {0};
	ZSTD_CCtx *z = ZSTD_createCCtx();
	size_t stored;

	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
	stored = ZSTD_compress2(z, frame, sizeof frame, p, n);
	ZSTD_freeCCtx(z);
	memcpy(h, PTC_CHUNK_MAGIC, 4);
	ptc_set16(h + 4, (uint16_t)type);
	ptc_set32(h + 8, stream);
	ptc_set32(h + 12, number);
	ptc_set64(h + 16, stored);
	ptc_set64(h + 24, n);
	ptc_set32(h + 36, (uint32_t)crc32(0, h, 36));
	fuzz_put(fd, h, sizeof h);
	fuzz_put(fd, frame, stored);
}

static inline void fuzz_put_chunks(int fd, const uint8_t *p, const uint8_t *end)
{
	uint8_t h[PTC_FILE_HEADER_BYTES] = {0}, last[PTC_END_BYTES] = {0};
	uint32_t number = 0;

	memcpy(h, PTC_FILE_MAGIC, 8);
	ptc_set16(h + 8, PTC_MAJOR);
	ptc_set16(h + 10, PTC_MINOR);
	ptc_set32(h + 12, (uint32_t)crc32(0, h, 12));
	fuzz_put(fd, h, sizeof h);
	for (; end - p >= 4; number++) {
		size_t n = ptc_get16(p + 2);

		if (n > (size_t)(end - p - 4))
			n = (size_t)(end - p - 4);
		fuzz_put_chunk(fd, number, p[0], p[1], p + 4, n);
		p += 4 + n;
	}
	ptc_set64(last, number);
	fuzz_put_chunk(fd, number, PTC_END, 0, last, sizeof last);
}

/* A file without a name that holds it, from its beginning. size >= 1. */
static inline int fuzz_container(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	if (data[0] & 1)
		fuzz_put(fd, data + 1, size - 1);
	else
		fuzz_put_chunks(fd, data + 1, data + size);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

#endif
