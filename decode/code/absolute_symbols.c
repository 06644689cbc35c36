/* absolute_symbols.c - see absolute_symbols.h. */
#include "decode/code/absolute_symbols.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void img_absolute_deinit(struct img_absolute_symbols *s)
{
	for (unsigned i = 0; i < s->table_count; i++)
		free(s->tables[i].all);
	s->table_count = 0;
}

/* Whether a comes before b. */
static bool is_before(const struct img_absolute_symbol *a, const struct img_absolute_symbol *b)
{
	return a->start != b->start ? a->start < b->start : a->order < b->order;
}

/* Fills in max_end of [low, high). Returns that of the middle. */
static uint64_t set_max_end(struct img_absolute_symbol *all, size_t low, size_t high)
{
	size_t middle = low + (high - low) / 2;
	uint64_t max_end, part;

	if (low == high)
		return 0;
	max_end = all[middle].end;
	part = set_max_end(all, low, middle);
	max_end = part > max_end ? part : max_end;
	part = set_max_end(all, middle + 1, high);
	max_end = part > max_end ? part : max_end;
	return all[middle].max_end = max_end;
}

/* The last one in [low, high) that covers ip. *until becomes where the first one begins after ip, if that is
 * less: it is on the way. */
static const struct img_absolute_symbol *last_at(const struct img_absolute_symbol *all, size_t low,
						 size_t high, uint64_t ip, uint64_t *until)
{
	size_t middle = low + (high - low) / 2;
	const struct img_absolute_symbol *found = NULL;

	if (low == high || all[middle].max_end <= ip)
		return NULL;
	if (all[middle].start <= ip) {
		found = last_at(all, middle + 1, high, ip, until);
		if (!found && ip < all[middle].end)
			found = &all[middle];
	} else if (all[middle].start < *until) {
		*until = all[middle].start;
	}
	return found ? found : last_at(all, low, middle, ip, until);
}

/* The last two tables become one. False: no memory, and nothing has changed. */
static bool merge(struct img_absolute_symbols *s)
{
	struct img_absolute_table *a = &s->tables[s->table_count - 2], *b = a + 1;
	struct img_absolute_symbol *all = malloc((a->count + b->count) * sizeof *all);
	size_t i = 0, k = 0;

	if (!all)
		return false;
	while (i < a->count || k < b->count) {
		bool from_b = i == a->count || (k < b->count && is_before(&b->all[k], &a->all[i]));

		all[i + k] = from_b ? b->all[k] : a->all[i];
		*(from_b ? &k : &i) += 1;
	}
	free(a->all);
	free(b->all);
	*a = (struct img_absolute_table){all, i + k};
	s->table_count--;
	set_max_end(all, 0, a->count);
	return true;
}

int img_absolute_add(struct img_absolute_symbols *s, const struct img_symbol_entry *entries, size_t count,
		     const void *file, uint32_t order, struct pt_error *e)
{
	struct img_absolute_symbol *all = malloc(count * sizeof *all + 1);

	if (!all || s->table_count == IMG_ABSOLUTE_TABLES) {
		free(all);
		return pt_fail_no_memory(e, "symbols");
	}
	for (size_t i = 0; i < count; i++)
		all[i] = (struct img_absolute_symbol){.start = entries[i].value,
						      .end = entries[i].end,
						      .file = file,
						      .name = entries[i].name,
						      .order = order};
	set_max_end(all, 0, count);
	s->tables[s->table_count++] = (struct img_absolute_table){all, count};
	/* Without memory they remain apart for now. */
	while (s->table_count > 1 &&
	       s->tables[s->table_count - 2].count <= 2 * s->tables[s->table_count - 1].count)
		if (!merge(s))
			break;
	return 0;
}

const struct img_absolute_symbol *img_absolute_find(const struct img_absolute_symbols *s, uint64_t ip,
						    uint64_t *ret_until)
{
	const struct img_absolute_symbol *best = NULL;

	*ret_until = UINT64_MAX;
	for (unsigned i = 0; i < s->table_count; i++) {
		const struct img_absolute_table *t = &s->tables[i];
		const struct img_absolute_symbol *found = last_at(t->all, 0, t->count, ip, ret_until);

		if (found && (!best || is_before(best, found)))
			best = found;
	}
	if (best && best->end < *ret_until)
		*ret_until = best->end;
	return best;
}
