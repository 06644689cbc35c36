/*
 * info.h - what `pt-capture info` found in a container; info.c gathers it, info_print.c prints it.
 */
#ifndef CAPTURE_CONTAINER_INFO_H
#define CAPTURE_CONTAINER_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"
#include "schema/hash.h"

#define INFO_TYPES  16	 /* chunk types counted by type; others count as type 0 */
#define INFO_IMAGES 4096 /* listed; the last one sums up all further ones */
#define INFO_RANGES 32	 /* of an image, listed; further ones are only counted */

struct info_chunks {
	uint64_t count, raw_bytes, stored_bytes; /* stored: with headers */
};

struct info_stream {
	uint32_t number;
	struct ptc_stream stream;
	uint64_t pieces, bytes;
	uint64_t first_offset, end_offset; /* AUX offsets, half-open */
	uint64_t gaps, gap_bytes;	   /* places where a piece does not join the one before */
	uint64_t overlaps;		   /* snapshot: pieces that begin before the last end */
	uint64_t truncated, overwrite, partial, collision; /* pieces with that flag */
};

struct info_attr {
	char *name;
	uint32_t index, attr_bytes, ids;
	uint32_t type;
	uint64_t config, sample_type;
};

struct info_range {
	uint64_t offset, vaddr, size;
};

struct info_image {
	char *name;
	char build_id[41]; /* hex, "" unknown */
	enum ptc_image_kind kind;
	int32_t machine_pid, pid;
	uint64_t versions; /* how often it was begun */
	uint64_t bytes, symbols;
	uint64_t range_count;
	struct info_range ranges[INFO_RANGES]; /* neighbours joined */
	uint32_t listed;
};

struct info {
	const char *file;
	bool complete;
	struct pt_error error; /* why it is not complete */
	uint64_t bytes;	       /* of the container, read */
	struct info_chunks chunks[INFO_TYPES];
	struct ptc_meta *meta;
	struct info_stream *streams;
	size_t stream_count, stream_room;
	struct info_attr *attrs;
	size_t attr_count, attr_room;
	struct info_image *images;
	size_t image_count, image_room;
	struct pt_hash image_hash; /* numbers of images, from 1; without the last one that sums up */
	uint64_t records[256];	   /* sideband by type; 0: the types from 256 on, together */
	uint64_t record_count, record_bytes;
	uint64_t symbols, rounds;
};

const char *info_chunk_name(size_t type); /* "AUX"...; "unknown" */
const char *
info_record_name(size_t type); /* "MMAP2"...; NULL when the kernel's header at hand does not know it */

/* For people. */
void info_print_text(const struct info *i);
/* For programs: one JSON object, valid whatever names are in the container. */
void info_print_json(const struct info *i);

#endif
