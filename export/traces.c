/* traces.c - see traces.h. */
#include "export/traces.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/db.h"
#include "schema/array.h"
#include "schema/records.h"
#include "schema/version.h"

/* FNV-1a over the text and its NUL. */
static uint64_t fnv(uint64_t h, const char *s)
{
	do
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	while (*s++);
	return h;
}

#define FNV_BASIS 0xcbf29ce484222325u

static uint64_t hash_of(const char *key)
{
	return pt_hash_mix(fnv(FNV_BASIS, key));
}

static uint64_t pair_hash(const void *pairs, uint32_t n)
{
	return ((const struct trace_pair *)pairs)[n - 1].hash;
}

/* The key's first pair, NULL: there is none. */
static struct trace_pair *first_pair(const struct trace_meta *m, const char *key, uint64_t hash)
{
	uint32_t n;

	if (!m->count)
		return NULL;
	for (uint32_t i = pt_hash_first(&m->by_key, hash); (n = m->by_key.slots[i]);
	     i = pt_hash_next(&m->by_key, i))
		if (m->pairs[n - 1].hash == hash && !strcmp(m->pairs[n - 1].key, key))
			return &m->pairs[n - 1];
	return NULL;
}

/* Appends the pair, of which key and value are taken when that succeeds. */
static int append(struct trace_meta *m, struct trace_pair pair, struct pt_error *e)
{
	struct trace_pair *first = first_pair(m, pair.key, pair.hash);

	if (first)
		first->last = m->count;
	else if ((!m->by_key.slots && pt_hash_init(&m->by_key, 6, e)) ||
		 pt_hash_insert(&m->by_key, pair.hash, (uint32_t)m->count + 1, pair_hash, m->pairs, e))
		return -1;
	m->pairs[m->count++] = pair;
	return 0;
}

int trace_meta_add(struct trace_meta *m, const char *key, const char *value, struct pt_error *e)
{
	struct trace_pair pair = {.hash = hash_of(key), .last = m->count};

	if (pt_array_grow(&m->pairs, m->count, &m->room, e))
		return -1;
	pair.key = strdup(key);
	pair.value = strdup(value);
	if (pair.key && pair.value) {
		if (append(m, pair, e) == 0)
			return 0;
	} else {
		pt_fail_no_memory(e, "META");
	}
	free(pair.key);
	free(pair.value);
	return -1;
}

void trace_meta_deinit(struct trace_meta *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free(m->pairs[i].key);
		free(m->pairs[i].value);
	}
	free(m->pairs);
	pt_hash_deinit(&m->by_key);
	memset(m, 0, sizeof *m);
}

const char *trace_meta_get(const struct trace_meta *m, const char *key)
{
	const struct trace_pair *first = first_pair(m, key, hash_of(key));

	return first ? m->pairs[first->last].value : NULL;
}

/* ---- Identity ----------------------------------------------------------------------------------------- */

void trace_identity(const struct trace_meta *m, char ret[64])
{
	const char *uuid = trace_meta_get(m, "uuid");
	uint64_t a = FNV_BASIS, b = 0x84222325cbf29ce4u;
	bool any = false;

	if (uuid && *uuid) {
		snprintf(ret, 64, "%s", uuid);
		return;
	}
	for (size_t i = 0; i < m->count; i++) {
		if (!strncmp(m->pairs[i].key, "decode.", 7))
			continue;
		any = true;
		a = fnv(fnv(a, m->pairs[i].key), m->pairs[i].value);
		b = fnv(fnv(b, m->pairs[i].value), m->pairs[i].key);
	}
	if (any)
		snprintf(ret, 64, "meta-%016" PRIx64 "%016" PRIx64, a, b);
	else
		*ret = 0;
}

int trace_find(sqlite3 *db, const char *identity, int64_t *ret, struct pt_error *e)
{
	char *sql;
	int result;

	*ret = 0;
	if (!*identity)
		return 0;
	sql = sqlite3_mprintf("SELECT id FROM trace WHERE uuid = %Q", identity);
	if (!sql)
		return pt_fail_no_memory(e, NULL);
	result = db_number(db, sql, 0, ret, e);
	sqlite3_free(sql);
	return result;
}

int trace_delete(sqlite3 *db, int64_t trace, struct pt_error *e)
{
	/* Tables without a column `trace` are cleared by the ranges in the trace's row, which is
	 * deleted last. */
	char *sql = sqlite3_mprintf("CREATE TEMP TABLE gone AS SELECT * FROM trace WHERE id = %lld;"
				    "DELETE FROM path_chunk WHERE id >= (SELECT first_path << 24 FROM gone)"
				    " AND id < (SELECT (last_path + 1) << 24 FROM gone);"
				    "DELETE FROM edge_chunk WHERE id >= (SELECT first_edge << 24 FROM gone)"
				    " AND id < (SELECT (last_edge + 1) << 24 FROM gone);"
				    "DELETE FROM run_group WHERE id BETWEEN (SELECT first_run FROM gone) AND "
				    "(SELECT last_run FROM gone);"
				    "DELETE FROM run_chunk WHERE id BETWEEN (SELECT first_run FROM gone) AND "
				    "(SELECT last_run FROM gone);"
				    "DELETE FROM call_shape WHERE id >> 32 = (SELECT id FROM gone);"
				    "DELETE FROM call_path_code WHERE id >> 11 = (SELECT id FROM gone);"
				    "DROP TABLE gone;",
				    (long long)trace);
	static const char *const tables[] = {"trace_meta",   "machine",
					     "thread",	     "dso",
					     "symbol",	     "edge",
					     "path",	     "slice",
					     "call_path",    "call_group",
					     "call_whole",   "event",
					     "error",	     "thread_path_group",
					     "interrupt",    "guest_run",
					     "vm_exit",	     "vm_clock",
					     "code",	     "source_file",
					     "path_version", "inlined_call",
					     "time_bin"};
	int ret;

	if (!sql)
		return pt_fail_no_memory(e, NULL);
	ret = db_exec(db, sql, e);
	sqlite3_free(sql);
	for (size_t i = 0; !ret && i <= sizeof tables / sizeof *tables; i++) {
		if (i < sizeof tables / sizeof *tables)
			sql =
			    sqlite3_mprintf("DELETE FROM %s WHERE trace = %lld", tables[i], (long long)trace);
		else
			sql = sqlite3_mprintf("DELETE FROM trace WHERE id = %lld", (long long)trace);
		ret = sql ? db_exec(db, sql, e) : pt_fail_no_memory(e, NULL);
		sqlite3_free(sql);
	}
	return ret;
}

/* What sql says is the last id of `what`. More than most, or less than 0, is no id of pt-load's. */
static int last_id(sqlite3 *db, const char *sql, const char *what, int64_t most, int64_t *ret,
		   struct pt_error *e)
{
	if (db_number(db, sql, 0, ret, e) < 0)
		return -1;
	if (*ret >= 0 && *ret <= most)
		return 0;
	return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		       "%s: the table %s has the id %" PRId64 ", and pt-load gives none above %" PRId64
		       ": load into a new database",
		       db_name(db), what, *ret, most);
}

/* A branch's id, run * PTR_RUN_BRANCHES + i, and a path's, with the chunks' bits, are 64-bit integers. */
#define IDS_MAX	 ((int64_t)1 << 40)
#define RUNS_MAX ((int64_t)1 << 48)

int trace_bases(sqlite3 *db, struct trace_bases *ret, struct pt_error *e)
{
	const struct {
		const char *table;
		int64_t *base;
	} all[] = {
	    {"trace", &ret->trace},
	    {"machine", &ret->machine},
	    {"thread", &ret->thread},
	    {"dso", &ret->dso},
	    {"symbol", &ret->symbol},
	    {"edge", &ret->edge},
	    {"path", &ret->path},
	    {"slice", &ret->slice},
	    {"call_path", &ret->call_path},
	    {"event", &ret->event},
	    {"error", &ret->error},
	    {"guest_run", &ret->guest_run},
	    {"vm_exit", &ret->vmexit},
	    {"vm_clock", &ret->vm_clock},
	    {"code", &ret->code},
	    {"source_file", &ret->source_file},
	    {"inlined_call", &ret->inlined_call},
	};
	char sql[64];

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		/* A call shape's id has the trace's in its upper half. */
		int64_t most = all[i].base == &ret->trace ? INT32_MAX - 1 : IDS_MAX;

		snprintf(sql, sizeof sql, "SELECT max(id) FROM %s", all[i].table);
		if (last_id(db, sql, all[i].table, most, all[i].base, e) < 0)
			return -1;
	}
	ret->trace++;
	if (last_id(db, "SELECT max(0, -min(id)) FROM interrupt", "interrupt", RUNS_MAX, &ret->interrupt, e) <
	    0)
		return -1;
	return last_id(db, "SELECT id + n - 1 FROM call_group ORDER BY id DESC LIMIT 1", "call_group",
		       RUNS_MAX, &ret->call, e) < 0 ||
		       last_id(db, "SELECT id + n - 1 FROM thread_path_group ORDER BY id DESC LIMIT 1",
			       "thread_path_group", IDS_MAX, &ret->thread_path, e) < 0 ||
		       last_id(db, "SELECT max(last_run) FROM trace", "trace", RUNS_MAX, &ret->run, e) < 0
		   ? -1
		   : 0;
}

/* ---- The row ------------------------------------------------------------------------------------------ */

/* A number of META, decimal or 0x.... False: there is none. */
static bool number(const struct trace_meta *m, const char *key, uint64_t *ret)
{
	const char *text = trace_meta_get(m, key);
	char *end;

	if (!text || !*text)
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 0);
	return !*end && !errno;
}

/*
 * The views compute (tsc >> shift) * mult + ((tsc & mask) * mult >> shift) in signed 64 bits, and
 * SQLite turns what overflows into a floating-point number. So a clock that would overflow counts as
 * unknown; perf's never do.
 */
static bool clock_fits(uint64_t mult, uint64_t shift, uint64_t last_tsc)
{
	unsigned __int128 limit = (unsigned __int128)1 << 62;

	if (!mult || mult > UINT32_MAX || shift > 62 || ((unsigned __int128)mult << shift) > limit * 2 - 1)
		return false;
	return last_tsc == PTR_NO_TSC || (unsigned __int128)(last_tsc >> shift) * mult < limit;
}

struct trace_clock trace_clock(const struct trace_meta *m, uint64_t last_tsc)
{
	struct trace_clock c = {0};

	c.known = number(m, "time_mult", &c.mult) && number(m, "time_shift", &c.shift) &&
		  clock_fits(c.mult, c.shift, last_tsc);
	if (!c.known || !number(m, "time_zero", &c.zero))
		c.zero = 0;
	return c;
}

static void bind(sqlite3_stmt *s, const char *name, bool known, uint64_t value)
{
	int at = sqlite3_bind_parameter_index(s, name);

	if (known)
		sqlite3_bind_int64(s, at, (int64_t)value);
	else
		sqlite3_bind_null(s, at);
}

static void bind_text(sqlite3_stmt *s, const char *name, const char *value)
{
	sqlite3_bind_text(s, sqlite3_bind_parameter_index(s, name), value && *value ? value : NULL, -1,
			  SQLITE_STATIC);
}

static void bind_range(sqlite3_stmt *s, const char *first, const char *last, int64_t base, uint64_t count)
{
	bind(s, first, true, (uint64_t)base + 1);
	bind(s, last, true, (uint64_t)base + count);
}

static void bind_meta(sqlite3_stmt *s, const struct trace_meta *m, const struct trace_totals *totals)
{
	static const char *const texts[][2] = {{":command", "command"}, {":host", "host"},
					       {":kernel", "kernel"},	{":arch", "arch"},
					       {":cpu", "cpu_name"},	{":engine", "engine"}};
	static const char *const numbers[][2] = {{":start_time", "start_time"}, {":tsc_hz", "tsc_hz"}};
	const char *container = trace_meta_get(m, "decode.container");
	const char *synthetic = trace_meta_get(m, "synthetic");
	struct trace_clock clock = trace_clock(m, totals->last_tsc);
	uint64_t n = 0;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		bind_text(s, texts[i][0], trace_meta_get(m, texts[i][1]));
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		bool known = number(m, numbers[i][1], &n);

		bind(s, numbers[i][0], known, n);
	}
	bind(s, ":time_zero", clock.known, clock.zero);
	bind(s, ":time_mult", clock.known, clock.mult);
	bind(s, ":time_shift", clock.known, clock.shift);
	bind(s, ":synthetic", true, synthetic && !strcmp(synthetic, "1"));
	bind(s, ":complete", container, container && !strcmp(container, "complete"));
}

/* How much of it there is, and where the rest is. */
static void bind_detail(sqlite3_stmt *s, const struct trace_meta *m)
{
	const char *detail = trace_meta_get(m, "decode.detail");
	uint64_t from = 0, until = 0;
	bool part =
	    number(m, "decode.detail_from_tsc", &from) && number(m, "decode.detail_until_tsc", &until);

	bind_text(s, ":detail", detail ? detail : ptr_detail_name(PTR_DETAIL_BRANCHES));
	bind(s, ":detail_from_tsc", part, from);
	bind(s, ":detail_until_tsc", part, until > INT64_MAX ? INT64_MAX : until);
	bind_text(s, ":container", trace_meta_get(m, "decode.container_path"));
}

static int insert_meta(sqlite3 *db, int64_t trace, const struct trace_meta *m, struct pt_error *e)
{
	sqlite3_stmt *s = db_insert(db, "trace_meta", 3, e);
	int ret = s ? 0 : -1;

	for (size_t i = 0; !ret && i < m->count; i++) {
		/* A key that comes again has its last value. */
		if (trace_meta_get(m, m->pairs[i].key) != m->pairs[i].value)
			continue;
		sqlite3_bind_int64(s, 1, trace);
		sqlite3_bind_text(s, 2, m->pairs[i].key, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 3, m->pairs[i].value, -1, SQLITE_STATIC);
		ret = db_run(s, e);
	}
	sqlite3_finalize(s);
	return ret;
}

static void bind_totals(sqlite3_stmt *s, const struct trace_bases *b, const struct trace_totals *t)
{
	bind(s, ":first_tsc", t->first_tsc != PTR_NO_TSC, t->first_tsc);
	bind(s, ":last_tsc", t->last_tsc != PTR_NO_TSC, t->last_tsc);
	bind(s, ":runs", true, t->runs);
	bind(s, ":branches", true, t->branches);
	bind(s, ":insn_count", true, t->insns);
	bind(s, ":not_taken", true, t->not_taken);
	bind(s, ":cyc_count", t->cyc_count != PTR_UNKNOWN, t->cyc_count);
	bind(s, ":calls", true, t->calls);
	bind(s, ":events", true, t->events);
	bind(s, ":errors", true, t->errors);
	bind_range(s, ":first_run", ":last_run", b->run, t->runs);
	bind_range(s, ":first_path", ":last_path", b->path, t->paths);
	bind_range(s, ":first_edge", ":last_edge", b->edge, t->edges);
}

int trace_insert(sqlite3 *db, const struct trace_bases *b, const struct trace_meta *m, const char *name,
		 const struct trace_totals *t, struct pt_error *e)
{
	static const char sql[] =
	    "INSERT INTO trace VALUES (:id, :uuid, :name, :command, :host, :kernel, :arch, :cpu, :engine,"
	    ":synthetic, :start_time, :tsc_hz, :time_zero, :time_mult, :time_shift, :first_tsc, :last_tsc,"
	    ":runs, :branches, :insn_count, :not_taken, :cyc_count, :calls, :events, :errors, :complete,"
	    ":first_run, :last_run, :first_path, :last_path, :first_edge, :last_edge, :load_time,"
	    ":load_version, :detail, :detail_from_tsc, :detail_until_tsc, :container)";
	char identity[64];
	sqlite3_stmt *s;
	int ret;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		return db_fail_main(db, e);
	trace_identity(m, identity);
	bind(s, ":id", true, (uint64_t)b->trace);
	bind_text(s, ":uuid", identity);
	bind_meta(s, m, t);
	bind_text(s, ":name", name ? name : trace_meta_get(m, "command"));
	bind_totals(s, b, t);
	bind_detail(s, m);
	bind(s, ":load_time", true, (uint64_t)time(NULL));
	bind_text(s, ":load_version", PT_VERSION);
	ret = db_run(s, e);
	sqlite3_finalize(s);
	return ret < 0 ? -1 : insert_meta(db, b->trace, m, e);
}

int trace_settle_times(sqlite3 *db, const struct trace_bases *b, const struct trace_meta *m,
		       uint64_t last_tsc, struct pt_error *e)
{
	static const char *const times[][3] = {
	    {"slice", "time_ns", "tsc"},	{"slice", "time_end_ns", "tsc_end"},
	    {"event", "time_ns", "tsc"},	{"error", "time_ns", "tsc"},
	    {"interrupt", "time_ns", "tsc"},	{"guest_run", "time_ns", "entry_tsc"},
	    {"vm_exit", "time_ns", "exit_tsc"},
	};
	struct trace_clock c = trace_clock(m, last_tsc);
	int ret = 0;

	if (c.known == b->clock.known &&
	    (!c.known || (c.zero == b->clock.zero && c.mult == b->clock.mult && c.shift == b->clock.shift)))
		return 0;
	for (size_t i = 0; !ret && i < sizeof times / sizeof *times; i++) {
		char *sql = sqlite3_mprintf("UPDATE %s SET %s = (SELECT TSC_TO_TIME(t, %s) FROM trace t"
					    " WHERE t.id = %lld) WHERE trace = %lld",
					    times[i][0], times[i][1], times[i][2], (long long)b->trace,
					    (long long)b->trace);

		ret = sql ? db_exec_macros(db, sql, e) : pt_fail_no_memory(e, NULL);
		sqlite3_free(sql);
	}
	return ret;
}
