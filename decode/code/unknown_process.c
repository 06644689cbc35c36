/* unknown_process.c - see unknown_process.h. */
#include "decode/code/unknown_process.h"

void pt_unknown_process_deinit(struct pt_unknown_process *a)
{
	img_space_deinit(&a->space);
}

static bool alike(const struct img_map *a, const struct img_map *b)
{
	return a->file == b->file && a->offset - a->start == b->offset - b->start;
}

/* What of the map lies between `at` and where another one begins or ends; and that other one, NULL: there is none there. */
static const struct img_map *part(const struct img_space *sp, const struct img_map *map, uint64_t at,
				  struct img_map *ret)
{
	size_t i = img_space_after(sp, at);
	const struct img_map *there = i < sp->count && sp->maps[i].start <= at ? &sp->maps[i] : NULL;
	uint64_t end = there ? there->end : i < sp->count ? sp->maps[i].start : UINT64_MAX;

	*ret = (struct img_map){.start = at,
				.end = end < map->end ? end : map->end,
				.offset = map->offset + (at - map->start),
				.file = map->file};
	return there;
}

int pt_unknown_process_map(struct pt_unknown_process *a, struct pt_graph *graph, struct img_space *upper,
			   const struct img_map *map, bool anew, struct pt_error *e)
{
	bool same = true;

	if (a->never || map->start < PT_UNKNOWN_PROCESS_LOWEST || map->end <= map->start)
		return 0;
	if (!a->code) {
		img_space_init(&a->space);
		a->space.upper = upper;
		a->space.store = upper->store;
		a->space.machine_pid = upper->machine_pid;
		a->space.pid = PTC_ANY_PID;
		a->code = pt_graph_code(graph, &a->space);
		if (!a->code)
			return pt_fail_no_memory(e, "code");
		a->code->unknown_process = true;
	}
	a->told++;
	for (uint64_t at = map->start; at < map->end;) {
		struct img_map piece;
		const struct img_map *there = part(&a->space, map, at, &piece);
		bool equal = there && alike(there, &piece);

		same &= equal;
		/* What two have differently is nobody's. */
		if (there && !equal)
			piece.file = NULL;
		if (!equal &&
		    img_space_map(&a->space, piece.start, piece.end, piece.offset, piece.file, e) < 0)
			return -1;
		at = piece.end;
	}
	a->again += same && anew;
	if (a->again > 2 + a->told / 256) {
		a->never = true;
		img_space_clear(&a->space);
	}
	return 0;
}
