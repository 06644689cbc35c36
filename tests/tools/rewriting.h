/*
 * rewriting.h - what the tools share that write a container from another one.
 */
#ifndef TESTS_TOOLS_REWRITING_H
#define TESTS_TOOLS_REWRITING_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/error.h"

static struct pt_error error;

/* Ends the program when r is negative, with what was done and the error. */
static inline void ok(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, error.message);
	exit(1);
}

#endif
