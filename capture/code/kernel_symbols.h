/*
 * kernel_symbols.h - a kernel's symbols, as /proc/kallsyms lists them.
 *
 * In the container they are absolute symbols of PTC_ANY_PID, named "[kernel]"; those of a module are named
 * "[its name]".
 */
#ifndef CAPTURE_CODE_KERNEL_SYMBOLS_H
#define CAPTURE_CODE_KERNEL_SYMBOLS_H

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

/* The address of the symbol of that name; of a global one if there are several. 0: there is none. */
uint64_t kernel_symbols_find(const struct kernel_symbols *s, const char *name);
/* Whether there is a symbol of that name at addr. */
bool kernel_symbols_has(const struct kernel_symbols *s, const char *name, uint64_t addr);
/* The address of the first symbol of that name in [start, end). 0: there is none. */
uint64_t kernel_symbols_find_in(const struct kernel_symbols *s, const char *name, uint64_t start,
				uint64_t end);

/* Writes the code symbols. 0, or -1: the writer's errors, PT_ERR_NO_MEMORY. */
int kernel_symbols_put(const struct kernel_symbols *s, struct ptc_writer *w, int32_t machine_pid,
		       struct pt_error *e);

/*
 * Replaces the calls of __fentry__ that functions begin with, in code that is at vaddr, by NOPs. The kernel
 * does so when it boots; ftrace brings back those of functions that are traced. s: NULL is fine.
 */
void kernel_unfentry(const struct kernel_symbols *s, uint64_t vaddr, uint8_t *bytes, size_t size);

#endif
