/*
 * call_feed.h - gives calls.h and call_paths.h what they need, in other threads: they are a third of the
 * work of a load, and need nothing of the rest, nor of each other. What they make of it is the same with and
 * without threads.
 */
#ifndef EXPORT_CALL_FEED_H
#define EXPORT_CALL_FEED_H

#include <stdint.h>

#include "export/call_paths.h"
#include "export/calls.h"
#include "schema/records.h"

struct call_feed;

/* Until call_feed_finish() both are the feed's. threads: of the load; 1: there is no other than the caller's,
 * from four on each of the two has its own, if it can be had. NULL: PT_ERR_NO_MEMORY. */
struct call_feed *call_feed_create(struct calls *calls, struct call_paths *paths, unsigned threads,
				   struct pt_error *e);
/* Also before call_feed_finish(). NULL is fine. */
void call_feed_destroy(struct call_feed *f);

/* What the functions of these names in calls.h and call_paths.h take; a call's sums are added, too. 0, or
 * -1: what one of them said, now or of something earlier. */
int call_feed_run(struct call_feed *f, uint64_t number, uint64_t tsc, struct pt_error *e);
int call_feed_call(struct call_feed *f, const struct ptr_call *call, struct pt_error *e);
int call_feed_sum(struct call_feed *f, const struct ptr_call_sum *sum,
		  struct pt_error *e); /* call_paths_add_sum() */
int call_feed_path(struct call_feed *f, const struct ptr_call_path *path, struct pt_error *e);
int call_feed_symbol(struct call_feed *f, uint64_t start, struct pt_error *e);

/* All of it has been taken. 0 or -1 as above. */
int call_feed_finish(struct call_feed *f, struct pt_error *e);

#endif
