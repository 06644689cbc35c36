/* jit_process.h - one reading of a process's memory that is executable and that no file has the code of. */
#ifndef CAPTURE_RECORD_JIT_PROCESS_H
#define CAPTURE_RECORD_JIT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

#define JIT_PAGE ((size_t)4096)

struct jit_page {
	uint64_t address;
	bool fixed; /* of a private mapping that is not writable: it cannot change while that is so */
	const uint8_t *bytes; /* JIT_PAGE of them, the reading's */
};

struct jit_reading {
	uint64_t start_ns, end_ns; /* perf's clock */
	bool steady;		   /* the mappings were the same before and after */
	struct jit_page *pages;	   /* by address */
	size_t count, room;
	uint8_t *bytes;
};

/* Memory without a file by its name in a record or in /proc/PID/maps; a file that is memory (memfd, shm). */
bool jit_is_anonymous(const char *name);
bool jit_is_memory_file(const char *name);

/*
 * Reads the process: JIT_BYTES_MAX at most, lowest addresses first. *ret is NULL when it has ended,
 * or its memory may not be read. 0, or -1: PT_ERR_NO_MEMORY.
 */
int jit_reading_create(struct jit_reading **ret, int32_t pid, uint64_t (*now_ns)(const void *arg),
		       const void *arg, struct pt_error *e);
void jit_reading_destroy(struct jit_reading *r); /* NULL is fine */

#endif
