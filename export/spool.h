/*
 * spool.h - bytes that are written one after another and later read once in that order, through a
 * scratch file. Memory is SPOOL_HELD bytes; what fits into them never reaches the file.
 */
#ifndef EXPORT_SPOOL_H
#define EXPORT_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

enum { SPOOL_HELD = 1 << 18 }; /* bytes in memory */

/* Ready when it is zeroed but for the file. */
struct spool {
	int scratch;	  /* a file of the caller's */
	uint64_t flushed; /* bytes written to the file; when reading: read from it */
	size_t held, at;  /* bytes in buffer; the next one to be read */
	char buffer[SPOOL_HELD];
};

/* Appends. 0, or -1: PT_ERR_IO. */
int spool_write(struct spool *s, const void *from, size_t bytes, struct pt_error *e);
/* To be called once, after the last write and before the first read. 0, or -1: PT_ERR_IO. */
int spool_rewind(struct spool *s, struct pt_error *e);
/* The next bytes of those written, all of them. 0, or -1: PT_ERR_IO, also when there are no more. */
int spool_read(struct spool *s, void *to, size_t bytes, struct pt_error *e);

#endif
