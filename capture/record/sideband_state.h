/*
 * sideband_state.h - what a reader of a capture's sideband knows at a moment: tasks and their names, what
 * they have mapped, which thread runs on each CPU, the kernel's functions that came at run time. The next
 * container of a capture begins with it (--switch-output).
 *
 * It is records: those that were put, each with its own time, and where a record says something of another
 * process (FORK: the child has its parent's mappings and name) copies of those, with the new process's
 * numbers and the record's time. What is no longer so (a process has ended or executed another program)
 * is kept until hw_state_settle(): AUX data that is still to come may be older.
 */
#ifndef CAPTURE_RECORD_SIDEBAND_STATE_H
#define CAPTURE_RECORD_SIDEBAND_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/record/byte_buffer.h"

struct hw_state;

struct hw_state *hw_state_create(void);	   /* NULL: no memory */
void hw_state_destroy(struct hw_state *s); /* NULL is fine */

/* A whole record that is no sample, with its sample id (sample_id.h). 0, or -1: PT_ERR_NO_MEMORY. */
int hw_state_record(struct hw_state *s, const uint8_t *record, struct pt_error *e);

/* No AUX data older than settled_ns (perf's clock) will be asked for: forgets what had ended by then. */
void hw_state_settle(struct hw_state *s, uint64_t settled_ns);
/* Nor on this CPU any older than since_ns: of its switches only the last one before is kept, and those
 * after. */
void hw_state_settle_cpu(struct hw_state *s, int32_t cpu, uint64_t since_ns);
/* The kernel's code that was patched (TEXT_POKE): none of it before since_ns will be asked for. */
void hw_state_settle_pokes(struct hw_state *s, uint64_t since_ns);
/* Patches before that are not known any more: there were too many; 0: all are known. */
uint64_t hw_state_pokes_since_ns(const struct hw_state *s);
/* Whether it has a patch at this address. */
bool hw_state_poked(const struct hw_state *s, uint64_t address);

/*
 * Another container begins. Appends what it needs at once, in the order of time: the switches, the
 * kernel's, and the tasks that run, or (all_tasks) all. 0, or -1: PT_ERR_NO_MEMORY.
 */
int hw_state_begin(struct hw_state *s, bool all_tasks, struct hw_bytes *to, struct pt_error *e);

/*
 * A process is seen: appends what was known of it (and of a few others) when the container began, unless
 * that was done; their times become not_before_ns at least. 0, or -1: PT_ERR_NO_MEMORY.
 */
int hw_state_put_process(struct hw_state *s, int32_t pid, uint64_t not_before_ns, struct hw_bytes *to,
			 struct pt_error *e);

#endif
