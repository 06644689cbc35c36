/* flow.c - a flow's life: made, asked, interrupted, ended; see flow.h. */
#include "decode/flow/internal.h"
#include "decode/flow/vm_transition.h"

#include <stdlib.h>

/* ---- Creation, settings, state ---------------------------------------------------------------------- */

struct pt_flow *pt_flow_create(const struct pt_flow_config *config)
{
	struct pt_flow *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->graph = config->graph;
	f->env = config->env;
	f->env_arg = config->env_arg;
	f->output = config->output;
	f->output_arg = config->output_arg;
	f->errata = config->errata;
	f->snapshot = config->snapshot;
	f->no_tnt = config->no_tnt;
	f->stop_tsc = UINT64_MAX;
	f->run.tsc = PT_CLOCK_UNKNOWN;
	f->side.vmcs = PT_VMCS_UNKNOWN;
	pt_clock_init(&f->clock, &config->clock);
	return f;
}

void pt_flow_destroy(struct pt_flow *f)
{
	if (f)
		free(f->places);
	free(f);
}

void pt_flow_set_code(struct pt_flow *f, struct pt_code *user, struct pt_code *kernel)
{
	f->touched += f->user != user || f->kernel != kernel;
	if (f->user != user)
		f->stack_state.others_top = f->stack.top;
	f->user = user;
	f->kernel = kernel;
}

void pt_flow_set_user_code(struct pt_flow *f, struct pt_code *user)
{
	f->touched += f->user != user;
	if (f->user != user)
		f->stack_state.others_top = f->stack.top;
	f->user = user;
}

void pt_flow_set_detail(struct pt_flow *f, enum pt_flow_detail detail)
{
	f->touched += f->detail != detail;
	f->detail = detail;
}

void pt_flow_set_stop(struct pt_flow *f, uint64_t tsc)
{
	f->stop_tsc = tsc;
}

enum pt_flow_state pt_flow_state(const struct pt_flow *f)
{
	return f->state;
}

bool pt_flow_follows(const struct pt_flow *f)
{
	return f->detail == PT_FLOW_FOLLOW;
}

bool pt_flow_in_slice(const struct pt_flow *f)
{
	return f->slice.open;
}

struct pt_code *pt_flow_user_code(const struct pt_flow *f)
{
	return f->user;
}

struct pt_code *pt_flow_kernel_code(const struct pt_flow *f)
{
	return f->kernel;
}

struct pt_code *pt_flow_code(const struct pt_flow *f)
{
	return f->at.code;
}

const struct pt_clock *pt_flow_clock(const struct pt_flow *f)
{
	return &f->clock;
}

uint64_t pt_flow_tsc(const struct pt_flow *f)
{
	return f->clock.tsc;
}

bool pt_flow_in_guest(const struct pt_flow *f)
{
	return f->side.nr;
}

uint64_t pt_flow_cr3(const struct pt_flow *f)
{
	return f->side.cr3;
}

bool pt_flow_time_waits(const struct pt_flow *f)
{
	return f->tsc.waits;
}

uint64_t pt_flow_vmcs(const struct pt_flow *f)
{
	return f->side.vmcs == FLOW_VMCS_MISSED ? PT_VMCS_UNKNOWN : f->side.vmcs;
}

bool pt_flow_has_cyc(const struct pt_flow *f)
{
	return f->clock.has_cyc;
}

uint64_t pt_flow_stop_ip(const struct pt_flow *f)
{
	return f->stop_ip;
}

const struct pt_flow_counts *pt_flow_counts(const struct pt_flow *f)
{
	return &f->counts;
}

/* ---- Interruptions ---------------------------------------------------------------------------------- */

void pt_flow_lost(struct pt_flow *f, uint64_t aux_offset, bool whole, const char *message)
{
	f->touched++;
	pt_flow_report_held(f, pt_flow_here(f));
	f->packet.aux_offset = aux_offset;
	pt_flow_desync(f, PT_FLOW_LOST, pt_flow_here(f), message);
	if (whole && f->psb.ever)
		f->state = PT_FLOW_DATA_LOST;
	pt_clock_lost(&f->clock);
	f->packet.last_ip = 0;
	f->side.cr3 = 0;
	f->tsc.waits = f->tsc.tma_waits = false;
	pt_flow_deliver(f);
}

void pt_flow_restart(struct pt_flow *f)
{
	f->touched++;
	pt_flow_interrupt(f, true);
	f->state = PT_FLOW_UNSYNCED;
	f->at.position = 0;
	f->tnt.n = 0;
	f->packet.bip_bytes = 0;
	f->packet.last_ip = 0;
	f->psb.open = f->overflow.pending = false;
	f->fup.pending = f->fup.binds = f->fup.tsx_abort = false;
	f->side.changes = f->side.concealed = f->tsc.waits = f->tsc.tma_waits = false;
	f->stack_state.guest_unseen = true;
	f->stack.bottom = f->stack.top;
	f->path.len = 0;
	f->side.cr3 = 0;
	pt_clock_lost(&f->clock);
}

void pt_flow_finish(struct pt_flow *f)
{
	pt_flow_report_held(f, pt_flow_here(f));
	if (f->state == PT_FLOW_RUNNING)
		pt_flow_end_path_at(f, pt_flow_here(f));
	pt_flow_end_slice(f);
	pt_flow_deliver(f);
	if (f->graph->full && !f->full_reported)
		pt_flow_desync(f, PT_FLOW_FULL, 0, "");
	f->state = PT_FLOW_UNSYNCED;
}

void pt_flow_pause(struct pt_flow *f, bool end_slice)
{
	f->touched++;
	pt_flow_interrupt(f, end_slice);
}

/* The entries' positions in the code as it is now. */
static void look_up_again(struct pt_graph *g, struct flow_return_stack *stack)
{
	for (uint32_t i = stack->bottom; i != stack->top; i++) {
		uint32_t *entry = &stack->entries[i % PT_STACK];
		const struct pt_where *w = &g->where[*entry];

		*entry = pt_graph_position(g, g->codes[w->code], w->ip, (enum insn_mode)w->mode);
	}
}

void pt_flow_resume(struct pt_flow *f)
{
	look_up_again(f->graph, &f->stack);
	look_up_again(f->graph, &f->host_stack);
	if (f->state != PT_FLOW_RUNNING)
		return;
	if (f->detail != PT_FLOW_FOLLOW) {
		pt_flow_skip_code(f);
		return;
	}
	if (!f->slice.open)
		pt_flow_resume_slice(f);
	f->path.start_ip = pt_flow_here(f);
	f->at.code = NULL;
	pt_flow_arrive(f, f->path.start_ip);
}
