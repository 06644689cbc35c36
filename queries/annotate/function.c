/* function.c - see function.h. */
#include "queries/annotate/function.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schema/array.h"
#include "schema/digit.h"
#include "schema/unpack/sql.h"

/* The symbol that is asked for: the row of the one with the most instructions. */
static const char find_sql[] =
    "SELECT s.id, s.trace, s.name, coalesce(s.demangled, s.name), s.start_ip, s.end_ip, d.name,"
    " coalesce(s.unnamed, 0), s.dso"
    " FROM (SELECT c.symbol, sum(c.n * c.count) AS insns FROM code c"
    "  WHERE (?2 IS NULL OR (?2 >= c.ip AND ?2 < c.ip + length(c.bytes))) AND (?1 IS NULL OR c.symbol IN"
    "  (SELECT n.id FROM symbol n WHERE n.name = ?1 OR n.demangled = ?1)) GROUP BY c.symbol) k"
    " JOIN symbol s ON s.id = k.symbol LEFT JOIN dso d ON d.id = s.dso"
    " WHERE (?1 IS NULL OR s.name = ?1 OR s.demangled = ?1)"
    "  AND (?3 IS NULL OR d.name = ?3 OR d.name LIKE '%/' || ?3) ORDER BY k.insns DESC LIMIT 1";

/* The code of all symbols of that name, size and file; of one without a name, what lies in a range. */
static const char code_sql[] =
    "SELECT c.ip, coalesce(c.version, 1), coalesce(c.bits, 64), c.n, c.insn, c.bytes, c.count, c.insn_timed,"
    " c.cyc_count, c.file, c.line, s.start_ip,"
    " c.inlined_call"
    " FROM code c JOIN symbol s ON s.id = c.symbol JOIN symbol w ON w.id = ?1"
    " JOIN dso d ON d.id = s.dso JOIN dso x ON x.id = w.dso"
    " WHERE c.trace = w.trace AND s.name = w.name AND s.end_ip - s.start_ip = w.end_ip - w.start_ip"
    "  AND d.name IS x.name AND d.build_id IS x.build_id"
    "  AND (?2 IS NULL OR (s.id = w.id AND c.ip >= ?2 AND (?3 IS NULL OR c.ip < ?3)))";

/* Between which targets of calls an address without a symbol lies. */
static const char bounds_sql[] = "SELECT (SELECT max(to_ip) FROM edge WHERE trace = ?1 AND kind & 31 IN (4, "
				 "5) AND to_ip <= ?2 AND to_symbol = ?3),"
				 " (SELECT min(to_ip) FROM edge WHERE trace = ?1 AND kind & 31 IN (4, 5) AND "
				 "to_ip > ?2 AND to_symbol = ?3)";

static int add_insn(struct fn *f, const struct fn_insn *insn, struct pt_error *e)
{
	if (pt_array_grow(&f->insns, f->count, &f->room, e) < 0)
		return -1;
	f->insns[f->count++] = *insn;
	if (insn->ip < f->low)
		f->low = insn->ip;
	if (insn->ip + insn->len > f->high)
		f->high = insn->ip + insn->len;
	return 0;
}

/* A row of code_sql. */
static int add_code(struct fn *f, sqlite3_stmt *s, struct pt_error *e)
{
	const uint8_t *offsets = sqlite3_column_text(s, 4), *lines = sqlite3_column_text(s, 10);
	const uint8_t *bytes = sqlite3_column_blob(s, 5);
	uint64_t ip = (uint64_t)sqlite3_column_int64(s, 0);
	uint32_t n = (uint32_t)sqlite3_column_int64(s, 3), size = (uint32_t)sqlite3_column_bytes(s, 5);
	uint32_t at = digits_next(&offsets);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t end = i + 1 < n ? digits_next(&offsets) : size;
		struct fn_insn insn = {.ip = ip + at,
				       .start = (uint64_t)sqlite3_column_int64(s, 11),
				       .count = (uint64_t)sqlite3_column_int64(s, 6),
				       .insn_timed = sqlite3_column_double(s, 7),
				       .cycles = sqlite3_column_double(s, 8),
				       .version = (uint32_t)sqlite3_column_int64(s, 1),
				       .bits = (uint32_t)sqlite3_column_int64(s, 2),
				       .line = digits_next(&lines),
				       .file = sqlite3_column_int64(s, 9),
				       .inlined = sqlite3_column_int64(s, 12),
				       .next = NO_INSN};

		if (end <= at || end > size || end - at > sizeof insn.bytes)
			return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				       "the table code is damaged at %" PRIx64, ip);
		insn.len = (uint8_t)(end - at);
		memcpy(insn.bytes, bytes + at, insn.len);
		at = end;
		if (add_insn(f, &insn, e) < 0)
			return -1;
	}
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct fn_insn *x = a, *y = b;

	if (x->version != y->version)
		return x->version < y->version ? -1 : 1;
	return x->ip < y->ip ? -1 : x->ip > y->ip;
}

uint32_t fn_find(const struct fn *f, uint32_t version, uint64_t ip)
{
	const struct fn_insn key = {.version = version, .ip = ip}, *found;

	if (ip < f->low || ip >= f->high)
		return NO_INSN;
	found = bsearch(&key, f->insns, f->count, sizeof key, by_place);
	return found ? (uint32_t)(found - f->insns) : NO_INSN;
}

uint32_t fn_before(const struct fn *f, uint32_t insn)
{
	for (uint32_t i = insn; i-- > 0 && insn - i < 16;)
		if (f->insns[i].next == insn)
			return i;
	return NO_INSN;
}

static int load_code(struct fn *f, sqlite3 *db, sqlite3_stmt *find, uint64_t ip, struct pt_error *e)
{
	sqlite3_stmt *s = NULL, *b = NULL;
	int ret = 0, row;

	if (sqlite3_prepare_v2(db, code_sql, -1, &s, NULL) ||
	    sqlite3_prepare_v2(db, bounds_sql, -1, &b, NULL))
		ret = unpack_sql_error(db, e);
	if (!ret)
		sqlite3_bind_int64(s, 1, sqlite3_column_int64(find, 0));
	if (!ret && sqlite3_column_int(find, 7)) {
		sqlite3_bind_int64(b, 1, f->trace);
		sqlite3_bind_int64(b, 2, (int64_t)ip);
		sqlite3_bind_int64(b, 3, sqlite3_column_int64(find, 0));
		if (sqlite3_step(b) == SQLITE_ROW) {
			sqlite3_bind_int64(s, 2, sqlite3_column_int64(b, 0));
			sqlite3_bind_value(s, 3, sqlite3_column_value(b, 1));
		}
	}
	while (!ret && (row = sqlite3_step(s)) != SQLITE_DONE)
		ret = row == SQLITE_ROW ? add_code(f, s, e) : unpack_sql_error(db, e);
	sqlite3_finalize(s);
	sqlite3_finalize(b);
	return ret;
}

static int no_function(const struct fn_wanted *w, struct pt_error *e)
{
	if (w->name)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "no function %s was executed whose code is known (pt-query DB hot-functions)",
			       w->name);
	if (w->has_ip)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "no code that is known was executed at 0x%" PRIx64, w->ip);
	return pt_fail(
	    e, PT_ERR_USAGE, PT_NO_OFFSET,
	    "no code that was executed is known: there is nothing to annotate (pt-query DB errors)");
}

/* Of code without symbols, the instruction that ran most often. 0: there is none. */
static uint64_t hottest(sqlite3 *db, int64_t symbol)
{
	sqlite3_stmt *s;
	uint64_t ip = 0;

	if (sqlite3_prepare_v2(db,
			       "SELECT ip FROM code WHERE symbol = ?1 ORDER BY n * count DESC, ip LIMIT 1",
			       -1, &s, NULL) != SQLITE_OK)
		return 0;
	sqlite3_bind_int64(s, 1, symbol);
	if (sqlite3_step(s) == SQLITE_ROW)
		ip = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return ip;
}

static int load(struct fn *f, sqlite3 *db, sqlite3_stmt *find, const struct fn_wanted *w, struct pt_error *e)
{
	const char *name = (const char *)sqlite3_column_text(find, w->raw_names ? 2 : 3);
	const char *dso = (const char *)sqlite3_column_text(find, 6);
	uint64_t ip = w->ip;

	f->trace = sqlite3_column_int64(find, 1);
	f->name = strdup(name ? name : "");
	f->dso = strdup(dso ? dso : "");
	if (!f->name || !f->dso)
		return pt_fail_no_memory(e, NULL);
	/* A name of code without symbols stands for all of a file. */
	if (!w->name && !w->has_ip)
		ip = hottest(db, sqlite3_column_int64(find, 0));
	else if (!w->has_ip && sqlite3_column_int(find, 7))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "%s is all code of a file that has no symbols: -p ip=ADDRESS says which part",
			       f->name);
	if (load_code(f, db, find, ip, e) < 0)
		return -1;
	qsort(f->insns, f->count, sizeof *f->insns, by_place);
	for (size_t i = 0; i < f->count; i++)
		f->insns[i].next = fn_find(f, f->insns[i].version, f->insns[i].ip + f->insns[i].len);
	return f->count ? 0 : no_function(w, e);
}

int fn_load(struct fn *f, sqlite3 *db, const struct fn_wanted *w, struct pt_error *e)
{
	sqlite3_stmt *find;
	int ret, row;

	*f = (struct fn){.low = UINT64_MAX};
	if (sqlite3_prepare_v2(db, find_sql, -1, &find, NULL) != SQLITE_OK)
		return unpack_sql_error(db, e);
	if (w->name)
		sqlite3_bind_text(find, 1, w->name, -1, SQLITE_STATIC);
	if (w->has_ip)
		sqlite3_bind_int64(find, 2, (int64_t)w->ip);
	if (w->dso)
		sqlite3_bind_text(find, 3, w->dso, -1, SQLITE_STATIC);
	row = sqlite3_step(find);
	ret = row == SQLITE_ROW	   ? load(f, db, find, w, e)
	      : row == SQLITE_DONE ? no_function(w, e)
				   : unpack_sql_error(db, e);
	sqlite3_finalize(find);
	return ret;
}

void fn_deinit(struct fn *f)
{
	free(f->name);
	free(f->dso);
	free(f->insns);
}
