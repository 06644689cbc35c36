/* host_guest.c - a flow's sides, host and guest, and how it goes on without code; see flow.h. */
#include "decode/flow/internal.h"
#include "decode/flow/vm_transition.h"

uint32_t pt_flow_edge(struct pt_flow *f, uint64_t from, uint64_t to, enum ptr_kind kind)
{
	struct pt_code *code = f->code;

	if (to && !(to >> 63) && code == f->kernel && f->user)
		code = f->user; /* which sees its kernel, too */
	return pt_graph_edge(f->graph, code, from, to, kind);
}

/* ---- Missing code ----------------------------------------------------------------------------------- */

bool pt_flow_lose_image(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message,
			bool hard)
{
	uint32_t bottom = f->bottom, top = f->top;
	bool unsure = f->unsure;

	if (f->graph->full)
		return pt_flow_lose(f, PT_FLOW_FULL, ip, "");
	pt_flow_report_error(f, kind, ip, message, true);
	/* What was called before is returned to after it: see pt_flow_see(). */
	f->bottom = bottom;
	f->top = top;
	f->unsure = unsure;
	f->state = PT_FLOW_NO_IMAGE;
	f->no_image_upper = ip >> 63;
	f->kernel_no_image |= f->no_image_upper;
	f->no_image_hard = hard;
	return false;
}

static bool has_code(struct pt_flow *f, uint64_t ip)
{
	for (int i = 0; i < 2; i++) {
		struct pt_code *code = pt_flow_code_at(f, ip);
		struct pt_block *b = code ? pt_graph_block(f->graph, code, ip, f->next_mode) : NULL;

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
	f->position = 0;
	f->tnt_n = 0;
	f->len = 0;
	f->fup = f->fup_binds = f->tsx_abort = false;
	f->guest_no_image = f->skipped = true;
	f->state = PT_FLOW_NO_IMAGE;
	f->no_image_upper = ip >> 63;
	f->no_image_hard = false;
}

bool pt_flow_see(struct pt_flow *f, uint64_t ip)
{
	bool upper = ip >> 63;

	if (f->no_image_hard && upper == f->no_image_upper)
		return false;
	pt_flow_approach(f, ip);
	if (f->skip || !has_code(f, ip))
		return false;
	/* A kernel comes back with the stack that it was called with. Whatever else was not seen may have returned and
	 * called as it liked. */
	if (!f->no_image_upper || upper) {
		f->bottom = f->top;
		f->unsure = false;
	} else {
		f->unsure = true;
		if (f->user_known)
			pt_flow_cross(f, f->user);
	}
	return pt_flow_sync_at(f, ip);
}

void pt_flow_cross(struct pt_flow *f, struct pt_code *to)
{
	f->trail.to = NULL;
	if (to == f->kernel) {
		f->user_known = f->code == f->user && f->user;
		f->user_top = f->top;
		f->user_bottom = f->bottom;
		f->kernel_no_image = false;
	} else if ((f->unsure || f->kernel_no_image) && f->user_known) {
		f->unsure = true;
		/* Deeper down the ring may have been used again. */
		f->top = f->user_top;
		f->bottom = f->top - f->user_bottom > 32 ? f->top - 32 : f->user_bottom;
		f->user_known = false;
	} else if (f->unsure || f->kernel_no_image) {
		f->bottom = f->top;
		f->forgot = true;
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
	uint32_t i = f->top;

	if (f->top == f->bottom || f->unsure)
		f->trail.to = NULL;
	if (f->top == f->bottom)
		return;
	pt_flow_pop(f);
	if (!f->unsure)
		return;
	while (i != f->bottom && f->graph->where[f->stack[(i - 1) % PT_STACK]].ip != ip)
		i--;
	if (i != f->bottom)
		f->top = i - 1;
}

/* ---- Host and guest --------------------------------------------------------------------------------- */

static void save_stack(struct pt_flow *f)
{
	memcpy(f->host_stack.stack, f->stack, sizeof f->stack);
	f->host_stack.top = f->top;
	f->host_stack.bottom = f->bottom;
	f->host_stack.user_top = f->user_top;
	f->host_stack.user_bottom = f->user_bottom;
	f->host_stack.user_known = f->user_known;
	f->user_known = false;
}

static void restore_stack(struct pt_flow *f)
{
	f->trail.to = NULL;
	memcpy(f->stack, f->host_stack.stack, sizeof f->stack);
	f->top = f->host_stack.top;
	f->bottom = f->host_stack.bottom;
	f->unsure = true;
}

/*
 * A guest that was not seen wholly has called what its return stack here does not hold. What lies at the top when it is
 * entered the next time is the host's, and no return of the guest goes there: the floor. Calls from then on are known.
 */
static void set_floor(struct pt_flow *f)
{
	if (f->guest_lost || (int32_t)(f->top - f->guest_floor) < 0)
		f->guest_floor = f->top;
	f->floored |= f->guest_lost;
	f->guest_lost = false;
	if (f->floored && (int32_t)(f->guest_floor - f->bottom) > 0)
		f->bottom = f->guest_floor;
}

static void lift_floor(struct pt_flow *f)
{
	if (f->floored && f->bottom == f->guest_floor)
		f->bottom = f->host_stack.bottom;
	else
		f->floored = false; /* a PSB has emptied the stack, or it has overflown */
}

void pt_flow_set_side(struct pt_flow *f, uint32_t nr, uint64_t cr3)
{
	f->nr = nr;
	f->cr3 = cr3;
	f->side_changes = false;
	f->guest_no_image = true;
	f->bottom = f->top;
	f->host_stack.bottom = f->host_stack.top;
	f->user_known = f->host_stack.user_known = false;
	pt_flow_deliver(f);
	if (f->sink->side)
		f->sink->side(f->arg, f, NULL);
}

/* The branch that leaves this side. */
static bool leave(struct pt_flow *f, struct pt_vm_transition *t)
{
	const uint8_t *code;
	uint32_t edge;

	if (f->state == PT_FLOW_NO_IMAGE) {
		if (!t->entry && f->fup)
			t->guest_ip = f->fup_ip;
		return true;
	}
	if (f->state != PT_FLOW_RUNNING)
		return true;
	if (t->entry) {
		const struct pt_where *w;
		unsigned d = pt_flow_settle(f);

		if (d == PT_D_DEAD)
			return f->state == PT_FLOW_NO_IMAGE;
		w = &f->graph->where[f->position];
		if (d != PT_D_FAR || w->cls != INSN_VMENTRY) {
			pt_flow_err(f, PT_FLOW_MISMATCH, w->decision_ip,
				    "a VM entry where the code has none");
			return true;
		}
		t->host_ip = w->decision_ip;
		take(f);
		if (f->cut)
			pt_flow_cut(f, 0);
		edge = pt_flow_edge(f, t->host_ip, 0, PTR_VMENTRY);
	} else {
		if (!f->fup) {
			pt_flow_err(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				    "a VM exit without a FUP that says from where");
			return true;
		}
		t->guest_ip = f->fup_ip;
		t->no_code = f->code && !img_space_code(f->code->space, t->guest_ip, &code);
		if (f->cut)
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
	    .entry = f->to_nr, .vmcs = f->vmcs, .tsc = f->clock.tsc, .has_cyc = f->has_cyc};
	uint32_t edge, to_nr = f->to_nr;
	uint64_t to_cr3 = f->to_cr3;
	bool lost;

	if (!leave(f, &t))
		return false;
	pt_flow_end_slice(f);
	lost = f->guest_no_image;
	t.cr3 = t.entry ? to_cr3 : f->cr3;
	*(t.entry ? &t.guest_ip : &t.host_ip) = ip;
	t.insns = f->insns;
	t.cycles = f->clock.cyc;
	f->nr = to_nr;
	f->cr3 = to_cr3;
	f->side_changes = f->fup = false;
	f->tnt_n = 0;
	f->state = PT_FLOW_DISABLED;
	f->position = 0;
	if (t.entry) {
		save_stack(f);
		set_floor(f);
		f->guest_no_image = false;
	} else {
		/* The guest's calls and returns may not be known, but KVM's own are. */
		f->guest_lost |= lost;
		if (lost)
			restore_stack(f);
		else
			lift_floor(f);
		f->user_top = f->host_stack.user_top;
		f->user_bottom = f->host_stack.user_bottom;
		f->user_known = f->host_stack.user_known;
	}
	pt_flow_deliver(f);
	if (f->sink->side)
		f->sink->side(f->arg, f, &t);
	if (!ip)
		return true;
	pt_flow_approach(f, ip);
	f->mode = f->next_mode;
	f->code = pt_flow_code_at(f, ip);
	f->state = PT_FLOW_RUNNING;
	if (!f->code)
		return pt_flow_lose_image(f, PT_FLOW_NO_CODE, ip, "it is not known which process runs",
					  false);
	f->len = 0;
	f->start_ip = 0;
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
				     .vmcs = f->vmcs,
				     .tsc = entry ? f->clock.tsc : PT_CLOCK_UNKNOWN,
				     .host_ip = host_ip,
				     .insns = f->insns,
				     .cycles = f->clock.cyc,
				     .has_cyc = f->has_cyc};

	f->concealed = entry;
	pt_flow_end_slice(f);
	pt_flow_deliver(f);
	if (f->sink->side)
		f->sink->side(f->arg, f, &t);
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
