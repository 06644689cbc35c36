/*
 * arena.h - memory for the bytes of many images, given back all at once. Filled here and there, then read at
 * random: it lies on huge pages, where one is one page fault and one TLB entry.
 */
#ifndef DECODE_CODE_ARENA_H
#define DECODE_CODE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct img_arena; /* NULL is an empty one */

/* How many bytes img_arena_take() of n will ask the system for; 0: the arena has room. */
size_t img_arena_grows_by(const struct img_arena *a, size_t n);
/* n bytes that live as long as the arena. NULL: no memory. */
uint8_t *img_arena_take(struct img_arena **a, size_t n);
void img_arena_destroy(struct img_arena *a);

#endif
