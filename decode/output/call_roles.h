/*
 * call_roles.h - what an edge does to a call stack, found once for each edge: a call, a return, a tail call...,
 * and the names of where it leads, which get their records then.
 */
#ifndef DECODE_OUTPUT_CALL_ROLES_H
#define DECODE_OUTPUT_CALL_ROLES_H

#include "decode/output/definitions.h"

/* role of struct pt_edge; of a path PT_ROLE_NONE, or PT_ROLE_CALL when one of its edges has another one. */
enum pt_call_role {
	PT_ROLE_NOT_ASKED,
	PT_ROLE_NONE,
	PT_ROLE_CALL,
	PT_ROLE_RET,
	PT_ROLE_TAIL,
	PT_ROLE_ENTER, /* a system call, an interrupt */
	PT_ROLE_LEAVE,
	PT_ROLE_BEGIN,
	PT_ROLE_END,
	PT_ROLE_VM_ENTRY_OR_EXIT /* into guest or host: its stack is as it was */
};

struct pt_call_roles;

struct pt_call_roles *pt_call_roles_create(struct pt_emit *emit); /* NULL: no memory */
void pt_call_roles_destroy(struct pt_call_roles *r);		  /* NULL is fine */

/* What stands at an address. */
struct pt_call_name {
	uint32_t symbol; /* its record number, 0 without one */
	uint32_t place;	 /* the symbol, or what names code without one (pt_emit_place()) */
	bool first;	 /* the address is the symbol's first */
};
struct pt_call_name pt_call_name(struct pt_call_roles *r, const struct pt_code *code, uint64_t ip);

/* Finds the roles of a path's edges, when they were not asked for. */
void pt_call_roles_path(struct pt_call_roles *r, struct pt_path *path);

#endif
