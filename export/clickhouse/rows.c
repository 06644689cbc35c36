/* rows.c - see rows.h. */
#include "export/clickhouse/rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "export/db.h"
#include "schema/array.h"
#include "schema/sql_macros.h"

/* A block is one part of a table, which the server writes whole or not at all: less than its
 * max_insert_block_size. */
enum { BLOCK_ROWS = 500000, BLOCK_BYTES = 64 << 20, COLUMNS_MAX = 128 };

struct column {
	const char *name;
	enum { OF_SQLITE, LOAD, DAY, HOST, TRACE } from;
	enum { INTEGER, REAL, TEXT, ARRAY } kind;
	unsigned bytes; /* of an INTEGER, and of an ARRAY's */
	bool is_signed, nullable;
	int part; /* of a number in three columns, which follow each other; -1: all of it */
	int at;	  /* of the statement */
};

struct rows {
	sqlite3_stmt *statement;
	const char *table;
	struct rows_constants constants;
	struct column columns[COLUMNS_MAX];
	size_t count;
	char *names;
	bool over;
	unsigned char *raw;
	size_t raw_bytes, raw_room;
	unsigned char *packed;
	size_t packed_room;
};

/* Where a table has not just the rows of the view of its name. */
static const struct {
	const char *table, *sql;
} sources[] = {
    {"run_data",
     "SELECT id, slice, path, repeats, edges, exact, tsc, tsc_end - tsc AS end_add, tsc_est - tsc AS est_add,"
     " coalesce(tsc_end, tsc) - tsc_next AS end_next, cyc_count, insn_count, cpu, machine, vcpu, pid, tid, "
     "comm, time_zero, "
     "time_mult,"
     " time_shift, back FROM run"},
    {"edges_data", "SELECT x.*, e.kind AS kind_id FROM edges x JOIN edge e ON e.id = x.id"},
    /* The view function_calls, and what its rows are made of. */
    {"function_calls_data",
     "SELECT c.id, c.call_tsc AS tsc, m.name AS machine, th.pid, th.tid, th.comm, x.symbol,"
     " nullif(coalesce(x.function, '0'), x.symbol) AS place, x.demangled, coalesce(p.function, '0') AS "
     "caller,"
     " p.demangled AS caller_demangled, c.elapsed_tsc, c.insn_count, c.cyc_count, c.branch_count, c.flags,"
     " c.return_branch, c.return_branch - c.call_branch AS branch_span,"
     " CASE WHEN c.return_branch IS NULL THEN c.call_branch END AS call_branch, c.parent - c.id AS "
     "parent_add,"
     " c.call_path, c.thread, CASE WHEN c.call_tsc IS NULL THEN c.return_tsc END AS return_tsc,"
     " t.time_zero, t.time_mult, t.time_shift"
     " FROM call c CROSS JOIN trace t LEFT JOIN thread th ON th.id = c.thread"
     " LEFT JOIN machine m ON m.id = th.machine LEFT JOIN call_tree x ON x.id = c.call_path"
     " LEFT JOIN call_tree p ON p.id = x.parent WHERE t.id = c.trace"},
    {"call_tree_data", "SELECT *, nullif(function, symbol) AS place FROM call_tree"},
    {"vmexits_data",
     "SELECT x.*, t.time_mult, t.time_shift FROM vmexits x LEFT JOIN traces t ON t.id = x.trace"},
    {"guest_runs_data",
     "SELECT x.*, t.time_mult, t.time_shift FROM guest_runs x LEFT JOIN traces t ON t.id = x.trace"},
    {"paths_data",
     "SELECT p.id AS path,"
     " (SELECT group_concat(edge) FROM (SELECT q.edge FROM path_edge q WHERE q.path = p.id ORDER BY q.id)) "
     "AS edge,"
     " (SELECT group_concat(n) FROM (SELECT q.insn_count AS n FROM path_edge q WHERE q.path = p.id ORDER BY "
     "q.id)) AS insn,"
     " p.insn_count, p.not_taken, p.tail_insns, p.runs, coalesce(p.repeats, p.runs) AS repeats, p.start, "
     "p.end_ip,"
     " p.insn_timed, p.cyc_count FROM path p"},
    {"symbols_data",
     "SELECT s.id, m.name AS machine, d.name AS dso, d.build_id, s.start_ip, s.end_ip, s.base, s.name, "
     "s.demangled, s.unnamed"
     " FROM symbol s LEFT JOIN dso d ON d.id = s.dso LEFT JOIN machine m ON m.id = s.machine"},
};

/* 2 of X_2: see schema/clickhouse/tables.sql. */
static int part_of(const char *name)
{
	size_t n = strlen(name);

	return n > 2 && name[n - 2] == '_' && name[n - 1] >= '0' && name[n - 1] <= '2' ? name[n - 1] - '0'
										       : -1;
}

/* What stands in the parentheses of NAME(...); NULL: it is no such type. */
static char *inside(char *type, const char *name)
{
	size_t n = strlen(name), length = strlen(type);

	if (strncmp(type, name, n) != 0 || type[n] != '(' || type[length - 1] != ')')
		return NULL;
	type[length - 1] = 0;
	return type + n + 1;
}

static bool read_type(struct column *c, char *type)
{
	static const char *const integers[] = {"Int8",	"Int16",  "Int32",  "Int64",
					       "UInt8", "UInt16", "UInt32", "UInt64"};
	char *in;

	if ((in = inside(type, "LowCardinality")))
		type = in;
	if ((in = inside(type, "Nullable"))) {
		c->nullable = true;
		type = in;
	}
	if ((in = inside(type, "Array"))) {
		c->kind = ARRAY;
		type = in;
	}
	for (unsigned i = 0; i < 8; i++)
		if (!strcmp(type, integers[i])) {
			c->bytes = 1U << i % 4;
			c->is_signed = i < 4;
			return true;
		}
	if (!strcmp(type, "Date")) {
		c->bytes = 2;
		return true;
	}
	if (c->kind == ARRAY)
		return false;
	c->kind = !strcmp(type, "Float64") ? REAL : TEXT;
	return c->kind == REAL || !strcmp(type, "String");
}

static int read_column(struct rows *r, char *line, struct pt_error *e)
{
	struct column *c = &r->columns[r->count];
	char *tab = strchr(line, '\t');

	if (!tab || r->count == COLUMNS_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s has columns that are not known here",
			       r->table);
	*tab = 0;
	c->name = line;
	c->part = part_of(line);
	c->from = !strcmp(line, "load")	   ? LOAD
		  : !strcmp(line, "day")   ? DAY
		  : !strcmp(line, "host")  ? HOST
		  : !strcmp(line, "trace") ? TRACE
					   : OF_SQLITE;
	if (!strcmp(r->table, "traces_data") && !strcmp(line, "id"))
		c->from = TRACE;
	if (strchr(line, '"') || strchr(line, '`') || strchr(line, '\\') || !read_type(c, tab + 1))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s.%s is of a type that is not known here: %s", r->table, line, tab + 1);
	r->count++;
	return 0;
}

/* Tables whose rows are many, or the same in all databases; the others are sqlite_rows. */
static const char many[] = "'number', 'edge', 'path', 'edge_chunk', 'path_chunk', 'run_group', 'run_chunk', "
			   "'call_group', 'call_shape', 'call_whole', 'call_path_code'";

/* SELECT of a table's rows as literals, its trace being the number that the server knows it by. */
static int add_literals(sqlite3_str *to, sqlite3 *db, const char *table, int64_t trace)
{
	sqlite3_stmt *st = NULL;
	char *sql = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q) ORDER BY cid", table);
	bool first = true;
	int r = sql && sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK ? SQLITE_ROW : SQLITE_NOMEM;

	sqlite3_str_appendf(to, "%sSELECT %Q AS \"table\", row_number() OVER () - 1 AS nth, ",
			    sqlite3_str_length(to) > 1 ? " UNION ALL " : "", table);
	while (r == SQLITE_ROW && (r = sqlite3_step(st)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);

		if (!strcmp(name, "trace") || (!strcmp(table, "trace") && !strcmp(name, "id")))
			sqlite3_str_appendf(to, "%s'%lld'", first ? "" : "||','||", (long long)trace);
		else
			sqlite3_str_appendf(to, "%squote(\"%w\")", first ? "" : "||','||", name);
		first = false;
	}
	sqlite3_str_appendf(to, " AS literals FROM \"%w\"", table);
	sqlite3_finalize(st);
	sqlite3_free(sql);
	return r == SQLITE_DONE ? 0 : -1;
}

/* What sqlite_rows_data has: rows of all tables that are not many. NULL: failed. */
static char *literals_sql(sqlite3 *db, int64_t trace)
{
	sqlite3_str *to = sqlite3_str_new(NULL);
	sqlite3_stmt *st = NULL;
	char *sql = sqlite3_mprintf("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN (%s)"
				    " AND name NOT LIKE 'sqlite%%' ORDER BY name",
				    many);
	int r = sql && sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK ? SQLITE_ROW : SQLITE_NOMEM;

	while (r == SQLITE_ROW && (r = sqlite3_step(st)) == SQLITE_ROW)
		if (add_literals(to, db, (const char *)sqlite3_column_text(st, 0), trace) < 0)
			r = SQLITE_NOMEM;
	sqlite3_finalize(st);
	sqlite3_free(sql);
	sql = sqlite3_str_finish(to);
	if (r == SQLITE_DONE)
		return sql;
	sqlite3_free(sql);
	return NULL;
}

/* What a table's rows are made of, where that is not the view of its name: for sqlite3_free(). */
static char *source_of(const struct rows *r, sqlite3 *db)
{
	if (!strcmp(r->table, "sqlite_rows_data"))
		return literals_sql(db, r->constants.trace);
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
		if (!strcmp(r->table, sources[i].table))
			return sqlite3_mprintf("%s", sources[i].sql);
	return sqlite3_mprintf("SELECT * FROM \"%.*w\"", (int)(strlen(r->table) - strlen("_data")), r->table);
}

static int name_length(const struct column *c)
{
	return (int)strlen(c->name) - (c->part < 0 ? 0 : 2);
}

/* The SELECT of the columns that SQLite has, and their names for the INSERT. */
static char *make_sql(struct rows *r, sqlite3 *db)
{
	sqlite3_str *sql = sqlite3_str_new(NULL), *names = sqlite3_str_new(NULL);
	char *source = source_of(r, db);
	int at = 0;

	sqlite3_str_appendall(sql, "SELECT 0");
	for (size_t i = 0; i < r->count; i++) {
		sqlite3_str_appendf(names, "%s`%s`", i ? ", " : "", r->columns[i].name);
		if (r->columns[i].from != OF_SQLITE)
			continue;
		if (r->columns[i].part <= 0)
			sqlite3_str_appendf(sql, ", \"%.*w\"", name_length(&r->columns[i]),
					    r->columns[i].name);
		r->columns[i].at = r->columns[i].part <= 0 ? ++at : at;
	}
	sqlite3_str_appendf(sql, " FROM (%s)", source ? source : "");
	sqlite3_free(source);
	r->names = sqlite3_str_finish(names);
	return sqlite3_str_finish(sql);
}

struct rows *rows_create(sqlite3 *db, const char *table, char *columns,
			 const struct rows_constants *constants, struct pt_error *e)
{
	struct rows *r = calloc(1, sizeof *r);
	char *sql = NULL, *line, *next = columns, *plain = NULL;
	int failed = 0;

	if (!r) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	r->table = table;
	r->constants = *constants;
	while (!failed && (line = strsep(&next, "\n")))
		failed = *line && read_column(r, line, e) < 0;
	if (!failed) {
		sql = make_sql(r, db);
		failed = !sql || !r->names;
		if (failed)
			pt_fail_no_memory(e, NULL);
	}
	if (!failed)
		failed = !(plain = pt_sql_expand(sql, e));
	if (!failed && sqlite3_prepare_v2(db, plain, -1, &r->statement, NULL) != SQLITE_OK) {
		failed = 1;
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s has columns that are not known here: %s", table,
			sqlite3_errmsg(db));
	}
	sqlite3_free(sql);
	free(plain);
	if (!failed)
		return r;
	rows_destroy(r);
	return NULL;
}

void rows_destroy(struct rows *r)
{
	if (!r)
		return;
	sqlite3_finalize(r->statement);
	sqlite3_free(r->names);
	free(r->raw);
	free(r->packed);
	free(r);
}

const char *rows_columns(const struct rows *r)
{
	return r->names;
}

/*
 * ---- Values ---------------------------------------------------------------------------------------------
 */

static int put(struct rows *r, const void *bytes, size_t n, struct pt_error *e)
{
	while (r->raw_room - r->raw_bytes < n)
		if (pt_array_grow(&r->raw, r->raw_room, &r->raw_room, e))
			return -1;
	if (n)
		memcpy(r->raw + r->raw_bytes, bytes, n);
	r->raw_bytes += n;
	return 0;
}

static int put_varint(struct rows *r, uint64_t v, struct pt_error *e)
{
	unsigned char bytes[10];
	size_t n = 0;

	for (; v > 127; v >>= 7)
		bytes[n++] = (unsigned char)(v | 128);
	bytes[n++] = (unsigned char)v;
	return put(r, bytes, n, e);
}

static int put_text(struct rows *r, const void *text, size_t n, struct pt_error *e)
{
	return put_varint(r, n, e) < 0 ? -1 : put(r, text, n, e);
}

static bool fits(const struct column *c, int64_t v)
{
	unsigned bits = 8 * c->bytes;

	if (c->bytes == 8)
		return c->is_signed || v >= 0;
	return c->is_signed ? v >= -(1LL << (bits - 1)) && v < 1LL << (bits - 1) : v >= 0 && v < 1LL << bits;
}

static int put_integer(struct rows *r, const struct column *c, int64_t v, struct pt_error *e)
{
	if (!fits(c, v))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s.%s: %lld does not fit the column",
			       r->table, c->name, (long long)v);
	return put(r, &v, c->bytes, e); /* little endian, as this machine */
}

/* "1,2,3" */
static int put_array(struct rows *r, const struct column *c, const char *text, struct pt_error *e)
{
	uint64_t n = text && *text;
	char *end;

	for (const char *p = text; p && *p; p++)
		n += *p == ',';
	if (put_varint(r, n, e) < 0)
		return -1;
	for (; n; n--, text = end + 1)
		if (put_integer(r, c, strtoll(text, &end, 10), e) < 0)
			return -1;
	return 0;
}

static int64_t take_part(const struct column *c, int64_t v)
{
	return c->part < 0 ? v : c->part == 2 ? v >> 16 : v >> 8 * c->part & 255;
}

static int put_value(struct rows *r, const struct column *c, struct pt_error *e)
{
	int type = sqlite3_column_type(r->statement, c->at);
	double real;

	if (c->nullable && put(r, type == SQLITE_NULL ? "\1" : "\0", 1, e) < 0)
		return -1;
	if (type == SQLITE_NULL && c->nullable)
		return 0;
	if (type == SQLITE_NULL && c->kind != ARRAY && c->part < 1)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s.%s is not known, and the column has no NULL", r->table, c->name);
	switch (c->kind) {
	case INTEGER: return put_integer(r, c, take_part(c, sqlite3_column_int64(r->statement, c->at)), e);
	case REAL: real = sqlite3_column_double(r->statement, c->at); return put(r, &real, sizeof real, e);
	case ARRAY: return put_array(r, c, (const char *)sqlite3_column_text(r->statement, c->at), e);
	default: {
		const unsigned char *text = sqlite3_column_text(r->statement, c->at);

		return put_text(r, text ? (const void *)text : "",
				(size_t)sqlite3_column_bytes(r->statement, c->at), e);
	}
	}
}

static int put_row(struct rows *r, struct pt_error *e)
{
	const struct rows_constants *k = &r->constants;
	int ret = 0;

	for (size_t i = 0; !ret && i < r->count; i++) {
		const struct column *c = &r->columns[i];

		switch (c->from) {
		case LOAD: ret = put(r, &k->load, sizeof k->load, e); break;
		case DAY: ret = put(r, &k->day, sizeof k->day, e); break;
		case HOST: ret = put_text(r, k->host, strlen(k->host), e); break;
		case TRACE: ret = put(r, &k->trace, sizeof k->trace, e); break;
		default: ret = put_value(r, c, e);
		}
	}
	return ret;
}

/*
 * ---- Blocks ---------------------------------------------------------------------------------------------
 */

static int pack(struct rows *r, size_t *ret_bytes, struct pt_error *e)
{
	z_stream z = {.next_in = r->raw, .avail_in = (uInt)r->raw_bytes};
	size_t room;
	int code;

	/* Level 1: a block is read once, on the same network. */
	if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return pt_fail_no_memory(e, "zlib");
	room = deflateBound(&z, r->raw_bytes);
	if (room > r->packed_room) {
		unsigned char *more = realloc(r->packed, room);

		if (!more) {
			deflateEnd(&z);
			return pt_fail_no_memory(e, "a block of rows");
		}
		r->packed = more;
		r->packed_room = room;
	}
	z.next_out = r->packed;
	z.avail_out = (uInt)r->packed_room;
	code = deflate(&z, Z_FINISH);
	*ret_bytes = z.total_out;
	deflateEnd(&z);
	return code == Z_STREAM_END ? 0
				    : pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "zlib cannot pack a block of rows");
}

int rows_block(struct rows *r, const void **ret, size_t *ret_bytes, uint64_t *ret_rows, struct pt_error *e)
{
	*ret_rows = 0;
	r->raw_bytes = 0;
	while (!r->over && *ret_rows < BLOCK_ROWS && r->raw_bytes < BLOCK_BYTES) {
		int code = sqlite3_step(r->statement);

		r->over = code != SQLITE_ROW;
		if (code == SQLITE_DONE)
			break;
		if (code != SQLITE_ROW)
			return db_fail(sqlite3_db_handle(r->statement), "reading the scratch database", e);
		if (put_row(r, e) < 0)
			return -1;
		++*ret_rows;
	}
	*ret = r->raw;
	*ret_bytes = 0;
	if (!*ret_rows)
		return 0;
	if (pack(r, ret_bytes, e) < 0)
		return -1;
	*ret = r->packed;
	return 0;
}
