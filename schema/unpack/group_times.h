/*
 * group_times.h - when the runs of a row of run_group were: what the view `run` says of its tsc columns.
 */
#ifndef SCHEMA_UNPACK_GROUP_TIMES_H
#define SCHEMA_UNPACK_GROUP_TIMES_H

#include <stdint.h>

enum { RUN_GROUP_MAX = 64 /* runs in a row */ };

/* Columns of the row, see schema/tables.sql. UNPACK_UNKNOWN and NULL where they are NULL, exact and open
 * 0. */
struct group_times_row {
	uint32_t n; /* runs, at most RUN_GROUP_MAX */
	int64_t tsc, est, est_next, end_add;
	uint64_t exact, open;
	const uint8_t *step, *time, *est_add;
};

struct group_times {
	struct group_times_row row;
	int64_t begin, span, end;	   /* of the estimates, and of all */
	uint32_t times;			   /* in time[] */
	uint32_t time[RUN_GROUP_MAX + 1];  /* numbers of the text */
	uint32_t place[RUN_GROUP_MAX];	   /* of each run's in them */
	uint32_t later[RUN_GROUP_MAX];	   /* of the next other one; times: there is none */
	uint32_t est_point[RUN_GROUP_MAX]; /* code points of est_add */
};

/* Reads the texts, which are not needed afterwards. */
void group_times_read(struct group_times *t, const struct group_times_row *row);

/* Of run i of the row: the view's tsc, tsc_end, tsc_est and tsc_next; UNPACK_UNKNOWN: NULL. */
int64_t group_times_tsc(const struct group_times *t, uint32_t i);
int64_t group_times_end(const struct group_times *t, uint32_t i);
int64_t group_times_estimate(const struct group_times *t, uint32_t i);
int64_t group_times_next(const struct group_times *t, uint32_t i);

#endif
