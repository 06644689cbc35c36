/*
 * trim_code.h - only the code that a trace's flow touches: ranges of images, and the symbols in them.
 *
 * Which these are only a decoder knows: `pt-decode --used-code` lists them, and is run for it: the
 * one beside this program, else the one in PATH.
 */
#ifndef CAPTURE_CONTAINER_TRIM_CODE_H
#define CAPTURE_CONTAINER_TRIM_CODE_H

#include "schema/container.h"

struct trim_code;

/*
 * Has the container in fd, a file, decoded from its beginning. NULL: PT_ERR_REFUSED (no pt-decode, or
 * it failed: its own message went to standard error), PT_ERR_BAD_INPUT (not its list), PT_ERR_IO,
 * PT_ERR_NO_MEMORY.
 */
struct trim_code *trim_code_create(int fd, struct pt_error *e);
void trim_code_destroy(struct trim_code *t);

/* Writes of a PTC_IMAGE or PTC_SYMBOLS chunk the touched ranges, or what of the symbols lies in them;
 * others as container_copy_chunk(). Chunks in the container's order. 0, or -1. */
int trim_code_copy(struct trim_code *t, struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e);

#endif
