/* sqlite_sink.c - the sink that makes an SQLite database: the records' way into the tables of schema/tables.sql. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/calls.h"
#include "export/db.h"
#include "export/groups.h"
#include "export/schema_sql.h"
#include "export/sink.h"
#include "export/slices.h"
#include "export/stats.h"
#include "export/store.h"
#include "export/traces.h"

enum table { MACHINE, THREAD, DSO, SYMBOL, EDGE, PATH, PATH_EDGE, EVENT, ERROR, TABLES };

static const struct {
	const char *name;
	int columns;
} tables[TABLES] = {
    [MACHINE] = {"machine", 4},	    [THREAD] = {"thread", 7}, [DSO] = {"dso", 4},
    [SYMBOL] = {"symbol", 6},	    [EDGE] = {"edge", 7},     [PATH] = {"path", 8},
    [PATH_EDGE] = {"path_edge", 3}, [EVENT] = {"event", 8},   [ERROR] = {"error", 11},
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
	struct groups *groups;
	struct stats *stats;
	struct slices *slices;
	struct calls *calls;
	int scratch;
};

/* ---- Small things ------------------------------------------------------------------------------------- */

static void bind(sqlite3_stmt *s, int at, bool known, int64_t value)
{
	if (known)
		sqlite3_bind_int64(s, at, value);
	else
		sqlite3_bind_null(s, at);
}

static void bind_ref(sqlite3_stmt *s, int at, uint32_t number, int64_t base)
{
	bind(s, at, number, base + number);
}

static void bind_ip(sqlite3_stmt *s, int at, uint64_t ip)
{
	bind(s, at, ip, (int64_t)ip);
}

static void bind_tsc(sqlite3_stmt *s, int at, uint64_t tsc)
{
	bind(s, at, tsc != PTR_NO_TSC, (int64_t)tsc);
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
	s->scratch = store_scratch(&s->store, e);
	if (s->scratch < 0)
		return -1;
	s->groups = groups_create(db, e);
	s->stats = s->groups ? stats_create(db, s->base.path, s->base.edge, e) : NULL;
	if (!s->stats)
		return -1;
	s->slices = slices_create(
	    db, s->stats,
	    &(struct slices_bases){.trace = s->base.trace, .thread = s->base.thread, .slice = s->base.slice},
	    e);
	s->calls = calls_create(db, s->scratch,
				&(struct calls_bases){.trace = s->base.trace,
						      .thread = s->base.thread,
						      .symbol = s->base.symbol,
						      .run = s->base.run,
						      .call_path = s->base.call_path,
						      .call = s->base.call},
				e);
	return s->slices && s->calls ? 0 : -1;
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

	sqlite3_bind_int64(st, 1, s->base.thread + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, s->base.trace);
	bind_ref(st, 3, r->thread.machine, s->base.machine);
	bind(st, 4, r->thread.pid >= 0, r->thread.pid);
	bind(st, 5, r->thread.tid >= 0, r->thread.tid);
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
	return db_run(st, e);
}

static int put_edge(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert[EDGE];

	sqlite3_bind_int64(st, 1, s->base.edge + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, s->base.trace);
	bind_ip(st, 3, r->edge.from);
	bind_ip(st, 4, r->edge.to);
	sqlite3_bind_int64(st, 5, r->edge.kind);
	bind_ref(st, 6, r->edge.from_symbol, s->base.symbol);
	bind_ref(st, 7, r->edge.to_symbol, s->base.symbol);
	s->totals.edges++;
	stats_edge(s->stats);
	return db_run(st, e);
}

static int put_path(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert[PATH], *edge = s->insert[PATH_EDGE];
	int64_t id = s->base.path + (int64_t)r->number;

	/* Two digits of run_group, and what path_chunk leaves. */
	if (id >= 1 << 2 * GROUP_DIGIT_BITS)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s has too many paths: load into another file", s->store.path);
	if (stats_path(s->stats, &r->path, e) < 0)
		return -1;
	sqlite3_bind_int64(st, 1, id);
	sqlite3_bind_int64(st, 2, s->base.trace);
	sqlite3_bind_int64(st, 3, r->path.count);
	sqlite3_bind_int64(st, 4, (int64_t)stats_path_insns(s->stats, (uint32_t)r->number));
	sqlite3_bind_int64(st, 5, r->path.not_taken);
	sqlite3_bind_int64(st, 6, r->path.tail_insns);
	bind_ip(st, 7, r->path.start_ip);
	bind_ip(st, 8, r->path.end_ip);
	if (db_run(st, e) < 0)
		return -1;
	for (uint32_t i = 0; i < r->path.count; i++) {
		sqlite3_bind_int64(edge, 1, id * PTR_PATH_EDGES + i);
		sqlite3_bind_int64(edge, 2, s->base.edge + r->path.edge[i]);
		sqlite3_bind_int64(edge, 3, r->path.insns[i]);
		if (db_run(edge, e) < 0)
			return -1;
	}
	s->totals.paths++;
	return 0;
}

static int put_run(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	struct group_run g = {.id = s->base.run + (int64_t)r->number,
			      .slice = s->base.slice + r->run.slice,
			      .tsc = r->run.tsc,
			      .path = (uint32_t)s->base.path + r->run.path,
			      .repeats = r->run.repeats,
			      .cyc_count = r->run.cyc_count,
			      .insn_count = r->run.insn_count};

	if (g.id / STATS_CHUNK_RUNS >> STATS_CHUNK_BITS)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s has too many runs: load into another file", s->store.path);
	s->totals.runs++;
	s->totals.branches += (uint64_t)r->run.repeats * stats_path_edges(s->stats, r->run.path);
	s->totals.insns += r->run.repeats * stats_path_insns(s->stats, r->run.path);
	s->totals.not_taken += (uint64_t)r->run.repeats * stats_path_not_taken(s->stats, r->run.path);
	calls_run(s->calls, r->number, r->run.tsc);
	if (slices_run(s->slices, g.id, &r->run, &g.back, e) < 0 ||
	    stats_run(s->stats, g.id, r->run.path, r->run.repeats, e) < 0)
		return -1;
	return groups_add(s->groups, &g, e);
}

static int put_event(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert[EVENT];

	s->totals.events++;
	sqlite3_bind_int64(st, 1, s->base.event + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, s->base.trace);
	bind_ref(st, 3, r->event.slice, s->base.slice);
	bind(st, 4, r->event.cpu >= 0, r->event.cpu);
	bind_tsc(st, 5, r->event.tsc);
	bind_ip(st, 6, r->event.ip);
	bind_text(st, 7, r->event.name);
	bind_text(st, 8, r->event.fields);
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
	bind(st, 5, r->error.cpu >= 0, r->error.cpu);
	bind_tsc(st, 6, r->error.tsc);
	bind_tsc(st, 7, r->error.tsc_end);
	bind_ip(st, 8, r->error.ip);
	bind(st, 9, r->error.aux_offset != PTR_UNKNOWN, (int64_t)r->error.aux_offset);
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
	case PTR_EDGE: return put_edge(s, r, e);
	case PTR_PATH: return put_path(s, r, e);
	case PTR_SLICE: return slices_begin(s->slices, r, e);
	case PTR_RUN: return put_run(s, r, e);
	case PTR_SLICE_END: return slices_end(s->slices, &r->slice_end, e);
	case PTR_CALL_PATH: s->totals.call_paths++; return calls_path(s->calls, r, e);
	case PTR_CALL: s->totals.calls++; return calls_add(s->calls, &r->call, e);
	case PTR_EVENT: return put_event(s, r, e);
	case PTR_ERROR: return put_error(s, r, e);
	case PTR_META:
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
	groups_destroy(s->groups);
	slices_destroy(s->slices);
	stats_destroy(s->stats);
	calls_destroy(s->calls);
	s->groups = NULL;
	s->slices = NULL;
	s->stats = NULL;
	s->calls = NULL;
}

static int sink_commit(struct pt_sink *sink, struct pt_error *e)
{
	struct sqlite_sink *s = (struct sqlite_sink *)sink;
	sqlite3 *db = s->store.db;

	if (begin(s, e) < 0)
		return -1;
	if (groups_flush(s->groups, e) < 0 || slices_finish(s->slices, e) < 0)
		return -1;
	s->totals.first_tsc = slices_first_tsc(s->slices);
	s->totals.last_tsc = slices_last_tsc(s->slices);
	s->totals.cyc_count = slices_cyc_count(s->slices);
	s->busy_with = "writing calls";
	if (calls_finish(s->calls, s->interrupted, e) < 0)
		return -1;
	s->busy_with = "summing up";
	if (stats_finish(s->stats, e) < 0 || join_threads(s, e) < 0 ||
	    trace_insert(db, &s->base, &s->meta, s->name, &s->totals, e) < 0)
		return -1;
	finalize(s);
	s->busy_with = "building indexes";
	if (s->store.fresh && (db_exec(db, pt_indexes_sql, e) < 0 || db_exec(db, pt_views_sql, e) < 0 ||
			       db_exec(db, "ANALYZE", e) < 0))
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
	if (s->scratch >= 0)
		close(s->scratch);
	store_close(&s->store);
	trace_meta_deinit(&s->meta);
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

/* Numbers and kinds: what the views join with. */
static int fill_constants(sqlite3 *db, struct pt_error *e)
{
	sqlite3_stmt *number = db_insert(db, "number", 1, e),
		     *kind = number ? db_insert(db, "kind", 3, e) : NULL;
	int ret = kind ? 0 : -1;

	for (int i = 0; !ret && i < PTR_RUN_BRANCHES; i++) {
		sqlite3_bind_int64(number, 1, i);
		ret = db_run(number, e);
	}
	for (int i = 0; !ret && i < PTR_KINDS; i++) {
		sqlite3_bind_int64(kind, 1, i);
		bind_text(kind, 2, ptr_kind_name((enum ptr_kind)i));
		sqlite3_bind_int64(kind, 3, ptr_kind_perf_flags((enum ptr_kind)i));
		ret = db_run(kind, e);
	}
	sqlite3_finalize(number);
	sqlite3_finalize(kind);
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
		pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
		return NULL;
	}
	s->sink.ops = &ops;
	s->replace = options->replace;
	s->interrupted = options->interrupted;
	s->scratch = -1;
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
