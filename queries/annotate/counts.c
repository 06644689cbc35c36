/* counts.c - see counts.h. */
#include "queries/annotate/counts.h"

#include <stdlib.h>

#include "schema/array.h"

struct stretch stretch_of(const struct fn *f, const struct paths *p, const struct code_path *path, uint32_t i)
{
	struct stretch s = {.n = i < path->branches ? path->insns[i] : path->tail_insns};
	uint64_t start = path->start;

	if (i < path->branches && p->branches) {
		s.branch_index = path->branch[i];
		s.branch = &p->branches[s.branch_index];
	}
	if (i && p->branches) {
		s.before = &p->branches[path->branch[i - 1]];
		start = s.before->to;
	} else if (!start && s.branch) { /* how the first branch was reached was not seen: it alone counts */
		start = s.branch->from;
	}
	s.first = start ? fn_find(f, path->version, start) : NO_INSN;
	return s;
}

static int add_way(struct counts *c, const struct fn *f, const struct paths *p, const struct code_path *path,
		   uint32_t index, uint64_t times, struct pt_error *e)
{
	const struct branch *b = p->branches ? &p->branches[index] : NULL;
	struct way way = {.branch = index, .count = times};

	if (!b || !times)
		return 0;
	way.insn = fn_find(f, path->version, b->from);
	way.target = fn_find(f, path->version, b->to);
	if (way.insn == NO_INSN)
		return 0;
	if (pt_array_grow(&c->ways, c->way_count, &c->way_room, e) < 0)
		return -1;
	c->ways[c->way_count++] = way;
	return 0;
}

static int by_branch(const void *a, const void *b)
{
	const struct way *x = a, *y = b;

	if (x->insn != y->insn)
		return x->insn < y->insn ? -1 : 1;
	return x->branch < y->branch ? -1 : x->branch > y->branch;
}

static int by_count(const void *a, const void *b)
{
	const struct way *x = a, *y = b;

	if (x->insn != y->insn)
		return x->insn < y->insn ? -1 : 1;
	return x->count > y->count ? -1 : x->count < y->count;
}

/* Those of one branch become one. */
static void merge_ways(struct counts *c)
{
	size_t n = 0;

	if (!c->way_count)
		return;
	qsort(c->ways, c->way_count, sizeof *c->ways, by_branch);
	for (size_t i = 1; i < c->way_count; i++) {
		if (!by_branch(&c->ways[n], &c->ways[i]))
			c->ways[n].count += c->ways[i].count;
		else
			c->ways[++n] = c->ways[i];
	}
	c->way_count = n + 1;
	qsort(c->ways, c->way_count, sizeof *c->ways, by_count);
}

int counts_init(struct counts *c, const struct fn *f, const struct paths *p, const uint64_t *times,
		struct pt_error *e)
{
	*c = (struct counts){.ran = calloc(f->count, sizeof *c->ran)};
	if (!c->ran)
		return pt_fail_no_memory(e, "the counts");
	for (size_t k = 0; k < p->count; k++) {
		const struct code_path *path = &p->all[k];

		for (uint32_t i = 0; i <= path->branches; i++) {
			struct stretch s = stretch_of(f, p, path, i);
			uint32_t insn = s.first;

			for (uint32_t n = 0; n < s.n && insn != NO_INSN; n++, insn = f->insns[insn].next)
				c->ran[insn] += times[k];
			if (s.branch && add_way(c, f, p, path, s.branch_index, times[k], e) < 0)
				return -1;
		}
		if (c->way_count > ((size_t)1 << 20))
			merge_ways(c);
	}
	merge_ways(c);
	return 0;
}

void counts_deinit(struct counts *c)
{
	free(c->ran);
	free(c->ways);
}
