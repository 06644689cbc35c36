/*
 * array.h - a growing array: pointer, count and room, kept by its owner.
 *
 *     if (pt_array_grow(&items, count, &room, e))
 *             return -1;
 *     items[count++] = item;
 */
#ifndef SCHEMA_ARRAY_H
#define SCHEMA_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/error.h"

/*
 * Makes room for one element more than count in the array whose pointer is at *items (NULL: none yet)
 * and which has *room elements of element_bytes. The room at least doubles, so n additions take time
 * O(n). Returns 0; or -1 (PT_ERR_NO_MEMORY), and array and room are as they were. New elements are
 * not initialised.
 */
static inline int pt_array_grow_bytes(void *items, size_t count, size_t *room, size_t element_bytes,
				      struct pt_error *e)
{
	size_t wanted = *room ? 2 * *room : 16;
	void *old, *grown;

	if (count < *room)
		return 0;
	if (*room > SIZE_MAX / 2 / element_bytes)
		return pt_fail_no_memory(e, NULL);
	memcpy(&old, items, sizeof old); /* items is of any pointer type */
	grown = realloc(old, wanted * element_bytes);
	if (!grown)
		return pt_fail_no_memory(e, NULL);
	memcpy(items, &grown, sizeof grown);
	*room = wanted;
	/* cppcheck-suppress memleak ; it is in *items */
	return 0;
}

/* items: the address of the pointer; room: of a size_t. An element may be a pointer. */
#define pt_array_grow(items, count, room, e)                                                                 \
	pt_array_grow_bytes((items), (count), (room),                                                        \
			    sizeof **(items) /* NOLINT(bugprone-sizeof-expression) */, (e))

/* For qsort() of an array of uint64_t: the least first. */
static inline int pt_compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

#endif
