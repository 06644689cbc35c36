/* map_list.c - see map_list.h. */
#include "decode/code/map_list.h"

#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

void img_map_list_deinit(struct img_map_list *l)
{
	for (size_t i = 0; i < l->block_count; i++)
		free(l->blocks[i].maps);
	free(l->blocks);
	*l = (struct img_map_list){0};
}

int img_map_list_copy(struct img_map_list *to, const struct img_map_list *from, struct pt_error *e)
{
	struct img_map_list copy = {.count = from->count};

	if (from->block_count) {
		copy.blocks = malloc(from->block_count * sizeof *copy.blocks);
		if (!copy.blocks)
			return pt_fail_no_memory(e, "mappings");
		copy.block_room = from->block_count;
	}
	for (size_t i = 0; i < from->block_count; i++) {
		struct img_map_block b = from->blocks[i];

		b.room = b.count;
		b.maps = malloc(b.count * sizeof *b.maps);
		if (!b.maps) {
			img_map_list_deinit(&copy);
			return pt_fail_no_memory(e, "mappings");
		}
		memcpy(b.maps, from->blocks[i].maps, b.count * sizeof *b.maps);
		copy.blocks[copy.block_count++] = b;
	}
	img_map_list_deinit(to);
	*to = copy;
	return 0;
}

struct img_map_place img_map_list_after(const struct img_map_list *l, uint64_t ip)
{
	struct img_map_place p = {0, 0};
	size_t lo = 0, hi = l->block_count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (l->blocks[mid].end > ip)
			hi = mid;
		else
			lo = mid + 1;
	}
	p.block = lo;
	if (lo == l->block_count)
		return p;
	for (hi = l->blocks[p.block].count, lo = 0; lo < hi;) {
		size_t mid = (lo + hi) / 2;

		if (l->blocks[p.block].maps[mid].end > ip)
			hi = mid;
		else
			lo = mid + 1;
	}
	p.at = lo;
	return p;
}

static void note_end(struct img_map_block *b)
{
	b->end = b->maps[b->count - 1].end;
}

static int add_block(struct img_map_list *l, size_t i, uint32_t room, struct pt_error *e)
{
	struct img_map *maps;

	if (pt_array_grow(&l->blocks, l->block_count, &l->block_room, e) < 0)
		return -1;
	maps = malloc(room * sizeof *maps);
	if (!maps)
		return pt_fail_no_memory(e, "mappings");
	memmove(&l->blocks[i + 1], &l->blocks[i], (l->block_count++ - i) * sizeof *l->blocks);
	l->blocks[i] = (struct img_map_block){.maps = maps, .room = room};
	return 0;
}

/* The full block's second half becomes the next block. The last one's remains: what is mapped in
 * ascending order fills blocks. */
static int split_block(struct img_map_list *l, struct img_map_place *place, struct pt_error *e)
{
	struct img_map_block *b, *next;
	uint32_t kept = place->at == IMG_MAP_BLOCK ? IMG_MAP_BLOCK - 1 : IMG_MAP_BLOCK / 2;

	if (add_block(l, place->block + 1, IMG_MAP_BLOCK, e) < 0)
		return -1;
	b = &l->blocks[place->block];
	next = b + 1;
	next->count = b->count - kept;
	memcpy(next->maps, b->maps + kept, next->count * sizeof *b->maps);
	b->count = kept;
	note_end(b);
	note_end(next);
	if (place->at > kept) {
		place->block++;
		place->at -= kept;
	}
	return 0;
}

static int make_room(struct img_map_list *l, struct img_map_place *place, struct pt_error *e)
{
	struct img_map_block *b;
	uint32_t room;
	struct img_map *maps;

	if (!l->block_count && add_block(l, 0, 8, e) < 0)
		return -1;
	/* After the last one: at the end of the last block. */
	if (place->block == l->block_count) {
		place->block--;
		place->at = l->blocks[place->block].count;
	}
	b = &l->blocks[place->block];
	if (b->count < b->room)
		return 0;
	if (b->room >= IMG_MAP_BLOCK)
		return split_block(l, place, e);
	room = 2 * b->room < IMG_MAP_BLOCK ? 2 * b->room : IMG_MAP_BLOCK;
	maps = realloc(b->maps, room * sizeof *maps);
	if (!maps)
		return pt_fail_no_memory(e, "mappings");
	b->maps = maps;
	b->room = room;
	return 0;
}

int img_map_list_insert(struct img_map_list *l, struct img_map_place *place, const struct img_map *map,
			struct pt_error *e)
{
	struct img_map_block *b;

	if (make_room(l, place, e) < 0)
		return -1;
	b = &l->blocks[place->block];
	memmove(&b->maps[place->at + 1], &b->maps[place->at], (b->count++ - place->at) * sizeof *b->maps);
	b->maps[place->at] = *map;
	note_end(b);
	l->count++;
	return 0;
}

void img_map_list_remove(struct img_map_list *l, struct img_map_place *place)
{
	struct img_map_block *b = &l->blocks[place->block];

	l->count--;
	if (--b->count == 0) {
		free(b->maps);
		memmove(b, b + 1, (--l->block_count - place->block) * sizeof *b);
		return;
	}
	memmove(&b->maps[place->at], &b->maps[place->at + 1], (b->count - place->at) * sizeof *b->maps);
	note_end(b);
	if (place->at == b->count) {
		place->block++;
		place->at = 0;
	}
}

void img_map_list_set_end(struct img_map_list *l, struct img_map_place place, uint64_t end)
{
	struct img_map_block *b = &l->blocks[place.block];

	b->maps[place.at].end = end;
	note_end(b);
}
