/* inlined_calls.c - see inlined_calls.h. */
#ifdef HAVE_LIBDW

#include "export/inlined_calls.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "schema/array.h"

/* Half-open. A call that is in several places has several. */
struct range {
	uint64_t low, high;
	struct inlined_call *call;
	uint32_t depth;
	size_t outer; /* the range around it, NONE: there is none */
};
#define NONE SIZE_MAX

struct inlined_calls {
	struct inlined_call **calls;
	struct range *ranges; /* by low; of one low, the outer one first */
	size_t call_count, call_room, range_count, range_room;
};

/* The unit that is read. */
struct unit {
	Dwarf_Files *files;
	size_t file_count;
	const char *folder;
};

static const char *text_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

/* 0: there is none. */
static uint64_t number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word ret;

	return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, &ret) == 0 ? ret : 0;
}

static void describe(struct inlined_call *call, Dwarf_Die *die, const struct unit *u)
{
	uint64_t file = number_of(die, DW_AT_call_file), line = number_of(die, DW_AT_call_line);

	call->name = text_of(die, DW_AT_linkage_name);
	if (!call->name)
		call->name = text_of(die, DW_AT_MIPS_linkage_name);
	if (!call->name)
		call->name = dwarf_diename(die);
	if (!call->name)
		call->name = "";
	call->folder = "";
	if (line && line <= UINT32_MAX && u->files && file < u->file_count)
		call->file = dwarf_filesrc(u->files, file, NULL, NULL);
	if (!call->file)
		return;
	call->line = (uint32_t)line;
	if (call->file[0] != '/')
		call->folder = u->folder;
}

static int add_ranges(struct inlined_calls *c, Dwarf_Die *die, const struct range *like, struct pt_error *e)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		struct range range = *like;

		range.low = low;
		range.high = high;
		if (low >= high)
			continue;
		if (pt_array_grow(&c->ranges, c->range_count, &c->range_room, e) < 0)
			return -1;
		c->ranges[c->range_count++] = range;
	}
	return 0;
}

/* Whether calls may be inlined below such a DIE. */
static bool holds_code(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type: return true;
	default: return false;
	}
}

static int add_call(struct inlined_calls *c, Dwarf_Die *die, const struct unit *u, struct range *range,
		    struct pt_error *e)
{
	struct inlined_call *call = calloc(1, sizeof *call);

	if (!call || pt_array_grow(&c->calls, c->call_count, &c->call_room, NULL) < 0) {
		free(call);
		return pt_fail_no_memory(e, "inlined calls");
	}
	c->calls[c->call_count++] = call;
	call->outer = range->call;
	describe(call, die, u);
	range->call = call;
	return add_ranges(c, die, range, e);
}

/* The children of a DIE. around: the inlined call that they are in, and how deep. */
static int read_children(struct inlined_calls *c, Dwarf_Die *parent, const struct unit *u,
			 struct range around, struct pt_error *e)
{
	Dwarf_Die die;

	if (++around.depth > INLINED_DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return 0;
	do {
		struct range inside = around;
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			inside.call = NULL;
		if (tag == DW_TAG_inlined_subroutine && add_call(c, &die, u, &inside, e) < 0)
			return -1;
		if (holds_code(tag) && read_children(c, &die, u, inside, e) < 0)
			return -1;
	} while (dwarf_siblingof(&die, &die) == 0);
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

static void nest(struct inlined_calls *c)
{
	if (c->range_count)
		qsort(c->ranges, c->range_count, sizeof *c->ranges, by_place);
	for (size_t i = 0; i < c->range_count; i++) {
		size_t outer = i ? i - 1 : NONE;

		while (outer != NONE && c->ranges[outer].high < c->ranges[i].high)
			outer = c->ranges[outer].outer;
		c->ranges[i].outer = outer;
	}
}

struct inlined_calls *inlined_calls_read(Dwarf_Die *unit, struct pt_error *e)
{
	struct inlined_calls *c = calloc(1, sizeof *c);
	struct unit u = {.folder = text_of(unit, DW_AT_comp_dir)};

	if (!c) {
		pt_fail_no_memory(e, "inlined calls");
		return NULL;
	}
	if (!u.folder)
		u.folder = "";
	if (dwarf_getsrcfiles(unit, &u.files, &u.file_count) != 0)
		u.files = NULL;
	if (read_children(c, unit, &u, (struct range){0}, e) < 0) {
		inlined_calls_destroy(c);
		return NULL;
	}
	nest(c);
	return c;
}

void inlined_calls_destroy(struct inlined_calls *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->call_count; i++)
		free(c->calls[i]);
	free(c->calls);
	free(c->ranges);
	free(c);
}

struct inlined_call *inlined_calls_find(const struct inlined_calls *c, uint64_t address)
{
	size_t low = 0, high = c->range_count, at;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (c->ranges[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (at = low ? low - 1 : NONE; at != NONE && c->ranges[at].high <= address; at = c->ranges[at].outer)
		;
	return at == NONE ? NULL : c->ranges[at].call;
}

#else

typedef int no_libdw; /* ISO C wants a declaration */

#endif
