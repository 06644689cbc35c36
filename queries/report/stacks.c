/* stacks.c - see stacks.h. */
#include "queries/report/stacks.h"

#include <stdlib.h>

#include "queries/report/json.h"
#include "queries/report/largest.h"
#include "queries/report/self_sums.h"
#include "queries/report/sql.h"
#include "schema/array.h"
#include "schema/unpack/sql.h"

/* A row of the table thread. */
struct name {
	int64_t id;
	int64_t thread;	 /* its first row, whatever names it had; idle threads: one tid, a name each */
	uint32_t number; /* of `thread`, from 1 in their order */
};

struct stacks {
	sqlite3 *db;
	struct name *names; /* by id */
	size_t name_count, name_room;
	int64_t *threads; /* number n is at n; 0: unknown */
	size_t thread_count;
	int64_t first_path;
	uint32_t *parents; /* of the trace's call paths: place in it, from 1; 0 none */
	size_t path_count, path_room;
	struct self_sums self;	     /* paths: places in `parents` */
	double insns, cycles, ticks; /* of the trace, 0 unknown */
	struct largest largest;
	struct self_sum *others; /* of each thread's number; path 0: there are none */
};

/* ---- Threads ----------------------------------------------------------------------------------------- */

static int compare_by_thread(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static int compare_by_id(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int number_threads(struct stacks *s, struct pt_error *e)
{
	s->threads = calloc(s->name_count + 1, sizeof *s->threads);
	s->others = calloc(s->name_count + 1, sizeof *s->others);
	if (!s->threads || !s->others)
		return pt_fail_no_memory(e, "threads");
	s->threads[0] = UNPACK_UNKNOWN;
	if (s->name_count)
		qsort(s->names, s->name_count, sizeof *s->names, compare_by_thread);
	for (size_t i = 0; i < s->name_count; i++) {
		if (s->names[i].thread != s->threads[s->thread_count])
			s->threads[++s->thread_count] = s->names[i].thread;
		s->names[i].number = (uint32_t)s->thread_count;
	}
	if (s->name_count)
		qsort(s->names, s->name_count, sizeof *s->names, compare_by_id);
	return 0;
}

static int read_threads(struct stacks *s, int64_t trace, struct pt_error *e)
{
	sqlite3_stmt *st = unpack_prepare(
	    s->db, "SELECT id, CASE WHEN tid = 0 THEN id ELSE first END FROM thread WHERE trace = :trace", e);
	int r = st ? 0 : -1;

	if (st)
		report_bind(st, ":trace", trace);
	while (st && (r = report_step(s->db, st, e)) > 0) {
		if (pt_array_grow(&s->names, s->name_count, &s->name_room, e)) {
			r = -1;
			break;
		}
		s->names[s->name_count++] =
		    (struct name){.id = sqlite3_column_int64(st, 0), .thread = unpack_number(st, 1)};
	}
	sqlite3_finalize(st);
	return r < 0 ? -1 : number_threads(s, e);
}

/* NULL: it is none of the trace's. */
static const struct name *name_of(const struct stacks *s, int64_t id)
{
	const struct name wanted = {.id = id};

	return s->name_count ? bsearch(&wanted, s->names, s->name_count, sizeof *s->names, compare_by_id)
			     : NULL;
}

/* ---- Sums -------------------------------------------------------------------------------------------- */

static double total(sqlite3_stmt *st, int column)
{
	return sqlite3_column_type(st, column) == SQLITE_NULL ? 0 : (double)sqlite3_column_int64(st, column);
}

static int read_totals(struct stacks *s, int64_t trace, struct pt_error *e)
{
	sqlite3_stmt *st = unpack_prepare(
	    s->db, "SELECT insn_count, cyc_count, last_tsc - first_tsc FROM trace WHERE id = :trace", e);
	int r;

	if (!st)
		return -1;
	report_bind(st, ":trace", trace);
	r = report_step(s->db, st, e);
	if (r > 0) {
		s->insns = total(st, 0);
		s->cycles = total(st, 1);
		s->ticks = total(st, 2);
	}
	sqlite3_finalize(st);
	return r < 0 ? -1 : 0;
}

/* A path's place in `parents`, from 1; 0: it is none of the trace's. */
static uint32_t place_of(const struct stacks *s, int64_t path)
{
	return path >= s->first_path && (uint64_t)path - (uint64_t)s->first_path < s->path_count
		   ? (uint32_t)(path - s->first_path + 1)
		   : 0;
}

/* sums: the columns insns, cycles, ticks, from that one on. */
static int add_sums(struct stacks *s, uint32_t place, uint32_t thread, sqlite3_stmt *st, int sums,
		    struct pt_error *e)
{
	const struct self_sum calls = {.path = place,
				       .thread = thread,
				       .insns = unpack_number(st, sums),
				       .cycles = unpack_number(st, sums + 1),
				       .ticks = unpack_number(st, sums + 2)};

	return self_sums_add(&s->self, &calls, s->parents[place - 1], e);
}

/* A row of stack_paths.sql. Callers have smaller numbers than those they call. */
static int add_path(struct stacks *s, sqlite3_stmt *st, struct pt_error *e)
{
	const struct name *name = name_of(s, sqlite3_column_int64(st, 2));
	int64_t path = sqlite3_column_int64(st, 0);

	if (!s->path_count)
		s->first_path = path;
	if ((uint64_t)path - (uint64_t)s->first_path != s->path_count || s->path_count == UINT32_MAX)
		return unpack_damaged("call_path", e);
	if (pt_array_grow(&s->parents, s->path_count, &s->path_room, e))
		return -1;
	s->parents[s->path_count] = place_of(s, sqlite3_column_int64(st, 1));
	s->path_count++;
	return name ? add_sums(s, place_of(s, path), name->number, st, 3, e) : 0;
}

/* A row of stack_shared.sql. */
static int add_shared(struct stacks *s, sqlite3_stmt *st, struct pt_error *e)
{
	const struct name *name = name_of(s, sqlite3_column_int64(st, 1));
	uint32_t place = place_of(s, sqlite3_column_int64(st, 0));

	return place ? add_sums(s, place, name ? name->number : 0, st, 2, e)
		     : unpack_damaged("thread_path_group", e);
}

/* Calls each() for the rows of a file. */
static int read_rows(struct stacks *s, const char *file, int64_t trace,
		     int (*each)(struct stacks *s, sqlite3_stmt *st, struct pt_error *e), struct pt_error *e)
{
	sqlite3_stmt *st = report_prepare(s->db, file, e);
	int r = st ? 0 : -1;

	if (st)
		report_bind(st, ":trace", trace);
	while (st && (r = report_step(s->db, st, e)) > 0)
		if (each(s, st, e)) {
			r = -1;
			break;
		}
	sqlite3_finalize(st);
	return r;
}

/* Room for as many sums as there can be, of all traces. */
static int expect_sums(struct stacks *s, struct pt_error *e)
{
	sqlite3_stmt *st =
	    unpack_prepare(s->db,
			   "SELECT coalesce((SELECT max(id + n - 1) FROM thread_path_group), 0) + "
			   "coalesce((SELECT max(id) FROM call_path), 0)",
			   e);
	int r = st ? report_step(s->db, st, e) : -1;

	if (r > 0)
		r = self_sums_init(&s->self, (size_t)sqlite3_column_int64(st, 0), e);
	sqlite3_finalize(st);
	return r;
}

/* ---- The largest ones -------------------------------------------------------------------------------- */

/* Of a measure. A callee's calls that are longer than the caller's, of which the begin was not seen, leave
 * the caller nothing. */
static int64_t self(int64_t sum)
{
	return sum != UNPACK_UNKNOWN && sum < 0 ? 0 : sum;
}

static double share(int64_t sum, double whole)
{
	return sum > 0 && whole != 0 ? (double)sum / whole : 0;
}

static double largest_share(const struct stacks *s, const struct self_sum *x)
{
	double ret = share(x->insns, s->insns), cycles = share(x->cycles, s->cycles),
	       ticks = share(x->ticks, s->ticks);

	ret = cycles > ret ? cycles : ret;
	return ticks > ret ? ticks : ret;
}

static void add_other(struct stacks *s, const struct self_sum *x)
{
	struct self_sum *to = &s->others[x->thread];

	if (!to->path)
		*to = (struct self_sum){1, x->thread, UNPACK_UNKNOWN, UNPACK_UNKNOWN, UNPACK_UNKNOWN};
	to->insns = self_sums_plus(to->insns, self(x->insns));
	to->cycles = self_sums_plus(to->cycles, self(x->cycles));
	to->ticks = self_sums_plus(to->ticks, self(x->ticks));
}

static int find_largest(struct stacks *s, int limit, struct pt_error *e)
{
	struct stack_share left;

	if (largest_init(&s->largest, (size_t)limit, e))
		return -1;
	for (uint32_t i = 0; i < s->self.count; i++) {
		const struct self_sum *x = &s->self.sums[i];
		const struct stack_share one = {largest_share(s, x), x->path, x->thread, i};

		if ((x->insns > 0 || x->cycles > 0 || x->ticks > 0) && largest_add(&s->largest, &one, &left))
			add_other(s, &s->self.sums[left.sum]);
	}
	largest_sort(&s->largest);
	return 0;
}

/* ---- Rows -------------------------------------------------------------------------------------------- */

static void bind_known(sqlite3_stmt *st, const char *parameter, int64_t value)
{
	if (value != UNPACK_UNKNOWN)
		report_bind(st, parameter, value);
}

static int write_row(struct stacks *s, sqlite3_stmt *st, int64_t trace, int64_t path,
		     const struct self_sum *x, const char *before, FILE *out, struct pt_error *e)
{
	int r;

	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	report_bind(st, ":trace", trace);
	bind_known(st, ":thread", s->threads[x->thread]);
	bind_known(st, ":path", path);
	bind_known(st, ":insns", self(x->insns));
	bind_known(st, ":cycles", self(x->cycles));
	bind_known(st, ":ticks", self(x->ticks));
	r = report_step(s->db, st, e);
	if (r > 0) {
		fputs(before, out);
		json_row(st, out);
	}
	return r < 0 ? -1 : 0;
}

static int write_rows(struct stacks *s, int64_t trace, struct path_set *paths, FILE *out, struct pt_error *e)
{
	sqlite3_stmt *st = report_prepare(s->db, "stacks", e);
	const char *before = "\n";
	int r = st ? 0 : -1;

	if (st)
		json_columns(st, out);
	for (size_t i = 0; r == 0 && i <= s->thread_count; i++)
		if (s->others[i].path) {
			r = write_row(s, st, trace, UNPACK_UNKNOWN, &s->others[i], before, out, e);
			before = ",\n";
		}
	for (size_t i = 0; r == 0 && i < s->largest.count; i++) {
		const struct self_sum *x = &s->self.sums[s->largest.stacks[i].sum];
		const int64_t path = s->first_path + x->path - 1;

		r = path_set_add(paths, path, e);
		if (r == 0)
			r = write_row(s, st, trace, path, x, before, out, e);
		before = ",\n";
	}
	fputs("]}", out);
	sqlite3_finalize(st);
	return r;
}

int stacks_write(sqlite3 *db, int64_t trace, int limit, struct path_set *paths, FILE *out, struct pt_error *e)
{
	struct stacks s = {.db = db};
	int ret = expect_sums(&s, e) || read_threads(&s, trace, e) || read_totals(&s, trace, e) ||
			  read_rows(&s, "stack_paths", trace, add_path, e) ||
			  read_rows(&s, "stack_shared", trace, add_shared, e) || find_largest(&s, limit, e) ||
			  write_rows(&s, trace, paths, out, e)
		      ? -1
		      : 0;

	self_sums_deinit(&s.self);
	free(s.parents);
	free(s.names);
	free(s.threads);
	free(s.others);
	largest_deinit(&s.largest);
	return ret;
}
