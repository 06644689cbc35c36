/* seekable_vfs.c - see seekable_vfs.h. SQLite's rules: sqlite.org/vfs.html; sqlite3.h, struct sqlite3_vfs. */
#include "schema/seekable_vfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

#include "schema/seekable.h"

enum { SECTOR_BYTES = 4096 };

struct database_file {
	sqlite3_file base; /* first: SQLite's file is one of these */
	struct pt_seekable *packed;
};

static sqlite3_vfs *below; /* SQLite's own, for all but databases */
static void (*on_failed)(const struct pt_error *e);

static int file_close(sqlite3_file *file)
{
	pt_seekable_close(((struct database_file *)file)->packed);
	return SQLITE_OK;
}

static int failed(const struct pt_error *e)
{
	if (on_failed)
		on_failed(e);
	return e->kind == PT_ERR_NO_MEMORY   ? SQLITE_IOERR_NOMEM
	       : e->kind == PT_ERR_BAD_INPUT ? SQLITE_IOERR_DATA
					     : SQLITE_IOERR_READ;
}

/* What is beyond the end is zeros, and said to be missing. */
static int file_read(sqlite3_file *file, void *to, int n, sqlite3_int64 offset)
{
	struct pt_seekable *packed = ((struct database_file *)file)->packed;
	uint64_t bytes = pt_seekable_bytes(packed), at = (uint64_t)offset;
	size_t there = at >= bytes ? 0 : bytes - at < (uint64_t)n ? (size_t)(bytes - at) : (size_t)n;
	struct pt_error e;

	if (there && pt_seekable_read(packed, to, there, at, &e))
		return failed(&e);
	if (there == (size_t)n)
		return SQLITE_OK;
	memset((char *)to + there, 0, (size_t)n - there);
	return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *from, int n, sqlite3_int64 offset)
{
	(void)file, (void)from, (void)n, (void)offset;
	return SQLITE_READONLY;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	(void)file, (void)size;
	return SQLITE_READONLY;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret)
{
	*ret = (sqlite3_int64)pt_seekable_bytes(((struct database_file *)file)->packed);
	return SQLITE_OK;
}

/* For xSync, xLock and xUnlock: there is nothing to do. */
static int file_nothing(sqlite3_file *file, int how)
{
	(void)file, (void)how;
	return SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *file, int *ret)
{
	(void)file;
	*ret = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int what, void *arg)
{
	(void)file, (void)what, (void)arg;
	return SQLITE_NOTFOUND;
}

static int file_sector_bytes(sqlite3_file *file)
{
	(void)file;
	return SECTOR_BYTES;
}

static int file_characteristics(sqlite3_file *file)
{
	(void)file;
	return SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods methods = {.iVersion = 1,
					   .xClose = file_close,
					   .xRead = file_read,
					   .xWrite = file_write,
					   .xTruncate = file_truncate,
					   .xSync = file_nothing,
					   .xFileSize = file_size,
					   .xLock = file_nothing,
					   .xUnlock = file_nothing,
					   .xCheckReservedLock = file_is_reserved,
					   .xFileControl = file_control,
					   .xSectorSize = file_sector_bytes,
					   .xDeviceCharacteristics = file_characteristics};

/* Temporary files are SQLite's own VFS's. */
static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct database_file *database = (struct database_file *)file;
	struct pt_error e;

	(void)vfs;
	if (!(flags & SQLITE_OPEN_MAIN_DB))
		return below->xOpen(below, name, file, flags, ret_flags);
	*database = (struct database_file){.packed = pt_seekable_open(name, &e)};
	if (!database->packed) {
		(void)failed(&e);
		return SQLITE_CANTOPEN;
	}
	database->base.pMethods = &methods;
	if (ret_flags)
		*ret_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
	return SQLITE_OK;
}

static void register_vfs(void)
{
	static sqlite3_vfs vfs;

	below = sqlite3_vfs_find(NULL);
	if (!below)
		return;
	vfs = *below;
	vfs.zName = PT_SEEKABLE_VFS;
	vfs.pNext = NULL;
	vfs.xOpen = vfs_open;
	if (vfs.szOsFile < (int)sizeof(struct database_file))
		vfs.szOsFile = (int)sizeof(struct database_file);
	sqlite3_vfs_register(&vfs, 0);
}

const char *pt_seekable_vfs_of(const char *path)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!pt_seekable_is(path))
		return NULL;
	pthread_once(&once, register_vfs);
	return PT_SEEKABLE_VFS;
}

void pt_seekable_vfs_on_failure(void (*to_call)(const struct pt_error *e))
{
	on_failed = to_call;
}
