/* return_stack.c - the model of the CPU's return stack across kernel, guests and gaps; see internal.h. */
#include "decode/flow/internal.h"

void pt_flow_stack_push(struct pt_flow *f, uint32_t position)
{
	f->stack.entries[f->stack.top++ % PT_STACK] = position;
	pt_flow_stack_risen(f);
}

/*
 * While the model is unsure, all that is known is that a compressed return went to the code that it came
 * from. So a return that is not compressed takes along what lies above its caller: calls that nothing returns
 * to (kernels stuff the CPU's predictor with such after each VM exit).
 */
void pt_flow_stack_return_to(struct pt_flow *f, uint64_t ip)
{
	uint32_t i = f->stack.top;

	if (f->stack.top == f->stack.bottom || f->stack_state.unsure)
		pt_flow_stop_recording(f);
	if (f->stack.top == f->stack.bottom)
		return;
	pt_flow_stack_pop(f);
	if (!f->stack_state.unsure)
		return;
	while (i != f->stack.bottom && f->graph->where[f->stack.entries[(i - 1) % PT_STACK]].ip != ip)
		i--;
	if (i != f->stack.bottom)
		f->stack.top = i - 1;
}

void pt_flow_stack_clear(struct pt_flow *f)
{
	f->stack.bottom = f->stack.top;
	f->host_stack.bottom = f->host_stack.top;
	f->stack_state.unsure = f->stack_state.stale_hw = false;
	f->stack_state.guest_lost = f->stack_state.has_floor = false;
	f->stack_state.guest_unseen = f->state == PT_FLOW_NO_IMAGE;
}

void pt_flow_stack_forget(struct pt_flow *f)
{
	f->stack.bottom = f->stack.top;
	f->host_stack.bottom = f->host_stack.top;
	f->stack.user.known = f->host_stack.user.known = false;
	f->stack.user.unseen = f->host_stack.user.unseen = false;
	f->stack_state.guest_unseen = true;
}

/* ---- User space and kernel -------------------------------------------------------------------------- */

void pt_flow_stack_cross(struct pt_flow *f, const struct pt_code *to)
{
	pt_flow_stop_recording(f);
	if (to == f->kernel) {
		f->stack.user.known = f->at.code == f->user && f->user;
		f->stack.user.top = f->stack.top;
		f->stack.user.bottom = f->stack.bottom;
		f->stack.user.unseen = false;
		f->stack_state.kernel_unseen = false;
		return;
	}
	f->unseen_wanted |= f->stack.user.unseen && (f->stack_state.unsure || f->stack_state.kernel_unseen);
	if ((f->stack_state.unsure || f->stack_state.kernel_unseen) && f->stack.user.known) {
		f->stack_state.unsure = true;
		f->stack.top = f->stack.user.top;
		f->stack.bottom = pt_flow_user_bottom(&f->stack);
		f->stack.user.known = false;
	} else if (f->stack_state.unsure || f->stack_state.kernel_unseen) {
		f->stack.bottom = f->stack.top;
		f->stack_state.stale_hw = true;
	}
}

/* ---- Host and guest --------------------------------------------------------------------------------- */

/* A guest that was not seen wholly has called what the model does not hold. What lies at the top when it is
 * entered the next time is the host's, and no return of the guest goes there: that is the floor. Calls from
 * then on are known. */
static void set_floor(struct pt_flow *f)
{
	struct flow_stack_state *s = &f->stack_state;

	if (s->guest_lost || (int32_t)(f->stack.top - s->guest_floor) < 0)
		s->guest_floor = f->stack.top;
	s->has_floor |= s->guest_lost;
	s->guest_lost = false;
	if (s->has_floor && (int32_t)(s->guest_floor - f->stack.bottom) > 0)
		f->stack.bottom = s->guest_floor;
}

static void lift_floor(struct pt_flow *f)
{
	if (f->stack_state.has_floor && f->stack.bottom == f->stack_state.guest_floor)
		f->stack.bottom = f->host_stack.bottom;
	else
		f->stack_state.has_floor = false; /* a PSB has emptied the stack, or it has overflown */
}

void pt_flow_stack_enter_guest(struct pt_flow *f)
{
	f->host_stack = f->stack;
	f->stack.user.known = f->stack.user.unseen = false;
	set_floor(f);
	f->stack_state.guest_unseen = false;
}

void pt_flow_stack_leave_guest(struct pt_flow *f, bool guest_unseen)
{
	f->stack_state.guest_lost |= guest_unseen;
	if (guest_unseen) {
		/* The guest's calls and returns are not known, but the hypervisor's own are. */
		pt_flow_stop_recording(f);
		f->stack = f->host_stack;
		f->stack_state.others_top = f->stack.top;
		f->stack_state.unsure = true;
	} else {
		lift_floor(f);
		f->stack.user = f->host_stack.user;
	}
}
