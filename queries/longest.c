/* longest.c - see longest.h. */
#include "queries/longest.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "queries/database.h"
#include "queries/rows.h"
#include "queries/source.h"

__asm__(".pushsection .rodata\n"
	".globl explorer_sql_longest\n"
	".hidden explorer_sql_longest\n"
	"explorer_sql_longest:\n"
	".incbin \"queries/explorer/longest.sql\"\n"
	".byte 0\n"
	".popsection\n");
extern const char explorer_sql_longest[] __attribute__((visibility("hidden")));

struct known {
	bool asked;
	dev_t device;
	ino_t inode;
	off_t bytes;
	struct timespec written;
	char *parameters[LONGEST_PARAMETERS];
};

struct longest {
	pthread_mutex_t mutex;
	struct known *known;
	size_t count;
};

struct longest *longest_create(size_t databases, struct pt_error *e)
{
	struct longest *l = calloc(1, sizeof *l);

	if (l)
		l->known = calloc(databases + 1, sizeof *l->known);
	if (!l || !l->known) {
		free(l);
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	l->count = databases;
	pthread_mutex_init(&l->mutex, NULL);
	return l;
}

static void forget(struct known *k)
{
	for (size_t i = 0; i < LONGEST_PARAMETERS; i++)
		free(k->parameters[i]);
	*k = (struct known){0};
}

void longest_destroy(struct longest *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->count; i++)
		forget(&l->known[i]);
	pthread_mutex_destroy(&l->mutex);
	free(l->known);
	free(l);
}

static bool is_known(const struct known *k, const struct stat *now)
{
	return k->asked && k->device == now->st_dev && k->inode == now->st_ino && k->bytes == now->st_size &&
	       k->written.tv_sec == now->st_mtim.tv_sec && k->written.tv_nsec == now->st_mtim.tv_nsec;
}

/* Of a row: the kind, a time, a list of ids. */
static int put_row(sqlite3_stmt *st, size_t n, struct known *k, struct pt_error *e)
{
	const char *kind = (const char *)sqlite3_column_text(st, 0),
		   *ns = (const char *)sqlite3_column_text(st, 1),
		   *ids = (const char *)sqlite3_column_text(st, 2);

	if (!kind || !ns || !ids || 2 * n + 1 >= LONGEST_PARAMETERS)
		return pt_fail_no_memory(e, NULL);
	if (asprintf(&k->parameters[2 * n], "%s_ns=%s", kind, ns) < 0)
		k->parameters[2 * n] = NULL;
	else if (asprintf(&k->parameters[2 * n + 1], "long_%ss=%s", kind, ids) < 0)
		k->parameters[2 * n + 1] = NULL;
	return k->parameters[2 * n] && k->parameters[2 * n + 1] ? 0 : pt_fail_no_memory(e, NULL);
}

static int ask(sqlite3 *db, struct known *k, struct pt_error *e)
{
	const struct source source = {.sql = explorer_sql_longest};
	char *sql = source_read(&source, e);
	sqlite3_stmt *st = sql ? database_prepare(db, sql, e) : NULL;
	int r = 0, ret = st ? 0 : -1;

	for (size_t n = 0; ret == 0 && (r = sqlite3_step(st)) == SQLITE_ROW; n++)
		ret = put_row(st, n, k, e);
	if (ret == 0 && r != SQLITE_DONE)
		ret = rows_sql_error(st, e);
	sqlite3_finalize(st);
	free(sql);
	return ret;
}

static int find_out(struct known *k, const struct stat *now, sqlite3 *db, struct pt_error *e)
{
	forget(k);
	if (ask(db, k, e) < 0) {
		forget(k);
		return -1;
	}
	k->asked = true;
	k->device = now->st_dev;
	k->inode = now->st_ino;
	k->bytes = now->st_size;
	k->written = now->st_mtim;
	return 0;
}

static int copy(const struct known *k, char *ret[LONGEST_PARAMETERS], struct pt_error *e)
{
	for (size_t i = 0; i < LONGEST_PARAMETERS; i++) {
		ret[i] = strdup(k->parameters[i]);
		if (ret[i])
			continue;
		while (i)
			free(ret[--i]);
		return pt_fail_no_memory(e, NULL);
	}
	return 0;
}

int longest_parameters(struct longest *l, size_t which, const char *path, sqlite3 *db,
		       char *ret[LONGEST_PARAMETERS], struct pt_error *e)
{
	struct stat now;
	int r = 0;

	if (stat(path, &now) < 0)
		return pt_fail_errno(e, "cannot open %s", path);
	pthread_mutex_lock(&l->mutex);
	if (!is_known(&l->known[which], &now))
		r = find_out(&l->known[which], &now, db, e);
	if (r == 0)
		r = copy(&l->known[which], ret, e);
	pthread_mutex_unlock(&l->mutex);
	return r;
}
