/* plot.c - see plot.h. */
#include "queries/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "queries/rows.h"

#define BAR_WIDTH  50 /* characters */
#define LINE_WIDTH 60
#define NONE	   SIZE_MAX

static size_t column_of(const struct rows *r, const char *name)
{
	for (size_t i = 0; i < r->columns; i++)
		if (!strcmp(r->names[i], name))
			return i;
	return NONE;
}

/* A length of time, with three digits. */
static void put_ns(FILE *out, double ns)
{
	static const char *const units[] = {"ns", "µs", "ms", "s"};
	size_t unit = 0;

	for (; ns >= 999.5 && unit < 3; unit++)
		ns /= 1000;
	fprintf(out, "%.*f %s", !unit || ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2, ns, units[unit]);
}

/* ---- Histograms --------------------------------------------------------------------------------------- */

struct histogram {
	size_t le, cumulative, sum; /* columns */
	size_t first, end;	    /* rows of one: half-open */
};

static double value(const struct rows *r, size_t row, size_t column)
{
	const char *s = rows_at(r, row, column)->text;

	return s ? strtod(s, NULL) : 0;
}

/* How many are in a row's bucket. */
static double in_bucket(const struct rows *r, const struct histogram *h, size_t row)
{
	return value(r, row, h->cumulative) - (row > h->first ? value(r, row - 1, h->cumulative) : 0);
}

static void put_bar(FILE *out, double part)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	unsigned n = (unsigned)(part * BAR_WIDTH * 8 + 0.5);

	if (part > 0 && !n)
		n = 1;
	for (; n >= 8; n -= 8)
		fputs("█", out);
	fputs(eighths[n], out);
}

/* What the rows have in common: their texts, as far as they differ from one another. */
static void put_head(const struct rows *r, const struct histogram *h, FILE *out)
{
	double all = value(r, h->end - 1, h->cumulative);
	const char *before = "";

	for (size_t i = 0; i < h->le; i++) {
		const struct cell *c = rows_at(r, h->first, i),
				  *last = i ? rows_at(r, h->first, i - 1) : NULL;

		if (!c->text || c->number || (last && last->text && !strcmp(last->text, c->text)))
			continue;
		fprintf(out, "%s%s", before, c->text);
		before = " ";
	}
	fprintf(out, "%s: %.0f", *before ? "" : "[not known]", all);
	if (all > 0 && h->sum != NONE) {
		fputs(", mean ", out);
		put_ns(out, value(r, h->first, h->sum) / all);
	}
	putc('\n', out);
}

static void put_histogram(const struct rows *r, const struct histogram *h, FILE *out)
{
	size_t low = h->end, high = h->first;
	double most = 0;

	for (size_t k = h->first; k < h->end; k++) {
		double n = in_bucket(r, h, k);

		if (n > 0 && low == h->end)
			low = k;
		if (n > 0)
			high = k + 1;
		if (n > most)
			most = n;
	}
	put_head(r, h, out);
	for (size_t k = low; k < high; k++) {
		const char *le = rows_at(r, k, h->le)->text;

		fputs(le ? "  up to " : "  longer", out);
		if (le) {
			char *text = NULL;
			size_t n;
			FILE *to = open_memstream(&text, &n);

			if (to) {
				put_ns(to, strtod(le, NULL));
				fclose(to);
			}
			/* µ is two bytes. */
			fprintf(out, "%*s", text && strstr(text, "µ") ? 9 : 8, text ? text : "");
			free(text);
		} else {
			fputs("        ", out);
		}
		fprintf(out, " %9.0f  ", in_bucket(r, h, k));
		put_bar(out, most > 0 ? in_bucket(r, h, k) / most : 0);
		putc('\n', out);
	}
}

static void put_histograms(const struct rows *r, struct histogram h, FILE *out)
{
	for (size_t k = 0; k < r->count; k++) {
		if (rows_at(r, k, h.le)->text) /* the last bucket has no limit */
			continue;
		h.end = k + 1;
		if (h.first)
			putc('\n', out);
		put_histogram(r, &h, out);
		h.first = h.end;
	}
}

/* ---- Over time ---------------------------------------------------------------------------------------- */

/* The rows of a line's character, as their mean; NAN: none is known. */
static double mean(const struct rows *r, size_t column, size_t at, size_t width)
{
	double sum = 0, n = 0;

	for (size_t k = at * r->count / width; k < (at + 1) * r->count / width; k++) {
		if (!rows_at(r, k, column)->text)
			continue;
		sum += value(r, k, column);
		n++;
	}
	return n > 0 ? sum / n : NAN;
}

static void put_line(const struct rows *r, size_t column, FILE *out)
{
	static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	size_t width = r->count < LINE_WIDTH ? r->count : LINE_WIDTH;
	double low = 0, high = 0;

	for (size_t at = 0; at < width; at++) {
		double v = mean(r, column, at, width);

		if (v < low)
			low = v;
		if (v > high)
			high = v;
	}
	fprintf(out, "%-24s ", r->names[column]);
	for (size_t at = 0; at < width; at++) {
		double v = mean(r, column, at, width);

		if (isnan(v))
			putc(' ', out);
		else
			fputs(heights[high > low ? (unsigned)((v - low) / (high - low) * 7 + 0.5) : 0], out);
	}
	fprintf(out, "  %.6g to %.6g\n", low, high);
}

static void put_lines(const struct rows *r, size_t time, FILE *out)
{
	for (size_t i = 0; i < r->columns; i++) {
		bool number = false;

		for (size_t k = 0; k < r->count; k++)
			number |= rows_at(r, k, i)->number;
		if (i != time && number && strcmp(r->names[i], "trace") != 0)
			put_line(r, i, out);
	}
	if (r->count) {
		fprintf(out, "%-24s from %s to %s, %zu rows\n", r->names[time],
			rows_at(r, 0, time)->text ? rows_at(r, 0, time)->text : "-",
			rows_at(r, r->count - 1, time)->text ? rows_at(r, r->count - 1, time)->text : "-",
			r->count);
	}
}

int plot_print(sqlite3_stmt *statement, FILE *out, struct pt_error *e)
{
	struct histogram h = {0};
	struct rows rows;
	size_t time;
	int ret = 0;

	if (rows_init(&rows, statement, e) < 0)
		return -1;
	h.le = column_of(&rows, "le_ns");
	h.cumulative = column_of(&rows, "cumulative_count");
	h.sum = column_of(&rows, "sum_ns");
	time = column_of(&rows, "time_ns");
	if (h.le != NONE && h.cumulative != NONE)
		put_histograms(&rows, h, out);
	else if (time != NONE)
		put_lines(&rows, time, out);
	else
		ret = pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			      "--plot: these rows are no histogram, and have no column time_ns "
			      "(vmexit-latency and timeline have)");
	rows_deinit(&rows);
	return ret;
}
