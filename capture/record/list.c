/* list.c - see list.h. */
#include "capture/record/list.h"
#include "schema/array.h"

#include <stdlib.h>

#define RANGE_MAX 65536 /* numbers in one "A-B" */

void hw_list_deinit(struct hw_list *l)
{
	free(l->at);
	*l = (struct hw_list){0};
}

int hw_list_add(struct hw_list *l, int32_t v, struct pt_error *e)
{
	if (pt_array_grow(&l->at, l->count, &l->room, e))
		return -1;
	l->at[l->count++] = v;
	return 0;
}

bool hw_list_has(const struct hw_list *l, int32_t v)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->at[i] == v)
			return true;
	return false;
}

static int by_number(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void hw_list_sort(struct hw_list *l)
{
	size_t kept = 0;

	if (l->count)
		qsort(l->at, l->count, sizeof *l->at, by_number);
	for (size_t i = 0; i < l->count; i++)
		if (!kept || l->at[kept - 1] != l->at[i])
			l->at[kept++] = l->at[i];
	l->count = kept;
}

/* "A" or "A-B" at *p, which moves past it. */
static bool parse_range(const char **p, long *first, long *last)
{
	char *end;

	*first = *last = strtol(*p, &end, 10);
	if (end == *p || *first < 0)
		return false;
	*p = end;
	if (**p == '-') {
		*last = strtol(*p + 1, &end, 10);
		if (end == *p + 1)
			return false;
		*p = end;
	}
	return *last >= *first && *last <= INT32_MAX && *last - *first <= RANGE_MAX;
}

int hw_list_parse(struct hw_list *l, const char *text, const char *what, struct pt_error *e)
{
	const char *p = text;
	long first, last;

	while (*p && parse_range(&p, &first, &last)) {
		for (long v = first; v <= last; v++)
			if (!hw_list_has(l, (int32_t)v) && hw_list_add(l, (int32_t)v, e))
				return -1;
		if (*p == 0)
			return 0;
		if (*p++ != ',')
			break;
	}
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s %s: not a list like 1,4-7", what, text);
}
