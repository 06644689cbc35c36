/* plain_rows.c - see plain_rows.h. */
#include "export/plain_rows.h"

#include <stdlib.h>

#include "export/db.h"
#include "export/demangle.h"
#include "schema/vm_reasons.h"

enum table { MACHINE, THREAD, DSO, SYMBOL, EVENT, ERROR, INTERRUPT, TABLES };

static const struct {
	const char *name;
	int columns;
} tables[TABLES] = {
    [MACHINE] = {"machine", 4},	    [THREAD] = {"thread", 7}, [DSO] = {"dso", 5},
    [SYMBOL] = {"symbol", 11},	    [EVENT] = {"event", 12},  [ERROR] = {"error", 12},
    [INTERRUPT] = {"interrupt", 6},
};

struct plain_rows {
	sqlite3 *db;
	struct trace_bases base;
	sqlite3_stmt *insert[TABLES];
	char demangled[DEMANGLED_BYTES];
};

struct plain_rows *plain_rows_create(sqlite3 *db, const struct trace_bases *bases, struct pt_error *e)
{
	struct plain_rows *p = calloc(1, sizeof *p);

	if (!p) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	p->db = db;
	p->base = *bases;
	for (int t = 0; t < TABLES; t++) {
		p->insert[t] = db_insert(db, tables[t].name, tables[t].columns, e);
		if (!p->insert[t]) {
			plain_rows_destroy(p);
			return NULL;
		}
	}
	return p;
}

void plain_rows_destroy(struct plain_rows *p)
{
	if (!p)
		return;
	for (int t = 0; t < TABLES; t++)
		sqlite3_finalize(p->insert[t]);
	free(p);
}

/*
 * ---- Rows -----------------------------------------------------------------------------------------------
 */

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

int plain_rows_machine(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = p->insert[MACHINE];

	sqlite3_bind_int64(st, 1, p->base.machine + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, p->base.trace);
	sqlite3_bind_int64(st, 3, r->machine.pid);
	bind_text(st, 4, r->machine.name);
	return db_run(st, e);
}

int plain_rows_thread(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = p->insert[THREAD];

	sqlite3_bind_int64(st, 1, p->base.thread + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, p->base.trace);
	bind_ref(st, 3, r->thread.machine, p->base.machine);
	db_bind(st, 4, r->thread.pid >= 0, r->thread.pid);
	db_bind(st, 5, r->thread.tid >= 0, r->thread.tid);
	bind_text(st, 6, r->thread.comm);
	sqlite3_bind_int64(st, 7, p->base.thread + (int64_t)r->number);
	return db_run(st, e);
}

int plain_rows_dso(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = p->insert[DSO];

	sqlite3_bind_int64(st, 1, p->base.dso + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, p->base.trace);
	bind_text(st, 3, r->dso.name);
	bind_text(st, 4, r->dso.build_id);
	sqlite3_bind_null(st, 5); /* dictionary_finish() */
	return db_run(st, e);
}

int plain_rows_symbol(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = p->insert[SYMBOL];

	sqlite3_bind_int64(st, 1, p->base.symbol + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, p->base.trace);
	bind_ref(st, 3, r->symbol.dso, p->base.dso);
	sqlite3_bind_int64(st, 4, (int64_t)r->symbol.start);
	bind_ip(st, 5, r->symbol.end);
	bind_text(st, 6, r->symbol.name); /* NULL until plain_rows_finish() */
	sqlite3_bind_null(st, 7);	  /* dictionary_finish() */
	bind_text(st, 8, demangle(r->symbol.name, p->demangled) ? p->demangled : "");
	db_bind(st, 9, !*r->symbol.name, 1);
	db_bind(st, 10, r->symbol.base != PTR_UNKNOWN, (int64_t)r->symbol.base);
	sqlite3_bind_int64(st, 11, p->base.symbol + (int64_t)(r->symbol.first ? r->symbol.first : r->number));
	return db_run(st, e);
}

int plain_rows_event(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = p->insert[EVENT];

	sqlite3_bind_int64(st, 1, p->base.event + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, p->base.trace);
	bind_ref(st, 3, r->event.slice, p->base.slice);
	bind_ref(st, 4, r->event.machine, p->base.machine);
	bind_ref(st, 5, r->event.thread, p->base.thread);
	db_bind(st, 6, r->event.cpu >= 0, r->event.cpu);
	db_bind(st, 7, r->event.vcpu >= 0, r->event.vcpu);
	bind_tsc(st, 8, r->event.tsc);
	bind_ip(st, 9, r->event.ip);
	bind_text(st, 10, r->event.name);
	bind_text(st, 11, r->event.fields);
	db_bind_time(st, 12, &p->base.clock, r->event.tsc);
	return db_run(st, e);
}

int plain_rows_error(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e)
{
	sqlite3_stmt *st = p->insert[ERROR];

	sqlite3_bind_int64(st, 1, p->base.error + (int64_t)r->number);
	sqlite3_bind_int64(st, 2, p->base.trace);
	bind_ref(st, 3, r->error.slice, p->base.slice);
	sqlite3_bind_int64(st, 4, r->error.stream);
	db_bind(st, 5, r->error.cpu >= 0, r->error.cpu);
	bind_tsc(st, 6, r->error.tsc);
	bind_tsc(st, 7, r->error.tsc_end);
	bind_ip(st, 8, r->error.ip);
	db_bind(st, 9, r->error.aux_offset != PTR_UNKNOWN, (int64_t)r->error.aux_offset);
	bind_text(st, 10, r->error.kind);
	bind_text(st, 11, r->error.message);
	db_bind_time(st, 12, &p->base.clock, r->error.tsc);
	return db_run(st, e);
}

int plain_rows_interrupt(struct plain_rows *p, const struct interrupt_row *row, struct pt_error *e)
{
	sqlite3_stmt *st = p->insert[INTERRUPT];

	sqlite3_bind_int64(st, 1, row->branch);
	sqlite3_bind_int64(st, 2, p->base.trace);
	sqlite3_bind_int64(st, 3, row->slice);
	bind_tsc(st, 4, row->tsc);
	sqlite3_bind_int64(st, 5, row->path_edge);
	db_bind_time(st, 6, &p->base.clock, row->tsc);
	return db_run(st, e);
}

/* Code without symbols is named after its dso: the last part of a path; [anon] for memory that is of no
 * file. */
static int name_unnamed(struct plain_rows *p, struct pt_error *e)
{
	char sql[512];

	sqlite3_snprintf(sizeof sql, sql,
			 "UPDATE symbol SET name = (SELECT CASE WHEN d.name = '//anon' THEN '[anon]' ELSE"
			 " replace(d.name, rtrim(d.name, replace(d.name, '/', '')), '') END"
			 " FROM dso d WHERE d.id = symbol.dso)"
			 " WHERE trace = %lld AND unnamed",
			 (long long)p->base.trace);
	return db_exec(p->db, sql, e);
}

int plain_rows_finish(struct plain_rows *p, struct pt_error *e)
{
	char sql[512];

	if (name_unnamed(p, e) < 0)
		return -1;
	sqlite3_snprintf(
	    sizeof sql, sql,
	    "UPDATE thread SET first = f.first FROM (SELECT id, first_value(id) OVER (PARTITION BY"
	    " machine, pid, tid ORDER BY id) AS first FROM thread WHERE trace = %lld"
	    " AND pid IS NOT NULL AND tid IS NOT NULL) AS f"
	    " WHERE thread.id = f.id AND f.first <> f.id",
	    (long long)p->base.trace);
	return db_exec(p->db, sql, e);
}

/*
 * ---- Constants ------------------------------------------------------------------------------------------
 */

/* A row of a table of names. Numbers without a name get none. */
static int fill_name(sqlite3_stmt *st, int64_t id, const char *name, struct pt_error *e)
{
	if (!name || !*name)
		return 0;
	sqlite3_bind_int64(st, 1, id);
	bind_text(st, 2, name);
	return db_run(st, e);
}

/* A kind of branches, as it is, or of those with which tracing stopped (PTR_KIND_ENDS_TRACE). */
static int fill_kind(sqlite3_stmt *st, int kind, int ends_trace, struct pt_error *e)
{
	sqlite3_bind_int64(st, 3, ptr_kind_perf_flags((enum ptr_kind)kind));
	return fill_name(st, kind + ends_trace, ptr_kind_name((enum ptr_kind)kind), e);
}

int plain_rows_constants(sqlite3 *db, struct pt_error *e)
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
	for (int i = 0; !ret && i < PTR_KINDS; i++)
		ret = fill_kind(st[KIND], i, 0, e);
	for (int i = PTR_KIND_NONE + 1; !ret && i < PTR_TRACE_BEGIN; i++)
		ret = fill_kind(st[KIND], i, PTR_KIND_ENDS_TRACE, e);
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
