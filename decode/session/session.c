/* session.c - see session.h: a decode from its setup to its results. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/output/calls.h"
#include "decode/session/internal.h"

/* ---- Results ---------------------------------------------------------------------------------------- */

static void sum_up(struct session *s)
{
	struct pt_session_result *r = s->result;
	struct pt_graph_sums sums;

	for (struct stream *st = s->streams; st; st = st->next) {
		const struct pt_flow_counts *counts = pt_flow_counts(st->flow);

		r->packets += counts->packets;
		r->psbs += counts->psbs;
		r->insns += counts->insns;
		r->stop_ip = pt_flow_stop_ip(st->flow);
	}
	pt_graph_sum(&s->graph, &sums);
	r->not_taken = sums.not_taken;
	r->hash = sums.hash;
	memcpy(r->by_kind, sums.by_kind, sizeof r->by_kind);
	r->branches = s->emit.branches;
	r->self_branches = s->emit.left_out_branches;
	r->insns -= s->emit.left_out_insns;
	r->errors = s->emit.errors;
	r->runs = s->emit.runs;
	r->encoded_runs = s->emit.encoded_runs;
	r->helped_ns = pt_calls_helped_ns(s->emit.stacks);
	pt_vm_slowest_exit(s->vm, &r->slowest_exit_tsc, &r->slowest_entry_tsc);
	if (s->segments)
		r->segments = pt_segments_counts(s->segments);
	r->incomplete = r->errors != 0;
}

static int put_results(struct session *s, struct pt_error *e)
{
	const struct {
		const char *key;
		uint64_t value;
	} pairs[] = {
	    {"decode.aux_bytes", s->result->aux_bytes},	      {"decode.packets", s->result->packets},
	    {"decode.insn_count", s->result->insns},	      {"decode.branch_count", s->result->branches},
	    {"decode.not_taken_count", s->result->not_taken}, {"decode.error_count", s->result->errors},
	};
	struct ptr_writer *w = s->emit.writer;
	const char *status = ptc_meta_get(s->meta, "exit_status");
	char value[32];

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		snprintf(value, sizeof value, "%" PRIu64, pairs[i].value);
		if (ptr_put_meta(w, pairs[i].key, value, e) < 0)
			return -1;
	}
	snprintf(value, sizeof value, "%" PRIu64, s->result->self_branches);
	if (s->result->self_branches && ptr_put_meta(w, "decode.recorder_branch_count", value, e) < 0)
		return -1;
	/* The traced program's. The container has it at its end, after the META that was written at the
	 * start. */
	if (status && ptr_put_meta(w, "exit_status", status, e) < 0)
		return -1;
	/* What was not read may be cut or damaged. */
	if (pt_session_seek_done(s) && !s->result->damage[0])
		return 0;
	if (ptr_put_meta(w, "decode.container", s->result->damage[0] ? s->result->damage : "complete", e) < 0)
		return -1;
	return 0;
}

/* ---- The decode ------------------------------------------------------------------------------------- */

static bool is_damage(const struct pt_error *e)
{
	return e->kind == PT_ERR_BAD_INPUT || e->kind == PT_ERR_TRUNCATED;
}

/* All chunks up to the end, or to where the container is damaged or cut (*damage; kind PT_ERR_NONE:
 * nowhere). -1: any other error, or the first chunk is damaged. */
static int read_chunks(struct session *s, struct ptc_reader *r, struct pt_error *damage, struct pt_error *e)
{
	struct ptc_chunk c;
	struct pt_error why = {0};
	bool any = false;
	int n;

	while ((n = ptc_next(r, &c, &why)) > 0) {
		if (pt_session_take_chunk(s, &c, &why) < 0) {
			if (why.offset == PT_NO_OFFSET && is_damage(&why))
				why.offset = c.offset;
			n = -1;
			break;
		}
		any = true;
		if (pt_session_seek_done(s))
			return 0;
	}
	if (n == 0)
		return 0;
	if (!any || !is_damage(&why)) {
		*e = why;
		return -1;
	}
	*damage = why;
	return 0;
}

/* CPUs that came or went; these lines of META come when it is seen. */
static void report_not_traced(struct session *s)
{
	static const char prefix[] = "cpu_not_traced.";
	const char *key, *value;
	char text[160];

	for (size_t i = 0; ptc_meta_pair(s->meta, i, &key, &value); i++) {
		if (strncmp(key, prefix, sizeof prefix - 1) != 0)
			continue;
		snprintf(text, sizeof text,
			 "the CPU came online or went while recording ran, seen at %.20s ns of perf's clock, "
			 "and is not "
			 "traced from then on",
			 value);
		pt_emit_error(&s->emit, 0, (int32_t)strtol(key + sizeof prefix - 1, NULL, 10), PTR_NO_TSC,
			      "CPU not traced", text);
	}
}

/* Decodes what there is still. */
static int finish_streams(struct session *s, struct pt_error *e)
{
	if (pt_session_start(s, e) < 0 || pt_session_end_rounds(s, e) < 0 ||
	    pt_session_scan_end(s, true, e) < 0 || pt_session_queue_waiting(s, true, e) < 0 ||
	    pt_session_advance(s, UINT64_MAX, UINT64_MAX, true, e) < 0)
		return -1;
	for (struct stream *st = s->streams; st; st = st->next) {
		pt_flow_finish(st->flow);
		pt_emit_stream_end(&st->out);
	}
	report_not_traced(s);
	return 0;
}

static void report_damage(struct session *s, const struct pt_error *damage)
{
	bool cut = damage->kind == PT_ERR_TRUNCATED;

	snprintf(s->result->damage, sizeof s->result->damage, "%s at byte %" PRIu64 ": %.180s",
		 cut ? "cut" : "damaged", damage->offset, damage->message);
	pt_emit_error(&s->emit, 0, -1, PTR_NO_TSC, cut ? "truncated container" : "damaged container",
		      s->result->damage);
}

static int decode(struct session *s, struct ptc_reader *r, struct pt_error *e)
{
	struct pt_error damage = {0};

	if (read_chunks(s, r, &damage, e) < 0 || finish_streams(s, e) < 0)
		return -1;
	if (damage.kind != PT_ERR_NONE)
		report_damage(s, &damage);
	pt_vm_finish(s->vm);
	pt_emit_finish(&s->emit);
	sum_up(s);
	if (s->emit.failed) {
		*e = s->emit.error;
		return -1;
	}
	if (put_results(s, e) < 0)
		return -1;
	return s->options->used_code ? img_store_print_used(s->store, s->options->used_code, e) : 0;
}

/* ---- Setup ------------------------------------------------------------------------------------------ */

static uint64_t most_memory(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) / 4 * 3 * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int init_images(struct session *s, struct ptc_reader *r, struct pt_error *e)
{
	s->store = img_store_create();
	if (!s->store)
		return pt_fail_no_memory(e, NULL);
	ptc_reader_leave_images(r);
	img_store_reader(s->store, r);
	img_store_limit(s->store, s->held_bytes_max);
	if (s->options->used_code)
		img_store_track_used(s->store);
	return 0;
}

static int init_output(struct session *s, struct ptr_writer *w, struct pt_error *e)
{
	const struct pt_session_options *o = s->options;

	if (pt_emit_init(&s->emit, w, &s->graph, e) < 0)
		return -1;
	if (o->stats && pt_graph_count_stats(&s->graph, e) < 0)
		return -1;
	if (o->detail != PTR_DETAIL_BRANCHES && pt_emit_less(&s->emit, o->detail, e) < 0)
		return -1;
	s->emit.calls = o->calls;
	if (o->graph_bytes)
		s->emit.call_paths = (uint32_t)((uint64_t)PT_CALL_PATHS * o->graph_bytes / PT_GRAPH_BYTES);
	if (o->threads > 1 && !(s->pool = pt_thread_pool_create(o->threads - 1)))
		return pt_fail_no_memory(e, "threads");
	if (s->pool)
		ptr_writer_use_pool(w, s->pool);
	if (o->calls && s->pool)
		pt_calls_use_pool(s->emit.stacks, s->pool, o->threads);
	s->emit.definitions = o->definitions;
	s->emit.text = o->text;
	return 0;
}

static void init_selected(struct session *s)
{
	const struct pt_selection *selection = s->options->selection;

	s->selected.all = !selection || pt_selection_is_all(selection);
	if (selection)
		s->selected.selection = *selection;
	s->selected.before_begin = !s->selected.all && selection->from.given && !s->options->from_psb;
}

/* Of a zeroed session. What was made before a failure is the caller's to free, with session_deinit(). */
static int session_init(struct session *s, struct ptc_reader *r, struct ptr_writer *w, struct pt_error *e)
{
	const struct pt_session_options *o = s->options;

	s->held_bytes_max = o->held_bytes ? o->held_bytes : most_memory();
	if (pt_hash_init(&s->stream_hash, 4, e))
		return -1;
	s->detail = o->quick == 2 ? PT_FLOW_PSB_ADDRESSES : o->quick ? PT_FLOW_ADDRESSES : PT_FLOW_FOLLOW;
	s->queue.waiting_last = &s->queue.waiting;
	s->last_stream = &s->streams;
	init_selected(s);
	if (o->graph_bytes)
		pt_graph_limit(&s->graph, o->graph_bytes);
	else
		pt_graph_may_grow(&s->graph, 1);
	if (init_images(s, r, e) < 0)
		return -1;
	s->meta = ptc_meta_create();
	s->events = pt_session_events_create();
	s->machines = s->meta ? pt_machines_create(s->store, &s->graph, s->meta) : NULL;
	s->host = s->machines ? pt_machine_get(s->machines, 0) : NULL;
	if (!s->events || !s->host)
		return pt_fail_no_memory(e, NULL);
	if (o->from_psb && !s->selected.all)
		pt_session_seek(s, r);
	return init_output(s, w, e);
}

static void session_deinit(struct session *s)
{
	pt_segments_end(s->segments);
	pt_thread_pool_destroy(s->pool);
	if (s->pool)
		ptr_writer_use_pool(s->emit.writer, NULL);
	pt_session_streams_deinit(s);
	pt_segments_destroy(s->segments);
	pt_session_seek_deinit(s);
	pt_session_queue_deinit(s);
	free(s->attr_machines);
	pt_sideband_attrs_deinit(&s->attrs);
	pt_vm_destroy(s->vm);
	pt_vm_scan_destroy(s->guest_clock.scan);
	free(s->guest_clock.begins);
	pt_session_events_destroy(s->events);
	pt_vcpus_deinit(&s->vcpus);
	pt_emit_deinit(&s->emit);
	pt_machines_destroy(s->machines);
	img_store_destroy(s->store);
	ptc_meta_destroy(s->meta);
	pt_graph_deinit(&s->graph);
}

int pt_session_run(struct ptc_reader *r, struct ptr_writer *w, const struct pt_session_options *options,
		   struct pt_session_result *result, struct pt_error *e)
{
	struct session s = {.options = options, .result = result};
	int ret;

	s.reader = r;
	memset(result, 0, sizeof *result);
	if (pt_graph_init(&s.graph, e) < 0)
		return -1;
	ret = session_init(&s, r, w, e);
	if (ret == 0)
		ret = decode(&s, r, e);
	session_deinit(&s);
	return ret;
}
