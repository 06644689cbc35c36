/*
 * run_feed.h - runs on their way to run_groups.h, in another thread: there they get their times
 * (schema/derived/run_times.h), which is a quarter of what the thread that reads does otherwise. What comes of
 * it is the same without the thread.
 */
#ifndef EXPORT_RUN_FEED_H
#define EXPORT_RUN_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "export/run_groups.h"

struct run_feed;

/* A run of the record stream, and what the times need to know of its path. */
struct fed_run {
	int64_t id, slice; /* the database's */
	uint64_t tsc;
	uint64_t cyc_count, insn_count, back; /* as in struct group_run */
	uint64_t insns;			      /* in all of it */
	uint32_t path, repeats;		      /* as in struct group_run */
	uint32_t stream, stream_slice;	      /* the stream's numbers */
	uint32_t first_insns;		      /* up to its first branch, inclusive */
	uint8_t timing;			      /* as in struct ptr_run */
	bool begins, crosses, direct_last;    /* as in struct ptr_timed_run */
};

/* Until run_feed_finish() the groups are the feed's. threaded: in a thread of its own. NULL:
 * PT_ERR_NO_MEMORY. */
struct run_feed *run_feed_create(struct run_groups *groups, bool threaded, struct pt_error *e);
/* Also before run_feed_finish(). NULL is fine. */
void run_feed_destroy(struct run_feed *f);

/* Room for the next run, in the order of ids, to be filled before run_feed_add(). NULL: PT_ERR_NO_MEMORY, or
 * what run_groups_add() said of one before. */
struct fed_run *run_feed_room(struct run_feed *f, struct pt_error *e);
/* That room is filled. 0, or -1 as above. */
int run_feed_add(struct run_feed *f, struct pt_error *e);
/* No more runs follow: all are in the groups. 0, or -1 as above. */
int run_feed_finish(struct run_feed *f, struct pt_error *e);

#endif
