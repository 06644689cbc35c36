/* table.c - see table.h. */
#include "queries/table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "queries/rows.h"
#include "schema/terminal.h"

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

/* Columns whose numbers name something, or are typed again. */
static bool is_name(const char *column)
{
	/* clang-format off */
	static const char *const names[] = {
		"id", "trace", "cpu", "vcpu", "pid", "tid", "reason", "line", "exit", "slice", "stream",
		"tsc", "time_ns", "vmentry", "vmexit", "ip", "begin_ns", "end_ns",
	};
	/* clang-format on */
	size_t n = strlen(column);

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(column, names[i]))
			return true;
	return (n > 3 && !strcmp(column + n - 3, "_id")) || (n > 7 && !strcmp(column + n - 7, "_branch"));
}

/* 1234567 becomes 1,234,567. NULL: no memory. */
static char *separated(const char *digits)
{
	size_t n = strlen(digits), whole = strspn(digits, "-0123456789"), k = 0;
	char *ret = malloc(n + n / 3 + 2);

	for (size_t i = 0; ret && i < n; i++) {
		if (i && i < whole && (whole - i) % 3 == 0 && digits[i - 1] != '-')
			ret[k++] = ',';
		ret[k++] = digits[i];
	}
	if (ret)
		ret[k] = 0;
	return ret;
}

/* For people: only what goes to a terminal. 0, or -1 (PT_ERR_NO_MEMORY). */
static int separate(struct rows *rows, struct pt_error *e)
{
	for (size_t i = 0; i < rows->columns; i++) {
		if (is_name(rows->names[i]))
			continue;
		for (size_t k = 0; k < rows->count; k++) {
			struct cell *c = &rows->cells[k * rows->columns + i];
			char *text =
			    c->text && c->number && !strpbrk(c->text, "eEnN") ? separated(c->text) : NULL;

			if (!text && c->text && c->number && !strpbrk(c->text, "eEnN"))
				return pt_fail_no_memory(e, NULL);
			if (!text)
				continue;
			free(c->text);
			c->text = text;
		}
	}
	return 0;
}

int table_print(sqlite3_stmt *statement, size_t width, FILE *out, struct pt_error *e)
{
	struct rows rows;
	struct column *columns;

	if (rows_init(&rows, statement, e) < 0)
		return -1;
	columns = pt_terminal_protected(out) && separate(&rows, e) < 0 ? NULL : measure(&rows, e);
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
