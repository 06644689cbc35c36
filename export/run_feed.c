/* run_feed.c - see run_feed.h. */
#include "export/run_feed.h"

#include <stdlib.h>
#include <string.h>

#include "export/feed.h"
#include "schema/derived/run_times.h"
#include "schema/records.h"

struct run_feed {
	struct run_groups *groups;
	struct ptr_times *times;
	struct feed *feed;   /* NULL: there is no thread */
	struct fed_run room; /* of the next run then */
};

/* Runs whose times are known by now go into the groups. */
static int take_settled(const struct run_feed *f, struct pt_error *e)
{
	const struct ptr_timed_run *r;
	struct group_run g;

	while ((r = ptr_times_next(f->times))) {
		memcpy(&g, &r->own, sizeof g);
		if (run_groups_add(f->groups, &g, r, e) < 0)
			return -1;
	}
	return 0;
}

static int take(void *arg, void *message, struct pt_error *e)
{
	const struct run_feed *f = arg;
	const struct fed_run *r = message;
	struct ptr_timed_run *run = ptr_times_room(f->times);
	const struct group_run g = {.id = r->id,
				    .slice = r->slice,
				    .tsc = r->tsc,
				    .path = r->path,
				    .repeats = r->repeats,
				    .cyc_count = r->cyc_count,
				    .insn_count = r->insn_count,
				    .back = r->back};

	_Static_assert(sizeof g <= sizeof run->own, "a run fits");
	if (!run)
		return pt_fail_no_memory(e, "times");
	run->stream = r->stream;
	run->slice = r->stream_slice;
	run->timing = r->timing;
	run->begins = r->begins;
	run->crosses = r->crosses;
	run->direct_last = r->direct_last;
	run->first_insns = r->first_insns;
	run->insns = r->insns;
	run->tsc = r->tsc;
	memcpy(&run->own, &g, sizeof g);
	if (!ptr_times_add(f->times))
		return pt_fail_no_memory(e, "times");
	return take_settled(f, e);
}

struct fed_run *run_feed_room(struct run_feed *f, struct pt_error *e)
{
	return f->feed ? feed_give(f->feed, sizeof(struct fed_run), e) : &f->room;
}

int run_feed_add(struct run_feed *f, struct pt_error *e)
{
	return f->feed ? 0 : take(f, &f->room, e);
}

int run_feed_finish(struct run_feed *f, struct pt_error *e)
{
	if (f->feed && feed_settle(f->feed, e) < 0)
		return -1;
	ptr_times_settle(f->times);
	return take_settled(f, e);
}

struct run_feed *run_feed_create(struct run_groups *groups, bool threaded, struct pt_error *e)
{
	struct run_feed *f = calloc(1, sizeof *f);

	if (f)
		f->times = ptr_times_create();
	if (!f || !f->times) {
		free(f);
		pt_fail_no_memory(e, "times");
		return NULL;
	}
	f->groups = groups;
	if (!threaded || (f->feed = feed_create(take, NULL, f, true, "runs", e)))
		return f;
	run_feed_destroy(f);
	return NULL;
}

void run_feed_destroy(struct run_feed *f)
{
	if (!f)
		return;
	feed_destroy(f->feed); /* its thread first */
	ptr_times_destroy(f->times);
	free(f);
}
