/*
 * address_filter.h - which addresses a recording's address filters let through: perf's filter, as the container's META addr_filter has it.
 *
 * "filter START/SIZE[@FILE],stop START/SIZE[@FILE]": of a file by offsets, else of the kernel by addresses. Traced is what lies in one
 * of the ranges to filter by, if there are any, and in none to stop at (SDM, "Filtering by IP"). The decoder needs
 * this for one erratum only (SKL014): packets tell where tracing stops.
 */
#ifndef DECODE_CODE_ADDRESS_FILTER_H
#define DECODE_CODE_ADDRESS_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/image.h"

#define PT_FILTER_RANGES 8 /* CPUs have 4 at most */

struct pt_filter {
	unsigned count;
	struct {
		bool stop;
		uint64_t start, size;
		const char *file; /* in the text; NULL: none */
		size_t file_length;
	} range[PT_FILTER_RANGES];
};

/* text (NULL: no filters) must outlive *ret. What is no such text is as none. */
void pt_filter_parse(struct pt_filter *ret, const char *text);
/* ip in that space is not traced. False where that is not known. */
bool pt_filter_shuts_out(const struct pt_filter *f, struct img_space *space, uint64_t ip);

#endif
