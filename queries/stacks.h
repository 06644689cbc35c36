/*
 * stacks.h - the rows of a query of call stacks (folded), as formats for viewers want them: frames once,
 * stacks as their numbers.
 */
#ifndef QUERIES_STACKS_H
#define QUERIES_STACKS_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"
#include "schema/hash.h"

struct stacks {
	char **frames; /* number n is frames[n - 1] */
	size_t frame_count, frame_room;
	struct pt_hash by_name;
	uint32_t
	    *stacks; /* of all rows, one after the other: a count, and as many frames, the outermost first */
	size_t stack_count, stack_room;
	int64_t *weights; /* of each row */
	size_t weight_count, weight_room;
};

/*
 * Runs the statement to its end. Frames are the texts between the semicolons of column `stack`; rows
 * without a stack or with no positive number in the last column are left out. format: for messages. 0, or
 * -1: PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_USAGE (no column `stack`), PT_ERR_NO_MEMORY.
 * stacks_deinit() in either case.
 */
int stacks_read(struct stacks *s, sqlite3_stmt *statement, const char *format, struct pt_error *e);
void stacks_deinit(struct stacks *s);

#endif
