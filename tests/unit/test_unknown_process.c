/* test_unknown_process.c - code that is known although its process is not. */
#include "decode/code/unknown_process.h"
#include "tests/unit/check.h"

#include <stdio.h>

#define PLACE 0x7f0000000000u

static struct img_file *file(struct img_store *s, uint8_t fill)
{
	uint8_t bytes[0x1000];
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .pid = 1,
				  .name = "f",
				  .name_bytes = 1,
				  .vaddr = 0,
				  .bytes = bytes,
				  .size = sizeof bytes};
	struct pt_error e;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = fill;
	return img_store_memory(s, &image, &e);
}

static void map(struct pt_unknown_process *a, struct pt_graph *g, struct img_space *kernel, uint64_t start,
		uint64_t size, struct img_file *f, bool anew)
{
	struct img_map m = {.start = start, .end = start + size, .offset = start & 0xfff, .file = f};
	struct pt_error e;

	check(pt_unknown_process_map(a, g, kernel, &m, anew, &e) == 0, "mapped");
}

/* The file with the code at ip; NULL: none is known. */
static const struct img_file *at(struct pt_unknown_process *a, uint64_t ip)
{
	const struct img_map *m = a->code ? img_space_find(&a->space, ip) : NULL;

	return m ? m->file : NULL;
}

int main(void)
{
	struct img_store *store = img_store_create();
	struct img_file *f = file(store, 1), *g = file(store, 2);
	struct pt_unknown_process a = {0}, b = {0};
	struct img_space kernel;
	struct pt_graph graph;
	struct pt_error e;
	uint64_t generation;

	img_space_init(&kernel);
	if (!f || !g || pt_graph_init(&graph, &e) < 0)
		return 1;
	map(&a, &graph, &kernel, 0x400000, 0x1000, f, true);
	check(!a.code && !at(&a, 0x400000), "where the linker placed it others may be, too");
	map(&a, &graph, &kernel, PLACE, 0x1000, f, true);
	map(&a, &graph, &kernel, PLACE + 0x3000, 0x1000, g, true);
	check(at(&a, PLACE + 5) == f && at(&a, PLACE + 0x3005) == g && !at(&a, PLACE + 0x1000),
	      "code of two");
	generation = a.space.generation;
	map(&a, &graph, &kernel, PLACE, 0x1000, f, false);
	map(&a, &graph, &kernel, PLACE + 0x100, 0x200, f, false);
	check(a.space.generation == generation && at(&a, PLACE + 0x150) == f,
	      "the same again changes nothing");
	/* From in the middle of f, over the gap, into g. */
	map(&a, &graph, &kernel, PLACE + 0x800, 0x3000, g, true);
	check(!at(&a, PLACE + 0x800) && !at(&a, PLACE + 0xfff) && at(&a, PLACE + 0x7ff) == f,
	      "where two have different code there is none");
	check(at(&a, PLACE + 0x1000) == g && at(&a, PLACE + 0x2fff) == g, "what one has alone is known");
	map(&a, &graph, &kernel, PLACE + 0x800, 0x800, f, true);
	check(!at(&a, PLACE + 0x900), "and it remains so");

	/* Places that come again with every program are not random. */
	for (int i = 0; i < 6; i++)
		map(&b, &graph, &kernel, PLACE, 0x1000, f, true);
	check(b.not_random && !at(&b, PLACE), "not placed at random: nothing is known");
	map(&b, &graph, &kernel, PLACE + 0x10000, 0x1000, f, true);
	check(!at(&b, PLACE + 0x10000), "nor anything later");

	pt_unknown_process_deinit(&a);
	pt_unknown_process_deinit(&b);
	img_space_deinit(&kernel);
	pt_graph_deinit(&graph);
	img_store_destroy(store);
	return sum_up();
}
