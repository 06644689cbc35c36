/*
 * store.h - a database file that changes as a whole or not at all.
 *
 * A database that is there already is changed in one SQLite transaction, with its journal: kill -9 and power cuts roll
 * back when it is opened next. One that is not there yet (or is an empty file) is made aside without any journal, which
 * is fast, as DB.loading-PID, flushed, and renamed. What a killed pt-load left aside is removed by the next one for the
 * same DB; a lock (flock) on it tells that its maker is gone.
 */
#ifndef EXPORT_STORE_H
#define EXPORT_STORE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "schema/error.h"

struct store {
	sqlite3 *db;
	bool fresh;	 /* made aside: empty, without tables */
	char *path;	 /* the user's */
	char *temporary; /* the file aside, NULL when not fresh */
	int lock;	 /* on it, -1 */
};

/* Opens path and begins the transaction. 0, or -1 (PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_REFUSED: not a database of
 * ours, or a newer one). */
int store_open(struct store *s, const char *path, struct pt_error *e);
/* 0: all is on the disk under path. -1: store_close() undoes it. */
int store_commit(struct store *s, struct pt_error *e);
/* Without commit before: everything is as it was. A zeroed struct is fine. */
void store_close(struct store *s);

/* An unnamed file for n bytes to come back later, in the database's folder, where there is room for such. A descriptor
 * to close, or -1. */
int store_scratch(const struct store *s, struct pt_error *e);

#endif
