/* manage.c - see manage.h. */
#include "export/manage.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "export/db.h"
#include "export/traces.h"
#include "schema/output.h"
#include "schema/seekable_vfs.h"
#include "schema/version.h"

/* Nothing that the database contains runs. */
static void harden(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
}

static int stops(void *arg)
{
	const struct store_wait *wait = arg;

	return wait->stops && wait->stops(wait->arg);
}

/* store_open() would make what is not there. */
static int open_existing(struct store *s, const char *path, const struct store_wait *wait, struct pt_error *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return pt_fail_errno(e, "%s", path);
	if (store_open(s, path, OUTPUT_MODE, wait, e))
		return -1;
	return s->fresh ? pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s is empty", path) : 0;
}

static int64_t number(sqlite3_stmt *st, int column)
{
	return sqlite3_column_type(st, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(st, column);
}

static int list(sqlite3 *db, void (*one)(void *arg, const struct manage_trace *t), void *arg,
		struct pt_error *e)
{
	sqlite3_stmt *st;
	int r;

	if (sqlite3_prepare_v2(
		db,
		"SELECT id, branches, errors, uuid, datetime(start_time, 'unixepoch'), name FROM trace "
		"ORDER BY id",
		-1, &st, NULL))
		return db_fail_main(db, e);
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		const struct manage_trace t = {.id = number(st, 0),
					       .branches = number(st, 1),
					       .errors = number(st, 2),
					       .uuid = (const char *)sqlite3_column_text(st, 3),
					       .start = (const char *)sqlite3_column_text(st, 4),
					       .name = (const char *)sqlite3_column_text(st, 5)};

		one(arg, &t);
	}
	r = r == SQLITE_DONE ? 0 : db_fail_main(db, e);
	sqlite3_finalize(st);
	return r;
}

int manage_list(const char *path, void (*one)(void *arg, const struct manage_trace *t), void *arg,
		struct pt_error *e)
{
	sqlite3 *db = NULL;
	int64_t application = 0, version = 0;
	const char *vfs;
	struct stat st;
	int ret;

	if (stat(path, &st) < 0)
		return pt_fail_errno(e, "%s", path);
	vfs = pt_seekable_vfs_of(path);
	/* SQLite may write: a killed load's journal is rolled back when the database is opened next. */
	ret = sqlite3_open_v2(path, &db, vfs ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE, vfs);
	harden(db);
	if (ret)
		ret = db_fail_main(db, e);
	else if (db_number(db, "PRAGMA application_id", 0, &application, e) ||
		 db_number(db, "PRAGMA user_version", 0, &version, e))
		ret = -1;
	else if (application != PT_DB_APPLICATION || version != PT_DB_VERSION)
		ret = pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			      "%s is no database of this pt-load (version %d)", path, PT_DB_VERSION);
	else
		ret = list(db, one, arg, e);
	sqlite3_close(db);
	return ret;
}

/* The room of what was deleted. */
static int vacuum(const char *path, struct pt_error *e)
{
	sqlite3 *db = NULL;
	int ret = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);

	harden(db);
	sqlite3_busy_timeout(db, 60000); /* of those who read meanwhile */
	ret = ret ? db_fail_main(db, e) : db_exec(db, "VACUUM", e);
	sqlite3_close(db);
	return ret;
}

int manage_delete(const char *path, int64_t trace, const struct store_wait *wait, struct pt_error *e)
{
	struct store s = {0};
	sqlite3_stmt *st = NULL;
	int ret = open_existing(&s, path, wait, e), found = 0;

	if (ret == 0 && sqlite3_prepare_v2(s.db, "SELECT 1 FROM trace WHERE id = ?", -1, &st, NULL))
		ret = db_fail_main(s.db, e);
	if (ret == 0) {
		sqlite3_bind_int64(st, 1, trace);
		found = sqlite3_step(st);
	}
	sqlite3_finalize(st);
	if (ret == 0 && found != SQLITE_ROW)
		ret = found == SQLITE_DONE
			  ? pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				    "%s has no trace %" PRId64 "; --list names what it has", path, trace)
			  : db_fail_main(s.db, e);
	if (ret == 0) {
		sqlite3_progress_handler(s.db, 100000, stops, (void *)wait);
		ret = trace_delete(s.db, trace, e);
	}
	if (ret == 0)
		ret = store_commit(&s, e);
	store_close(&s);
	return ret ? ret : vacuum(path, e);
}
