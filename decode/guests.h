/*
 * guests.h - --guest: a host's container joined with what was recorded in its guests.
 *
 * It is pt-capture merge that joins them (the one beside this program, else the one in PATH), whose output is decoded as it comes. So
 * there is one rule of how a guest's sideband goes into a host's trace, and the records are those of the merged container.
 */
#ifndef DECODE_GUESTS_H
#define DECODE_GUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "schema/error.h"

#define PT_GUESTS_MAX 64

struct pt_guests {
	const char *files[PT_GUESTS_MAX]; /* "FILE", or "FILE,PID": the VM's process */
	size_t count;
	pid_t child;
};

/* One more; false: too many. */
bool pt_guests_add(struct pt_guests *g, const char *file);

/* Begins to join them. host: its container's path, or NULL for standard input, which must be a file, since it is read more than once.
 * *ret_fd is what to decode. 0, or -1: PT_ERR_USAGE, PT_ERR_IO, PT_ERR_NO_MEMORY. */
int pt_guests_join(struct pt_guests *g, const char *host, int *ret_fd, struct pt_error *e);

/* When all that is wanted was read, or what came was no container: closes fd, and asks how pt-capture ended. 0: well; 3: one of the
 * containers was cut; -1: it failed, and has said why (PT_ERR_USAGE, PT_ERR_REFUSED, PT_ERR_IO). Without guests: 0. */
int pt_guests_end(struct pt_guests *g, int fd, struct pt_error *e);
/* When nothing more is wanted of it. */
void pt_guests_abort(struct pt_guests *g, int fd);

#endif
