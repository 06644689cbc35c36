/*
 * container_reader.h - the container's reader, for container_read.c and container_seek.c alone.
 */
#ifndef SCHEMA_CONTAINER_READER_H
#define SCHEMA_CONTAINER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <zstd.h>

#include "schema/container.h"

enum { PTC_SPARES = 16, PTC_SPARE_BYTES_MAX = 2 << 20 };

struct ptc_reader {
	int fd;
	ZSTD_DCtx *zstd;
	uint8_t *stored, *raw;
	size_t stored_room, raw_room;
	struct ptc_spare {
		uint8_t *data;
		size_t bytes;
	} spares[PTC_SPARES]; /* for raw */
	unsigned spare_count;
	uint64_t offset; /* bytes read so far */
	uint64_t chunks;
	/* what ptc_next() returns next: 1 until the end or a failure; 2: 0, for PTC_END was delivered */
	int state;
	bool leave_images;
	bool (*skip)(void *arg, uint32_t stream, uint64_t offset); /* NULL: none */
	void *skip_arg;
	off_t begin;			  /* of the container in its file; -1: it cannot be read again */
	uint64_t stored_bytes, raw_bytes; /* of the chunk at hand */
	uint32_t crc32c;
	struct pt_error error;
};

/* Makes room for that many bytes; what was there is lost. 0, or -1: PT_ERR_NO_MEMORY. */
int ptc_reader_reserve(uint8_t **buffer, size_t *room, size_t bytes, struct pt_error *e);
/* Checks a chunk's header and its sizes, but not its number. at: its offset, for messages. 0, or -1:
 * PT_ERR_BAD_INPUT. */
int ptc_check_header(const struct ptc_reader *r, const uint8_t *h, uint64_t at, struct pt_error *e);
/* The frame in r->stored, as the header h has it, checked and decompressed into r->raw. 0, or -1:
 * PT_ERR_BAD_INPUT, PT_ERR_NO_MEMORY. */
int ptc_unpack(struct ptc_reader *r, const uint8_t *h, uint64_t at, struct pt_error *e);

#endif
