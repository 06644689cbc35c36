/*
 * request.h - what the command line of pt-capture import says about recordings of trace-cmd.
 */
#ifndef CAPTURE_TRACECMD_REQUEST_H
#define CAPTURE_TRACECMD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DAT_GUESTS_MAX 64

/* A guest's recording. */
struct dat_guest_request {
	const char *path;
	int32_t pid; /* of the VM's process; 0: to be found */
	bool has_offset;
	int64_t offset; /* guest TSC = host TSC + it */
};

struct dat_request {
	const char *host;
	const char *into;   /* a container that the events are added to; NULL: none */
	const char *output; /* what the container is called: output_name() */
	uint64_t tsc_hz;    /* 0: not said */
	int level;	    /* zstd's */
	struct dat_guest_request guests[DAT_GUESTS_MAX];
	size_t guest_count;
};

#endif
