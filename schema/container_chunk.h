/*
 * container_chunk.h - how a container's writer makes a chunk: compress, put the header before it, write it, note it
 * in the index. Only container_write.c, which says what is in a chunk, uses it.
 *
 * All return 0 or -1: PT_ERR_NO_MEMORY, PT_ERR_IO, PT_ERR_CLOSED.
 */
#ifndef SCHEMA_CONTAINER_CHUNK_H
#define SCHEMA_CONTAINER_CHUNK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zstd.h>

#include "schema/container.h"

struct ptc_buffer {
	uint8_t *bytes;
	size_t room;
};

struct ptc_stream_state {
	uint64_t seq, end;
	bool snapshot;
};

struct ptc_writer {
	int fd;
	int level;
	pthread_mutex_t lock; /* of AUX writers: around all fields below but zstd, raw and stored */
	ZSTD_CCtx *zstd;
	struct ptc_buffer raw;	  /* the payload that is being built */
	struct ptc_buffer stored; /* chunk header and zstd frame, one write() */
	struct ptc_buffer meta;
	size_t meta_bytes;
	struct ptc_buffer index; /* no longer grown when index_full */
	size_t index_bytes;
	bool index_wanted;
	struct ptc_stream_state *streams; /* [number - 1] */
	uint32_t stream_count, attr_count;
	uint64_t chunks, written, aux_bytes, sideband_bytes;
	void (*on_chunk)(void *arg);
	void *arg;
};

struct ptc_aux_writer {
	struct ptc_writer *w;
	ZSTD_CCtx *zstd;
	int level;
	struct ptc_buffer raw, stored;
};

/* What a chunk's header says of its payload. */
struct ptc_new_chunk {
	enum ptc_type type;
	uint32_t stream;
	size_t raw_bytes;
	uint64_t aux_offset; /* for the index */
};

/* Makes room for that many bytes in all; what is there is kept. */
int ptc_reserve(struct ptc_buffer *b, size_t bytes, struct pt_error *e);

/* To the container's end, however long a pipe makes it wait. */
int ptc_write_all(struct ptc_writer *w, const uint8_t *bytes, size_t n, struct pt_error *e);

/* Compresses raw[0..raw_bytes) into stored, after the room of a chunk's header. *ret: size of the frame. */
int ptc_pack(ZSTD_CCtx *zstd, const struct ptc_buffer *raw, size_t raw_bytes, struct ptc_buffer *stored,
	     size_t *ret, struct pt_error *e);
/* The same for w->raw, and the frame's first block ends after head_bytes: where an image's bytes begin. */
int ptc_pack_apart(struct ptc_writer *w, size_t head_bytes, size_t raw_bytes, size_t *ret,
		   struct pt_error *e);

/* Writes a frame of stored bytes, which is after the room of its chunk's header in packed, as the next chunk. */
int ptc_append(struct ptc_writer *w, const struct ptc_new_chunk *c, uint8_t *packed, size_t stored,
	       struct pt_error *e);

/* Compresses and writes what is in w->raw. */
int ptc_put_chunk(struct ptc_writer *w, const struct ptc_new_chunk *c, struct pt_error *e);
/* The same for a chunk of no stream. */
int ptc_put_plain(struct ptc_writer *w, enum ptc_type type, size_t raw_bytes, struct pt_error *e);

#endif
