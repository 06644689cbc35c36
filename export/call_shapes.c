/* call_shapes.c - see call_shapes.h. In memory a shape is the numbers of its calls, in the order of
 * struct shaped_call (schema/leb128.h). */
#include "export/call_shapes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "export/inserter.h"
#include "export/digits.h"
#include "export/spool.h"
#include "schema/array.h"
#include "schema/hash.h"
#include "schema/leb128.h"

enum {
	FIELDS = 8,	  /* of struct shaped_call */
	ROW_CALLS = 126,  /* in a row: their positions are a byte each */
	NUMBER_BYTES = 5, /* of 32 bits, at most */
	TRACE_SHIFT = 32, /* see tables.sql */
	FIRST_COLUMN = 3  /* of the numbers */
};

/* The handle of a ranked shape is its index, that of a late one LATE_HANDLES + its number. */
#define LATE_HANDLES (UINT32_C(1) << 31)

struct ranked {
	struct shape_key key;
	uint32_t at, size; /* in pool */
	uint32_t runs;	   /* how many have it */
};

struct cached {
	struct shape_key key;
	uint32_t number; /* 0: a free slot */
};

/* A row that is being filled: shapes first to first + n - 1, with `calls` calls. */
struct row {
	uint32_t first, n, calls;
	uint32_t begins[DIGITS_ROW + 1], number[FIELDS][ROW_CALLS];
};

struct call_shapes {
	struct insert *insert;
	int64_t trace;
	uint8_t *pool; /* bytes of the ranked shapes */
	size_t pool_bytes, pool_room;
	struct ranked *ranked; /* number n at n - 1 */
	size_t count, room;
	struct pt_hash by_key; /* of ranked's numbers */
	bool full;	       /* what comes is late */
	uint32_t *numbers;     /* by ranked's index, from call_shapes_finish() on */
	struct cached *cache;
	uint32_t next; /* the number of the next late one */
	struct row row;
	/* Rows of late ones wait in a scratch file: until the end the database is another thread's. */
	struct spool *late; /* NULL: there are none */
	uint64_t late_rows;
	int scratch;
};

_Static_assert(sizeof(struct shaped_call) == FIELDS * sizeof(uint32_t), "a shaped call is its numbers");
_Static_assert((int)SHAPE_CALLS <= (int)ROW_CALLS, "a shape fits into a row");

struct call_shapes *call_shapes_create(struct inserter *inserter, int scratch, int64_t trace,
				       struct pt_error *e)
{
	struct call_shapes *s = calloc(1, sizeof *s);

	if (!s) {
		pt_fail_no_memory(e, "calls");
		return NULL;
	}
	s->trace = trace;
	s->scratch = scratch;
	s->next = SHAPES_RANKED + 1;
	s->insert = insert_create(inserter, "call_shape", 13, e);
	if (s->insert && !pt_hash_init(&s->by_key, 11, e))
		return s;
	call_shapes_destroy(s);
	return NULL;
}

void call_shapes_destroy(struct call_shapes *s)
{
	if (!s)
		return;
	insert_destroy(s->insert);
	free(s->pool);
	free(s->ranked);
	pt_hash_deinit(&s->by_key);
	free(s->numbers);
	free(s->cache);
	free(s->late);
	free(s);
}

/*
 * ---- Shapes as bytes ------------------------------------------------------------------------------------
 */

/* The calls in to, which has room for n * FIELDS * NUMBER_BYTES. How many bytes they take. */
static uint32_t pack(const struct shaped_call *calls, uint32_t n, uint8_t *to)
{
	const uint32_t *number = (const uint32_t *)calls;
	uint8_t *p = to;

	for (uint32_t i = 0; i < n * FIELDS; i++)
		p = pt_leb128_put(p, number[i]);
	return (uint32_t)(p - to);
}

/* Returns the number of calls. */
static uint32_t unpack(const uint8_t *bytes, uint32_t size, struct shaped_call *to)
{
	uint32_t *number = (uint32_t *)to, n = 0;

	for (const uint8_t *p = bytes; p < bytes + size; n++)
		number[n] = (uint32_t)pt_leb128_get(&p);
	return n / FIELDS;
}

/* ---- The table ---------------------------------------------------------------------------------------- */

static int insert_row(struct call_shapes *s, struct row *r, struct pt_error *e)
{
	/* Which fields may have two digits. */
	static const bool has_high[FIELDS] = {true, true, false, false, false, true, false, false};
	char begins[sizeof r->begins / sizeof *r->begins * DIGITS_BYTES];
	char text[FIELDS][2][ROW_CALLS * DIGITS_BYTES];
	struct insert *st = s->insert;
	int column = FIRST_COLUMN;

	r->begins[r->n] = r->calls;
	insert_int(st, 1, (s->trace << TRACE_SHIFT) + r->first);
	digits_bind_array(r->begins, r->n + 1, 0, st, 2, begins);
	for (int f = 0; f < FIELDS; f++) {
		digits_bind_array(r->number[f], r->calls, 0, st, column++, text[f][0]);
		if (has_high[f])
			digits_bind_array(r->number[f], r->calls, DIGITS_BITS, st, column++, text[f][1]);
	}
	return insert_run(st, e);
}

/* The row is full. Those of late ones wait. */
static int flush(struct call_shapes *s, struct pt_error *e)
{
	bool late = s->row.first > SHAPES_RANKED;
	int ret = 0;

	if (!s->row.n)
		return 0;
	if (late && !s->late) {
		s->late = calloc(1, sizeof *s->late);
		if (!s->late)
			return pt_fail_no_memory(e, "calls");
		s->late->scratch = s->scratch;
	}
	s->late_rows += late;
	ret = late ? spool_write(s->late, &s->row, sizeof s->row, e) : insert_row(s, &s->row, e);
	s->row.n = s->row.calls = 0;
	return ret;
}

static int insert_late(struct call_shapes *s, struct pt_error *e)
{
	if (s->late && spool_rewind(s->late, e) < 0)
		return -1;
	for (; s->late_rows; s->late_rows--)
		if (spool_read(s->late, &s->row, sizeof s->row, e) < 0 || insert_row(s, &s->row, e) < 0)
			return -1;
	s->row.n = s->row.calls = 0;
	return 0;
}

/* Numbers come one after another, but that the ranked ones begin after the late ones. */
static int put(struct call_shapes *s, const struct shaped_call *calls, uint32_t n, uint32_t number,
	       struct pt_error *e)
{
	struct row *r = &s->row;

	if (r->n && (r->n == DIGITS_ROW || r->calls + n > ROW_CALLS) && flush(s, e) < 0)
		return -1;
	if (!r->n)
		r->first = number;
	r->begins[r->n++] = r->calls;
	for (uint32_t i = 0; i < n; i++, r->calls++)
		for (int f = 0; f < FIELDS; f++)
			r->number[f][r->calls] = ((const uint32_t *)&calls[i])[f];
	return 0;
}

/* ---- Adding ------------------------------------------------------------------------------------------- */

/* For another shape, of as many bytes as one can have. */
static int pool_grow(struct call_shapes *s, struct pt_error *e)
{
	size_t room = s->pool_room ? s->pool_room * 2 : 1 << 16;
	uint8_t *pool;

	if (s->pool_bytes + (size_t)SHAPE_CALLS * FIELDS * NUMBER_BYTES <= s->pool_room)
		return 0;
	pool = realloc(s->pool, room);
	if (!pool)
		return pt_fail_no_memory(e, "calls");
	s->pool = pool;
	s->pool_room = room;
	return 0;
}

static bool is_same(const struct shape_key *a, const struct shape_key *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

/* A shape that is not ranked: its number is known at once. */
static int add_late(struct call_shapes *s, const struct shaped_call *calls, uint32_t n,
		    const struct shape_key *key, uint32_t *ret_handle, struct pt_error *e)
{
	struct cached *c;

	if (!s->cache && !(s->cache = calloc(SHAPES_CACHED, sizeof *s->cache)))
		return pt_fail_no_memory(e, "calls");
	c = &s->cache[key->words[0] % SHAPES_CACHED];
	if (c->number && is_same(&c->key, key)) {
		*ret_handle = LATE_HANDLES + c->number;
		return 0;
	}
	if (s->next == DIGITS_MAX) {
		*ret_handle = SHAPE_NONE;
		return 0;
	}
	if (put(s, calls, n, s->next, e) < 0)
		return -1;
	*ret_handle = LATE_HANDLES + s->next;
	c->number = s->next++;
	c->key = *key;
	return 0;
}

static uint64_t key_of_number(const void *ranked, uint32_t n)
{
	return ((const struct ranked *)ranked)[n - 1].key.words[0];
}

static int add_ranked(struct call_shapes *s, const struct shaped_call *calls, uint32_t n,
		      const struct shape_key *key, struct pt_error *e)
{
	struct ranked *r;

	if (pool_grow(s, e) < 0 || pt_array_grow(&s->ranked, s->count, &s->room, e) ||
	    pt_hash_insert(&s->by_key, key->words[0], (uint32_t)s->count + 1, key_of_number, s->ranked, e))
		return -1;
	r = &s->ranked[s->count++];
	*r = (struct ranked){.key = *key, .at = (uint32_t)s->pool_bytes, .runs = 1};
	r->size = pack(calls, n, s->pool + s->pool_bytes);
	s->pool_bytes += r->size;
	s->full = s->count == SHAPES_RANKED || s->pool_bytes >= SHAPES_BYTES;
	return 0;
}

/* Two lanes, in which each number counts: the mixing of wyhash. */
static struct shape_key key_of(const struct shaped_call *calls, uint32_t n)
{
	uint64_t a = n ^ 0x9e3779b97f4a7c15u, b = n ^ 0xd6e8feb86659fd93u, w[FIELDS / 2];

	for (uint32_t i = 0; i < n; i++) {
		memcpy(w, &calls[i], sizeof w);
		a = pt_hash_fold(a ^ w[0], w[1] ^ 0xe7037ed1a0b428dbu);
		a = pt_hash_fold(a ^ w[2], w[3] ^ 0x8ebc6af09c88c6e3u);
		b = pt_hash_fold(b ^ w[1], w[2] ^ 0x589965cc75374cc3u);
		b = pt_hash_fold(b ^ w[3], w[0] ^ 0x1d8e4e27c47d124fu);
	}
	return (struct shape_key){{pt_hash_mix(a), b}};
}

void call_shapes_begin(const struct call_shapes *s, const struct shaped_call *calls, uint32_t n,
		       struct shape_key *ret)
{
	*ret = key_of(calls, n);
	__builtin_prefetch(&s->by_key.slots[pt_hash_first(&s->by_key, ret->words[0])]);
}

void call_shapes_fetch(const struct call_shapes *s, const struct shape_key *key)
{
	uint32_t number = s->by_key.slots[pt_hash_first(&s->by_key, key->words[0])];

	if (number)
		__builtin_prefetch(&s->ranked[number - 1]);
}

int call_shapes_add(struct call_shapes *s, const struct shaped_call *calls, uint32_t n,
		    const struct shape_key *key, uint32_t *ret_handle, struct pt_error *e)
{
	uint32_t number;

	for (uint32_t i = pt_hash_first(&s->by_key, key->words[0]); (number = s->by_key.slots[i]);
	     i = pt_hash_next(&s->by_key, i)) {
		struct ranked *r = &s->ranked[number - 1];

		if (!is_same(&r->key, key))
			continue;
		r->runs += r->runs < UINT32_MAX;
		*ret_handle = number - 1;
		return 0;
	}
	if (s->full)
		return add_late(s, calls, n, key, ret_handle, e);
	*ret_handle = (uint32_t)s->count;
	return add_ranked(s, calls, n, key, e);
}

/* ---- Finishing ---------------------------------------------------------------------------------------- */

int call_shapes_finish(struct call_shapes *s, struct pt_error *e)
{
	uint64_t *order = calloc((size_t)s->count + 1, sizeof *order);
	struct shaped_call calls[SHAPE_CALLS];
	int ret = 0;

	s->numbers = calloc((size_t)s->count + 1, sizeof *s->numbers);
	if (!order || !s->numbers) {
		free(order);
		return pt_fail_no_memory(e, "calls");
	}
	/* The runs are the high half, so that one number gives the order. Of equal ones it is that of the
	 * index, so that the same stream makes the same database. */
	for (uint32_t i = 0; i < s->count; i++)
		order[i] = (uint64_t)(UINT32_MAX - s->ranked[i].runs) << 32 | i;
	qsort(order, s->count, sizeof *order, pt_compare_u64);
	ret = flush(s, e) < 0 || insert_late(s, e) < 0 ? -1 : 0;
	for (uint32_t i = 0; !ret && i < s->count; i++) {
		uint32_t index = (uint32_t)order[i];
		const struct ranked *r = &s->ranked[index];

		s->numbers[index] = i + 1;
		ret = put(s, calls, unpack(s->pool + r->at, r->size, calls), i + 1, e);
	}
	free(order);
	return ret < 0 ? -1 : flush(s, e);
}

uint32_t call_shapes_number(const struct call_shapes *s, uint32_t handle)
{
	return handle < LATE_HANDLES ? s->numbers[handle] : handle - LATE_HANDLES;
}
