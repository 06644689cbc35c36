/* symbols.c - see symbols.h. */
#include "decode/code/symbols.h"

#include <stdlib.h>
#include <string.h>

/* How many symbols before the nearest one may cover an address: one of unknown size, or an outer one. */
#define OUTER_SYMBOLS 4

#define BOUNDS	      3 /* rank of what has bounds only */

void img_symbols_deinit(struct img_symbols *s)
{
	free(s->all);
	free(s->strings);
	*s = (struct img_symbols){0};
}

static int by_value(const void *a, const void *b)
{
	const struct img_symbol_entry *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	/* The first that came. (qsort() keeps the order only as long as it has memory for a copy.) */
	return (x->order > y->order) - (x->order < y->order);
}

/* Leaves out bounds that begin within a symbol. How many are left. */
static size_t without_covered(struct img_symbol_entry *all, size_t n)
{
	uint64_t end = 0; /* of the symbols before */
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (all[i].rank != BOUNDS && !all[i].sizeless && all[i].end > end)
			end = all[i].end;
		if (all[i].rank != BOUNDS || all[i].value >= end)
			all[kept++] = all[i];
	}
	return kept;
}

void img_symbols_settle(struct img_symbols *s)
{
	struct img_symbol_entry *all = s->all;
	size_t n = s->count;

	if (!s->added)
		return;
	s->added = false;
	qsort(all, n, sizeof *all, by_value);
	s->count = 0;
	for (size_t i = 0; i < n; i++) {
		struct img_symbol_entry *last = s->count ? &all[s->count - 1] : NULL;

		if (!last || last->value != all[i].value) {
			all[s->count++] = all[i];
		} else if (last->sizeless && !all[i].sizeless) {
			last->end = all[i].end;
			last->sizeless = false;
		}
	}
	s->count = without_covered(all, s->count);
	for (size_t i = 0; i < s->count; i++)
		if (all[i].sizeless)
			all[i].end = i + 1 < s->count ? all[i + 1].value : UINT64_MAX;
}

/* By nm's letter of the symbol. */
static uint16_t rank_of(uint32_t type)
{
	return type == 'T' ? 0 : type == 'W' || type == 'w' ? 1 : type == PTC_SYMBOL_BOUNDS ? BOUNDS : 2;
}

uint64_t img_symbols_bytes(const struct ptc_symbols *chunk)
{
	return chunk->strings_bytes + (uint64_t)chunk->count * sizeof(struct img_symbol_entry);
}

int img_symbols_add(struct img_symbols *s, const struct ptc_symbols *chunk, struct pt_error *e)
{
	size_t n = s->count, base = s->strings_bytes;
	struct img_symbol_entry *all;
	char *strings;

	if (base + chunk->strings_bytes >= UINT32_MAX)
		return pt_fail_no_memory(e, "symbols");
	all = realloc(s->all, (n + chunk->count + 1) * sizeof *all);
	if (all)
		s->all = all;
	strings = realloc(s->strings, base + chunk->strings_bytes + 1);
	if (strings)
		s->strings = strings;
	if (!all || !strings)
		return pt_fail_no_memory(e, "symbols");
	memcpy(strings + base, chunk->strings, chunk->strings_bytes);
	strings[base + chunk->strings_bytes] = 0;
	s->strings_bytes = base + chunk->strings_bytes + 1;
	for (uint32_t i = 0; i < chunk->count; i++) {
		struct ptc_symbol symbol;

		memcpy(&symbol, (const uint8_t *)chunk->symbols + i * sizeof symbol, sizeof symbol);
		if (symbol.name >= chunk->strings_bytes)
			continue;
		all[n++] = (struct img_symbol_entry){.value = symbol.value,
						     .end = symbol.value + symbol.size,
						     .name = (uint32_t)(base + symbol.name),
						     .order = s->next_order++,
						     .rank = rank_of(symbol.type),
						     .sizeless = symbol.size == 0};
	}
	s->count = n;
	s->added = true;
	return 0;
}

bool img_symbols_are_bounds(const struct img_symbols *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->all[i].rank != BOUNDS)
			return false;
	return true;
}

const struct img_symbol_entry *img_symbols_find(struct img_symbols *s, uint64_t value, uint64_t *ret_until)
{
	size_t lo = 0, hi;

	img_symbols_settle(s);
	hi = s->count;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->all[mid].value > value)
			hi = mid;
		else
			lo = mid + 1;
	}
	*ret_until = lo < s->count ? s->all[lo].value : UINT64_MAX;
	for (size_t i = lo, tries = 0; i > 0 && tries < OUTER_SYMBOLS; i--, tries++) {
		const struct img_symbol_entry *found = &s->all[i - 1];

		if (value >= found->end)
			continue;
		if (found->end < *ret_until)
			*ret_until = found->end;
		return found;
	}
	return NULL;
}
