/*
 * jit_names.h - the names of code that a program has made, from /tmp/perf-PID.map as its runtime
 * writes it (node --perf-basic-prof, java -XX:+DumpPerfMapAtExit): lines "ADDRESS BYTES NAME",
 * hexadecimal.
 */
#ifndef CAPTURE_RECORD_JIT_NAMES_H
#define CAPTURE_RECORD_JIT_NAMES_H

#include <stdint.h>

#include "schema/container.h"

struct jit_names;

struct jit_names *jit_names_create(int32_t pid); /* NULL: no memory */
void jit_names_destroy(struct jit_names *n);	 /* NULL is fine */

/*
 * Puts the names that have come since the last time. The file is the one that the process sees in its
 * /tmp, and must be of the process's user. 0, or -1: the writer's errors, PT_ERR_NO_MEMORY.
 */
int jit_names_put(struct jit_names *n, struct ptc_writer *w, struct pt_error *e);

#endif
