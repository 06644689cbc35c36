/* report.c - see report.h. */
#include "queries/report/report.h"

#include <string.h>

#include "queries/report/counters.h"
#include "queries/report/functions.h"
#include "queries/report/json.h"
#include "queries/report/path_set.h"
#include "queries/report/sql.h"
#include "queries/report/stacks.h"

/* Of rows in the page. A hundred thousand VM exits are 5 MB, sixty thousand calls 1.5 MB. */
enum {
	EXITS = 110000,
	CALLS = 60000,
	CALL_GROUPS = 4000, /* that are unpacked for the longest calls: a second's work for each thousand */
	STACKS = 25000,
	RUNNING = 30000,
	MARKS = 10000, /* of each name */
	LOSSES = 5000,
	FUNCTIONS = 30,
	ANNOTATED = 10
};

struct report {
	sqlite3 *db;
	const struct report_options *o;
	int64_t trace, least;
	struct path_set paths;
	FILE *out;
};

struct element {
	const char *name;
	int limit;
	bool compared;
	const char *path_column; /* whose paths are named in "paths" */
	/* 0, or -1 as json_rows(). NULL: write_rows(). */
	int (*write)(struct report *r, const struct element *x, struct pt_error *e);
};

static sqlite3_stmt *prepare(const struct report *r, const char *name, int limit, struct pt_error *e)
{
	sqlite3_stmt *st = report_prepare(r->db, name, e);

	if (!st)
		return NULL;
	report_bind(st, ":trace", r->trace);
	report_bind(st, ":limit", limit);
	report_bind(st, ":groups", CALL_GROUPS);
	report_bind(st, ":least", r->least);
	if (r->o->raw_names)
		report_bind(st, ":no_demangle", 1);
	return st;
}

static int write_rows(struct report *r, const struct element *x, struct pt_error *e)
{
	sqlite3_stmt *st = prepare(r, x->name, x->limit, e);
	const struct json_watch watch = {x->path_column, path_set_add, &r->paths};
	int ret = st ? json_rows(st, &watch, r->out, e) : -1;

	sqlite3_finalize(st);
	return ret;
}

static int write_stacks(struct report *r, const struct element *x, struct pt_error *e)
{
	return stacks_write(r->db, r->trace, x->limit, &r->paths, r->out, e);
}

static int write_counters(struct report *r, const struct element *x, struct pt_error *e)
{
	(void)x;
	return counters_write(r->db, r->trace, r->out, e);
}

static const struct element elements[] = {{"trace", 0, true, NULL, NULL},
					  {"machines", 0, true, NULL, NULL},
					  {"threads", 0, true, NULL, NULL},
					  {"guests", 0, true, NULL, NULL},
					  {"entering", 0, true, NULL, NULL},
					  {"stacks", STACKS, true, NULL, write_stacks},
					  {"findings", 0, false, NULL, NULL},
					  {"reasons", 0, false, NULL, NULL},
					  {"exits", EXITS, false, NULL, NULL},
					  {"exit_calls", 0, false, "path", NULL},
					  {"running", RUNNING, false, NULL, NULL},
					  {"marks", MARKS, false, NULL, NULL},
					  {"losses", LOSSES, false, NULL, NULL},
					  {"loss_kinds", 0, false, NULL, NULL},
					  {"counters", 0, false, NULL, write_counters},
					  {"calls", CALLS, false, "path", NULL},
					  {"functions", FUNCTIONS, false, NULL, NULL}};

static int write_element(struct report *r, const struct element *x, struct pt_error *e)
{
	int ret;

	json_begin(r->out, x->name, r->o->suffix);
	ret = (x->write ? x->write : write_rows)(r, x, e);
	json_end(r->out);
	return ret;
}

/* The first value of a statement's first row; *ret is -1 when there is none. 0, or -1: report_step()'s
 * errors. */
static int first_value(sqlite3 *db, sqlite3_stmt *st, int64_t *ret, struct pt_error *e)
{
	int r = report_step(db, st, e);

	*ret = r > 0 && sqlite3_column_type(st, 0) == SQLITE_INTEGER ? sqlite3_column_int64(st, 0) : -1;
	return r < 0 ? -1 : 0;
}

static int find_trace(struct report *r, struct pt_error *e)
{
	sqlite3_stmt *st = NULL;
	int ret;

	sqlite3_prepare_v2(r->db, "SELECT min(id) FROM trace WHERE ?1 = 0 OR id = ?1", -1, &st, NULL);
	sqlite3_bind_int64(st, 1, r->o->trace);
	ret = first_value(r->db, st, &r->trace, e);
	sqlite3_finalize(st);
	if (ret < 0 || r->trace >= 0)
		return ret;
	if (r->o->trace)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "there is no trace %lld in the database",
			       (long long)r->o->trace);
	return 0; /* of an empty database: no rows */
}

static int find_least(struct report *r, struct pt_error *e)
{
	sqlite3_stmt *st = prepare(r, "calls_least", 0, e);
	int ret;

	if (!st)
		return -1;
	ret = first_value(r->db, st, &r->least, e);
	sqlite3_finalize(st);
	return ret;
}

static int write_paths(struct report *r, struct pt_error *e)
{
	int ret;

	json_begin(r->out, "paths", r->o->suffix);
	ret = path_set_write(&r->paths, r->db, r->o->raw_names, r->out, e);
	json_end(r->out);
	return ret;
}

static int write_annotated(struct report *r, struct pt_error *e)
{
	int ret;

	json_begin(r->out, "annotate", r->o->suffix);
	ret = functions_annotated(r->db, r->trace, ANNOTATED, r->o->raw_names, r->out, e);
	json_end(r->out);
	return ret;
}

/*
 * A statement that has begun to read, so that the database is locked once and not for each of many thousand
 * small statements, and that all of them see the same. For sqlite3_finalize(). NULL: it could not; then each
 * statement that reads says so itself.
 */
static sqlite3_stmt *begin_reading(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_schema", -1, &st, NULL) == SQLITE_OK)
		sqlite3_step(st);
	return st;
}

int report_data(sqlite3 *db, const struct report_options *o, FILE *out, struct pt_error *e)
{
	struct report r = {.db = db, .o = o, .out = out};
	sqlite3_stmt *reading = begin_reading(db);
	int ret = find_trace(&r, e) || find_least(&r, e) || path_set_init(&r.paths, db, e) ? -1 : 0;

	for (size_t i = 0; ret == 0 && i < sizeof elements / sizeof *elements; i++)
		if (!o->stacks_only || elements[i].compared)
			ret = write_element(&r, &elements[i], e);
	if (ret == 0)
		ret = write_paths(&r, e);
	if (ret == 0 && !o->stacks_only)
		ret = write_annotated(&r, e);
	if (ret == 0) {
		json_begin(out, "limits", o->suffix);
		fprintf(out,
			"{\"exits\":%d,\"calls\":%d,\"least_ticks\":%lld,\"running\":%d,\"marks\":%d,"
			"\"losses\":%d}",
			EXITS, CALLS, (long long)r.least, RUNNING, MARKS, LOSSES);
		json_end(out);
	}
	path_set_deinit(&r.paths);
	sqlite3_finalize(reading);
	return ret;
}
