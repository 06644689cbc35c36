/* store.c - see store.h. */
#include "export/store.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "export/compress.h"
#include "export/db.h"
#include "export/shape.h"
#include "schema/output.h"
#include "schema/version.h"

/* path's folder, malloc()ed. */
static char *folder_of(const char *path)
{
	char *copy = strdup(path), *ret = copy ? strdup(dirname(copy)) : NULL;

	free(copy);
	return ret;
}

/* Whether path still names the file that fd is. */
static bool is_named(int fd, const char *path)
{
	struct stat mine, there;

	return !fstat(fd, &mine) && !lstat(path, &there) && mine.st_dev == there.st_dev &&
	       mine.st_ino == there.st_ino;
}

/*
 * The one that has a temporary file, which goes, too, when a library ends the program: libdw does where it has
 * no memory (dwarf_new_oom_handler(3): what it calls may not return).
 */
static struct store *fresh_one;

/* Until the lock is ours, or wait says otherwise. */
static int lock_file(int fd, const char *path, const struct store_wait *wait, struct pt_error *e)
{
	static const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};

	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return pt_fail_errno(e, "cannot lock %s", path);
	if (!wait->begins)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "another pt-load is making %s: try again when that is done", path);
	wait->begins(wait->arg);
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK)
			return pt_fail_errno(e, "cannot lock %s", path);
		if (wait->stops && wait->stops(wait->arg))
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted: nothing was loaded");
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* A file that a killed load left has that load's mode, and may be somebody else's. */
static int make_ours(const struct store *s, int fd, struct pt_error *e)
{
	struct stat st;
	mode_t mask;

	if (fstat(fd, &st))
		return pt_fail_errno(e, "%s", s->temporary);
	if (st.st_uid != geteuid())
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s is there, and is of user %u: remove it, or give another name",
			       s->temporary, (unsigned)st.st_uid);
	mask = umask(0);
	umask(mask);
	/* (Some file systems have one mode for all files, and refuse.) */
	(void)!fchmod(fd, s->mode & ~mask);
	return ftruncate(fd, 0) ? pt_fail_errno(e, "%s", s->temporary) : 0;
}

/*
 * The file for a new database, locked and empty. What a killed load left in it goes. 1: another load
 * has had it meanwhile, and it has another name now, or none.
 */
static int take_temporary(struct store *s, const struct store_wait *wait, struct pt_error *e)
{
	int fd = open(s->temporary, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, s->mode);

	if (fd < 0)
		return pt_fail_errno(e, "%s", s->temporary);
	if (lock_file(fd, s->path, wait, e)) {
		close(fd);
		return -1;
	}
	if (!is_named(fd, s->temporary)) {
		close(fd);
		return 1;
	}
	s->lock = fd;
	return make_ours(s, fd, e);
}

/* The temporary file's lock is ours: who waits for it finds that it has lost its name. */
static void drop_temporary(struct store *s)
{
	if (fresh_one == s)
		fresh_one = NULL;
	if (s->lock < 0)
		return;
	if (s->temporary && is_named(s->lock, s->temporary))
		unlink(s->temporary);
	close(s->lock);
	s->lock = -1;
}

static void on_exit_drop(void)
{
	if (fresh_one)
		drop_temporary(fresh_one);
}

static int drop_at_exit(struct store *s, struct pt_error *e)
{
	static bool registered;

	fresh_one = s;
	if (!registered && atexit(on_exit_drop))
		return pt_fail_no_memory(e, NULL);
	registered = true;
	return 0;
}

/*
 * A load that is killed between its two looks for the database leaves the file for a new one beside one that
 * is there.
 */
static void remove_stale_temporary(const struct store *s)
{
	int fd = open(s->temporary, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	    is_named(fd, s->temporary))
		unlink(s->temporary);
	close(fd);
}

/* No journal and no flushing: until the rename no other program uses the file. */
static int open_fresh(struct store *s, struct pt_error *e)
{
	if (sqlite3_open_v2(s->temporary, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
	    SQLITE_OK)
		return db_fail(s->db, s->path, e);
	s->fresh = true;
	return db_exec(s->db,
		       "PRAGMA page_size = 8192;"
		       "PRAGMA journal_mode = OFF;"
		       "PRAGMA synchronous = OFF;"
		       "PRAGMA locking_mode = EXCLUSIVE;"
		       "PRAGMA cache_size = -16384;"
		       "PRAGMA temp_store = FILE;"
		       "BEGIN IMMEDIATE",
		       e);
}

/* SQLite's busy handler: another program writes, or reads when we want to write. */
static int busy(void *arg, int times)
{
	const struct store *s = arg;
	static const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};

	if (!s->wait.begins)
		return 0;
	if (times == 0)
		s->wait.begins(s->wait.arg);
	if (s->wait.stops && s->wait.stops(s->wait.arg))
		return 0;
	nanosleep(&pause, NULL);
	return 1;
}

static int open_existing(struct store *s, struct pt_error *e)
{
	int64_t application, version;

	if (sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
		return db_fail(s->db, s->path, e);
	sqlite3_busy_handler(s->db, busy, s);
	/* Nothing that the database contains runs. */
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	if (db_number(s->db, "PRAGMA application_id", 0, &application, e) < 0 ||
	    db_number(s->db, "PRAGMA user_version", 0, &version, e) < 0)
		return -1;
	if (application != PT_DB_APPLICATION)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s is a database, but not one that pt-load made: give another name", s->path);
	if (version != PT_DB_VERSION)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s has schema version %d, of %s pt-load, and this one writes version %d: "
			       "load the recordings "
			       "again, into a new file",
			       s->path, (int)version, version < PT_DB_VERSION ? "an older" : "a newer",
			       PT_DB_VERSION);
	if (shape_check(s->db, s->path, e) < 0)
		return -1;
	remove_stale_temporary(s);
	return db_exec(s->db,
		       "PRAGMA cell_size_check = ON;"
		       "PRAGMA cache_size = -16384;"
		       "PRAGMA temp_store = FILE;"
		       "BEGIN IMMEDIATE",
		       e);
}

/* 1: there is a database; 0: none, or an empty file; -1: something else is there. */
static int look(const char *path, struct pt_error *e)
{
	struct stat st;

	if (stat(path, &st))
		return errno == ENOENT ? 0 : pt_fail_errno(e, "%s", path);
	if (S_ISDIR(st.st_mode))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s is a directory", path);
	if (!S_ISREG(st.st_mode))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s is no regular file", path);
	return st.st_size > 0;
}

int store_open(struct store *s, const char *path, unsigned mode, const struct store_wait *wait,
	       struct pt_error *e)
{
	int there, taken;

	memset(s, 0, sizeof *s);
	s->lock = -1;
	s->wait = *wait;
	s->mode = mode;
	s->path = output_target(path, e);
	if (!s->path)
		return -1;
	if (asprintf(&s->temporary, "%s" DB_LOADING, s->path) < 0) {
		s->temporary = NULL;
		return pt_fail_no_memory(e, NULL);
	}
	do {
		there = look(s->path, e);
		if (there)
			return there < 0 ? -1 : open_existing(s, e);
		taken = take_temporary(s, wait, e);
	} while (taken > 0);
	if (taken < 0)
		return -1;
	/* Another load may have made it just before. */
	there = look(s->path, e);
	if (there <= 0)
		return there < 0 || drop_at_exit(s, e) ? -1 : open_fresh(s, e);
	drop_temporary(s);
	return open_existing(s, e);
}

static bool has_journal(const struct store *s)
{
	static const char *const ends[] = {"-journal", "-wal"};
	bool ret = false;

	for (size_t i = 0; i < sizeof ends / sizeof *ends && !ret; i++) {
		char *name;
		struct stat st;

		if (asprintf(&name, "%s%s", s->path, ends[i]) < 0)
			return true;
		ret = lstat(name, &st) == 0;
		free(name);
	}
	return ret;
}

/*
 * SQLite rolls back a journal, and removes one that lies beside an empty database, when that is read. It
 * knows whether another program uses it.
 */
static int read_once(const struct store *s, int flags, struct pt_error *e)
{
	sqlite3 *db = NULL;
	int64_t n, r = 0;

	if (sqlite3_open_v2(s->path, &db, flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
	    SQLITE_OK)
		r = db_fail(db, s->path, e);
	else
		r = db_number(db, "SELECT count(*) FROM sqlite_master", 0, &n, e);
	sqlite3_close(db);
	return (int)r;
}

/* The journal of a database that was removed without it would be played back into the new one. */
static int remove_journals(const struct store *s, struct pt_error *e)
{
	if (!has_journal(s))
		return 0;
	if (read_once(s, SQLITE_OPEN_CREATE, e))
		return -1;
	return !has_journal(s) ? 0
			       : pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
					 "another program is using %s: try again when that is done", s->path);
}

/* Gives the file its name, unless another program has made a database of that name meanwhile. */
static int name_it(struct store *s, struct pt_error *e)
{
	struct stat st;

	if (!stat(s->path, &st) && !st.st_size)
		return rename(s->temporary, s->path) ? pt_fail_errno(e, "%s", s->path) : 0;
	if (!renameat2(AT_FDCWD, s->temporary, AT_FDCWD, s->path, RENAME_NOREPLACE))
		return 0;
	if (errno == EEXIST)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s was made by another program meanwhile: load once more to add to it",
			       s->path);
	/* A file system that cannot: a plain rename. */
	if ((errno != EINVAL && errno != ENOSYS) || rename(s->temporary, s->path))
		return pt_fail_errno(e, "%s", s->path);
	return 0;
}

int store_compress(struct store *s, int level, unsigned threads, struct pt_error *e)
{
	if (!s->fresh)
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "%s is there already, and only a new database is compressed: give another name", s->path);
	s->level = level;
	s->threads = threads;
	return 0;
}

/* The file keeps its lock and name: what is compressed is made beside it and copied. */
static int compress(const struct store *s, struct pt_error *e)
{
	const struct pt_seekable_options options = {
	    .level = s->level, .threads = s->threads, .interrupted = s->wait.stops, .arg = s->wait.arg};
	int scratch = store_scratch(s, e), ret;

	if (scratch < 0)
		return -1;
	ret = compress_file(s->lock, scratch, &options, e);
	close(scratch);
	if (ret)
		pt_error_in(e, s->path);
	return ret;
}

static int publish(struct store *s, struct pt_error *e)
{
	char *folder;
	int fd;

	if (s->level && compress(s, e))
		return -1;
	if (fsync(s->lock))
		return pt_fail_errno(e, "%s", s->path);
	if (remove_journals(s, e) || name_it(s, e))
		return -1;
	folder = folder_of(s->path);
	fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
	free(folder);
	return 0;
}

int store_commit(struct store *s, struct pt_error *e)
{
	if (db_exec(s->db, "COMMIT", e) < 0)
		return -1;
	if (sqlite3_close(s->db) != SQLITE_OK)
		return db_fail(s->db, s->path, e);
	s->db = NULL;
	return s->fresh ? publish(s, e) : 0;
}

void store_close(struct store *s)
{
	bool changed = s->db && !s->fresh;

	if (s->db) {
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		sqlite3_close_v2(s->db);
	}
	/* What SQLite could not take back because a write failed, it may now. */
	if (changed && has_journal(s))
		(void)read_once(s, 0, NULL);
	drop_temporary(s);
	free(s->temporary);
	free(s->path);
	memset(s, 0, sizeof *s);
	s->lock = -1;
}

int store_scratch(const struct store *s, struct pt_error *e)
{
	char *folder = folder_of(s->path), *name = NULL;
	int fd;

	if (!folder)
		return pt_fail_no_memory(e, NULL);
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 && asprintf(&name, "%s" DB_LOADING "-%d", s->path, (int)getpid()) >= 0) {
		fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			unlink(name);
		free(name);
	}
	free(folder);
	/* cppcheck-suppress resourceLeak ; it is the caller's */
	return fd >= 0 ? fd : pt_fail_errno(e, "a scratch file beside %s", s->path);
}
