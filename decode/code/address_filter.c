/* address_filter.c - see address_filter.h. */
#include "decode/code/address_filter.h"

#include <stdlib.h>
#include <string.h>

static const char *skip(const char *p, const char *what)
{
	return p + strspn(p, what);
}

void pt_filter_parse(struct pt_filter *ret, const char *text)
{
	const char *p = text ? skip(text, " ") : "";

	memset(ret, 0, sizeof *ret);
	while (*p && ret->count < PT_FILTER_RANGES) {
		bool stop = !strncmp(p, "stop ", 5) || !strncmp(p, "tracestop ", 10);
		char *end;

		if (!stop && strncmp(p, "filter ", 7) != 0)
			break;
		ret->range[ret->count].stop = stop;
		p = skip(p + strcspn(p, " "), " ");
		ret->range[ret->count].start = strtoull(p, &end, 0);
		p = skip(end, " /");
		ret->range[ret->count].size = strtoull(p, &end, 0);
		p = skip(end, " ");
		if (*p == '@') {
			p = skip(p + 1, " ");
			ret->range[ret->count].file = p;
			ret->range[ret->count].file_length = strcspn(p, ",");
			p += strcspn(p, ",");
		}
		if (*p && *p != ',')
			break;
		ret->count++;
		p = skip(p, ", ");
	}
	if (*p)
		ret->count = 0;
}

bool pt_filter_shuts_out(const struct pt_filter *f, struct img_space *space, uint64_t ip)
{
	const struct img_map *map = img_space_find(space, ip);
	const char *name = map && map->file ? img_file_name(map->file) : NULL;
	bool has_filters = false, in_filter = false;

	for (unsigned i = 0; i < f->count; i++) {
		uint64_t at = ip;
		bool in;

		if (f->range[i].file) {
			if (!name)
				return false;
			at = map->offset + (ip - map->start);
		}
		in = at - f->range[i].start < f->range[i].size &&
		     (!f->range[i].file || (strlen(name) == f->range[i].file_length &&
					    !memcmp(name, f->range[i].file, f->range[i].file_length)));
		if (f->range[i].stop && in)
			return true;
		has_filters |= !f->range[i].stop;
		in_filter |= in && !f->range[i].stop;
	}
	return has_filters && !in_filter;
}
