/* host.c - what the host did in a VM exit interval, by the functions that its trace shows; see internal.h. */
#include <stdlib.h>
#include <string.h>

#include "decode/vm/internal.h"

#define UPPER ((uint64_t)1 << 63) /* of kernel addresses */

/* ---- Edges ------------------------------------------------------------------------------------------ */

/* What an edge does to the thread's stack, and whether it enters or leaves the kernel. */
enum step {
	STEP_NOT_ASKED,
	STEP_OTHER,
	STEP_CALL,
	STEP_RETURN,
	STEP_INTERRUPT,
	STEP_TO_USER,
	STEP_FROM_USER
};

static enum step step_of(const struct pt_edge *e)
{
	if (e->to && !(e->to & UPPER))
		return STEP_TO_USER;
	if (e->from && !(e->from & UPPER))
		return STEP_FROM_USER;
	switch ((enum ptr_kind)e->kind) {
	case PTR_CALL_DIR:
	case PTR_CALL_IND: return STEP_CALL;
	case PTR_RET:
	case PTR_IRET:
	case PTR_ERET: return STEP_RETURN;
	case PTR_ASYNC:
	case PTR_INT: return STEP_INTERRUPT;
	default: return STEP_OTHER;
	}
}

static struct pt_vm_role ask(struct pt_vm *vm, const struct pt_edge *e)
{
	struct pt_vm_role r = {.step = (uint8_t)step_of(e)};
	struct img_space *space = vm->emit->graph->codes[e->code]->space;
	struct img_symbol symbol;
	unsigned f;

	if (!(e->to & UPPER) || r.step == STEP_INTERRUPT || img_space_symbol(space, e->to, &symbol) < 0)
		return r;
	f = pt_kvm_find(symbol.name);
	if (symbol.start == e->to) {
		r.begins = 1;
		r.function = (uint8_t)f;
	} else if (f && pt_kvm_function(f)->role == PT_KVM_ENTRY_STUBS) {
		r.function = (uint8_t)f; /* all of these entries are one symbol */
	}
	return r;
}

/* NULL: no memory. */
static const struct pt_vm_role *role_of(struct pt_vm *vm, uint32_t edge)
{
	struct pt_vm_role *role;

	if (edge >= vm->roles.count) {
		uint32_t count = edge < 32768 ? 65536 : edge * 2;
		struct pt_vm_role *items = realloc(vm->roles.items, count * sizeof *items);

		if (!items) {
			pt_vm_no_memory(vm);
			return NULL;
		}
		memset(items + vm->roles.count, 0, (count - vm->roles.count) * sizeof *items);
		vm->roles.items = items;
		vm->roles.count = count;
	}
	role = &vm->roles.items[edge];
	if (role->step == STEP_NOT_ASKED)
		*role = ask(vm, &vm->emit->graph->edges[edge]);
	return role;
}

void pt_vm_host_recycled(struct pt_vm *vm)
{
	if (vm->roles.count)
		memset(vm->roles.items, 0, vm->roles.count * sizeof *vm->roles.items);
}

/* ---- KVM's functions -------------------------------------------------------------------------------- */

/*
 * The vector of which the entry lies at ip. irq_entries_start holds one entry for each of the device vectors,
 * which end where those of the kernel itself begin: at 236, or at 235 in kernels with posted MSIs. The
 * symbol's size says whether an entry has 8 bytes or, with IBT, 16 (arch/x86/include/asm/idtentry.h).
 */
static uint64_t entry_vector(struct img_space *space, uint64_t ip)
{
	enum { FIRST = 0x20, END = 0xeb };
	struct img_symbol s;
	uint64_t entry_bytes;

	if (img_space_symbol(space, ip, &s) < 0 || s.end <= s.start)
		return PTR_UNKNOWN;
	entry_bytes = (s.end - s.start) / (END - FIRST) >= 16 ? 16 : 8;
	return FIRST + (ip - s.start) / entry_bytes;
}

static void infer(struct ptr_vmexit *r, uint64_t reason, uint64_t vector)
{
	if (r->source > PTR_REASON_UNKNOWN && r->source < PTR_REASON_INFERRED)
		return;
	r->source = PTR_REASON_INFERRED;
	r->reason = reason;
	r->vector = vector;
}

/* A call of a handler, or of the function that hands an interrupt on. Only the first one says the reason. */
static void on_handler(struct pt_vm_vcpu *vcpu, const struct pt_edge *e, const struct pt_kvm_function *f,
		       uint64_t vector, struct img_space *space)
{
	struct pt_vm_host *h = &vcpu->host;
	const struct ptr_vmexit *r = &vcpu->exit.record;

	if (f->role == PT_KVM_INTERRUPT || (f->reason <= 1 && vector == PTR_UNKNOWN))
		h->interrupt = !h->handler.found || (r->source == PTR_REASON_INFERRED && r->reason <= 1);
	if (h->handler.found)
		return;
	h->handler.found = h->handler.on_stack = true;
	h->handler.depth = h->handler.deepest_depth = 0;
	h->handler.space = space;
	h->handler.ip = h->handler.deepest_ip = e->to;
	infer(&vcpu->exit.record, f->role == PT_KVM_INTERRUPT ? 1 : f->reason, vector);
}

/* The halted vCPU polls for being woken: kvm_vcpu_halt() does it, before it blocks. Before Linux 5.17
 * kvm_vcpu_block() did both, and calls kvm_vcpu_check_block() once without polling. */
static void on_check_block(struct pt_vm_vcpu *vcpu)
{
	struct pt_vm_host *h = &vcpu->host;

	h->halt.checks++;
	if (!(vcpu->exit.record.flags & PTR_VM_SCHEDULED_OUT) &&
	    ((h->halt.called && !h->halt.blocks) || (!h->halt.called && h->halt.checks > 1)))
		vcpu->exit.record.flags |= PTR_VM_HALT_POLLED;
}

static void on_function(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, const struct pt_edge *e, unsigned number,
			uint64_t tsc)
{
	const struct pt_kvm_function *f = pt_kvm_function(number);
	struct img_space *space = vm->emit->graph->codes[e->code]->space;
	uint64_t vector = f->vector == PT_KVM_NO_VECTOR ? PTR_UNKNOWN : f->vector;
	struct pt_vm_host *h = &vcpu->host;

	switch ((enum pt_kvm_role)f->role) {
	case PT_KVM_HANDLER:
	case PT_KVM_INTERRUPT: on_handler(vcpu, e, f, vector, space); break;
	case PT_KVM_ENTRY:
	case PT_KVM_ENTRY_STUBS:
		if (!h->interrupt)
			break;
		h->interrupt = false;
		if (f->role == PT_KVM_ENTRY_STUBS)
			vector = entry_vector(space, e->to);
		/* Exit reason 0 is an exception or NMI, which have the vectors below 32; 1 is an external
		 * interrupt. */
		infer(&vcpu->exit.record, vector < 32 ? 0 : 1, vector);
		break;
	case PT_KVM_HALT: h->halt.called = true; break;
	case PT_KVM_BLOCK: h->halt.blocks = true; break;
	case PT_KVM_CHECK_BLOCK: on_check_block(vcpu); break;
	case PT_KVM_WRITE_TSC_OFFSET:
		h->wrote_tsc = false;
		pt_vm_wrote_tsc(vm, vcpu, tsc);
		break;
	case PT_KVM_NESTED_ENTER: vcpu->nested.next = h->nested_enter = true; break;
	case PT_KVM_NESTED_REFLECT: pt_vm_left_nested(vm, vcpu); break;
	case PT_KVM_NESTED_EXIT:
		pt_vm_left_nested(vm, vcpu);
		vcpu->nested.next = false;
		h->instruction.handed = !h->handler.found;
		break;
	case PT_KVM_NOTHING: break;
	}
}

/* ---- User space and the handler's stack ------------------------------------------------------------- */

static void leave_user(struct pt_vm_vcpu *vcpu, uint64_t tsc)
{
	struct pt_vm_host *h = &vcpu->host;
	uint64_t *sum = &vcpu->exit.record.userspace_tsc;

	if (!h->user.inside)
		return;
	h->user.inside = false;
	if (tsc == PT_CLOCK_UNKNOWN || h->user.since_tsc == PT_CLOCK_UNKNOWN || *sum == PTR_UNKNOWN)
		*sum = PTR_UNKNOWN;
	else if (tsc > h->user.since_tsc)
		*sum += tsc - h->user.since_tsc;
}

static void enter_user(struct pt_vm_vcpu *vcpu, uint64_t tsc)
{
	struct pt_vm_host *h = &vcpu->host;

	if (h->user.inside)
		return;
	h->user.inside = true;
	h->user.since_tsc = tsc;
	vcpu->exit.record.flags |= PTR_VM_TO_USERSPACE;
}

/* Follows the stack under the handler. A retpoline's return to a function's beginning is a call of it, on a
 * stack that is one frame deeper already. */
static void follow_stack(struct pt_vm *vm, struct pt_vm_host *h, const struct pt_edge *e,
			 const struct pt_vm_role *role)
{
	if (role->step == STEP_CALL || role->step == STEP_INTERRUPT)
		h->handler.depth++;
	else if (role->step == STEP_RETURN)
		h->handler.depth--;
	if (h->handler.depth < 0) {
		h->handler.on_stack = false;
		return;
	}
	if (role->begins && h->handler.depth > h->handler.deepest_depth) {
		h->handler.deepest_depth = h->handler.depth;
		h->handler.deepest_ip = e->to;
		h->handler.space = vm->emit->graph->codes[e->code]->space;
	}
}

static void on_edge(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, const struct pt_edge *e,
		    const struct pt_vm_role *role, uint64_t tsc)
{
	bool found_before = vcpu->host.handler.found;

	if (role->step == STEP_TO_USER)
		enter_user(vcpu, tsc);
	else if (e->to & UPPER)
		leave_user(vcpu, tsc);
	if (role->function)
		on_function(vm, vcpu, e, role->function, tsc);
	if (vcpu->host.handler.on_stack && found_before)
		follow_stack(vm, &vcpu->host, e, role);
}

void pt_vm_host_path(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, const struct pt_path *path,
		     const struct pt_flow_run *run)
{
	const struct pt_graph *g = vm->emit->graph;

	if (!path->count && path->start_ip && !(path->start_ip & UPPER))
		enter_user(vcpu, run->tsc);
	for (uint32_t n = 0; n < run->repeats; n++) {
		int64_t depth = vcpu->host.handler.depth;

		for (uint32_t i = 0; i < path->count; i++) {
			uint32_t edge = g->path_edges[path->first + i];
			const struct pt_vm_role *role = role_of(vm, edge);

			if (!role)
				return;
			on_edge(vm, vcpu, &g->edges[edge], role, run->tsc);
		}
		/* A loop that comes back to the same depth shows nothing new the second time. */
		if (vcpu->host.handler.depth == depth)
			break;
	}
}

void pt_vm_host_pause(struct pt_vm_vcpu *vcpu, uint64_t tsc)
{
	leave_user(vcpu, tsc);
}

void pt_vm_host_end(struct pt_vm *vm, struct pt_vm_vcpu *vcpu)
{
	const struct pt_vm_host *h = &vcpu->host;
	struct ptr_vmexit *r = &vcpu->exit.record;

	if (!h->handler.found || !vm->emit->definitions)
		return;
	r->handler = pt_emit_symbol(vm->emit, h->handler.space, h->handler.ip);
	r->deepest = pt_emit_symbol(vm->emit, h->handler.space, h->handler.deepest_ip);
	r->deepest_depth = (uint32_t)h->handler.deepest_depth;
}
