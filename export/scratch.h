/*
 * scratch.h - reading and writing a scratch file at an offset, whole.
 */
#ifndef EXPORT_SCRATCH_H
#define EXPORT_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

/* Writes all bytes. 0, or -1: PT_ERR_IO. */
int scratch_write(int fd, const void *from, size_t bytes, uint64_t at, struct pt_error *e);
/* Reads them; *ret_bytes is less only at the file's end. 0, or -1: PT_ERR_IO. */
int scratch_read(int fd, void *to, size_t bytes, uint64_t at, size_t *ret_bytes, struct pt_error *e);

#endif
