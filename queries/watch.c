/* watch.c - see watch.h. */
#include "queries/watch.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queries/database.h"
#include "queries/print.h"
#include "queries/prometheus.h"
#include "queries/remote.h"
#include "queries/rows.h"
#include "queries/several.h"
#include "queries/source.h"
#include "schema/array.h"
#include "schema/clickhouse/http.h"
#include "schema/output.h"

#define TEXT_MODE 0644u

struct database {
	char *path;
	struct stat st;
	bool readable;
};

struct databases {
	struct database *all; /* by name */
	size_t count, room;
};

/* Of a server: which traces it has. */
struct traces {
	bool readable;
	int64_t modified, count;
	char which[24];
};

struct watch_state {
	const struct watch *watch;
	struct databases seen;
	struct traces seen_traces; /* of a server */
	bool written;
};

static void clear(struct databases *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->all[i].path);
	free(d->all);
	*d = (struct databases){0};
}

struct watch_state *watch_create(const struct watch *w, struct pt_error *e)
{
	struct watch_state *s = calloc(1, sizeof *s);

	if (s)
		s->watch = w;
	else
		pt_fail_no_memory(e, NULL);
	return s;
}

void watch_destroy(struct watch_state *s)
{
	if (s)
		clear(&s->seen);
	free(s);
}

/* ---- The folder --------------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct database *)a)->path, ((const struct database *)b)->path);
}

static int add(struct databases *d, const char *folder, const char *name, struct pt_error *e)
{
	struct database new = {0};

	if (pt_array_grow(&d->all, d->count, &d->room, e) < 0)
		return -1;
	if (asprintf(&new.path, "%s/%s", folder, name) < 0)
		return pt_fail_no_memory(e, NULL);
	/* It may have gone since its name was read. */
	if (stat(new.path, &new.st) == 0 && S_ISREG(new.st.st_mode))
		d->all[d->count++] = new;
	else
		free(new.path);
	return 0;
}

static int list(struct databases *d, const char *folder, struct pt_error *e)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return pt_fail_errno(e, "cannot read the folder %s", folder);
	while (!ret && (entry = readdir(dir))) {
		size_t n = strlen(entry->d_name);

		if (n > 3 && entry->d_name[0] != '.' && !strcmp(entry->d_name + n - 3, ".db"))
			ret = add(d, folder, entry->d_name, e);
	}
	closedir(dir);
	if (d->count)
		qsort(d->all, d->count, sizeof *d->all, by_path);
	return ret;
}

static bool same_file(const struct database *a, const struct database *b)
{
	return !strcmp(a->path, b->path) && a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino &&
	       a->st.st_size == b->st.st_size && a->st.st_mtim.tv_sec == b->st.st_mtim.tv_sec &&
	       a->st.st_mtim.tv_nsec == b->st.st_mtim.tv_nsec;
}

static bool same(const struct databases *a, const struct databases *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!same_file(&a->all[i], &b->all[i]))
			return false;
	return true;
}

/* Whether it was as unreadable as it is when the folder was looked at before. */
static bool was_unreadable(const struct databases *before, const struct database *d)
{
	for (size_t i = 0; i < before->count; i++)
		if (same_file(&before->all[i], d))
			return !before->all[i].readable;
	return false;
}

static void find_readable(const struct watch_state *s, struct databases *d)
{
	for (size_t i = 0; i < d->count; i++) {
		struct pt_error e = {0};
		sqlite3 *db = database_open(d->all[i].path, &e);

		d->all[i].readable = db != NULL;
		sqlite3_close(db);
		if (!db && !was_unreadable(&s->seen, &d->all[i]))
			s->watch->warn(s->watch->arg, e.message);
	}
}

/* ---- The text ----------------------------------------------------------------------------------------- */

/* A label's value (prometheus.c's rules) of a database. */
static void put_sample(FILE *out, const char *name, const char *path)
{
	fprintf(out, "%s{db=\"", name);
	for (; *path; path++)
		fprintf(out, *path == '"' || *path == '\\' ? "\\%c" : *path == '\n' ? " " : "%c", *path);
	fputs("\"} ", out);
}

static const char readable_help[] =
    "# HELP pt_database_readable 1: the database can be read; 0: it cannot, or is of another version\n"
    "# TYPE pt_database_readable gauge\n";
static const char modified_help[] =
    "# HELP pt_database_modified_timestamp_seconds when the database was written last\n"
    "# TYPE pt_database_modified_timestamp_seconds gauge\n";

static void put_databases(const struct databases *d, FILE *out)
{
	fputs(readable_help, out);
	for (size_t i = 0; i < d->count; i++) {
		put_sample(out, "pt_database_readable", d->all[i].path);
		fprintf(out, "%d\n", d->all[i].readable);
	}
	fputs(modified_help, out);
	for (size_t i = 0; i < d->count; i++) {
		put_sample(out, "pt_database_modified_timestamp_seconds", d->all[i].path);
		fprintf(out, "%jd\n", (intmax_t)d->all[i].st.st_mtim.tv_sec);
	}
}

static int put_query(const struct watch *w, const char *name, const char *const *paths, size_t count,
		     FILE *out, struct pt_error *e)
{
	const struct source source = {.name = name, .folder = w->query_folder};
	const struct several several = {.databases = paths, .count = count};
	char *sql = source_read(&source, e);
	sqlite3 *db = NULL;
	sqlite3_stmt *st = sql ? several_ask(&several, sql, &db, e) : NULL;
	int ret = st ? prometheus(st, name, out, e) : -1;

	sqlite3_finalize(st);
	sqlite3_close(db);
	free(sql);
	return ret;
}

static int put_text(const struct watch *w, const void *arg, FILE *out, struct pt_error *e)
{
	const struct databases *d = arg;
	const char **paths = calloc(d->count + 1, sizeof *paths);
	size_t n = 0;
	int ret = paths ? 0 : pt_fail_no_memory(e, NULL);

	for (size_t i = 0; paths && i < d->count; i++)
		if (d->all[i].readable)
			paths[n++] = d->all[i].path;
	put_databases(d, out);
	for (size_t i = 0; !ret && n && i < w->query_count; i++)
		ret = put_query(w, w->queries[i], paths, n, out, e);
	free(paths);
	return ret ? -1 : print_flush(out, e);
}

/* text(w, arg, out, e) writes it. */
static int write_text(const struct watch *w,
		      int (*text)(const struct watch *w, const void *arg, FILE *out, struct pt_error *e),
		      const void *arg, struct pt_error *e)
{
	struct output file = {0};
	FILE *out = NULL;
	int ret = output_open_mode(&file, w->textfile, "a text for Prometheus", TEXT_MODE, e), fd = -1;

	if (!ret) {
		fd = dup(file.fd);
		out = fd >= 0 ? fdopen(fd, "w") : NULL;
	}
	if (!ret && !out)
		ret = pt_fail_errno(e, "cannot write to %s", w->textfile);
	if (!ret)
		ret = text(w, arg, out, e);
	if (out)
		fclose(out);
	else if (fd >= 0)
		close(fd);
	if (!ret)
		ret = output_commit(&file, e);
	output_abort(&file);
	return ret;
}

/* ---- A server ----------------------------------------------------------------------------------------- */

static int put_remote_query(const struct watch *w, const char *name, FILE *out, struct pt_error *e)
{
	const struct remote remote = {.url = w->folder};
	const char *query = remote_find(name, e);
	char *sql = query ? remote_sql(&remote, query, e) : NULL;
	sqlite3 *db = NULL;
	sqlite3_stmt *st = sql ? remote_ask(&remote, sql, &db, e) : NULL;
	int ret = st ? prometheus(st, name, out, e) : -1;

	sqlite3_finalize(st);
	sqlite3_close(db);
	free(sql);
	return ret;
}

static int put_remote_text(const struct watch *w, const void *arg, FILE *out, struct pt_error *e)
{
	const struct traces *t = arg;
	int ret = 0;

	fputs(readable_help, out);
	put_sample(out, "pt_database_readable", w->folder);
	fprintf(out, "%d\n", t->readable);
	if (t->readable) {
		fputs(modified_help, out);
		put_sample(out, "pt_database_modified_timestamp_seconds", w->folder);
		fprintf(out, "%jd\n", (intmax_t)t->modified);
	}
	for (size_t i = 0; !ret && t->readable && i < w->query_count; i++)
		ret = put_remote_query(w, w->queries[i], out, e);
	return ret ? -1 : print_flush(out, e);
}

/* -1: PT_ERR_IO, the server does not answer, or has no such database. */
static int find_traces(const struct watch *w, struct traces *t, struct pt_error *e)
{
	static const char sql[] = "SELECT ifNull(max(load_time), 0), toInt64(count()), "
				  "toString(groupBitXor(load)) FROM traces";
	const struct remote remote = {.url = w->folder};
	sqlite3 *db = NULL;
	sqlite3_stmt *st = remote_ask(&remote, sql, &db, e);
	int row = st ? rows_step(st, e) : -1;

	*t = (struct traces){.readable = row >= 0};
	if (row > 0) {
		t->modified = sqlite3_column_int64(st, 0);
		t->count = sqlite3_column_int64(st, 1);
		snprintf(t->which, sizeof t->which, "%s", (const char *)sqlite3_column_text(st, 2));
	}
	sqlite3_finalize(st);
	sqlite3_close(db);
	return row < 0 ? -1 : 0;
}

static bool same_traces(const struct traces *a, const struct traces *b)
{
	return a->readable == b->readable && a->modified == b->modified && a->count == b->count &&
	       !strcmp(a->which, b->which);
}

/* What does not answer may do so later; other errors are the user's. */
static int unreadable(struct watch_state *s, struct traces *now, struct pt_error *e)
{
	if (e->kind != PT_ERR_IO)
		return -1;
	if (!s->written || s->seen_traces.readable)
		s->watch->warn(s->watch->arg, e->message);
	*now = (struct traces){0};
	return 0;
}

static int check_queries(const struct watch *w, struct pt_error *e)
{
	for (size_t i = 0; i < w->query_count; i++)
		if (canned_find(w->queries[i]) && !remote_has(w->queries[i]))
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				       "%s is answered of a copy of one trace, and a server that is watched "
				       "is asked what it answers itself (pt-query(1), CLICKHOUSE)",
				       w->queries[i]);
		else if (!remote_find(w->queries[i], e))
			return -1;
	return 0;
}

static int look_at_server(struct watch_state *s, struct pt_error *e)
{
	struct traces now;
	int ret = check_queries(s->watch, e);

	if (!ret && find_traces(s->watch, &now, e) < 0)
		ret = unreadable(s, &now, e);
	if (ret)
		return -1;
	if (s->written && same_traces(&now, &s->seen_traces))
		return 0;
	ret = write_text(s->watch, put_remote_text, &now, e);
	/* It went away in the middle. */
	if (ret && now.readable && !unreadable(s, &now, e))
		ret = write_text(s->watch, put_remote_text, &now, e);
	if (ret)
		return -1;
	s->seen_traces = now;
	s->written = true;
	return 1;
}

/* ---- The folder again --------------------------------------------------------------------------------- */

int watch_look(struct watch_state *s, struct pt_error *e)
{
	struct databases now = {0};
	int ret;

	if (clickhouse_is_url(s->watch->folder))
		return look_at_server(s, e);
	ret = list(&now, s->watch->folder, e);
	if (!ret && s->written && same(&now, &s->seen)) {
		clear(&now);
		return 0;
	}
	if (!ret) {
		find_readable(s, &now);
		ret = write_text(s->watch, put_text, &now, e);
	}
	if (ret) {
		clear(&now);
		return -1;
	}
	clear(&s->seen);
	s->seen = now;
	s->written = true;
	return 1;
}
