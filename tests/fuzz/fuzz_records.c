/*
 * fuzz_records.c - a record stream, read. The first byte odd: as it is. Even: the rest is blocks, each u16 size and
 * records, and is given its headers and checksums here.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "schema/records.h"
#include "schema/records_format.h"
#include "tests/fuzz/fuzz.h"

static void put(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		abort();
}

static void put_blocks(int fd, const uint8_t *p, const uint8_t *end)
{
	uint8_t h[PTR_HEADER_BYTES];

	memcpy(h, PTR_MAGIC, 8);
	ptr_store_u16(h + 8, PTR_MAJOR);
	ptr_store_u16(h + 10, PTR_MINOR);
	ptr_store_u32(h + 12, (uint32_t)crc32(0, h, 12));
	put(fd, h, sizeof h);
	for (uint32_t number = 0; end - p > 2; number++) {
		uint8_t b[PTR_BLOCK_HEADER_BYTES];
		uint32_t n = ptr_load_u16(p);

		if (n > end - p - 2)
			n = (uint32_t)(end - p - 2);
		memcpy(b, PTR_BLOCK_MAGIC, 4);
		ptr_store_u32(b + 4, number);
		ptr_store_u32(b + 8, n);
		ptr_store_u32(b + 12, (uint32_t)crc32(0, p + 2, n));
		ptr_store_u32(b + 16, (uint32_t)crc32(0, b, 16));
		put(fd, b, sizeof b);
		put(fd, p + 2, n);
		p += 2 + n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptr_reader *reader;
	struct ptr_record record;
	struct pt_error e;
	int fd, n;

	if (!size)
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	if (data[0] & 1)
		put(fd, data + 1, size - 1);
	else
		put_blocks(fd, data + 1, data + size);
	lseek(fd, 0, SEEK_SET);
	reader = ptr_reader_create(fd, &e);
	while (reader && (n = ptr_next(reader, &record, &e)) != 0) {
		if (n < 0) {
			if (!e.message[0] || ptr_next(reader, &record, &e) >= 0)
				abort();
			break;
		}
		/* What the reader promises to have checked. */
		if (record.type == PTR_PATH && record.path.count > PTR_PATH_EDGES)
			abort();
		if (record.type == PTR_RUN && (!record.run.slice || !record.run.path || !record.run.repeats))
			abort();
		if (record.type == PTR_EVENT &&
		    strlen(record.event.name) + strlen(record.event.fields) > size)
			abort();
	}
	ptr_reader_destroy(reader);
	close(fd);
	return 0;
}
