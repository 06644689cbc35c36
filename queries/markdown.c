/* markdown.c - see markdown.h. */
#include "queries/markdown.h"

#include <stdbool.h>
#include <string.h>

#include "queries/rows.h"
#include "queries/text.h"

static void cell(FILE *out, const char *s)
{
	fputs(" ", out);
	while (*s) {
		if ((unsigned char)*s < 0x20) {
			putc(' ', out);
			s++;
			continue;
		}
		if (strchr("\\|`*_[]<>&~#", *s))
			putc('\\', out);
		s += text_put_utf8(out, s);
	}
	fputs(" |", out);
}

static void head(sqlite3_stmt *st, bool has_row, FILE *out)
{
	int n = sqlite3_column_count(st);

	putc('|', out);
	for (int i = 0; i < n; i++)
		cell(out, sqlite3_column_name(st, i));
	fputs("\n|", out);
	for (int i = 0; i < n; i++) {
		int type = has_row ? sqlite3_column_type(st, i) : SQLITE_NULL;

		fputs(type == SQLITE_INTEGER || type == SQLITE_FLOAT ? " ---: |" : " --- |", out);
	}
	putc('\n', out);
}

int markdown_print(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	int n = sqlite3_column_count(st), r = sqlite3_step(st);

	if (r == SQLITE_ROW || r == SQLITE_DONE)
		head(st, r == SQLITE_ROW, out);
	for (; r == SQLITE_ROW; r = sqlite3_step(st)) {
		putc('|', out);
		for (int i = 0; i < n; i++) {
			const char *s;

			if (rows_text(st, i, &s, e))
				return -1;
			cell(out, s ? s : "");
		}
		putc('\n', out);
	}
	return r == SQLITE_DONE ? 0 : rows_sql_error(st, e);
}
