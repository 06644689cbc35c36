/*
 * module_pages.h - what the pages of the kernel's module space hold, as hashes: whether one has changed since.
 */
#ifndef CAPTURE_CODE_MODULE_PAGES_H
#define CAPTURE_CODE_MODULE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct module_page {
	uint64_t address, hash;
};

/* Zeroed is empty. */
struct module_pages {
	struct module_page *all; /* sorted by address, each once, after module_pages_sort() */
	size_t count, room;
};

void module_pages_deinit(struct module_pages *p); /* it is empty then */
uint64_t module_page_hash(const uint8_t *page);
/* Adds a page of 4096 bytes, in any order. 0, or -1: PT_ERR_NO_MEMORY. */
int module_pages_add(struct module_pages *p, uint64_t address, const uint8_t *page, struct pt_error *e);
void module_pages_sort(struct module_pages *p);
/* NULL: it is not among them. */
struct module_page *module_pages_find(const struct module_pages *p, uint64_t address);

#endif
