/*
 * worker.h - pt-load spool DIR DATABASE: loads the containers that appear in a folder. Any number of
 * workers may share it, on any number of machines.
 *
 *     DIR/NAME.ptc                       waits; who puts it there renames it to that name when it is whole
 *     DIR/NAME.ptc.lease.HOST.PID        is being loaded: the rename is the lease, its modification
 *                                        time the worker's sign of life
 *     DIR/done/NAME.ptc                  is loaded; not kept with `remove`
 *     DIR/failed/NAME.ptc, NAME.ptc.error  could not be, and why
 *
 * A lease that shows no life for lease_s is another worker's to take, by a rename again. So a container may
 * be loaded by two workers when one was only slow: then the database has the recording already, and refuses
 * it to one of them, which is no failure. Both times are the folder's file system's, so clocks of machines
 * need not agree.
 */
#ifndef EXPORT_WORKER_H
#define EXPORT_WORKER_H

#include <stdbool.h>

#include "schema/error.h"

struct worker {
	const char *folder, *database;
	const char *timeout; /* of pt-load, NULL: its default */
	bool remove, once;   /* once: ends when nothing waits and nobody works */
	unsigned lease_s;
	/* True: give back what is leased, and end. */
	bool (*interrupted)(void *arg);
	/* What became of a container: "loaded", "was loaded already", or why not. */
	void (*note)(void *arg, const char *name, const char *what, bool failed);
	void *arg;
	unsigned loaded, failed; /* counted here */
};

/* 0, or -1: PT_ERR_IO (the folder), PT_ERR_NO_MEMORY. A container that fails is no error. */
int worker_run(struct worker *w, struct pt_error *e);

#endif
