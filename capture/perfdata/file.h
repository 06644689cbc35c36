/*
 * file.h - reads a perf.data: its header, what it says about its recording, and its records one after the
 * other.
 *
 * The format is that of perf's util/header.h and perf.data-file-format.txt. `perf record` writes a header of
 * 104 bytes, a data section and features after it. In pipe mode there is a header of 16 bytes and then only
 * records, which also carry events and features. A directory (`perf record --kcore`, `--threads`) is read as
 * its files data and data.0, data.1... (part.h).
 *
 * Memory: a few MB (of --threads, as much for each file with compressed records) and what the features need,
 * for a file of any size. AUX bytes are not read with the records, which say where they are. What cannot seek
 * is copied to an unnamed file in $TMPDIR (/tmp) first.
 */
#ifndef CAPTURE_PERFDATA_FILE_H
#define CAPTURE_PERFDATA_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/perfdata/description.h"
#include "capture/perfdata/record.h"
#include "schema/error.h"

struct perf_file {
	char *path;	 /* of the data file, for messages */
	char *directory; /* of the directory form; NULL */
	struct perf_description description;
	uint32_t parts;	 /* files with records: several with `perf record --threads` */
	bool unfinished; /* perf was killed: the header does not know the data's size */
	struct perf_reader *reader;
};

/*
 * Opens path: a file, a directory, "-" for standard input. Reads header and features. *ret is to be closed
 * when this succeeds. 0, or -1: PT_ERR_IO; PT_ERR_BAD_INPUT (no perf.data, of another byte order, or broken:
 * offset says where); PT_ERR_TRUNCATED; PT_ERR_NO_MEMORY.
 */
int perf_file_open(struct perf_file *ret, const char *path, struct pt_error *e);
void perf_file_close(struct perf_file *f); /* a zeroed one is fine */

/*
 * The next record, in the file's order: 1 and *ret filled; 0 at the end; -1: PT_ERR_BAD_INPUT and
 * PT_ERR_TRUNCATED (offset says where; what came before was good), PT_ERR_IO, PT_ERR_NO_MEMORY. Records that
 * describe the recording (events, features, AUXTRACE_INFO...) are taken into the description on the first
 * pass, and delivered as well.
 */
int perf_file_next(struct perf_file *f, struct perf_record *ret, struct pt_error *e);
/*
 * The next record is to come from that part. False, and nothing changes: it has no more. Without this, one
 * part is read after the other.
 */
bool perf_file_turn_to(struct perf_file *f, uint32_t part);
/* Back to the first record. Further passes take nothing into the description. */
void perf_file_rewind(struct perf_file *f);

/* Reads n bytes of AUX data at offset of part. 0, or -1: PT_ERR_TRUNCATED, PT_ERR_IO. */
int perf_file_read_aux(const struct perf_file *f, uint32_t part, uint64_t offset, void *to, size_t n,
		       struct pt_error *e);

#endif
