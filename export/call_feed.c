/* call_feed.c - see call_feed.h. */
#include "export/call_feed.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "export/feed.h"

enum kind { RUN, CALL, SUM, PATH, SYMBOL };

struct run {
	uint64_t number, tsc;
};

struct message {
	enum kind kind;
	union {
		struct run run;
		struct ptr_call call;
		struct ptr_call_sum sum;
		struct ptr_call_path path;
		uint64_t start;
	};
};

struct call_feed {
	struct calls *calls;
	struct call_paths *paths;
	struct feed *feed;
	/* Of call paths and their sums; NULL: what is for them is in feed. */
	struct feed *sums;
};

/* Sums have a thread of their own with more threads than these. */
enum { SUMS_THREAD = 3 };

static int take_call(const struct call_feed *f, const struct ptr_call *call, struct pt_error *e)
{
	return !f->sums && call_paths_sum(f->paths, call, e) < 0 ? -1 : calls_add(f->calls, call, e);
}

static int take(void *arg, void *message, struct pt_error *e)
{
	const struct call_feed *f = arg;
	const struct message *m = message;

	switch (m->kind) {
	case RUN: calls_run(f->calls, m->run.number, m->run.tsc); return 0;
	case CALL: return take_call(f, &m->call, e);
	case SUM: return call_paths_add_sum(f->paths, &m->sum, e);
	case PATH: return call_paths_add(f->paths, &m->path, e);
	case SYMBOL: return call_paths_symbol(f->paths, m->start, e);
	}
	return 0;
}

static void fetch(void *arg, const void *message)
{
	const struct call_feed *f = arg;
	const struct message *m = message;

	if (m->kind == CALL)
		call_paths_fetch(f->paths, m->call.thread, m->call.call_path);
	else if (m->kind == SUM)
		call_paths_fetch(f->paths, m->sum.thread, m->sum.call_path);
}

/* size: of what. */
static int give(struct feed *feed, enum kind kind, const void *what, size_t size, struct pt_error *e)
{
	struct message *m = feed_give(feed, offsetof(struct message, run) + size, e);

	if (!m)
		return -1;
	m->kind = kind;
	memcpy(&m->run, what, size);
	return 0;
}

static struct feed *sums(const struct call_feed *f)
{
	return f->sums ? f->sums : f->feed;
}

int call_feed_run(struct call_feed *f, uint64_t number, uint64_t tsc, struct pt_error *e)
{
	return give(f->feed, RUN, &(struct run){.number = number, .tsc = tsc}, sizeof(struct run), e);
}

int call_feed_call(struct call_feed *f, const struct ptr_call *call, struct pt_error *e)
{
	if (f->sums) {
		const struct ptr_call_sum sum = call_paths_sum_of(call);

		if (give(f->sums, SUM, &sum, sizeof sum, e) < 0)
			return -1;
	}
	return give(f->feed, CALL, call, sizeof *call, e);
}

int call_feed_sum(struct call_feed *f, const struct ptr_call_sum *sum, struct pt_error *e)
{
	return give(sums(f), SUM, sum, sizeof *sum, e);
}

int call_feed_path(struct call_feed *f, const struct ptr_call_path *path, struct pt_error *e)
{
	return give(sums(f), PATH, path, sizeof *path, e);
}

int call_feed_symbol(struct call_feed *f, uint64_t start, struct pt_error *e)
{
	return give(sums(f), SYMBOL, &start, sizeof start, e);
}

/* ---- Beginning and end --------------------------------------------------------------------------------- */

struct call_feed *call_feed_create(struct calls *calls, struct call_paths *paths, unsigned threads,
				   struct pt_error *e)
{
	struct call_feed *f = calloc(1, sizeof *f);

	if (!f) {
		pt_fail_no_memory(e, "calls");
		return NULL;
	}
	f->calls = calls;
	f->paths = paths;
	if (threads > SUMS_THREAD && !(f->sums = feed_create(take, fetch, f, true, "sums of calls", e))) {
		free(f);
		return NULL;
	}
	f->feed = feed_create(take, f->sums ? NULL : fetch, f, threads != 1, "calls", e);
	if (f->feed)
		return f;
	call_feed_destroy(f);
	return NULL;
}

int call_feed_finish(struct call_feed *f, struct pt_error *e)
{
	return (f->sums && feed_settle(f->sums, e) < 0) ? -1 : feed_settle(f->feed, e);
}

void call_feed_destroy(struct call_feed *f)
{
	if (!f)
		return;
	feed_destroy(f->sums);
	feed_destroy(f->feed);
	free(f);
}
