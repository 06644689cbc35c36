/* module_pages.c - see module_pages.h. */
#include "capture/code/module_pages.h"
#include "schema/array.h"
#include "schema/hash.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

void module_pages_deinit(struct module_pages *p)
{
	free(p->all);
	*p = (struct module_pages){0};
}

uint64_t module_page_hash(const uint8_t *page)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < PAGE; i += 8) {
		uint64_t word;

		memcpy(&word, page + i, sizeof word);
		hash = pt_hash_mix(hash ^ word) + i;
	}
	return hash;
}

int module_pages_add(struct module_pages *p, uint64_t address, const uint8_t *page, struct pt_error *e)
{
	if (pt_array_grow(&p->all, p->count, &p->room, e))
		return -1;
	p->all[p->count++] = (struct module_page){address, module_page_hash(page)};
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct module_page *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

void module_pages_sort(struct module_pages *p)
{
	size_t n = 0;

	if (p->count)
		qsort(p->all, p->count, sizeof *p->all, by_address);
	for (size_t i = 0; i < p->count; i++)
		if (!n || p->all[n - 1].address != p->all[i].address)
			p->all[n++] = p->all[i];
	p->count = n;
}

struct module_page *module_pages_find(const struct module_pages *p, uint64_t address)
{
	const struct module_page key = {.address = address};

	return p->count ? bsearch(&key, p->all, p->count, sizeof key, by_address) : NULL;
}
