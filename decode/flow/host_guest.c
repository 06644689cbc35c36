/* host_guest.c - VM entries and VM exits; see internal.h. */
#include "decode/flow/internal.h"
#include "decode/flow/vm_transition.h"

/* An exit is reported while what env has set is still the guest's, an entry when it is already. */
static void side_changed(struct pt_flow *f, const struct pt_vm_transition *t)
{
	pt_flow_deliver(f);
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
	pt_flow_stack_forget(f);
	side_changed(f, NULL);
}

/* ---- The transition's two ends ---------------------------------------------------------------------- */

/* The VMLAUNCH or VMRESUME, with the edge that leaves the host. False: the flow ends here. */
static bool leave_host(struct pt_flow *f, struct pt_vm_transition *t, uint32_t *ret_edge)
{
	const struct pt_block *last;
	unsigned d = pt_flow_reach_decision(f);

	*ret_edge = 0;
	if (d == PT_D_DEAD)
		return f->state == PT_FLOW_NO_IMAGE;
	last = pt_graph_last_block(f->graph, f->at.position);
	if (d != PT_D_FAR || last->cls != INSN_VMENTRY) {
		pt_flow_end_with_error(f, PT_FLOW_MISMATCH, pt_block_term_ip(last),
				       "a VM entry where the code has none");
		return true;
	}
	t->host_ip = pt_block_term_ip(last);
	pt_flow_take_prefix(f);
	if (f->timing.clock_moved)
		pt_flow_end_run(f, 0);
	*ret_edge = pt_flow_edge(f, t->host_ip, 0, PTR_VMENTRY);
	return *ret_edge || pt_flow_desync(f, PT_FLOW_FULL, 0, "");
}

/* The FUP's IP, with the edge that leaves the guest. */
static bool leave_guest(struct pt_flow *f, struct pt_vm_transition *t, uint32_t *ret_edge)
{
	const uint8_t *code;

	*ret_edge = 0;
	if (!f->fup.pending) {
		pt_flow_end_with_error(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				       "a VM exit without a FUP that says from where");
		return true;
	}
	t->guest_ip = f->fup.ip;
	t->no_code =
	    f->at.code && !f->at.code->peeks && !img_space_code(f->at.code->space, t->guest_ip, &code);
	if (f->timing.clock_moved)
		pt_flow_end_run(f, 0);
	*ret_edge = pt_flow_edge(f, t->guest_ip, 0, PTR_VMEXIT);
	return *ret_edge || pt_flow_desync(f, PT_FLOW_FULL, 0, "");
}

/* Where this side is left, into *t; ends the path there. */
static bool leave_side(struct pt_flow *f, struct pt_vm_transition *t)
{
	uint32_t edge;

	if (f->state == PT_FLOW_NO_IMAGE && !t->entry && f->fup.pending)
		t->guest_ip = f->fup.ip;
	if (f->state != PT_FLOW_RUNNING)
		return true;
	if (!(t->entry ? leave_host(f, t, &edge) : leave_guest(f, t, &edge)))
		return false;
	if (edge) {
		pt_flow_add_edge(f, edge);
		pt_flow_end_path(f);
	}
	return true;
}

/* Tracing goes on at ip on the other side. */
static bool begin_side(struct pt_flow *f, uint64_t ip, enum ptr_kind kind)
{
	uint32_t edge;

	pt_flow_ask_user(f, ip);
	if (!pt_flow_begin_at(f, ip))
		return false;
	f->path.len = 0;
	f->path.start_ip = 0;
	pt_flow_begin_slice(f);
	pt_flow_time_slice(f);
	edge = pt_flow_edge(f, 0, ip, kind);
	if (!edge)
		return pt_flow_desync(f, PT_FLOW_FULL, ip, "");
	pt_flow_add_edge(f, edge);
	return pt_flow_arrive(f, ip);
}

bool pt_flow_vm_transition(struct pt_flow *f, uint64_t ip, bool traced)
{
	struct pt_vm_transition t = {.entry = f->side.to_nr,
				     .vmcs = pt_flow_vmcs(f),
				     .tsc = f->clock.tsc,
				     .has_cyc = f->clock.has_cyc};
	uint32_t to_nr = f->side.to_nr;
	uint64_t to_cr3 = f->side.to_cr3;
	bool guest_unseen, cyc = f->timing.cyc_fresh;

	if (!leave_side(f, &t))
		return false;
	/* A CYC times both ends. If it is not exact, the run that has just begun says no less. */
	f->timing.cyc_fresh = cyc && traced && pt_clock_cyc_exact(&f->clock);
	pt_flow_end_slice(f);
	guest_unseen = f->stack_state.guest_unseen;
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
	if (t.entry)
		pt_flow_stack_enter_guest(f);
	else
		pt_flow_stack_leave_guest(f, guest_unseen);
	side_changed(f, &t);
	return !traced || begin_side(f, ip, t.entry ? PTR_VMENTRY : PTR_VMEXIT);
}

/* ---- Concealed guests ------------------------------------------------------------------------------- */

static void concealed(struct pt_flow *f, bool entry, uint64_t host_ip)
{
	struct pt_vm_transition t = {.entry = entry,
				     .concealed = true,
				     .vmcs = pt_flow_vmcs(f),
				     .tsc = entry ? f->clock.tsc : PT_CLOCK_UNKNOWN,
				     .host_ip = host_ip,
				     .insns = f->counts.insns,
				     .cycles = f->clock.cyc,
				     .has_cyc = f->clock.has_cyc};

	f->side.concealed = entry;
	pt_flow_end_slice(f);
	side_changed(f, &t);
}

void pt_flow_conceal_guest(struct pt_flow *f, uint64_t vmentry_ip)
{
	concealed(f, true, vmentry_ip);
}

void pt_flow_reveal_host(struct pt_flow *f, uint64_t ip)
{
	concealed(f, false, ip);
}
