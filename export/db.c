/* db.c - see db.h. */
#include "export/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/file_kind.h"
#include "schema/records.h"
#include "schema/sql_macros.h"

int db_fail(sqlite3 *db, const char *what, struct pt_error *e)
{
	int code = sqlite3_extended_errcode(db);
	enum pt_error_kind kind = PT_ERR_IO;
	const char *why = sqlite3_errmsg(db), *but = "";
	int number = sqlite3_system_errno(db);

	switch (code & 0xff) {
	case SQLITE_NOMEM: kind = PT_ERR_NO_MEMORY; break;
	case SQLITE_FULL: why = "no space left on its disk"; break;
	case SQLITE_BUSY: why = "another program is using it: try again when that is done"; break;
	case SQLITE_NOTADB:
		kind = PT_ERR_REFUSED;
		but = pt_file_kind_of(sqlite3_db_filename(db, "main"));
		break;
	case SQLITE_INTERRUPT: kind = PT_ERR_REFUSED; break;
	case SQLITE_IOERR:
		/* Only errno, which a commit leaves with the file, distinguishes a file that may not
		 * grow from a disk that fails. */
		if (!number)
			sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
		if (number)
			why = strerror(number);
		break;
	default: break;
	}
	return pt_fail(e, kind, PT_NO_OFFSET, "%s: %s%s", what, why, but);
}

int db_fail_main(sqlite3 *db, struct pt_error *e)
{
	char name[512];
	char *mark;

	snprintf(name, sizeof name, "%s", db_name(db));
	mark = strstr(name, DB_LOADING);
	if (mark && !mark[strlen(DB_LOADING)])
		*mark = 0;
	return db_fail(db, name, e);
}

const char *db_name(sqlite3 *db)
{
	return sqlite3_db_filename(db, "main");
}

int db_exec(sqlite3 *db, const char *sql, struct pt_error *e)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	return db_fail_main(db, e);
}

int db_exec_macros(sqlite3 *db, const char *sql, struct pt_error *e)
{
	char *plain = pt_sql_expand(sql, e);
	int ret = plain ? db_exec(db, plain, e) : -1;

	free(plain);
	return ret;
}

int db_number(sqlite3 *db, const char *sql, int64_t otherwise, int64_t *ret, struct pt_error *e)
{
	sqlite3_stmt *s;
	int result;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		return db_fail_main(db, e);
	result = sqlite3_step(s);
	if (result == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
		otherwise = sqlite3_column_int64(s, 0);
	else if (result != SQLITE_DONE && result != SQLITE_ROW)
		db_fail_main(db, e);
	sqlite3_finalize(s);
	if (result != SQLITE_DONE && result != SQLITE_ROW)
		return -1;
	*ret = otherwise;
	return 0;
}

sqlite3_stmt *db_insert(sqlite3 *db, const char *table, int columns, struct pt_error *e)
{
	char sql[256];
	int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (?", table);
	sqlite3_stmt *ret;

	for (int i = 1; i < columns; i++)
		n += snprintf(sql + n, sizeof sql - (size_t)n, ",?");
	snprintf(sql + n, sizeof sql - (size_t)n, ")");
	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &ret, NULL) == SQLITE_OK)
		return ret;
	db_fail_main(db, e);
	return NULL;
}

int db_run(sqlite3_stmt *statement, struct pt_error *e)
{
	int result = sqlite3_step(statement);

	if (result != SQLITE_DONE)
		return db_fail_main(sqlite3_db_handle(statement), e);
	sqlite3_reset(statement);
	return 0;
}

void db_bind_time(sqlite3_stmt *s, int at, const struct trace_clock *c, uint64_t tsc)
{
	uint64_t mask = ((uint64_t)1 << c->shift) - 1;
	__int128 ns =
	    (__int128)(tsc >> c->shift) * (int64_t)c->mult + (int64_t)((tsc & mask) * c->mult >> c->shift);

	ns += (int64_t)c->zero;
	db_bind(s, at, c->known && tsc != PTR_NO_TSC && ns <= INT64_MAX && ns >= INT64_MIN, (int64_t)ns);
}
