/*
 * images.h - the code of what is mapped, and of the kernel, into the container.
 *
 * Files are opened as the mapping process sees them (/proc/PID/map_files, /proc/PID/root), and taken only when they are the
 * inode that the record names: a file that was replaced since is unknown code, not wrong code. The kernel's code is what
 * /proc/kcore shows: as it runs, with jump labels and alternatives patched. Nothing is executed, nothing written.
 */
#ifndef CAPTURE_RECORD_IMAGES_H
#define CAPTURE_RECORD_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"

struct hw_images;

struct hw_images *hw_images_create(struct ptc_writer *w); /* NULL: no memory */
void hw_images_destroy(struct hw_images *im);

/* The image of an executable mapping (an MMAP2 record's fields), unless the container has it; what cannot be read is
 * counted. inode 0: not checked. 0, or -1: the writer's errors. */
int hw_images_mapping(struct hw_images *im, int32_t pid, const char *name, uint64_t start, uint64_t bytes,
		      uint64_t inode, struct pt_error *e);

/* Mappings whose code could not be read, and the first one's reason. */
uint64_t hw_images_missing(const struct hw_images *im, const char **ret_why);

/* ---- The kernel's ---- */

/* Opens /proc/kcore, kallsyms; before capabilities are dropped. Returns whether kcore can be read; else *why says why. */
bool hw_kernel_open(struct hw_images *im, struct pt_error *why);
/* The text, the whole of module space (modules, BPF programs, trampolines, thunks), and the symbols. 0, or -1. */
int hw_kernel_put(struct hw_images *im, struct pt_error *e);
/* Code that has come later (a KSYMBOL record's): read now, valid from time_ns. 0, or -1. */
int hw_kernel_code(struct hw_images *im, uint64_t address, uint64_t bytes, uint64_t time_ns,
		   struct pt_error *e);
/* What has come into module space since the last look, valid from time_ns; and its symbols. 0, or -1. */
int hw_kernel_rescan(struct hw_images *im, uint64_t time_ns, struct pt_error *e);

#endif
