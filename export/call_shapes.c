/* call_shapes.c - see call_shapes.h. */
#include "export/call_shapes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "export/db.h"
#include "export/digits.h"

struct counted {
	struct call_shape shape;
	uint32_t calls;
};

struct cached {
	struct call_shape shape;
	uint32_t id; /* 0: free */
};

struct call_shapes {
	sqlite3_stmt *insert;
	int64_t trace;
	struct counted *ranked;
	uint32_t count, room;
	uint32_t *slots; /* ranked's number + 1, 0 free */
	uint32_t mask;
	uint32_t *ids; /* by ranked's number, from call_shapes_finish() on */
	struct cached *cache;
	uint32_t next; /* the next id behind the ranked ones */
	/* The row that is being filled: shapes first to first + n - 1 */
	uint32_t first, n;
	struct digits call_path, runs_back, call_at, return_at, branches, insns, flags;
};

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for calls");
}

struct call_shapes *call_shapes_create(sqlite3 *db, int64_t trace, struct pt_error *e)
{
	struct call_shapes *s = calloc(1, sizeof *s);

	if (!s) {
		no_memory(e);
		return NULL;
	}
	s->trace = trace;
	s->next = SHAPES_RANKED;
	s->insert = db_insert(db, "call_shape", 11, e);
	if (!s->insert) {
		free(s);
		return NULL;
	}
	return s;
}

void call_shapes_destroy(struct call_shapes *s)
{
	if (!s)
		return;
	sqlite3_finalize(s->insert);
	free(s->ranked);
	free(s->slots);
	free(s->ids);
	free(s->cache);
	free(s);
}

static uint32_t hash(const struct call_shape *c)
{
	uint64_t h = c->call_path * 0x9e3779b97f4a7c15u;

	h = (h ^ (h >> 29) ^ ((uint64_t)c->insn_count << 32 | c->branch_count)) * 0xbf58476d1ce4e5b9u;
	h = (h ^ (h >> 32) ^
	     ((uint64_t)c->runs_back << 32 | c->call_at << 20 | c->return_at << 8 | c->flags)) *
	    0x94d049bb133111ebu;
	return (uint32_t)(h >> 32);
}

static bool equal(const struct call_shape *a, const struct call_shape *b)
{
	return !memcmp(a, b, sizeof *a); /* it has no padding */
}

/* ---- The table ---------------------------------------------------------------------------------------- */

static int flush(struct call_shapes *s, struct pt_error *e)
{
	sqlite3_stmt *st = s->insert;
	uint32_t n = s->n;

	if (!n)
		return 0;
	sqlite3_bind_int64(st, 1, s->trace << 24 | s->first / DIGITS_ROW);
	digits_bind(&s->call_path, n, st, 2, 3);
	digits_bind(&s->runs_back, n, st, 4, 5);
	digits_bind(&s->call_at, n, st, 6, 0);
	digits_bind(&s->return_at, n, st, 7, 0);
	digits_bind(&s->branches, n, st, 8, 0);
	digits_bind(&s->insns, n, st, 9, 10);
	digits_bind(&s->flags, n, st, 11, 0);
	s->n = 0;
	return db_run(st, e);
}

/* Ids come one after another, from a multiple of DIGITS_ROW on. */
static int put(struct call_shapes *s, const struct call_shape *c, uint32_t id, struct pt_error *e)
{
	uint32_t i = id % DIGITS_ROW;

	if (!i && flush(s, e) < 0)
		return -1;
	if (!i)
		s->first = id;
	digits_set(&s->call_path, i, c->call_path);
	digits_set(&s->runs_back, i, c->runs_back);
	digits_set(&s->call_at, i, c->call_at);
	digits_set(&s->return_at, i, c->return_at);
	digits_set(&s->branches, i, c->branch_count);
	digits_set(&s->insns, i, c->insn_count);
	digits_set(&s->flags, i, c->flags);
	s->n = i + 1;
	return 0;
}

/* ---- Adding ------------------------------------------------------------------------------------------- */

static int grow(struct call_shapes *s, struct pt_error *e)
{
	uint32_t room = s->room ? s->room * 2 : 1024;
	struct counted *ranked = realloc(s->ranked, room * sizeof *ranked);
	uint32_t *slots = calloc((size_t)room * 2, sizeof *slots);

	if (ranked)
		s->ranked = ranked;
	if (!ranked || !slots) {
		free(slots);
		return no_memory(e);
	}
	free(s->slots);
	s->slots = slots;
	s->mask = room * 2 - 1;
	s->room = room;
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t at = hash(&ranked[i].shape) & s->mask;

		while (slots[at])
			at = (at + 1) & s->mask;
		slots[at] = i + 1;
	}
	return 0;
}

static int add_late(struct call_shapes *s, const struct call_shape *shape, uint32_t h, uint32_t *ret_handle,
		    struct pt_error *e)
{
	struct cached *c;

	if (!s->cache && !(s->cache = calloc(SHAPES_CACHED, sizeof *s->cache)))
		return no_memory(e);
	c = &s->cache[h % SHAPES_CACHED];
	if (!c->id || !equal(&c->shape, shape)) {
		if (s->next == DIGITS_MAX) {
			*ret_handle = SHAPE_NONE;
			return 0;
		}
		if (put(s, shape, s->next, e) < 0)
			return -1;
		*c = (struct cached){.shape = *shape, .id = s->next++};
	}
	*ret_handle = c->id;
	return 0;
}

int call_shapes_add(struct call_shapes *s, const struct call_shape *shape, uint32_t *ret_handle,
		    struct pt_error *e)
{
	uint32_t h = hash(shape), at;

	if (s->count == s->room && s->count < SHAPES_RANKED && grow(s, e) < 0)
		return -1;
	for (at = h & s->mask; s->slots[at]; at = (at + 1) & s->mask) {
		struct counted *c = &s->ranked[s->slots[at] - 1];

		if (!equal(&c->shape, shape))
			continue;
		c->calls += c->calls < UINT32_MAX;
		*ret_handle = s->slots[at] - 1;
		return 0;
	}
	if (s->count == SHAPES_RANKED)
		return add_late(s, shape, h, ret_handle, e);
	s->ranked[s->count] = (struct counted){.shape = *shape, .calls = 1};
	*ret_handle = s->count++;
	s->slots[at] = s->count;
	return 0;
}

/* ---- Finishing ---------------------------------------------------------------------------------------- */

/* Calls in the high half, so that one number tells the order; equal ones stay in theirs: the same stream makes the same
 * database. */
static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int call_shapes_finish(struct call_shapes *s, struct pt_error *e)
{
	uint64_t *order = calloc((size_t)s->count + 1, sizeof *order);
	int ret = 0;

	s->ids = calloc((size_t)s->count + 1, sizeof *s->ids);
	if (!order || !s->ids) {
		free(order);
		return no_memory(e);
	}
	for (uint32_t i = 0; i < s->count; i++)
		order[i] = (uint64_t)(UINT32_MAX - s->ranked[i].calls) << 32 | i;
	qsort(order, s->count, sizeof *order, compare);
	ret = flush(s, e);
	for (uint32_t i = 0; !ret && i < s->count; i++) {
		uint32_t n = (uint32_t)order[i];

		s->ids[n] = i;
		ret = put(s, &s->ranked[n].shape, i, e);
	}
	free(order);
	return ret < 0 ? -1 : flush(s, e);
}

uint32_t call_shapes_id(const struct call_shapes *s, uint32_t handle)
{
	return handle < SHAPES_RANKED ? s->ids[handle] : handle;
}
