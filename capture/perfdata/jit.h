/*
 * jit.h - the code that the recorded programs made while they ran, from what their runtimes wrote down
 * (import --jit): jit-PID.dump (code/jitdump.h), which a runtime maps so that its name is in the recording,
 * and /tmp/perf-PID.map (names alone).
 *
 * A jitdump's code is what its runtime says that it made; what it patched afterwards is not in there. Its
 * times are perf's only where they are TSC values (JITDUMP_USE_ARCH_TIMESTAMP=1): then each piece is valid
 * from its time on. Else a piece is taken from the beginning on, and only where no other was ever at these
 * addresses: what replaced what, and when, is not known.
 */
#ifndef CAPTURE_PERFDATA_JIT_H
#define CAPTURE_PERFDATA_JIT_H

#include "capture/perfdata/description.h"
#include "capture/perfdata/notes.h"
#include "capture/perfdata/order.h"
#include "schema/container.h"

struct perf_jit;

/*
 * d, symfs and notes are to live as long. symfs: before all file names, NULL: nothing. folder: where a
 * jitdump is looked for that is not under its name. NULL: no memory.
 */
struct perf_jit *perf_jit_create(const struct perf_description *d, const char *symfs, const char *folder,
				 struct import_perf_notes *notes);
void perf_jit_destroy(struct perf_jit *j); /* NULL is fine */

/*
 * Takes an MMAP or MMAP2 record of the host: of a jitdump, its code; of anonymous memory, the process's
 * names, once. *ret_taken: it was a jitdump, which is no file with code. 0, or -1: the writer's errors,
 * PT_ERR_NO_MEMORY. What cannot be read is a note.
 */
int perf_jit_mapped(struct perf_jit *j, const struct ordered_record *rec, struct ptc_writer *w,
		    bool *ret_taken, struct pt_error *e);

/* Whether the record maps a jitdump; its name, without folders, in ret_leaf then. */
bool perf_jit_is_dump(const struct ordered_record *rec, char ret_leaf[32]);

#endif
