/* test_inserter.c - rows that another thread inserts (export/inserter.h, feed.h): all of them, in order, of any
 * size, and what SQLite says of one of them; the same without the thread. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "export/db.h"
#include "export/inserter.h"
#include "tests/unit/check.h"

enum { ROWS = 50000, LONG = 1 << 21 };

static struct pt_error error;
static sqlite3 *db;

static int64_t number(const char *sql)
{
	int64_t ret = -1;

	check(db_number(db, sql, -1, &ret, &error) == 0, sql);
	return ret;
}

static struct inserter *begin(bool threaded)
{
	struct inserter *r;

	check(sqlite3_open(":memory:", &db) == SQLITE_OK, "a database");
	check(db_exec(db, "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c, d); CREATE TABLE u (n UNIQUE)",
		      &error) == 0,
	      "tables");
	r = inserter_create(db, threaded, &error);
	check(r, "made");
	return r;
}

static void test_rows(bool threaded)
{
	struct inserter *r = begin(threaded);
	struct insert *t = insert_create(r, "t", 5, &error);
	struct insert *twice = insert_create_sql(r, "UPDATE t SET c = c + ? WHERE id = ?", 2, &error);
	char *text = malloc(LONG);
	int failed = 0;

	check(t && twice && text, "statements");
	memset(text, 'x', LONG);
	for (int i = 1; i <= ROWS; i++) {
		size_t n = i == 7 ? LONG : (size_t)(i % 300);

		insert_int(t, 1, i);
		if (i % 2)
			insert_text(t, 2, text, n);
		else
			insert_blob(t, 2, text, n);
		insert_double(t, 3, i / 2.0);
		insert_int(t, 4, -1);
		insert_known(t, 5, i % 10 == 0, i);
		failed |= insert_run(t, &error);
		text[0] = (char)('a' + i % 26); /* what was run does not change */
		insert_int(twice, 1, 1);
		insert_int(twice, 2, i); /* of the row before it */
		failed |= insert_run(twice, &error);
	}
	check(!failed && inserter_settle(r, &error) == 0, "rows are run");
	check(number("SELECT count(*) FROM t") == ROWS, "all of them");
	check(number("SELECT sum(c) FROM t") == 0, "a statement finds the row before it");
	check(number("SELECT count(d) = 5000 AND sum(d = id) = 5000 FROM t") == 1, "what is not set is NULL");
	check(number("SELECT sum(b * 2 = id) FROM t") == ROWS, "numbers");
	check(number("SELECT sum(typeof(a) = iif(id % 2, 'text', 'blob')) FROM t") == ROWS,
	      "texts and blobs");
	check(number("SELECT sum(length(a) = iif(id = 7, 2097152, id % 300)) FROM t") == ROWS,
	      "of their lengths");
	check(number("SELECT sum(substr(a, 1, 1) = char(97 + (id - 1) % 26)) FROM t WHERE id > 1 AND id % "
		     "300 AND id % 2") ==
		  number("SELECT count(*) FROM t WHERE id > 1 AND id % 300 AND id % 2"),
	      "as they were when the row was run");
	insert_destroy(t);
	insert_destroy(twice);
	inserter_destroy(r);
	sqlite3_close(db);
	free(text);
}

/* Rows of two tables by turns, which are inserted table by table; and a statement that reads both at times. */
static void test_tables(bool threaded)
{
	struct inserter *r = begin(threaded);
	struct insert *t = insert_create(r, "t", 5, &error), *u = insert_create(r, "u", 1, &error);
	struct insert *reads = insert_create_sql(r,
						 "UPDATE t SET c = (SELECT count(*) FROM t), d = (SELECT "
						 "count(*) FROM u) WHERE id = ?",
						 1, &error);
	int failed = 0;

	check(t && u && reads, "statements");
	for (int i = 1; i <= ROWS; i++) {
		insert_int(t, 1, i);
		failed |= insert_run(t, &error);
		insert_int(u, 1, i);
		failed |= insert_run(u, &error);
		if (i % 1000)
			continue;
		insert_int(reads, 1, i);
		failed |= insert_run(reads, &error);
	}
	check(!failed && inserter_settle(r, &error) == 0, "rows are run");
	check(number("SELECT count(*) FROM t") == ROWS, "all of the one");
	check(number("SELECT sum(n = rowid) FROM u") == ROWS, "all of the other, in order");
	check(number("SELECT sum(c = id AND d = id) FROM t") == ROWS / 1000,
	      "a statement finds what was run before it, and nothing else");
	insert_destroy(t);
	insert_destroy(u);
	insert_destroy(reads);
	inserter_destroy(r);
	sqlite3_close(db);
}

/* A row that SQLite refuses: none after it is inserted, and it is said at the latest when all are in. */
static void test_refused(bool threaded)
{
	struct inserter *r = begin(threaded);
	struct insert *u = insert_create(r, "u", 1, &error);

	for (int i = 0; i < 100; i++) {
		insert_int(u, 1, i == 50 ? 3 : i);
		(void)insert_run(u, &error);
	}
	check(inserter_settle(r, &error) < 0 && strstr(error.message, "UNIQUE"), "SQLite's words");
	check(inserter_settle(r, &error) < 0, "and again");
	check(number("SELECT count(*) FROM u") == 50, "those before it are in");
	insert_destroy(u);
	inserter_destroy(r);
	sqlite3_close(db);
}

/* Rows that nobody waits for. */
static void test_dropped(bool threaded)
{
	struct inserter *r = begin(threaded);
	struct insert *u = insert_create(r, "u", 1, &error);
	int failed = 0;

	for (int i = 0; i < ROWS; i++) {
		insert_int(u, 1, i);
		failed |= insert_run(u, &error);
	}
	check(!failed, "run");
	insert_destroy(u);
	check(number("SELECT count(*) FROM u") == ROWS, "a statement that goes away has done what it was to");
	inserter_destroy(r);
	sqlite3_close(db);
}

int main(void)
{
	for (int threaded = 0; threaded < 2; threaded++) {
		test_rows(threaded);
		test_tables(threaded);
		test_refused(threaded);
		test_dropped(threaded);
	}
	return sum_up();
}
