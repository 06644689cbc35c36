/* disassembler.c - see disassembler.h. */
#include "schema/disassembler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(struct pt_error *e)
{
	pt_fail(
	    e, PT_ERR_REFUSED, PT_NO_OFFSET,
	    "this program was built without capstone, which names instructions: install libcapstone-dev (of "
	    "Fedora and openSUSE: capstone-devel; of Arch: capstone) and build it again");
}

#ifdef HAVE_CAPSTONE

#include <capstone/capstone.h>

/* A static program is linked without them, and then they are NULL. */
#pragma weak cs_close
#pragma weak cs_disasm_iter
#pragma weak cs_free
#pragma weak cs_malloc
#pragma weak cs_open
#pragma weak cs_option

struct pt_disassembler {
	csh handles[3]; /* of 64, 32, 16 bits */
	cs_insn *insn;
};

struct pt_disassembler *pt_disassembler_create(bool att, struct pt_error *e)
{
	static const cs_mode modes[3] = {CS_MODE_64, CS_MODE_32, CS_MODE_16};
	struct pt_disassembler *d;

	if (!cs_open) {
		refuse(e);
		return NULL;
	}
	d = calloc(1, sizeof *d);
	for (int i = 0; d && i < 3; i++) {
		if (cs_open(CS_ARCH_X86, modes[i], &d->handles[i]) != CS_ERR_OK)
			goto failed;
		cs_option(d->handles[i], CS_OPT_SYNTAX, att ? CS_OPT_SYNTAX_ATT : CS_OPT_SYNTAX_INTEL);
	}
	if (d)
		d->insn = cs_malloc(d->handles[0]);
	if (d && d->insn)
		return d;
failed:
	pt_fail_no_memory(e, "the disassembler");
	pt_disassembler_destroy(d);
	return NULL;
}

void pt_disassembler_destroy(struct pt_disassembler *d)
{
	if (!d)
		return;
	if (d->insn)
		cs_free(d->insn, 1);
	for (int i = 0; i < 3; i++)
		if (d->handles[i])
			cs_close(&d->handles[i]);
	free(d);
}

static bool by_capstone(struct pt_disassembler *d, const uint8_t *bytes, uint32_t len, uint64_t ip,
			uint32_t bits, char *ret)
{
	const uint8_t *code = bytes;
	size_t left = len;
	uint64_t address = ip;
	int n;

	if (!cs_disasm_iter(d->handles[bits == 64   ? 0
				       : bits == 32 ? 1
						    : 2],
			    &code, &left, &address, d->insn) ||
	    d->insn->size != len)
		return false;
	n = snprintf(ret, PT_INSN_TEXT, "%s%s%s", d->insn->mnemonic, d->insn->op_str[0] ? " " : "",
		     d->insn->op_str);
	return n > 0 && n < PT_INSN_TEXT;
}

void pt_disassemble(struct pt_disassembler *d, const uint8_t *bytes, uint32_t len, uint64_t ip, uint32_t bits,
		    char *ret)
{
	if (by_capstone(d, bytes, len, ip, bits, ret))
		return;
	strcpy(ret, ".byte");
	for (uint32_t i = 0, at = 5; i < len; i++)
		at += (uint32_t)snprintf(ret + at, PT_INSN_TEXT - at, "%s0x%02x", i ? ", " : " ", bytes[i]);
}

#else

struct pt_disassembler *pt_disassembler_create(bool att, struct pt_error *e)
{
	(void)att;
	refuse(e);
	return NULL;
}

void pt_disassembler_destroy(struct pt_disassembler *d)
{
	(void)d;
}

/* None is ever created, so this is not called. */
void pt_disassemble(struct pt_disassembler *d, const uint8_t *bytes, uint32_t len, uint64_t ip, uint32_t bits,
		    char *ret)
{
	(void)d, (void)bytes, (void)len, (void)ip, (void)bits;
	ret[0] = 0;
}

#endif
