/*
 * call_paths.h - the tree of call paths: a function, and the path of its caller. Each is written when it is
 * new, as a CALL_PATH record.
 *
 * So that memory is bounded, emit->call_paths of them are remembered, those asked for last; one that was
 * forgotten is written again when it is called again, with another number.
 */
#ifndef DECODE_OUTPUT_CALL_PATHS_H
#define DECODE_OUTPUT_CALL_PATHS_H

#include <stdint.h>

#include "decode/output/definitions.h"

/* In place of a call path's number, when there were too many to have numbers: its own, and those of its
 * callees. */
#define PT_NO_CALL_PATH UINT32_MAX

struct pt_call_paths;

struct pt_call_paths *pt_call_paths_create(struct pt_emit *emit); /* NULL: no memory */
void pt_call_paths_destroy(struct pt_call_paths *paths);	  /* NULL is fine */

/* What is called. */
struct pt_callee {
	uint32_t symbol; /* the function's record number; 0 for code without one, which is known by ip */
	uint32_t place;	 /* what names it in the record: the symbol, or what pt_emit_place() says */
	uint64_t ip;
};

/*
 * The number of a call path, which is written when it is new, or forgotten. parent: its caller's, 0 for a
 * root; it remains good when the parent is forgotten. Returns PT_NO_CALL_PATH when half a billion were
 * written already, which an error record says once; 0 after a failure, which is emit's.
 */
uint32_t pt_call_path(struct pt_call_paths *paths, uint32_t parent, const struct pt_callee *callee);

#endif
