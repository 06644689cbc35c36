/* functions.c - see functions.h. */
#include "queries/report/functions.h"

#include <stdlib.h>
#include <string.h>

#include "queries/annotate/annotate.h"
#include "queries/report/json.h"
#include "queries/report/sql.h"

/* Instructions of one function that a page shows, at most: more than that nobody reads. */
enum { ROWS_MAX = 2000 };
/* To annotate a function with loops all runs of the trace are read: so many for a page. */
static const int64_t RUNS_READ = 200000000;

static int write_rows(sqlite3 *rows, FILE *out, struct pt_error *e)
{
	sqlite3_stmt *st = NULL;
	int r = -1;

	if (sqlite3_prepare_v2(rows,
			       "SELECT ip, \"offset\", count, cycles, ipc, code, branches, loop FROM "
			       "annotate ORDER BY rowid "
			       "LIMIT ?",
			       -1, &st, NULL) != SQLITE_OK)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(rows));
	sqlite3_bind_int(st, 1, ROWS_MAX);
	r = json_rows(st, NULL, out, e);
	sqlite3_finalize(st);
	return r;
}

static void write_object(const char *name, const char *dso, FILE *out)
{
	fputs("{\"name\":", out);
	json_string(out, name);
	fputs(",\"dso\":", out);
	json_string(out, dso ? dso : "");
}

static int write_function(sqlite3 *db, const char *name, const char *dso, bool raw_names, FILE *out,
			  struct pt_error *e)
{
	char *function = NULL, *file = NULL;
	const char *parameters[2];
	struct annotate_options o = {parameters, dso ? 2 : 1, raw_names};
	struct pt_error why = {0};
	sqlite3 *rows;
	int r = 0;

	if (asprintf(&function, "function=%s", name) < 0 || asprintf(&file, "dso=%s", dso ? dso : "") < 0) {
		free(function);
		return pt_fail_no_memory(e, "a function's name");
	}
	parameters[0] = function;
	parameters[1] = file;
	rows = annotate(db, &o, &why);
	/* That it cannot be annotated is the page's to say; that the database cannot be read is not. */
	if (!rows && why.kind != PT_ERR_USAGE && why.kind != PT_ERR_REFUSED) {
		*e = why;
		r = -1;
	}
	write_object(name, dso, out);
	fputs(rows ? ",\"rows\":" : ",\"why\":", out);
	if (rows)
		r = write_rows(rows, out, e);
	else
		json_string(out, why.message);
	putc('}', out);
	sqlite3_close(rows);
	free(function);
	free(file);
	return r;
}

static void write_too_many(const char *name, const char *dso, int64_t runs, FILE *out)
{
	char why[160];

	snprintf(why, sizeof why,
		 "The trace has %lld million runs, which take long to read: pt-query DB annotate -p "
		 "function=NAME does it.",
		 (long long)(runs / 1000000));
	write_object(name, dso, out);
	fputs(",\"why\":", out);
	json_string(out, why);
	putc('}', out);
}

/* The trace's; 0 unknown. */
static int64_t count_runs(sqlite3 *db, int64_t trace)
{
	sqlite3_stmt *st = NULL;
	int64_t runs = 0;

	if (sqlite3_prepare_v2(db, "SELECT runs FROM traces WHERE id = ?", -1, &st, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, trace);
		if (sqlite3_step(st) == SQLITE_ROW)
			runs = sqlite3_column_int64(st, 0);
	}
	sqlite3_finalize(st);
	return runs;
}

int functions_annotated(sqlite3 *db, int64_t trace, int count, bool raw_names, FILE *out, struct pt_error *e)
{
	sqlite3_stmt *st = report_prepare(db, "functions", e);
	int r = st ? 0 : -1, n = 0, row = 0;
	int64_t runs = count_runs(db, trace);

	putc('[', out);
	if (st) {
		report_bind(st, ":trace", trace);
		report_bind(st, ":limit", count);
	}
	while (r == 0 && (row = report_step(db, st, e)) > 0) {
		const char *name = (const char *)sqlite3_column_text(st, 0);
		const char *dso = (const char *)sqlite3_column_text(st, 4);

		/* Code without a symbol has no function to be shown. */
		if (!name || sqlite3_column_int(st, 1))
			continue;
		if (n++)
			fputs(",\n", out);
		if (n > 1 && runs > RUNS_READ / n)
			write_too_many(name, dso, runs, out);
		else
			r = write_function(db, name, dso, raw_names, out, e);
	}
	putc(']', out);
	sqlite3_finalize(st);
	return row < 0 ? -1 : r;
}
