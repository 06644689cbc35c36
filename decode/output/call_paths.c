/* call_paths.c - see call_paths.h. */
#include "decode/output/call_paths.h"

#include <stdlib.h>

#include "decode/code/huge_pages.h"

struct node {
	uint64_t function; /* its address, or A_SYMBOL and its symbol */
	uint32_t parent, number;
	uint32_t place; /* two mappings can have had one address */
};
#define A_SYMBOL ((uint64_t)1 << 62) /* no address has only this one of its upper bits */

/*
 * The table is not schema/hash.h's: there may be a million call paths, and calls ask for them at every turn.
 * With the key in the slot, on huge pages, that is one cache miss.
 */
struct pt_call_paths {
	struct pt_emit *emit;
	struct node *nodes;
	uint32_t mask, count;
	bool full; /* and an error record says so */
};

struct pt_call_paths *pt_call_paths_create(struct pt_emit *emit)
{
	struct pt_call_paths *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->emit = emit;
	p->mask = (1u << 12) - 1;
	p->nodes = pt_table_create((size_t)p->mask + 1, sizeof *p->nodes);
	if (!p->nodes) {
		free(p);
		return NULL;
	}
	return p;
}

void pt_call_paths_destroy(struct pt_call_paths *p)
{
	if (p)
		free(p->nodes);
	free(p);
}

static uint32_t hash(uint32_t parent, uint64_t function)
{
	uint64_t x = function * 0x9e3779b97f4a7c15u + parent * 0xc2b2ae3d27d4eb4fu;

	return (uint32_t)(x >> 32);
}

static void insert(struct node *nodes, uint32_t mask, const struct node *n)
{
	uint32_t i = hash(n->parent, n->function) & mask;

	while (nodes[i].number)
		i = (i + 1) & mask;
	nodes[i] = *n;
}

static bool grow(struct pt_call_paths *p)
{
	uint32_t mask = p->mask * 2 + 1;
	struct node *nodes = pt_table_create((size_t)mask + 1, sizeof *nodes);

	if (!nodes) {
		pt_emit_no_memory(p->emit, "the call stacks");
		return false;
	}
	for (uint32_t i = 0; i <= p->mask; i++)
		if (p->nodes[i].number)
			insert(nodes, mask, &p->nodes[i]);
	free(p->nodes);
	p->nodes = nodes;
	p->mask = mask;
	return true;
}

static uint32_t report_full(struct pt_call_paths *p)
{
	if (!p->full)
		pt_emit_error(
		    p->emit, 0, -1, PTR_NO_TSC, "call paths",
		    "there are more call paths than --memory has room for: calls of further ones have none");
	p->full = true;
	return PT_NO_CALL_PATH;
}

uint32_t pt_call_path(struct pt_call_paths *p, uint32_t parent, const struct pt_callee *callee)
{
	struct ptr_call_path r = {.parent = parent, .symbol = callee->place, .ip = callee->ip};
	struct node n = {.parent = parent,
			 .place = callee->place,
			 .function = callee->symbol ? A_SYMBOL | callee->symbol : callee->ip};

	if (parent == PT_NO_CALL_PATH)
		return PT_NO_CALL_PATH;
	for (uint32_t i = hash(parent, n.function) & p->mask; p->nodes[i].number; i = (i + 1) & p->mask)
		if (p->nodes[i].parent == parent && p->nodes[i].function == n.function &&
		    p->nodes[i].place == n.place)
			return p->nodes[i].number;
	if (p->emit->failed)
		return 0;
	if (p->count >= p->emit->call_paths)
		return report_full(p);
	n.number = pt_emit_put(p->emit, ptr_put_call_path(p->emit->writer, &r, &p->emit->error));
	if (!n.number)
		return 0;
	if (p->count++ > p->mask / 2 && !grow(p))
		return 0;
	insert(p->nodes, p->mask, &n);
	return n.number;
}
