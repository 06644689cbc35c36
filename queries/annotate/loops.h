/*
 * loops.h - a function's loops, as they were executed, and their trips.
 *
 * A loop is what a back edge makes of the graph of executed instructions: its header is where the edge
 * leads, its body whatever leads to the edge without passing the header. Each time the loop is entered, a
 * trip count is how often its header ran until execution was outside the body again. Calls out of the loop
 * do not leave it; a function that calls itself has its loops once for each call.
 */
#ifndef QUERIES_ANNOTATE_LOOPS_H
#define QUERIES_ANNOTATE_LOOPS_H

#include "queries/annotate/counts.h"

#define LOOPS_MAX 64 /* in a function; further ones are not shown */

struct trips {
	uint64_t count, times; /* so many times, so many trips */
};

struct loop {
	uint32_t header;  /* an instruction */
	uint64_t entered; /* how often, with a trip count that is known */
	uint64_t cut;	  /* how often its beginning or end was not seen */
	uint64_t min, median, max;
	struct trips *trips; /* by count */
	size_t trip_count, trip_room;
};

struct loops {
	struct loop all[LOOPS_MAX];
	uint32_t count;
	bool more; /* there are more than LOOPS_MAX */
};

/* thread: as for paths_walk(). 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT. */
int loops_init(struct loops *l, sqlite3 *db, const struct fn *f, const struct paths *p,
	       const struct counts *c, const char *thread, struct pt_error *e);
/*
 * Adds what `other` says to a loop that is the same one, in another process. A zeroed one says nothing. 0,
 * or -1 (PT_ERR_NO_MEMORY). The caller free()s loop->trips.
 */
int loop_add(struct loop *loop, const struct loop *other, struct pt_error *e);
void loops_deinit(struct loops *l);

#endif
