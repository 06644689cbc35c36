/*
 * guest_merge.h - pt-decode --guest: a host's container joined with containers that were recorded inside
 * its guests.
 *
 * `pt-capture merge` joins them (the program beside this one, else the one in PATH), and its output is
 * decoded through a pipe. So there is one rule of how a guest's sideband is joined to a host's trace, and
 * the records are those of the merged container.
 */
#ifndef DECODE_GUEST_MERGE_H
#define DECODE_GUEST_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "schema/error.h"

#define PT_GUEST_MERGE_MAX 64

/* Zeroed: no guests, and then finish and abort do nothing. */
struct pt_guest_merge {
	const char *files[PT_GUEST_MERGE_MAX]; /* "FILE" or "FILE,PID" (the VM's process); the caller's */
	size_t count;
	pid_t child; /* pt-capture merge, once it was started */
};

/* Adds a guest's container. False: there are PT_GUEST_MERGE_MAX already. */
bool pt_guest_merge_add(struct pt_guest_merge *g, const char *file);

/*
 * Starts pt-capture merge. host: the path of the host's container; NULL: standard input, which must be a
 * file, since it is read more than once. *ret_fd: where the merged container is to be read, until one of
 * the next two closes it. Returns 0, or -1: PT_ERR_USAGE (standard input is no file), PT_ERR_IO (no pipe,
 * no process).
 */
int pt_guest_merge_start(struct pt_guest_merge *g, const char *host, int *ret_fd, struct pt_error *e);

/*
 * After all that is wanted of fd was read: reads the rest, closes fd and waits for pt-capture's end.
 * Returns 0; 3 if one of the containers was cut; or -1 if it failed, having said why itself: PT_ERR_USAGE
 * (its exit status was 2), PT_ERR_REFUSED, PT_ERR_IO (waitpid()).
 */
int pt_guest_merge_finish(struct pt_guest_merge *g, int fd, struct pt_error *e);

/* After an error of our own: closes fd, which ends pt-capture, and waits for that. */
void pt_guest_merge_abort(struct pt_guest_merge *g, int fd);

#endif
