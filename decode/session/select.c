/*
 * select.c - a session that decodes a part of the trace (selection.h): which bytes, which threads, what
 * time. The beginning and the end of the selected time are marks in the queue of sideband records, so that
 * they take effect when all streams have reached them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/session/internal.h"
#include "decode/session/psb_time.h"

int pt_session_select_vms(struct session *s, struct pt_error *e)
{
	const char *missing = pt_selection_resolve_vms(&s->selected.selection, s->meta), *key, *value;
	char there[256] = "none with a name";
	size_t n = 0;

	if (!missing)
		return 0;
	for (size_t i = 0; n < sizeof there && ptc_meta_pair(s->meta, i, &key, &value); i++) {
		const char *what = strrchr(key, '.');

		if (strncmp(key, "machine.", 8) == 0 && (!strcmp(what, ".name") || !strcmp(what, ".host")))
			n += (size_t)snprintf(there + n, sizeof there - n, "%s%s (%d)", n ? ", " : "", value,
					      atoi(key + 8));
	}
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--vm %s: the recording has no such VM; it has: %s",
		       missing, there);
}

void pt_session_select_self(struct session *s)
{
	const char *key, *value;

	if (s->options->include_self)
		return;
	s->selected.self.count = 0;
	for (size_t i = 0; ptc_meta_pair(s->meta, i, &key, &value); i++)
		if (strncmp(key, "recorder.", 9) == 0)
			pt_number_list_add(&s->selected.self, key + 9);
}

static int queue_mark(struct session *s, uint64_t tsc, bool end, struct pt_error *e)
{
	/* As empty as a record can be: its perf_event_header reads as zeros, which is no type of perf's. */
	struct pt_sideband_record *mark = pt_sideband_record_create(NULL, 0);

	if (!mark)
		return pt_fail_no_memory(e, "sideband");
	mark->machine = s->host;
	mark->mark = true;
	mark->mark_end = end;
	mark->tsc = tsc;
	return pt_session_queue_add(s, mark, e);
}

/* Both ends as TSC; one that is not given: 0, UINT64_MAX. 1; 0: it is not known yet when the trace
 * begins, which the first AUX data with a time says; or -1 (PT_ERR_USAGE). */
static int find_tsc(const struct session *s, const struct pt_selection *time, const char *option,
		    const struct ptc_aux *aux, uint64_t ret[2], struct pt_error *e)
{
	const struct pt_time_bound *bounds[] = {&time->from, &time->to};
	uint64_t trace_tsc = 0;

	if (time->from.relative || time->to.relative) {
		trace_tsc = pt_psb_time_first(aux->bytes, aux->size);
		if (trace_tsc == UINT64_MAX)
			return 0;
	}
	for (int i = 0; i < 2; i++) {
		ret[i] = i ? UINT64_MAX : 0;
		if (bounds[i]->given)
			ret[i] = pt_time_bound_tsc(bounds[i], &s->perf_clock, trace_tsc);
		if (s->timeless || (bounds[i]->given && ret[i] == UINT64_MAX))
			return pt_fail(
			    e, PT_ERR_USAGE, PT_NO_OFFSET,
			    "%s: the recording has no time, or its relation to perf's clock is unknown",
			    option);
	}
	return 1;
}

/* The selected time, once it is known when the trace begins. */
static int find_time(struct session *s, const struct ptc_aux *aux, struct pt_error *e)
{
	const struct pt_selection *selection = &s->selected.selection;
	uint64_t tsc[2];
	int known;

	if (s->selected.begin_known || (!selection->from.given && !selection->to.given))
		return 0;
	known = find_tsc(s, selection, "--time", aux, tsc, e);
	if (known <= 0)
		return known;
	s->selected.begin_known = true;
	s->selected.begin_tsc = tsc[0];
	if (selection->from.given && !s->options->from_psb && queue_mark(s, tsc[0], false, e) < 0)
		return -1;
	return selection->to.given ? queue_mark(s, tsc[1], true, e) : 0;
}

static int put_tsc(struct session *s, const char *key, uint64_t tsc, struct pt_error *e)
{
	char value[32];

	snprintf(value, sizeof value, "%" PRIu64, tsc);
	return ptr_put_meta(s->emit.writer, key, value, e) < 0 ? -1 : 0;
}

/* The time of which all is written (--detail vm,branches@A..B), likewise. */
static int find_detail(struct session *s, const struct ptc_aux *aux, struct pt_error *e)
{
	uint64_t tsc[2];
	int known;

	if (s->selected.detail_known || !s->options->detail_time)
		return 0;
	known = find_tsc(s, s->options->detail_time, "--detail", aux, tsc, e);
	if (known <= 0)
		return known;
	s->selected.detail_known = true;
	s->emit.detail.from_tsc = tsc[0];
	s->emit.detail.until_tsc = tsc[1];
	return put_tsc(s, "decode.detail_from_tsc", tsc[0], e) < 0 ||
		       put_tsc(s, "decode.detail_until_tsc", tsc[1], e) < 0
		   ? -1
		   : 0;
}

int pt_session_selects_aux(struct session *s, struct stream *st, const struct ptc_aux *aux,
			   uint64_t *ret_skip, struct pt_error *e)
{
	const struct pt_selection *selection = &s->selected.selection;

	*ret_skip = 0;
	if (find_detail(s, aux, e) < 0)
		return -1;
	if (s->selected.all)
		return 1;
	if (find_time(s, aux, e) < 0)
		return -1;
	if (s->selected.after_end || !pt_selection_has_cpu(selection, st->info.cpu))
		return 0;
	if (st->info.tid > 0 && !pt_selection_has_thread(selection, st->info.pid, st->info.tid))
		return 0;
	if (selection->from.given && s->selected.begin_known && !st->reached_begin)
		*ret_skip =
		    pt_psb_time_last(aux->bytes, aux->size, s->selected.begin_tsc, &st->reached_begin);
	return 1;
}

void pt_session_select_detail(struct stream *st)
{
	struct session *s = st->session;
	const struct pt_selection *selection = &s->selected.selection;
	const struct pt_task *task = st->cpu.task;
	bool was_unwanted = st->out.unwanted, selected;

	/* Its code is followed: so what comes after it is known from its first instruction on. */
	st->out.left_out = s->selected.self.count && task && pt_number_list_has(&s->selected.self, task->pid);

	if (s->selected.all) {
		pt_flow_set_detail(st->flow, s->detail);
		return;
	}
	st->out.unwanted = s->selected.before_begin || s->selected.after_end ||
			   !pt_selection_has_cpu(selection, st->info.cpu) ||
			   !pt_selection_has_thread(selection, task ? task->pid : -1, task ? task->tid : -1);
	selected = !st->out.unwanted && pt_selection_has_side(selection, st->cpu_context != &st->cpu);
	pt_flow_set_detail(st->flow, selected ? s->detail : PT_FLOW_TRANSITIONS_ONLY);
	if (st->out.unwanted && !was_unwanted)
		s->emit.vm->gap(s->emit.vm_arg, &st->out, st->flow);
	else if (!pt_flow_follows(st->flow))
		s->emit.vm->no_image(s->emit.vm_arg, &st->out, st->flow);
}

void pt_session_select_mark(struct session *s, const struct pt_sideband_record *mark)
{
	if (mark->mark_end)
		s->selected.after_end = true;
	else
		s->selected.before_begin = false;
}

bool pt_session_selects_event(const struct session *s, const struct pt_sideband_record *record)
{
	const struct selected *selected = &s->selected;
	const struct pt_selection *selection = &selected->selection;
	bool guest = record->machine->pid != 0;

	if (record->context)
		return false;
	if (selected->all)
		return true;
	if (selected->before_begin || selected->after_end || !pt_selection_has_side(selection, guest))
		return false;
	if (guest) /* of which vCPU thread is not known */
		return pt_selection_has_thread(selection, record->machine->pid, -1) || !selection->pids.count;
	return pt_selection_has_cpu(selection, record->cpu) &&
	       pt_selection_has_thread(selection, record->pid, record->tid);
}
