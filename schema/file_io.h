/*
 * file_io.h - reading and writing a file at an offset, whole: what read() and write() leave over is done again.
 */
#ifndef SCHEMA_FILE_IO_H
#define SCHEMA_FILE_IO_H

#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

/* Writes all bytes. what: for the message, "writing a scratch file". 0, or -1: PT_ERR_IO. */
int pt_write_at(int fd, const void *from, size_t bytes, uint64_t at, const char *what, struct pt_error *e);
/* Reads them; *ret_bytes is less only at the file's end. 0, or -1: PT_ERR_IO. */
int pt_read_at(int fd, void *to, size_t bytes, uint64_t at, size_t *ret_bytes, const char *what,
	       struct pt_error *e);

#endif
