/*
 * text.h - pt-decode --text: one line per branch, with the fields that the user chose.
 */
#ifndef DECODE_OUTPUT_TEXT_H
#define DECODE_OUTPUT_TEXT_H

#include <stdio.h>

#include "decode/output/emit.h"
#include "decode/output/fields.h"

struct pt_lines;

/*
 * Lines to out, which is not closed. fields: comma-separated names of pt_lines_fields(); NULL: the
 * usual ones. Returns NULL on failure: PT_ERR_USAGE (a field has no such name, or too many),
 * PT_ERR_NO_MEMORY.
 */
struct pt_lines *pt_lines_create(FILE *out, const char *fields, struct pt_error *e);
void pt_lines_destroy(struct pt_lines *l); /* NULL is fine */

/* What a session gets (pt_session_options.text); it lives as long as l. */
const struct pt_text *pt_lines_text(struct pt_lines *l);

/* The names that fields may have, comma-separated. */
const char *pt_lines_fields(void);

/* The line of an error, of whatever lines. */
void pt_lines_error(FILE *out, const struct pt_error_line *e);

#endif
