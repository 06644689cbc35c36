/*
 * disassembler.h - an instruction as text, by capstone.
 *
 * capstone says what an instruction is called, never how long it is: that is decode/insn.h's. What capstone
 * does not know (4.0.2: much of AVX-512, RDPKRU, ...), or takes for an instruction of another length, is
 * shown as its bytes.
 *
 * capstone is optional. Without HAVE_CAPSTONE when this is compiled (the Makefile looks for the header), or
 * linked statically, pt_disassembler_create() says what to install.
 */
#ifndef SCHEMA_DISASSEMBLER_H
#define SCHEMA_DISASSEMBLER_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/error.h"

#define PT_INSN_TEXT 256 /* bytes, with the ending 0, of the longest text */

struct pt_disassembler;

/* att: AT&T syntax, else Intel's. NULL: PT_ERR_REFUSED (there is no capstone), PT_ERR_NO_MEMORY. */
struct pt_disassembler *pt_disassembler_create(bool att, struct pt_error *e);
void pt_disassembler_destroy(struct pt_disassembler *d); /* NULL is fine */

/*
 * The instruction of len bytes at ip, of code of 64, 32 or 16 bits: "mov rdi, rbx", or ".byte 0x62, 0xf1".
 * Branch targets are absolute and hexadecimal. ret has room for PT_INSN_TEXT.
 */
void pt_disassemble(struct pt_disassembler *d, const uint8_t *bytes, uint32_t len, uint64_t ip, uint32_t bits,
		    char *ret);

#endif
