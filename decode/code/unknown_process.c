/* unknown_process.c - see unknown_process.h. */
#include "decode/code/unknown_process.h"

void pt_unknown_process_deinit(struct pt_unknown_process *u)
{
	img_space_deinit(&u->space);
}

static int create_code(struct pt_unknown_process *u, struct pt_graph *graph, struct img_space *upper,
		       struct pt_error *e)
{
	img_space_init(&u->space);
	img_space_of(&u->space, upper->store, upper->machine_pid, PTC_ANY_PID);
	u->space.upper = upper;
	u->code = pt_graph_code(graph, &u->space);
	if (!u->code)
		return pt_fail_no_memory(e, "code");
	u->code->unknown_process = true;
	return 0;
}

static bool same_code(const struct img_map *a, const struct img_map *b)
{
	return a->file == b->file && a->offset - a->start == b->offset - b->start;
}

/* The piece of map from `at` on, up to where another mapping of sp begins or ends. Returns that which is
 * there, or NULL. */
static const struct img_map *next_piece(const struct img_space *sp, const struct img_map *map, uint64_t at,
					struct img_map *ret)
{
	const struct img_map *next = img_space_after(sp, at),
			     *there = next && next->start <= at ? next : NULL;
	uint64_t end = there ? there->end : next ? next->start : UINT64_MAX;

	*ret = (struct img_map){.start = at,
				.end = end < map->end ? end : map->end,
				.offset = map->offset + (at - map->start),
				.file = map->file};
	return there;
}

int pt_unknown_process_map(struct pt_unknown_process *u, struct pt_graph *graph, struct img_space *upper,
			   const struct img_map *map, bool fresh, struct pt_error *e)
{
	bool same = true;

	if (u->not_random || map->start < PT_UNKNOWN_PROCESS_LOWEST || map->end <= map->start)
		return 0;
	if (!u->code && create_code(u, graph, upper, e) < 0)
		return -1;
	u->mappings++;
	for (uint64_t at = map->start; at < map->end;) {
		struct img_map piece;
		const struct img_map *there = next_piece(&u->space, map, at, &piece);
		bool equal = there && same_code(there, &piece);

		same &= equal;
		if (there && !equal)
			piece.file = NULL;
		if (!equal &&
		    img_space_map(&u->space, piece.start, piece.end, piece.offset, piece.file, e) < 0)
			return -1;
		at = piece.end;
	}
	u->repeated += same && fresh;
	if (u->repeated > 2 + u->mappings / 256) {
		u->not_random = true;
		img_space_clear(&u->space);
	}
	return 0;
}
