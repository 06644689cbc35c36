/*
 * record.h - one record of a perf.data: a struct perf_event_header (linux/perf_event.h) and the body after
 * it, as the kernel or the perf tool wrote it. Types below 64 are the kernel's, the others are perf's own
 * (perf_user.h).
 */
#ifndef CAPTURE_PERFDATA_RECORD_H
#define CAPTURE_PERFDATA_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

struct perf_record {
	const uint8_t *bytes; /* header first; the reader's, valid until it reads the next record */
	uint32_t type;	      /* type, misc, size: the header's */
	uint16_t misc, size;
	uint32_t part;	 /* number of the file that it is in: several with `perf record --threads` */
	uint64_t offset; /* in that file; of the PERF_RECORD_COMPRESSED that holds it, if one does */
	/*
	 * AUXTRACE and TRACING_DATA are followed by bytes that their size does not cover: where in the file,
	 * how many.
	 */
	uint64_t tail_offset, tail_bytes;
};

/* PERF_RECORD_MMAP or PERF_RECORD_MMAP2, without what no one asks for. */
struct perf_mmap {
	int32_t pid; /* -1: the kernel, or one of its modules */
	uint64_t start, bytes;
	uint64_t offset; /* in the file; of the kernel itself: the address of the symbol in its name */
	bool executable;
	const uint8_t *build_id; /* build_id_bytes of them, at most 20; NULL: the record has none */
	uint32_t build_id_bytes;
	const char *name; /* in the record; NUL or name_bytes end it */
	size_t name_bytes;
};

/* Takes the size bytes of a record apart. False: it is no mapping, or too short for one. */
bool perf_mmap_read(const uint8_t *record, size_t size, struct perf_mmap *ret);

#endif
