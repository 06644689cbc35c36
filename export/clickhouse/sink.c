/* sink.c - the sink of export/clickhouse.h: a scratch SQLite database, then its rows to the server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/clickhouse.h"
#include "export/clickhouse/load.h"
#include "export/traces.h"
#include "schema/unpack/facts.h"

struct clickhouse_sink {
	struct pt_sink sink; /* first: a pt_sink is one of these */
	struct server server;
	struct load load;
	struct trace_meta meta;
	char identity[64];
	bool checked;
	char *folder, *path; /* of the scratch database */
	struct pt_sink *scratch;
	bool committing;
};

/* At the first record that is no META: whether the server has the recording. */
static int check(struct clickhouse_sink *s, struct pt_error *e)
{
	const char *detail;

	s->checked = true;
	trace_identity(&s->meta, s->identity);
	if (!*s->identity)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "the recording has no uuid and says nothing of itself: whether it is loaded "
			       "already cannot be known");
	detail = trace_meta_get(&s->meta, "decode.detail");
	if (detail)
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "ClickHouse's tables are of whole traces, and this one was decoded with --detail %s",
		    detail);
	s->load.identity = s->identity;
	if (load_check(&s->load, e) < 0)
		return -1;
	server_well(&s->server);
	return 0;
}

static int record(struct pt_sink *sink, const struct ptr_record *r, struct pt_error *e)
{
	struct clickhouse_sink *s = (struct clickhouse_sink *)sink;

	if (!s->checked && r->type == PTR_META) {
		if (trace_meta_add(&s->meta, r->meta.key, r->meta.value, e) < 0)
			return -1;
	} else if (!s->checked && check(s, e) < 0) {
		return -1;
	}
	return s->scratch->ops->record(s->scratch, r, e);
}

/* It is open, and its name is not needed any more: so nothing is left of it, however this ends. */
static int send_scratch(struct clickhouse_sink *s, sqlite3 *db, struct pt_error *e)
{
	if (unlink(s->path) < 0 || rmdir(s->folder) < 0)
		return pt_fail_errno(e, "cannot remove the scratch folder %s", s->folder);
	free(s->folder);
	free(s->path);
	s->folder = s->path = NULL;
	return load_trace(&s->load, db, e);
}

static int send_all(struct clickhouse_sink *s, struct pt_error *e)
{
	sqlite3 *db = NULL;
	int r;

	if (sqlite3_open_v2(s->path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, "SELECT count(*) FROM trace", NULL, NULL, NULL) != SQLITE_OK)
		r = pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "%s: %s", s->path,
			    db ? sqlite3_errmsg(db) : "no memory");
	else
		r = facts_register(db, e) < 0 ? -1 : send_scratch(s, db, e);
	sqlite3_close(db);
	return r;
}

static int commit(struct pt_sink *sink, struct pt_error *e)
{
	struct clickhouse_sink *s = (struct clickhouse_sink *)sink;
	int r;

	if (!s->checked && check(s, e) < 0)
		return -1;
	s->committing = true;
	r = s->scratch->ops->commit(s->scratch, e);
	s->scratch->ops->destroy(s->scratch);
	s->scratch = NULL;
	return r < 0 ? -1 : send_all(s, e);
}

static void destroy(struct pt_sink *sink)
{
	struct clickhouse_sink *s = (struct clickhouse_sink *)sink;

	if (s->scratch)
		s->scratch->ops->destroy(s->scratch);
	if (s->path)
		unlink(s->path);
	if (s->folder)
		rmdir(s->folder);
	free(s->path);
	free(s->folder);
	load_deinit(&s->load);
	trace_meta_deinit(&s->meta);
	server_deinit(&s->server);
	free(s);
}

static const char *busy_with(const struct pt_sink *sink)
{
	const struct clickhouse_sink *s = (const struct clickhouse_sink *)sink;

	if (s->scratch)
		return s->scratch->ops->busy_with ? s->scratch->ops->busy_with(s->scratch) : NULL;
	return s->load.busy_with;
}

/* A folder of our own in $TMPDIR, /var/tmp without one: a trace may be larger than memory, which /tmp
 * may be. */
static int make_scratch(struct clickhouse_sink *s, const struct pt_sink_options *options, struct pt_error *e)
{
	const char *tmp = getenv("TMPDIR");
	struct pt_sink_options scratch = *options;
	char *folder;

	if (asprintf(&folder, "%s/pt-load.XXXXXX", tmp && *tmp ? tmp : "/var/tmp") < 0)
		return pt_fail_no_memory(e, NULL);
	if (!mkdtemp(folder)) {
		pt_fail_errno(e, "cannot make the scratch folder %s", folder);
		free(folder);
		return -1;
	}
	s->folder = folder;
	if (asprintf(&s->path, "%s/trace.db", folder) < 0) {
		s->path = NULL;
		return pt_fail_no_memory(e, NULL);
	}
	scratch.mode = 0600;
	scratch.replace = false;
	s->scratch = pt_sqlite_sink_create(s->path, &scratch, e);
	return s->scratch ? 0 : -1;
}

struct pt_sink *pt_clickhouse_sink_create(const char *url, const struct pt_sink_options *options,
					  struct pt_error *e)
{
	static const struct pt_sink_ops ops = {record, commit, destroy, busy_with};
	struct clickhouse_sink *s = calloc(1, sizeof *s);

	if (!s) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	s->sink.ops = &ops;
	s->load.server = &s->server;
	s->load.replace = options->replace;
	s->load.ret_there = options->ret_there;
	if (server_init(&s->server, url, options, e) == 0 && server_prepare(&s->server, e) == 0 &&
	    make_scratch(s, options, e) == 0) {
		server_well(&s->server);
		return &s->sink;
	}
	destroy(&s->sink);
	return NULL;
}

/*
 * ---- Without a stream -----------------------------------------------------------------------------------
 */

/* A column of a line of TabSeparatedRaw, NULL for what was not known. */
static char *field(char **line)
{
	char *f = strsep(line, "\t");

	return f && strcmp(f, "\\N") != 0 ? f : NULL;
}

int pt_clickhouse_list(const char *url, const struct pt_sink_options *options,
		       void (*one)(void *arg, const struct manage_trace *t), void *arg, struct pt_error *e)
{
	struct server s;
	char *text = NULL, *next, *line;
	int r = server_init(&s, url, options, e);

	if (!r && !(r = server_check(&s, e))) {
		text = server_text(
		    &s,
		    "SELECT id, ifNull(toString(branches), '\\\\N'), ifNull(toString(errors), '\\\\N'),"
		    " ifNull(start, '\\\\N'), ifNull(toString(uuid), '\\\\N'),"
		    " replaceRegexpAll(ifNull(toString(name), '\\\\N'), '[\\t\\n]', ' ')"
		    " FROM traces ORDER BY id FORMAT TabSeparatedRaw",
		    e);
		r = text ? 0 : -1;
	}
	for (next = text; !r && (line = strsep(&next, "\n"));) {
		struct manage_trace t = {0};
		const char *number;

		if (!*line)
			continue;
		t.id = (number = field(&line)) ? strtoll(number, NULL, 10) : -1;
		t.branches = (number = field(&line)) ? strtoll(number, NULL, 10) : -1;
		t.errors = (number = field(&line)) ? strtoll(number, NULL, 10) : -1;
		t.start = field(&line);
		t.uuid = field(&line);
		t.name = field(&line);
		one(arg, &t);
	}
	free(text);
	server_deinit(&s);
	return r;
}

static int delete_trace(struct server *s, int64_t trace, struct pt_error *e)
{
	unsigned long long there;
	char *sql, *condition;
	int r;

	if (asprintf(&sql, "SELECT count() FROM traces WHERE id = %lld", (long long)trace) < 0)
		sql = NULL;
	if (server_number(s, sql, &there, e) < 0)
		return -1;
	if (!there)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s has no trace %lld",
			       clickhouse_url(s->clickhouse), (long long)trace);
	if (asprintf(&condition, "trace = %lld", (long long)trace) < 0)
		return pt_fail_no_memory(e, NULL);
	r = load_give_up(s, condition, e);
	free(condition);
	return r < 0 ? -1 : load_clean(s, e);
}

int pt_clickhouse_delete(const char *url, const struct pt_sink_options *options, int64_t trace,
			 struct pt_error *e)
{
	struct server s;
	int r = server_init(&s, url, options, e);

	if (!r && !(r = server_check(&s, e)))
		r = delete_trace(&s, trace, e);
	server_deinit(&s);
	return r;
}

int pt_clickhouse_clean(const char *url, const struct pt_sink_options *options, struct pt_error *e)
{
	struct server s;
	int r;

	if (!clickhouse_is_url(url))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s: only a ClickHouse database is cleaned",
			       url);
	r = server_init(&s, url, options, e);
	if (!r && !(r = server_prepare(&s, e)))
		r = s.sharded
			? pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				  "%s has the tables of other servers: clean the database of each of them",
				  url)
			: load_clean(&s, e);
	server_deinit(&s);
	return r;
}
