/*
 * call_paths.h - the tree of call paths: a function, and the path of its caller. Each has an id from when it is
 * asked for first, by any thread; and a number when it is written as a CALL_PATH record, which one thread does
 * in the order of the record stream.
 *
 * So that memory is bounded, only some are remembered, those asked for last; one that was forgotten is new when
 * it is called again, with another id.
 */
#ifndef DECODE_OUTPUT_CALL_PATHS_H
#define DECODE_OUTPUT_CALL_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In place of a call path's id, when there were too many to have ids: its own, and those of its callees. */
#define PT_NO_CALL_PATH UINT32_MAX

struct pt_call_paths;
struct pt_place;

/* remembered: how many, about, at most (32 bytes each). places: of callees, the caller's, as long as this is
 * used. NULL: no memory. */
struct pt_call_paths *pt_call_paths_create(uint32_t remembered, const struct pt_place *places);
void pt_call_paths_destroy(struct pt_call_paths *paths); /* NULL is fine */

/* What is called. */
struct pt_callee {
	uint64_t ip;
	uint32_t place; /* what names it: its symbol, or what pt_emit_place() says */
	bool named;	/* it has a symbol, which it is known by; else by where in the place it is */
};

/* Call paths that had no number when they were asked for, in that order, some more than once: what their
 * records are to say. place: the first of its function (places.h), which ip is in. */
struct pt_new_call_paths {
	struct pt_new_call_path {
		uint32_t id, parent; /* ids */
		uint32_t place;
		uint64_t ip;
	} * items;
	size_t count, room;
};

/*
 * The id of a call path, which is added to *added when it has no number yet. parent: its caller's id, 0 for a
 * root; it remains good when the parent is forgotten. Returns PT_NO_CALL_PATH when half a billion have got ids
 * already (pt_call_paths_full()); 0: no memory. Any thread.
 */
uint32_t pt_call_path(struct pt_call_paths *paths, uint32_t parent, const struct pt_callee *callee,
		      struct pt_new_call_paths *added);
/* It has returned PT_NO_CALL_PATH for one whose parent has an id. Any thread. */
bool pt_call_paths_full(const struct pt_call_paths *paths);

/* Its number; 0: it has none yet, or the id is none. Any thread. */
uint32_t pt_call_path_number(const struct pt_call_paths *paths, uint32_t id);
/* One thread. */
void pt_call_path_set_number(struct pt_call_paths *paths, uint32_t id, uint32_t number);

/* No thread is in another of these functions, nor will be before this returns: what was not asked for since
 * long is forgotten, if there are too many. True: some may be; all are to be asked for again. */
bool pt_call_paths_settle(struct pt_call_paths *paths);

#endif
