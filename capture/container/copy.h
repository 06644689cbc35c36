/*
 * copy.h - a container's chunks into another one, as they are or some of them.
 */
#ifndef CAPTURE_CONTAINER_COPY_H
#define CAPTURE_CONTAINER_COPY_H

#include "schema/container.h"

/*
 * Writes the chunk's content to w: META, STREAM, AUX, ATTR, FORMAT, SIDEBAND, IMAGE, SYMBOLS, ROUND.
 * END, INDEX and what this version does not know are left out. Streams and attrs keep their numbers
 * when all of them are copied, in order, and nothing else is written in between. Returns 0, or -1: as
 * ptc_parse_*() and ptc_put_*().
 */
int container_copy_chunk(struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e);

/* PTC_META without the key uuid: a copy that is not the same needs a name of its own, see
 * container_new_uuid(). */
int container_copy_meta(struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e);

/* Writes symbols that ptc_parse_symbols() returned, which need not be aligned in the chunk. 0, or -1. */
int container_put_symbols(struct ptc_writer *w, struct ptc_symbols symbols, struct pt_error *e);

/* Writes META uuid, a random one. 0, or -1. */
int container_new_uuid(struct ptc_writer *w, struct pt_error *e);

#endif
