/* shapes.c - see shapes.h. */
#include "schema/unpack/shapes.h"

#include <stdlib.h>

#include "schema/array.h"
#include "schema/digit.h"
#include "schema/unpack/sql.h"

enum {
	TRACE_SHIFT = 32, /* of ids: trace * 2^32 + the first shape's number */
	ROW_SHAPES = 64,  /* at most */
	ROW_CALLS = 192,  /* more than any row has: 126 and a shape of 64 */
	ROW_TEXTS = 12,	  /* see row_sql */
	SLOTS = 1024	  /* rows that are held */
};

struct row {
	int64_t index; /* -1: none */
	uint32_t shapes;
	uint32_t begin[ROW_SHAPES + 1];
	struct shape_call calls[ROW_CALLS];
};

struct shapes {
	sqlite3 *db;
	sqlite3_stmt *row;
	int64_t base;	  /* the trace's ids without the number */
	uint32_t *firsts; /* the rows' first shapes, ascending */
	size_t count, room;
	struct row held[SLOTS];
};

static const char ids_sql[] = "SELECT id FROM call_shape WHERE id BETWEEN ?1 AND ?1 + 4294967295 ORDER BY id";
static const char row_sql[] =
    "SELECT begin, path_add, path_add_high, runs_back, runs_back_high, call_at, return_at, "
    "insn_count, insn_count_high, branch_count, flags, caller FROM call_shape WHERE id = ?1";

static int read_ids(struct shapes *s, struct pt_error *e)
{
	sqlite3_stmt *ids = unpack_prepare(s->db, ids_sql, e);
	int ret = ids ? 0 : -1, row = SQLITE_DONE;

	sqlite3_bind_int64(ids, 1, s->base);
	while (!ret && (row = sqlite3_step(ids)) == SQLITE_ROW) {
		ret = pt_array_grow(&s->firsts, s->count, &s->room, e);
		if (!ret)
			s->firsts[s->count++] = (uint32_t)(sqlite3_column_int64(ids, 0) - s->base);
	}
	if (!ret && row != SQLITE_DONE)
		ret = unpack_sql_error(s->db, e);
	sqlite3_finalize(ids);
	return ret;
}

struct shapes *shapes_create(sqlite3 *db, int64_t trace, struct pt_error *e)
{
	struct shapes *s = calloc(1, sizeof *s);

	if (!s) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	s->db = db;
	s->base = (int64_t)((uint64_t)trace << TRACE_SHIFT);
	for (size_t i = 0; i < SLOTS; i++)
		s->held[i].index = -1;
	s->row = unpack_prepare(db, row_sql, e);
	if (s->row && !read_ids(s, e))
		return s;
	shapes_destroy(s);
	return NULL;
}

void shapes_destroy(struct shapes *s)
{
	if (!s)
		return;
	sqlite3_finalize(s->row);
	free(s->firsts);
	free(s);
}

/* Where the shapes of the row begin. False: they are not as promised. */
static int unpack_begins(struct row *r, const uint8_t *begin)
{
	uint32_t at, last = 0;

	r->shapes = 0;
	for (uint32_t i = 0; begin && *begin && i <= ROW_SHAPES; i++) {
		at = digits_next(&begin);
		if (at < last || at > ROW_CALLS)
			return -1;
		r->begin[i] = last = at;
		r->shapes = i;
	}
	return begin && *begin ? -1 : 0;
}

static int unpack_row(struct row *r, sqlite3_stmt *s, struct pt_error *e)
{
	const uint8_t *text[ROW_TEXTS];

	for (int i = 0; i < ROW_TEXTS; i++)
		text[i] = sqlite3_column_text(s, i);
	if (unpack_begins(r, text[0]) < 0)
		return unpack_damaged("call_shape", e);
	for (uint32_t i = 0; r->shapes && i < r->begin[r->shapes]; i++) {
		r->calls[i].path_add = digits_wide(&text[1], &text[2]);
		r->calls[i].runs_back = digits_wide(&text[3], &text[4]);
		r->calls[i].call_at = (uint16_t)digits_next(&text[5]);
		r->calls[i].return_at = (uint16_t)digits_next(&text[6]);
		r->calls[i].insn_count = digits_wide(&text[7], &text[8]);
		r->calls[i].branch_count = digits_next(&text[9]);
		r->calls[i].flags = digits_next(&text[10]);
		r->calls[i].caller = digits_next(&text[11]);
	}
	return 0;
}

static int load(struct shapes *s, struct row *r, size_t index, struct pt_error *e)
{
	int ret;

	r->index = -1;
	sqlite3_bind_int64(s->row, 1, s->base + s->firsts[index]);
	ret = sqlite3_step(s->row) == SQLITE_ROW ? unpack_row(r, s->row, e) : unpack_sql_error(s->db, e);
	sqlite3_reset(s->row);
	if (!ret)
		r->index = (int64_t)index;
	return ret;
}

/* How many rows begin with that shape or one before. */
static size_t rows_up_to(const struct shapes *s, uint32_t number)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->firsts[middle] <= number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int shapes_get(struct shapes *s, uint32_t number, const struct shape_call **ret_calls, uint32_t *ret_n,
	       struct pt_error *e)
{
	size_t index = rows_up_to(s, number);
	struct row *r;
	uint32_t at;

	if (!index--)
		return unpack_damaged("call_shape", e);
	r = &s->held[index % SLOTS];
	if (r->index != (int64_t)index && load(s, r, index, e) < 0)
		return -1;
	at = number - s->firsts[index];
	if (at >= r->shapes)
		return unpack_damaged("call_shape", e);
	*ret_calls = r->calls + r->begin[at];
	*ret_n = r->begin[at + 1] - r->begin[at];
	return 0;
}
