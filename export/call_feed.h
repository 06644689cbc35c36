/*
 * call_feed.h - gives calls.h and call_paths.h what they need, in another thread: they are a
 * quarter of the work of a load, and need nothing of the rest. What they make of it is the same with and
 * without the thread.
 */
#ifndef EXPORT_CALL_FEED_H
#define EXPORT_CALL_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "export/call_paths.h"
#include "export/calls.h"
#include "schema/records.h"

struct call_feed;

/* Until call_feed_finish() both are the feed's. threaded: in a thread of its own, if one can be had. NULL:
 * PT_ERR_NO_MEMORY. */
struct call_feed *call_feed_create(struct calls *calls, struct call_paths *paths, bool threaded,
				   struct pt_error *e);
/* Also before call_feed_finish(). NULL is fine. */
void call_feed_destroy(struct call_feed *f);

/* What the functions of these names in calls.h and call_paths.h take. 0, or -1: what one of them said,
 * now or of something earlier. */
int call_feed_run(struct call_feed *f, uint64_t number, uint64_t tsc, struct pt_error *e);
int call_feed_call(struct call_feed *f, const struct ptr_call *call, struct pt_error *e);
int call_feed_sum(struct call_feed *f, const struct ptr_call_sum *sum,
		  struct pt_error *e); /* call_paths_add_sum() */
int call_feed_path(struct call_feed *f, const struct ptr_call_path *path, struct pt_error *e);
int call_feed_symbol(struct call_feed *f, uint64_t start, struct pt_error *e);

/* All of it has been taken. 0 or -1 as above. */
int call_feed_finish(struct call_feed *f, struct pt_error *e);

#endif
