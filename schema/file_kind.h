/*
 * file_kind.h - what a file is that was given to the wrong program, by its first bytes, and what to
 * do with it: for messages.
 */
#ifndef SCHEMA_FILE_KIND_H
#define SCHEMA_FILE_KIND_H

#include <stddef.h>

#define PT_FILE_KIND_BYTES 16 /* of its front are enough to know; fewer will do */

/*
 * What follows "X is not a container" in a message: ", but a recording of perf: pt-capture import
 * makes a container of it". "" when it is nothing that these programs know.
 */
const char *pt_file_kind(const void *front, size_t bytes);
/* The same of a file; "" also when it cannot be read. */
const char *pt_file_kind_of(const char *path);

#endif
