/* places.c - see places.h. */
#include "decode/output/places.h"

#include "decode/code/huge_pages.h"

struct pt_place *pt_places_create(void)
{
	struct pt_place *ret = pt_pages_reserve(PT_PLACES_MAX, sizeof *ret);

	/* Most recordings have a few thousand symbols. */
	pt_pages_small(ret, PT_PLACES_MAX, sizeof *ret);
	return ret;
}

void pt_places_destroy(struct pt_place *places)
{
	pt_pages_release(places, PT_PLACES_MAX, sizeof *places);
}
