/*
 * symbols.h - the symbols of one file: a table by address, which grows as the container's chunks come.
 *
 * Of several symbols at one address one is kept, a global one if there is any.
 */
#ifndef DECODE_CODE_SYMBOLS_H
#define DECODE_CODE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"

struct img_symbol_entry {
	uint64_t value, end; /* half-open, as in the file; the last one of unknown size has end UINT64_MAX */
	uint32_t name;	     /* offset in strings, which does not change when symbols are added */
	uint32_t order;	     /* of its coming */
	uint16_t rank;	     /* 0 is best: the one that names the address */
	bool sizeless;	     /* its end is where the next one begins */
};

/* Zeroed is empty. */
struct img_symbols {
	/* Once one has been asked for since the last chunk: sorted by value, one for each value. */
	struct img_symbol_entry *all;
	size_t count;
	bool added; /* not asked for since */
	uint32_t next_order;
	char *strings;
	size_t strings_bytes;
};

void img_symbols_deinit(struct img_symbols *s);

/* What the table grows by, at most, when the chunk is added. */
uint64_t img_symbols_bytes(const struct ptc_symbols *chunk);
/* Copies the chunk's symbols into the table. 0, or -1 (PT_ERR_NO_MEMORY), and the table is as it was. */
int img_symbols_add(struct img_symbols *s, const struct ptc_symbols *chunk, struct pt_error *e);

/* Sorts the symbols, keeps one for each value, and finds where each ends. */
void img_symbols_settle(struct img_symbols *s);
/* Only of type PTC_SYMBOL_BOUNDS. */
bool img_symbols_are_bounds(const struct img_symbols *s);
/* The symbol that covers value; NULL when there is none. It is the same up to *ret_until (exclusive). */
const struct img_symbol_entry *img_symbols_find(struct img_symbols *s, uint64_t value, uint64_t *ret_until);

#endif
