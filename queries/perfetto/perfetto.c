/* perfetto.c - see perfetto.h. */
#include "queries/perfetto/perfetto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "queries/perfetto/call_slices.h"
#include "queries/perfetto/ipc.h"
#include "queries/perfetto/lane.h"
#include "queries/perfetto/packets.h"
#include "queries/perfetto/sql.h"
#include "queries/perfetto/tracks.h"
#include "schema/unpack/sql.h"

struct writer {
	sqlite3 *db;
	struct packets *packets;
	struct perfetto_range range;
	sqlite3_stmt *row; /* the statement at hand */
	int64_t begin_ns;  /* of the trace, or its range */
};

static uint64_t track(const struct writer *w, enum track_kind kind, int64_t id)
{
	return track_uuid(w->range.trace, kind, id);
}

static int64_t number(const struct writer *w, int column)
{
	return sqlite3_column_int64(w->row, column);
}

static bool is_null(const struct writer *w, int column)
{
	return sqlite3_column_type(w->row, column) == SQLITE_NULL;
}

/* "" for NULL. */
static const char *text(const struct writer *w, int column)
{
	const char *s = (const char *)sqlite3_column_text(w->row, column);

	return s ? s : "";
}

/* Calls `each` for every row of a file's statement. 0 or -1. */
static int for_rows(struct writer *w, const char *name,
		    int (*each)(struct writer *w, void *arg, struct pt_error *e), void *arg,
		    struct pt_error *e)
{
	int ret = 0, row = SQLITE_DONE;

	w->row = perfetto_prepare(w->db, name, &w->range, e);
	if (!w->row)
		return -1;
	while (!ret && (row = sqlite3_step(w->row)) == SQLITE_ROW)
		ret = each(w, arg, e);
	if (!ret && row != SQLITE_DONE)
		ret = unpack_sql_error(w->db, e);
	sqlite3_finalize(w->row);
	return ret;
}

/* ---- Tracks ------------------------------------------------------------------------------------------- */

static void named_track(struct writer *w, uint64_t uuid, uint64_t parent, const char *name, const char *unit)
{
	const struct packet_track t = {.uuid = uuid, .parent = parent, .name = name, .unit = unit};

	packets_track(w->packets, &t);
}

/* A row of threads.sql. */
static void idle_thread_track(struct writer *w)
{
	bool guest = !is_null(w, 1), known = !is_null(w, 7);
	char name[256];

	snprintf(name, sizeof name, "%s%s%s%s%s", text(w, 1), guest ? ": " : "", text(w, 4),
		 !known	 ? ""
		 : guest ? " vCPU "
			 : " CPU ",
		 text(w, 7));
	named_track(w, idle_track(w->range.trace, number(w, 0), known ? number(w, 7) : -1),
		    guest ? track(w, TRACK_VM, number(w, 6)) : 0, name, NULL);
}

static int thread_track(struct writer *w, void *arg, struct pt_error *e)
{
	int64_t pid = number(w, 2), tid = number(w, 3);
	struct packet_track t = {.uuid = track(w, TRACK_THREAD, number(w, 0)), .name = text(w, 4)};
	int64_t *process = arg;
	char name[256];

	(void)e;
	if (!tid) {
		idle_thread_track(w);
		return 0;
	}
	if (!is_null(w, 1)) {
		snprintf(name, sizeof name, "%s: %s %" PRId64, text(w, 1), text(w, 4), tid);
		t.name = name;
		t.parent = track(w, TRACK_VM, number(w, 6));
	} else {
		if (pid != *process) {
			const struct packet_track p = {
			    .uuid = track(w, TRACK_PROCESS, pid), .name = text(w, 5), .pid = pid};

			packets_track(w->packets, &p);
		}
		*process = pid;
		t.pid = pid;
		t.tid = tid;
		t.parent = track(w, TRACK_PROCESS, pid);
	}
	packets_track(w->packets, &t);
	return 0;
}

static int cpu_track(struct writer *w, void *arg, struct pt_error *e)
{
	int64_t cpu = number(w, 0);
	char name[64];

	(void)arg, (void)e;
	snprintf(name, sizeof name, "CPU %" PRId64, cpu);
	named_track(w, track(w, TRACK_CPU, cpu), track(w, TRACK_CPUS, 0), name, NULL);
	return 0;
}

static int vm_track(struct writer *w, void *arg, struct pt_error *e)
{
	(void)arg, (void)e;
	named_track(w, track(w, TRACK_VM, number(w, 0)), 0, text(w, 1), NULL);
	return 0;
}

static int vcpu_track(struct writer *w, void *arg, struct pt_error *e)
{
	int64_t machine = number(w, 0);
	char name[256];

	(void)arg, (void)e;
	snprintf(name, sizeof name, "%s vCPU %s", text(w, 1), is_null(w, 2) ? "not known" : text(w, 2));
	named_track(w, track(w, TRACK_VCPU, machine << 16 | (number(w, 2) & 0xffff)),
		    track(w, TRACK_VM, machine), name, NULL);
	return 0;
}

static void put_left_out(const struct writer *w, int64_t n, const char *what)
{
	char name[128];
	const struct packet_event event = {.track = track(w, TRACK_LEFT_OUT, 0),
					   .time_ns = w->begin_ns,
					   .name = name,
					   .category = "left out"};

	if (!n)
		return;
	snprintf(name, sizeof name, "%" PRId64 " %s whose time is not known", n, what);
	packets_mark(w->packets, &event);
}

static int left_out(struct writer *w, void *arg, struct pt_error *e)
{
	(void)arg, (void)e;
	put_left_out(w, number(w, 1), text(w, 0));
	return 0;
}

static int put_tracks(struct writer *w, const char *name, struct pt_error *e)
{
	int64_t process = -1;

	named_track(w, track(w, TRACK_CPUS, 0), 0, "CPUs", NULL);
	named_track(w, track(w, TRACK_LEFT_OUT, 0), 0, "not here", NULL);
	named_track(w, track(w, TRACK_OTHER, 0), 0, *name ? name : "trace", NULL);
	return for_rows(w, "machines", vm_track, NULL, e) < 0 ||
		       for_rows(w, "threads", thread_track, &process, e) < 0 ||
		       for_rows(w, "cpus", cpu_track, NULL, e) < 0 ||
		       for_rows(w, "vcpus", vcpu_track, NULL, e) < 0 ||
		       for_rows(w, "left_out", left_out, NULL, e) < 0
		   ? -1
		   : 0;
}

/* ---- Slices ------------------------------------------------------------------------------------------- */

/* A number as an argument, when it is known. */
static size_t add_number(const struct writer *w, struct packet_argument *a, size_t n, const char *name,
			 int column)
{
	if (is_null(w, column))
		return n;
	a[n] = (struct packet_argument){.name = name, .number = number(w, column)};
	return n + 1;
}

static size_t add_text(const struct writer *w, struct packet_argument *a, size_t n, const char *name,
		       int column)
{
	if (is_null(w, column))
		return n;
	a[n] = (struct packet_argument){.name = name, .text = text(w, column)};
	return n + 1;
}

static int running(struct writer *w, void *arg, struct pt_error *e)
{
	struct packet_argument arguments[2];
	struct packet_event event = {.track = track(w, TRACK_CPU, number(w, 0)),
				     .time_ns = number(w, 1),
				     .name = text(w, 3),
				     .category = "running",
				     .arguments = arguments};
	const struct lane_slice slice = {number(w, 2), LANE_UNKNOWN, LANE_UNKNOWN};

	event.argument_count = add_number(w, arguments, 0, "pid", 4);
	event.argument_count = add_number(w, arguments, event.argument_count, "tid", 5);
	return lane_add(arg, &event, &slice, e);
}

/* Columns of vms.sql. */
enum {
	MACHINE,
	OF,
	VM_VCPU,
	TIME,
	TIME_END,
	IS_EXIT,
	NAME,
	FLOW,
	ID,
	REASON,
	QUALIFICATION,
	GUEST_IP,
	GUEST_SYMBOL,
	OPERAND,
	OFF_CPU_NS,
	STOLEN_BY,
	HANDLER,
	INSNS
};

static size_t vm_arguments(const struct writer *w, struct packet_argument *a)
{
	size_t n = add_number(w, a, 0, "id", ID);

	n = add_number(w, a, n, "reason", REASON);
	n = add_number(w, a, n, "qualification", QUALIFICATION);
	n = add_number(w, a, n, "guest_rip", GUEST_IP);
	for (size_t i = 1; i < n; i++)
		a[i].address = strcmp(a[i].name, "reason") != 0;
	n = add_text(w, a, n, "guest_symbol", GUEST_SYMBOL);
	n = add_text(w, a, n, "operand", OPERAND);
	n = add_text(w, a, n, "handler", HANDLER);
	n = add_number(w, a, n, "off_cpu_ns", OFF_CPU_NS);
	n = add_text(w, a, n, "stolen_by", STOLEN_BY);
	return add_number(w, a, n, "instructions", INSNS);
}

static int exit_or_run(struct writer *w, void *arg, struct pt_error *e)
{
	bool is_exit = number(w, IS_EXIT) != 0;
	struct packet_argument arguments[10];
	const struct packet_event event = {
	    .track = track(w, TRACK_VCPU, number(w, MACHINE) << 16 | (number(w, VM_VCPU) & 0xffff)),
	    .time_ns = number(w, TIME),
	    .name = text(w, NAME),
	    .category = is_exit ? "vmexit" : "guest",
	    .arguments = arguments,
	    .argument_count = vm_arguments(w, arguments),
	    .flow = is_exit ? (uint64_t)number(w, FLOW) : 0,
	    .flow_end = is_exit ? 0 : (uint64_t)number(w, FLOW)};
	const struct lane_slice slice = {number(w, TIME_END), LANE_UNKNOWN, LANE_UNKNOWN};

	return lane_add(arg, &event, &slice, e);
}

static int put_slices(struct writer *w, const char *name,
		      int (*each)(struct writer *w, void *arg, struct pt_error *e), struct pt_error *e)
{
	struct lane lane = {.packets = w->packets};
	int ret = for_rows(w, name, each, &lane, e);

	lane_finish(&lane);
	return ret;
}

/* ---- Counters and marks ------------------------------------------------------------------------------- */

struct counter {
	enum track_kind kind;
	const char *name;
	int64_t cpu, end_ns;
	bool begun;
};

/* Between stretches that are known, it is 0. */
static void end_counter(struct writer *w, const struct counter *c)
{
	if (c->begun && c->kind == TRACK_IPC)
		packets_count(w->packets, track(w, c->kind, c->cpu), c->end_ns, 0);
}

/* A value of a CPU, -1: not known. end_ns: of a kind that ends. */
static void count(struct writer *w, struct counter *c, int64_t cpu, int64_t time_ns, int64_t end_ns,
		  double value)
{
	char name[64];

	if (c->begun && (c->cpu != cpu || c->end_ns < time_ns))
		end_counter(w, c);
	if (!c->begun || c->cpu != cpu) {
		if (cpu >= 0)
			snprintf(name, sizeof name, "%s CPU %" PRId64, c->name, cpu);
		else
			snprintf(name, sizeof name, "%s", c->name);
		named_track(w, track(w, c->kind, cpu), track(w, TRACK_CPUS, 0), name, c->name);
	}
	c->begun = true;
	c->cpu = cpu;
	c->end_ns = end_ns;
	packets_count(w->packets, track(w, c->kind, cpu), time_ns, value);
}

static int speed(struct writer *w, void *arg, struct pt_error *e)
{
	(void)e;
	count(w, arg, number(w, 0), number(w, 1), number(w, 1), sqlite3_column_double(w->row, 2));
	return 0;
}

struct ipc_arguments {
	struct writer *w;
	struct counter counter;
};

static int ipc(void *arg, int64_t cpu, int64_t tsc, int64_t tsc_length, double value, struct pt_error *e)
{
	struct ipc_arguments *a = arg;
	const struct perfetto_range *range = &a->w->range;
	int64_t time_ns = perfetto_time(range, tsc), end_ns = perfetto_time(range, tsc + tsc_length);

	(void)e;
	if (end_ns >= range->after_ns && time_ns < range->until_ns)
		count(a->w, &a->counter, cpu, time_ns, end_ns, value);
	return 0;
}

static int put_counters(struct writer *w, struct pt_error *e)
{
	struct counter cbr = {.kind = TRACK_CBR, .name = "CBR"};
	struct ipc_arguments a = {.w = w, .counter = {.kind = TRACK_IPC, .name = "IPC"}};

	if (ipc_parts(w->db, w->range.trace, ipc, &a, e) < 0)
		return -1;
	end_counter(w, &a.counter);
	return for_rows(w, "speeds", speed, &cbr, e);
}

static int mark(struct writer *w, void *arg, struct pt_error *e)
{
	struct packet_argument argument;
	const struct packet_event event = {.track = !is_null(w, 3)   ? track(w, TRACK_THREAD, number(w, 3))
						    : !is_null(w, 4) ? track(w, TRACK_CPU, number(w, 4))
								     : track(w, TRACK_OTHER, 0),
					   .time_ns = number(w, 2),
					   .name = text(w, 1),
					   .category = text(w, 0),
					   .arguments = &argument,
					   .argument_count = add_text(w, &argument, 0, "text", 5)};

	(void)arg, (void)e;
	packets_mark(w->packets, &event);
	return 0;
}

/* ---- All of it ---------------------------------------------------------------------------------------- */

static int put_calls(struct writer *w, struct pt_error *e)
{
	int64_t left_out;

	if (call_slices_write(w->db, &w->range, w->packets, &left_out, e) < 0)
		return -1;
	put_left_out(w, left_out, "calls");
	return 0;
}

static int put_trace(struct writer *w, const char *name, struct pt_error *e)
{
	return put_tracks(w, name, e) < 0 || put_slices(w, "running", running, e) < 0 ||
		       put_slices(w, "vms", exit_or_run, e) < 0 || put_calls(w, e) < 0 ||
		       put_counters(w, e) < 0 || for_rows(w, "marks", mark, NULL, e) < 0
		   ? -1
		   : 0;
}

static int set_range(struct perfetto_range *range, const char *const *parameters, size_t n,
		     struct pt_error *e)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = strchr(parameters[i], '=') + 1;

		if (!*value || value[strspn(value, "0123456789")])
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s: not a number", parameters[i]);
		if (!strncmp(parameters[i], "after=", 6))
			range->after_ns = strtoll(value, NULL, 10);
		else if (!strncmp(parameters[i], "until=", 6))
			range->until_ns = strtoll(value, NULL, 10);
		else if (!strncmp(parameters[i], "trace=", 6))
			range->trace = strtoll(value, NULL, 10);
		else
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				       "%s: a Perfetto trace has the parameters after and until, in "
				       "nanoseconds, and trace",
				       parameters[i]);
	}
	return 0;
}

/* How TSC and time relate in the trace at hand of traces.sql. */
static int set_clock(struct perfetto_range *range, sqlite3_stmt *trace, struct pt_error *e)
{
	range->trace = sqlite3_column_int64(trace, 0);
	range->time_zero = sqlite3_column_int64(trace, 2);
	range->time_mult = sqlite3_column_int64(trace, 3);
	range->time_shift = sqlite3_column_int64(trace, 4);
	if (sqlite3_column_type(trace, 2) == SQLITE_NULL || sqlite3_column_type(trace, 3) == SQLITE_NULL)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "trace %" PRId64
			       " does not say how TSC and time relate: Perfetto wants nanoseconds",
			       range->trace);
	return range->time_shift < 0 || range->time_shift > 63 ? unpack_damaged("trace", e) : 0;
}

static int put_traces(struct writer *w, struct pt_error *e)
{
	sqlite3_stmt *traces = perfetto_prepare(w->db, "traces", &w->range, e);
	int ret = traces ? 0 : -1, row = SQLITE_DONE;
	int64_t asked = w->range.trace;
	bool any = false;

	while (!ret && (row = sqlite3_step(traces)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(traces, 1);

		ret = set_clock(&w->range, traces, e);
		if (ret)
			break;
		w->begin_ns = sqlite3_column_int64(traces, 5);
		if (w->begin_ns < w->range.after_ns)
			w->begin_ns = w->range.after_ns;
		any = true;
		ret = put_trace(w, name ? name : "", e);
	}
	if (!ret && row != SQLITE_DONE)
		ret = unpack_sql_error(w->db, e);
	sqlite3_finalize(traces);
	if (!ret && !any && asked != INT64_MIN)
		ret = pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			      "trace=%" PRId64 ": the database has no such trace", asked);
	return ret;
}

int perfetto_write(sqlite3 *db, const char *const *parameters, size_t parameter_count, FILE *out,
		   struct pt_error *e)
{
	struct writer w = {.db = db, .range = {INT64_MIN, INT64_MIN, INT64_MAX}};
	int ret = set_range(&w.range, parameters, parameter_count, e);

	if (ret)
		return -1;
	w.packets = packets_create(out, e);
	ret = w.packets ? put_traces(&w, e) : -1;
	if (!ret)
		ret = packets_finish(w.packets, e);
	packets_destroy(w.packets);
	return ret;
}
