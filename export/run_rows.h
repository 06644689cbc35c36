/*
 * run_rows.h - a group of up to 64 runs as a row of table run_group (schema/tables.sql).
 */
#ifndef EXPORT_RUN_ROWS_H
#define EXPORT_RUN_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "export/digits.h"
#include "schema/error.h"

struct inserter;

enum { RUN_GROUP_EST = 125 }; /* steps of est_add: one byte each */

/* What is the same for all runs of a group, or a bit for each. */
struct run_group_head {
	int64_t id, slice;
	uint64_t tsc; /* the first run's, PTR_NO_TSC unknown */
	uint32_t n;
	bool whole; /* the only run's cycles and instructions fit no text: */
	uint64_t cyc_whole, insn_whole;
	uint64_t exact, open; /* bit n: run n */
	uint64_t est, next,
	    end; /* as columns est, est_next, end_add are, from 0 on. end: PTR_NO_TSC unknown */
};

/* Its numbers, a column each. */
struct run_group {
	struct run_group_head head;
	/* time: ticks since head.tsc. cyc: + 1, 0 unknown. insn: of the cycles' stretch, 0 where these
	 * are unknown. */
	struct digits path, time, repeats, cyc, insn, back, est;
};

struct run_rows;

struct run_rows *run_rows_create(struct inserter *inserter,
				 struct pt_error *e); /* NULL: PT_ERR_NO_MEMORY, or SQLite's error */
void run_rows_destroy(struct run_rows *r);	      /* NULL is fine */
/* Inserts the row. path has ids of the database; usual: of each run, what path.stretch_insns says. 0, or
 * -1: SQLite's error. */
int run_rows_insert(struct run_rows *r, struct run_group *g, const uint32_t usual[DIGITS_ROW],
		    struct pt_error *e);
uint64_t run_rows_bytes(const struct run_rows *r); /* of all rows (insert_bytes()) */

#endif
