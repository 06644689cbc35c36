/*
 * kernel_module.h - a kernel module's code from its file, as the kernel has loaded it.
 *
 * A module is a relocatable ELF file. The kernel lays its executable sections, but those that are gone after its start
 * (.init*), one behind the other from the module's address on, each aligned as it asks (kernel/module/main.c,
 * layout_sections()); where kallsyms tells the address of a section's function, that counts. Then it relocates them:
 * against themselves, and against the kernel's and other modules' symbols. What a running kernel patches (alternatives,
 * static calls and branches, mitigations) is not known from the file, but for calls of __fentry__ (__mcount_loc), which
 * are NOPs unless somebody traces functions. Branches whose target nobody tells are left out: there is no code, not a wrong
 * one.
 */
#ifndef CAPTURE_CODE_KERNEL_MODULE_H
#define CAPTURE_CODE_KERNEL_MODULE_H

#include "capture/code/kernel_files.h"

/*
 * The file of a module: "/lib/modules/.../kvm.ko.xz" or "[kvm]", as perf's records name it, below root ("" for /) in
 * /lib/modules/RELEASE, packed or not; release NULL: in any folder below root. In new memory; NULL: there is none, or no memory.
 */
char *kernel_module_find(const char *root, const char *release, const char *name);

/* The file's bytes, unpacked when it is .gz, .xz or .zst, in new memory. NULL: PT_ERR_IO, PT_ERR_NO_MEMORY,
 * PT_ERR_BAD_INPUT (not what its name says, or too long). */
uint8_t *kernel_module_read(const char *path, size_t *ret_bytes, struct pt_error *e);

/*
 * Writes the code of the module of these bytes, an image `name`, that is mapped at [start, end). symbols may be NULL.
 * Adds to *ret what was written, and to *ret_unknown the branches that are left out. 0, or -1: the writer's errors,
 * PT_ERR_NO_MEMORY; PT_ERR_BAD_INPUT: it is no module, or not the one that the symbols are of, and nothing was written.
 */
int kernel_put_module(const uint8_t *bytes, size_t size, const char *name, uint64_t start, uint64_t end,
		      const struct kernel_symbols *symbols, struct ptc_writer *w, int32_t machine_pid,
		      struct kernel_ranges *ret, unsigned *ret_unknown, struct pt_error *e);

#endif
