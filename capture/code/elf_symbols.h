/*
 * elf_symbols.h - the names of an ELF file's code, as PTC_SYMBOLS takes them. Used by elf_image.c.
 */
#ifndef CAPTURE_CODE_ELF_SYMBOLS_H
#define CAPTURE_CODE_ELF_SYMBOLS_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/code/elf_debug_file.h"
#include "schema/container.h"
#include "schema/error.h"

struct elf_symbols {
	struct ptc_symbol *symbols; /* by value, then name; each once */
	size_t count, room;
	char *strings;
	size_t strings_bytes, strings_room;
	uint64_t left; /* bytes that may still be read, see elf_symbols_read() */
};

/*
 * Gathers into *ret, which is zeroed before: functions (STT_FUNC, STT_GNU_IFUNC) and untyped labels
 * in executable sections, of .symtab and .dynsym, under their raw (mangled) names; an entry of the
 * PLT as "name@plt". Has the file no .symtab, that of its debug file (elf_debug_file.h) stands in, if there is
 * one. What is broken in the file is left out; so is what makes more work than 16 times the file's length
 * (of->bytes), which is none that a linker has made. Returns 0, or -1: PT_ERR_NO_MEMORY. Free with deinit
 * in both cases.
 */
int elf_symbols_read(struct elf_symbols *ret, const struct elf_file *of, struct pt_error *e);
/*
 * Adds the functions that .eh_frame shows where no symbol is: as "perl+0x1e30", the file's own name and the
 * function's address in it, of type PTC_SYMBOL_BOUNDS. Returns 0, or -1: PT_ERR_NO_MEMORY.
 */
int elf_symbols_add_frames(struct elf_symbols *s, const struct elf_file *of, struct pt_error *e);
void elf_symbols_deinit(struct elf_symbols *s);

#endif
