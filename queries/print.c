/* print.c - see print.h: CSV, TSV, JSON and folded stacks. */
#include "queries/print.h"

#include <stdbool.h>
#include <string.h>

#include "queries/firefox.h"
#include "queries/markdown.h"
#include "queries/plot.h"
#include "queries/pprof.h"
#include "queries/prometheus.h"
#include "queries/rows.h"
#include "queries/speedscope.h"
#include "queries/table.h"
#include "queries/text.h"
#include "schema/output.h"
#include "schema/terminal.h"
#include "schema/utf8.h"

enum print_format print_format_find(const char *name)
{
	static const char *const names[PRINT_FORMATS] = {[PRINT_TABLE] = "table",
							 [PRINT_CSV] = "csv",
							 [PRINT_TSV] = "tsv",
							 [PRINT_JSON] = "json",
							 [PRINT_JSONL] = "jsonl",
							 [PRINT_MARKDOWN] = "markdown",
							 [PRINT_PROMETHEUS] = "prometheus",
							 [PRINT_FOLDED] = "folded",
							 [PRINT_SPEEDSCOPE] = "speedscope",
							 [PRINT_PPROF] = "pprof",
							 [PRINT_FIREFOX] = "firefox",
							 [PRINT_PERFETTO] = "perfetto",
							 [PRINT_PERF_SQLITE] = "perf-sqlite",
							 [PRINT_SQLITE] = "sqlite",
							 [PRINT_LINES] = "lines",
							 [PRINT_HTML] = "html"};

	for (int i = PRINT_TABLE; i < PRINT_FORMATS; i++)
		if (names[i] && !strcmp(name, names[i]))
			return (enum print_format)i;
	return PRINT_NONE;
}

static void csv_field(FILE *out, const char *s)
{
	bool visible = pt_terminal_protected(out);

	if (!s[strcspn(s, ",\"\r\n")]) {
		fputs(s, out);
		return;
	}
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"')
			putc('"', out);
		if (visible && (*s == '\n' || *s == '\r'))
			fprintf(out, "\\x%02x", *s);
		else
			putc(*s, out);
	}
	putc('"', out);
}

static void tsv_field(FILE *out, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '\t': fputs("\\t", out); break;
		case '\n': fputs("\\n", out); break;
		case '\r': fputs("\\r", out); break;
		case '\\': fputs("\\\\", out); break;
		default: putc(*s, out);
		}
}

/* Valid UTF-8 everywhere, and nothing that a terminal obeys. */
void print_json_string(FILE *out, const char *s)
{
	putc('"', out);
	while (*s) {
		const uint8_t *p = (const uint8_t *)s;
		size_t bytes = pt_utf8_bytes(p, strnlen(s, 4));

		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (bytes && pt_utf8_controls(p, bytes))
			fprintf(out, "\\u%04x", pt_utf8_code(p, bytes));
		else
			text_put_utf8(out, s);
		s += bytes ? bytes : 1;
	}
	putc('"', out);
}

struct delimited {
	void (*field)(FILE *out, const char *s);
	const char *between, *end, *null;
};
static const struct delimited csv = {csv_field, ",", "\r\n", ""};
static const struct delimited tsv = {tsv_field, "\t", "\n", "\\N"};

static int delimited(const struct delimited *d, sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	int n = sqlite3_column_count(st), r;

	for (int i = 0; i < n; i++) {
		d->field(out, sqlite3_column_name(st, i));
		fputs(i + 1 < n ? d->between : d->end, out);
	}
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		for (int i = 0; i < n; i++) {
			const char *s;

			if (rows_text(st, i, &s, e))
				return -1;
			if (s)
				d->field(out, s);
			else
				fputs(d->null, out);
			fputs(i + 1 < n ? d->between : d->end, out);
		}
	}
	return r == SQLITE_DONE ? 0 : rows_sql_error(st, e);
}

/* SQLite's infinities are no JSON. A number that is too big for a double is, and is read as infinity. */
static void json_number(FILE *out, const char *s)
{
	fputs(strstr(s, "Inf") ? (*s == '-' ? "-1e999" : "1e999") : s, out);
}

static int json_object(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	for (int i = 0; i < sqlite3_column_count(st); i++) {
		int type = sqlite3_column_type(st, i); /* of the value, before it is made a text */
		const char *s;

		if (rows_text(st, i, &s, e))
			return -1;
		putc(i ? ',' : '{', out);
		print_json_string(out, sqlite3_column_name(st, i));
		putc(':', out);
		if (!s)
			fputs("null", out);
		else if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
			json_number(out, s);
		else
			print_json_string(out, s);
	}
	putc('}', out);
	return 0;
}

static int json(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	bool any = false;
	int r;

	putc('[', out);
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		fputs(any ? ",\n " : "\n ", out);
		any = true;
		if (json_object(st, out, e))
			return -1;
	}
	fputs(any ? "\n]\n" : "]\n", out);
	return r == SQLITE_DONE ? 0 : rows_sql_error(st, e);
}

static int jsonl(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	int r;

	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		if (json_object(st, out, e))
			return -1;
		putc('\n', out);
	}
	return r == SQLITE_DONE ? 0 : rows_sql_error(st, e);
}

int print_stack_column(sqlite3_stmt *st, const char *format, int *ret, struct pt_error *e)
{
	int n = sqlite3_column_count(st);

	*ret = -1;
	for (int i = 0; i < n; i++)
		if (!strcmp(sqlite3_column_name(st, i), "stack"))
			*ret = i;
	if (*ret >= 0 && *ret < n - 1)
		return 0;
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
		       "--format %s wants a column 'stack' and a number in the last column, as the query "
		       "folded has them",
		       format);
}

/* Readers such as flamegraph.pl cut a line at its last blank. */
static int folded(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	int n = sqlite3_column_count(st), stack, r;

	if (print_stack_column(st, "folded", &stack, e))
		return -1;
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		sqlite3_int64 weight = sqlite3_column_int64(st, n - 1);
		const char *s;

		if (rows_text(st, stack, &s, e))
			return -1;
		if (!s || weight <= 0)
			continue;
		for (; *s; s++)
			putc((unsigned char)*s < 0x20 ? ' ' : *s, out);
		fprintf(out, " %lld\n", weight);
	}
	return r == SQLITE_DONE ? 0 : rows_sql_error(st, e);
}

static int lines(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	int n = sqlite3_column_count(st), r;

	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		for (int i = 0; i < n; i++) {
			const char *s;

			if (rows_text(st, i, &s, e))
				return -1;
			for (; s && *s; s++)
				putc((unsigned char)*s < 0x20 ? ' ' : *s, out);
			putc(i + 1 < n ? '\t' : '\n', out);
		}
	}
	return r == SQLITE_DONE ? 0 : rows_sql_error(st, e);
}

int print_rows(sqlite3_stmt *st, enum print_format format, const char *name, size_t width, FILE *out,
	       struct pt_error *e)
{
	for (int i = 0; i < sqlite3_column_count(st); i++)
		if (!sqlite3_column_name(st, i)) /* from now on it is kept */
			return pt_fail_no_memory(e, "the columns' names");
	switch (format) {
	case PRINT_CSV: return delimited(&csv, st, out, e);
	case PRINT_TSV: return delimited(&tsv, st, out, e);
	case PRINT_JSON: return json(st, out, e);
	case PRINT_JSONL: return jsonl(st, out, e);
	case PRINT_MARKDOWN: return markdown_print(st, out, e);
	case PRINT_PPROF: return pprof_print(st, out, e);
	case PRINT_FIREFOX: return firefox_print(st, name, out, e);
	case PRINT_SPEEDSCOPE: return speedscope_print(st, name, out, e);
	case PRINT_PROMETHEUS: return prometheus(st, name, out, e);
	case PRINT_FOLDED: return folded(st, out, e);
	case PRINT_PLOT: return plot_print(st, out, e);
	case PRINT_LINES: return lines(st, out, e);
	default: return table_print(st, width, out, e);
	}
}

int print_flush(FILE *out, struct pt_error *e)
{
	return output_flush(out, "the rows", e);
}
