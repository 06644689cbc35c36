/*
 * compress.h - a file becomes a compressed one (schema/seekable.h).
 */
#ifndef EXPORT_COMPRESS_H
#define EXPORT_COMPRESS_H

#include "schema/error.h"
#include "schema/seekable.h"

/*
 * Replaces what is in the file fd by the same, compressed. The file is the same one, so locks and names are
 * kept; while it is written it has part of it. scratch: an empty file, for all of what is compressed. 0, or -1:
 * PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_REFUSED (interrupted).
 */
int compress_file(int fd, int scratch, const struct pt_seekable_options *options, struct pt_error *e);

#endif
