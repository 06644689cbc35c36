/* container_output.h - what a writer has made of an input must be a container that the reader takes. */
#ifndef TESTS_FUZZ_CONTAINER_OUTPUT_H
#define TESTS_FUZZ_CONTAINER_OUTPUT_H

#include <stdlib.h>
#include <unistd.h>

#include "schema/container.h"

/* Reads all of it, from its beginning; aborts when the reader does not get to its end, or a chunk is
 * not what it promises. */
static inline void fuzz_read_container(int fd)
{
	struct ptc_reader *r;
	struct pt_error e;
	struct ptc_chunk c;
	int got = -1;

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	while (r && (got = ptc_next(r, &c, &e)) > 0) {
		const uint8_t *records;
		struct ptc_aux aux;
		struct ptc_attr attr;
		uint64_t size;
		uint32_t event;

		if ((c.type == PTC_AUX && ptc_parse_aux(&c, &aux, &e)) ||
		    (c.type == PTC_ATTR && ptc_parse_attr(&c, &attr, &e)) ||
		    (c.type == PTC_SIDEBAND && ptc_parse_sideband(&c, &event, &records, &size, &e)))
			abort();
	}
	if (got != 0)
		abort();
	ptc_reader_destroy(r);
}

#endif
