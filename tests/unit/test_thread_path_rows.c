/* test_thread_path_rows.c - sums of threads and call paths, packed (export/thread_path_rows.h), are read as
 * they were given by the view in SQL and by the table in C: of one row and of many, of small and of great
 * numbers, of unknown threads, far threads and paths. */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

#include "export/db.h"
#include "export/inserter.h"
#include "export/plain_rows.h"
#include "export/schema_sql.h"
#include "export/thread_path_rows.h"
#include "schema/sql_macros.h"
#include "schema/unpack/facts.h"
#include "tests/unit/check.h"

enum { MOST = 1000 }; /* sums of a case */

static const struct trace_bases bases = {.trace = 7, .thread = 1000, .call_path = 5000, .thread_path = 300};
static struct pt_error error;
static struct thread_path given[MOST];

/* A number of up to so many bits; digits of every length occur, and those next to the surrogates. */
static uint64_t some(uint64_t *seed, unsigned bits)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	if (*seed >> 60 == 0)
		return 0xd7ff - 3 + (*seed >> 32) % 8;
	return (*seed >> 7) & ((1ull << (*seed >> 58) % (bits + 1)) - 1);
}

static void make_given(int n, unsigned bits)
{
	uint64_t seed = (uint64_t)n * 1000 + bits;
	uint32_t path = 1, thread = 0;

	for (int i = 0; i < n; i++) {
		uint32_t step = (uint32_t)some(&seed, bits < 20 ? 3 : 23);

		path += step;
		thread = step ? (uint32_t)some(&seed, bits < 20 ? 8 : 29) : thread + 1;
		given[i] = (struct thread_path){.thread = thread,
						.path = path,
						.calls = some(&seed, bits),
						.insns = some(&seed, bits),
						.has_cycles = seed >> 40 & 1,
						.has_elapsed = seed >> 41 & 1};
		given[i].cycles = given[i].has_cycles ? some(&seed, bits) : 0;
		given[i].elapsed_tsc = given[i].has_elapsed ? some(&seed, bits) : 0;
	}
}

static sqlite3 *create(void)
{
	char *views = pt_sql_expand(pt_views_sql, &error);
	sqlite3 *db;

	sqlite3_open(":memory:", &db);
	check(views && sqlite3_exec(db, pt_tables_sql, NULL, NULL, NULL) == SQLITE_OK &&
		  plain_rows_constants(db, &error) == 0 &&
		  sqlite3_exec(db, views, NULL, NULL, NULL) == SQLITE_OK,
	      "a database");
	free(views);
	return db;
}

static void fill(sqlite3 *db, int n)
{
	struct inserter *inserter = inserter_create(db, false, &error);
	struct thread_path_rows *rows = inserter ? thread_path_rows_create(inserter, &bases, &error) : NULL;
	int r = rows ? 0 : -1;

	for (int i = 0; r == 0 && i < n; i++)
		r = thread_path_rows_add(rows, &given[i], &error);
	check(r == 0 && thread_path_rows_finish(rows, &error) == 0, "rows");
	thread_path_rows_destroy(rows);
	inserter_destroy(inserter);
}

static bool has(sqlite3_stmt *s, int column, bool known, uint64_t number)
{
	return known ? (uint64_t)sqlite3_column_int64(s, column) == number
		     : sqlite3_column_type(s, column) == SQLITE_NULL;
}

static bool is_given(sqlite3_stmt *s, const struct thread_path *g)
{
	return has(s, 0, true, 7) && has(s, 1, g->thread, 1000 + (uint64_t)g->thread) &&
	       has(s, 2, true, 5000 + (uint64_t)g->path) && has(s, 3, true, g->calls) &&
	       has(s, 4, true, g->insns) && has(s, 5, g->has_cycles, g->cycles) &&
	       has(s, 6, g->has_elapsed, g->elapsed_tsc);
}

static void read_back(sqlite3 *db, int n, const char *how)
{
	sqlite3_stmt *s;
	int i = 0, right = 0;

	sqlite3_prepare_v2(
	    db, "SELECT trace, thread, call_path, calls, insn_count, cyc_count, elapsed_tsc FROM thread_path",
	    -1, &s, NULL);
	for (; sqlite3_step(s) == SQLITE_ROW; i++)
		right += i < n && is_given(s, &given[i]);
	check_same((uint64_t)i, (uint64_t)n, how);
	check_same((uint64_t)right, (uint64_t)n, "those that are as they were given");
	sqlite3_finalize(s);
}

static int64_t number(sqlite3 *db, const char *sql)
{
	int64_t ret = -1;

	check(db_number(db, sql, -1, &ret, &error) == 0, sql);
	return ret;
}

/* By the ids of rows, as far as the table in C is concerned. */
static void read_some(sqlite3 *db, int n)
{
	int64_t found = number(db, "SELECT count(*) FROM unpacked_thread_path WHERE id BETWEEN 310 AND 500"),
		wanted = n < 10	   ? 0
			 : n < 200 ? n - 9
				   : 191;

	check_same((uint64_t)found, (uint64_t)wanted, "sums of ids 310 to 500");
}

static void check_sums(int n, unsigned bits)
{
	sqlite3 *db = create();

	make_given(n, bits);
	fill(db, n);
	check(number(db, "SELECT count(*) FROM thread_path_group") == (n + 63) / 64, "64 sums a row");
	read_back(db, n, "sums, by SQL");
	check(facts_register(db, &error) == 0, "the tables in C");
	read_back(db, n, "sums, by C");
	read_some(db, n);
	sqlite3_close(db);
}

int main(void)
{
	static const int counts[] = {0, 1, 63, 64, 65, MOST};

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		check_sums(counts[i], 12);
		check_sums(counts[i], 57);
	}
	return sum_up();
}
