/*
 * machines.h - the code of the machines of a recording, the host and its guests: their kernels (kernel.h),
 * and the files that their processes had mapped (images.h).
 */
#ifndef CAPTURE_PERFDATA_MACHINES_H
#define CAPTURE_PERFDATA_MACHINES_H

#include "capture/perfdata/description.h"
#include "capture/perfdata/notes.h"
#include "capture/perfdata/order.h"
#include "capture/perfdata/request.h"
#include "schema/container.h"

struct perf_machines;

/* request and notes are to live as long. NULL: no memory. */
struct perf_machines *perf_machines_create(const struct import_perf_request *request,
					   struct import_perf_notes *notes);
void perf_machines_destroy(struct perf_machines *m);

/*
 * Adds machine pid (0: the host, which is to be the first), unless it is there. description: of the recording
 * that has its build ids and kernel; it is to live as long. directory: of that recording, NULL: it is a file.
 * 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (more than 1024 guests).
 */
int perf_machines_add(struct perf_machines *m, int32_t pid, const struct perf_description *description,
		      const char *directory, struct pt_error *e);

/*
 * Takes a mapping of the machine's kernel: an MMAP or MMAP2 record of pid -1. Any other record is passed
 * over. All of them are to be known when perf_machines_kernel() is called. 0, or -1: PT_ERR_NO_MEMORY.
 */
int perf_machines_kernel_map(struct perf_machines *m, int32_t pid, const struct perf_record *rec,
			     struct pt_error *e);

/*
 * Whether the request or the recording itself has the machine's kernel; what may be in the cache does not
 * count.
 */
bool perf_machines_has_kernel(const struct perf_machines *m, int32_t pid);

/*
 * Writes the code and the symbols of the machine's kernel, from the first of these that there is: what the
 * request names; the recording's directory (kcore_dir, kcore_dir__PID); the guest's root (--guestmount); the
 * build-id cache. What cannot be found is a note. 0, or -1: the writer's errors, those of code/kernel_files.h
 * for what the request names.
 */
int perf_machines_kernel(struct perf_machines *m, int32_t pid, struct ptc_writer *w, struct pt_error *e);

/*
 * Takes an MMAP or MMAP2 record of the machine: writes the file's code, unless the container has it. 0, or
 * -1: the writer's errors, PT_ERR_NO_MEMORY.
 */
int perf_machines_mapped(struct perf_machines *m, int32_t pid, const struct ordered_record *rec,
			 struct ptc_writer *w, struct pt_error *e);

/* Notes of what was not found, and how much of the mapped code it is. */
void perf_machines_note_missing(struct perf_machines *m);

#endif
