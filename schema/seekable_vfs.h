/*
 * seekable_vfs.h - SQLite reads a database from a file in zstd's seekable format (seekable.h), which does not
 * change: nothing is locked, no journal looked for, and writing fails with SQLITE_READONLY.
 */
#ifndef SCHEMA_SEEKABLE_VFS_H
#define SCHEMA_SEEKABLE_VFS_H

#include "schema/error.h"

/* The VFS's name. */
#define PT_SEEKABLE_VFS "zstd-seekable"

/*
 * The VFS for the database at path, for sqlite3_open_v2() with SQLITE_OPEN_READONLY: PT_SEEKABLE_VFS, which is
 * registered then, or NULL, SQLite's own: it is no such file.
 */
const char *pt_seekable_vfs_of(const char *path);

/*
 * SQLite says of what cannot be read that there was a disk I/O error, and nothing more: so `failed` is called
 * with the reason, in the thread that reads. Called before there are other threads.
 */
void pt_seekable_vfs_on_failure(void (*failed)(const struct pt_error *e));

#endif
