/* copy.c - see copy.h. */
#include "queries/perf_sqlite/copy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/sql_macros.h"

static int sqlite_failed(sqlite3 *db, struct pt_error *e)
{
	switch (sqlite3_errcode(db)) {
	case SQLITE_INTERRUPT:
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "it takes longer than --timeout says");
	case SQLITE_NOMEM: return pt_fail_no_memory(e, "the tables");
	case SQLITE_FULL:
	case SQLITE_IOERR:
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "cannot write the tables to a temporary file: %s",
			       sqlite3_errmsg(db));
	default: return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(db));
	}
}

int copy_execute(sqlite3 *to, const char *sql, struct pt_error *e)
{
	return sqlite3_exec(to, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_failed(to, e);
}

static int copy_row(sqlite3_stmt *row, sqlite3_stmt *insert)
{
	int columns = sqlite3_column_count(row);

	for (int i = 0; i < columns; i++)
		sqlite3_bind_value(insert, i + 1, sqlite3_column_value(row, i));
	sqlite3_step(insert);
	return sqlite3_reset(insert);
}

int copy_rows(sqlite3 *from, const char *select, sqlite3 *to, const char *insert, struct pt_error *e)
{
	sqlite3_stmt *row = NULL, *put = NULL;
	char *sql = pt_sql_expand(select, e);
	int r = sql ? 0 : -1, step = SQLITE_DONE;

	if (r == 0 && sqlite3_prepare_v2(from, sql, -1, &row, NULL) != SQLITE_OK)
		r = sqlite_failed(from, e);
	if (r == 0 && sqlite3_prepare_v2(to, insert, -1, &put, NULL) != SQLITE_OK)
		r = sqlite_failed(to, e);
	while (r == 0 && (step = sqlite3_step(row)) == SQLITE_ROW)
		if (copy_row(row, put) != SQLITE_OK)
			r = sqlite_failed(to, e);
	if (r == 0 && step != SQLITE_DONE)
		r = sqlite_failed(from, e);
	sqlite3_finalize(row);
	sqlite3_finalize(put);
	free(sql);
	return r;
}

static int send_file(int fd, FILE *out, struct pt_error *e)
{
	static char buffer[1 << 16];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, buffer, sizeof buffer, at)) > 0) {
		if (fwrite(buffer, 1, (size_t)n, out) != (size_t)n)
			return 0; /* print_flush() says why */
		at += n;
	}
	return n < 0 ? pt_fail_errno(e, "cannot read the temporary file") : 0;
}

int copy_database(int (*fill)(void *arg, sqlite3 *to, struct pt_error *e), void *arg, FILE *out,
		  struct pt_error *e)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	sqlite3 *to = NULL;
	int fd, opened, r;

	if (!folder || !*folder || strlen(folder) > sizeof path - 64)
		folder = "/var/tmp";
	snprintf(path, sizeof path, "%s/pt-query.XXXXXX", folder);
	fd = mkstemp(path);
	if (fd < 0)
		return pt_fail_errno(e, "cannot make a file in %s (TMPDIR names another folder)", folder);
	opened = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL);
	/* SQLite opens the file when it first needs it: it must still have its name then. */
	r = opened == SQLITE_OK
		? copy_execute(
		      to, "PRAGMA page_size = 4096; PRAGMA locking_mode = EXCLUSIVE; PRAGMA user_version", e)
		: pt_fail_no_memory(e, "the temporary database");
	unlink(path);
	if (r == 0)
		r = fill(arg, to, e);
	sqlite3_close(to);
	if (r == 0)
		r = send_file(fd, out, e);
	close(fd);
	return r;
}
