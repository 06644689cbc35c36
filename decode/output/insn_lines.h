/*
 * insn_lines.h - pt-decode --insns: one line per executed instruction, with the fields that the user chose,
 * separated by tabs.
 */
#ifndef DECODE_OUTPUT_INSN_LINES_H
#define DECODE_OUTPUT_INSN_LINES_H

#include <stdio.h>

#include "decode/output/emit.h"

struct pt_insn_lines;

/*
 * Lines to out, which is not closed. fields: comma-separated names of pt_insn_lines_fields(); NULL: the usual
 * ones. att: AT&T syntax. Returns NULL on failure: PT_ERR_USAGE (a field has no such name, or too many),
 * PT_ERR_REFUSED (there is no capstone), PT_ERR_NO_MEMORY.
 */
struct pt_insn_lines *pt_insn_lines_create(FILE *out, const char *fields, bool att, struct pt_error *e);
void pt_insn_lines_destroy(struct pt_insn_lines *l); /* NULL is fine */

/* What a session gets (pt_session_options.text); it lives as long as l. */
const struct pt_text *pt_insn_lines_text(struct pt_insn_lines *l);

/* The names that fields may have, comma-separated. */
const char *pt_insn_lines_fields(void);

#endif
