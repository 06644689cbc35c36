/*
 * jitdump.h - reads a jitdump file: the code that a runtime made, as the runtime itself wrote it down (node
 * --perf-prof, Java with perf's libperf-jvmti.so). The format is perf's:
 * tools/perf/Documentation/jitdump-specification.txt.
 */
#ifndef CAPTURE_CODE_JITDUMP_H
#define CAPTURE_CODE_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct jitdump;

/* From `timestamp` on these bytes were at address: the runtime made them, or moved them there. */
struct jitdump_code {
	uint64_t timestamp; /* jitdump_has_tsc(): the TSC; else ns of the runtime's clock, CLOCK_MONOTONIC */
	uint64_t address, size;
	const uint8_t *bytes; /* size of them, in the dump's memory */
	const char *name;     /* the same */
};

/*
 * Reads all of the file. 0, or -1: PT_ERR_IO (also no regular file), PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT: no
 * jitdump, or of a machine that is not x86-64.
 */
int jitdump_open(struct jitdump **ret, const char *path, struct pt_error *e);
void jitdump_close(struct jitdump *d); /* NULL is fine */

bool jitdump_has_tsc(const struct jitdump *d); /* JITDUMP_FLAGS_ARCH_TIMESTAMP */
int32_t jitdump_pid(const struct jitdump *d);

/*
 * The next code in the order of the file. 1; 0: there is no more, as jitdump_unfinished() says; or -1:
 * PT_ERR_BAD_INPUT with the offset of a record that contradicts itself, PT_ERR_NO_MEMORY.
 */
int jitdump_next(struct jitdump *d, struct jitdump_code *ret, struct pt_error *e);

/* The last record is not whole: its runtime was killed, or still runs. */
bool jitdump_unfinished(const struct jitdump *d);

#endif
