/*
 * store.h - a database file that changes as a whole or not at all.
 *
 * A database that exists is changed in one SQLite transaction with a journal: after kill -9 or a power cut
 * it is rolled back when it is opened next. One that does not exist (or is an empty file) is made beside its
 * place, as DB.loading, without a journal, which is fast; then it is compressed, if that is wanted, flushed
 * and renamed.
 *
 * Several loads into one database come one after the other. Whoever makes a new one holds a lock (flock) on
 * DB.loading; the others wait for it, and find then that the file has lost that name: they look again
 * whether there is a database. A file that is there without a lock is a killed load's, and is used again;
 * beside a database that exists it is removed. No file is removed or replaced that another program may have
 * locked.
 */
#ifndef EXPORT_STORE_H
#define EXPORT_STORE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "schema/error.h"

/* What happens while another program has the database. */
struct store_wait {
	void (*begins)(void *arg); /* called when waiting begins; NULL: it fails instead */
	bool (*stops)(void *arg);  /* called now and then; true: it fails. NULL: never */
	void *arg;
};

struct store {
	sqlite3 *db;
	bool fresh;	 /* a new database: empty, without tables */
	char *path;	 /* the user's */
	char *temporary; /* DB.loading */
	int lock;	 /* a descriptor of that file, which holds its lock; -1: it is not ours */
	struct store_wait wait;
	unsigned mode;
	int level; /* of compression; 0: none */
	unsigned threads;
};

/*
 * Opens path and begins the transaction. mode: of a new database, of which the umask takes some; a database
 * that exists keeps its own. 0, or -1, after which store_close() is due, too: PT_ERR_IO, PT_ERR_NO_MEMORY,
 * PT_ERR_REFUSED (no database of pt-load's, one of another schema version or shape, or another program has
 * it and wait says so). path may be a symbolic link, also to a file that is not there.
 */
int store_open(struct store *s, const char *path, unsigned mode, const struct store_wait *wait,
	       struct pt_error *e);
/* What store_commit() makes is compressed (schema/seekable.h), by up to so many threads: 0, or -1,
 * PT_ERR_REFUSED: the database was there before. */
int store_compress(struct store *s, int level, unsigned threads, struct pt_error *e);
/* 0: all is on the disk under path. -1 (PT_ERR_IO, PT_ERR_REFUSED): store_close() undoes it. */
int store_commit(struct store *s, struct pt_error *e);
/* Without store_commit() before, everything is as it was. A zeroed struct is fine. */
void store_close(struct store *s);

/* An unnamed file in the database's folder, where there is room for data of that size. A descriptor
 * to close, or -1: PT_ERR_IO, PT_ERR_NO_MEMORY. */
int store_scratch(const struct store *s, struct pt_error *e);

#endif
