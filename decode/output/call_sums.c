/* call_sums.c - see call_sums.h. */
#include "decode/output/call_sums.h"

#include <stdlib.h>

#include "schema/array.h"
#include "schema/hash.h"

/* Sums of call paths with ids side by side. */
#define PAGE_BITS 8

struct pt_call_sums {
	/* By id: of the thread that had it first; no calls: none had. call_path is the id. */
	struct ptr_call_sum **pages; /* NULL: no call path of these had any */
	size_t page_count, page_room;
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
	for (size_t i = 0; i < s->page_count; i++)
		free(s->pages[i]);
	free(s->pages);
	free(s->more);
	free(s);
}

/* ---- Adding ----------------------------------------------------------------------------------------- */

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

/* Of the thread that had the call path first. NULL: no memory. */
static struct ptr_call_sum *first_of(struct pt_call_sums *s, uint32_t id)
{
	size_t page = id >> PAGE_BITS;

	while (page >= s->page_count) {
		if (pt_array_grow(&s->pages, s->page_count, &s->page_room, NULL) < 0)
			return NULL;
		s->pages[s->page_count++] = NULL;
	}
	if (!s->pages[page] && !(s->pages[page] = calloc(1u << PAGE_BITS, sizeof **s->pages)))
		return NULL;
	return &s->pages[page][id & ((1u << PAGE_BITS) - 1)];
}

/* NULL: no memory. */
static struct ptr_call_sum *sum_of(struct pt_call_sums *s, uint32_t thread, uint32_t id)
{
	const struct ptr_call_sum begin = {
	    .thread = thread, .call_path = id, .cyc_count = PTR_UNKNOWN, .elapsed_tsc = PTR_UNKNOWN};
	struct ptr_call_sum *first = first_of(s, id);

	if (first && !first->calls)
		*first = begin;
	return !first || first->thread == thread ? first : more_of(s, &begin);
}

bool pt_call_sums_add(struct pt_call_sums *s, const struct ptr_call *r, uint32_t id)
{
	struct ptr_call_sum *sum = sum_of(s, r->thread, id);

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

/* ---- Writing ---------------------------------------------------------------------------------------- */

/* All sums, whoever has them. */
struct list {
	struct ptr_call_sum **sums;
	size_t count, room;
	const struct pt_call_paths *paths;
};

/* The sum gets the call path's number in place of its id. */
static int list_add(struct list *l, struct ptr_call_sum *sum)
{
	if (pt_array_grow(&l->sums, l->count, &l->room, NULL) < 0)
		return -1;
	sum->call_path = pt_call_path_number(l->paths, sum->call_path);
	l->sums[l->count++] = sum;
	return 0;
}

static int list_add_all(struct list *l, const struct pt_call_sums *s)
{
	for (size_t page = 0; page < s->page_count; page++)
		for (size_t i = 0; s->pages[page] && i < 1u << PAGE_BITS; i++)
			if (s->pages[page][i].calls && list_add(l, &s->pages[page][i]) < 0)
				return -1;
	for (size_t i = 0; i < s->more_count; i++)
		if (list_add(l, &s->more[i]) < 0)
			return -1;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct ptr_call_sum *x = *(struct ptr_call_sum *const *)a,
				  *y = *(struct ptr_call_sum *const *)b;

	if (x->call_path != y->call_path)
		return x->call_path < y->call_path ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Of the same call path and thread: a thread may have been another shard's for a while. */
static void merge(struct ptr_call_sum *to, const struct ptr_call_sum *from)
{
	to->calls += from->calls;
	to->branch_count += from->branch_count;
	to->insn_count += from->insn_count;
	if (from->cyc_count != PTR_UNKNOWN)
		pt_add_known(&to->cyc_count, from->cyc_count);
	if (from->elapsed_tsc != PTR_UNKNOWN)
		pt_add_known(&to->elapsed_tsc, from->elapsed_tsc);
}

static void put_list(struct list *l, struct pt_emit *m)
{
	if (l->count)
		qsort(l->sums, l->count, sizeof(struct ptr_call_sum *), compare);
	for (size_t i = 0; i < l->count && !m->failed; i++) {
		struct ptr_call_sum *sum = l->sums[i];

		for (; i + 1 < l->count && compare(&sum, &l->sums[i + 1]) == 0; i++)
			merge(sum, l->sums[i + 1]);
		pt_emit_put(m, ptr_put_call_sum(m->writer, sum, &m->error));
	}
}

void pt_call_sums_put(struct pt_call_sums *const *all, unsigned count, const struct pt_call_paths *paths,
		      struct pt_emit *m)
{
	struct list l = {.paths = paths};
	bool complete = true;

	for (unsigned i = 0; i < count && complete; i++)
		complete = !all[i] || list_add_all(&l, all[i]) == 0;
	if (complete)
		put_list(&l, m);
	else
		pt_emit_no_memory(m, "sums");
	free(l.sums);
}
