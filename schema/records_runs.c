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
	if (runs->count % PTR_RUNS_MARK == 0) {
		if (pt_array_grow(&runs->marks, runs->mark_count, &runs->mark_room, NULL) < 0)
			return -1;
		runs->marks[runs->mark_count++] = (uint32_t)runs->used;
	}
	runs->used = (size_t)(put_run(&previous, runs->bytes + runs->used, r) - runs->bytes);
	runs->tsc = r->tsc;
	runs->count++;
	return 0;
}

void ptr_runs_deinit(struct ptr_runs *runs)
{
	free(runs->bytes);
	free(runs->marks);
	*runs = (struct ptr_runs){0};
}

/* After a RUN's bytes, of which there are whole ones. */
static size_t after(const uint8_t *bytes, size_t at)
{
	uint8_t flags = bytes[at++];
	int numbers = 1 + !!(flags & PTR_RUN_TSC) + !!(flags & PTR_RUN_REPEATS) + 2 * !!(flags & PTR_RUN_CYC);

	for (; numbers; at++)
		numbers -= bytes[at] < 0x80;
	return at;
}

size_t ptr_runs_offset(const struct ptr_runs *runs, uint32_t i)
{
	size_t at;

	if (i == runs->count)
		return runs->used;
	at = runs->marks[i / PTR_RUNS_MARK];
	for (uint32_t n = i % PTR_RUNS_MARK; n; n--)
		at = after(runs->bytes, at);
	return at;
}

uint32_t ptr_runs_fitting(const struct ptr_runs *runs, uint32_t from, uint32_t to, size_t bytes)
{
	size_t begin = ptr_runs_offset(runs, from), at = begin;

	if (ptr_runs_offset(runs, to) - begin + PTR_RUN_BYTES_MAX <= bytes)
		return to;
	for (; from < to && at - begin + PTR_RUN_BYTES_MAX <= bytes; from++)
		at = after(runs->bytes, at);
	return from;
}
