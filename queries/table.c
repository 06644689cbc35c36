/* table.c - see table.h. */
#include "queries/table.h"

#include <stdbool.h>
#include <stdlib.h>

#include "queries/rows.h"

struct column {
	size_t wide, least; /* characters: to show all of it; after cutting */
	bool number;	    /* some of its values are numbers */
};

/* Columns on a terminal: UTF-8's continuation bytes take none. */
static size_t width_of(const char *s)
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

/* At most `wide` characters. */
static void put_text(FILE *out, const char *s, size_t wide)
{
	bool cut = width_of(s) > wide;
	size_t left = cut ? wide - 1 : wide;

	for (; *s; s++) {
		if (((unsigned char)*s & 0xc0) != 0x80 && !left--)
			break;
		putc((unsigned char)*s < 0x20 ? ' ' : *s, out);
	}
	if (cut)
		fputs("…", out);
}

static void put_cell(FILE *out, const char *s, size_t wide, bool to_right, bool last)
{
	size_t w = width_of(s), gap = w < wide ? wide - w : 0;

	if (to_right)
		pad(out, gap, ' ');
	put_text(out, s, wide);
	if (!to_right && !last)
		pad(out, gap, ' ');
	fputs(last ? "\n" : "  ", out);
}

static struct column *measure(const struct rows *rows, struct pt_error *e)
{
	struct column *columns = calloc(rows->columns + 1, sizeof *columns);

	if (!columns) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	for (size_t i = 0; i < rows->columns; i++) {
		struct column *c = &columns[i];

		c->wide = c->least = width_of(rows->names[i]);
		for (size_t k = 0; k < rows->count; k++) {
			const struct cell *cell = rows_at(rows, k, i);
			size_t w = cell->text ? width_of(cell->text) : 1;

			c->number |= cell->number;
			if (w > c->wide)
				c->wide = w;
		}
		if (c->number)
			c->least = c->wide;
		else if (c->least < TABLE_TEXT_MIN)
			c->least = c->wide < TABLE_TEXT_MIN ? c->wide : TABLE_TEXT_MIN;
	}
	return columns;
}

/* Narrows the columns to what fits, as far as they go. Returns the table's width. */
static size_t narrow(struct column *columns, size_t n, size_t width)
{
	size_t all = n ? 2 * (n - 1) : 0;

	for (size_t i = 0; i < n; i++)
		all += columns[i].wide;
	while (all > width) {
		struct column *widest = NULL;

		for (size_t i = 0; i < n; i++)
			if (columns[i].wide > columns[i].least && (!widest || columns[i].wide > widest->wide))
				widest = &columns[i];
		if (!widest)
			break;
		widest->wide--;
		all--;
	}
	return all;
}

static void put_table(const struct rows *rows, const struct column *columns, FILE *out)
{
	size_t n = rows->columns;

	for (size_t i = 0; i < n; i++)
		put_cell(out, rows->names[i], columns[i].wide, columns[i].number, i + 1 == n);
	for (size_t i = 0; i < n; i++) {
		pad(out, columns[i].wide, '-');
		fputs(i + 1 == n ? "\n" : "  ", out);
	}
	for (size_t k = 0; k < rows->count; k++) {
		for (size_t i = 0; i < n; i++) {
			const struct cell *c = rows_at(rows, k, i);

			put_cell(out, c->text ? c->text : "-", columns[i].wide,
				 columns[i].number && (c->number || !c->text), i + 1 == n);
		}
	}
}

/* As the sqlite3 shell's .mode line. */
static void put_lines(const struct rows *rows, FILE *out)
{
	size_t names = 0;

	for (size_t i = 0; i < rows->columns; i++)
		if (width_of(rows->names[i]) > names)
			names = width_of(rows->names[i]);
	for (size_t k = 0; k < rows->count; k++) {
		if (k)
			putc('\n', out);
		for (size_t i = 0; i < rows->columns; i++) {
			const struct cell *c = rows_at(rows, k, i);

			pad(out, names - width_of(rows->names[i]), ' ');
			fputs(rows->names[i], out);
			fputs(" = ", out);
			put_text(out, c->text ? c->text : "-", SIZE_MAX);
			putc('\n', out);
		}
	}
}

int table_print(sqlite3_stmt *statement, size_t width, FILE *out, struct pt_error *e)
{
	struct rows rows;
	struct column *columns;

	if (rows_init(&rows, statement, e) < 0)
		return -1;
	columns = measure(&rows, e);
	if (columns && (!width || narrow(columns, rows.columns, width) <= 2 * width || !rows.count))
		put_table(&rows, columns, out);
	else if (columns)
		put_lines(&rows, out);
	rows_deinit(&rows);
	if (!columns)
		return -1;
	free(columns);
	return 0;
}
