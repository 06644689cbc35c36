/* call_sums.c - see call_sums.h. */
#include "decode/output/call_sums.h"

#include <stdlib.h>

#include "schema/array.h"
#include "schema/hash.h"

struct pt_call_sums {
	struct ptr_call_sum *first; /* by call path: of the thread that had it first; no calls: none had */
	size_t first_count, first_room;
	struct ptr_call_sum *more; /* of the other threads; number n of the hash is more[n - 1] */
	size_t more_count, more_room;
	struct pt_hash more_hash;
};

struct pt_call_sums *pt_call_sums_create(void)
{
	struct pt_call_sums *s = calloc(1, sizeof *s);

	if (s && pt_hash_init(&s->more_hash, 8, NULL) == 0)
		return s;
	free(s);
	return NULL;
}

void pt_call_sums_destroy(struct pt_call_sums *s)
{
	if (!s)
		return;
	pt_hash_deinit(&s->more_hash);
	free(s->first);
	free(s->more);
	free(s);
}

static uint64_t key(const struct ptr_call_sum *r)
{
	return pt_hash_mix((uint64_t)r->thread << 32 | r->call_path);
}

static uint64_t key_of_more(const void *more, uint32_t n)
{
	return key((const struct ptr_call_sum *)more + n - 1);
}

/* The sums of a call path of a thread that is not its first. NULL: no memory. */
static struct ptr_call_sum *more_of(struct pt_call_sums *s, const struct ptr_call_sum *begin)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(&s->more_hash, key(begin)); (n = s->more_hash.slots[i]);
	     i = pt_hash_next(&s->more_hash, i))
		if (s->more[n - 1].thread == begin->thread && s->more[n - 1].call_path == begin->call_path)
			return &s->more[n - 1];
	if (pt_array_grow(&s->more, s->more_count, &s->more_room, NULL) < 0)
		return NULL;
	s->more[s->more_count++] = *begin;
	if (pt_hash_insert(&s->more_hash, key(begin), (uint32_t)s->more_count, key_of_more, s->more, NULL) <
	    0)
		return NULL;
	return &s->more[s->more_count - 1];
}

/* NULL: no memory. */
static struct ptr_call_sum *sum_of(struct pt_call_sums *s, const struct ptr_call *r)
{
	const struct ptr_call_sum begin = {.thread = r->thread,
					   .call_path = r->call_path,
					   .cyc_count = PTR_UNKNOWN,
					   .elapsed_tsc = PTR_UNKNOWN};
	struct ptr_call_sum *first;

	while (r->call_path >= s->first_count) {
		if (pt_array_grow(&s->first, s->first_count, &s->first_room, NULL) < 0)
			return NULL;
		s->first[s->first_count++] = (struct ptr_call_sum){.calls = 0};
	}
	first = &s->first[r->call_path];
	if (!first->calls)
		*first = begin;
	return first->thread == r->thread ? first : more_of(s, &begin);
}

bool pt_call_sums_add(struct pt_call_sums *s, const struct ptr_call *r)
{
	struct ptr_call_sum *sum = sum_of(s, r);

	if (!sum)
		return false;
	sum->calls++;
	sum->branch_count += r->branch_count;
	sum->insn_count += r->insn_count;
	if (r->cyc_count != PTR_UNKNOWN)
		pt_add_known(&sum->cyc_count, r->cyc_count);
	if (r->call_tsc != PTR_NO_TSC && r->return_tsc != PTR_NO_TSC)
		pt_add_known(&sum->elapsed_tsc, r->return_tsc - r->call_tsc);
	return true;
}

static void put(struct pt_emit *m, const struct ptr_call_sum *sum)
{
	if (!m->failed)
		pt_emit_put(m, ptr_put_call_sum(m->writer, sum, &m->error));
}

void pt_call_sums_put(const struct pt_call_sums *s, struct pt_emit *m)
{
	for (size_t i = 0; i < s->first_count; i++)
		if (s->first[i].calls)
			put(m, &s->first[i]);
	for (size_t i = 0; i < s->more_count; i++)
		put(m, &s->more[i]);
}
