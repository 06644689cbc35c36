/* filter_symbols.h - the functions of a file or of the kernel, by name, for filter.c. */
#ifndef CAPTURE_RECORD_FILTER_SYMBOLS_H
#define CAPTURE_RECORD_FILTER_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct filter_symbol {
	uint64_t start, size; /* address, of a file its offset; size 0: not known */
	uint32_t name;	      /* in strings */
	bool global;
};

/* By start. */
struct filter_symbols {
	struct filter_symbol *at;
	size_t count, room;
	char *strings;
	size_t strings_bytes, strings_room;
};

/* Zeroed before; deinit in any case. 0, or -1: as hw_filter_resolve(). */
int filter_symbols_file(struct filter_symbols *ret, const char *path, struct pt_error *e);
int filter_symbols_kernel(struct filter_symbols *ret, const char *kallsyms, struct pt_error *e);
void filter_symbols_deinit(struct filter_symbols *s);

#endif
