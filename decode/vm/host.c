/* host.c - what the host did in a round trip, by the functions that its trace shows; see vm.h. */
#include <stdlib.h>
#include <string.h>

#include "decode/vm/internal.h"

#define UPPER ((uint64_t)1 << 63)

/* What an edge does to the thread's stack, and whether it leaves the kernel. */
enum pt_vm_step {
	STEP_UNASKED,
	STEP_OTHER,
	STEP_CALL,
	STEP_RETURN,
	STEP_INTERRUPT,
	STEP_TO_USER,
	STEP_FROM_USER
};

static struct pt_vm_role ask(struct pt_vm *vm, const struct pt_edge *e)
{
	struct pt_vm_role r = {.what = STEP_OTHER};
	struct img_space *space = vm->emit->graph->codes[e->code]->space;
	struct img_symbol symbol;

	switch ((enum ptr_kind)e->kind) {
	case PTR_CALL_DIR:
	case PTR_CALL_IND: r.what = STEP_CALL; break;
	case PTR_RET:
	case PTR_IRET:
	case PTR_ERET: r.what = STEP_RETURN; break;
	case PTR_ASYNC:
	case PTR_INT: r.what = STEP_INTERRUPT; break;
	default: break;
	}
	if (e->to && !(e->to & UPPER))
		r.what = STEP_TO_USER;
	else if (e->from && !(e->from & UPPER))
		r.what = STEP_FROM_USER;
	if ((e->to & UPPER) && r.what != STEP_INTERRUPT && img_space_symbol(space, e->to, &symbol) == 0) {
		if (symbol.start == e->to) {
			r.begins = 1;
			r.function = (uint8_t)pt_kvm_find(symbol.name);
		} else {
			unsigned f = pt_kvm_find(symbol.name);

			/* The entries are one symbol. */
			if (f && pt_kvm_function(f)->role == PT_KVM_ENTRY_STUBS)
				r.function = (uint8_t)f;
		}
	}
	return r;
}

static struct pt_vm_role *role_of(struct pt_vm *vm, uint32_t edge)
{
	const struct pt_graph *g = vm->emit->graph;

	if (edge >= vm->role_count) {
		uint32_t count = edge < 32768 ? 65536 : edge * 2;
		struct pt_vm_role *roles = realloc(vm->roles, count * sizeof *roles);

		if (!roles) {
			pt_vm_no_memory(vm);
			return NULL;
		}
		memset(roles + vm->role_count, 0, (count - vm->role_count) * sizeof *roles);
		vm->roles = roles;
		vm->role_count = count;
	}
	if (!vm->roles[edge].what)
		vm->roles[edge] = ask(vm, &g->edges[edge]);
	return &vm->roles[edge];
}

/* The vector whose entry lies at ip. irq_entries_start holds one entry for each of the device vectors, which end where those
 * of the kernel itself begin: at 236, or at 235 in kernels with posted MSIs. The symbol's size tells whether an entry has 8
 * bytes or, with IBT, 16 (arch/x86/include/asm/idtentry.h). */
static uint64_t entry_vector(struct img_space *space, uint64_t ip)
{
	struct img_symbol s;
	uint64_t stride;

	if (img_space_symbol(space, ip, &s) < 0 || s.end <= s.start)
		return PTR_UNKNOWN;
	stride = (s.end - s.start) / (0xeb - 0x20) >= 16 ? 16 : 8;
	return 0x20 + (ip - s.start) / stride;
}

static void infer(struct ptr_vmexit *t, uint64_t reason, uint64_t vector)
{
	if (t->source > PTR_REASON_UNKNOWN && t->source < PTR_REASON_INFERRED)
		return;
	t->source = PTR_REASON_INFERRED;
	t->reason = reason;
	t->vector = vector;
}

static void on_function(struct pt_vm *vm, struct pt_vm_cpu *c, const struct pt_edge *e, unsigned number,
			uint64_t tsc)
{
	const struct pt_kvm_function *f = pt_kvm_function(number);
	struct pt_vm_host *h = &c->host;
	struct img_space *space = vm->emit->graph->codes[e->code]->space;
	uint64_t vector = f->vector == PT_KVM_NO_VECTOR ? PTR_UNKNOWN : f->vector;

	switch ((enum pt_kvm_role)f->role) {
	case PT_KVM_HANDLER:
	case PT_KVM_INTERRUPT:
		if (f->role == PT_KVM_INTERRUPT || (f->reason <= 1 && vector == PTR_UNKNOWN))
			h->interrupt =
			    !h->found || (c->vmexit.source == PTR_REASON_INFERRED && c->vmexit.reason <= 1);
		if (h->found)
			break;
		h->found = h->in_handler = true;
		h->depth = h->deepest_depth = 0;
		h->space = space;
		h->handler_ip = h->deepest_ip = e->to;
		infer(&c->vmexit, f->role == PT_KVM_INTERRUPT ? 1 : f->reason, vector);
		break;
	case PT_KVM_ENTRY:
	case PT_KVM_ENTRY_STUBS:
		if (!h->interrupt)
			break;
		h->interrupt = false;
		if (f->role == PT_KVM_ENTRY_STUBS)
			vector = entry_vector(space, e->to);
		/* NMIs and exceptions have vectors below 32. */
		infer(&c->vmexit, vector < 32 ? 0 : 1, vector);
		break;
	case PT_KVM_HALT: h->halt = true; break;
	case PT_KVM_BLOCK: h->blocks = true; break;
	case PT_KVM_CHECK_BLOCK:
		h->checks++;
		/* kvm_vcpu_halt() asks itself when it polls. Before Linux 5.17 kvm_vcpu_block() did both, and asks once without. */
		if (!(c->vmexit.flags & PTR_VM_SCHEDULED_OUT) &&
		    ((h->halt && !h->blocks) || (!h->halt && h->checks > 1)))
			c->vmexit.flags |= PTR_VM_HALT_POLLED;
		break;
	case PT_KVM_WRITE_TSC_OFFSET:
		if (c->vmcs != PT_VMCS_UNKNOWN && tsc != PT_CLOCK_UNKNOWN) {
			struct pt_vm_clock *clock = pt_vm_clocks_get(vm->clocks, c->vmcs);

			if (clock)
				pt_vm_clock_written(clock, tsc);
		}
		break;
	case PT_KVM_NESTED_ENTER: c->nested_next = true; break;
	case PT_KVM_NESTED_EXIT: c->nested_next = false; break;
	case PT_KVM_NOTHING: break;
	}
}

static void leave_user(struct pt_vm_cpu *c, uint64_t tsc)
{
	struct pt_vm_host *h = &c->host;

	if (!h->in_user)
		return;
	h->in_user = false;
	if (tsc == PT_CLOCK_UNKNOWN || h->user_tsc == PT_CLOCK_UNKNOWN ||
	    c->vmexit.userspace_tsc == PTR_UNKNOWN)
		c->vmexit.userspace_tsc = PTR_UNKNOWN;
	else if (tsc > h->user_tsc)
		c->vmexit.userspace_tsc += tsc - h->user_tsc;
}

static void enter_user(struct pt_vm_cpu *c, uint64_t tsc)
{
	struct pt_vm_host *h = &c->host;

	if (h->in_user)
		return;
	h->in_user = true;
	h->user_tsc = tsc;
	c->vmexit.flags |= PTR_VM_TO_USERSPACE;
}

/* Follows the stack under the handler. A retpoline's return to a function's beginning is a call of it, on a stack that is
 * a frame deeper already. */
static void follow(struct pt_vm *vm, struct pt_vm_host *h, const struct pt_edge *e,
		   const struct pt_vm_role *r)
{
	if (r->what == STEP_CALL || r->what == STEP_INTERRUPT)
		h->depth++;
	else if (r->what == STEP_RETURN)
		h->depth--;
	if (h->depth < 0) {
		h->in_handler = false;
		return;
	}
	if (r->begins && h->depth > h->deepest_depth) {
		h->deepest_depth = h->depth;
		h->deepest_ip = e->to;
		h->space = vm->emit->graph->codes[e->code]->space;
	}
}

void pt_vm_host_begin(struct pt_vm_host *h)
{
	*h = (struct pt_vm_host){0};
}

void pt_vm_host_path(struct pt_vm *vm, struct pt_vm_cpu *c, const struct pt_path *path,
		     const struct pt_flow_run *run)
{
	const struct pt_graph *g = vm->emit->graph;
	struct pt_vm_host *h = &c->host;
	uint32_t repeats = run->repeats;

	if (!path->count && path->start_ip && !(path->start_ip & UPPER))
		enter_user(c, run->tsc);
	while (repeats--) {
		int64_t depth = h->depth;

		for (uint32_t i = 0; i < path->count; i++) {
			uint32_t edge = g->path_edges[path->first + i];
			const struct pt_edge *e = &g->edges[edge];
			const struct pt_vm_role *r = role_of(vm, edge);
			bool found = h->found;

			if (!r)
				return;
			if (r->what == STEP_TO_USER)
				enter_user(c, run->tsc);
			else if (e->to & UPPER)
				leave_user(c, run->tsc);
			if (r->function)
				on_function(vm, c, e, r->function, run->tsc);
			if (h->in_handler && found)
				follow(vm, h, e, r);
		}
		/* A loop that comes back to where it was tells no more the second time. */
		if (h->depth == depth)
			break;
	}
}

void pt_vm_host_pause(struct pt_vm_cpu *c, uint64_t tsc)
{
	leave_user(c, tsc);
}

void pt_vm_host_end(struct pt_vm *vm, struct pt_vm_cpu *c)
{
	struct pt_vm_host *h = &c->host;
	struct pt_emit *m = vm->emit;

	if (!h->found || !m->definitions)
		return;
	c->vmexit.handler = pt_emit_symbol(m, h->space, h->handler_ip);
	c->vmexit.deepest = pt_emit_symbol(m, h->space, h->deepest_ip);
	c->vmexit.deepest_depth = (uint32_t)h->deepest_depth;
}
