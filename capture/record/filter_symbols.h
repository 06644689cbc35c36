/* filter_symbols.h - the functions of a file or of the kernel by name, for filter.c. */
#ifndef CAPTURE_RECORD_FILTER_SYMBOLS_H
#define CAPTURE_RECORD_FILTER_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct filter_symbol {
	uint64_t start; /* address; in a file: the offset */
	uint64_t size;	/* 0: not known */
	uint32_t name;	/* in strings */
	bool global;
};

/* Sorted by start; zeroed: none. */
struct filter_symbols {
	struct filter_symbol *at;
	size_t count, room;
	char *strings;
	size_t strings_bytes, strings_room;
};

/*
 * Each fills a zeroed struct; deinit in any case. 0, or -1: hw_filter_resolve()'s errors, but for
 * PT_ERR_USAGE.
 */
int filter_symbols_file(struct filter_symbols *ret, const char *path, struct pt_error *e);
int filter_symbols_kernel(struct filter_symbols *ret, const char *kallsyms, struct pt_error *e);
void filter_symbols_deinit(struct filter_symbols *s);

#endif
