/* functions.c - see functions.h. */
#include "queries/report/functions.h"

#include <stdlib.h>
#include <string.h>

#include "queries/annotate/annotate.h"
#include "queries/report/json.h"
#include "queries/report/sql.h"

/* Instructions of one function that a page shows, at most: more than that nobody reads. */
enum { ROWS_MAX = 2000 };

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
	fputs("{\"name\":", out);
	json_string(out, name);
	fputs(",\"dso\":", out);
	json_string(out, dso ? dso : "");
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

int functions_annotated(sqlite3 *db, int64_t trace, int count, bool raw_names, FILE *out, struct pt_error *e)
{
	sqlite3_stmt *st = report_prepare(db, "functions", e);
	int r = st ? 0 : -1, n = 0, row = 0;

	putc('[', out);
	if (st) {
		report_bind(st, ":trace", trace);
		report_bind(st, ":limit", count);
	}
	while (r == 0 && (row = report_step(db, st, e)) > 0) {
		const char *name = (const char *)sqlite3_column_text(st, 0);

		/* Code without a symbol has no function to be shown. */
		if (!name || sqlite3_column_int(st, 1))
			continue;
		if (n++)
			fputs(",\n", out);
		r = write_function(db, name, (const char *)sqlite3_column_text(st, 4), raw_names, out, e);
	}
	putc(']', out);
	sqlite3_finalize(st);
	return row < 0 ? -1 : r;
}
