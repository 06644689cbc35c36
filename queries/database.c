/* database.c - see database.h. */
#include "queries/database.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/file_kind.h"
#include "schema/seekable_vfs.h"
#include "schema/unpack/facts.h"
#include "schema/version.h"

/* Whether pt-load made it, and this release's. */
static int check_ours(sqlite3 *db, const char *path, struct pt_error *e)
{
	sqlite3_stmt *st = NULL;
	int id = 0, version = 0;
	bool read = sqlite3_prepare_v2(db,
				       "SELECT (SELECT application_id FROM pragma_application_id), "
				       "(SELECT user_version FROM pragma_user_version)",
				       -1, &st, NULL) == SQLITE_OK &&
		    sqlite3_step(st) == SQLITE_ROW;

	if (read) {
		id = sqlite3_column_int(st, 0);
		version = sqlite3_column_int(st, 1);
	} else if (sqlite3_errcode(db) == SQLITE_BUSY) {
		pt_fail(e, PT_ERR_IO, PT_NO_OFFSET,
			"%s: another program is writing it: try again when that is done", path);
	} else {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: %s%s", path, sqlite3_errmsg(db),
			sqlite3_errcode(db) == SQLITE_NOTADB ? pt_file_kind_of(path) : "");
	}
	sqlite3_finalize(st);
	if (!read)
		return -1;
	if (id != PT_DB_APPLICATION)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "%s is a database, but pt-load did not make it", path);
	if (version != PT_DB_VERSION)
		return pt_fail(
		    e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
		    "%s has schema version %d, of %s pt-load, and this pt-query reads version %d: load the "
		    "recordings again, into a new file",
		    path, version, version < PT_DB_VERSION ? "an older" : "a newer", PT_DB_VERSION);
	return 0;
}

/* What a database may not do to who asks it: run functions or triggers of its own, or be written. */
static int protect(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0); /* neither ATTACH nor VACUUM INTO */
	sqlite3_busy_timeout(db, 5000);
	/* So that a hundred thousand rows are sorted in memory; it changes no result. */
	return sqlite3_exec(db, "PRAGMA cell_size_check = ON; PRAGMA cache_size = -65536", NULL, NULL, NULL);
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (name && strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}

/* SQLite's authorizer: a statement may read, and ask pragmas what there is. */
static int only_reads(void *arg, int action, const char *first, const char *second, const char *database,
		      const char *view)
{
	/* Of these the argument says what is asked for. */
	static const char *const questions[] = {"collation_list",  "foreign_key_check", "foreign_key_list",
						"index_info",	   "index_list",	"index_xinfo",
						"integrity_check", "quick_check",	"table_info",
						"table_list",	   "table_xinfo"};
	static const char *const functions[] = {"load_extension", "fts3_tokenizer"};

	(void)arg, (void)view;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE: return SQLITE_OK;
	case SQLITE_FUNCTION:
		return is_one_of(second, functions, sizeof functions / sizeof *functions) ? SQLITE_DENY
											  : SQLITE_OK;
	case SQLITE_PRAGMA:
		return !second || is_one_of(first, questions, sizeof questions / sizeof *questions)
			   ? SQLITE_OK
			   : SQLITE_DENY;
	case SQLITE_UPDATE:
		/* So SQLite itself makes a table-valued function known. A statement may not. */
		return strcmp(first, "sqlite_master") == 0 && strcmp(database, "main") == 0 ? SQLITE_OK
											    : SQLITE_DENY;
	default: return SQLITE_DENY;
	}
}

void database_only_reads(sqlite3 *db)
{
	protect(db);
	sqlite3_set_authorizer(db, only_reads, NULL);
}

static int is_past(void *arg)
{
	const struct timespec *until = arg;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

struct database_watch database_until(const struct timespec *until)
{
	return (struct database_watch){is_past, (void *)until};
}

void database_stop_when(sqlite3 *db, const struct database_watch *watch)
{
	if (watch)
		sqlite3_progress_handler(db, 10000, watch->is_over, watch->arg);
}

/* A killed load left a journal. It is played back when somebody who may write reads the database. */
static int roll_back(const char *path, struct pt_error *e)
{
	sqlite3 *db = NULL;
	bool done = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
		    protect(db) == SQLITE_OK &&
		    sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) == SQLITE_OK;

	if (!done)
		pt_fail(e, PT_ERR_IO, PT_NO_OFFSET,
			"%s: a load into it was interrupted, and is to be undone first: run pt-query once as "
			"somebody who may write the file and its folder (%s)",
			path, sqlite3_errmsg(db));
	sqlite3_close(db);
	return done ? 0 : -1;
}

/* Whether the database waits for roll_back(). */
static bool has_hot_journal(sqlite3 *db)
{
	bool failed = sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) != SQLITE_OK;

	return failed && sqlite3_extended_errcode(db) == SQLITE_READONLY_ROLLBACK;
}

sqlite3 *database_open(const char *path, struct pt_error *e)
{
	const char *vfs = pt_seekable_vfs_of(path);
	sqlite3 *db = NULL;
	struct stat st;

	if (access(path, R_OK) < 0 || stat(path, &st) < 0) {
		pt_fail_errno(e, "cannot open %s", path);
		return NULL;
	}
	if (S_ISDIR(st.st_mode)) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s is a directory", path);
		return NULL;
	}
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, vfs) != SQLITE_OK) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: %s", path, sqlite3_errmsg(db));
		goto fail;
	}
	if (has_hot_journal(db) && roll_back(path, e) < 0)
		goto fail;
	protect(db);
	if (check_ours(db, path, e) < 0 || facts_register(db, e) < 0)
		goto fail;
	database_only_reads(db);
	return db;
fail:
	sqlite3_close(db);
	return NULL;
}

sqlite3_stmt *database_prepare(sqlite3 *db, const char *sql, struct pt_error *e)
{
	sqlite3_stmt *st;
	const char *tail;

	if (sqlite3_prepare_v2(db, sql, -1, &st, &tail) != SQLITE_OK) {
		if (sqlite3_errcode(db) == SQLITE_AUTH)
			pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				"the statement does not only read, and pt-query runs no other: %s",
				sqlite3_errmsg(db));
		else
			pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(db));
		return NULL;
	}
	if (!st) {
		pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "there is no statement in it");
	} else if (tail[strspn(tail, " \t\r\n;")]) {
		pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "one statement at a time");
		sqlite3_finalize(st);
		st = NULL;
	}
	return st;
}

static int no_such_parameter(sqlite3_stmt *st, const char *name, struct pt_error *e)
{
	char known[256] = "";

	for (int k = 1; k <= sqlite3_bind_parameter_count(st); k++) {
		const char *other = sqlite3_bind_parameter_name(st, k);

		snprintf(known + strlen(known), sizeof known - strlen(known), " %s", other ? other + 1 : "?");
	}
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "the query has no parameter %s; it has%s", name,
		       known[0] ? known : " none");
}

int database_bind(sqlite3_stmt *st, const char *parameter, struct pt_error *e)
{
	const char *value = strchr(parameter, '=') + 1;
	char name[128], *end;
	long long number;
	double real;
	int index;

	snprintf(name, sizeof name, ":%.*s", (int)(value - 1 - parameter), parameter);
	index = sqlite3_bind_parameter_index(st, name);
	if (!index)
		return no_such_parameter(st, name + 1, e);
	errno = 0;
	number = strtoll(value, &end, 0);
	if (*value && !*end && !errno) {
		sqlite3_bind_int64(st, index, number);
		return 0;
	}
	real = strtod(value, &end);
	if (*value && !*end)
		sqlite3_bind_double(st, index, real);
	else
		sqlite3_bind_text(st, index, value, -1, SQLITE_TRANSIENT);
	return 0;
}

void database_raw_names(sqlite3_stmt *st)
{
	int index = sqlite3_bind_parameter_index(st, ":no_demangle");

	if (index)
		sqlite3_bind_int(st, index, 1);
}
