/*
 * places.h - symbols by their record numbers: where each begins, and which one was the first of the same
 * function of a file. A file that is mapped at several addresses, by one process or by many, has a symbol for
 * each of them.
 */
#ifndef DECODE_OUTPUT_PLACES_H
#define DECODE_OUTPUT_PLACES_H

#include <stdint.h>

struct pt_place {
	uint64_t start;
	uint32_t first; /* its own number, where there was none before */
};

#define PT_PLACES_MAX (1u << 27) /* numbers from there on have no place */

/* By numbers, zeroed; number 0 is none. NULL: no memory. */
struct pt_place *pt_places_create(void);
void pt_places_destroy(struct pt_place *places); /* NULL is fine */

/* One thread sets a number's place before others have heard of that number. */
static inline void pt_places_set(struct pt_place *places, uint32_t number, const struct pt_place *place)
{
	if (number < PT_PLACES_MAX)
		places[number] = *place;
}

static inline struct pt_place pt_place_of(const struct pt_place *places, uint32_t number)
{
	return number < PT_PLACES_MAX ? places[number] : (struct pt_place){.first = number};
}

#endif
