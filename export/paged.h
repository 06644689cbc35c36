/*
 * paged.h - an array of records of one size in a scratch file, of which the pages used last are in memory.
 * So memory is bounded, however many records there are.
 */
#ifndef EXPORT_PAGED_H
#define EXPORT_PAGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

enum { PAGED_BITS = 6 /* of a record's index in its page */ };

struct paged {
	int scratch;	  /* a file of the caller's */
	size_t size;	  /* of a record */
	size_t slots;	  /* pages in memory; a power of two */
	uint64_t written; /* pages that the file has */
	/* Of the pages in memory, + 1; 0: the slot is free. A page's slot is its number modulo slots. */
	uint64_t *numbers;
	bool *changed;
	unsigned char *pages;
};

/* slots: how many pages are in memory at most; a power of two. 0, or -1: PT_ERR_NO_MEMORY; paged_deinit()
 * is due in any case. */
int paged_init(struct paged *p, int scratch, size_t size, size_t slots, struct pt_error *e);
void paged_deinit(struct paged *p); /* a zeroed one is fine */

/* Not to be called: for paged_read(). */
void *paged_load(struct paged *p, uint64_t page, struct pt_error *e);

/* Record i will be asked for soon: it is fetched into the caches, if it is in memory. */
static inline void paged_fetch(const struct paged *p, uint64_t i)
{
	uint64_t slot = i >> PAGED_BITS & (p->slots - 1);
	const unsigned char *record =
	    p->pages + ((slot << PAGED_BITS) + (i & ((1u << PAGED_BITS) - 1))) * p->size;

	__builtin_prefetch(record);
	__builtin_prefetch(record + p->size - 1);
}

/* Record i, to be read until the next call. One that was never asked for is zeros. NULL: PT_ERR_IO. */
static inline const void *paged_read(struct paged *p, uint64_t i, struct pt_error *e)
{
	uint64_t page = i >> PAGED_BITS, slot = page & (p->slots - 1);
	size_t at = (slot << PAGED_BITS) + (i & ((1u << PAGED_BITS) - 1));

	if (p->numbers[slot] != page + 1 && !paged_load(p, page, e))
		return NULL;
	return p->pages + at * p->size;
}

/* The same, to be changed, too: its page is written. */
static inline void *paged_at(struct paged *p, uint64_t i, struct pt_error *e)
{
	void *record = (void *)paged_read(p, i, e);

	if (record)
		p->changed[(i >> PAGED_BITS) & (p->slots - 1)] = true;
	return record;
}

#endif
