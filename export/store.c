/* store.c - see store.h. */
#include "export/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/db.h"
#include "schema/version.h"

/* path's folder, malloc()ed. */
static char *folder_of(const char *path)
{
	char *copy = strdup(path), *ret = copy ? strdup(dirname(copy)) : NULL;

	free(copy);
	return ret;
}

/* Removes what killed loads of the same database left: files without a lock. */
static void remove_stale(const char *path)
{
	char *folder = folder_of(path);
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(name);
	DIR *d = folder ? opendir(folder) : NULL;
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		int fd;

		if (strncmp(entry->d_name, name, n) ||
		    strncmp(entry->d_name + n, DB_LOADING, strlen(DB_LOADING)))
			continue;
		fd = openat(dirfd(d), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			continue;
		if (!flock(fd, LOCK_EX | LOCK_NB))
			unlinkat(dirfd(d), entry->d_name, 0);
		close(fd);
	}
	if (d)
		closedir(d);
	free(folder);
}

/* No journal and no flushing: until the rename no other program uses the file. */
static int open_fresh(struct store *s, struct pt_error *e)
{
	remove_stale(s->path);
	if (asprintf(&s->temporary, "%s" DB_LOADING "%d", s->path, (int)getpid()) < 0) {
		s->temporary = NULL;
		return pt_fail_no_memory(e, NULL);
	}
	s->lock = open(s->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (s->lock < 0) {
		pt_fail_errno(e, "%s", s->path);
		free(s->temporary);
		s->temporary = NULL;
		return -1;
	}
	if (flock(s->lock, LOCK_EX | LOCK_NB))
		return pt_fail_errno(e, "%s", s->temporary);
	if (sqlite3_open_v2(s->temporary, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
	    SQLITE_OK)
		return db_fail(s->db, s->path, e);
	s->fresh = true;
	return db_exec(s->db,
		       "PRAGMA page_size = 8192;"
		       "PRAGMA journal_mode = OFF;"
		       "PRAGMA synchronous = OFF;"
		       "PRAGMA locking_mode = EXCLUSIVE;"
		       "PRAGMA cache_size = -65536;"
		       "PRAGMA temp_store = FILE;"
		       "BEGIN IMMEDIATE",
		       e);
}

static int open_existing(struct store *s, struct pt_error *e)
{
	int64_t application, version;

	if (sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
		return db_fail(s->db, s->path, e);
	sqlite3_busy_timeout(s->db, 5000);
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
	return db_exec(s->db,
		       "PRAGMA cache_size = -65536;"
		       "PRAGMA temp_store = FILE;"
		       "BEGIN IMMEDIATE",
		       e);
}

int store_open(struct store *s, const char *path, struct pt_error *e)
{
	struct stat st;
	int n;

	memset(s, 0, sizeof *s);
	s->lock = -1;
	s->path = strdup(path);
	if (!s->path)
		return pt_fail_no_memory(e, NULL);
	n = stat(path, &st);
	if (n && errno != ENOENT)
		return pt_fail_errno(e, "%s", path);
	if (!n && S_ISDIR(st.st_mode))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s is a directory", path);
	if (!n && !S_ISREG(st.st_mode))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s is no regular file", path);
	return n || !st.st_size ? open_fresh(s, e) : open_existing(s, e);
}

/* The journal of a database that was removed without it would be played back into the new one. */
static int remove_journals(const struct store *s, struct pt_error *e)
{
	static const char *const ends[] = {"-journal", "-wal", "-shm"};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		char *name;
		int failed;

		if (asprintf(&name, "%s%s", s->path, ends[i]) < 0)
			return pt_fail_no_memory(e, NULL);
		failed = unlink(name) && errno != ENOENT;
		if (failed)
			pt_fail_errno(e, "%s", name);
		free(name);
		if (failed)
			return -1;
	}
	return 0;
}

/* Gives the file its name, unless another program has made a database of that name meanwhile. */
static int publish(struct store *s, struct pt_error *e)
{
	char *folder;
	struct stat st;
	int fd;

	if (fsync(s->lock))
		return pt_fail_errno(e, "%s", s->path);
	if (remove_journals(s, e) < 0)
		return -1;
	if (!stat(s->path, &st) && !st.st_size) {
		if (rename(s->temporary, s->path))
			return pt_fail_errno(e, "%s", s->path);
	} else if (renameat2(AT_FDCWD, s->temporary, AT_FDCWD, s->path, RENAME_NOREPLACE)) {
		if (errno == EEXIST)
			return pt_fail(
			    e, PT_ERR_REFUSED, PT_NO_OFFSET,
			    "%s was made by another program meanwhile: load once more to add to it", s->path);
		/* A file system that cannot: a plain rename. */
		if ((errno != EINVAL && errno != ENOSYS) || rename(s->temporary, s->path))
			return pt_fail_errno(e, "%s", s->path);
	}
	free(s->temporary);
	s->temporary = NULL;
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
	if (s->db) {
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		sqlite3_close_v2(s->db);
	}
	if (s->temporary)
		unlink(s->temporary);
	if (s->path && s->lock >= 0)
		close(s->lock);
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
	if (fd < 0 && asprintf(&name, "%s" DB_LOADING "%d-calls", s->path, (int)getpid()) >= 0) {
		fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			unlink(name);
		free(name);
	}
	free(folder);
	/* cppcheck-suppress resourceLeak ; it is the caller's */
	return fd >= 0 ? fd : pt_fail_errno(e, "a scratch file beside %s", s->path);
}
