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
#include "schema/derived/run_times.h"

struct run_feed;

/* Until run_feed_finish() the groups are the feed's. threaded: in a thread of its own. NULL:
 * PT_ERR_NO_MEMORY. */
struct run_feed *run_feed_create(struct run_groups *groups, bool threaded, struct pt_error *e);
/* Also before run_feed_finish(). NULL is fine. */
void run_feed_destroy(struct run_feed *f);

/*
 * Room for the next run, in the order of ids, to be filled before run_feed_add(): what is to be filled in of a
 * struct ptr_timed_run, and *run_feed_own(). Without a thread nothing is copied any more. (Bytes that have just
 * been stored one by one would be copied in words, each of which waits for its stores.) NULL:
 * PT_ERR_NO_MEMORY, or what run_groups_add() said of one before.
 */
struct ptr_timed_run *run_feed_room(struct run_feed *f, struct pt_error *e);
static inline struct group_run *run_feed_own(struct ptr_timed_run *run)
{
	return (void *)&run->own;
}
/* That room is filled. 0, or -1 as above. */
int run_feed_add(struct run_feed *f, struct pt_error *e);
/* No more runs follow: all are in the groups. 0, or -1 as above. */
int run_feed_finish(struct run_feed *f, struct pt_error *e);

#endif
