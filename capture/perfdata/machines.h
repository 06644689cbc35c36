/*
 * machines.h - the code of the machines of a recording, the host and its guests: kernels, and what their
 * processes had mapped.
 */
#ifndef CAPTURE_PERFDATA_MACHINES_H
#define CAPTURE_PERFDATA_MACHINES_H

#include "capture/perfdata/file.h"
#include "capture/perfdata/notes.h"
#include "capture/perfdata/order.h"
#include "capture/perfdata/request.h"
#include "schema/container.h"

struct perf_machines;

/* request and notes are to live as long. NULL: no memory. */
struct perf_machines *perf_machines_create(const struct import_perf_request *request,
					   struct import_perf_notes *notes);
void perf_machines_destroy(struct perf_machines *m);

/* Machine pid (0: the host) is one of file's: its build ids, directory and kernel are told there. */
int perf_machines_add(struct perf_machines *m, int32_t pid, const struct perf_file *file, struct pt_error *e);

/* A mapping of the machine's kernel: an MMAP or MMAP2 record of pid -1; any other record is passed over. To be told
 * before perf_machines_kernel(). -1: PT_ERR_NO_MEMORY. */
int perf_machines_kernel_map(struct perf_machines *m, int32_t pid, const struct perf_record *rec,
			     struct pt_error *e);

/* Whether the request or the recording itself has the machine's kernel; what may be in the cache does not count. */
bool perf_machines_has_kernel(struct perf_machines *m, int32_t pid);

/*
 * Writes the code and the symbols of the machine's kernel, from the first of these that there is: what the request names;
 * the guest's root (--guestmount); the recording's directory (kcore_dir, kcore_dir__PID); the build-id cache. What cannot
 * be found is a note. 0, or -1: the writer's errors, those of code/kernel_files.h for what the request names.
 */
int perf_machines_kernel(struct perf_machines *m, int32_t pid, struct ptc_writer *w, struct pt_error *e);

/* An MMAP or MMAP2 record of the machine: writes the file's code, unless the container has it. 0, or -1: the writer's
 * errors, PT_ERR_NO_MEMORY. */
int perf_machines_mapped(struct perf_machines *m, int32_t pid, const struct ordered_record *rec,
			 struct ptc_writer *w, struct pt_error *e);

/* Notes of what was not found, and how much of the mapped code it is. */
void perf_machines_note_missing(struct perf_machines *m);

#endif
