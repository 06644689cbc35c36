/* print.c - see print.h. */
#include "queries/print.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int sql_error(sqlite3_stmt *st, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(sqlite3_db_handle(st)));
}

static void csv_field(FILE *out, const char *s)
{
	if (!s[strcspn(s, ",\"\r\n")]) {
		fputs(s, out);
		return;
	}
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"')
			putc('"', out);
		putc(*s, out);
	}
	putc('"', out);
}

static void json_string(FILE *out, const char *s)
{
	putc('"', out);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

static int csv(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	int n = sqlite3_column_count(st), r;

	for (int i = 0; i < n; i++) {
		csv_field(out, sqlite3_column_name(st, i));
		fputs(i + 1 < n ? "," : "\r\n", out);
	}
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		for (int i = 0; i < n; i++) {
			const char *s = (const char *)sqlite3_column_text(st, i);

			csv_field(out, s ? s : "");
			fputs(i + 1 < n ? "," : "\r\n", out);
		}
	}
	return r == SQLITE_DONE ? 0 : sql_error(st, e);
}

static int json(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	int n = sqlite3_column_count(st), r;
	bool any = false;

	putc('[', out);
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		fputs(any ? ",\n " : "\n ", out);
		any = true;
		for (int i = 0; i < n; i++) {
			putc(i ? ',' : '{', out);
			json_string(out, sqlite3_column_name(st, i));
			putc(':', out);
			switch (sqlite3_column_type(st, i)) {
			case SQLITE_NULL: fputs("null", out); break;
			case SQLITE_INTEGER:
			case SQLITE_FLOAT: fputs((const char *)sqlite3_column_text(st, i), out); break;
			default: json_string(out, (const char *)sqlite3_column_text(st, i)); break;
			}
		}
		putc('}', out);
	}
	fputs(any ? "\n]\n" : "]\n", out);
	return r == SQLITE_DONE ? 0 : sql_error(st, e);
}

/* Columns on a terminal: UTF-8's continuation bytes take none. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void pad(FILE *out, size_t n, char c)
{
	while (n--)
		putc(c, out);
}

struct cell {
	char *text;
	bool number;
};

static int table(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	size_t n = (size_t)sqlite3_column_count(st), rows = 0, room = 0;
	struct cell *cells = NULL;
	size_t *widths = calloc(n + 1, sizeof *widths);
	bool *right = calloc(n + 1, sizeof *right);
	int r = SQLITE_NOMEM;

	if (!widths || !right)
		goto out;
	for (size_t i = 0; i < n; i++)
		widths[i] = width(sqlite3_column_name(st, (int)i));
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		if (rows == room) {
			struct cell *grown =
			    realloc(cells, (room = room ? room * 2 : 64) * n * sizeof *cells);

			if (!grown) {
				r = SQLITE_NOMEM;
				goto out;
			}
			cells = grown;
		}
		memset(cells + rows * n, 0, n * sizeof *cells);
		rows++;
		for (size_t i = 0; i < n; i++) {
			struct cell *c = &cells[(rows - 1) * n + i];
			int type = sqlite3_column_type(st, (int)i);
			const char *s = (const char *)sqlite3_column_text(st, (int)i);

			c->number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
			c->text = strdup(s ? s : "-");
			if (!c->text) {
				r = SQLITE_NOMEM;
				goto out;
			}
			for (char *p = c->text; *p; p++)
				if ((unsigned char)*p < 0x20)
					*p = ' ';
			right[i] |= c->number;
			if (width(c->text) > widths[i])
				widths[i] = width(c->text);
		}
	}
	if (r != SQLITE_DONE)
		goto out;
	for (size_t k = 0; k < rows + 2; k++) {
		for (size_t i = 0; i < n; i++) {
			const char *s = k == 0	 ? sqlite3_column_name(st, (int)i)
					: k == 1 ? ""
						 : cells[(k - 2) * n + i].text;
			bool to_right =
			    right[i] && (k < 2 || cells[(k - 2) * n + i].number || !strcmp(s, "-"));
			size_t gap = widths[i] - width(s);

			if (k == 1) {
				pad(out, widths[i], '-');
			} else if (to_right) {
				pad(out, gap, ' ');
				fputs(s, out);
			} else {
				fputs(s, out);
				if (i + 1 < n)
					pad(out, gap, ' ');
			}
			fputs(i + 1 < n ? "  " : "\n", out);
		}
	}
out:
	for (size_t i = 0; i < rows * n; i++)
		free(cells[i].text);
	free(cells);
	free(widths);
	free(right);
	if (r == SQLITE_NOMEM)
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET,
			       "out of memory for the table; --format csv needs none");
	return r == SQLITE_DONE ? 0 : sql_error(st, e);
}

int print_rows(sqlite3_stmt *st, enum print_format format, FILE *out, struct pt_error *e)
{
	int r = format == PRINT_CSV    ? csv(st, out, e)
		: format == PRINT_JSON ? json(st, out, e)
				       : table(st, out, e);

	if (fflush(out) != 0 && r == 0)
		r = pt_fail_errno(e, "cannot write the rows");
	return r;
}
