/*
 * select.c - a session that decodes only what is wanted (selection.h): which bytes, which threads, which time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/session/internal.h"

static int mark_add(struct session *s, uint64_t tsc, bool end, struct pt_error *e)
{
	struct pt_sideband_record *side = pt_sideband_record_create(NULL, 0);

	if (!side)
		return pt_fail_no_memory(e, NULL);
	side->machine = s->host;
	side->mark = true;
	side->mark_end = end;
	side->tsc = tsc;
	return pt_session_queue(s, side, e);
}

/* The first AUX data tells when the trace begins: the times that are wanted, as TSC. */
static int start_time(struct session *s, const struct ptc_aux *aux, struct pt_error *e)
{
	const struct pt_only *o = s->only;
	uint64_t begin = 0, to;

	if (s->from_known || (!o->from.given && !o->to.given))
		return 0;
	if (o->from.relative || o->to.relative) {
		begin = pt_only_first_tsc(aux->bytes, aux->size);
		if (begin == UINT64_MAX)
			return 0; /* the next bytes may tell */
	}
	s->from_known = true;
	s->from_tsc = o->from.given ? pt_only_tsc(&o->from, &s->conversion, begin) : 0;
	to = o->to.given ? pt_only_tsc(&o->to, &s->conversion, begin) : UINT64_MAX;
	if (s->timeless || (o->from.given && s->from_tsc == UINT64_MAX) || (o->to.given && to == UINT64_MAX))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "the trace has no time, or not perf's clock: --time cannot be told");
	if (o->from.given && mark_add(s, s->from_tsc, false, e) < 0)
		return -1;
	return o->to.given ? mark_add(s, to, true, e) : 0;
}

int pt_session_names(struct session *s, struct pt_error *e)
{
	const char *missing = pt_only_name_vms(&s->chosen, s->meta), *key, *value;
	char there[256] = "none with a name";
	size_t n = 0;

	for (size_t i = 0; missing && n < sizeof there && ptc_meta_pair(s->meta, i, &key, &value); i++) {
		const char *what = strrchr(key, '.');

		if (strncmp(key, "machine.", 8) == 0 && (!strcmp(what, ".name") || !strcmp(what, ".host")))
			n += (size_t)snprintf(there + n, sizeof there - n, "%s%s (%d)", n ? ", " : "", value,
					      atoi(key + 8));
	}
	return missing ? pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				 "--vm %s: the recording has no such VM; it has: %s", missing, there)
		       : 0;
}

bool pt_session_wants(struct session *s, struct stream *st, const struct ptc_aux *aux, uint64_t *ret_skip,
		      struct pt_error *e)
{
	bool past;

	*ret_skip = 0;
	if (!s->only)
		return true;
	if (start_time(s, aux, e) < 0) {
		s->failed = true;
		s->error = *e;
		return false;
	}
	if (s->past || !pt_only_cpu(s->only, st->info.cpu))
		return false;
	if (st->info.tid > 0 && !pt_only_thread(s->only, st->info.pid, st->info.tid))
		return false;
	if (s->only->from.given && s->from_known && !st->begun) {
		*ret_skip = pt_only_psb(aux->bytes, aux->size, s->from_tsc, &past);
		st->begun = past;
	}
	return true;
}

void pt_session_choose(struct stream *st)
{
	struct session *s = st->session;
	const struct pt_task *task = st->cpu.task;
	bool was = st->out.unwanted, guest = st->cpu_context != &st->cpu;

	st->flow.quick = s->quick;
	if (s->quick)
		st->flow.skip = true;
	if (!s->only)
		return;
	st->out.unwanted = s->before || s->past || !pt_only_cpu(s->only, st->info.cpu) ||
			   !pt_only_thread(s->only, task ? task->pid : -1, task ? task->tid : -1);
	st->flow.skip = s->quick || st->out.unwanted || !pt_only_side(s->only, guest);
	if (st->out.unwanted || !pt_only_side(s->only, guest))
		st->flow.quick = 0;
	if (st->out.unwanted && !was)
		s->emit.vm->gap(s->emit.vm_arg, &st->out, &st->flow);
	else if (st->flow.skip)
		s->emit.vm->no_image(s->emit.vm_arg, &st->out, &st->flow);
}

void pt_session_mark(struct session *s, const struct pt_sideband_record *mark)
{
	if (mark->mark_end)
		s->past = true;
	else
		s->before = false;
	for (struct stream *st = s->streams; st; st = st->next) {
		pt_flow_pause(&st->flow, true);
		pt_session_codes(st);
		pt_flow_resume(&st->flow);
	}
}

bool pt_session_wants_event(const struct session *s, const struct pt_sideband_record *side)
{
	if (!s->only)
		return true;
	if (s->before || s->past || !pt_only_side(s->only, side->machine->pid != 0))
		return false;
	if (side->machine->pid) /* a guest's: of which vCPU thread is not known */
		return pt_only_thread(s->only, side->machine->pid, -1) || !s->only->pids.count;
	return pt_only_cpu(s->only, side->cpu) && pt_only_thread(s->only, side->pid, side->tid);
}
