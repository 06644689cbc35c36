/* ipc.c - see ipc.h. The view `ipc` (schema/views.sql) says the same in SQL, a row a stretch. */
#include "queries/perfetto/ipc.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "queries/perfetto/sql.h"
#include "schema/array.h"
#include "schema/digit.h"
#include "schema/unpack/run_clock.h"
#include "schema/unpack/runs.h"

enum { PARTS = 5001, CPUS_MAX = 1 << 16, STREAMS_MAX = 1 << 16 };

struct part {
	int64_t insns, cycles;
};

struct path {
	int64_t insn_count;
	uint32_t stretch_insns;
	bool gap; /* tracing began or stopped in it */
};

/* A stream's slice at hand, and in it the runs with one TSC, of which the end is not known yet. */
struct stream {
	int64_t slice, cpu, tsc; /* of the slice; cpu -1: not known */
	bool by_mtc;		 /* it has no CYC packets, and all its branches */
	int64_t begin, insns;	 /* of the runs; begin UNPACK_UNKNOWN: there are none */
	bool gap;
	int64_t next_speed; /* up to this TSC the ratio holds; UNPACK_UNKNOWN: to be asked */
	double ratio;	    /* of cycles to TSC ticks; 0 not known */
};

struct sums {
	sqlite3 *db;
	struct perfetto_range range;
	struct run_clock *clock;
	sqlite3_stmt *slice, *speed;
	int64_t first_tsc, step;
	struct path *paths; /* from id first_path on */
	size_t path_count, path_room;
	int64_t first_path;
	int64_t *ends; /* ids of edges with which tracing stops, ascending */
	size_t end_count, end_room;
	struct stream *streams;
	size_t stream_count, stream_room, at; /* at: the one whose slice is at hand */
	struct part **cpus;		      /* by CPU + 1: PARTS of them, NULL: none */
	size_t cpu_count, cpu_room;
};

/* ---- What is read first -------------------------------------------------------------------------------- */

static int add_end(struct sums *s, sqlite3_stmt *row, struct pt_error *e)
{
	if (pt_array_grow(&s->ends, s->end_count, &s->end_room, e) < 0)
		return -1;
	s->ends[s->end_count++] = sqlite3_column_int64(row, 0);
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int add_path(struct sums *s, sqlite3_stmt *row, struct pt_error *e)
{
	int64_t id = sqlite3_column_int64(row, 0), edges = sqlite3_column_int64(row, 4);
	const uint8_t *low = sqlite3_column_text(row, 6), *high = sqlite3_column_text(row, 7);
	struct path p = {.insn_count = sqlite3_column_int64(row, 2),
			 .stretch_insns = (uint32_t)sqlite3_column_int64(row, 3),
			 .gap = sqlite3_column_int(row, 1)};

	for (int64_t i = 0; i < edges && i < 1024 && !p.gap; i++) {
		int64_t edge = sqlite3_column_int64(row, 5) + 1 + digits_wide(&low, &high);

		p.gap =
		    s->end_count && bsearch(&edge, s->ends, s->end_count, sizeof edge, compare_ids) != NULL;
	}
	if (!s->path_count)
		s->first_path = id;
	if (id != s->first_path + (int64_t)s->path_count)
		return unpack_damaged("path", e);
	if (pt_array_grow(&s->paths, s->path_count, &s->path_room, e) < 0)
		return -1;
	s->paths[s->path_count++] = p;
	return 0;
}

static int set_time(struct sums *s, sqlite3_stmt *row, struct pt_error *e)
{
	(void)e;
	s->first_tsc = unpack_number(row, 0);
	s->step = sqlite3_column_int64(row, 1);
	return 0;
}

static int for_rows(struct sums *s, const char *name,
		    int (*each)(struct sums *s, sqlite3_stmt *row, struct pt_error *e), struct pt_error *e)
{
	sqlite3_stmt *st = perfetto_prepare(s->db, name, &s->range, e);
	int ret = st ? 0 : -1, row = SQLITE_DONE;

	while (!ret && (row = sqlite3_step(st)) == SQLITE_ROW)
		ret = each(s, st, e);
	if (!ret && row != SQLITE_DONE)
		ret = unpack_sql_error(s->db, e);
	sqlite3_finalize(st);
	return ret;
}

/* ---- Sums ---------------------------------------------------------------------------------------------- */

static int add(struct sums *s, int64_t cpu, int64_t tsc, int64_t insns, int64_t cycles, struct pt_error *e)
{
	int64_t at = (tsc - s->first_tsc) / s->step;

	at = at < 0 ? 0 : at >= PARTS ? PARTS - 1 : at;
	if (cpu < -1 || cpu >= CPUS_MAX)
		return unpack_damaged("slice", e);
	while ((int64_t)s->cpu_count < cpu + 2) {
		if (pt_array_grow(&s->cpus, s->cpu_count, &s->cpu_room, e) < 0)
			return -1;
		s->cpus[s->cpu_count++] = NULL;
	}
	if (!s->cpus[cpu + 1] && !(s->cpus[cpu + 1] = calloc(PARTS, sizeof **s->cpus)))
		return pt_fail_no_memory(e, NULL);
	s->cpus[cpu + 1][at].insns += insns;
	s->cpus[cpu + 1][at].cycles += cycles;
	return 0;
}

/* The ratio at a TSC of the slice at hand, and up to where it holds. */
static int ask_speed(struct sums *s, struct stream *t, int64_t tsc, struct pt_error *e)
{
	int ret = 0;

	sqlite3_bind_int64(s->speed, 1, s->range.trace);
	sqlite3_bind_int64(s->speed, 2, t->slice);
	sqlite3_bind_int64(s->speed, 3, tsc);
	if (sqlite3_step(s->speed) == SQLITE_ROW) {
		t->ratio = sqlite3_column_double(s->speed, 0);
		t->next_speed = sqlite3_column_type(s->speed, 1) == SQLITE_NULL
				    ? INT64_MAX
				    : sqlite3_column_int64(s->speed, 1);
	} else {
		ret = unpack_sql_error(s->db, e);
	}
	sqlite3_reset(s->speed);
	return ret;
}

/* The runs at hand end at tsc. */
static int end_runs(struct sums *s, struct stream *t, int64_t tsc, struct pt_error *e)
{
	int64_t cycles;

	if (t->begin == UNPACK_UNKNOWN || t->begin <= t->tsc || t->gap || tsc <= t->begin)
		return 0;
	if ((t->next_speed == UNPACK_UNKNOWN || t->next_speed < t->begin) && ask_speed(s, t, t->begin, e) < 0)
		return -1;
	cycles = llround((double)(tsc - t->begin) * t->ratio);
	return t->ratio > 0 && t->next_speed >= tsc ? add(s, t->cpu, t->begin, t->insns, cycles, e) : 0;
}

static int begin_slice(struct sums *s, int64_t slice, struct pt_error *e)
{
	int64_t number;
	int ret = 0;

	sqlite3_bind_int64(s->slice, 1, slice);
	if (sqlite3_step(s->slice) != SQLITE_ROW) {
		ret = unpack_damaged("slice", e);
	} else if ((number = sqlite3_column_int64(s->slice, 0)) < 0 || number >= STREAMS_MAX) {
		ret = unpack_damaged("slice", e);
	} else {
		while (!ret && (int64_t)s->stream_count <= number) {
			ret = pt_array_grow(&s->streams, s->stream_count, &s->stream_room, e);
			if (!ret)
				s->streams[s->stream_count++] = (struct stream){.slice = UNPACK_UNKNOWN};
		}
		s->at = (size_t)number;
		if (!ret && s->streams[number].slice != slice)
			s->streams[number] = (struct stream){.slice = slice,
							     .cpu = sqlite3_column_int64(s->slice, 1),
							     .tsc = sqlite3_column_int64(s->slice, 2),
							     .by_mtc = sqlite3_column_int(s->slice, 3),
							     .begin = UNPACK_UNKNOWN,
							     .next_speed = UNPACK_UNKNOWN};
	}
	sqlite3_reset(s->slice);
	return ret;
}

static int take(void *arg, const struct unpacked_run *r, struct pt_error *e)
{
	struct sums *s = arg;
	int64_t number = r->path - s->first_path, tsc;
	const struct path *p = number >= 0 && number < (int64_t)s->path_count ? &s->paths[number] : NULL;
	struct stream *t;

	if ((!s->stream_count || s->streams[s->at].slice != r->slice) && begin_slice(s, r->slice, e) < 0)
		return -1;
	t = &s->streams[s->at];
	if (r->cyc_count != UNPACK_UNKNOWN) {
		int64_t insns = r->insn_count != RUN_INSNS_OF_PATH ? r->insn_count : p ? p->stretch_insns : 0;

		if (run_clock_tsc(s->clock, r->id - r->back, &tsc, e) < 0)
			return -1;
		if (tsc != UNPACK_UNKNOWN && insns != UNPACK_UNKNOWN &&
		    add(s, t->cpu, tsc, insns, r->cyc_count, e) < 0)
			return -1;
	}
	if (!t->by_mtc || !p || r->tsc == UNPACK_UNKNOWN)
		return 0;
	if (r->tsc != t->begin) {
		if (end_runs(s, t, r->tsc, e) < 0)
			return -1;
		t->begin = r->tsc;
		t->insns = 0;
		t->gap = false;
	}
	t->insns += r->repeats * p->insn_count;
	t->gap |= p->gap;
	return 0;
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static int give(const struct sums *s, ipc_part_fn *each, void *arg, struct pt_error *e)
{
	int ret = 0;

	for (size_t cpu = 0; cpu < s->cpu_count; cpu++)
		for (int64_t i = 0; s->cpus[cpu] && i < PARTS && !ret; i++) {
			const struct part *p = &s->cpus[cpu][i];

			if (p->cycles > 0)
				ret = each(arg, (int64_t)cpu - 1, s->first_tsc + i * s->step, s->step,
					   1.0 * (double)p->insns / (double)p->cycles, e);
		}
	return ret;
}

int ipc_parts(sqlite3 *db, int64_t trace, ipc_part_fn *each, void *arg, struct pt_error *e)
{
	struct sums s = {.db = db, .range = {.trace = trace, .after_ns = INT64_MIN, .until_ns = INT64_MAX}};
	int ret = -1;

	s.clock = run_clock_create(db, e);
	s.slice = s.clock ? perfetto_prepare(db, "ipc_slice", &s.range, e) : NULL;
	s.speed = s.slice ? perfetto_prepare(db, "ipc_speed", &s.range, e) : NULL;
	if (s.speed && !for_rows(&s, "ipc_time", set_time, e) && !for_rows(&s, "ipc_ends", add_end, e) &&
	    !for_rows(&s, "ipc_paths", add_path, e))
		ret = s.first_tsc == UNPACK_UNKNOWN ? 0 : runs_unpack(db, trace, take, &s, e);
	if (!ret)
		ret = give(&s, each, arg, e);
	for (size_t i = 0; i < s.cpu_count; i++)
		free(s.cpus[i]);
	free(s.cpus);
	free(s.streams);
	free(s.paths);
	free(s.ends);
	sqlite3_finalize(s.slice);
	sqlite3_finalize(s.speed);
	run_clock_destroy(s.clock);
	return ret;
}
