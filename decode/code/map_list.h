/*
 * map_list.h - the mappings of one address space: sorted, disjoint.
 *
 * They are in blocks of at most IMG_MAP_BLOCK, sorted as well. So to find one takes O(log n), and to
 * insert one moves a block's maps, and now and then the list of blocks: in whatever order n of them
 * come, that is far from n * n.
 */
#ifndef DECODE_CODE_MAP_LIST_H
#define DECODE_CODE_MAP_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct img_file;

/* One mapping of a space. */
struct img_map {
	uint64_t start, end;   /* half-open */
	uint64_t offset;       /* in the file, of start */
	struct img_file *file; /* NULL: mapped, but the container has no bytes for it */
	struct img_file
	    *unread; /* then what has the name of what is mapped (img_store_unread()); NULL: none */
};

#define IMG_MAP_BLOCK 128
struct img_map_block {
	struct img_map *maps; /* one at least */
	uint64_t end;	      /* of the last one */
	uint32_t count, room;
};

/* Zeroed, it is empty. */
struct img_map_list {
	struct img_map_block *blocks;
	size_t block_count, block_room;
	size_t count; /* of maps */
};

/* A place in the list: that of a map, or after the last one (block is block_count, at is 0). Valid
 * until the list changes, but for the place at which it does. */
struct img_map_place {
	size_t block, at;
};

void img_map_list_deinit(struct img_map_list *l);
/* Gives `to` the maps of `from`. 0, or -1 (PT_ERR_NO_MEMORY): then it is as it was. */
int img_map_list_copy(struct img_map_list *to, const struct img_map_list *from, struct pt_error *e);

/* The place of the first map that ends after ip. */
struct img_map_place img_map_list_after(const struct img_map_list *l, uint64_t ip);
/* NULL: the place is after the last one. */
static inline struct img_map *img_map_list_at(const struct img_map_list *l, struct img_map_place p)
{
	return p.block < l->block_count ? &l->blocks[p.block].maps[p.at] : NULL;
}

/* Inserts the map at *place, before what is there; *place is then the new map's. It fits there: it
 * ends where the next one starts, or before that. 0, or -1 (PT_ERR_NO_MEMORY). */
int img_map_list_insert(struct img_map_list *l, struct img_map_place *place, const struct img_map *map,
			struct pt_error *e);
/* Removes the map at *place; *place is then that of the next one. */
void img_map_list_remove(struct img_map_list *l, struct img_map_place *place);
/* The map at the place ends there from now on: not later than before, and after its start. */
void img_map_list_set_end(struct img_map_list *l, struct img_map_place place, uint64_t end);

#endif
