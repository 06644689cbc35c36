/* thread_paths.c - see thread_paths.h. */
#include "export/thread_paths.h"

#include <stdlib.h>

#include "schema/array.h"
#include "schema/hash.h"

struct thread_paths {
	struct thread_path *sums; /* number n at n - 1 */
	size_t count, room;
	struct pt_hash by_key; /* of numbers */
};

struct thread_paths *thread_paths_create(struct pt_error *e)
{
	struct thread_paths *t = calloc(1, sizeof *t);

	if (!t) {
		pt_fail_no_memory(e, "call paths");
		return NULL;
	}
	if (pt_hash_init(&t->by_key, 8, e) < 0) {
		free(t);
		return NULL;
	}
	return t;
}

void thread_paths_destroy(struct thread_paths *t)
{
	if (!t)
		return;
	pt_hash_deinit(&t->by_key);
	free(t->sums);
	free(t);
}

static uint64_t key_of(uint32_t thread, uint32_t path)
{
	return pt_hash_mix((uint64_t)thread << 32 | path);
}

static uint64_t key_of_number(const void *sums, uint32_t n)
{
	const struct thread_path *s = (const struct thread_path *)sums + n - 1;

	return key_of(s->thread, s->path);
}

/* The sums of that thread and path, begun when there are none. NULL: no memory. */
static struct thread_path *sums_of(struct thread_paths *t, uint32_t thread, uint32_t path, struct pt_error *e)
{
	uint64_t key = key_of(thread, path);
	uint32_t n;

	for (uint32_t i = pt_hash_first(&t->by_key, key); (n = t->by_key.slots[i]);
	     i = pt_hash_next(&t->by_key, i))
		if (t->sums[n - 1].thread == thread && t->sums[n - 1].path == path)
			return &t->sums[n - 1];
	if (pt_array_grow(&t->sums, t->count, &t->room, e) ||
	    pt_hash_insert(&t->by_key, key, (uint32_t)t->count + 1, key_of_number, t->sums, e))
		return NULL;
	t->sums[t->count] = (struct thread_path){.thread = thread, .path = path};
	return &t->sums[t->count++];
}

int thread_paths_add(struct thread_paths *t, const struct thread_path *add, struct pt_error *e)
{
	struct thread_path *s = sums_of(t, add->thread, add->path, e);

	if (!s)
		return -1;
	s->calls += add->calls;
	s->insns += add->insns;
	s->cycles += add->cycles;
	s->has_cycles |= add->has_cycles;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct thread_path *x = a, *y = b;

	if (x->path != y->path)
		return x->path < y->path ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

size_t thread_paths_sorted(struct thread_paths *t, struct thread_path **ret)
{
	if (t->count)
		qsort(t->sums, t->count, sizeof *t->sums, compare);
	*ret = t->sums;
	return t->count;
}
