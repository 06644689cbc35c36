/*
 * spool.h - bytes that are written one after another and later read once in that order, through a scratch file: memory
 * stays flat. What fits the buffer never sees the file.
 */
#ifndef EXPORT_SPOOL_H
#define EXPORT_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

enum { SPOOL_HELD = 1 << 18 }; /* bytes in memory */

struct spool {		  /* zeroed but for the file, and ready */
	int scratch;	  /* a file of the caller's */
	uint64_t flushed; /* to the file; when reading: read from it */
	size_t held, at;  /* in buffer; the next to be read of it */
	char buffer[SPOOL_HELD];
};

/* 0, or -1: PT_ERR_IO. */
int spool_write(struct spool *s, const void *from, size_t bytes, struct pt_error *e);
/* Behind the last write, in front of the first read. */
int spool_rewind(struct spool *s, struct pt_error *e);
int spool_read(struct spool *s, void *to, size_t bytes, struct pt_error *e);

#endif
