/* prometheus.c - see prometheus.h. The format: prometheus.io/docs/instrumenting/exposition_formats,
 * "Text-based format". */
#include "queries/prometheus.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "queries/rows.h"
#include "queries/text.h"
#include "schema/hash.h"

/* Columns whose numbers name something. */
static bool is_dimension(const char *column)
{
	static const char *const names[] = {"trace",  "id",  "cpu",   "vcpu", "pid", "tid",	"reason",
					    "stream", "run", "slice", "vmcs", "ip",  "vmentry", "vmexit"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(column, names[i]))
			return true;
	return false;
}

/* What each column of the rows is. Columns of NULLs only are neither. */
struct columns {
	const struct rows *rows;
	bool *label, *metric;
};

/* A column is a label when its name says so or any of its values is a text, else a metric. Where this
 * leaves no metric, it is the last column that has a number somewhere (summary's). */
static void find_labels(const struct rows *r, bool *ret_label, bool *ret_metric)
{
	size_t mixed = SIZE_MAX;
	bool found = false;

	for (size_t i = 0; i < r->columns; i++) {
		bool any = false, text = false, number = false;

		for (size_t k = 0; k < r->count; k++) {
			any |= rows_at(r, k, i)->text != NULL;
			text |= rows_at(r, k, i)->text && !rows_at(r, k, i)->number;
			number |= rows_at(r, k, i)->text && rows_at(r, k, i)->number;
		}
		ret_label[i] = any && (text || is_dimension(r->names[i]));
		ret_metric[i] = any && !ret_label[i];
		found = found || ret_metric[i];
		if (number && !is_dimension(r->names[i]))
			mixed = i;
	}
	if (!found && mixed < r->columns) {
		ret_label[mixed] = false;
		ret_metric[mixed] = true;
	}
}

static const char *text_of(const struct rows *r, size_t row, size_t column)
{
	const char *s = rows_at(r, row, column)->text;

	return s ? s : "";
}

static bool same_labels(const struct columns *c, size_t a, size_t b)
{
	for (size_t i = 0; i < c->rows->columns; i++)
		if (c->label[i] && strcmp(text_of(c->rows, a, i), text_of(c->rows, b, i)) != 0)
			return false;
	return true;
}

/* Of row n, counted from 1: FNV-1a over its labels. */
static uint64_t hash_labels(const void *columns, uint32_t n)
{
	const struct columns *c = columns;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < c->rows->columns; i++) {
		const char *s = text_of(c->rows, n - 1, i);

		if (!c->label[i])
			continue;
		do
			h = (h ^ (unsigned char)*s) * 0x100000001b3u;
		while (*s++);
	}
	return h;
}

/* 1: two rows have the same labels. 0: none have. -1: no memory. */
static int find_duplicate(const struct columns *c, struct pt_error *e)
{
	struct pt_hash rows;
	int ret = 0;

	if (pt_hash_init(&rows, 6, e) < 0)
		return -1;
	for (uint32_t k = 1; k <= c->rows->count && !ret; k++) {
		uint64_t key = hash_labels(c, k);
		uint32_t n;

		for (uint32_t i = pt_hash_first(&rows, key); (n = rows.slots[i]) && !ret;
		     i = pt_hash_next(&rows, i))
			ret = same_labels(c, n - 1, k - 1);
		if (!ret)
			ret = pt_hash_insert(&rows, key, k, hash_labels, c, e);
	}
	pt_hash_deinit(&rows);
	return ret;
}

/* Letters, digits and _ only. A metric's name must not begin with a digit, and begins with pt_. */
static void put_name(FILE *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n && s[i]; i++)
		putc(isalnum((unsigned char)s[i]) ? s[i] : '_', out);
}

static bool is_ns(const char *column)
{
	size_t n = strlen(column);

	return n >= 2 && !strcmp(column + n - 2, "ns") && (n == 2 || column[n - 3] == '_');
}

static void put_metric_name(FILE *out, const char *query, const char *column)
{
	fputs("pt_", out);
	put_name(out, query, SIZE_MAX);
	putc('_', out);
	if (is_ns(column)) {
		put_name(out, column, strlen(column) - 2);
		fputs("seconds", out);
	} else {
		put_name(out, column, SIZE_MAX);
	}
}

static void put_label(FILE *out, bool first, const char *name, const char *value)
{
	fputs(first ? "{" : ",", out);
	if (isdigit((unsigned char)*name))
		putc('_', out);
	put_name(out, name, SIZE_MAX);
	fputs("=\"", out);
	while (*value) {
		if (*value == '"' || *value == '\\')
			fprintf(out, "\\%c", *value);
		else if (*value == '\n')
			fputs("\\n", out);
		else
			value += text_put_utf8(out, value) - 1;
		value++;
	}
	putc('"', out);
}

/* Nanoseconds as seconds without rounding: the point goes nine digits to the left. */
static void put_seconds(FILE *out, const char *ns)
{
	size_t n;

	if (ns[strspn(ns, "-0123456789")]) { /* a floating-point number */
		fprintf(out, "%.12g", strtod(ns, NULL) / 1e9);
		return;
	}
	if (*ns == '-')
		putc(*ns++, out);
	n = strlen(ns);
	if (n > 9)
		fprintf(out, "%.*s.%s", (int)(n - 9), ns, ns + n - 9);
	else
		fprintf(out, "0.%.*s%s", (int)(9 - n), "000000000", ns);
}

/* The sample of row k: name, labels, value. */
static void put_sample(const struct columns *c, size_t column, size_t k, bool numbered, const char *query,
		       FILE *out)
{
	const struct rows *r = c->rows;
	bool first = true;

	put_metric_name(out, query, r->names[column]);
	for (size_t i = 0; i < r->columns; i++) {
		if (!c->label[i] || !rows_at(r, k, i)->text)
			continue;
		put_label(out, first, r->names[i], text_of(r, k, i));
		first = false;
	}
	if (numbered) {
		char number[24];

		snprintf(number, sizeof number, "%zu", k + 1);
		put_label(out, first, "row", number);
		first = false;
	}
	fputs(first ? " " : "} ", out);
	if (is_ns(r->names[column]))
		put_seconds(out, text_of(r, k, column));
	else
		fputs(text_of(r, k, column), out);
	putc('\n', out);
}

static void put_metric(const struct columns *c, size_t column, bool numbered, const char *query, FILE *out)
{
	fputs("# TYPE ", out);
	put_metric_name(out, query, c->rows->names[column]);
	fputs(" gauge\n", out);
	for (size_t k = 0; k < c->rows->count; k++)
		if (rows_at(c->rows, k, column)->text && rows_at(c->rows, k, column)->number)
			put_sample(c, column, k, numbered, query, out);
}

int prometheus(sqlite3_stmt *st, const char *query, FILE *out, struct pt_error *e)
{
	struct rows rows;
	struct columns c = {.rows = &rows};
	int numbered = -1;

	if (rows_init(&rows, st, e) < 0)
		return -1;
	c.label = calloc(rows.columns + 1, sizeof *c.label);
	c.metric = calloc(rows.columns + 1, sizeof *c.metric);
	if (c.label && c.metric) {
		find_labels(&rows, c.label, c.metric);
		numbered = find_duplicate(&c, e);
	} else {
		pt_fail_no_memory(e, NULL);
	}
	for (size_t i = 0; numbered >= 0 && i < rows.columns; i++)
		if (c.metric[i])
			put_metric(&c, i, numbered, query, out);
	free(c.label);
	free(c.metric);
	rows_deinit(&rows);
	return numbered < 0 ? -1 : 0;
}
