/* call_sums.c - see call_sums.h. */
#include "decode/output/call_sums.h"

#include <stdlib.h>

#include "decode/code/huge_pages.h"
#include "schema/array.h"
#include "schema/hash.h"

/* Sums of call paths with ids side by side. */
#define PAGE_BITS 8
#define SLOTS	  (1u << 8) /* at first */

/* A call waits until so many came after it. Meanwhile what it is added to is fetched into the caches: the sum of
 * the thread that had the call path first; then, where that is another thread, the slot, and what that leads to. */
#define WAITING	   16
#define SLOT_AFTER 5
#define MORE_AFTER 10

/* Where a sum of `more` is. */
struct slot {
	uint32_t hash; /* the higher half: sums of other hashes are not looked at */
	uint32_t n;    /* more[n - 1]; 0: free */
};

struct pt_call_sums {
	struct ptr_call_sum waiting[WAITING]; /* call number n is in n % WAITING. call_path is the id */
	uint64_t given;
	/* By id: of the thread that had it first; no calls: none had. call_path is the id. */
	struct ptr_call_sum **pages; /* NULL: no call path of these had any */
	size_t page_count, page_room;
	struct ptr_call_sum *more; /* of the other threads */
	size_t more_count, more_room;
	struct slot *slots; /* at most half of them are taken */
	uint32_t mask;
};

struct pt_call_sums *pt_call_sums_create(void)
{
	struct pt_call_sums *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->mask = SLOTS - 1;
	s->slots = pt_table_create(SLOTS, sizeof *s->slots);
	if (s->slots)
		return s;
	free(s);
	return NULL;
}

void pt_call_sums_destroy(struct pt_call_sums *s)
{
	if (!s)
		return;
	pt_table_destroy(s->slots, (size_t)s->mask + 1, sizeof *s->slots);
	for (size_t i = 0; i < s->page_count; i++)
		free(s->pages[i]);
	free(s->pages);
	free(s->more);
	free(s);
}

/* ---- Sums ------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct ptr_call_sum *r)
{
	return pt_hash_mix((uint64_t)r->thread << 32 | r->call_path);
}

static bool same(const struct ptr_call_sum *a, const struct ptr_call_sum *b)
{
	return a->thread == b->thread && a->call_path == b->call_path;
}

/* What is not zero at first. */
static struct ptr_call_sum beginning(uint32_t thread, uint32_t id)
{
	return (struct ptr_call_sum){
	    .thread = thread, .call_path = id, .cyc_count = PTR_UNKNOWN, .elapsed_tsc = PTR_UNKNOWN};
}

static void take_slot(struct slot *slots, uint32_t mask, uint64_t hash, uint32_t n)
{
	uint32_t i = (uint32_t)hash & mask;

	while (slots[i].n)
		i = (i + 1) & mask;
	slots[i] = (struct slot){.hash = (uint32_t)(hash >> 32), .n = n};
}

static bool grow_slots(struct pt_call_sums *s)
{
	uint32_t mask = s->mask * 2 + 1;
	struct slot *slots = pt_table_create((size_t)mask + 1, sizeof *slots);

	if (!slots)
		return false;
	for (size_t i = 0; i < s->more_count; i++)
		take_slot(slots, mask, hash_of(&s->more[i]), (uint32_t)i + 1);
	pt_table_destroy(s->slots, (size_t)s->mask + 1, sizeof *slots);
	s->slots = slots;
	s->mask = mask;
	return true;
}

/* The sums of a call path of a thread that is not its first. NULL: no memory. */
static struct ptr_call_sum *more_of(struct pt_call_sums *s, const struct ptr_call_sum *begin)
{
	uint64_t hash = hash_of(begin);

	for (uint32_t i = (uint32_t)hash & s->mask; s->slots[i].n; i = (i + 1) & s->mask)
		if (s->slots[i].hash == hash >> 32 && same(&s->more[s->slots[i].n - 1], begin))
			return &s->more[s->slots[i].n - 1];
	if ((s->more_count >= s->mask / 2 && !grow_slots(s)) ||
	    pt_array_grow(&s->more, s->more_count, &s->more_room, NULL) < 0)
		return NULL;
	s->more[s->more_count++] = *begin;
	take_slot(s->slots, s->mask, hash, (uint32_t)s->more_count);
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
	const struct ptr_call_sum begin = beginning(thread, id);
	struct ptr_call_sum *first = first_of(s, id);

	if (first && !first->calls)
		*first = begin;
	return !first || first->thread == thread ? first : more_of(s, &begin);
}

/* Of the same call path and thread. */
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

/* ---- Adding ----------------------------------------------------------------------------------------- */

static bool take(struct pt_call_sums *s, const struct ptr_call_sum *call)
{
	struct ptr_call_sum *sum = sum_of(s, call->thread, call->call_path);

	if (sum)
		merge(sum, call);
	return sum;
}

/* NULL: no call path near this one had calls. */
static const struct ptr_call_sum *first_if_any(const struct pt_call_sums *s, uint32_t id)
{
	size_t page = id >> PAGE_BITS;

	return page < s->page_count && s->pages[page] ? &s->pages[page][id & ((1u << PAGE_BITS) - 1)] : NULL;
}

static const struct slot *slot_of_more(const struct pt_call_sums *s, const struct ptr_call_sum *call)
{
	const struct ptr_call_sum *first = first_if_any(s, call->call_path);

	if (!first || !first->calls || first->thread == call->thread)
		return NULL;
	return &s->slots[(uint32_t)hash_of(call) & s->mask];
}

/* Call number n has come. */
static void fetch(const struct pt_call_sums *s, uint64_t n)
{
	const struct slot *slot;

	__builtin_prefetch(first_if_any(s, s->waiting[n % WAITING].call_path));
	if (n < MORE_AFTER)
		return;
	__builtin_prefetch(slot_of_more(s, &s->waiting[(n - SLOT_AFTER) % WAITING]));
	slot = slot_of_more(s, &s->waiting[(n - MORE_AFTER) % WAITING]);
	if (slot && slot->n)
		__builtin_prefetch(&s->more[slot->n - 1]);
}

bool pt_call_sums_add(struct pt_call_sums *s, const struct ptr_call *r, uint32_t id)
{
	struct ptr_call_sum *call = &s->waiting[s->given % WAITING];

	if (s->given >= WAITING && !take(s, call))
		return false;
	*call = beginning(r->thread, id);
	call->calls = 1;
	call->branch_count = r->branch_count;
	call->insn_count = r->insn_count;
	call->cyc_count = r->cyc_count;
	if (r->call_tsc != PTR_NO_TSC && r->return_tsc != PTR_NO_TSC)
		call->elapsed_tsc = r->return_tsc - r->call_tsc;
	fetch(s, s->given++);
	return true;
}

/* Adds those that wait. False: no memory. */
static bool settle(struct pt_call_sums *s)
{
	for (uint64_t n = s->given < WAITING ? 0 : s->given - WAITING; n < s->given; n++)
		if (!take(s, &s->waiting[n % WAITING]))
			return false;
	s->given = 0;
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

static int list_add_all(struct list *l, struct pt_call_sums *s)
{
	if (!settle(s))
		return -1;
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

static void put_list(struct list *l, struct pt_emit *m)
{
	if (l->count)
		qsort(l->sums, l->count, sizeof(struct ptr_call_sum *), compare);
	for (size_t i = 0; i < l->count && !m->failed; i++) {
		struct ptr_call_sum *sum = l->sums[i];

		/* A thread may have been another shard's for a while. */
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
