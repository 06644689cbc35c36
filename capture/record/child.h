/* child.h - the traced program: forked, held until its events are open, released, waited for. */
#ifndef CAPTURE_RECORD_CHILD_H
#define CAPTURE_RECORD_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "schema/error.h"

/* Zeroed: none. */
struct hw_child {
	pid_t pid;	/* 0: none */
	int go, failed; /* pipes: a byte lets it exec; it writes the errno of a failed exec */
	bool running;	/* it has been let exec */
	bool ended;
	int status; /* 0..255, or 128 + signal */
};

/*
 * Forks; the child waits. It has the signal mask and capabilities that the caller has now. 0, or -1
 * (PT_ERR_IO).
 */
int hw_child_start(struct hw_child *c, char **argv, bool stdout_to_stderr, struct pt_error *e);

/* Lets it exec. name: for the message. 0, or -1: PT_ERR_REFUSED when the program cannot be run, PT_ERR_IO. */
int hw_child_go(struct hw_child *c, const char *name, struct pt_error *e);

/* Whether it has ended; does not wait. */
bool hw_child_ended(struct hw_child *c);

/*
 * Frees what it holds. A program that still runs is left running; one that was not let exec ends without
 * having run.
 */
void hw_child_end(struct hw_child *c);

#endif
