/*
 * row_turns.h - two makers of rows take turns, the second one in a thread of its own, some turns ahead.
 *
 *     first     1 -- 2 -- 3 -- 4 ...      in the caller's thread
 *     second    1 -- 2 -- 3 -- 4 ...      in another one; its rows are kept until it is their turn
 *     inserted  first 1, second 1, first 2, second 2, first 3 ...
 *
 * So the rows come in the same order without the thread, and the database is the same.
 */
#ifndef EXPORT_ROW_TURNS_H
#define EXPORT_ROW_TURNS_H

#include <stdbool.h>

#include "export/sink.h"
#include "schema/error.h"

struct inserter;
struct kept_rows;

/* A turn is about so many bytes of rows (insert_bytes()). With less, more of a compressed database's frames
 * have both tables: 512 KB make it 1 to 2 % larger. */
#define ROW_TURN_BYTES (1u << 21)

struct row_maker {
	/* The rows of its next turn. 1: there is another one; 0: there is none; -1: an error. */
	int (*make)(void *arg, struct pt_error *e);
	/* Where they go to (insert_keep()). The first maker's may be NULL. */
	void (*keep)(void *arg, struct kept_rows *rows);
	void *arg;
};

/* All turns of both, which use nothing that the other one changes. Polls once a turn. 0, or -1: what a maker
 * came to, or inserting its rows; PT_ERR_REFUSED: interrupted. */
int row_turns_run(struct inserter *inserter, const struct row_maker *first, const struct row_maker *second,
		  bool threaded, const struct pt_sink_poll *poll, struct pt_error *e);

#endif
