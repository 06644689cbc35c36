/*
 * insn_texts.h - the instructions of paths as text, for pt-decode --insns: each is decoded, named and
 * disassembled once for each version of its code.
 *
 * A path is given while its code is what was executed (flow.h), and printed later, when the times of its run
 * are known. So its instructions are kept from then on.
 */
#ifndef DECODE_OUTPUT_INSN_TEXTS_H
#define DECODE_OUTPUT_INSN_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/output/definitions.h"

struct pt_insn_texts;

/* text->describe says what is kept of an instruction. NULL: no memory. */
struct pt_insn_texts *pt_insn_texts_create(const struct pt_graph *graph, const struct pt_text *text);
void pt_insn_texts_destroy(struct pt_insn_texts *t); /* NULL is fine */

/* A path of the graph, of which a run has just been reported. False: no memory. */
bool pt_insn_texts_add(struct pt_insn_texts *t, const struct pt_path *path);
/* The instructions of a path that was added, in order, each by a number. Valid until the next add. */
const uint32_t *pt_insn_texts_of(const struct pt_insn_texts *t, uint32_t path, uint32_t *ret_count);
/* What text->describe has written of an instruction. */
const char *pt_insn_text(const struct pt_insn_texts *t, uint32_t insn, uint32_t *ret_bytes);
/* The graph's paths and codes are about to go: so do these. */
void pt_insn_texts_clear(struct pt_insn_texts *t);

#endif
