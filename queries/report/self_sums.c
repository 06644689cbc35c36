/* self_sums.c - see self_sums.h. */
#include "queries/report/self_sums.h"

#include <stdlib.h>

#include "schema/array.h"
#include "schema/unpack/sql.h"

enum { LEAST_SLOTS = 8, MOST_SLOTS = 26 }; /* bits of their number */

int self_sums_init(struct self_sums *s, size_t expected, struct pt_error *e)
{
	unsigned bits = LEAST_SLOTS;

	while (bits < MOST_SLOTS && (size_t)1 << (bits - 1) < expected)
		bits++;
	*s = (struct self_sums){0};
	return pt_hash_init(&s->by_key, bits, e);
}

void self_sums_deinit(struct self_sums *s)
{
	pt_hash_deinit(&s->by_key);
	free(s->sums);
	s->sums = NULL;
}

int64_t self_sums_plus(int64_t a, int64_t b)
{
	return a == UNPACK_UNKNOWN ? b : b == UNPACK_UNKNOWN ? a : unpack_plus(a, b);
}

static int64_t minus(int64_t a)
{
	return a == UNPACK_UNKNOWN ? a : -a;
}

/* Eight threads' sums of a path are next to each other in the index: they are asked for together. */
static uint64_t key_of(uint32_t path, uint32_t thread)
{
	return pt_hash_mix((uint64_t)path << 32 | thread >> 3) + (thread & 7);
}

static uint64_t key_of_number(const void *sums, uint32_t n)
{
	const struct self_sum *s = (const struct self_sum *)sums + n - 1;

	return key_of(s->path, s->thread);
}

/* Valid until the next one. NULL: no memory. */
static struct self_sum *sum_of(struct self_sums *s, uint32_t path, uint32_t thread, struct pt_error *e)
{
	uint64_t key = key_of(path, thread);
	uint32_t n;

	for (uint32_t i = pt_hash_first(&s->by_key, key); (n = s->by_key.slots[i]);
	     i = pt_hash_next(&s->by_key, i))
		if (s->sums[n - 1].path == path && s->sums[n - 1].thread == thread)
			return &s->sums[n - 1];
	if (pt_array_grow(&s->sums, s->count, &s->room, e) ||
	    pt_hash_insert(&s->by_key, key, (uint32_t)s->count + 1, key_of_number, s->sums, e))
		return NULL;
	s->sums[s->count] = (struct self_sum){path, thread, UNPACK_UNKNOWN, UNPACK_UNKNOWN, UNPACK_UNKNOWN};
	return &s->sums[s->count++];
}

static int add(struct self_sums *s, const struct self_sum *x, struct pt_error *e)
{
	struct self_sum *to = sum_of(s, x->path, x->thread, e);

	if (!to)
		return -1;
	to->insns = self_sums_plus(to->insns, x->insns);
	to->cycles = self_sums_plus(to->cycles, x->cycles);
	to->ticks = self_sums_plus(to->ticks, x->ticks);
	return 0;
}

int self_sums_add(struct self_sums *s, const struct self_sum *calls, uint32_t parent, struct pt_error *e)
{
	const struct self_sum callee = {parent, calls->thread, minus(calls->insns), minus(calls->cycles),
					minus(calls->ticks)};

	return add(s, calls, e) || (parent && add(s, &callee, e)) ? -1 : 0;
}
