/*
 * manage.h - what pt-load does to a database without a record stream: lists its traces, and deletes one.
 */
#ifndef EXPORT_MANAGE_H
#define EXPORT_MANAGE_H

#include <stdint.h>

#include "export/store.h"
#include "schema/error.h"

/* A trace, as the view `traces` has it. NULL and -1: not known. */
struct manage_trace {
	int64_t id, branches, errors;
	const char *uuid, *start, *name;
};

/* Calls one() for each trace, by id. 0, or -1: PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_REFUSED (no database
 * of pt-load's). */
int manage_list(const char *path, void (*one)(void *arg, const struct manage_trace *t), void *arg,
		struct pt_error *e);

/*
 * Deletes a trace, as a whole or not at all, and gives the room back to the file system, which takes as
 * much room again for the time being (SQLite's VACUUM). Wait is as store_open() has it. 0, or -1: as above,
 * and PT_ERR_REFUSED (there is no such trace).
 */
int manage_delete(const char *path, int64_t trace, const struct store_wait *wait, struct pt_error *e);

#endif
