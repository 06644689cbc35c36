/*
 * container_chunk.h - how a container's writer makes a chunk: compress, put the header before it, write it,
 * note it in the index. Only container_write.c, which says what is in a chunk, and container_queue.c, where
 * threads do it, use it.
 *
 * All return 0 or -1: PT_ERR_NO_MEMORY, PT_ERR_IO, PT_ERR_CLOSED.
 */
#ifndef SCHEMA_CONTAINER_CHUNK_H
#define SCHEMA_CONTAINER_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zstd.h>

#include "schema/container.h"

struct ptc_buffer {
	uint8_t *bytes;
	size_t room;
};

/* What compresses. */
struct ptc_packer {
	ZSTD_CCtx *zstd;
	int level;		  /* that zstd is set to */
	struct ptc_buffer stored; /* chunk header and zstd frame, one write() */
};

struct ptc_stream_state {
	uint64_t seq, end;
	bool snapshot;
};

struct ptc_queue;

struct ptc_writer {
	int fd;
	const char *name;	  /* in messages */
	int level;		  /* also read by AUX writers */
	struct ptc_queue *queue;  /* NULL: who puts a chunk compresses and writes it */
	struct ptc_packer packer; /* without a queue */
	struct ptc_buffer raw;	  /* the payload that is being built */
	struct ptc_buffer meta;
	size_t meta_bytes;
	struct ptc_buffer index; /* no longer grown when index_full */
	size_t index_bytes;
	bool index_wanted;
	struct ptc_stream_state *streams; /* [number - 1]; each is used by one thread at a time */
	uint32_t stream_count, attr_count;
	/* Of who writes; written also for ptc_writer_bytes(), aux_bytes of all that put. */
	uint64_t chunks, written, aux_bytes, sideband_bytes;
	void (*on_chunk)(void *arg);
	void *arg;
};

struct ptc_aux_writer {
	struct ptc_writer *w;
	struct ptc_buffer raw;
};

/* What a chunk's header says of its payload. */
struct ptc_new_chunk {
	enum ptc_type type;
	uint32_t stream;
	size_t head_bytes; /* of an image: the frame's first block ends there; else 0 */
	size_t raw_bytes;
	uint64_t aux_offset; /* for the index */
};

/* Makes room for that many bytes in all; what is there is kept. */
int ptc_reserve(struct ptc_buffer *b, size_t bytes, struct pt_error *e);

/* The room of a payload's buffer that can hold its chunk, too: a queue uses one for the other. */
size_t ptc_chunk_room(size_t raw_bytes);

/* To the container's end, however long a pipe makes it wait. */
int ptc_write_all(struct ptc_writer *w, const uint8_t *bytes, size_t n, struct pt_error *e);

/* Makes p's context; the level comes with each chunk. */
int ptc_packer_init(struct ptc_packer *p, struct pt_error *e);
void ptc_packer_deinit(struct ptc_packer *p);

/*
 * Compresses the chunk's payload, raw, into p->stored, after the room of a chunk's header. *ret: size of the
 * frame.
 */
int ptc_pack(struct ptc_packer *p, const struct ptc_new_chunk *c, int level, const struct ptc_buffer *raw,
	     size_t *ret, struct pt_error *e);

/*
 * Makes the next chunk of a frame of stored bytes, which is after the room of the chunk's header in packed,
 * and notes in the index that it is at offset `at`.
 */
int ptc_seal(struct ptc_writer *w, const struct ptc_new_chunk *c, uint8_t *packed, size_t stored, uint64_t at,
	     struct pt_error *e);
/* Seals and writes it. */
int ptc_append(struct ptc_writer *w, const struct ptc_new_chunk *c, uint8_t *packed, size_t stored,
	       struct pt_error *e);

/* Compresses and writes what is in w->raw; or the queue does, and w->raw is another buffer then. */
int ptc_put_chunk(struct ptc_writer *w, const struct ptc_new_chunk *c, struct pt_error *e);
/* The same for a chunk of no stream. */
int ptc_put_plain(struct ptc_writer *w, enum ptc_type type, size_t raw_bytes, struct pt_error *e);

#endif
