/* thread_paths.c - see thread_paths.h. */
#include "export/thread_paths.h"

#include <stdlib.h>
#include <string.h>

#include "export/scratch.h"
#include "schema/array.h"
#include "schema/hash.h"

enum {
	SUMS_MAX = 1 << 18, /* in memory */
	READ_SUMS = 256,    /* of a part, at a time */
	FETCHED = 4	    /* between the two steps of fetching sums */
};

/* Sums in order, each thread and path once: a part of the file, or what is in memory. */
struct part {
	uint64_t from, count; /* in the file, in sums: what is still to be read */
	struct thread_path *sums;
	size_t at, held; /* of sums, while they are merged */
};

struct thread_paths {
	struct thread_path *sums; /* number n at n - 1 */
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
	struct thread_path *buffers; /* of all parts in the file */
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
	free(t->sums);
	free(t->parts);
	free(t->buffers);
	free(t);
}

/* ---- Adding ----------------------------------------------------------------------------------------- */

static uint64_t key_of(uint32_t thread, uint32_t path)
{
	return pt_hash_mix((uint64_t)thread << 32 | path);
}

void thread_paths_fetch(struct thread_paths *t, uint32_t thread, uint32_t path)
{
	uint64_t *before = &t->fetched[t->fetched_at++ % FETCHED], key = key_of(thread, path);
	uint32_t number = t->by_key.slots[pt_hash_first(&t->by_key, *before)];

	if (!t->count)
		return;
	__builtin_prefetch(&t->by_key.slots[pt_hash_first(&t->by_key, key)]);
	if (number)
		__builtin_prefetch(&t->sums[number - 1]);
	*before = key;
}

static uint64_t key_of_number(const void *sums, uint32_t n)
{
	const struct thread_path *s = (const struct thread_path *)sums + n - 1;

	return key_of(s->thread, s->path);
}

static int compare(const void *a, const void *b)
{
	const struct thread_path *x = a, *y = b;

	if (x->path != y->path)
		return x->path < y->path ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void sort(struct thread_paths *t)
{
	if (t->count)
		qsort(t->sums, t->count, sizeof *t->sums, compare);
}

/* What is in memory becomes a part of the file. */
static int write_part(struct thread_paths *t, struct pt_error *e)
{
	size_t each = sizeof *t->sums;

	if (pt_array_grow(&t->parts, t->part_count, &t->part_room, e) < 0)
		return -1;
	sort(t);
	if (scratch_write(t->scratch, t->sums, t->count * each, t->written * each, e) < 0)
		return -1;
	t->parts[t->part_count++] = (struct part){.from = t->written, .count = t->count};
	t->written += t->count;
	t->count = 0;
	t->by_key.count = 0;
	memset(t->by_key.slots, 0, ((size_t)t->by_key.mask + 1) * sizeof *t->by_key.slots);
	return 0;
}

/* The sums of that thread and path, begun when there are none. NULL: no memory, or the file's error. */
static struct thread_path *sums_of(struct thread_paths *t, uint32_t thread, uint32_t path, struct pt_error *e)
{
	uint64_t key = key_of(thread, path);
	uint32_t n;

	for (uint32_t i = pt_hash_first(&t->by_key, key); (n = t->by_key.slots[i]);
	     i = pt_hash_next(&t->by_key, i))
		if (t->sums[n - 1].thread == thread && t->sums[n - 1].path == path)
			return &t->sums[n - 1];
	if (t->count == SUMS_MAX && write_part(t, e) < 0)
		return NULL;
	if (pt_array_grow(&t->sums, t->count, &t->room, e) ||
	    pt_hash_insert(&t->by_key, key, (uint32_t)t->count + 1, key_of_number, t->sums, e))
		return NULL;
	t->sums[t->count] = (struct thread_path){.thread = thread, .path = path};
	return &t->sums[t->count++];
}

static void add_to(struct thread_path *s, const struct thread_path *add)
{
	s->calls += add->calls;
	s->insns += add->insns;
	s->cycles += add->cycles;
	s->has_cycles |= add->has_cycles;
}

int thread_paths_add(struct thread_paths *t, const struct thread_path *add, struct pt_error *e)
{
	struct thread_path *s = sums_of(t, add->thread, add->path, e);

	if (!s)
		return -1;
	add_to(s, add);
	return 0;
}

/* ---- Merging ---------------------------------------------------------------------------------------- */

/* More of the part, whose sums were all taken. It has none then when it is at its end. */
static int read_more(const struct thread_paths *t, struct part *p, struct pt_error *e)
{
	size_t n = p->count < READ_SUMS ? (size_t)p->count : READ_SUMS, bytes = n * sizeof *p->sums, got;

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
	size_t files = t->part_count;

	sort(t);
	t->buffers = calloc((files + 1) * READ_SUMS, sizeof *t->buffers);
	if (!t->buffers || pt_array_grow(&t->parts, files, &t->part_room, e) < 0)
		return pt_fail_no_memory(e, "call paths");
	for (size_t i = 0; i < files; i++) {
		t->parts[i].sums = t->buffers + i * READ_SUMS;
		if (read_more(t, &t->parts[i], e) < 0)
			return -1;
	}
	if (t->count)
		t->parts[t->part_count++] = (struct part){.sums = t->sums, .held = t->count};
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
