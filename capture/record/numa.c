/* numa.c - see numa.h. */
#include "capture/record/numa.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of dir's node folders, in order. */
static int find_nodes(const char *dir, struct hw_list *ret, struct pt_error *e)
{
	DIR *d = opendir(dir);
	struct dirent *one;
	int r = 0;

	while (d && r == 0 && (one = readdir(d))) {
		unsigned number;
		char rest;

		if (sscanf(one->d_name, "node%5u%c", &number, &rest) == 1)
			r = hw_list_add(ret, (int32_t)number, e);
	}
	if (d)
		closedir(d);
	hw_list_sort(ret);
	return r;
}

static int read_node(struct hw_list *ret, const char *dir, int32_t number, struct pt_error *e)
{
	char path[512], line[8192];
	FILE *f;
	bool any;

	snprintf(path, sizeof path, "%s/node%d/cpulist", dir, (int)number);
	f = fopen(path, "re");
	any = f && fgets(line, sizeof line, f);
	if (f)
		fclose(f);
	if (!any)
		return 0;
	line[strcspn(line, "\n")] = 0;
	return line[0] ? hw_list_parse(ret, line, path, e) : 0; /* memory alone */
}

int hw_numa_read(struct hw_numa *ret, const char *dir, struct pt_error *e)
{
	struct hw_list numbers = {0};
	int r = find_nodes(dir, &numbers, e);

	*ret = (struct hw_numa){0};
	if (r == 0 && numbers.count) {
		ret->nodes = calloc(numbers.count, sizeof *ret->nodes);
		r = ret->nodes ? 0 : pt_fail_no_memory(e, "NUMA nodes");
	}
	for (; r == 0 && ret->count < numbers.count; ret->count++)
		r = read_node(&ret->nodes[ret->count], dir, numbers.at[ret->count], e);
	hw_list_deinit(&numbers);
	return r;
}

void hw_numa_deinit(struct hw_numa *n)
{
	for (size_t i = 0; i < n->count; i++)
		hw_list_deinit(&n->nodes[i]);
	free(n->nodes);
	*n = (struct hw_numa){0};
}

size_t hw_numa_node_of(const struct hw_numa *n, int32_t cpu)
{
	for (size_t i = 0; i < n->count; i++)
		if (hw_list_has(&n->nodes[i], cpu))
			return i;
	return 0;
}
