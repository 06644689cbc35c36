/* run_clock.c - see run_clock.h. */
#include "schema/unpack/run_clock.h"

#include <stdbool.h>
#include <stdlib.h>

#include "schema/digit.h"
#include "schema/unpack/sql.h"

enum {
	BLOCK_BITS = 10,
	BLOCK = 1 << BLOCK_BITS, /* runs */
	SLOTS = 1024,		 /* blocks that are held */
	GROUP = 64		 /* runs in a row, at most */
};

struct run_clock {
	sqlite3 *db;
	sqlite3_stmt *groups;
	int64_t held[SLOTS]; /* which block; -1: none */
	int64_t tsc[SLOTS][BLOCK];
};

/* Groups that have one of the runs ?1 .. ?2. */
static const char sql[] =
    "SELECT id, n, tsc, step, time FROM run_group WHERE id > ?1 - 64 AND id <= ?2 ORDER BY id";

struct run_clock *run_clock_create(sqlite3 *db, struct pt_error *e)
{
	struct run_clock *c = malloc(sizeof *c);

	if (!c) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	c->db = db;
	c->groups = unpack_prepare(db, sql, e);
	if (!c->groups) {
		free(c);
		return NULL;
	}
	for (size_t i = 0; i < SLOTS; i++)
		c->held[i] = -1;
	return c;
}

void run_clock_destroy(struct run_clock *c)
{
	if (c)
		sqlite3_finalize(c->groups);
	free(c);
}

/* The runs of the row that lie in the block from run `first` on. */
static int unpack_group(sqlite3_stmt *s, int64_t first, int64_t *tsc, struct pt_error *e)
{
	const uint8_t *step = sqlite3_column_text(s, 3), *time = sqlite3_column_text(s, 4);
	int64_t at = sqlite3_column_int64(s, 0) - first, n = sqlite3_column_int64(s, 1);
	int64_t begin = unpack_number(s, 2);
	uint32_t add[GROUP];

	if (n < 0 || n > GROUP)
		return unpack_damaged("run_group", e);
	for (int i = 0; i < n; i++)
		add[i] = digits_next(&time);
	for (int64_t i = 0; i < n; i++) {
		uint32_t k = step ? digits_next(&step) : (uint32_t)i;

		if (at + i >= 0 && at + i < BLOCK)
			tsc[at + i] = begin == UNPACK_UNKNOWN ? begin : begin + (k < n ? add[k] : 0);
	}
	return 0;
}

static int load(struct run_clock *c, int64_t block, int64_t *tsc, struct pt_error *e)
{
	int64_t first = block << BLOCK_BITS;
	int ret = 0, row;

	for (size_t i = 0; i < BLOCK; i++)
		tsc[i] = UNPACK_UNKNOWN;
	sqlite3_bind_int64(c->groups, 1, first);
	sqlite3_bind_int64(c->groups, 2, first + BLOCK - 1);
	while (!ret && (row = sqlite3_step(c->groups)) != SQLITE_DONE)
		ret = row == SQLITE_ROW ? unpack_group(c->groups, first, tsc, e) : unpack_sql_error(c->db, e);
	sqlite3_reset(c->groups);
	return ret;
}

int run_clock_tsc(struct run_clock *c, int64_t run, int64_t *ret_tsc, struct pt_error *e)
{
	int64_t block = run >> BLOCK_BITS;
	size_t slot = (size_t)block % SLOTS;

	if (run < 0) { /* only a damaged database asks for that */
		*ret_tsc = UNPACK_UNKNOWN;
		return 0;
	}
	if (c->held[slot] != block) {
		c->held[slot] = -1;
		if (load(c, block, c->tsc[slot], e) < 0)
			return -1;
		c->held[slot] = block;
	}
	*ret_tsc = c->tsc[slot][run & (BLOCK - 1)];
	return 0;
}
