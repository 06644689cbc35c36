/* call_roles.c - see call_roles.h. */
#include "decode/output/call_roles.h"

#include <stdlib.h>

#include "decode/output/inner_calls.h"

/* How far a call that is no call may jump over. */
#define SKIPPED_BYTES_MAX 16

struct pt_call_roles {
	struct pt_emit *emit;
	/* Address to name: a small cache. */
	struct cached_name {
		uint64_t ip;
		uint32_t code;
		struct pt_call_name name;
	} names[4096];
};

struct pt_call_roles *pt_call_roles_create(struct pt_emit *emit)
{
	struct pt_call_roles *r = calloc(1, sizeof *r);

	if (r)
		r->emit = emit;
	return r;
}

void pt_call_roles_destroy(struct pt_call_roles *r)
{
	free(r);
}

struct pt_call_name pt_call_name(struct pt_call_roles *r, const struct pt_code *code, uint64_t ip)
{
	struct cached_name *n = &r->names[(ip * 0x9e3779b97f4a7c15u) >> 52];
	struct img_symbol sym;

	if (n->ip == ip && n->code == code->id)
		return n->name;
	n->ip = ip;
	n->code = code->id;
	n->name.first = img_space_symbol(code->space, ip, &sym) == 0 && sym.start == ip;
	n->name.symbol = pt_emit_symbol(r->emit, code->space, ip);
	n->name.place = n->name.symbol ? n->name.symbol : pt_emit_place(r->emit, code->space, ip);
	return n->name;
}

/*
 * A call that calls no function: to the next instruction, to get its own address; or, within a
 * function, over a few instructions that never run, as retpolines and return stack stuffing have
 * them. to: what it calls.
 */
static bool calls_nothing(struct pt_call_roles *r, const struct pt_code *code, const struct pt_edge *edge,
			  const struct pt_call_name *to)
{
	uint64_t next = edge->from + edge->bytes;

	if (edge->to == next)
		return true;
	return edge->kind == PTR_CALL_DIR && edge->to - next <= SKIPPED_BYTES_MAX && to->symbol &&
	       !to->first && pt_call_name(r, code, edge->from).symbol == to->symbol;
}

/* The branch instruction's length; 0: it cannot be read. */
static uint8_t branch_bytes(const struct pt_code *code, uint64_t ip)
{
	struct insn in;
	uint8_t bytes[16];
	size_t n = img_space_read(code->space, ip, bytes, sizeof bytes);

	return insn_decode(bytes, n, INSN_64, &in) < 0 ? 0 : in.len;
}

static enum pt_call_role role_of_call(struct pt_call_roles *r, const struct pt_code *code,
				      struct pt_edge *edge, const struct pt_call_name *to)
{
	bool enters = edge->kind == PTR_SYSCALL || edge->kind == PTR_INT;

	edge->bytes = branch_bytes(code, edge->from) & 0xf;
	if (!edge->bytes || (!enters && calls_nothing(r, code, edge, to)))
		return PT_ROLE_NONE;
	if (enters)
		edge->from_symbol = pt_call_name(r, code, edge->from + edge->bytes).symbol;
	return enters ? PT_ROLE_ENTER : PT_ROLE_CALL;
}

static struct pt_call_name find_target(struct pt_call_roles *r, const struct pt_code *code,
				       struct pt_edge *edge)
{
	struct pt_call_name to = pt_call_name(r, code, edge->to);

	edge->place = to.place;
	edge->named = to.symbol != 0;
	edge->first = to.first;
	return to;
}

/* Of an edge whose ends are known. */
static enum pt_call_role role_of_branch(struct pt_call_roles *r, const struct pt_code *code,
					struct pt_edge *edge)
{
	struct pt_call_name to;

	switch ((enum ptr_kind)edge->kind) {
	case PTR_CALL_DIR:
	case PTR_CALL_IND:
	case PTR_CALL_FAR:
	case PTR_SYSCALL:
	case PTR_INT: to = find_target(r, code, edge); return role_of_call(r, code, edge, &to);
	case PTR_ASYNC:
		find_target(r, code, edge);
		edge->from_symbol = pt_call_name(r, code, edge->from).symbol;
		return PT_ROLE_ENTER;
	case PTR_RET:
	case PTR_RET_FAR: find_target(r, code, edge); return PT_ROLE_RET;
	case PTR_SYSRET:
	case PTR_IRET:
	case PTR_ERET: find_target(r, code, edge); return PT_ROLE_LEAVE;
	case PTR_JMP:
	case PTR_JMP_IND:
		to = find_target(r, code, edge);
		return to.first && to.symbol != pt_call_name(r, code, edge->from).symbol ? PT_ROLE_TAIL
											 : PT_ROLE_NONE;
	default: return PT_ROLE_NONE;
	}
}

static enum pt_call_role role_of(struct pt_call_roles *r, struct pt_edge *edge)
{
	const struct pt_code *code = r->emit->graph->codes[edge->code];
	bool vm = edge->kind == PTR_VMENTRY || edge->kind == PTR_VMEXIT;

	if (!edge->from) {
		find_target(r, code, edge);
		return vm ? PT_ROLE_VM_ENTRY_OR_EXIT : PT_ROLE_BEGIN;
	}
	if (vm)
		return PT_ROLE_NONE;
	return !edge->to || edge->ends_trace ? PT_ROLE_END : role_of_branch(r, code, edge);
}

void pt_call_roles_path(struct pt_call_roles *r, struct pt_path *path)
{
	const struct pt_graph *g = r->emit->graph;

	if (path->role != PT_ROLE_NOT_ASKED)
		return;
	path->calls = 0;
	for (uint32_t i = 0; i < path->count; i++) {
		struct pt_edge *edge = &g->edges[g->path_edges[path->first + i]];

		if (edge->role == PT_ROLE_NOT_ASKED)
			edge->role = (uint8_t)role_of(r, edge);
		if (edge->role != PT_ROLE_NONE)
			path->calls |= 1u << i;
	}
	path->inner = pt_inner_calls_find(g, path);
	path->role = path->calls ? PT_ROLE_CALL : PT_ROLE_NONE;
}
