/* call_slices.c - see call_slices.h. */
#include "queries/perfetto/call_slices.h"

#include <stdbool.h>
#include <stdlib.h>

#include "queries/perfetto/call_order.h"
#include "queries/perfetto/lane.h"
#include "queries/perfetto/tracks.h"
#include "schema/array.h"
#include "schema/unpack/calls.h"

/* A row of `thread`, and the track of its calls; of an idle thread's, when it is not known where it ran. */
struct thread {
	int64_t id;
	uint64_t track;
	bool idle;
};

/* Where idle threads ran: from this run on, up to the next one's. */
struct idle_run {
	int64_t run, thread;
	uint64_t track;
};

struct slices {
	const struct perfetto_range *range;
	struct packets *packets;
	struct call_order *order;
	struct thread *threads; /* by id */
	size_t thread_count, thread_room;
	const struct thread *last; /* that was asked for; NULL: none yet */
	struct idle_run *idle;	   /* by run */
	size_t idle_count, idle_room;
	uint32_t *names; /* of call paths from id first_path on: of packets_name() */
	size_t name_count, name_room;
	int64_t first_path;
	uint32_t unknown; /* its name */
	int64_t left_out;
};

/* Calls each for the rows of a file's statement. */
static int for_rows(sqlite3 *db, const char *name, struct slices *s,
		    int (*each)(struct slices *s, sqlite3_stmt *row, struct pt_error *e), struct pt_error *e)
{
	sqlite3_stmt *st = perfetto_prepare(db, name, s->range, e);
	int ret = st ? 0 : -1, row = SQLITE_DONE;

	while (!ret && (row = sqlite3_step(st)) == SQLITE_ROW)
		ret = each(s, st, e);
	if (!ret && row != SQLITE_DONE)
		ret = unpack_sql_error(db, e);
	sqlite3_finalize(st);
	return ret;
}

/* ---- Names and threads -------------------------------------------------------------------------------- */

static int add_name(struct slices *s, sqlite3_stmt *row, struct pt_error *e)
{
	int64_t id = sqlite3_column_int64(row, 0);
	const char *name = (const char *)sqlite3_column_text(row, 1);

	if (!s->name_count)
		s->first_path = id;
	if (id != s->first_path + (int64_t)s->name_count)
		return unpack_damaged("call_path", e);
	if (pt_array_grow(&s->names, s->name_count, &s->name_room, e) < 0)
		return -1;
	s->names[s->name_count++] = name ? packets_name(s->packets, name) : s->unknown;
	return 0;
}

static uint32_t name_of(const struct slices *s, int64_t path)
{
	int64_t i = path - s->first_path;

	return path > 0 && i >= 0 && i < (int64_t)s->name_count ? s->names[i] : s->unknown;
}

static int add_thread(struct slices *s, sqlite3_stmt *row, struct pt_error *e)
{
	int64_t id = sqlite3_column_int64(row, 0), named_by = sqlite3_column_int64(row, 1);

	if (pt_array_grow(&s->threads, s->thread_count, &s->thread_room, e) < 0)
		return -1;
	s->threads[s->thread_count++] =
	    (struct thread){.id = id,
			    .track = named_by ? track_uuid(s->range->trace, TRACK_THREAD, named_by)
					      : idle_track(s->range->trace, id, sqlite3_column_int64(row, 2)),
			    .idle = !named_by};
	return 0;
}

static int add_idle_run(struct slices *s, sqlite3_stmt *row, struct pt_error *e)
{
	int64_t thread = sqlite3_column_int64(row, 1);
	uint64_t track = idle_track(s->range->trace, thread, sqlite3_column_int64(row, 2));

	if (s->idle_count && s->idle[s->idle_count - 1].track == track)
		return 0;
	if (pt_array_grow(&s->idle, s->idle_count, &s->idle_room, e) < 0)
		return -1;
	s->idle[s->idle_count++] = (struct idle_run){sqlite3_column_int64(row, 0), thread, track};
	return 0;
}

/* The track of an idle thread's call, by a branch of it. */
static uint64_t idle_track_of(const struct slices *s, const struct thread *t, int64_t branch)
{
	int64_t run = branch >> RUN_BRANCHES_BITS;
	size_t low = 0, high = s->idle_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->idle[middle].run <= run)
			low = middle + 1;
		else
			high = middle;
	}
	return low && s->idle[low - 1].thread == t->id ? s->idle[low - 1].track : t->track;
}

/* NULL: it is not known. */
static const struct thread *thread_of(struct slices *s, int64_t thread)
{
	size_t low = 0, high = s->thread_count;

	if (s->last && s->last->id == thread)
		return s->last;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->threads[middle].id < thread)
			low = middle + 1;
		else
			high = middle;
	}
	s->last = low < s->thread_count && s->threads[low].id == thread ? &s->threads[low] : NULL;
	return s->last;
}

static uint64_t track_of(struct slices *s, const struct unpacked_call *c)
{
	const struct thread *t = thread_of(s, c->thread);

	if (!t)
		return track_uuid(s->range->trace, TRACK_OTHER, 0);
	return t->idle ? idle_track_of(s, t,
				       c->return_branch != UNPACK_UNKNOWN ? c->return_branch : c->call_branch)
		       : t->track;
}

/* ---- Calls -------------------------------------------------------------------------------------------- */

static int take(void *arg, const struct unpacked_call *c, struct pt_error *e)
{
	struct slices *s = arg;
	struct ordered_call call = {.call_tsc = c->call_tsc,
				    .return_tsc = c->return_tsc,
				    .call_branch = c->call_branch,
				    .return_branch = c->return_branch,
				    .insn_count = c->insn_count,
				    .cyc_count = c->cyc_count};

	if (c->call_tsc == UNPACK_UNKNOWN || c->return_tsc == UNPACK_UNKNOWN) {
		s->left_out++;
		return 0;
	}
	if (perfetto_time(s->range, c->return_tsc) < s->range->after_ns ||
	    perfetto_time(s->range, c->call_tsc) >= s->range->until_ns)
		return 0;
	call.track = track_of(s, c);
	call.name = name_of(s, c->call_path);
	return call_order_add(s->order, &call, e);
}

static int put(const struct slices *s, struct lane *lane, const struct ordered_call *c, struct pt_error *e)
{
	struct packet_argument arguments[2];
	struct packet_event event = {.track = c->track,
				     .time_ns = perfetto_time(s->range, c->call_tsc),
				     .name_number = c->name,
				     .category = "call",
				     .arguments = arguments};
	const struct lane_slice slice = {
	    .end_ns = perfetto_time(s->range, c->return_tsc),
	    .begin_order = c->call_branch == UNPACK_UNKNOWN ? LANE_UNKNOWN : c->call_branch,
	    .end_order = c->return_branch == UNPACK_UNKNOWN ? LANE_UNKNOWN : c->return_branch};

	arguments[event.argument_count++] =
	    (struct packet_argument){.name = "instructions", .number = c->insn_count};
	if (c->cyc_count != UNPACK_UNKNOWN)
		arguments[event.argument_count++] =
		    (struct packet_argument){.name = "cycles", .number = c->cyc_count};
	return lane_add(lane, &event, &slice, e);
}

static int put_all(struct slices *s, struct pt_error *e)
{
	struct lane lane = {.packets = s->packets};
	const struct ordered_call *call;
	int ret = call_order_sort(s->order, e);

	while (!ret && !(ret = call_order_next(s->order, &call, e)) && call)
		ret = put(s, &lane, call, e);
	lane_finish(&lane);
	return ret;
}

int call_slices_write(sqlite3 *db, const struct perfetto_range *range, struct packets *packets,
		      int64_t *ret_left_out, struct pt_error *e)
{
	struct slices s = {.range = range, .packets = packets};
	int ret = -1;

	s.unknown = packets_name(packets, "[not known]");
	s.order = call_order_create(e);
	if (s.order && !for_rows(db, "paths", &s, add_name, e) &&
	    !for_rows(db, "call_threads", &s, add_thread, e) &&
	    !for_rows(db, "idle_runs", &s, add_idle_run, e) && !calls_unpack(db, range->trace, take, &s, e))
		ret = put_all(&s, e);
	*ret_left_out = s.left_out;
	call_order_destroy(s.order);
	free(s.threads);
	free(s.idle);
	free(s.names);
	return ret;
}
