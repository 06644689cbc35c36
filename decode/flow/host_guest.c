/* host_guest.c - a flow's sides, host and guest, and how it goes on without code; see flow.h. */
#include "decode/flow/internal.h"
#include "decode/flow/vm_transition.h"

uint32_t pt_flow_edge(struct pt_flow *f, uint64_t from, uint64_t to, enum ptr_kind kind)
{
	struct pt_code *code = f->at.code;

	if (to && !(to >> 63) && code == f->kernel && f->user)
		code = f->user; /* which sees its kernel, too */
	return pt_graph_edge(f->graph, code, from, to, kind);
}

/* ---- Missing code ----------------------------------------------------------------------------------- */

bool pt_flow_lose_image(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message,
			bool hard)
{
	uint32_t bottom = f->stack.bottom, top = f->stack.top;
	bool unsure = f->stack_state.unsure;

	if (f->graph->full)
		return pt_flow_lose(f, PT_FLOW_FULL, ip, "");
	pt_flow_report_error(f, kind, ip, message, true);
	/* What was called before is returned to after it: see pt_flow_see(). */
	f->stack.bottom = bottom;
	f->stack.top = top;
	f->stack_state.unsure = unsure;
	f->state = PT_FLOW_NO_IMAGE;
	f->no_image.upper = ip >> 63;
	f->stack_state.kernel_unseen |= f->no_image.upper;
	f->no_image.hard = hard;
	return false;
}

static bool has_code(struct pt_flow *f, uint64_t ip)
{
	for (int i = 0; i < 2; i++) {
		struct pt_code *code = pt_flow_code_at(f, ip);
		struct pt_block *b = code ? pt_graph_block(f->graph, code, ip, f->at.next_mode) : NULL;

		if (b && (b->insns || !b->dead))
			return true;
		if (i == 0 && !pt_flow_missing(f, ip))
			break;
	}
	return false;
}

void pt_flow_stop_seeing(struct pt_flow *f)
{
	uint64_t ip = pt_flow_here(f);

	pt_flow_pause(f, true);
	f->at.position = 0;
	f->tnt.n = 0;
	f->path.len = 0;
	f->fup.pending = f->fup.binds = f->fup.tsx_abort = false;
	f->stack_state.guest_unseen = f->stack_state.skipped = true;
	f->state = PT_FLOW_NO_IMAGE;
	f->no_image.upper = ip >> 63;
	f->no_image.hard = false;
}

bool pt_flow_see(struct pt_flow *f, uint64_t ip)
{
	bool upper = ip >> 63;

	if (f->no_image.hard && upper == f->no_image.upper)
		return false;
	pt_flow_approach(f, ip);
	if (f->detail != PT_FLOW_FOLLOW || !has_code(f, ip))
		return false;
	/* A kernel comes back with the stack that it was called with. Whatever else was not seen may have returned and
	 * called as it liked. */
	if (!f->no_image.upper || upper) {
		f->stack.bottom = f->stack.top;
		f->stack_state.unsure = false;
	} else {
		f->stack_state.unsure = true;
		if (f->stack.user.known)
			pt_flow_cross(f, f->user);
	}
	return pt_flow_sync_at(f, ip);
}

void pt_flow_cross(struct pt_flow *f, struct pt_code *to)
{
	f->recorder.memo = NULL;
	if (to == f->kernel) {
		f->stack.user.known = f->at.code == f->user && f->user;
		f->stack.user.top = f->stack.top;
		f->stack.user.bottom = f->stack.bottom;
		f->stack_state.kernel_unseen = false;
	} else if ((f->stack_state.unsure || f->stack_state.kernel_unseen) && f->stack.user.known) {
		f->stack_state.unsure = true;
		/* Deeper down the ring may have been used again. */
		f->stack.top = f->stack.user.top;
		f->stack.bottom =
		    f->stack.top - f->stack.user.bottom > 32 ? f->stack.top - 32 : f->stack.user.bottom;
		f->stack.user.known = false;
	} else if (f->stack_state.unsure || f->stack_state.kernel_unseen) {
		f->stack.bottom = f->stack.top;
		f->stack_state.stale_hw = true;
	}
}

/*
 * The hardware pops with each return. After blindness it holds other entries than we do, for what was not seen has
 * called and returned, too: then all that is known is that a compressed return went where the code came from. So
 * one that is not compressed takes along what lies above its caller: calls that nothing returns to (kernels
 * stuff the CPU's predictor with such behind each VM exit).
 */
void pt_flow_popped(struct pt_flow *f, uint64_t ip)
{
	uint32_t i = f->stack.top;

	if (f->stack.top == f->stack.bottom || f->stack_state.unsure)
		f->recorder.memo = NULL;
	if (f->stack.top == f->stack.bottom)
		return;
	pt_flow_pop(f);
	if (!f->stack_state.unsure)
		return;
	while (i != f->stack.bottom && f->graph->where[f->stack.entries[(i - 1) % PT_STACK]].ip != ip)
		i--;
	if (i != f->stack.bottom)
		f->stack.top = i - 1;
}

/* ---- Host and guest --------------------------------------------------------------------------------- */

static void save_stack(struct pt_flow *f)
{
	f->host_stack = f->stack;
	f->stack.user.known = false;
}

static void restore_stack(struct pt_flow *f)
{
	f->recorder.memo = NULL;
	f->stack = f->host_stack;
	f->stack_state.unsure = true;
}

/*
 * A guest that was not seen wholly has called what its return stack here does not hold. What lies at the top when it is
 * entered the next time is the host's, and no return of the guest goes there: the floor. Calls from then on are known.
 */
static void set_floor(struct pt_flow *f)
{
	if (f->stack_state.guest_lost || (int32_t)(f->stack.top - f->stack_state.guest_floor) < 0)
		f->stack_state.guest_floor = f->stack.top;
	f->stack_state.has_floor |= f->stack_state.guest_lost;
	f->stack_state.guest_lost = false;
	if (f->stack_state.has_floor && (int32_t)(f->stack_state.guest_floor - f->stack.bottom) > 0)
		f->stack.bottom = f->stack_state.guest_floor;
}

static void lift_floor(struct pt_flow *f)
{
	if (f->stack_state.has_floor && f->stack.bottom == f->stack_state.guest_floor)
		f->stack.bottom = f->host_stack.bottom;
	else
		f->stack_state.has_floor = false; /* a PSB has emptied the stack, or it has overflown */
}

/* An exit is reported while what env has set is the guest's still, an entry when it is already. */
static void side_changed(struct pt_flow *f, const struct pt_vm_transition *t)
{
	if (t && !t->entry && f->output->transition)
		f->output->transition(f->output_arg, f, t);
	if (f->env->side)
		f->env->side(f->env_arg, f, t);
	if (t && t->entry && f->output->transition)
		f->output->transition(f->output_arg, f, t);
}

void pt_flow_set_side(struct pt_flow *f, uint32_t nr, uint64_t cr3)
{
	f->side.nr = nr;
	f->side.cr3 = cr3;
	f->side.changes = false;
	f->stack_state.guest_unseen = true;
	f->stack.bottom = f->stack.top;
	f->host_stack.bottom = f->host_stack.top;
	f->stack.user.known = f->host_stack.user.known = false;
	pt_flow_deliver(f);
	side_changed(f, NULL);
}

/* The branch that leaves this side. */
static bool leave(struct pt_flow *f, struct pt_vm_transition *t)
{
	const uint8_t *code;
	uint32_t edge;

	if (f->state == PT_FLOW_NO_IMAGE) {
		if (!t->entry && f->fup.pending)
			t->guest_ip = f->fup.ip;
		return true;
	}
	if (f->state != PT_FLOW_RUNNING)
		return true;
	if (t->entry) {
		const struct pt_where *w;
		unsigned d = pt_flow_settle(f);

		if (d == PT_D_DEAD)
			return f->state == PT_FLOW_NO_IMAGE;
		w = &f->graph->where[f->at.position];
		if (d != PT_D_FAR || w->cls != INSN_VMENTRY) {
			pt_flow_err(f, PT_FLOW_MISMATCH, w->decision_ip,
				    "a VM entry where the code has none");
			return true;
		}
		t->host_ip = w->decision_ip;
		take(f);
		if (f->timing.clock_moved)
			pt_flow_cut(f, 0);
		edge = pt_flow_edge(f, t->host_ip, 0, PTR_VMENTRY);
	} else {
		if (!f->fup.pending) {
			pt_flow_err(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				    "a VM exit without a FUP that says from where");
			return true;
		}
		t->guest_ip = f->fup.ip;
		t->no_code = f->at.code && !img_space_code(f->at.code->space, t->guest_ip, &code);
		if (f->timing.clock_moved)
			pt_flow_cut(f, 0);
		edge = pt_flow_edge(f, t->guest_ip, 0, PTR_VMEXIT);
	}
	if (!edge)
		return pt_flow_lose(f, PT_FLOW_FULL, 0, "");
	pt_flow_add_edge(f, edge);
	pt_flow_flush(f);
	return true;
}

bool pt_flow_change_side(struct pt_flow *f, uint64_t ip)
{
	struct pt_vm_transition t = {
	    .entry = f->side.to_nr, .vmcs = f->side.vmcs, .tsc = f->clock.tsc, .has_cyc = f->timing.has_cyc};
	uint32_t edge, to_nr = f->side.to_nr;
	uint64_t to_cr3 = f->side.to_cr3;
	bool lost;

	if (!leave(f, &t))
		return false;
	pt_flow_end_slice(f);
	lost = f->stack_state.guest_unseen;
	t.cr3 = t.entry ? to_cr3 : f->side.cr3;
	*(t.entry ? &t.guest_ip : &t.host_ip) = ip;
	t.insns = f->counts.insns;
	t.cycles = f->clock.cyc;
	f->side.nr = to_nr;
	f->side.cr3 = to_cr3;
	f->side.changes = f->fup.pending = false;
	f->tnt.n = 0;
	f->state = PT_FLOW_DISABLED;
	f->at.position = 0;
	if (t.entry) {
		save_stack(f);
		set_floor(f);
		f->stack_state.guest_unseen = false;
	} else {
		/* The guest's calls and returns may not be known, but KVM's own are. */
		f->stack_state.guest_lost |= lost;
		if (lost)
			restore_stack(f);
		else
			lift_floor(f);
		f->stack.user = f->host_stack.user;
	}
	pt_flow_deliver(f);
	side_changed(f, &t);
	if (!ip)
		return true;
	pt_flow_approach(f, ip);
	f->at.mode = f->at.next_mode;
	f->at.code = pt_flow_code_at(f, ip);
	f->state = PT_FLOW_RUNNING;
	if (!f->at.code)
		return pt_flow_lose_image(f, PT_FLOW_NO_CODE, ip, "it is not known which process runs",
					  false);
	f->path.len = 0;
	f->path.start_ip = 0;
	pt_flow_begin_slice(f);
	pt_flow_time_begin(f);
	edge = pt_flow_edge(f, 0, ip, t.entry ? PTR_VMENTRY : PTR_VMEXIT);
	if (!edge)
		return pt_flow_lose(f, PT_FLOW_FULL, ip, "");
	pt_flow_add_edge(f, edge);
	return pt_flow_stand(f, ip);
}

static void concealed(struct pt_flow *f, bool entry, uint64_t host_ip)
{
	struct pt_vm_transition t = {.entry = entry,
				     .concealed = true,
				     .vmcs = f->side.vmcs,
				     .tsc = entry ? f->clock.tsc : PT_CLOCK_UNKNOWN,
				     .host_ip = host_ip,
				     .insns = f->counts.insns,
				     .cycles = f->clock.cyc,
				     .has_cyc = f->timing.has_cyc};

	f->side.concealed = entry;
	pt_flow_end_slice(f);
	pt_flow_deliver(f);
	side_changed(f, &t);
}

/* "Conceal VM entries from Intel PT", and tracing is off in the guest: the VM entry's list of MSRs has cleared TraceEn, or VM entry
 * has loaded IA32_RTIT_CTL (SDM, "Packet Generation under Different Enable Conditions", VM entry). */
void pt_flow_conceal(struct pt_flow *f, uint64_t vmentry_ip)
{
	concealed(f, true, vmentry_ip);
}

/* When the exit was is not known: software may have waited with switching tracing on. */
void pt_flow_reveal(struct pt_flow *f, uint64_t ip)
{
	concealed(f, false, ip);
}
