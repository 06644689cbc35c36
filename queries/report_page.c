/* report_page.c - see report_page.h. */
#include "queries/report_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queries/canned.h"
#include "queries/database.h"
#include "queries/html.h"
#include "queries/report/report.h"
#include "queries/report/sql.h"
#include "queries/source.h"

static int read_parameters(const struct report_page *page, struct report_options *o, struct pt_error *e)
{
	for (size_t i = 0; i < page->parameter_count; i++) {
		const char *p = page->parameters[i];
		char *end;

		if (strncmp(p, "trace=", 6) != 0)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				       "a report has one parameter, trace, and not %s", p);
		errno = 0;
		o->trace = strtoll(p + 6, &end, 10);
		if (errno || *end || o->trace < 1)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s: not a trace's number", p);
	}
	return 0;
}

/* Of the trace that the report is about. 0, or -1: report_step()'s errors. */
static int bind_trace(sqlite3 *db, sqlite3_stmt *st, int64_t trace, struct pt_error *e)
{
	int index = sqlite3_bind_parameter_index(st, ":trace"), r = 0;
	sqlite3_stmt *first = NULL;

	if (index && !trace) {
		sqlite3_prepare_v2(db, "SELECT min(id) FROM traces", -1, &first, NULL);
		r = report_step(db, first, e);
		if (r > 0)
			trace = sqlite3_column_int64(first, 0);
		sqlite3_finalize(first);
	}
	if (index && trace)
		sqlite3_bind_int64(st, index, trace);
	return r < 0 ? -1 : 0;
}

/* The canned query's rows, as a table. */
static int put_table(sqlite3 *db, const struct canned *q, const struct report_options *o, FILE *out,
		     struct pt_error *e)
{
	char *sql = source_read(&(struct source){.name = q->name}, e);
	sqlite3_stmt *st = sql ? database_prepare(db, sql, e) : NULL;
	int r = st ? 0 : -1;
	char parameter[64];

	if (st && o->raw_names)
		database_raw_names(st);
	if (st)
		r = bind_trace(db, st, o->trace, e);
	if (r == 0 && canned_note(sql, "dashboard: ", parameter, sizeof parameter))
		r = database_bind(st, parameter, e);
	if (r == 0)
		r = html_section(st, q->name, sql, out, e);
	sqlite3_finalize(st);
	free(sql);
	return r;
}

static int put_other(const char *path, bool raw_names, FILE *out, struct pt_error *e)
{
	const struct report_options o = {.suffix = "-b", .stacks_only = true, .raw_names = raw_names};
	sqlite3 *db = database_open(path, e);
	int r = db ? report_data(db, &o, out, e) : -1;

	sqlite3_close(db);
	return r;
}

int report_page_write(const struct report_page *page, sqlite3 *db, FILE *out, struct pt_error *e)
{
	struct report_options o = {.suffix = "", .raw_names = page->raw_names};
	int r = read_parameters(page, &o, e);

	if (r == 0 && page->database_count > 2)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "a report compares two databases, not %zu",
			       page->database_count);
	if (r)
		return r;
	html_report_begin(out, page->databases[0]);
	r = report_data(db, &o, out, e);
	if (r == 0 && page->database_count == 2)
		r = put_other(page->databases[1], page->raw_names, out, e);
	html_tables_begin(out);
	for (size_t i = 0; r == 0 && i < canned_count; i++)
		if (canned_queries[i].dashboard)
			r = put_table(db, &canned_queries[i], &o, out, e);
	html_report_end(out);
	return r;
}
