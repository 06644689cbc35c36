/* test_row_turns.c - two makers of rows take turns (export/row_turns.h): all rows of both, in the same order
 * with and without a thread; a maker that fails, rows that SQLite refuses, and an interrupt end it. */
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>

#include "export/db.h"
#include "export/inserter.h"
#include "export/row_turns.h"
#include "tests/unit/check.h"

enum { NEVER = -1, ROWS = 100 }; /* in a turn */

static struct pt_error error;
static sqlite3 *db;
static int polls;
static char text[2000];

/* Rows of table t: which maker, and which number of its own. */
struct maker {
	struct insert *insert;
	int name, made, turns, fails_at, doubles_at; /* turns */
	bool kept;				     /* its rows are */
};

static int make(void *arg, struct pt_error *e)
{
	struct maker *m = arg;

	for (int i = 0; i < ROWS; i++) {
		int n = m->made * ROWS + i;

		if (m->made == m->fails_at && i == ROWS / 2)
			return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "maker %d fails", m->name);
		insert_int(m->insert, 1, m->name);
		insert_int(m->insert, 2, m->made == m->doubles_at ? 0 : n);
		insert_text(m->insert, 3, text, (size_t)(n % 20) * 100);
		if (insert_run(m->insert, e) < 0)
			return -1;
	}
	return ++m->made < m->turns;
}

static void keep(void *arg, struct kept_rows *rows)
{
	struct maker *m = arg;

	m->kept = rows;
	insert_keep(m->insert, rows);
}

static bool interrupted(void *arg)
{
	return ++polls == *(int *)arg;
}

static int64_t number(const char *sql)
{
	int64_t ret = -1;

	check(db_number(db, sql, -1, &ret, &error) == 0, sql);
	return ret;
}

/* What row_turns_run() returns, or inserter_settle(). */
static int run(struct maker *first, struct maker *second, bool threaded, int interrupted_at)
{
	const struct pt_sink_poll poll = {.interrupted = interrupted, .arg = &interrupted_at};
	const struct row_maker makers[2] = {{make, NULL, first}, {make, keep, second}};
	struct inserter *r;
	int ret;

	check(sqlite3_open(":memory:", &db) == SQLITE_OK, "a database");
	check(db_exec(db, "CREATE TABLE t (maker, n, text, UNIQUE (maker, n))", &error) == 0, "a table");
	r = inserter_create(db, threaded, &error);
	first->name = 1;
	second->name = 2;
	first->insert = insert_create(r, "t", 3, &error);
	second->insert = insert_create(r, "t", 3, &error);
	check(r && first->insert && second->insert, "statements");
	polls = 0;
	error.message[0] = '\0';
	ret = row_turns_run(r, &makers[0], &makers[1], threaded, &poll, &error);
	check(!second->kept, "no rows are kept any more");
	if (ret == 0)
		ret = inserter_settle(r, &error);
	insert_destroy(first->insert);
	insert_destroy(second->insert);
	inserter_destroy(r);
	return ret;
}

/* All rows, and in the order of turns. *order: of the rows, as it was before; -1: it was not. */
static void test_order(bool threaded, int first_turns, int second_turns, int64_t *order)
{
	struct maker first = {.turns = first_turns, .fails_at = NEVER, .doubles_at = NEVER},
		     second = {.turns = second_turns, .fails_at = NEVER, .doubles_at = NEVER};
	int64_t order_now;

	check(run(&first, &second, threaded, NEVER) == 0, "run");
	check(number("SELECT count(*) FROM t WHERE maker = 1") == first_turns * ROWS, "the first one's");
	check(number("SELECT count(*) FROM t WHERE maker = 2") == second_turns * ROWS, "the second one's");
	check(number("SELECT count(*) FROM t WHERE length(text) = n % 20 * 100") ==
		  (first_turns + second_turns) * ROWS,
	      "as they were made");
	check(number("SELECT count(*) FROM (SELECT n, lag(n, 1, -1) OVER (PARTITION BY maker ORDER BY rowid) "
		     "AS before FROM t) WHERE before <> n - 1") == 0,
	      "in order");
	/* The inserter puts rows of one statement together, if they are in one of its batches (feed.c). */
	check(number("SELECT count(*) FROM (SELECT n / 100 AS turn, max(n / 100) OVER (ORDER BY rowid) AS "
		     "most FROM t) WHERE turn < most - 5 AND turn < (SELECT min(n) FROM "
		     "(SELECT max(n / 100) AS n FROM t GROUP BY maker))") == 0,
	      "by turns");
	order_now = number("SELECT sum(rowid * (3 * n + maker) % 1000003) FROM t");
	check(*order == -1 || order_now == *order, "the same order without a thread");
	*order = order_now;
	sqlite3_close(db);
}

static void test_failures(bool threaded)
{
	struct maker first = {.turns = 50, .fails_at = 9, .doubles_at = NEVER},
		     second = {.turns = 50, .fails_at = NEVER, .doubles_at = NEVER};

	check(run(&first, &second, threaded, NEVER) < 0 && strstr(error.message, "maker 1 fails"),
	      "the first one");
	sqlite3_close(db);
	first = (struct maker){.turns = 50, .fails_at = NEVER, .doubles_at = NEVER};
	second = (struct maker){.turns = 50, .fails_at = 9, .doubles_at = NEVER};
	check(run(&first, &second, threaded, NEVER) < 0 && strstr(error.message, "maker 2 fails"),
	      "the second one");
	check(first.made == 10, "at its turn");
	sqlite3_close(db);
	first = (struct maker){.turns = 50, .fails_at = NEVER, .doubles_at = NEVER};
	second = (struct maker){.turns = 50, .fails_at = NEVER, .doubles_at = 5};
	check(run(&first, &second, threaded, NEVER) < 0 && strstr(error.message, "UNIQUE"), "a row");
	check(number("SELECT count(*) FROM t WHERE maker = 2") == 5 * ROWS, "those before it are in");
	sqlite3_close(db);
	first = (struct maker){.turns = 50, .fails_at = NEVER, .doubles_at = NEVER};
	second = (struct maker){.turns = 50, .fails_at = NEVER, .doubles_at = NEVER};
	check(run(&first, &second, threaded, 7) < 0 && strstr(error.message, "interrupted"), "an interrupt");
	check(first.made == 6, "before the turn");
	sqlite3_close(db);
}

int main(void)
{
	int64_t orders[4] = {-1, -1, -1, -1};

	memset(text, 'x', sizeof text);
	for (int threaded = 0; threaded < 2; threaded++) {
		test_order(threaded, 1, 1, &orders[0]);
		test_order(threaded, 40, 40, &orders[1]);
		test_order(threaded, 3, 30, &orders[2]);
		test_order(threaded, 30, 3, &orders[3]);
		test_failures(threaded);
	}
	return sum_up();
}
