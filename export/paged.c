/* paged.c - see paged.h. */
#include "export/paged.h"

#include <stdlib.h>
#include <string.h>

#include "export/scratch.h"

int paged_init(struct paged *p, int scratch, size_t size, size_t slots, struct pt_error *e)
{
	*p = (struct paged){.scratch = scratch, .size = size, .slots = slots};
	p->numbers = calloc(slots, sizeof *p->numbers);
	p->changed = calloc(slots, sizeof *p->changed);
	/* Not touched before it is used: small traces take little. */
	p->pages = malloc((slots << PAGED_BITS) * size);
	return p->numbers && p->changed && p->pages ? 0 : pt_fail_no_memory(e, NULL);
}

void paged_deinit(struct paged *p)
{
	free(p->numbers);
	free(p->changed);
	free(p->pages);
	memset(p, 0, sizeof *p);
}

void *paged_load(struct paged *p, uint64_t page, struct pt_error *e)
{
	size_t slot = page & (p->slots - 1), bytes = p->size << PAGED_BITS, got;
	unsigned char *to = p->pages + slot * bytes;
	uint64_t old = p->numbers[slot];

	if (old && p->changed[slot]) {
		if (scratch_write(p->scratch, to, bytes, (old - 1) * bytes, e) < 0)
			return NULL;
		if (p->written < old)
			p->written = old;
	}
	p->numbers[slot] = page + 1;
	p->changed[slot] = false;
	memset(to, 0, bytes);
	/* What was never written, a hole or beyond the end, is zeros. */
	if (page < p->written && scratch_read(p->scratch, to, bytes, page * bytes, &got, e) < 0)
		return NULL;
	return to;
}
