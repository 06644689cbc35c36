/*
 * kernel.h - the kernel of one machine of a recording: which memory is its code, and that code and its
 * symbols into the container.
 */
#ifndef CAPTURE_PERFDATA_KERNEL_H
#define CAPTURE_PERFDATA_KERNEL_H

#include "capture/perfdata/description.h"
#include "capture/perfdata/notes.h"
#include "capture/perfdata/record.h"
#include "capture/perfdata/request.h"
#include "schema/container.h"
#include "schema/hash.h"

/* The kernel's text, or a module: [start, end). */
struct perf_kernel_map {
	uint64_t start, end;
	uint64_t text; /* of the kernel itself: its symbol _text; 0: a module */
	char *name;
};

struct perf_kernel {
	int32_t machine_pid;			    /* 0: the host */
	const struct perf_description *description; /* of the recording */
	const char *root,
	    *cache;   /* where the machine's files are; perf's build-id cache, NULL: there is none */
	char *folder; /* with kcore, kallsyms, modules; owned; NULL: there is none */
	struct perf_kernel_map *maps;
	size_t map_count, map_room;
	struct pt_hash map_hash; /* numbers of maps, from 1, by start */
};

void perf_kernel_deinit(struct perf_kernel *k);

/* Takes an MMAP or MMAP2 record of pid -1; any other record is passed over. 0, or -1: PT_ERR_NO_MEMORY. */
int perf_kernel_map(struct perf_kernel *k, const struct perf_record *rec, struct pt_error *e);

/*
 * Writes code and symbols, from the files that were asked for, else from the folder, else from the newest
 * kcore of this kernel in the build-id cache; modules that no kcore has from their own files. All mappings
 * are to be known. What cannot be found is a note. 0, or -1: the writer's errors, those of
 * code/kernel_files.h for the files that were asked for.
 */
int perf_kernel_put(struct perf_kernel *k, const struct import_kernel_files *asked, struct ptc_writer *w,
		    struct import_perf_notes *notes, struct pt_error *e);

#endif
