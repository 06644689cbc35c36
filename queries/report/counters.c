/* counters.c - see counters.h. */
#include "queries/report/counters.h"

#include <stdbool.h>
#include <stdlib.h>

#include "queries/report/json.h"
#include "queries/report/sql.h"
#include "schema/array.h"
#include "schema/unpack/runs.h"
#include "schema/unpack/sql.h"

enum { STRETCHES = 400 };

struct path {
	int64_t insn_count, stretch_insns;
};

struct stretch {
	int64_t insns, timed, cycles; /* timed, cycles: UNPACK_UNKNOWN, none was */
	bool has_runs;
};

struct counters {
	sqlite3 *db;
	int64_t first_tsc, step;
	struct path *paths; /* from id first_path on */
	size_t path_count, path_room;
	int64_t first_path;
	struct stretch stretches[STRETCHES];
};

static int read_time(struct counters *c, int64_t trace, struct pt_error *e)
{
	sqlite3_stmt *st = report_prepare(c->db, "counter_time", e);
	int r = st ? 0 : -1;

	if (st) {
		report_bind(st, ":trace", trace);
		report_bind(st, ":stretches", STRETCHES);
		r = report_step(c->db, st, e);
	}
	c->first_tsc = r > 0 ? unpack_number(st, 0) : UNPACK_UNKNOWN;
	c->step = r > 0 && sqlite3_column_int64(st, 1) > 0 ? sqlite3_column_int64(st, 1) : 1;
	sqlite3_finalize(st);
	return r < 0 ? -1 : 0;
}

static int add_path(struct counters *c, sqlite3_stmt *row, struct pt_error *e)
{
	int64_t id = sqlite3_column_int64(row, 0);

	if (!c->path_count)
		c->first_path = id;
	if ((uint64_t)id - (uint64_t)c->first_path != c->path_count)
		return unpack_damaged("path", e);
	if (pt_array_grow(&c->paths, c->path_count, &c->path_room, e) < 0)
		return -1;
	c->paths[c->path_count++] = (struct path){sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2)};
	return 0;
}

static int read_paths(struct counters *c, int64_t trace, struct pt_error *e)
{
	sqlite3_stmt *st = report_prepare(c->db, "counter_paths", e);
	int r = st ? 0 : -1;

	if (st)
		report_bind(st, ":trace", trace);
	while (st && (r = report_step(c->db, st, e)) > 0)
		if (add_path(c, st, e) < 0) {
			r = -1;
			break;
		}
	sqlite3_finalize(st);
	return r;
}

static int64_t plus(int64_t a, int64_t b)
{
	return a == UNPACK_UNKNOWN ? b : unpack_plus(a, b);
}

/* An unpacked_run_fn. */
static int add_run(void *arg, const struct unpacked_run *r, struct pt_error *e)
{
	struct counters *c = arg;
	uint64_t number = (uint64_t)r->path - (uint64_t)c->first_path, at;
	const struct path *p = number < c->path_count ? &c->paths[number] : NULL;
	struct stretch *s;

	(void)e;
	if (!p || r->tsc == UNPACK_UNKNOWN || r->tsc < c->first_tsc)
		return 0;
	at = ((uint64_t)r->tsc - (uint64_t)c->first_tsc) / (uint64_t)c->step;
	s = &c->stretches[at < STRETCHES ? at : STRETCHES - 1];
	s->has_runs = true;
	s->insns = unpack_plus(s->insns, (int64_t)((uint64_t)r->repeats * (uint64_t)p->insn_count));
	if (r->cyc_count == UNPACK_UNKNOWN)
		return 0;
	s->cycles = plus(s->cycles, r->cyc_count);
	if (r->insn_count != UNPACK_UNKNOWN)
		s->timed =
		    plus(s->timed, r->insn_count == RUN_INSNS_OF_PATH ? p->stretch_insns : r->insn_count);
	return 0;
}

static int write_row(const struct counters *c, sqlite3_stmt *st, size_t at, const char *before, FILE *out,
		     struct pt_error *e)
{
	const struct stretch *s = &c->stretches[at];
	int r;

	sqlite3_reset(st);
	report_bind(st, ":at", (int64_t)((uint64_t)at * (uint64_t)c->step));
	report_bind(st, ":step", c->step);
	report_bind(st, ":insns", s->insns);
	report_bind(st, ":timed", s->timed);
	report_bind(st, ":cycles", s->cycles);
	r = report_step(c->db, st, e);
	if (r > 0) {
		fputs(before, out);
		json_row(st, out);
	}
	return r < 0 ? -1 : 0;
}

static int write_rows(const struct counters *c, int64_t trace, FILE *out, struct pt_error *e)
{
	sqlite3_stmt *st = report_prepare(c->db, "counters", e);
	const char *before = "\n";
	int r = st ? 0 : -1;

	if (st) {
		report_bind(st, ":trace", trace);
		report_bind(st, ":unknown", UNPACK_UNKNOWN);
		json_columns(st, out);
	}
	for (size_t i = 0; r == 0 && i < STRETCHES; i++)
		if (c->stretches[i].has_runs) {
			r = write_row(c, st, i, before, out, e);
			before = ",\n";
		}
	fputs("]}", out);
	sqlite3_finalize(st);
	return r;
}

int counters_write(sqlite3 *db, int64_t trace, FILE *out, struct pt_error *e)
{
	struct counters *c = calloc(1, sizeof *c);
	int ret;

	if (!c)
		return pt_fail_no_memory(e, NULL);
	c->db = db;
	for (size_t i = 0; i < STRETCHES; i++)
		c->stretches[i].timed = c->stretches[i].cycles = UNPACK_UNKNOWN;
	ret = read_time(c, trace, e) || read_paths(c, trace, e) ? -1 : 0;
	if (!ret && c->first_tsc != UNPACK_UNKNOWN)
		ret = runs_unpack(db, trace, add_run, c, e);
	if (!ret)
		ret = write_rows(c, trace, out, e);
	free(c->paths);
	free(c);
	return ret;
}
