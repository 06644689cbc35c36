/*
 * jit.h - code that programs make while they run: anonymous and memfd mappings that are executable,
 * read again and again out of the processes (/proc/PID/mem), and their names (perf-PID.map).
 *
 * What is certain of such code, and goes into the container as an image with a time:
 *   - Bytes of a private mapping that is not writable cannot change. They are valid from the record
 *     on that made the mapping executable (mmap, mprotect), if no other record of the mapping came
 *     before they were read.
 *   - Bytes of a writable mapping are valid from one reading on, as long as the next reading finds
 *     them again.
 * Bytes that two readings find different were changed in between, and nobody knows when: from the
 * first of these readings to the second they are no code, so execution there is an error and not a
 * branch. Not seen is a change that is undone between two readings. Of a page that is gone when it is
 * read again, or whose process has ended, nothing is known after the last reading.
 *
 * A reading is settled one round later, when all records are known that are older than it. Until then no
 * PTC_ROUND states a later time, so what was traced meanwhile is decoded with what was learnt.
 *
 * Costs: the memory of all such mappings (JIT_BYTES_MAX of a process at most) twice, and the time to read and
 * compare it, of which at most a tenth of one CPU is used.
 */
#ifndef CAPTURE_RECORD_JIT_H
#define CAPTURE_RECORD_JIT_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/container.h"

#define JIT_BYTES_MAX ((uint64_t)256 << 20)

struct hw_jit;

/* now_ns(arg): perf's clock. NULL: no memory. */
struct hw_jit *hw_jit_create(struct ptc_writer *w, uint64_t (*now_ns)(const void *arg), const void *arg);
void hw_jit_destroy(struct hw_jit *j); /* NULL is fine */

/* Of the records that are made here: their attr, and the id of one of its events. */
void hw_jit_origin(struct hw_jit *j, uint32_t attr, uint64_t id);

/* Whether a mapping of this name is such memory: no file that has its code. */
bool hw_jit_name(const char *name);

/*
 * An executable mapping of such memory, as a record with that time says; the process is read from now
 * on. 0, or -1: PT_ERR_NO_MEMORY.
 */
int hw_jit_mapped(struct hw_jit *j, int32_t pid, uint64_t start, uint64_t bytes, uint64_t time_ns,
		  struct pt_error *e);

/*
 * A process has forked: what it made is the child's, too, and may change there. 0, or -1: PT_ERR_NO_MEMORY.
 */
int hw_jit_forked(struct hw_jit *j, int32_t child, int32_t parent, uint64_t time_ns, struct pt_error *e);

/* At a round's end: reads the processes, if it is time to, or `always`. 0, or -1: PT_ERR_NO_MEMORY. */
int hw_jit_read(struct hw_jit *j, bool always, struct pt_error *e);

/*
 * In a round, after its records: settles the last reading. Puts images, and the records of what is
 * not certain. 0, or -1: the writer's errors, PT_ERR_NO_MEMORY.
 */
int hw_jit_settle(struct hw_jit *j, struct pt_error *e);

/* What a PTC_ROUND may state at most; UINT64_MAX: nothing is read. */
uint64_t hw_jit_bound(const struct hw_jit *j);

/* For people: bytes of code that were put, processes that were read. */
uint64_t hw_jit_bytes(const struct hw_jit *j, unsigned *ret_processes);

#endif
