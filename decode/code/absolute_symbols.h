/*
 * absolute_symbols.h - the symbols of an address space by address: those of the kernel, its modules and BPF
 * programs, or those that a process's JIT compiler names. They come in many small tables, while addresses
 * are looked up.
 *
 * The tables are sorted arrays, of which two are made one when they are nearly of one size (the logarithmic
 * method of Bentley and Saxe): n additions take time O(n log n), a lookup O(log^2 n).
 */
#ifndef DECODE_CODE_ABSOLUTE_SYMBOLS_H
#define DECODE_CODE_ABSOLUTE_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/code/symbols.h"
#include "schema/error.h"

struct img_absolute_symbol {
	uint64_t start, end;
	uint64_t max_end; /* in a sorted array: of those of which this one is the middle */
	const void *file; /* whose names it has */
	uint32_t name;	  /* offset in them */
	uint32_t order;	  /* of two that begin at one address, the higher one counts */
};

#define IMG_ABSOLUTE_TABLES 64

/* Zeroed is empty. */
struct img_absolute_symbols {
	struct img_absolute_table {
		struct img_absolute_symbol *all;
		size_t count;
	} tables[IMG_ABSOLUTE_TABLES];
	unsigned table_count;
};

void img_absolute_deinit(struct img_absolute_symbols *s);
/* Adds a table's symbols, which are sorted by value. 0, or -1 (PT_ERR_NO_MEMORY), and s is as it was. */
int img_absolute_add(struct img_absolute_symbols *s, const struct img_symbol_entry *entries, size_t count,
		     const void *file, uint32_t order, struct pt_error *e);
/* Of those that cover ip the one that begins last; NULL: there is none. It is the same up to *ret_until
 * (exclusive). */
const struct img_absolute_symbol *img_absolute_find(const struct img_absolute_symbols *s, uint64_t ip,
						    uint64_t *ret_until);

#endif
