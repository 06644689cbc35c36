/* sqlite_sink.c - the sink that makes an SQLite database: the records' way into the tables of schema/tables.sql. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/calls.h"
#include "export/db.h"
#include "export/dictionary.h"
#include "export/run_groups.h"
#include "export/schema_sql.h"
#include "export/sink.h"
#include "export/slices.h"
#include "export/store.h"
#include "export/traces.h"
#include "export/vm_rows.h"
#include "schema/derived/run_times.h"
#include "schema/vm_reasons.h"

enum { SCRATCHES = 3 };

enum table { MACHINE, THREAD, DSO, SYMBOL, EVENT, ERROR, INTERRUPT, TABLES };

static const struct {
	const char *name;
	int columns;
} tables[TABLES] = {
    [MACHINE] = {"machine", 4},	    [THREAD] = {"thread", 7}, [DSO] = {"dso", 5},
    [SYMBOL] = {"symbol", 7},	    [EVENT] = {"event", 11},  [ERROR] = {"error", 11},
    [INTERRUPT] = {"interrupt", 5},
};

struct sqlite_sink {
	struct pt_sink sink; /* first: a pt_sink is one of these */
	struct store store;
	char *name;
	bool replace;
	bool (*interrupted)(void);
	bool began; /* the identity was looked at, the bases are set, what follows is open */
	const char *busy_with;
	struct trace_bases base;
	struct trace_meta meta;
	struct trace_totals totals;
	sqlite3_stmt *insert[TABLES];
	struct run_groups *runs;
	struct ptr_times *times; /* of runs on the way there */
	struct dictionary *dictionary;
	struct slices *slices;
	struct calls *calls;
	struct vm_rows *vms;
	uint32_t *thread_machines; /* by the threads' numbers */
	size_t thread_room;
	int scratch[SCRATCHES]; /* two of calls, one of paths */
};

/* ---- Small things ------------------------------------------------------------------------------------- */

static void bind_ref(sqlite3_stmt *s, int at, uint32_t number, int64_t base)
{
	db_bind(s, at, number, base + number);
}

static void bind_ip(sqlite3_stmt *s, int at, uint64_t ip)
{
	db_bind(s, at, ip, (int64_t)ip);
}

static void bind_tsc(sqlite3_stmt *s, int at, uint64_t tsc)
{
	db_bind(s, at, tsc != PTR_NO_TSC, (int64_t)tsc);
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
	sqlite3_bind_text(s, at, *text ? text : NULL, -1, SQLITE_STATIC);
}

/* ---- Beginning: once, at the first record that is no META ------------------------------------------------ */

static int check_identity(struct sqlite_sink *s, struct pt_error *e)
{
	char identity[64];
	int64_t there;

	trace_identity(&s->meta, identity);
	if (trace_find(s->store.db, identity, &there, e) < 0)
		return -1;
	if (!there)
		return 0;
	if (!s->replace)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s has this recording already, as trace %" PRId64
			       ": --replace loads it again",
			       s->store.path, there);
	s->busy_with = "removing the old trace";
	if (trace_delete(s->store.db, there, e) < 0)
		return -1;
	s->busy_with = NULL;
	return 0;
}

static int begin(struct sqlite_sink *s, struct pt_error *e)
{
	sqlite3 *db = s->store.db;

	if (s->began)
		return 0;
	s->began = true;
	if (check_identity(s, e) < 0 || trace_bases(db, &s->base, e) < 0)
		return -1;
	for (int t = 0; t < TABLES; t++) {
		s->insert[t] = db_insert(db, tables[t].name, tables[t].columns, e);
		if (!s->insert[t])
			return -1;
	}
	for (int i = 0; i < SCRATCHES; i++) {
		s->scratch[i] = store_scratch(&s->store, e);
		if (s->scratch[i] < 0)
			return -1;
	}
	s->runs = run_groups_create(db, e);
	if (!s->runs)
		return -1;
	s->times = ptr_times_create();
	if (!s->times)
		return pt_fail_no_memory(e, NULL);
	s->dictionary = dictionary_create(db, s->scratch[2],
					  &(struct dictionary_bases){.trace = s->base.trace,
								     .symbol = s->base.symbol,
								     .edge = s->base.edge,
								     .path = s->base.path,
								     .machine = s->base.machine},
					  e);
	if (!s->dictionary)
		return -1;
	s->slices = slices_create(
	    db, s->dictionary,
	    &(struct slices_bases){.trace = s->base.trace, .thread = s->base.thread, .slice = s->base.slice},
	    e);
	if (!s->slices)
		return -1;
	s->calls = calls_create(db, s->scratch,
				&(struct calls_bases){.trace = s->base.trace,
						      .thread = s->base.thread,
						      .symbol = s->base.symbol,
						      .run = s->base.run,
						      .call_path = s->base.call_path,
						      .call = s->base.call},
				e);
	s->vms = s->calls ? vm_rows_create(db, &s->base, e) : NULL;
	return s->vms ? 0 : -1;
}

/* ---- Records -------------------------------------------------------------------------------------------- */

static int put_machine(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert[MACHINE];

	sqlite3_bind_int64(st, 1, s->base.machine + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, s->base.trace);
	sqlite3_bind_int64(st, 3, r->machine.pid);
	bind_text(st, 4, r->machine.name);
	return db_run(st, e);
}

static int put_thread(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert[THREAD];

	if (r->number >= s->thread_room) {
		size_t room = (size_t)r->number * 2;
		uint32_t *machines = realloc(s->thread_machines, room * sizeof *machines);

		if (!machines)
			return pt_fail_no_memory(e, "threads");
		s->thread_machines = machines;
		s->thread_room = room;
	}
	s->thread_machines[r->number] = r->thread.machine;
	sqlite3_bind_int64(st, 1, s->base.thread + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, s->base.trace);
	bind_ref(st, 3, r->thread.machine, s->base.machine);
	db_bind(st, 4, r->thread.pid >= 0, r->thread.pid);
	db_bind(st, 5, r->thread.tid >= 0, r->thread.tid);
	bind_text(st, 6, r->thread.comm);
	sqlite3_bind_int64(st, 7, s->base.thread + (int64_t)r->number);
	return db_run(st, e);
}

static int put_dso(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert[DSO];

	sqlite3_bind_int64(st, 1, s->base.dso + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, s->base.trace);
	bind_text(st, 3, r->dso.name);
	bind_text(st, 4, r->dso.build_id);
	sqlite3_bind_null(st, 5); /* dictionary_finish() */
	return db_run(st, e);
}

static int put_symbol(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert[SYMBOL];

	sqlite3_bind_int64(st, 1, s->base.symbol + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, s->base.trace);
	bind_ref(st, 3, r->symbol.dso, s->base.dso);
	bind_ip(st, 4, r->symbol.start);
	bind_ip(st, 5, r->symbol.end);
	bind_text(st, 6, r->symbol.name);
	sqlite3_bind_null(st, 7); /* dictionary_finish() */
	return calls_symbol(s->calls, r->symbol.start, e) < 0 ? -1 : db_run(st, e);
}

static int put_interrupts(struct sqlite_sink *s, const struct group_run *run,
			  const struct dictionary_path *path, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert[INTERRUPT];

	for (uint32_t i = 0; i < run->repeats * path->edges; i++) {
		uint32_t at = i % path->edges;

		if (!(path->interrupts >> at & 1))
			continue;
		sqlite3_bind_int64(st, 1, run->id * PTR_RUN_BRANCHES + i);
		sqlite3_bind_int64(st, 2, s->base.trace);
		sqlite3_bind_int64(st, 3, run->slice);
		bind_tsc(st, 4, run->tsc);
		sqlite3_bind_int64(st, 5, (int64_t)run->path * PTR_PATH_EDGES + at);
		if (db_run(st, e) < 0)
			return -1;
	}
	return 0;
}

/* What is known of times by now goes to the tables. */
static int put_settled(struct sqlite_sink *s, struct pt_error *e)
{
	const struct ptr_timed_run *r;
	struct group_run g;

	while ((r = ptr_times_next(s->times))) {
		memcpy(&g, &r->own, sizeof g);
		g.tsc_est = r->tsc_est;
		g.tsc_next = r->tsc_next;
		g.tsc_end = r->tsc_end;
		if (run_groups_add(s->runs, &g, e) < 0)
			return -1;
	}
	return 0;
}

static int put_timed(struct sqlite_sink *s, struct group_run *g, const struct dictionary_path *path,
		     const struct ptr_record *r, struct pt_error *e)
{
	struct ptr_timed_run run = {
	    .stream = slices_stream(s->slices),
	    .slice = r->run.slice,
	    .timing = path->edges ? r->run.timing : PTR_TIME_BEFORE,
	    .begins = path->first_kind == PTR_TRACE_BEGIN,
	    .crosses = path->first_kind == PTR_VMENTRY || path->first_kind == PTR_VMEXIT,
	    .direct_last = path->last_kind == PTR_JMP || path->last_kind == PTR_CALL_DIR,
	    .first_insns = path->first_insns,
	    .insns = r->run.repeats * path->insns,
	    .tsc = r->run.tsc};

	_Static_assert(sizeof *g <= sizeof run.own, "a run fits");
	g->exact = run.timing == PTR_TIME_EXACT;
	memcpy(&run.own, g, sizeof *g);
	if (!ptr_times_put(s->times, &run))
		return pt_fail_no_memory(e, "times");
	return put_settled(s, e);
}

static int put_run(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	struct dictionary_path path = dictionary_path_of(s->dictionary, r->run.path);
	struct group_run g = {.id = s->base.run + (int64_t)r->number,
			      .slice = s->base.slice + r->run.slice,
			      .tsc = r->run.tsc,
			      .path = (uint32_t)s->base.path + r->run.path,
			      .repeats = r->run.repeats,
			      .cyc_count = r->run.cyc_count,
			      .insn_count = r->run.insn_count};
	uint32_t thread;

	s->totals.runs++;
	s->totals.branches += (uint64_t)r->run.repeats * path.edges;
	s->totals.insns += r->run.repeats * path.insns;
	s->totals.not_taken += (uint64_t)r->run.repeats * path.not_taken;
	calls_run(s->calls, r->number, r->run.tsc);
	if (slices_run(s->slices, g.id, &r->run, &path, &g.back, e) < 0)
		return -1;
	thread = slices_thread(s->slices);
	if (dictionary_run(s->dictionary, g.id, r->run.path, r->run.repeats,
			   thread ? s->thread_machines[thread] : 0, e) < 0 ||
	    (path.interrupts && put_interrupts(s, &g, &path, e) < 0))
		return -1;
	return put_timed(s, &g, &path, r, e);
}

static int put_event(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert[EVENT];

	s->totals.events++;
	sqlite3_bind_int64(st, 1, s->base.event + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, s->base.trace);
	bind_ref(st, 3, r->event.slice, s->base.slice);
	bind_ref(st, 4, r->event.machine, s->base.machine);
	bind_ref(st, 5, r->event.thread, s->base.thread);
	db_bind(st, 6, r->event.cpu >= 0, r->event.cpu);
	db_bind(st, 7, r->event.vcpu >= 0, r->event.vcpu);
	bind_tsc(st, 8, r->event.tsc);
	bind_ip(st, 9, r->event.ip);
	bind_text(st, 10, r->event.name);
	bind_text(st, 11, r->event.fields);
	return db_run(st, e);
}

static int put_error(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert[ERROR];

	s->totals.errors++;
	sqlite3_bind_int64(st, 1, s->base.error + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, s->base.trace);
	bind_ref(st, 3, r->error.slice, s->base.slice);
	sqlite3_bind_int64(st, 4, r->error.stream);
	db_bind(st, 5, r->error.cpu >= 0, r->error.cpu);
	bind_tsc(st, 6, r->error.tsc);
	bind_tsc(st, 7, r->error.tsc_end);
	bind_ip(st, 8, r->error.ip);
	db_bind(st, 9, r->error.aux_offset != PTR_UNKNOWN, (int64_t)r->error.aux_offset);
	bind_text(st, 10, r->error.kind);
	bind_text(st, 11, r->error.message);
	return db_run(st, e);
}

static int sink_record(struct pt_sink *sink, const struct ptr_record *r, struct pt_error *e)
{
	struct sqlite_sink *s = (struct sqlite_sink *)sink;

	if (r->type == PTR_META)
		return trace_meta_add(&s->meta, r->meta.key, r->meta.value, e);
	if (!s->began && begin(s, e) < 0)
		return -1;
	switch (r->type) {
	case PTR_MACHINE: return put_machine(s, r, e);
	case PTR_THREAD: return put_thread(s, r, e);
	case PTR_DSO: return put_dso(s, r, e);
	case PTR_SYMBOL: return put_symbol(s, r, e);
	case PTR_EDGE: s->totals.edges++; return dictionary_edge(s->dictionary, &r->edge, e);
	case PTR_PATH: s->totals.paths++; return dictionary_path(s->dictionary, &r->path, e);
	case PTR_SLICE: return slices_begin(s->slices, r, e);
	case PTR_RUN: return put_run(s, r, e);
	case PTR_SLICE_END: return slices_end(s->slices, &r->slice_end, e);
	case PTR_CALL_PATH: return calls_path(s->calls, r, e);
	case PTR_CALL: s->totals.calls++; return calls_add(s->calls, &r->call, e);
	case PTR_EVENT: return put_event(s, r, e);
	case PTR_ERROR: return put_error(s, r, e);
	case PTR_GUEST_RUN: return vm_rows_guest_run(s->vms, r, e);
	case PTR_VMEXIT_INTERVAL: return vm_rows_vmexit(s->vms, r, e);
	case PTR_VM_CLOCK: return vm_rows_clock(s->vms, r, e);
	case PTR_META:
	case PTR_TYPES:
	case PTR_END: break;
	}
	return 0;
}

/* ---- End ------------------------------------------------------------------------------------------------ */

/* A thread that had several names has several rows; each knows the first. */
static int join_threads(struct sqlite_sink *s, struct pt_error *e)
{
	char sql[512];

	sqlite3_snprintf(
	    sizeof sql, sql,
	    "UPDATE thread SET first = f.first FROM (SELECT id, first_value(id) OVER (PARTITION BY"
	    " machine, pid, tid ORDER BY id) AS first FROM thread WHERE trace = %lld"
	    " AND pid IS NOT NULL AND tid IS NOT NULL) AS f"
	    " WHERE thread.id = f.id AND f.first <> f.id",
	    (long long)s->base.trace);
	return db_exec(s->store.db, sql, e);
}

static void finalize(struct sqlite_sink *s)
{
	for (int t = 0; t < TABLES; t++) {
		sqlite3_finalize(s->insert[t]);
		s->insert[t] = NULL;
	}
	run_groups_destroy(s->runs);
	ptr_times_destroy(s->times);
	slices_destroy(s->slices);
	dictionary_destroy(s->dictionary);
	calls_destroy(s->calls);
	vm_rows_destroy(s->vms);
	s->runs = NULL;
	s->times = NULL;
	s->slices = NULL;
	s->dictionary = NULL;
	s->calls = NULL;
	s->vms = NULL;
}

static int sink_commit(struct pt_sink *sink, struct pt_error *e)
{
	struct sqlite_sink *s = (struct sqlite_sink *)sink;
	sqlite3 *db = s->store.db;

	if (begin(s, e) < 0)
		return -1;
	ptr_times_settle(s->times);
	if (put_settled(s, e) < 0 || run_groups_flush(s->runs, e) < 0 || slices_finish(s->slices, e) < 0)
		return -1;
	s->totals.first_tsc = slices_first_tsc(s->slices);
	s->totals.last_tsc = slices_last_tsc(s->slices);
	s->totals.cyc_count = slices_cyc_count(s->slices);
	s->busy_with = "writing calls";
	if (calls_finish(s->calls, s->interrupted, e) < 0)
		return -1;
	s->busy_with = "summing up";
	if (dictionary_finish(s->dictionary, e) < 0 || join_threads(s, e) < 0 ||
	    vm_rows_finish(s->vms, e) < 0 || trace_insert(db, &s->base, &s->meta, s->name, &s->totals, e) < 0)
		return -1;
	finalize(s);
	s->busy_with = "building indexes";
	/* No ANALYZE: what it finds out of the first trace would mislead with the second. */
	if (s->store.fresh && (db_exec_macros(db, pt_indexes_sql, e) < 0 || db_exec_macros(db, pt_views_sql, e) < 0))
		return -1;
	s->busy_with = "flushing";
	return store_commit(&s->store, e);
}

static void sink_destroy(struct pt_sink *sink)
{
	struct sqlite_sink *s = (struct sqlite_sink *)sink;

	if (!s)
		return;
	finalize(s);
	for (int i = 0; i < SCRATCHES; i++)
		if (s->scratch[i] >= 0)
			close(s->scratch[i]);
	store_close(&s->store);
	trace_meta_deinit(&s->meta);
	free(s->thread_machines);
	free(s->name);
	free(s);
}

static const char *sink_busy_with(const struct pt_sink *sink)
{
	return ((const struct sqlite_sink *)sink)->busy_with;
}

static int poll_interrupt(void *arg)
{
	const struct sqlite_sink *s = arg;

	return s->interrupted();
}

/* A row of a table of names; those without a name are left out. */
static int fill_name(sqlite3_stmt *st, int64_t id, const char *name, struct pt_error *e)
{
	if (!name || !*name)
		return 0;
	sqlite3_bind_int64(st, 1, id);
	bind_text(st, 2, name);
	return db_run(st, e);
}

/* What the views join with: numbers and names. */
static int fill_constants(sqlite3 *db, struct pt_error *e)
{
	enum { NUMBER, KIND, REASON, REASON_SOURCE, CLOCK_SOURCE, COUNT };
	static const struct {
		const char *table;
		int columns;
	} constants[COUNT] = {
	    {"number", 1}, {"kind", 3}, {"exit_reason", 3}, {"reason_source", 2}, {"clock_source", 2}};
	sqlite3_stmt *st[COUNT] = {NULL};
	int ret = 0;

	for (int i = 0; !ret && i < COUNT; i++) {
		st[i] = db_insert(db, constants[i].table, constants[i].columns, e);
		ret = st[i] ? 0 : -1;
	}
	for (int i = 0; !ret && i < PTR_RUN_BRANCHES; i++) {
		sqlite3_bind_int64(st[NUMBER], 1, i);
		ret = db_run(st[NUMBER], e);
	}
	for (int i = 0; !ret && i < PTR_KINDS; i++) {
		sqlite3_bind_int64(st[KIND], 3, ptr_kind_perf_flags((enum ptr_kind)i));
		ret = fill_name(st[KIND], i, ptr_kind_name((enum ptr_kind)i), e);
	}
	for (int i = 0; !ret && i < PT_VM_REASONS; i++) {
		sqlite3_bind_text(st[REASON], 3, pt_vm_reason_kvm_name((uint64_t)i), -1, SQLITE_STATIC);
		ret = fill_name(st[REASON], i, pt_vm_reason_name((uint64_t)i), e);
	}
	for (int i = 0; !ret && i < PTR_REASON_SOURCES; i++)
		ret = fill_name(st[REASON_SOURCE], i, ptr_reason_source_name((enum ptr_reason_source)i), e);
	for (int i = 0; !ret && i < PTR_CLOCK_SOURCES; i++)
		ret = fill_name(st[CLOCK_SOURCE], i, ptr_clock_source_name((enum ptr_clock_source)i), e);
	for (int i = 0; i < COUNT; i++)
		sqlite3_finalize(st[i]);
	return ret;
}

struct pt_sink *pt_sqlite_sink_create(const char *path, const struct pt_sink_options *options,
				      struct pt_error *e)
{
	static const struct pt_sink_ops ops = {.record = sink_record,
					       .commit = sink_commit,
					       .destroy = sink_destroy,
					       .busy_with = sink_busy_with};
	struct sqlite_sink *s = calloc(1, sizeof *s);

	if (!s || (options->name && !(s->name = strdup(options->name)))) {
		free(s);
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	s->sink.ops = &ops;
	s->replace = options->replace;
	s->interrupted = options->interrupted;
	for (int i = 0; i < SCRATCHES; i++)
		s->scratch[i] = -1;
	if (store_open(&s->store, path, e) < 0)
		goto fail;
	if (s->store.fresh &&
	    (db_exec(s->store.db, pt_tables_sql, e) < 0 || fill_constants(s->store.db, e) < 0))
		goto fail;
	if (s->interrupted)
		sqlite3_progress_handler(s->store.db, 100000, poll_interrupt, s);
	return &s->sink;
fail:
	sink_destroy(&s->sink);
	return NULL;
}
