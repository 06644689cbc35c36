/* arena.c - see arena.h. */
#include "decode/code/arena.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PIECE_BYTES ((size_t)2 << 20)

struct img_arena {
	struct img_arena *next;
	uint8_t *at;
	size_t left;
	uint8_t bytes[];
};

size_t img_arena_grows_by(const struct img_arena *a, size_t n)
{
	if (a && n <= a->left)
		return 0;
	return n > PIECE_BYTES / 2 ? sizeof *a + n : PIECE_BYTES;
}

uint8_t *img_arena_take(struct img_arena **a, size_t n)
{
	size_t size = img_arena_grows_by(*a, n);
	struct img_arena *piece = *a;

	if (size || !piece) {
		piece = aligned_alloc(PIECE_BYTES, (size + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES);
		if (!piece)
			return NULL;
		madvise(piece, size, MADV_HUGEPAGE);
		*piece = (struct img_arena){.next = *a, .at = piece->bytes, .left = size - sizeof *piece};
		*a = piece;
	}
	piece->at += n;
	piece->left -= n;
	return piece->at - n;
}

void img_arena_destroy(struct img_arena *a)
{
	while (a) {
		struct img_arena *next = a->next;

		free(a);
		a = next;
	}
}
