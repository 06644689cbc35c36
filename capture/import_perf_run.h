/*
 * import_perf_run.h - a perf.data becomes a container.
 *
 * Two passes over the file: the first finds events, AUX data and its times; the second writes. What the container
 * promises of its order (schema/container.h) is so kept, whatever the order of the file.
 */
#ifndef CAPTURE_IMPORT_PERF_RUN_H
#define CAPTURE_IMPORT_PERF_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/container.h"

struct import_guest {
	char *path;
	int32_t pid; /* of the VM's process */
	bool has_offset;
	int64_t tsc_offset; /* guest TSC = host TSC + it */
};

/* What the command line says; strings are NULL when it does not. */
struct import_perf_request {
	const char *input; /* a file, a directory, "-" */
	const char *symfs, *cache, *kallsyms, *modules, *vmlinux, *kcore;
	const char *guest_mount, *guest_kallsyms, *guest_modules, *guest_kcore;
	struct import_guest *guests;
	size_t guest_count;
	const char *command; /* for META, when the recording has none */
	int level;
	bool quiet, verbose;
};

struct import_perf_notes {
	char **lines; /* for people: what is missing, skipped, late */
	size_t count;
	bool gaps; /* something of the recording is not in the container */
};

/* Writes the container to fd. 0, or -1: PT_ERR_IO, _CLOSED, _BAD_INPUT, _TRUNCATED, _NO_MEMORY, _REFUSED. Notes are to
 * be freed in any case. */
int import_perf_run(const struct import_perf_request *r, int fd, struct import_perf_notes *notes,
		    struct pt_error *e);
void import_perf_notes_free(struct import_perf_notes *notes);

#endif
