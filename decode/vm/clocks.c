/* clocks.c - see clocks.h. */
#include "decode/vm/clocks.h"

#include <stdlib.h>

#include "decode/vm/clock_internal.h"

#define TESTS_ENOUGH 3 /* observations that say whether an option is right: one alone may be wrong itself */

struct pt_vm_clocks {
	uint64_t tolerance, host_khz;
	struct pt_vm_clock *first; /* a list */
	struct pt_vm_clock *any;   /* PT_VM_ANY's */
};

struct pt_vm_clocks *pt_vm_clocks_create(uint64_t tolerance, uint64_t host_khz)
{
	struct pt_vm_clocks *all = calloc(1, sizeof *all);

	if (!all)
		return NULL;
	all->tolerance = tolerance;
	all->host_khz = host_khz;
	all->any = pt_vm_clock_create(PT_VM_ANY, tolerance, host_khz);
	if (!all->any) {
		free(all);
		return NULL;
	}
	return all;
}

void pt_vm_clocks_destroy(struct pt_vm_clocks *all)
{
	if (!all)
		return;
	while (all->first) {
		struct pt_vm_clock *c = all->first;

		all->first = c->next;
		pt_vm_clock_destroy(c);
	}
	pt_vm_clock_destroy(all->any);
	free(all);
}

/* The values that the last span of PT_VM_ANY has, for a clock that is new. */
static int copy_any(const struct pt_vm_clocks *all, struct pt_vm_clock *c)
{
	const struct pt_vm_span *s = pt_vm_last_span(all->any);
	struct pt_vm_known known;

	c->end = all->any->end;
	if (!s)
		return 0;
	known = (struct pt_vm_known){
	    .offset = s->offset, .ratio = s->ratio, .frac_bits = PT_VM_RATIO_BITS, .source = s->source};
	if (pt_vm_clock_know(c, 0, &known) < 0)
		return -1;
	c->assumed = s->source == PTR_CLOCK_CONTAINER;
	return 0;
}

struct pt_vm_clock *pt_vm_clocks_get(struct pt_vm_clocks *all, uint64_t vmcs)
{
	struct pt_vm_clock *c, **at = &all->first;

	for (; *at; at = &(*at)->next)
		if ((*at)->vmcs == vmcs)
			return *at;
	c = pt_vm_clock_create(vmcs, all->tolerance, all->host_khz);
	if (!c || copy_any(all, c) < 0) {
		pt_vm_clock_destroy(c);
		return NULL;
	}
	*at = c;
	return c;
}

const struct pt_vm_clock *pt_vm_clocks_find(const struct pt_vm_clocks *all, uint64_t vmcs)
{
	const struct pt_vm_clock *c = all->first;

	while (c && c->vmcs != vmcs)
		c = c->next;
	return c;
}

struct pt_vm_clock *pt_vm_clocks_at(struct pt_vm_clocks *all, size_t i)
{
	struct pt_vm_clock *c = all->first;

	while (c && i--)
		c = c->next;
	return c;
}

const struct pt_vm_clock *pt_vm_clocks_any(const struct pt_vm_clocks *all)
{
	return all->any;
}

int pt_vm_clocks_know_any(struct pt_vm_clocks *all, const struct pt_vm_known *known)
{
	if (pt_vm_clock_know(all->any, 0, known) < 0)
		return -1;
	for (struct pt_vm_clock *c = all->first; c; c = c->next)
		if (!c->count && copy_any(all, c) < 0)
			return -1;
	return 0;
}

void pt_vm_clocks_know_end_any(struct pt_vm_clocks *all, int64_t offset)
{
	pt_vm_clock_know_end(all->any, offset);
	for (struct pt_vm_clock *c = all->first; c; c = c->next)
		if (!c->end.known)
			pt_vm_clock_know_end(c, offset);
}

bool pt_vm_clocks_settled(const struct pt_vm_clocks *all)
{
	for (const struct pt_vm_clock *c = all->first; c; c = c->next)
		if (!pt_vm_clock_settled(c))
			return false;
	return all->first || pt_vm_clock_settled(all->any);
}

bool pt_vm_clocks_tested(const struct pt_vm_clocks *all)
{
	for (const struct pt_vm_clock *c = all->first; c; c = c->next)
		if (c->count && c->spans[0].source == PTR_CLOCK_OPTION &&
		    c->option.observations < TESTS_ENOUGH)
			return false;
	return true;
}

uint64_t pt_vm_clocks_changes(const struct pt_vm_clocks *all)
{
	uint64_t n = 0;

	for (const struct pt_vm_clock *c = all->first; c; c = c->next)
		n += c->count + c->moves;
	return n;
}

/* FNV-1a. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x100000001b3u;
}

static uint64_t mix_clock(uint64_t hash, const struct pt_vm_clock *c)
{
	hash = mix(hash, c->count);
	hash = mix(hash, c->moves);
	return mix(hash, (uint64_t)pt_vm_clock_settled(c) << 1 | c->expired.set);
}

uint64_t pt_vm_clocks_known(const struct pt_vm_clocks *all)
{
	uint64_t hash = mix_clock(0xcbf29ce484222325u, all->any);

	for (const struct pt_vm_clock *c = all->first; c; c = c->next)
		hash = mix_clock(hash, c);
	return hash;
}

void pt_vm_clocks_recount(struct pt_vm_clocks *all)
{
	for (struct pt_vm_clock *c = all->first; c; c = c->next) {
		c->was_settled = pt_vm_clock_settled(c);
		for (size_t i = 0; i < c->count; i++)
			c->spans[i].observations = c->spans[i].worst_residual = 0;
	}
}
