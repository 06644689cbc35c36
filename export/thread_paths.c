/* thread_paths.c - see thread_paths.h: an open hash. */
#include "export/thread_paths.h"

#include <stdlib.h>

struct thread_paths {
	struct thread_path *slots; /* path 0: free */
	size_t mask, count;
};

struct thread_paths *thread_paths_create(struct pt_error *e)
{
	struct thread_paths *t = calloc(1, sizeof *t);

	if (t) {
		t->mask = 255;
		t->slots = calloc(t->mask + 1, sizeof *t->slots);
	}
	if (t && t->slots)
		return t;
	free(t);
	pt_fail_no_memory(e, NULL);
	return NULL;
}

void thread_paths_destroy(struct thread_paths *t)
{
	if (t)
		free(t->slots);
	free(t);
}

static struct thread_path *slot_of(struct thread_path *slots, size_t mask, uint32_t thread, uint32_t path)
{
	size_t i = (size_t)(((uint64_t)thread << 32 | path) * 0x9e3779b97f4a7c15u >> 32) & mask;

	while (slots[i].path && (slots[i].path != path || slots[i].thread != thread))
		i = (i + 1) & mask;
	return &slots[i];
}

static int grow(struct thread_paths *t, struct pt_error *e)
{
	size_t mask = t->mask * 2 + 1;
	struct thread_path *slots = calloc(mask + 1, sizeof *slots);

	if (!slots)
		return pt_fail_no_memory(e, "call paths");
	for (size_t i = 0; i <= t->mask; i++)
		if (t->slots[i].path)
			*slot_of(slots, mask, t->slots[i].thread, t->slots[i].path) = t->slots[i];
	free(t->slots);
	t->slots = slots;
	t->mask = mask;
	return 0;
}

int thread_paths_add(struct thread_paths *t, const struct thread_path *add, struct pt_error *e)
{
	struct thread_path *s;

	if (t->count > t->mask / 2 && grow(t, e) < 0)
		return -1;
	s = slot_of(t->slots, t->mask, add->thread, add->path);
	if (!s->path) {
		t->count++;
		s->path = add->path;
		s->thread = add->thread;
	}
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
	size_t n = 0;

	for (size_t i = 0; i <= t->mask; i++)
		if (t->slots[i].path)
			t->slots[n++] = t->slots[i];
	qsort(t->slots, n, sizeof *t->slots, compare);
	*ret = t->slots;
	return n;
}
