/* no_image.c - how a flow that has no code finds some; see internal.h. */
#include "decode/flow/internal.h"

bool pt_flow_has_code(struct pt_flow *f, uint64_t ip)
{
	for (int i = 0; i < 2; i++) {
		struct pt_code *code = pt_flow_code_at(f, ip);
		struct pt_block *b = code ? pt_graph_block(f->graph, code, ip, f->at.next_mode) : NULL;

		if (b && (b->insns || !b->dead))
			return true;
		if (i == 0 && !pt_flow_ask_missing(f, ip))
			break;
	}
	return false;
}

void pt_flow_skip_code(struct pt_flow *f)
{
	uint64_t ip = pt_flow_here(f);

	pt_flow_interrupt(f, true);
	f->counts.kernel_skips += ip >> 63;
	f->at.position = 0;
	f->tnt.n = 0;
	f->path.len = 0;
	f->fup.pending = f->fup.binds = f->fup.tsx_abort = false;
	f->stack_state.guest_unseen = f->stack_state.skipped = true;
	f->state = PT_FLOW_NO_IMAGE;
	f->no_image = (struct flow_no_image){.upper = ip >> 63};
}

bool pt_flow_leave_no_image(struct pt_flow *f, uint64_t ip)
{
	bool upper = ip >> 63;

	if (f->no_image.wrong && upper == f->no_image.upper)
		return false;
	pt_flow_ask_user(f, ip);
	if (f->detail != PT_FLOW_FOLLOW || !pt_flow_has_code(f, ip))
		return false;
	/* A kernel comes back with the stack that it was called with. Whatever else was not seen may have
	 * returned and called as it liked. */
	if (!f->no_image.upper || upper) {
		f->stack.bottom = f->stack.top;
		f->stack_state.unsure = false;
	} else {
		f->stack_state.unsure = true;
		f->unseen_wanted |= f->stack.user.unseen;
		if (f->stack.user.known)
			pt_flow_stack_cross(f, f->user);
	}
	return pt_flow_sync_at(f, ip);
}
