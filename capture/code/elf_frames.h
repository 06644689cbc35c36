/*
 * elf_frames.h - where an ELF file's functions begin and end, by its unwind tables (.eh_frame), which stripped
 * files have, too. As the Linux Standard Base describes them (Exception Frames; pointer encodings in DWARF
 * Exception Header Encoding).
 */
#ifndef CAPTURE_CODE_ELF_FRAMES_H
#define CAPTURE_CODE_ELF_FRAMES_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

/* Addresses as the file has them, half-open. */
struct elf_frame {
	uint64_t start, end;
};

/*
 * The frame descriptions of the file's executable segments, in the file's order; some have several pieces of
 * one function, or the whole PLT. *ret is the caller's to free. What is broken ends the list. Returns how many
 * there are, or -1: PT_ERR_NO_MEMORY.
 */
long elf_frames_read(Elf *elf, struct elf_frame **ret, struct pt_error *e);

#endif
