/*
 * executed_code.h - which instructions were executed, with their bytes: CODE of the record stream.
 *
 * A path is given when it is defined, while its code is what was executed. Each of its instructions is kept once,
 * however many paths have it. Where two paths have different code at one address (of processes that are mapped
 * alike, of guests, or because it was changed), they get different versions (struct ptr_code).
 */
#ifndef DECODE_OUTPUT_EXECUTED_CODE_H
#define DECODE_OUTPUT_EXECUTED_CODE_H

#include <stdint.h>

#include "decode/output/definitions.h"

struct pt_executed;

struct pt_executed *pt_executed_create(struct pt_emit *emit); /* NULL: no memory */
void pt_executed_destroy(struct pt_executed *x);	      /* NULL is fine */

/* The version of the code that the path ran; 0: no memory, or writing failed (emit->failed says so). */
uint32_t pt_executed_path(struct pt_executed *x, const struct pt_path *path);
/* All paths are defined: writes the code. A failure is kept in emit. */
void pt_executed_finish(struct pt_executed *x);

#endif
