/*
 * elf_debug_file.h - the ELF file that has the symbol table of a stripped one.
 *
 * Looked for as gdb does: by build id (/usr/lib/debug/.build-id), by .gnu_debuglink, at debuginfod's
 * servers if they are to be asked, and last the .gnu_debugdata that some distributions leave in a file
 * ("mini debug info": the functions' names, packed by xz).
 */
#ifndef CAPTURE_CODE_ELF_DEBUG_FILE_H
#define CAPTURE_CODE_ELF_DEBUG_FILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/error.h"

/* A stripped ELF file, or another one. */
struct elf_file {
	Elf *elf;
	uint64_t bytes;		 /* its length */
	const uint8_t *build_id; /* NULL: none */
	uint32_t build_id_bytes;
	const char *name; /* its path where it was mapped, NULL: unknown */
	bool ask_servers; /* debuginfod.h: it may take a while */
};

struct elf_debug_file {
	Elf *elf; /* NULL: there is none */
	uint64_t bytes;
	int fd;	      /* -1: it is in memory */
	void *memory; /* NULL: it is a file */
};

/*
 * Opens it. A file that .gnu_debuglink names must have the checksum that stands there. What is broken is as
 * if it were not there. Returns 0, or -1: PT_ERR_NO_MEMORY. Free with close in both cases.
 */
int elf_debug_file_open(struct elf_debug_file *ret, const struct elf_file *of, struct pt_error *e);
void elf_debug_file_close(struct elf_debug_file *d);

/* The section of that name, its length, and its address (NULL: not asked for). NULL: there is none. */
const uint8_t *elf_section_bytes(Elf *elf, const char *name, uint64_t *ret_bytes, uint64_t *ret_address);

#endif
