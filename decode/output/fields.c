/* fields.c - see fields.h. */
#include "decode/output/fields.h"

#include <string.h>

/* The place of the name of n bytes among the names; -1: it is none of them. */
static int place_of(const char *name, size_t n, const char *names)
{
	for (int place = 0; *names; place++) {
		size_t bytes = strcspn(names, ",");

		if (bytes == n && !strncmp(names, name, n))
			return place;
		names += bytes + (names[bytes] == ',');
	}
	return -1;
}

int pt_fields_parse(struct pt_fields *ret, const char *list, const char *names, struct pt_error *e)
{
	for (const char *p = list; *p;) {
		size_t n = strcspn(p, ",");
		int place = place_of(p, n, names);

		if (place < 0 || ret->count == PT_FIELDS_MAX)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				       "-F: no field is called '%.*s'; there are %s", (int)n, p, names);
		ret->at[ret->count++] = (uint8_t)place;
		p += n + (p[n] == ',');
	}
	return 0;
}
