/* thread_paths.c - see thread_paths.h. */
#include "export/thread_paths.h"

#include <stdlib.h>
#include <string.h>

#include "export/scratch.h"
#include "schema/array.h"
#include "schema/hash.h"

enum {
	BLOCK_BITS = 3, /* paths with numbers side by side: such calls come one after the other */
	BLOCK_PATHS = 1 << BLOCK_BITS,
	BLOCKS_MAX = 1 << 15, /* in memory */
	FILE_SUMS = 256,      /* written to the file, and read of a part, at a time */
	FETCHED = 4	      /* between the two steps of fetching sums */
};

/* A thread's sums of these paths. */
struct block {
	uint32_t thread, paths;		 /* the first one >> BLOCK_BITS */
	uint8_t has_cycles, has_elapsed; /* bit i: of path i */
	struct {
		uint64_t calls, insns, cycles, elapsed_tsc;
	} sums[BLOCK_PATHS];
};

/* Sums in order, each thread and path once: a part of the file. */
struct part {
	uint64_t from, count; /* in sums: what is still to be read */
	struct thread_path *sums;
	size_t at, held; /* of sums, while they are merged */
};

struct thread_paths {
	struct block *blocks; /* number n at n - 1 */
	size_t count, room;
	struct pt_hash by_key; /* of numbers */
	/* Whose slots were fetched last, by their keys: what they lead to is fetched some later. */
	uint64_t fetched[FETCHED];
	unsigned fetched_at;
	int scratch;
	uint64_t written; /* sums in the file */
	/* When they are merged a heap: the part with the least sum is the first. */
	struct part *parts;
	size_t part_count, part_room;
	struct thread_path *buffers; /* of all parts */
};

struct thread_paths *thread_paths_create(int scratch, struct pt_error *e)
{
	struct thread_paths *t = calloc(1, sizeof *t);

	if (!t) {
		pt_fail_no_memory(e, "call paths");
		return NULL;
	}
	t->scratch = scratch;
	if (pt_hash_init(&t->by_key, 8, e) < 0) {
		free(t);
		return NULL;
	}
	return t;
}

void thread_paths_destroy(struct thread_paths *t)
{
	if (!t)
		return;
	pt_hash_deinit(&t->by_key);
	free(t->blocks);
	free(t->parts);
	free(t->buffers);
	free(t);
}

/* ---- Adding ----------------------------------------------------------------------------------------- */

static uint64_t key_of(uint32_t thread, uint32_t paths)
{
	return pt_hash_mix((uint64_t)thread << 32 | paths);
}

void thread_paths_fetch(struct thread_paths *t, uint32_t thread, uint32_t path)
{
	uint64_t *before = &t->fetched[t->fetched_at++ % FETCHED], key = key_of(thread, path >> BLOCK_BITS);
	uint32_t number = t->by_key.slots[pt_hash_first(&t->by_key, *before)];

	if (!t->count)
		return;
	__builtin_prefetch(&t->by_key.slots[pt_hash_first(&t->by_key, key)]);
	if (number)
		__builtin_prefetch(&t->blocks[number - 1]);
	*before = key;
}

static uint64_t key_of_number(const void *blocks, uint32_t n)
{
	const struct block *b = (const struct block *)blocks + n - 1;

	return key_of(b->thread, b->paths);
}

static int compare_blocks(const void *a, const void *b)
{
	const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;

	if (x->paths != y->paths)
		return x->paths < y->paths ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Sums on their way to the file. */
struct writing {
	struct thread_path sums[FILE_SUMS];
	uint32_t count;
};

static int write_sums(struct thread_paths *t, struct writing *w, struct pt_error *e)
{
	size_t each = sizeof *w->sums;

	if (scratch_write(t->scratch, w->sums, w->count * each, t->written * each, e) < 0)
		return -1;
	t->written += w->count;
	w->count = 0;
	return 0;
}

/* Those of blocks of the same paths, path by path. */
static int write_paths(struct thread_paths *t, struct block *const *blocks, size_t n, struct writing *w,
		       struct pt_error *e)
{
	for (uint32_t i = 0; i < BLOCK_PATHS; i++)
		for (size_t k = 0; k < n; k++) {
			const struct block *b = blocks[k];

			if (!b->sums[i].calls)
				continue;
			if (w->count == FILE_SUMS && write_sums(t, w, e) < 0)
				return -1;
			w->sums[w->count++] = (struct thread_path){.thread = b->thread,
								   .path = (b->paths << BLOCK_BITS) + i,
								   .calls = b->sums[i].calls,
								   .insns = b->sums[i].insns,
								   .cycles = b->sums[i].cycles,
								   .elapsed_tsc = b->sums[i].elapsed_tsc,
								   .has_cycles = b->has_cycles >> i & 1,
								   .has_elapsed = b->has_elapsed >> i & 1};
		}
	return 0;
}

/* By path, then thread. */
static int write_sorted(struct thread_paths *t, struct block **sorted, struct pt_error *e)
{
	struct writing w = {.count = 0};

	for (size_t i = 0; i < t->count; i++)
		sorted[i] = &t->blocks[i];
	qsort(sorted, t->count, sizeof(struct block *), compare_blocks);
	for (size_t i = 0, n; i < t->count; i += n) {
		for (n = 1; i + n < t->count && sorted[i + n]->paths == sorted[i]->paths; n++)
			;
		if (write_paths(t, sorted + i, n, &w, e) < 0)
			return -1;
	}
	return write_sums(t, &w, e);
}

/* What is in memory becomes a part of the file. */
static int write_part(struct thread_paths *t, struct pt_error *e)
{
	uint64_t from = t->written;
	struct block **sorted = calloc(t->count, sizeof(struct block *));
	int ret;

	if (!sorted || pt_array_grow(&t->parts, t->part_count, &t->part_room, e) < 0) {
		free(sorted);
		return pt_fail_no_memory(e, "call paths");
	}
	ret = write_sorted(t, sorted, e);
	free(sorted);
	if (ret < 0)
		return -1;
	t->parts[t->part_count++] = (struct part){.from = from, .count = t->written - from};
	t->count = 0;
	t->by_key.count = 0;
	memset(t->by_key.slots, 0, ((size_t)t->by_key.mask + 1) * sizeof *t->by_key.slots);
	return 0;
}

static struct block *add_block(struct thread_paths *t, uint32_t thread, uint32_t paths, struct pt_error *e)
{
	if (t->count == BLOCKS_MAX && write_part(t, e) < 0)
		return NULL;
	if (pt_array_grow(&t->blocks, t->count, &t->room, e) ||
	    pt_hash_insert(&t->by_key, key_of(thread, paths), (uint32_t)t->count + 1, key_of_number,
			   t->blocks, e))
		return NULL;
	t->blocks[t->count] = (struct block){.thread = thread, .paths = paths};
	return &t->blocks[t->count++];
}

/* Begun when there is none. NULL: no memory, or the file's error. */
static struct block *block_of(struct thread_paths *t, uint32_t thread, uint32_t paths, struct pt_error *e)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(&t->by_key, key_of(thread, paths)); (n = t->by_key.slots[i]);
	     i = pt_hash_next(&t->by_key, i))
		if (t->blocks[n - 1].thread == thread && t->blocks[n - 1].paths == paths)
			return &t->blocks[n - 1];
	return add_block(t, thread, paths, e);
}

int thread_paths_add(struct thread_paths *t, const struct thread_path *add, struct pt_error *e)
{
	struct block *b = block_of(t, add->thread, add->path >> BLOCK_BITS, e);
	unsigned i = add->path & (BLOCK_PATHS - 1);

	if (!b)
		return -1;
	b->sums[i].calls += add->calls;
	b->sums[i].insns += add->insns;
	b->sums[i].cycles += add->cycles;
	b->sums[i].elapsed_tsc += add->elapsed_tsc;
	b->has_cycles |= (uint8_t)(add->has_cycles << i);
	b->has_elapsed |= (uint8_t)(add->has_elapsed << i);
	return 0;
}

/* ---- Merging ---------------------------------------------------------------------------------------- */

static int compare(const struct thread_path *x, const struct thread_path *y)
{
	if (x->path != y->path)
		return x->path < y->path ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* More of the part, whose sums were all taken. It has none then when it is at its end. */
static int read_more(const struct thread_paths *t, struct part *p, struct pt_error *e)
{
	size_t n = p->count < FILE_SUMS ? (size_t)p->count : FILE_SUMS, bytes = n * sizeof *p->sums, got;

	p->at = p->held = 0;
	if (!n)
		return 0;
	if (scratch_read(t->scratch, p->sums, bytes, p->from * sizeof *p->sums, &got, e) < 0)
		return -1;
	if (got < bytes)
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "a scratch file was cut");
	p->held = n;
	p->from += n;
	p->count -= n;
	return 0;
}

/* All that is below it is a heap. */
static void sift_down(struct thread_paths *t, size_t at)
{
	for (size_t child; (child = 2 * at + 1) < t->part_count; at = child) {
		struct part part = t->parts[at], *c = t->parts + child;

		if (child + 1 < t->part_count && compare(c[1].sums + c[1].at, c->sums + c->at) < 0)
			c = t->parts + ++child;
		if (compare(part.sums + part.at, c->sums + c->at) <= 0)
			return;
		t->parts[at] = *c;
		*c = part;
	}
}

int thread_paths_rewind(struct thread_paths *t, struct pt_error *e)
{
	if (t->count && write_part(t, e) < 0)
		return -1;
	t->buffers = calloc(t->part_count + 1, FILE_SUMS * sizeof *t->buffers);
	if (!t->buffers)
		return pt_fail_no_memory(e, "call paths");
	for (size_t i = 0; i < t->part_count; i++) {
		t->parts[i].sums = t->buffers + i * FILE_SUMS;
		if (read_more(t, &t->parts[i], e) < 0)
			return -1;
	}
	for (size_t i = t->part_count / 2; i-- > 0;)
		sift_down(t, i);
	return 0;
}

/* The least sum goes. */
static int take_first(struct thread_paths *t, struct pt_error *e)
{
	struct part *first = &t->parts[0];

	if (++first->at == first->held && read_more(t, first, e) < 0)
		return -1;
	if (first->at == first->held)
		*first = t->parts[--t->part_count];
	sift_down(t, 0);
	return 0;
}

static void add_to(struct thread_path *s, const struct thread_path *add)
{
	s->calls += add->calls;
	s->insns += add->insns;
	s->cycles += add->cycles;
	s->elapsed_tsc += add->elapsed_tsc;
	s->has_cycles |= add->has_cycles;
	s->has_elapsed |= add->has_elapsed;
}

int thread_paths_next(struct thread_paths *t, struct thread_path *ret, struct pt_error *e)
{
	const struct part *first = t->parts;

	if (!t->part_count)
		return 0;
	*ret = first->sums[first->at];
	if (take_first(t, e) < 0)
		return -1;
	while (t->part_count && compare(ret, first->sums + first->at) == 0) {
		add_to(ret, first->sums + first->at);
		if (take_first(t, e) < 0)
			return -1;
	}
	return 1;
}
