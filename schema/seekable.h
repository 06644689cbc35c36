/*
 * seekable.h - files in zstd's seekable format: frames that decompress alone, and a table of them at the end.
 * `zstd -d` unpacks such a file, to whom the table is a frame to skip.
 *
 * Rules: facebook/zstd, contrib/seekable_format/zstd_seekable_compression_format.md, version 0.1.0. What of a
 * frame its own checksum covers is checked; checksums in the table are passed over.
 */
#ifndef SCHEMA_SEEKABLE_H
#define SCHEMA_SEEKABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

enum {
	PT_SEEKABLE_FRAME_BYTES = 1 << 17,	/* unpacked, in what pt_seekable_write() writes */
	PT_SEEKABLE_FRAME_BYTES_MAX = 64 << 20, /* in what is read */
	PT_SEEKABLE_LEVEL = 3,
	PT_SEEKABLE_LEVEL_MAX = 19
};

/* ---- Reading ---- */

struct pt_seekable;

/* Whether the file begins and ends as these files do. False, too, when it cannot be read. */
bool pt_seekable_is(const char *path);

/*
 * Opens the file. For pt_seekable_close(). NULL: PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (the table is
 * damaged or does not fit the file, or a frame has more than PT_SEEKABLE_FRAME_BYTES_MAX; offset says where).
 * It takes 16 bytes a frame, and some 8 MB or the two largest frames.
 */
struct pt_seekable *pt_seekable_open(const char *path, struct pt_error *e);
void pt_seekable_close(struct pt_seekable *s); /* NULL is fine */

/* Of what is packed. */
uint64_t pt_seekable_bytes(const struct pt_seekable *s);

/*
 * Copies n bytes from offset on, which are there. The frames that were used last are remembered. 0, or -1:
 * PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (the frame at offset is damaged), PT_ERR_TRUNCATED (the file
 * has become shorter).
 */
int pt_seekable_read(struct pt_seekable *s, void *to, size_t n, uint64_t offset, struct pt_error *e);

/* ---- Writing ---- */

struct pt_seekable_options {
	int level;	  /* zstd's, 1 to PT_SEEKABLE_LEVEL_MAX */
	unsigned threads; /* that may work, the caller's is one. What is written is the same */
	/* Asked by the caller's thread after its frames and before the file is complete; true: it fails with
	 * PT_ERR_REFUSED. NULL: nothing is. */
	bool (*interrupted)(void *arg);
	void *arg;
};

/* Packs the file `from`, of `bytes`, into the empty file `to`: regular files. 0, or -1: PT_ERR_IO,
 * PT_ERR_NO_MEMORY, PT_ERR_REFUSED. */
int pt_seekable_write(int to, int from, uint64_t bytes, const struct pt_seekable_options *options,
		      struct pt_error *e);

#endif
