/* json.c - see json.h. */
#include "queries/report/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "queries/report/sql.h"
#include "schema/utf8.h"

void json_string(FILE *out, const char *s)
{
	putc('"', out);
	while (*s) {
		const uint8_t *p = (const uint8_t *)s;
		size_t bytes = pt_utf8_bytes(p, strnlen(s, 4));

		if (!bytes)
			fputs("\\ufffd", out);
		else if (*s == '<' || *s == '"' || *s == '\\' || pt_utf8_controls(p, bytes))
			fprintf(out, "\\u%04x", pt_utf8_code(p, bytes));
		else
			fwrite(s, 1, bytes, out);
		s += bytes ? bytes : 1;
	}
	putc('"', out);
}

static void put_value(sqlite3_stmt *st, int column, FILE *out)
{
	double real;

	switch (sqlite3_column_type(st, column)) {
	case SQLITE_NULL: fputs("null", out); break;
	case SQLITE_INTEGER: fprintf(out, "%lld", sqlite3_column_int64(st, column)); break;
	case SQLITE_FLOAT:
		real = sqlite3_column_double(st, column);
		if (isfinite(real))
			fprintf(out, "%.15g", real);
		else
			fputs("null", out);
		break;
	default: json_string(out, (const char *)sqlite3_column_text(st, column)); break;
	}
}

static int find_column(sqlite3_stmt *st, const char *name)
{
	for (int i = 0; name && i < sqlite3_column_count(st); i++)
		if (!strcmp(sqlite3_column_name(st, i), name))
			return i;
	return -1;
}

void json_row(sqlite3_stmt *st, FILE *out)
{
	putc('[', out);
	for (int i = 0; i < sqlite3_column_count(st); i++) {
		if (i)
			putc(',', out);
		put_value(st, i, out);
	}
	putc(']', out);
}

void json_columns(sqlite3_stmt *st, FILE *out)
{
	fputs("{\"columns\":[", out);
	for (int i = 0; i < sqlite3_column_count(st); i++) {
		if (i)
			putc(',', out);
		json_string(out, sqlite3_column_name(st, i));
	}
	fputs("],\"rows\":[", out);
}

int json_rows(sqlite3_stmt *st, const struct json_watch *watch, FILE *out, struct pt_error *e)
{
	int watched = find_column(st, watch ? watch->column : NULL), r;
	bool any = false;

	json_columns(st, out);
	while ((r = report_step(sqlite3_db_handle(st), st, e)) > 0) {
		fputs(any ? ",\n" : "\n", out);
		any = true;
		if (watched >= 0 && sqlite3_column_type(st, watched) == SQLITE_INTEGER &&
		    watch->see(watch->arg, sqlite3_column_int64(st, watched), e))
			return -1;
		json_row(st, out);
	}
	fputs("]}", out);
	return r;
}

void json_begin(FILE *out, const char *name, const char *suffix)
{
	fprintf(out, "<script type=\"application/json\" id=\"data-%s%s\">", name, suffix);
}

void json_end(FILE *out)
{
	fputs("</script>\n", out);
}
