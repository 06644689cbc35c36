/* detail.c - see detail.h. */
#include "queries/detail.h"

#include <stdio.h>
#include <string.h>

#include "queries/canned.h"
#include "queries/database.h"
#include "schema/records.h"

/* The level that has a table's rows; PTR_DETAIL_SUMS: each has. */
static enum ptr_detail level_of_table(const char *table)
{
	static const struct {
		const char *table;
		enum ptr_detail level;
	} levels[] = {{"run_group", PTR_DETAIL_BRANCHES},
		      {"unpacked_run", PTR_DETAIL_BRANCHES},
		      {"unpacked_branch", PTR_DETAIL_BRANCHES},
		      {"unpacked_call", PTR_DETAIL_CALLS},
		      {"call_group", PTR_DETAIL_CALLS},
		      {"call_whole", PTR_DETAIL_CALLS},
		      {"interrupt", PTR_DETAIL_VM}};

	for (size_t i = 0; table && i < sizeof levels / sizeof *levels; i++)
		if (!strcmp(levels[i].table, table))
			return levels[i].level;
	return PTR_DETAIL_SUMS;
}

/* SQLite's authorizer: bit n of the argument: a table of level n is read. */
static int note_reads(void *arg, int action, const char *first, const char *second, const char *database,
		      const char *view)
{
	(void)second, (void)database, (void)view;
	if (action == SQLITE_READ)
		*(unsigned *)arg |= 1u << level_of_table(first);
	return SQLITE_OK;
}

/* What the statement reads, as bits of levels. It is compiled, and not run. */
static unsigned reads_of(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st = NULL;
	unsigned reads = 0;

	sqlite3_set_authorizer(db, note_reads, &reads);
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		reads = 0; /* whoever runs it says why */
	sqlite3_finalize(st);
	database_only_reads(db);
	return reads;
}

static enum ptr_detail level_named(const char *name)
{
	for (int i = 0; name && i < PTR_DETAILS; i++)
		if (!strcmp(ptr_detail_name((enum ptr_detail)i), name))
			return (enum ptr_detail)i;
	return PTR_DETAIL_BRANCHES;
}

/* How many traces there are of each level, and one of the least. */
struct traces {
	unsigned count[PTR_DETAILS];
	sqlite3_int64 last[PTR_DETAILS];
};

static int count_traces(sqlite3 *db, struct traces *ret, struct pt_error *e)
{
	sqlite3_stmt *st = database_prepare(db, "SELECT id, detail FROM trace", e);
	int r;

	memset(ret, 0, sizeof *ret);
	if (!st)
		return -1;
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		enum ptr_detail level = level_named((const char *)sqlite3_column_text(st, 1));

		ret->count[level]++;
		ret->last[level] = sqlite3_column_int64(st, 0);
	}
	sqlite3_finalize(st);
	return r == SQLITE_DONE ? 0 : pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(db));
}

/* The traces that have less than that level: how many, and of one the number and the level. */
static unsigned lacking(const struct traces *t, enum ptr_detail level, sqlite3_int64 *ret_trace,
			enum ptr_detail *ret_level)
{
	unsigned n = 0;

	for (int i = (int)level + 1; i < PTR_DETAILS; i++) {
		n += t->count[i];
		if (t->count[i]) {
			*ret_trace = t->last[i];
			*ret_level = (enum ptr_detail)i;
		}
	}
	return n;
}

static const char *what_of(enum ptr_detail level)
{
	static const char *const names[] = {"branches", "calls", "interrupts"};

	return (unsigned)level < sizeof names / sizeof *names ? names[level] : "all";
}

static unsigned all_of(const struct traces *t)
{
	unsigned n = 0;

	for (int i = 0; i < PTR_DETAILS; i++)
		n += t->count[i];
	return n;
}

int detail_check(sqlite3 *db, const char *path, const char *name, const char *sql, char *note, size_t room,
		 struct pt_error *e)
{
	enum ptr_detail level = PTR_DETAIL_SUMS, there = PTR_DETAIL_BRANCHES;
	sqlite3_int64 trace = 0;
	char needs[16] = "";
	struct traces t;
	unsigned reads, n;

	*note = 0;
	if (count_traces(db, &t, e) < 0)
		return -1;
	if (all_of(&t) == t.count[PTR_DETAIL_BRANCHES])
		return 0;
	if (canned_note(sql, "needs: ", needs, sizeof needs))
		level = level_named(needs);
	n = lacking(&t, level, &trace, &there);
	if (n && n == all_of(&t))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s needs %s, and %s has none: it was decoded with --detail %s. Load it anew "
			       "of pt-decode "
			       "--detail %s%s",
			       name, what_of(level), path, ptr_detail_name(there), ptr_detail_name(level),
			       level == PTR_DETAIL_BRANCHES
				   ? ", or ask for a time: branches-between -p after=NS -p until=NS decodes "
				     "it from the container"
				   : "");
	reads = reads_of(db, sql) | 1u << level;
	/* Calls find their times by runs, which are there for them. */
	if (reads >> PTR_DETAIL_CALLS & 1)
		reads &= ~(1u << PTR_DETAIL_BRANCHES);
	for (int i = 0; i < PTR_DETAIL_SUMS; i++) {
		n = reads >> i & 1 ? lacking(&t, (enum ptr_detail)i, &trace, &there) : 0;
		if (!n)
			continue;
		snprintf(
		    note, room,
		    "trace %lld%s has no %s but for sums (--detail %s): what %s reads of them is not there",
		    (long long)trace, n > 1 ? ", as others," : "", what_of((enum ptr_detail)i),
		    ptr_detail_name(there), name);
		break;
	}
	return 0;
}
