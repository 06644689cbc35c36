/*
 * kernel_module.h - a kernel module's code from its file, as the kernel has loaded it.
 *
 * A module is a relocatable ELF file. The kernel lays its executable sections one after the other
 * from the module's address on, each aligned as its header asks (kernel/module/main.c,
 * layout_sections()). Sections that are freed after start (.init*) are left out. Where kallsyms has
 * the address of a section's function, that address counts. Then the sections are relocated: against
 * one another, and against symbols of the kernel and of other modules. What a running kernel patches
 * (alternatives, static calls and branches, mitigations) is not in the file, except calls of
 * __fentry__ (__mcount_loc), which are NOPs unless functions are traced. Branches of which the target is not
 * known are left out: there is no code then, not wrong code.
 */
#ifndef CAPTURE_CODE_KERNEL_MODULE_H
#define CAPTURE_CODE_KERNEL_MODULE_H

#include "capture/code/kernel_files.h"

/*
 * The file of a module: "/lib/modules/.../kvm.ko.xz" or "[kvm]", as perf's records name it, below
 * root ("" for /) in /lib/modules/RELEASE, packed or not; release NULL: in any folder below root. In
 * new memory; NULL: there is none, or no memory.
 */
char *kernel_module_find(const char *root, const char *release, const char *name);

/* The file's bytes, unpacked when it is .gz, .xz or .zst, in new memory. NULL: PT_ERR_IO, PT_ERR_NO_MEMORY,
 * PT_ERR_BAD_INPUT (not what its name says, or too long). */
uint8_t *kernel_module_read(const char *path, size_t *ret_bytes, struct pt_error *e);

/* A module: its file's bytes, and where it is mapped. */
struct kernel_module {
	const uint8_t *bytes;
	size_t size;
	const char *name;    /* of the image */
	uint64_t start, end; /* half-open */
};

/*
 * Writes the module's code. symbols may be NULL. Adds to *ret_unknown the number of places that could
 * not be relocated and are left out. 0, or -1: the writer's errors, PT_ERR_NO_MEMORY;
 * PT_ERR_BAD_INPUT: it is no module, or not the one that the symbols are of, and nothing was written.
 */
int kernel_put_module(const struct kernel_module *module, const struct kernel_symbols *symbols,
		      struct kernel_output *to, unsigned *ret_unknown, struct pt_error *e);

#endif
