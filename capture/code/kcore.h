/*
 * kcore.h - the running kernel's code, from /proc/kcore, and its symbols, from /proc/kallsyms.
 * record/images.h is the interface that the capture uses.
 *
 * kcore is an ELF core file of the kernel's memory (fs/proc/kcore.c). Its text reads as it runs.
 * Module space holds modules, BPF programs, trampolines of ftrace and kprobes, and thunks (ITS) that
 * no symbol names. All of its areas are taken, as /proc/vmallocinfo lists them. That file is empty
 * without CAP_SYSLOG, and has hashes for addresses where kptr_restrict is
 * 0. Then the areas are those of /proc/modules, and whatever else in module space is not empty.
 */
#ifndef CAPTURE_CODE_KCORE_H
#define CAPTURE_CODE_KCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"

struct hw_kernel_area {
	uint64_t start, end;
	uint64_t offset; /* in kcore; of a module-space area: 0 */
};

struct hw_kernel {
	const char *root;    /* above proc: "", or a guest's root on the host */
	int32_t machine_pid; /* 0: the host */
	int kcore;	     /* -1: none */
	int kallsyms;	     /* kept open: what it shows is decided when it is opened */
	int vmallocinfo;
	struct hw_kernel_area *segments; /* kcore's */
	size_t segment_count;
	struct hw_kernel_area *areas; /* of module space, as of the last look */
	size_t area_count;
	uint64_t text_start, text_end;
	/* Makes what was read what it was when time began (a time_ns of 0); NULL: it is. */
	void (*undo)(const void *arg, uint64_t address, uint8_t *bytes, size_t n);
	const void *undo_arg;
	uint64_t last_symbol; /* the highest address below module space's end that kallsyms knows */
};

void hw_kernel_init(struct hw_kernel *k);
void hw_kernel_deinit(struct hw_kernel *k);
/* Opens the files, while the process may. False when kcore cannot be read: *why says why. */
bool hw_kernel_files(struct hw_kernel *k, struct pt_error *why);
/* Symbols, kernel text and module space as they are now; once for each container. This and the next two
 * return 0, or -1: the writer's errors. */
int hw_kernel_put_all(struct hw_kernel *k, struct ptc_writer *w, struct pt_error *e);
/* A range in which code has appeared or changed at time_ns (KSYMBOL, TEXT_POKE records). */
int hw_kernel_put_range(struct hw_kernel *k, struct ptc_writer *w, uint64_t address, uint64_t bytes,
			uint64_t time_ns, struct pt_error *e);
/* Areas of module space that were not there at the last look. */
int hw_kernel_put_new(struct hw_kernel *k, struct ptc_writer *w, uint64_t time_ns, struct pt_error *e);

#endif
