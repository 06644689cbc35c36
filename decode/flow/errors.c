/* errors.c - how a flow ends with an error, and goes on without code; see internal.h. */
#include "decode/flow/internal.h"

const char *pt_flow_error_name(enum pt_flow_error_kind kind)
{
	static const char *const name[] = {"bad packet", "no code",  "bad instruction",
					   "mismatch",	 "overflow", "lost",
					   "truncated",	 "clock",    "out of memory"};

	return (unsigned)kind < sizeof name / sizeof *name ? name[kind] : "?";
}

static void report_error(struct pt_flow *f, const struct pt_flow_error *error)
{
	if (f->state == PT_FLOW_RUNNING)
		pt_flow_end_path_at(f, pt_flow_here(f));
	pt_flow_end_slice(f);
	pt_flow_deliver(f);
	f->output->error(f->output_arg, f, error);
	pt_flow_stop_recording(f); /* a memo would hide the error when the same packets come again */
	f->at.position = 0;
	f->tnt.n = 0;
	f->evds = 0;
	f->fup.pending = f->fup.binds = f->overflow.pending = f->fup.tsx_abort = false;
	f->side.changes = f->side.concealed = false;
	f->stack_state.guest_unseen = f->stack_state.stale_hw = true;
	f->stack_state.unsure = false;
	f->stack_state.skipped |= f->detail != PT_FLOW_FOLLOW;
	f->stack.bottom = f->stack.top;
	f->path.len = 0;
}

void pt_flow_end_with_error(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message)
{
	report_error(f, &(struct pt_flow_error){.kind = kind,
						.ip = ip,
						.aux_offset = f->packet.aux_offset,
						.tsc = f->clock.tsc,
						.message = message});
}

bool pt_flow_desync(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message)
{
	if (f->graph->full) {
		f->full_reported = true;
		kind = PT_FLOW_FULL;
		message = "out of room for decoded code; what follows is not decoded";
	}
	/* The image is another one than what ran; the packets are still understood. */
	if (kind == PT_FLOW_MISMATCH && f->state == PT_FLOW_RUNNING && f->kernel)
		return pt_flow_enter_no_image(f, kind, ip, message, true);
	pt_flow_end_with_error(f, kind, ip, message);
	f->state = PT_FLOW_UNSYNCED;
	f->psb.open = false;
	f->packet.bip_bytes = 0;
	return false;
}

bool pt_flow_enter_no_image(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message,
			    bool wrong_image)
{
	uint32_t bottom = f->stack.bottom, top = f->stack.top;
	bool unsure = f->stack_state.unsure;

	if (f->graph->full)
		return pt_flow_desync(f, PT_FLOW_FULL, ip, "");
	report_error(f, &(struct pt_flow_error){.kind = kind,
						.ip = ip,
						.aux_offset = f->packet.aux_offset,
						.tsc = f->clock.tsc,
						.message = message,
						.no_image = true});
	/* What was called before is returned to later: see pt_flow_leave_no_image(). */
	f->stack.bottom = bottom;
	f->stack.top = top;
	f->stack_state.unsure = unsure;
	f->state = PT_FLOW_NO_IMAGE;
	f->no_image.upper = ip >> 63;
	f->stack_state.kernel_unseen |= f->no_image.upper;
	f->no_image.wrong = wrong_image;
	return false;
}

const char *pt_flow_no_code_message(const struct pt_code *code, uint64_t ip)
{
	const struct img_map *map;

	if (!code || code->unknown_process)
		return "it is not known which process runs";
	if (code->nested)
		return "a nested guest runs, of which no code is known";
	if (code->peeks) /* another thread changes the space, and no one reads what this one says */
		return "the container has no code for this address";
	if (code->space->machine_pid && !img_space_count(code->space) && code->space->pid == PTC_ANY_PID)
		return "the container has no code of this guest: merge its recording; or --guest-code, if it "
		       "runs code "
		       "of its VM's process";
	map = img_space_find(code->space, ip);
	if (map && !map->file && !(ip >> 63))
		return "the container has no code of what is mapped here: a file that was not read, or code "
		       "made at run "
		       "time (pt-capture --jit)";
	return "the container has no code for this address";
}

bool pt_flow_dead_end(struct pt_flow *f)
{
	const struct pt_block *last = pt_graph_last_block(f->graph, f->at.position);
	uint64_t ip = pt_block_term_ip(last);

	f->at.position = 0; /* the path has been ended at ip already */
	switch ((enum pt_dead)last->why) {
	case PT_DEAD_NO_CODE:
		return pt_flow_enter_no_image(
		    f, PT_FLOW_NO_CODE, ip, pt_flow_no_code_message(f->graph->codes[last->code], ip), false);
	case PT_DEAD_BAD_INSN:
		return pt_flow_enter_no_image(f, PT_FLOW_BAD_INSN, ip, PT_FLOW_BAD_INSN_MESSAGE, true);
	case PT_DEAD_SEGMENT:
		return pt_flow_enter_no_image(
		    f, PT_FLOW_NO_CODE, ip,
		    "a 16-bit branch across 64 KB: where to depends on the code segment's base, which "
		    "is not in the trace",
		    false);
	default: return pt_flow_enter_no_image(f, PT_FLOW_MISMATCH, ip, PT_FLOW_ENDLESS_LOOP_MESSAGE, true);
	}
}
