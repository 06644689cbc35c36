/*
 * fuzz_container.c - a container, read and decoded.
 *
 * The first byte odd: the rest is a container as it is. Even: the rest is chunks, each u8 type, u8 stream, u16 size,
 * payload, and is given its header, frame and checksums here; so that what is behind those is reached.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "decode/session.h"
#include "schema/container_format.h"
#include "tests/fuzz/fuzz.h"

static void put(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		abort();
}

static void put_chunk(int fd, uint32_t number, unsigned type, uint32_t stream, const uint8_t *p, size_t n)
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
	put(fd, h, sizeof h);
	put(fd, frame, stored);
}

static void put_chunks(int fd, const uint8_t *p, const uint8_t *end)
{
	uint8_t h[PTC_FILE_HEADER_BYTES] = {0}, last[PTC_END_BYTES] = {0};
	uint32_t number = 0;

	memcpy(h, PTC_FILE_MAGIC, 8);
	ptc_set16(h + 8, PTC_MAJOR);
	ptc_set16(h + 10, PTC_MINOR);
	ptc_set32(h + 12, (uint32_t)crc32(0, h, 12));
	put(fd, h, sizeof h);
	for (; end - p >= 4; number++) {
		size_t n = ptc_get16(p + 2);

		if (n > (size_t)(end - p - 4))
			n = (size_t)(end - p - 4);
		put_chunk(fd, number, p[0], p[1], p + 4, n);
		p += 4 + n;
	}
	ptc_set64(last, number);
	put_chunk(fd, number, PTC_END, 0, last, sizeof last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pt_session_options options = {.calls = true, .definitions = true, .stats = true};
	struct pt_session_result result;
	struct ptc_reader *reader;
	struct ptr_writer *writer;
	struct pt_error e;
	int fd;

	if (!size)
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	if (data[0] & 1)
		put(fd, data + 1, size - 1);
	else
		put_chunks(fd, data + 1, data + size);
	lseek(fd, 0, SEEK_SET);
	reader = ptc_reader_create(fd, &e);
	if (reader) {
		writer = ptr_writer_create(-1, &e);
		if (!writer)
			abort();
		if (pt_session_run(reader, writer, &options, &result, &e) < 0 && !e.message[0])
			abort();
		ptr_writer_destroy(writer);
	}
	ptc_reader_destroy(reader);
	close(fd);
	return 0;
}
