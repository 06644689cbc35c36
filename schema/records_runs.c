/* records_runs.c - RUN records that are encoded before they are put, in any thread. See records.h. */
#include "schema/records_runs.h"

#include <stdlib.h>

#include "schema/array.h"
#include "schema/records_encode.h"

int ptr_runs_add(struct ptr_runs *runs, const struct ptr_run *r)
{
	struct ptr_previous previous = {.tsc = runs->tsc, .slice = r->slice};

	if (runs->used + PTR_RUN_BYTES_MAX > runs->room) {
		size_t room = runs->room ? 2 * runs->room : 4096;
		uint8_t *grown = realloc(runs->bytes, room);

		if (!grown)
			return -1;
		runs->bytes = grown;
		runs->room = room;
	}
	if (runs->count == runs->count_room &&
	    pt_array_grow(&runs->begins, runs->count, &runs->count_room, NULL) < 0)
		return -1;
	runs->begins[runs->count++] = (uint32_t)runs->used;
	runs->used = (size_t)(put_run(&previous, runs->bytes + runs->used, r) - runs->bytes);
	runs->tsc = r->tsc;
	return 0;
}

void ptr_runs_deinit(struct ptr_runs *runs)
{
	free(runs->bytes);
	free(runs->begins);
	*runs = (struct ptr_runs){0};
}

size_t ptr_runs_offset(const struct ptr_runs *runs, uint32_t i)
{
	return i == runs->count ? runs->used : runs->begins[i];
}

uint32_t ptr_runs_fitting(const struct ptr_runs *runs, uint32_t from, uint32_t to, size_t bytes)
{
	size_t begin = ptr_runs_offset(runs, from);

	if (ptr_runs_offset(runs, to) - begin + PTR_RUN_BYTES_MAX <= bytes)
		return to;
	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (ptr_runs_offset(runs, middle) - begin + PTR_RUN_BYTES_MAX <= bytes)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}
