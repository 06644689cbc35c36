/* image_used.c - see image_used.h. */
#include "decode/code/image_used.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "schema/array.h"

#define INSN_BYTES_MAX 15

struct img_used {
	uint64_t *grains; /* some of them more than once, until they are sorted */
	size_t count, room;
	bool failed; /* out of memory: some are missing */
};

struct img_used *img_used_create(void)
{
	return calloc(1, sizeof(struct img_used));
}

void img_used_destroy(struct img_used *u)
{
	if (u)
		free(u->grains);
	free(u);
}

static void unique(struct img_used *u)
{
	size_t n = 0;

	if (u->count)
		qsort(u->grains, u->count, sizeof *u->grains, pt_compare_u64);
	for (size_t i = 0; i < u->count; i++)
		if (n == 0 || u->grains[n - 1] != u->grains[i])
			u->grains[n++] = u->grains[i];
	u->count = n;
}

static void add_grain(struct img_used *u, uint64_t grain)
{
	if (u->count && u->grains[u->count - 1] == grain)
		return;
	if (u->count == u->room) {
		unique(u);
		if (u->count * 2 >= u->room && pt_array_grow(&u->grains, u->room, &u->room, NULL) < 0) {
			u->failed = true;
			u->count = 0;
			return;
		}
	}
	u->grains[u->count++] = grain;
}

void img_used_add(struct img_used *u, uint64_t offset)
{
	add_grain(u, offset / IMG_USED_GRAIN);
	if ((offset + INSN_BYTES_MAX - 1) / IMG_USED_GRAIN != offset / IMG_USED_GRAIN)
		add_grain(u, (offset + INSN_BYTES_MAX - 1) / IMG_USED_GRAIN);
}

int img_used_print(struct img_used *u, const char *prefix, const char *name, FILE *to, struct pt_error *e)
{
	if (u->failed)
		return pt_fail_no_memory(e, "the list of used code");
	unique(u);
	for (size_t i = 0, n; i < u->count; i += n) {
		for (n = 1; i + n < u->count && u->grains[i + n] == u->grains[i] + n; n++)
			;
		if (fprintf(to, "%s %" PRIx64 " %zu %s\n", prefix, u->grains[i] * IMG_USED_GRAIN,
			    n * IMG_USED_GRAIN, name) < 0)
			return pt_fail_errno(e, "cannot write the list of used code");
	}
	return 0;
}
