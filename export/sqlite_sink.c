/* sqlite_sink.c - the sink that makes an SQLite database: which records lead to which tables
 * (schema/tables.sql). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/call_feed.h"
#include "export/call_paths.h"
#include "export/calls.h"
#include "export/code_rows.h"
#include "export/db.h"
#include "export/dictionary.h"
#include "export/inserter.h"
#include "export/plain_rows.h"
#include "export/run_feed.h"
#include "export/run_groups.h"
#include "export/schema_sql.h"
#include "export/sink.h"
#include "export/slices.h"
#include "export/spool.h"
#include "export/source_lines.h"
#include "export/store.h"
#include "export/time_bins.h"
#include "export/traces.h"
#include "export/vm_rows.h"
#include "schema/array.h"
#include "schema/output.h"

/* Scratch files: whose they are. */
enum {
	OF_CALLS,
	OF_CALL_PATHS = CALLS_SCRATCHES,
	OF_DICTIONARY = OF_CALL_PATHS + CALL_PATHS_SCRATCHES,
	OF_RUNS = OF_DICTIONARY + DICTIONARY_SCRATCHES,
	OF_INTERRUPTS,
	OF_CODE,
	SCRATCHES = OF_CODE + CODE_SCRATCHES
};

/* Runs have a thread of their own with more threads than these: giving it what it needs takes as long as it
 * saves when there is no core for it. */
enum { RUNS_THREAD = 2 };

struct sqlite_sink {
	struct pt_sink sink; /* first: a pt_sink is one of these */
	struct store store;
	char *name;
	bool replace;
	bool *ret_there;
	struct pt_sink_poll poll;
	const char *busy_with;
	bool began; /* the bases are set, and what is below them is there */
	struct trace_bases base;
	struct trace_meta meta;
	struct trace_totals totals;
	int64_t far_interrupts;	   /* of the stream's INTERRUPT records */
	struct inserter *inserter; /* of what is written when all records have come */
	struct plain_rows *rows;
	struct run_groups *runs;
	struct run_feed *run_feed; /* of these, until all have come */
	struct spool *interrupts;  /* struct interrupt_row, with the stream's number of the path */
	uint64_t interrupt_count;
	struct dictionary *dictionary;
	struct slices *slices;
	struct call_paths *call_paths;
	struct calls *calls;
	struct call_feed *call_feed; /* of calls and call_paths, until all have come */
	unsigned threads;	     /* 1: no other than the caller's */
	struct vm_rows *vms;
	struct code_rows *code;
	struct source_lines *lines;
	uint32_t *thread_machines; /* of thread number n at n - 1 */
	size_t thread_count, thread_room;
	int scratch[SCRATCHES]; /* -1: not open */
};

/*
 * ---- Beginning: once, at the first record that is no META ------------------------------------------------
 */

static int check_identity(struct sqlite_sink *s, struct pt_error *e)
{
	char identity[64];
	int64_t there;

	trace_identity(&s->meta, identity);
	if (trace_find(s->store.db, identity, &there, e) < 0)
		return -1;
	if (!there)
		return 0;
	if (!s->replace && s->ret_there)
		*s->ret_there = true;
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
	s->base.clock = trace_clock(&s->meta, PTR_NO_TSC);
	for (int i = 0; i < SCRATCHES; i++) {
		s->scratch[i] = store_scratch(&s->store, e);
		if (s->scratch[i] < 0)
			return -1;
	}
	s->interrupts = calloc(1, sizeof *s->interrupts);
	if (!s->interrupts)
		return pt_fail_no_memory(e, "interrupts");
	s->interrupts->scratch = s->scratch[OF_INTERRUPTS];
	if (!(s->inserter = inserter_create(db, s->threads != 1, e)) ||
	    !(s->rows = plain_rows_create(db, &s->base, e)) ||
	    !(s->runs = run_groups_create(s->scratch[OF_RUNS], e)) ||
	    !(s->run_feed = run_feed_create(s->runs, s->threads > RUNS_THREAD, e)) ||
	    !(s->dictionary = dictionary_create(s->inserter, s->scratch + OF_DICTIONARY, &s->base, e)) ||
	    !(s->slices = slices_create(db, s->dictionary, &s->base, e)) ||
	    !(s->call_paths = call_paths_create(s->inserter, s->scratch + OF_CALL_PATHS, &s->base, e)) ||
	    !(s->calls = calls_create(s->inserter, s->scratch + OF_CALLS, &s->base, e)) ||
	    !(s->call_feed = call_feed_create(s->calls, s->call_paths, s->threads, e)) ||
	    !(s->vms = vm_rows_create(db, &s->base, e)) ||
	    !(s->code = code_rows_create(s->inserter, s->scratch + OF_CODE, &s->base, e)) ||
	    !(s->lines = source_lines_create(e)))
		return -1;
	return 0;
}

/*
 * ---- Records --------------------------------------------------------------------------------------------
 */

static int put_thread(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	if (pt_array_grow(&s->thread_machines, s->thread_count, &s->thread_room, e))
		return -1;
	s->thread_machines[s->thread_count++] = r->thread.machine;
	return plain_rows_thread(s->rows, r, e);
}

static int put_symbol(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	return call_feed_symbol(s->call_feed, r->symbol.start, e) < 0 ||
		       source_lines_symbol(s->lines, &r->symbol, e) < 0
		   ? -1
		   : plain_rows_symbol(s->rows, r, e);
}

static int put_interrupts(struct sqlite_sink *s, const struct group_run *run,
			  const struct dictionary_path *path, struct pt_error *e)
{
	for (uint32_t i = 0; i < run->repeats * path->edges; i++) {
		uint32_t at = i % path->edges;
		struct interrupt_row row = {.branch = run->id * PTR_RUN_BRANCHES + i,
					    .slice = run->slice,
					    .path_edge = (int64_t)run->path * PTR_PATH_EDGES + at,
					    .tsc = run->tsc};

		if (!(path->interrupts >> at & 1))
			continue;
		if (spool_write(s->interrupts, &row, sizeof row, e) < 0)
			return -1;
		s->interrupt_count++;
	}
	return 0;
}

/* When paths have their ids. */
static int insert_interrupts(struct sqlite_sink *s, struct pt_error *e)
{
	struct interrupt_row row;

	if (spool_rewind(s->interrupts, e) < 0)
		return -1;
	for (uint64_t i = 0; i < s->interrupt_count; i++) {
		if (spool_read(s->interrupts, &row, sizeof row, e) < 0)
			return -1;
		row.path_edge =
		    dictionary_path_id(s->dictionary, (uint32_t)(row.path_edge / PTR_PATH_EDGES)) *
			PTR_PATH_EDGES +
		    row.path_edge % PTR_PATH_EDGES;
		if (plain_rows_interrupt(s->rows, &row, e) < 0)
			return -1;
	}
	return 0;
}

/* All but the stream, and how long its stretch is. */
static void fill_run(const struct sqlite_sink *s, const struct ptr_record *r,
		     const struct dictionary_path *path, struct ptr_timed_run *ret)
{
	struct group_run *own = run_feed_own(ret);

	ret->slice = r->run.slice;
	ret->timing = path->edges ? r->run.timing : PTR_TIME_BEFORE;
	ret->begins = path->first_kind == PTR_TRACE_BEGIN;
	ret->crosses = path->first_kind == PTR_VMENTRY || path->first_kind == PTR_VMEXIT;
	ret->direct_last = path->last_kind == PTR_JMP || path->last_kind == PTR_CALL_DIR;
	ret->first_insns = path->first_insns;
	ret->insns = r->run.repeats * path->insns;
	ret->tsc = r->run.tsc;
	own->id = s->base.run + (int64_t)r->number;
	own->slice = s->base.slice + r->run.slice;
	own->tsc = r->run.tsc;
	own->path = r->run.path;
	own->repeats = r->run.repeats;
	own->cyc_count = r->run.cyc_count;
	own->insn_count = r->run.insn_count;
}

static int put_run(struct sqlite_sink *s, const struct ptr_record *r, struct pt_error *e)
{
	struct dictionary_path path = dictionary_path_of(s->dictionary, r->run.path);
	struct ptr_timed_run *run = run_feed_room(s->run_feed, e);
	struct group_run *own;
	uint32_t thread;

	if (!run)
		return -1;
	fill_run(s, r, &path, run);
	own = run_feed_own(run);
	s->totals.runs++;
	s->totals.branches += (uint64_t)r->run.repeats * path.edges;
	s->totals.insns += run->insns;
	s->totals.not_taken += (uint64_t)r->run.repeats * path.not_taken;
	if (call_feed_run(s->call_feed, r->number, r->run.tsc, e) < 0 ||
	    slices_run(s->slices, own->id, &r->run, &path, &own->back, e) < 0)
		return -1;
	run->stream = slices_stream(s->slices);
	thread = slices_thread(s->slices);
	dictionary_run(s->dictionary, &r->run, thread ? s->thread_machines[thread - 1] : 0);
	if (path.interrupts && put_interrupts(s, own, &path, e) < 0)
		return -1;
	return run_feed_add(s->run_feed, e);
}

static void put_path_sum(struct sqlite_sink *s, const struct ptr_path_sum *r)
{
	struct dictionary_path path = dictionary_path_of(s->dictionary, r->path);

	s->totals.branches += r->repeats * path.edges;
	s->totals.insns += r->repeats * path.insns;
	s->totals.not_taken += r->repeats * path.not_taken;
	dictionary_path_sum(s->dictionary, r);
}

static int put_interrupt(struct sqlite_sink *s, const struct ptr_interrupt *r, struct pt_error *e)
{
	const struct interrupt_row row = {.branch = -(s->base.interrupt + ++s->far_interrupts),
					  .slice = s->base.slice + r->slice,
					  .path_edge = (int64_t)r->path * PTR_PATH_EDGES + r->at,
					  .tsc = r->tsc};

	s->interrupt_count++;
	return spool_write(s->interrupts, &row, sizeof row, e);
}

static int sink_record(struct pt_sink *sink, const struct ptr_record *r, struct pt_error *e)
{
	struct sqlite_sink *s = (struct sqlite_sink *)sink;

	if (r->type == PTR_META)
		return trace_meta_add(&s->meta, r->meta.key, r->meta.value, e);
	if (!s->began && begin(s, e) < 0)
		return -1;
	switch (r->type) {
	case PTR_MACHINE: return plain_rows_machine(s->rows, r, e);
	case PTR_THREAD: return put_thread(s, r, e);
	case PTR_DSO: return source_lines_dso(s->lines, &r->dso, e) < 0 ? -1 : plain_rows_dso(s->rows, r, e);
	case PTR_SYMBOL: return put_symbol(s, r, e);
	case PTR_EDGE: s->totals.edges++; return dictionary_edge(s->dictionary, &r->edge, e);
	case PTR_PATH: s->totals.paths++; return dictionary_path(s->dictionary, &r->path, e);
	case PTR_SLICE: return slices_begin(s->slices, r, e);
	case PTR_RUN: return put_run(s, r, e);
	case PTR_SLICE_END: return slices_end(s->slices, &r->slice_end, e);
	case PTR_CALL_PATH: return call_feed_path(s->call_feed, &r->call_path, e);
	case PTR_CALL: s->totals.calls++; return call_feed_call(s->call_feed, &r->call, e);
	case PTR_EVENT: s->totals.events++; return plain_rows_event(s->rows, r, e);
	case PTR_ERROR: s->totals.errors++; return plain_rows_error(s->rows, r, e);
	case PTR_GUEST_RUN: return vm_rows_guest_run(s->vms, r, e);
	case PTR_VMEXIT_INTERVAL: return vm_rows_vmexit(s->vms, r, e);
	case PTR_VM_CLOCK: return vm_rows_clock(s->vms, r, e);
	case PTR_CODE: return code_rows_add(s->code, &r->code, e);
	case PTR_PATH_SUM: put_path_sum(s, &r->path_sum); return 0;
	case PTR_CALL_SUM:
		s->totals.calls += r->call_sum.calls;
		return call_feed_sum(s->call_feed, &r->call_sum, e);
	case PTR_INTERRUPT: return put_interrupt(s, &r->interrupt, e);
	case PTR_META:
	case PTR_TYPES:
	case PTR_END: break;
	}
	return 0;
}

/*
 * ---- End ------------------------------------------------------------------------------------------------
 */

/* The statements, before the database is closed. */
static void finalize(struct sqlite_sink *s)
{
	plain_rows_destroy(s->rows);
	run_feed_destroy(s->run_feed); /* before what it feeds */
	run_groups_destroy(s->runs);
	free(s->interrupts);
	slices_destroy(s->slices);
	dictionary_destroy(s->dictionary);
	call_feed_destroy(s->call_feed); /* before what it feeds */
	call_paths_destroy(s->call_paths);
	calls_destroy(s->calls);
	vm_rows_destroy(s->vms);
	code_rows_destroy(s->code);
	source_lines_destroy(s->lines);
	inserter_destroy(s->inserter); /* after those whose rows it inserts */
	s->rows = NULL;
	s->run_feed = NULL;
	s->runs = NULL;
	s->interrupts = NULL;
	s->slices = NULL;
	s->dictionary = NULL;
	s->call_feed = NULL;
	s->call_paths = NULL;
	s->calls = NULL;
	s->vms = NULL;
	s->code = NULL;
	s->lines = NULL;
	s->inserter = NULL;
}

static int insert_runs_and_calls(struct sqlite_sink *s, struct pt_error *e)
{
	const struct row_maker runs = run_groups_maker(s->runs), calls = calls_maker(s->calls);

	return run_groups_begin(s->runs, s->inserter, s->dictionary, e) < 0 || calls_rank(s->calls, e) < 0 ||
		       row_turns_run(s->inserter, &runs, &calls, s->threads != 1, &s->poll, e) < 0
		   ? -1
		   : run_groups_end(s->runs, e);
}

static int sink_commit(struct pt_sink *sink, struct pt_error *e)
{
	struct sqlite_sink *s = (struct sqlite_sink *)sink;
	sqlite3 *db = s->store.db;

	if (begin(s, e) < 0)
		return -1;
	source_lines_open_ahead(s->lines);
	if (call_feed_finish(s->call_feed, e) < 0 || run_feed_finish(s->run_feed, e) < 0 ||
	    slices_finish(s->slices, e) < 0 || dictionary_rank(s->dictionary, e) < 0)
		return -1;
	s->busy_with = "writing runs and calls";
	if (insert_runs_and_calls(s, e) < 0 || insert_interrupts(s, e) < 0)
		return -1;
	s->totals.first_tsc = slices_first_tsc(s->slices);
	s->totals.last_tsc = slices_last_tsc(s->slices);
	s->totals.cyc_count = slices_cyc_count(s->slices);
	if (call_paths_finish(s->call_paths, e) < 0)
		return -1;
	/* Their memory is the dictionary's now. */
	calls_destroy(s->calls);
	call_paths_destroy(s->call_paths);
	s->calls = NULL;
	s->call_paths = NULL;
	s->busy_with = "summing up";
	if (dictionary_finish(s->dictionary, s->code, e) < 0 || code_rows_finish(s->code, s->lines, e) < 0 ||
	    inserter_settle(s->inserter, e) < 0 || plain_rows_finish(s->rows, e) < 0 ||
	    vm_rows_finish(s->vms, e) < 0 ||
	    trace_insert(db, &s->base, &s->meta, s->name, &s->totals, e) < 0 ||
	    trace_settle_times(db, &s->base, &s->meta, s->totals.last_tsc, e) < 0)
		return -1;
	finalize(s);
	s->busy_with = "summing up the time line";
	if (time_bins_fill(db, &s->base, s->totals.first_tsc, s->totals.last_tsc, e) < 0)
		return -1;
	s->busy_with = "building indexes";
	/* No ANALYZE: what it finds out of the first trace would mislead with the second. */
	if (s->store.fresh &&
	    (db_exec_macros(db, pt_indexes_sql, e) < 0 || db_exec_macros(db, pt_views_sql, e) < 0 ||
	     db_exec_macros(db, pt_fact_views_sql, e) < 0 || db_exec_macros(db, pt_code_views_sql, e) < 0))
		return -1;
	s->busy_with = s->store.level ? "compressing" : "flushing";
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

	return s->poll.interrupted(s->poll.arg);
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
	s->ret_there = options->ret_there;
	s->poll = options->poll;
	s->threads = options->threads ? options->threads : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	for (int i = 0; i < SCRATCHES; i++)
		s->scratch[i] = -1;
	if (store_open(
		&s->store, path, options->mode ? options->mode : OUTPUT_MODE,
		&(struct store_wait){options->poll.waits, options->poll.interrupted, options->poll.arg},
		e) < 0)
		goto fail;
	if (options->level && store_compress(&s->store, options->level, s->threads, e))
		goto fail;
	if (s->store.fresh &&
	    (db_exec(s->store.db, pt_tables_sql, e) < 0 || plain_rows_constants(s->store.db, e) < 0))
		goto fail;
	if (s->poll.interrupted)
		sqlite3_progress_handler(s->store.db, 100000, poll_interrupt, s);
	return &s->sink;
fail:
	sink_destroy(&s->sink);
	return NULL;
}
