/*
 * insert_loop.c STREAM DB - what a loader that does the plain thing costs: a row a taken branch of the record
 * stream, by a prepared INSERT, in one transaction without journal. The same branches as pt-load's view has:
 * id, slice, tsc, from, to, kind. Prints "rows N" and "bytes N".
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/records.h"

static struct ptr_edge *edges;
static struct ptr_path *paths;
static size_t edge_room, path_room;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "insert_loop: %s: %s\n", what, why);
	exit(1);
}

/* Room for element n. */
static void *with_room(void *array, size_t *room, uint64_t n, size_t size)
{
	if (n < *room)
		return array;
	*room = *room ? *room * 2 : 4096;
	array = realloc(array, *room * size);
	if (!array)
		fail("realloc", "out of memory");
	return array;
}

static uint64_t insert(sqlite3_stmt *st, const struct ptr_record *r)
{
	const struct ptr_path *p = &paths[r->run.path];
	uint64_t id = r->number * PTR_RUN_BRANCHES;

	for (uint32_t k = 0; k < r->run.repeats * p->count; k++) {
		const struct ptr_edge *edge = &edges[p->edge[k % p->count]];

		sqlite3_bind_int64(st, 1, (int64_t)(id + k));
		sqlite3_bind_int64(st, 2, r->run.slice);
		sqlite3_bind_int64(st, 3, (int64_t)r->run.tsc);
		sqlite3_bind_int64(st, 4, (int64_t)edge->from);
		sqlite3_bind_int64(st, 5, (int64_t)edge->to);
		sqlite3_bind_int64(st, 6, edge->kind);
		if (sqlite3_step(st) != SQLITE_DONE)
			fail("INSERT", sqlite3_errmsg(sqlite3_db_handle(st)));
		sqlite3_reset(st);
	}
	return (uint64_t)r->run.repeats * p->count;
}

int main(int argc, char **argv)
{
	struct pt_error e = {0};
	struct ptr_reader *reader;
	struct ptr_record r;
	sqlite3 *db;
	sqlite3_stmt *st;
	struct stat info;
	uint64_t rows = 0;
	int fd, more;

	if (argc != 3)
		fail("usage", "insert_loop STREAM DB");
	fd = open(argv[1], O_RDONLY);
	reader = ptr_reader_create(fd, &e);
	if (!reader)
		fail(argv[1], e.message);
	if (sqlite3_open(argv[2], &db) != SQLITE_OK ||
	    sqlite3_exec(
		db,
		"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
		"CREATE TABLE branch (id INTEGER PRIMARY KEY, slice INTEGER, tsc INTEGER, from_ip INTEGER,"
		" to_ip INTEGER, kind INTEGER); BEGIN",
		NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v3(db, "INSERT INTO branch VALUES (?, ?, ?, ?, ?, ?)", -1,
			       SQLITE_PREPARE_PERSISTENT, &st, NULL) != SQLITE_OK)
		fail(argv[2], sqlite3_errmsg(db));
	while ((more = ptr_next(reader, &r, &e)) == 1) {
		if (r.type == PTR_EDGE) {
			edges = with_room(edges, &edge_room, r.number, sizeof *edges);
			edges[r.number] = r.edge;
		} else if (r.type == PTR_PATH) {
			paths = with_room(paths, &path_room, r.number, sizeof *paths);
			paths[r.number] = r.path;
		} else if (r.type == PTR_RUN) {
			rows += insert(st, &r);
		}
	}
	if (more < 0)
		fail(argv[1], e.message);
	sqlite3_finalize(st);
	if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		fail(argv[2], sqlite3_errmsg(db));
	sqlite3_close(db);
	stat(argv[2], &info);
	printf("rows %" PRIu64 "\nbytes %lld\n", rows, (long long)info.st_size);
	free(edges);
	free(paths);
	ptr_reader_destroy(reader);
	return 0;
}
