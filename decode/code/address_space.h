/*
 * address_space.h - what is mapped where in one address space (a process's, or a kernel's), now.
 *
 * A process's space has its kernel's as `upper`: the upper half of its addresses is looked up there. Spaces
 * change as sideband is applied (sideband/apply.h). A cache of a space's code compares its `generation`
 * (graph.h).
 */
#ifndef DECODE_CODE_ADDRESS_SPACE_H
#define DECODE_CODE_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/image.h"
#include "decode/code/map_list.h"

struct img_space {
	struct img_map_list maps;
	uint32_t *sharers;	    /* how many spaces have these maps: forked processes, until one
				     * changes them; NULL: 1 */
	size_t copied_bytes;	    /* of maps, that count against the store's limit */
	uint32_t generation;	    /* changes when what was mapped before has changed or gone */
	uint32_t changes;	    /* changes when anything was mapped */
	const struct img_map *hint; /* the last map that was hit; NULL: none */
	struct img_space *upper;    /* where the code of the upper half of the addresses is; NULL: here */
	struct img_store *store;    /* with the absolute symbols of machine_pid, pid; NULL: none */
	int32_t machine_pid, pid;
};

void img_space_init(struct img_space *sp);
/* The space is the machine's process (PTC_ANY_PID: its kernel): absolute symbols (ptc_symbols) of both name
 * its code. */
void img_space_of(struct img_space *sp, struct img_store *store, int32_t machine_pid, int32_t pid);
void img_space_deinit(struct img_space *sp);

/* Gives `to` the mappings of `from`, and nothing else of it. They share them until one of them changes.
 * 0, or -1 (PT_ERR_NO_MEMORY). */
int img_space_copy(struct img_space *to, struct img_space *from, struct pt_error *e);
/* Maps [start, end), over whatever was there. 0, or -1 (PT_ERR_NO_MEMORY, also by the store's limit). */
int img_space_map(struct img_space *sp, uint64_t start, uint64_t end, uint64_t offset, struct img_file *file,
		  struct pt_error *e);
/* The same of what the container has no bytes of: unread names it (img_store_unread()). */
int img_space_map_unread(struct img_space *sp, uint64_t start, uint64_t end, uint64_t offset,
			 struct img_file *unread, struct pt_error *e);
/* Nothing is mapped any more. */
void img_space_clear(struct img_space *sp);

/* How many maps there are. */
static inline size_t img_space_count(const struct img_space *sp)
{
	return sp->maps.count;
}
/* The map at ip, NULL when there is none. Maps are valid until the space changes. */
const struct img_map *img_space_find(struct img_space *sp, uint64_t ip);
/* The first map that ends after ip; NULL when none does. */
const struct img_map *img_space_after(const struct img_space *sp, uint64_t ip);
/* True when something is mapped in [start, end). */
bool img_space_overlaps(const struct img_space *sp, uint64_t start, uint64_t end);

/* The bytes of code that can be read at ip, and *ret pointing at them; 0 when there are none. */
size_t img_space_code(struct img_space *sp, uint64_t ip, const uint8_t **ret);
/* The same for another thread than the store's (image.h); *ret_later as in img_file_peek(). */
size_t img_space_peek(const struct img_space *sp, uint64_t ip, const uint8_t **ret, bool *ret_later);
/* Copies up to n bytes at ip, across adjacent mappings. Returns how many. */
size_t img_space_read(struct img_space *sp, uint64_t ip, uint8_t *buffer, size_t n);
/* The code in [start, end) was executed, for img_store_track_used(). */
void img_space_use(struct img_space *sp, uint64_t start, uint64_t end);
/*
 * Code was changed in place: what of [start, start + n) is mapped to memory images (which are this space's
 * alone) has these bytes from now on. True when that is other code than before.
 */
bool img_space_write(struct img_space *sp, uint64_t start, const uint8_t *bytes, size_t n);

/* Names [start, end) in the space's machine and process from now on. 0, or -1 (PT_ERR_NO_MEMORY). */
int img_space_name(struct img_space *sp, uint64_t start, uint64_t end, const char *name, struct pt_error *e);
/* The symbol that covers ip: 0 and *ret filled, or -1, also up to ret->until. */
int img_space_symbol(struct img_space *sp, uint64_t ip, struct img_symbol *ret);
/* Of an ip that no symbol covers: the file that is mapped there, as img_file_unnamed() has it; of memory, the
 * mapping, also up to ret->until. 0 and *ret filled, or -1: nothing is mapped there, or it has no name. */
int img_space_unnamed(struct img_space *sp, uint64_t ip, struct img_symbol *ret);

#endif
