/*
 * contents.h - what a perf.data that is being written holds, as its features and its header say at last.
 *
 * Functions that can fail return 0, or -1 with PT_ERR_NO_MEMORY.
 */
#ifndef CAPTURE_PERFDATA_CONTENTS_H
#define CAPTURE_PERFDATA_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

#include "schema/container.h"
#include "schema/hash.h"

#define PERF_ATTR_BYTES 128 /* PERF_ATTR_SIZE_VER7: what perf 6.1 writes */

struct perf_out_event {
	struct perf_event_attr attr;
	char *name;
	uint64_t *ids;
	uint32_t id_count;
};

/* A tracepoint's `format` file. */
struct perf_out_format {
	char *system, *text;
	size_t text_bytes;
};

/* The CPU of the records that have a sample id: perf inject makes it the vCPU. */
struct perf_out_id {
	uint64_t id;
	uint32_t cpu;
};

/* The build id of a file that was mapped. */
struct perf_out_build_id {
	char *name;
	uint8_t bytes[20];
	uint8_t count;
};

/* An AUXTRACE record: its offset in the file, its size without the AUX bytes. */
struct perf_out_aux {
	uint64_t offset, size;
};

struct perf_contents {
	int32_t machine_pid;	     /* 0: the host; else a guest: META is machine.PID.* */
	const struct ptc_meta *meta; /* of the container */
	struct perf_out_event *events;
	size_t event_count, event_room;
	struct perf_out_format *formats;
	size_t format_count, format_room;
	struct perf_out_build_id *build_ids;
	size_t build_id_count, build_id_room;
	struct pt_hash build_id_hash; /* numbers of build_ids, from 1, by name */
	struct perf_out_id *ids;      /* of a guest's records */
	size_t id_count, id_room;
	struct perf_out_known_id *known; /* the events' ids, once records are added */
	size_t known_count, known_room;
	struct pt_hash known_hash; /* numbers of known, from 1 */
	struct perf_out_aux *aux;
	size_t aux_count, aux_room;
	uint32_t cpus;	 /* of the machine, at least 1 */
	bool without_pt; /* there are events, and none is Intel PT's */
};

void perf_contents_deinit(struct perf_contents *c);

/* META's value for this machine. NULL: there is none. */
const char *perf_contents_meta(const struct perf_contents *c, const char *key);
/* The same as a number, 0 unknown. */
uint64_t perf_contents_meta_number(const struct perf_contents *c, const char *key);

/* Adds an event with a zeroed attr and zeroed ids. NULL: PT_ERR_NO_MEMORY. */
struct perf_out_event *perf_contents_add_event(struct perf_contents *c, const char *name, size_t name_bytes,
					       uint32_t ids, struct pt_error *e);
int perf_contents_add_format(struct perf_contents *c, const struct ptc_tracepoint *t, struct pt_error *e);
/* Adds the image's build id, unless there is one under its name. */
int perf_contents_add_build_id(struct perf_contents *c, const struct ptc_image *image, struct pt_error *e);
/*
 * After all events: adds the id and CPU that the record of that many bytes ends with, if it does, and if
 * the id is an event's.
 */
int perf_contents_add_id(struct perf_contents *c, const uint8_t *record, size_t bytes, struct pt_error *e);
/* Adds an AUXTRACE record. */
int perf_contents_add_aux(struct perf_contents *c, uint64_t offset, uint64_t size, struct pt_error *e);

#endif
