/*
 * request.h - what the command line of pt-capture import says about a perf recording.
 */
#ifndef CAPTURE_PERFDATA_REQUEST_H
#define CAPTURE_PERFDATA_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --guest FILE,PID[,OFFSET]: a recording that perf made in the guest. */
struct import_guest {
	char *path;
	int32_t pid; /* of the VM's process */
	bool has_offset;
	int64_t tsc_offset; /* guest TSC = host TSC + it */
};

/* Where a kernel's files are; NULL: not said. */
struct import_kernel_files {
	const char *kcore, *vmlinux, *kallsyms, *modules;
	bool
	    /* its code is given otherwise (import --raw's --maps): that none is found is no news */
	    code_given;
};

/* Strings are NULL where the command line does not say. */
struct import_perf_request {
	const char *input; /* a file, a directory, "-" */
	const char *symfs, *cache;
	struct import_kernel_files host, guest;
	const char *guest_mount;
	struct import_guest *guests;
	size_t guest_count;
	const char *output;  /* what the container is called: output_name() */
	const char *command; /* for META, when the recording has none */
	int level;
	bool jit; /* take what runtimes wrote down of the code that they made (jit.h) */
	bool quiet;
};

#endif
