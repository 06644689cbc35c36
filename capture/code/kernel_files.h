/*
 * kernel_files.h - a kernel's code and symbols from the files that perf makes of them: kcore (an ELF
 * core whose PT_LOADs are the kernel's text and its modules as they ran), kallsyms, modules.
 *
 * In the container they are memory images named "[kernel]" of PTC_ANY_PID, there from the start, and
 * absolute symbols of the same name; those of a module are of "[its name]".
 */
#ifndef CAPTURE_CODE_KERNEL_FILES_H
#define CAPTURE_CODE_KERNEL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"

#define KERNEL_IMAGE_NAME "[kernel]"

struct kernel_symbols;

/* Reads a kallsyms file. NULL: PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (no such lines, or all
 * addresses are 0: kptr_restrict). */
struct kernel_symbols *kernel_symbols_read(const char *path, struct pt_error *e);
void kernel_symbols_destroy(struct kernel_symbols *s); /* NULL is fine */
/* The address of a symbol, of a global one before others; 0: there is none. */
uint64_t kernel_symbols_find(const struct kernel_symbols *s, const char *name);
/* Whether there is one of that name there. */
bool kernel_symbols_has(const struct kernel_symbols *s, const char *name, uint64_t addr);
/* That in [start, end), 0: there is none. */
uint64_t kernel_symbols_find_in(const struct kernel_symbols *s, const char *name, uint64_t start,
				uint64_t end);
/* Writes the code symbols. 0, or -1: the writer's errors, PT_ERR_NO_MEMORY. */
int kernel_symbols_put(const struct kernel_symbols *s, struct ptc_writer *w, int32_t machine_pid,
		       struct pt_error *e);

/* Addresses [start, end) that hold code. */
struct kernel_range {
	uint64_t start, end;
};

/* What of the kernel has been written: a list. */
struct kernel_ranges {
	struct kernel_range *all;
	size_t count;
};

/* Adds to the list; false: no memory. */
bool kernel_ranges_add(struct kernel_ranges *r, uint64_t start, uint64_t end);
/* Whether all of [start, end) is in one of them. */
bool kernel_ranges_cover(const struct kernel_ranges *r, uint64_t start, uint64_t end);
void kernel_ranges_deinit(struct kernel_ranges *r);

/* Where a kernel's code goes. */
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
 * The same of a vmlinux, the file that the kernel was linked to, whose text begins at address `text`
 * now (its symbol _text). It is not quite what ran: a booting kernel patches itself for its CPU
 * (alternatives, paravirtualization, mitigations), and later (static branches and calls). symbols,
 * which may be NULL, undo what is the same on all: kernel_unfentry().
 */
int kernel_put_vmlinux(const char *path, uint64_t text, const struct kernel_symbols *symbols,
		       struct kernel_output *to, struct pt_error *e);

/* Functions that begin with a call of __fentry__, in code that is at vaddr, begin with a NOP: so the
 * kernel has them, unless somebody traces them. */
void kernel_unfentry(const struct kernel_symbols *s, uint64_t vaddr, uint8_t *bytes, size_t size);

#endif
