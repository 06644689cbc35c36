/* largest.c - see largest.h. */
#include "queries/report/largest.h"

#include <stdlib.h>

int largest_init(struct largest *l, size_t max, struct pt_error *e)
{
	*l = (struct largest){.stacks = calloc(max + 1, sizeof *l->stacks), .max = max};
	return l->stacks ? 0 : pt_fail_no_memory(e, "stacks");
}

void largest_deinit(struct largest *l)
{
	free(l->stacks);
	l->stacks = NULL;
}

static int compare_places(const void *a, const void *b)
{
	const struct stack_share *x = a, *y = b;

	if (x->path != y->path)
		return x->path < y->path ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static bool is_less(const struct stack_share *a, const struct stack_share *b)
{
	return a->share != b->share ? a->share < b->share : compare_places(a, b) > 0;
}

static void swap(struct largest *l, size_t a, size_t b)
{
	struct stack_share x = l->stacks[a];

	l->stacks[a] = l->stacks[b];
	l->stacks[b] = x;
}

static void sift_up(struct largest *l, size_t at)
{
	for (; at && is_less(&l->stacks[at], &l->stacks[(at - 1) / 2]); at = (at - 1) / 2)
		swap(l, at, (at - 1) / 2);
}

static void sift_down(struct largest *l, size_t at)
{
	for (;;) {
		size_t least = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < l->count; child++)
			if (is_less(&l->stacks[child], &l->stacks[least]))
				least = child;
		if (least == at)
			return;
		swap(l, at, least);
		at = least;
	}
}

bool largest_add(struct largest *l, const struct stack_share *x, struct stack_share *ret_left)
{
	if (l->count < l->max) {
		l->stacks[l->count] = *x;
		sift_up(l, l->count++);
		return false;
	}
	*ret_left = *x;
	if (l->count && is_less(&l->stacks[0], x)) {
		*ret_left = l->stacks[0];
		l->stacks[0] = *x;
		sift_down(l, 0);
	}
	return true;
}

void largest_sort(struct largest *l)
{
	if (l->count)
		qsort(l->stacks, l->count, sizeof *l->stacks, compare_places);
}
