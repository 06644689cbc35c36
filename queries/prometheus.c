/* prometheus.c - see prometheus.h. The format: prometheus.io/docs/instrumenting/exposition_formats,
 * "Text-based format". */
#include "queries/prometheus.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "queries/canned.h"
#include "queries/rows.h"
#include "queries/text.h"
#include "schema/hash.h"

/* Columns whose numbers name something. */
static bool is_dimension(const char *column)
{
	static const char *const names[] = {"trace", "id",     "cpu",	  "vcpu",   "pid",
					    "tid",   "reason", "stream",  "run",    "slice",
					    "vmcs",  "ip",     "vmentry", "vmexit", "frac_bits"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(column, names[i]))
			return true;
	return false;
}

/* What each column of the rows is. Columns of NULLs only are neither. */
struct columns {
	const struct rows *rows;
	bool *label, *metric;
	bool numbered; /* rows have the same labels: their number is one, too */
	const char *query;
	FILE *out;
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

static bool ends_in(const char *s, size_t n, const char *end)
{
	size_t m = strlen(end);

	return n >= m && !memcmp(s + n - m, end, m) && (n == m || s[n - m - 1] == '_');
}

static bool is_ns(const char *column)
{
	return ends_in(column, strlen(column), "ns");
}

/* Columns that count what happened: of several traces they are added up, and then they only grow. */
static bool is_counter(const char *column)
{
	static const char *const names[] = {
	    "exits",	  "timed",   "calls",	 "branches", "taken",	     "not_taken",
	    "errors",	  "count",   "runs",	 "insns",    "instructions", "cycles",
	    "interrupts", "entries", "executed", "total_ns", "events",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (ends_in(column, strlen(column), names[i]))
			return true;
	return false;
}

/*
 * Base units and endings as Prometheus wants them (prometheus.io/docs/practices/naming): _ns are _seconds,
 * counters end in _total, and no other name in _count, _sum or _bucket, which are a histogram's.
 */
static void put_metric_name(FILE *out, const char *query, const char *column)
{
	size_t n = strlen(column);
	bool counter = is_counter(column), ns = is_ns(column);

	fputs("pt_", out);
	/* A type's name is none of a metric's. */
	put_name(out, strcmp(query, "summary") != 0 ? query : "trace", SIZE_MAX);
	if (ns)
		n -= n > 2 ? 3 : 2;
	if (counter && (ends_in(column, n, "count") || ends_in(column, n, "total")))
		n -= n > 5 ? 6 : 5;
	else if (ends_in(column, n, "sum"))
		n -= n > 3 ? 4 : 3;
	if (n) {
		putc('_', out);
		put_name(out, column, n);
	}
	fputs(ns ? "_seconds" : "", out);
	fputs(counter ? "_total" : "", out);
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

/* The row's labels, further ones to come: false. */
static bool put_labels(const struct columns *c, size_t k)
{
	const struct rows *r = c->rows;
	bool first = true;

	for (size_t i = 0; i < r->columns; i++) {
		if (!c->label[i] || !rows_at(r, k, i)->text)
			continue;
		put_label(c->out, first, r->names[i], text_of(r, k, i));
		first = false;
	}
	return first;
}

/* The sample of row k: name, labels, value. */
static void put_sample(const struct columns *c, size_t column, size_t k)
{
	const char *name = c->rows->names[column], *value = text_of(c->rows, k, column);
	bool first;

	put_metric_name(c->out, c->query, name);
	first = put_labels(c, k);
	if (c->numbered) {
		char number[24];

		snprintf(number, sizeof number, "%zu", k + 1);
		put_label(c->out, first, "row", number);
		first = false;
	}
	fputs(first ? " " : "} ", c->out);
	if (is_ns(name))
		put_seconds(c->out, value);
	else
		fputs(value, c->out);
	putc('\n', c->out);
}

/* What the query answers, as its first line says. */
static void put_help(const struct columns *c, const char *column)
{
	const struct canned *canned = canned_find(c->query);
	size_t n = 0;
	const char *title = canned ? canned_title(canned->sql, &n) : "rows of a statement";

	fprintf(c->out, " %.*s", canned ? (int)n : INT_MAX, title);
	if (column)
		fputs(": ", c->out);
	put_name(c->out, column ? column : "", SIZE_MAX);
	putc('\n', c->out);
}

static void put_metric(const struct columns *c, size_t column)
{
	const char *name = c->rows->names[column];

	fputs("# HELP ", c->out);
	put_metric_name(c->out, c->query, name);
	put_help(c, name);
	fputs("# TYPE ", c->out);
	put_metric_name(c->out, c->query, name);
	fputs(is_counter(name) ? " counter\n" : " gauge\n", c->out);
	for (size_t k = 0; k < c->rows->count; k++)
		if (rows_at(c->rows, k, column)->text && rows_at(c->rows, k, column)->number)
			put_sample(c, column, k);
}

/* ---- Histograms --------------------------------------------------------------------------------------- */

enum { LE, CUMULATIVE, SUM, HISTOGRAM_COLUMNS };

/* Whether the rows are a histogram's, with a row for each of its buckets: then these columns are no labels. */
static bool find_histogram(struct columns *c, size_t *ret)
{
	static const char *const names[] = {
	    [LE] = "le_ns", [CUMULATIVE] = "cumulative_count", [SUM] = "sum_ns"};
	int found = 0;

	for (size_t i = 0; i < c->rows->columns; i++)
		for (size_t k = 0; k < HISTOGRAM_COLUMNS; k++)
			if (!strcmp(c->rows->names[i], names[k])) {
				ret[k] = i;
				found++;
			}
	for (size_t k = 0; found == HISTOGRAM_COLUMNS && k < HISTOGRAM_COLUMNS; k++)
		c->label[ret[k]] = false;
	return found == HISTOGRAM_COLUMNS;
}

static void put_histogram_name(const struct columns *c, const char *end)
{
	size_t n = strlen(c->query);

	if (n > 10 && !strcmp(c->query + n - 10, "-histogram"))
		n -= 10;
	fputs("pt_", c->out);
	put_name(c->out, c->query, n);
	fprintf(c->out, "_seconds%s", end);
}

/* Without zeros at the end: it is a label, and compared as a text. */
static void put_le(const struct columns *c, bool first, const char *ns)
{
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	if (to && ns) {
		put_seconds(to, ns);
		fclose(to);
		while (n && text[n - 1] == '0')
			n--;
		if (n && text[n - 1] == '.')
			n--;
		text[n] = 0;
	} else if (to) {
		fclose(to);
	}
	put_label(c->out, first, "le", ns && text ? text : "+Inf");
	free(text);
}

static void put_histogram(const struct columns *c, const size_t *column)
{
	const struct rows *r = c->rows;

	fputs("# HELP ", c->out);
	put_histogram_name(c, "");
	put_help(c, NULL);
	fputs("# TYPE ", c->out);
	put_histogram_name(c, " histogram\n");
	for (size_t k = 0; k < r->count; k++) {
		const char *le = rows_at(r, k, column[LE])->text;

		put_histogram_name(c, "_bucket");
		put_le(c, put_labels(c, k), le);
		fprintf(c->out, "} %s\n", text_of(r, k, column[CUMULATIVE]));
		if (le)
			continue;
		put_histogram_name(c, "_sum");
		fputs(put_labels(c, k) ? " " : "} ", c->out);
		put_seconds(c->out, text_of(r, k, column[SUM]));
		putc('\n', c->out);
		put_histogram_name(c, "_count");
		fputs(put_labels(c, k) ? " " : "} ", c->out);
		fprintf(c->out, "%s\n", text_of(r, k, column[CUMULATIVE]));
	}
}

int prometheus(sqlite3_stmt *st, const char *query, FILE *out, struct pt_error *e)
{
	size_t histogram[HISTOGRAM_COLUMNS];
	struct rows rows;
	struct columns c = {.rows = &rows, .query = query, .out = out};
	int duplicates = -1;

	if (rows_init(&rows, st, e) < 0)
		return -1;
	c.label = calloc(rows.columns + 1, sizeof *c.label);
	c.metric = calloc(rows.columns + 1, sizeof *c.metric);
	if (c.label && c.metric) {
		find_labels(&rows, c.label, c.metric);
		duplicates = find_histogram(&c, histogram) ? 2 : find_duplicate(&c, e);
	} else {
		pt_fail_no_memory(e, NULL);
	}
	c.numbered = duplicates == 1;
	if (duplicates == 2)
		put_histogram(&c, histogram);
	for (size_t i = 0; (duplicates == 0 || duplicates == 1) && i < rows.columns; i++)
		if (c.metric[i])
			put_metric(&c, i);
	free(c.label);
	free(c.metric);
	rows_deinit(&rows);
	return duplicates < 0 ? -1 : 0;
}
