/*
 * code.h - the code that a raw trace ran, as the options of `pt-capture import --raw` say: which bytes of
 * which files were mapped where.
 */
#ifndef CAPTURE_RAW_CODE_H
#define CAPTURE_RAW_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"

struct import_mapping {
	uint64_t addr, bytes; /* mapped at [addr, addr + bytes) */
	uint64_t offset;      /* in the file, of addr */
	char *name;	      /* absolute; without .zst */
	char *path;	      /* to be opened: name, or name with .zst */
};

struct import_code {
	/* In the order in which they were given: a later one covers earlier ones. */
	struct import_mapping *mappings;
	size_t count, room;
};

struct import_code *import_code_create(void); /* NULL: no memory */
void import_code_destroy(struct import_code *c);

/*
 * Each takes an option's argument, see pt-capture import --help, and adds its mappings. 0, or -1:
 * PT_ERR_USAGE for a malformed argument, PT_ERR_IO, PT_ERR_BAD_INPUT (no ELF file, no code in it, a malformed
 * line), PT_ERR_NO_MEMORY.
 */
int import_code_elf(struct import_code *c, const char *argument, struct pt_error *e);
int import_code_maps(struct import_code *c, const char *path, struct pt_error *e);
int import_code_raw(struct import_code *c, const char *argument, struct pt_error *e);

/* Whether a mapping is at an address of the kernel. */
bool import_code_has_kernel(const struct import_code *c);
bool import_mapping_is_kernel(const struct import_mapping *m);

/* The first file's name, without folder; "raw" when there is none. */
const char *import_code_comm(const struct import_code *c);

/*
 * Writes the images, and the symbols of ELF files. What is mapped at the kernel's addresses becomes
 * memory of the kernel, which is there all the time, in the order of the mappings. 0, or -1: the
 * writer's errors, PT_ERR_IO, PT_ERR_BAD_INPUT (a file that has no byte of a mapping of it; zstd data
 * that is broken), PT_ERR_TRUNCATED.
 */
int import_code_write(const struct import_code *c, struct ptc_writer *w, struct pt_error *e);

#endif
