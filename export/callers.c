/* callers.c - see callers.h. */
#include "export/callers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PAGE = 512, /* places */
	PAGES = 512 /* in memory; a power of two */
};

struct page {
	uint64_t number; /* of the page, + 1; 0: none is here */
	bool changed;
	uint64_t places[PAGE];
};

/* What waits for a call of a thread to return, below that. */
struct waiting {
	uint32_t thread, depth; /* of what waits; depth 0: a free slot */
	uint64_t place;		/* 0: nothing does */
};

struct callers {
	int scratch;
	struct page *pages;
	uint64_t written; /* pages that the file has */
	uint64_t places;
	struct waiting *slots;
	uint32_t mask, count;
};

struct callers *callers_create(int scratch, struct pt_error *e)
{
	struct callers *c = calloc(1, sizeof *c);

	if (c) {
		c->scratch = scratch;
		c->mask = 1023;
		c->pages = calloc(PAGES, sizeof *c->pages);
		c->slots = calloc(c->mask + 1, sizeof *c->slots);
	}
	if (c && c->pages && c->slots)
		return c;
	callers_destroy(c);
	pt_fail_no_memory(e, "calls");
	return NULL;
}

void callers_destroy(struct callers *c)
{
	if (!c)
		return;
	free(c->pages);
	free(c->slots);
	free(c);
}

/* ---- Places -------------------------------------------------------------------------------------------- */

static int write_page(struct callers *c, struct page *p, struct pt_error *e)
{
	const char *from = (const char *)p->places;
	size_t bytes = sizeof p->places;
	off_t at = (off_t)((p->number - 1) * sizeof p->places);

	while (bytes) {
		ssize_t done = pwrite(c->scratch, from, bytes, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return pt_fail_errno(e, "writing the scratch file of callers");
		from += done;
		bytes -= (size_t)done;
		at += done;
	}
	if (c->written < p->number)
		c->written = p->number;
	p->changed = false;
	return 0;
}

/* What was never written, a hole or behind the end, is zeros. */
static int read_page(struct callers *c, struct page *p, struct pt_error *e)
{
	char *to = (char *)p->places;
	size_t bytes = 0;
	ssize_t done = p->number <= c->written;

	memset(p->places, 0, sizeof p->places);
	while (bytes < sizeof p->places && done) {
		done = pread(c->scratch, to + bytes, sizeof p->places - bytes,
			     (off_t)((p->number - 1) * sizeof p->places + bytes));
		if (done < 0 && errno != EINTR)
			return pt_fail_errno(e, "reading the scratch file of callers");
		bytes += done > 0 ? (size_t)done : 0;
	}
	return 0;
}

static struct page *page_of(struct callers *c, uint64_t place, struct pt_error *e)
{
	uint64_t number = place / PAGE + 1;
	struct page *p = &c->pages[number & (PAGES - 1)];

	if (p->number == number)
		return p;
	if (p->changed && write_page(c, p, e) < 0)
		return NULL;
	p->number = number;
	return read_page(c, p, e) < 0 ? NULL : p;
}

/* ---- Who waits ------------------------------------------------------------------------------------------ */

static struct waiting *slot_of(const struct callers *c, uint32_t thread, uint32_t depth)
{
	uint32_t i = (uint32_t)((thread * 0x9e3779b97f4a7c15u + depth) * 0x9fb21c651e98df25u >> 32) & c->mask;

	while (c->slots[i].depth && (c->slots[i].thread != thread || c->slots[i].depth != depth))
		i = (i + 1) & c->mask;
	return &c->slots[i];
}

static int grow(struct callers *c, struct pt_error *e)
{
	struct waiting *old = c->slots;
	uint32_t n = c->mask + 1;

	c->slots = calloc((size_t)n * 4, sizeof *c->slots);
	if (!c->slots) {
		c->slots = old;
		return pt_fail_no_memory(e, "calls");
	}
	c->mask = n * 4 - 1;
	for (uint32_t i = 0; i < n; i++)
		if (old[i].depth)
			*slot_of(c, old[i].thread, old[i].depth) = old[i];
	free(old);
	return 0;
}

int callers_returned(struct callers *c, uint32_t thread, uint32_t depth, uint64_t number, struct pt_error *e)
{
	struct waiting *w;
	struct page *p;

	if (depth == UINT32_MAX)
		return 0;
	w = slot_of(c, thread, depth + 1);
	if (!w->place)
		return 0;
	p = page_of(c, w->place, e);
	if (!p)
		return -1;
	p->places[w->place % PAGE] = number;
	p->changed = true;
	w->place = 0;
	return 0;
}

int callers_wait(struct callers *c, uint32_t thread, uint32_t depth, uint64_t *ret_place, struct pt_error *e)
{
	struct waiting *w;

	*ret_place = 0;
	if (!depth)
		return 0;
	if (c->count > c->mask / 2 && grow(c, e) < 0)
		return -1;
	w = slot_of(c, thread, depth);
	if (!w->depth) {
		*w = (struct waiting){.thread = thread, .depth = depth};
		c->count++;
	}
	if (!w->place)
		w->place = ++c->places;
	*ret_place = w->place;
	return 0;
}

int callers_get(struct callers *c, uint64_t place, uint64_t *ret_number, struct pt_error *e)
{
	struct page *p = place ? page_of(c, place, e) : NULL;

	*ret_number = p ? p->places[place % PAGE] : 0;
	return place && !p ? -1 : 0;
}
