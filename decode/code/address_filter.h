/*
 * address_filter.h - which addresses a recording's address filters let through.
 *
 * The filters are perf's text, which the container's META addr_filter has: "filter START/SIZE[@FILE],stop
 * START/SIZE[@FILE]". Of a file START is an offset, else an address. Traced is what lies in one
 * of the ranges to filter by, if there are any, and in none to stop at (SDM, "Filtering by IP"). Packets say
 * where tracing stops, so the decoder needs this for one erratum only (SKL014).
 */
#ifndef DECODE_CODE_ADDRESS_FILTER_H
#define DECODE_CODE_ADDRESS_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/address_space.h"

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

/* text (NULL: no filters) must outlive *ret. A text of another form is taken as no filters. */
void pt_filter_parse(struct pt_filter *ret, const char *text);
/* True when ip in that space is not traced. False where that is not known. */
bool pt_filter_shuts_out(const struct pt_filter *f, struct img_space *space, uint64_t ip);

#endif
