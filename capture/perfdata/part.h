/*
 * part.h - the records of one file, one after the other: of a perf.data, or of one of the files that `perf
 * record --threads` makes.
 *
 * Records that perf has compressed (PERF_RECORD_COMPRESSED and _COMPRESSED2, zstd) are delivered unpacked.
 * Memory: one buffer, and 1 MB more for compressed records.
 */
#ifndef CAPTURE_PERFDATA_PART_H
#define CAPTURE_PERFDATA_PART_H

#include "capture/perfdata/record.h"
#include "schema/error.h"

#include <zstd.h>

struct perf_part {
	const char *path; /* for messages; the owner's */
	int fd;		  /* closed by perf_part_close(), but for standard input */
	uint32_t number;
	uint64_t begin, end; /* of its records */
	uint64_t at;	     /* offset of the next record */
	bool done;	     /* the owner's: perf_part_next() has returned 0 */
	size_t buffer_room;  /* at least a record's 64 KB */
	uint8_t *buffer;
	uint64_t buffer_at; /* offset of buffer[0] */
	size_t buffer_bytes;
	/* Of compressed records: what is unpacked and not delivered, and what is still packed. */
	ZSTD_DCtx *zstd;
	uint8_t *unpacked, *packed;
	size_t unpacked_at, unpacked_bytes;
	ZSTD_inBuffer in;
	bool more;		/* zstd may hold bytes that it has not delivered */
	uint64_t packed_offset; /* of the compressed record in the file */
};

/*
 * The next record: 1 and *ret filled; 0 at the end; -1: PT_ERR_BAD_INPUT and PT_ERR_TRUNCATED (offset says
 * where; what came before was good), PT_ERR_IO, PT_ERR_NO_MEMORY.
 */
int perf_part_next(struct perf_part *p, struct perf_record *ret, struct pt_error *e);

/* Back to the first record. */
void perf_part_rewind(struct perf_part *p);

/*
 * Reads the n bytes at offset; what: for the message when they are not all there. 0, or -1: PT_ERR_TRUNCATED,
 * PT_ERR_IO.
 */
int perf_part_read(const struct perf_part *p, uint64_t offset, void *to, size_t n, const char *what,
		   struct pt_error *e);

void perf_part_close(struct perf_part *p);

#endif
