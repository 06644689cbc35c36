/*
 * call_paths.h - the tree of call paths: a function, and the path of its caller. Each gets a number when it is
 * new, and is to be written as a CALL_PATH record.
 *
 * So that memory is bounded, only some are remembered, those asked for last; one that was forgotten is new when
 * it is called again, with another number.
 */
#ifndef DECODE_OUTPUT_CALL_PATHS_H
#define DECODE_OUTPUT_CALL_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/records.h"

/* In place of a call path's number, when there were too many to have numbers: its own, and those of its
 * callees. */
#define PT_NO_CALL_PATH UINT32_MAX

struct pt_call_paths;

/* remembered: how many, at most (32 bytes each). NULL: no memory. */
struct pt_call_paths *pt_call_paths_create(uint32_t remembered);
void pt_call_paths_destroy(struct pt_call_paths *paths); /* NULL is fine */

/* What is called. */
struct pt_callee {
	uint64_t ip;
	uint32_t place; /* what names it in the record: its symbol, or what pt_emit_place() says */
	bool named;	/* it has a symbol, which it is known by; else by ip */
};

/* Call paths that have got numbers, in the order of these. */
struct pt_new_call_paths {
	struct ptr_call_path *items;
	size_t count, room;
};

/*
 * The number of a call path, which is added to *added when it is new, or forgotten. parent: its caller's, 0 for
 * a root; it remains good when the parent is forgotten. Returns PT_NO_CALL_PATH when half a billion have got
 * numbers already (pt_call_paths_full()); 0: no memory.
 */
uint32_t pt_call_path(struct pt_call_paths *paths, uint32_t parent, const struct pt_callee *callee,
		      struct pt_new_call_paths *added);
/* It has returned PT_NO_CALL_PATH for one whose parent has a number. */
bool pt_call_paths_full(const struct pt_call_paths *paths);

#endif
