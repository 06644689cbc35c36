/*
 * run.h - recordings of trace-cmd, a host's and its guests', become a container, or are added to one.
 */
#ifndef CAPTURE_TRACECMD_RUN_H
#define CAPTURE_TRACECMD_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/tracecmd/request.h"
#include "schema/error.h"

struct dat_result {
	bool some_lost; /* trace-cmd lost events */
	uint64_t lost;	/* how many of them are known */
	bool cut; /* the container that was read is cut or damaged; what came before that place is written */
	struct pt_error at; /* and where */
};

/*
 * Writes the container to fd out. in: the request's container `into`, a file; -1: none. progress, if not
 * NULL, is called now and then while something is written. 0, or -1: the writer's errors, those of
 * trace_dat.h; PT_ERR_REFUSED: clocks that have no relation, a guest that the host does not know.
 */
int dat_import_run(const struct dat_request *q, int in, int out, void (*progress)(void),
		   struct dat_result *ret, struct pt_error *e);

#endif
