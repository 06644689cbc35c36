/* stacks.c - see stacks.h. */
#include "queries/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "queries/print.h"
#include "queries/rows.h"
#include "schema/array.h"

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t key_of_text(const char *s, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3;
	return pt_hash_mix(h);
}

static uint64_t key_of_frame(const void *frames, uint32_t n)
{
	const char *name = ((char *const *)frames)[n - 1];

	return key_of_text(name, strlen(name));
}

/* The number of a frame, counted from 1; 0: no memory. */
static uint32_t frame_of(struct stacks *p, const char *name, size_t bytes, struct pt_error *e)
{
	uint64_t key = key_of_text(name, bytes);
	uint32_t n;

	for (uint32_t i = pt_hash_first(&p->by_name, key); p->frames && (n = p->by_name.slots[i]);
	     i = pt_hash_next(&p->by_name, i))
		if (strncmp(p->frames[n - 1], name, bytes) == 0 && !p->frames[n - 1][bytes])
			return n;
	if (pt_array_grow(&p->frames, p->frame_count, &p->frame_room, e))
		return 0;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): pt_array_grow() has made room */
	p->frames[p->frame_count] = strndup(name, bytes);
	if (!p->frames[p->frame_count]) {
		pt_fail_no_memory(e, "the frames");
		return 0;
	}
	n = (uint32_t)++p->frame_count;
	return pt_hash_insert(&p->by_name, key, n, key_of_frame, p->frames, e) ? 0 : n;
}

static int add_number(struct stacks *p, uint32_t n, struct pt_error *e)
{
	if (pt_array_grow(&p->stacks, p->stack_count, &p->stack_room, e))
		return -1;
	p->stacks[p->stack_count++] = n;
	return 0;
}

static int add_sample(struct stacks *p, const char *stack, int64_t weight, struct pt_error *e)
{
	size_t head = p->stack_count;

	if (add_number(p, 0, e) || pt_array_grow(&p->weights, p->weight_count, &p->weight_room, e))
		return -1;
	for (;;) {
		size_t bytes = strcspn(stack, ";");
		uint32_t n = frame_of(p, stack, bytes, e);

		if (!n || add_number(p, n, e))
			return -1;
		p->stacks[head]++;
		if (!stack[bytes])
			break;
		stack += bytes + 1;
	}
	p->weights[p->weight_count++] = weight;
	return 0;
}

int stacks_read(struct stacks *p, sqlite3_stmt *st, const char *format, struct pt_error *e)
{
	int stack, last = sqlite3_column_count(st) - 1, r;

	*p = (struct stacks){0};
	if (print_stack_column(st, format, &stack, e) || pt_hash_init(&p->by_name, 8, e))
		return -1;
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		int64_t weight = sqlite3_column_int64(st, last);
		const char *s;

		if (rows_text(st, stack, &s, e) || (s && weight > 0 && add_sample(p, s, weight, e)))
			return -1;
	}
	return r == SQLITE_DONE ? 0 : rows_sql_error(st, e);
}

void stacks_deinit(struct stacks *p)
{
	for (size_t i = 0; i < p->frame_count; i++)
		free(p->frames[i]);
	free(p->frames);
	free(p->stacks);
	free(p->weights);
	pt_hash_deinit(&p->by_name);
}
