/* advance.c - decodes all streams and applies sideband records in the order of time. See internal.h. */
#include "decode/session/internal.h"

/* An error that a callback has left somewhere. */
static int check_failed(struct session *s, struct pt_error *e)
{
	if (s->emit.failed) {
		*e = s->emit.error;
		return -1;
	}
	if (s->failed) {
		*e = s->error;
		return -1;
	}
	return img_store_failed(s->store, e) ? -1 : 0;
}

/* What is known of the guests' clocks, and so the order of the records, has changed. The flow that has
 * shown it stopped there (vm/vm.c). */
static bool clocks_changed(const struct session *s)
{
	return s->vm && pt_vm_clocks_changes(pt_vm_clocks_of(s->vm)) != s->progress.clock_changes;
}

static int apply_first(struct session *s, struct pt_error *e)
{
	struct pt_sideband_record *record = pt_session_queue_take(s);
	int r = pt_session_apply(s, record, e);

	pt_session_record_free(s, record);
	return r;
}

/* Feeds the streams up to stop_tsc, until one of them shows a change of a guest's clock. */
static void feed_streams(struct session *s, uint64_t stop_tsc, bool last)
{
	size_t count;
	struct stream *const *due = pt_session_due(s, stop_tsc, last, &count);

	for (size_t i = 0; i < count && !clocks_changed(s); i++)
		pt_session_stream_feed(due[i], stop_tsc, last);
}

int pt_session_advance(struct session *s, uint64_t decode_tsc, uint64_t record_tsc, bool last,
		       struct pt_error *e)
{
	int scan = pt_session_scan_end(s, last, e);

	if (scan)
		return scan < 0 ? -1 : 0;
	for (;;) {
		/* Streams decode up to the first record. One without time is applied before anything is
		 * decoded. */
		uint64_t next_tsc = pt_session_queue_tsc(s);
		uint64_t stop_tsc = next_tsc < decode_tsc ? next_tsc : decode_tsc;

		if (next_tsc != 0)
			feed_streams(s, stop_tsc, last && next_tsc == UINT64_MAX);
		if (check_failed(s, e) < 0)
			return -1;
		if (clocks_changed(s)) {
			s->progress.clock_changes = pt_vm_clocks_changes(pt_vm_clocks_of(s->vm));
			if (pt_session_queue_retime(s, e) < 0)
				return -1;
			continue;
		}
		if (s->queue.first == s->queue.end)
			return 0;
		if (pt_session_queue_tsc(s) != next_tsc) /* it was applied ahead of its time */
			continue;
		if (next_tsc > record_tsc)
			return 0;
		if (apply_first(s, e) < 0)
			return -1;
	}
}
