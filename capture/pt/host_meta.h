/* host_meta.h - META that says on which machine, when and how a recording was made; of both engines. */
#ifndef CAPTURE_PT_HOST_META_H
#define CAPTURE_PT_HOST_META_H

#include <stdbool.h>

#include "schema/container.h"

#define HOST_META_UUID_ROOM 33

struct host_meta {
	const char *engine; /* "perf", "sideband", "step" */
	bool synthetic;	    /* its time is a model */
	char **command;	    /* of the traced program, NULL-terminated; NULL: none */
	/* room for HOST_META_UUID_ROOM: becomes the uuid, "" without one; NULL: not asked for */
	char *ret_uuid;
};

/*
 * Writes uuid, tool, engine, command, start_time, uname's and the CPU's keys. 0, or -1: the writer's errors.
 */
int host_meta_put(struct ptc_writer *w, const struct host_meta *m, struct pt_error *e);

#endif
