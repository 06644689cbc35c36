/*
 * kernel_files.h - a kernel's code from an ELF file: a kcore (a core file, of which the PT_LOADs are the
 * kernel's text and its modules as they ran) or a vmlinux.
 *
 * In the container it is one memory image named "[kernel]" of PTC_ANY_PID, which is there from the start; a
 * file's further segments continue it. kernel_symbols.h has the symbols.
 */
#ifndef CAPTURE_CODE_KERNEL_FILES_H
#define CAPTURE_CODE_KERNEL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/code/kernel_symbols.h"
#include "schema/container.h"

/* Addresses [start, end) that hold code. */
struct kernel_range {
	uint64_t start, end;
};

/* What of the kernel has been written: a list. */
struct kernel_ranges {
	struct kernel_range *all;
	size_t count;
};

/* Adds [start, end) to the list. False: no memory. */
bool kernel_ranges_add(struct kernel_ranges *r, uint64_t start, uint64_t end);
/* Whether all of [start, end) is in one of them. */
bool kernel_ranges_cover(const struct kernel_ranges *r, uint64_t start, uint64_t end);
void kernel_ranges_deinit(struct kernel_ranges *r);

/* Where a kernel's code is written to. */
struct kernel_output {
	struct ptc_writer *w;
	int32_t machine_pid;	      /* 0: the host's kernel; else that of the VM's process */
	struct kernel_ranges written; /* what has been written is added; the caller's to deinit */
};

/*
 * Writes the code of a kcore file; of segments as long as those of the running kernel's /proc/kcore
 * only what is wanted (NULL: nothing). 0, or -1: the writer's errors, PT_ERR_NO_MEMORY, PT_ERR_IO,
 * PT_ERR_BAD_INPUT (no ELF core of x86-64, or a segment that the file does not have).
 */
int kernel_put_kcore(const char *path, const struct kernel_ranges *wanted, struct kernel_output *to,
		     struct pt_error *e);

/*
 * The same of a vmlinux, the file that the kernel was linked to, now with its text (the symbol _text)
 * at address `text`. It is not quite what ran: a booting kernel patches itself for its CPU
 * (alternatives, paravirtualization, mitigations), and later (static branches and calls). symbols,
 * which may be NULL, undo what is the same on all: kernel_unfentry().
 */
int kernel_put_vmlinux(const char *path, uint64_t text, const struct kernel_symbols *symbols,
		       struct kernel_output *to, struct pt_error *e);

#endif
