/* session.c - see session.h: chunks to streams and sideband, and the results. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/packet/clock_meta.h"
#include "decode/session/internal.h"

#define HEADROOM 32 /* before a piece's bytes: for what is left of the piece before */

/* ---- Streams ---------------------------------------------------------------------------------------- */

static int stream_piece(struct stream *st, const struct ptc_aux *aux, uint64_t skip, struct pt_error *e)
{
	uint64_t size = aux->size - skip;
	uint64_t bytes = sizeof(struct piece) + HEADROOM + size;
	struct piece *p;

	if (pt_session_keep(st->session, bytes, e) < 0)
		return -1;
	p = malloc(bytes);
	if (!p)
		return pt_fail_no_memory(e, NULL);
	p->bytes = bytes;
	p->next = NULL;
	p->aux_offset = aux->aux_offset + skip;
	p->at = p->room + HEADROOM;
	p->end = p->at + size;
	p->left_out = skip;
	p->lost_after = aux->flags & PTC_AUX_TRUNCATED;
	if (size)
		memcpy(p->at, aux->bytes + skip, size);
	*st->last = p;
	st->last = &p->next;
	return 0;
}

static void piece_free(struct session *s, struct piece *p)
{
	s->kept_bytes -= p->bytes;
	free(p);
}

/* The rest of the first piece cannot be a whole packet: it goes before the second one, or is lost. */
static void next_piece(struct stream *st)
{
	struct piece *p = st->first, *q = p->next;
	size_t rest = (size_t)(p->end - p->at);
	uint64_t end = p->aux_offset + rest;

	if (q->left_out) {
		pt_flow_restart(&st->flow);
	} else if (!p->lost_after && q->aux_offset == end && rest <= HEADROOM) {
		if (rest)
			memcpy(q->at - rest, p->at, rest);
		q->at -= rest;
		q->aux_offset -= rest;
	} else if (p->lost_after || q->aux_offset > end) {
		pt_flow_lost(&st->flow, end, p->lost_after,
			     p->lost_after ? "AUX data was lost: the buffer was full"
					   : "AUX data is missing from the container");
	} else {
		/* Snapshots overlap: go on behind what is known. */
		uint64_t skip = end - q->aux_offset;

		if (skip > (uint64_t)(q->end - q->at))
			skip = (uint64_t)(q->end - q->at);
		q->at += skip;
		q->aux_offset += skip;
	}
	st->first = q;
	piece_free(st->session, p);
}

/* The graph has grown to its limit: all flows leave it, and go on in an empty one. */
static bool recycle(struct session *s)
{
	struct pt_flow_places *places;
	size_t n = 0;

	for (struct stream *st = s->streams; st; st = st->next)
		n++;
	places = malloc((n ? n : 1) * sizeof *places);
	if (!places) {
		s->failed = true;
		pt_fail_no_memory(&s->error, NULL);
		return false;
	}
	n = 0;
	for (struct stream *st = s->streams; st; st = st->next)
		pt_flow_detach(&st->flow, &places[n++]);
	pt_emit_recycle(&s->emit);
	pt_graph_recycle(&s->graph);
	n = 0;
	for (struct stream *st = s->streams; st; st = st->next)
		pt_flow_reattach(&st->flow, &places[n++]);
	free(places);
	return true;
}

static void stream_feed(struct stream *st, bool last)
{
	while (st->first) {
		struct piece *p = st->first;
		const uint8_t *at = p->at;
		enum pt_flow_feed r =
		    pt_flow_feed(&st->flow, p->at, p->end, p->aux_offset, last && !p->next, &at);

		p->aux_offset += (uint64_t)(at - p->at);
		p->at += at - p->at;
		if (r == PT_FEED_TIME)
			return;
		if (r == PT_FEED_CACHE_FULL) {
			if (!recycle(st->session))
				return;
			continue;
		}
		if (!p->next)
			break;
		next_piece(st);
	}
	if (last && st->first) {
		if (st->first->lost_after)
			pt_flow_lost(&st->flow, st->first->aux_offset, true,
				     "AUX data was lost: the buffer was full");
		piece_free(st->session, st->first);
		st->first = NULL;
		st->last = &st->first;
	}
}

/* What is known of the guests' clocks: the flow that showed it has stopped there (vm/vm.c). */
static bool clocks_changed(const struct session *s)
{
	return s->vm && pt_vm_clocks_changes(pt_vm_clocks_of(s->vm)) != s->clock_changes;
}

/* Decodes up to decode_tsc, and applies sideband up to event_tsc (what is older than all AUX data to come). */
static int advance(struct session *s, uint64_t decode_tsc, uint64_t event_tsc, bool last, struct pt_error *e)
{
	int hold = pt_session_release(s, last, e);

	if (hold)
		return hold < 0 ? -1 : 0;
	for (;;) {
		uint64_t event = s->queue_at < s->queue_count ? s->queue[s->queue_at]->tsc : UINT64_MAX;
		struct pt_sideband_record *side;
		int r;

		if (event != 0) {
			uint64_t stop = event < decode_tsc ? event : decode_tsc;

			for (struct stream *st = s->streams; st && !clocks_changed(s); st = st->next) {
				st->flow.stop_tsc = stop;
				stream_feed(st, last && event == UINT64_MAX);
			}
		}
		if (s->emit.failed) {
			*e = s->emit.error;
			return -1;
		}
		if (s->failed) {
			*e = s->error;
			return -1;
		}
		if (img_store_failed(s->store, e))
			return -1;
		if (clocks_changed(s)) {
			s->clock_changes = pt_vm_clocks_changes(pt_vm_clocks_of(s->vm));
			if (pt_session_retime(s, e) < 0)
				return -1;
			continue;
		}
		/* missing() may have taken it meanwhile. */
		if (s->queue_at >= s->queue_count)
			return 0;
		if (s->queue[s->queue_at]->tsc != event)
			continue;
		if (event > event_tsc)
			return 0;
		side = s->queue[s->queue_at++];
		r = pt_session_apply(s, side, e);
		s->kept_bytes -= pt_session_sideband_bytes(side);
		free(side);
		if (r < 0)
			return -1;
	}
}

/* ---- Chunks ----------------------------------------------------------------------------------------- */

/* The clock and the like, from META: once, before the first stream. */
static int start(struct session *s, struct pt_error *e)
{
	const char *key, *value;
	uint64_t config;

	if (s->started)
		return 0;
	s->started = true;
	if (pt_session_names(s, e) < 0)
		return -1;
	pt_conversion_from_meta(s->meta, &s->conversion);
	pt_clock_config_from_meta(s->meta, &s->clock);
	config = ptc_meta_number(s->meta, "pt_config", UINT64_MAX);
	s->timeless = (config != UINT64_MAX && !(config & 1 << 10)) || !s->conversion.mult;
	s->kernel_traced = ptc_meta_number(s->meta, "pt_user_only", 1) == 0;
	if (s->graph.bare && !s->kernel_traced) /* else why VMs exit is read off the host's paths (vm/vm.h) */
		pt_graph_number_no_paths(&s->graph);
	s->window_tsc = UINT64_MAX;
	if (s->conversion.mult && config != UINT64_MAX && (config & (1 << 9 | 1 << 1)))
		s->window_tsc =
		    (uint64_t)(((unsigned __int128)1000000 << s->conversion.shift) / s->conversion.mult);
	if (pt_vcpus_init(&s->vcpus, s->meta) < 0)
		return pt_fail_no_memory(e, NULL);
	/* Two guest TSC packets may differ by a tick of the CTC, whose place between TSC ticks is not known. */
	s->vm = pt_vm_create(&s->emit, &s->vcpus, s->tsc_offsets,
			     s->clock.ctc_den ? s->clock.ctc_num / s->clock.ctc_den + 1 : 64,
			     pt_tsc_khz_from_meta(s->meta));
	if (!s->vm)
		return pt_fail_no_memory(e, NULL);
	s->emit.vm = &pt_vm_events;
	s->emit.vm_arg = s->vm;
	for (size_t i = 0; ptc_meta_pair(s->meta, i, &key, &value); i++)
		if (ptr_put_meta(s->emit.writer, key, value, e) < 0)
			return -1;
	return 0;
}

/* The attr's machine; that of attrs that nobody told of is the host. */
static int take_attr(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct pt_machine *m;
	struct ptc_attr attr;

	if (ptc_parse_attr(c, &attr, e) < 0)
		return -1;
	m = pt_machine_get(s->machines, attr.machine_pid);
	if (!m)
		return pt_fail_no_memory(e, NULL);
	if (pt_sideband_attr(&m->attrs, &attr, e) < 0 || pt_session_events_attr(s->events, &attr, e) < 0)
		return -1;
	if (attr.index >= s->attr_count) {
		/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
		struct pt_machine **attrs = realloc(s->attrs, (attr.index + 1) * sizeof *attrs);

		if (!attrs)
			return pt_fail_no_memory(e, NULL);
		for (uint32_t i = s->attr_count; i <= attr.index; i++)
			attrs[i] = s->host;
		s->attrs = attrs;
		s->attr_count = attr.index + 1;
	}
	s->attrs[attr.index] = m;
	return 0;
}

static int take_sideband(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct pt_machine *m;
	const uint8_t *p;
	uint64_t size;
	uint32_t attr;

	if (ptc_parse_sideband(c, &attr, &p, &size, e) < 0)
		return -1;
	m = attr < s->attr_count ? s->attrs[attr] : s->host;
	while (size) {
		struct pt_sideband_record *side = pt_sideband_parse(&m->attrs, attr, p, size, e);
		uint32_t n;

		if (!side)
			return -1;
		n = side->size;
		if (pt_sideband_is_sample(side)) {
			struct pt_sideband_record *sample;
			int r =
			    pt_session_events_sample(s->events, attr, side->record, side->size, &sample, e);

			free(side);
			if (r < 0)
				return -1;
			side = sample;
		}
		if (side)
			side->machine = m;
		if (!side || !pt_sideband_effect(side))
			free(side);
		else if (pt_session_queue(s, side, e) < 0)
			return -1;
		p += n;
		size -= n;
	}
	return 0;
}

static int take_image(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_image image;
	struct pt_sideband_record *side;

	if (ptc_parse_image(c, &image, e) < 0)
		return -1;
	if (s->quick)
		return 0;
	if (image.kind == PTC_IMAGE_FILE)
		return img_store_image(s->store, &image, e);
	if (image.kind != PTC_IMAGE_MEMORY || image.size > UINT64_MAX - image.vaddr)
		return 0;
	side = pt_sideband_record_create(NULL, 0);
	if (!side)
		return pt_fail_no_memory(e, NULL);
	side->machine = pt_machine_get(s->machines, image.machine_pid);
	if (!side->machine) {
		free(side);
		return pt_fail_no_memory(e, NULL);
	}
	side->memory = img_store_memory(s->store, &image, e);
	if (!side->memory) {
		free(side);
		return -1;
	}
	side->pid = image.pid;
	side->start = image.vaddr;
	side->end = image.vaddr + image.size;
	side->time_ns = image.time_ns;
	return pt_session_queue(s, side, e);
}

static int take_symbols(struct session *s, const struct ptc_symbols *symbols, struct pt_error *e)
{
	struct pt_machine *m;

	if (img_store_symbols(s->store, symbols, e) < 0)
		return -1;
	if (!symbols->absolute || symbols->pid != PTC_ANY_PID)
		return 0;
	m = pt_machine_get(s->machines, symbols->machine_pid);
	if (!m)
		return pt_fail_no_memory(e, NULL);
	/* Linux calls it on the next thread's stack, between the last instruction of one and the first of the other. */
	if (!m->code->switch_ip)
		m->code->switch_ip = img_store_address(s->store, m->pid, PTC_ANY_PID, "__switch_to");
	return 0;
}

static int take_aux(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct stream *st = pt_session_stream(s, c->stream);
	struct ptc_aux aux;
	uint64_t skip;

	if (ptc_parse_aux(c, &aux, e) < 0)
		return -1;
	if (!st)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset,
			       "AUX data of stream %u, which was not declared", c->stream);
	s->result->aux_bytes += aux.size;
	if (!pt_session_wants(s, st, &aux, &skip, e))
		return s->failed ? (*e = s->error, -1) : 0;
	if (stream_piece(st, &aux, skip, e) < 0 || pt_session_hold(s, &aux, c->stream, e) < 0)
		return -1;
	return advance(s, s->timeless ? UINT64_MAX : s->round_tsc,
		       s->timeless ? UINT64_MAX : s->last_round_tsc, false, e);
}

static int take(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_stream info;
	struct ptc_symbols symbols;
	struct ptc_tracepoint tracepoint;
	uint64_t ns;

	if (c->type != PTC_META && start(s, e) < 0)
		return -1;
	switch (c->type) {
	case PTC_META:
		if (ptc_meta_add(s->meta, c, e) < 0)
			return -1;
		return 0;
	case PTC_STREAM:
		if (ptc_parse_stream(c, &info, e) < 0)
			return -1;
		return pt_session_stream_add(s, c->stream, &info, e);
	case PTC_AUX: return take_aux(s, c, e);
	case PTC_ATTR: return take_attr(s, c, e);
	case PTC_SIDEBAND: return take_sideband(s, c, e);
	case PTC_FORMAT:
		if (ptc_parse_format(c, &tracepoint, e) < 0)
			return -1;
		return pt_session_events_format(s->events, &tracepoint, e);
	case PTC_IMAGE: return take_image(s, c, e);
	case PTC_SYMBOLS:
		if (ptc_parse_symbols(c, &symbols, e) < 0)
			return -1;
		return s->quick ? 0 : take_symbols(s, &symbols, e);
	case PTC_ROUND:
		if (ptc_parse_round(c, &ns, e) < 0)
			return -1;
		s->last_round_tsc = s->round_tsc;
		s->round_tsc = ns == UINT64_MAX ? UINT64_MAX : pt_ns_to_tsc(&s->conversion, ns);
		return advance(s, s->round_tsc, s->last_round_tsc, false, e);
	default: return 0;
	}
}

static void sum_up(struct session *s)
{
	struct pt_session_result *r = s->result;
	struct pt_graph_sums sums;

	for (struct stream *st = s->streams; st; st = st->next) {
		r->packets += st->flow.packets;
		r->psbs += st->flow.psbs;
		r->insns += st->flow.insns;
		r->stop_ip = st->flow.stop_ip;
	}
	pt_graph_sum(&s->graph, &sums);
	r->not_taken = sums.not_taken;
	r->hash = sums.hash;
	memcpy(r->by_kind, sums.by_kind, sizeof r->by_kind);
	r->branches = s->emit.branches;
	r->errors = s->emit.errors;
	r->runs = ptr_writer_count(s->emit.writer, PTR_RUN);
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
	char value[32];
	const char *status = ptc_meta_get(s->meta, "exit_status");

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		snprintf(value, sizeof value, "%" PRIu64, pairs[i].value);
		if (ptr_put_meta(s->emit.writer, pairs[i].key, value, e) < 0)
			return -1;
	}
	if (status && ptr_put_meta(s->emit.writer, "exit_status", status, e) < 0)
		return -1;
	return ptr_put_meta(s->emit.writer, "decode.container",
			    s->result->damage[0] ? s->result->damage : "complete", e) < 0
		   ? -1
		   : 0;
}

static int run(struct session *s, struct ptc_reader *r, struct pt_error *e)
{
	struct ptc_chunk c;
	struct pt_error why = {0};
	bool any = false;
	int n;

	while ((n = ptc_next(r, &c, &why)) > 0) {
		/* What the payload's own rules forbid is damage, too: what was before it is good. */
		if (take(s, &c, &why) < 0) {
			if (why.kind != PT_ERR_BAD_INPUT && why.kind != PT_ERR_TRUNCATED) {
				*e = why;
				return -1;
			}
			if (why.offset == PT_NO_OFFSET)
				why.offset = c.offset;
			n = -1;
			break;
		}
		any = true;
	}
	if (n < 0 && why.kind != PT_ERR_BAD_INPUT && why.kind != PT_ERR_TRUNCATED) {
		*e = why;
		return -1;
	}
	if (n < 0 && !any) {
		*e = why;
		return -1;
	}
	if (start(s, e) < 0 || pt_session_release(s, true, e) < 0 ||
	    pt_session_queue_waiting(s, true, e) < 0 || advance(s, UINT64_MAX, UINT64_MAX, true, e) < 0)
		return -1;
	for (struct stream *st = s->streams; st; st = st->next) {
		pt_flow_finish(&st->flow);
		pt_emit_stream_end(&st->out);
	}
	if (n < 0) {
		snprintf(s->result->damage, sizeof s->result->damage, "%s at byte %" PRIu64 ": %.180s",
			 why.kind == PT_ERR_TRUNCATED ? "cut" : "damaged", why.offset, why.message);
		pt_emit_error(&s->emit, 0, -1, PTR_NO_TSC,
			      why.kind == PT_ERR_TRUNCATED ? "truncated container" : "damaged container",
			      s->result->damage);
	}
	pt_vm_finish(s->vm);
	pt_emit_finish(&s->emit);
	sum_up(s);
	if (s->emit.failed) {
		*e = s->emit.error;
		return -1;
	}
	return put_results(s, e);
}

int pt_session_run(struct ptc_reader *r, struct ptr_writer *w, const struct pt_session_options *options,
		   struct pt_session_result *result, struct pt_error *e)
{
	struct session s = {.result = result};
	int ret = -1;

	memset(result, 0, sizeof *result);
	s.kept_max = options->held_bytes
			 ? options->held_bytes
			 : (uint64_t)sysconf(_SC_PHYS_PAGES) / 4 * 3 * (uint64_t)sysconf(_SC_PAGESIZE);
	if (pt_graph_init(&s.graph, e) < 0)
		return -1;
	if (options->graph_bytes)
		pt_graph_limit(&s.graph, options->graph_bytes);
	s.meta = ptc_meta_create();
	s.store = img_store_create();
	if (s.store) {
		ptc_reader_leave_images(r);
		img_store_reader(s.store, r);
		img_store_limit(s.store, s.kept_max);
	}
	s.events = pt_session_events_create();
	s.waiting_last = &s.waiting;
	s.machines = s.store ? pt_machines_create(s.store, &s.graph, s.meta) : NULL;
	if (!s.meta || !s.events || !s.machines || !(s.host = pt_machine_get(s.machines, 0)))
		pt_fail_no_memory(e, NULL);
	else if (pt_emit_init(&s.emit, w, &s.graph, e) == 0 &&
		 (!options->stats || pt_graph_count_stats(&s.graph, e) == 0)) {
		s.emit.calls = options->calls;
		if (options->graph_bytes)
			s.emit.call_paths =
			    (uint32_t)((uint64_t)PT_CALL_PATHS * options->graph_bytes / PT_GRAPH_BYTES);
		s.emit.definitions = options->definitions;
		s.emit.text = options->text;
		s.graph.bare = !options->definitions && !options->text && !options->stats &&
			       !options->calls && !options->used_code;
		s.guest_code = options->guest_code;
		s.tsc_offsets = options->tsc_offsets;
		if (options->used_code)
			img_store_track_used(s.store);
		s.quick = options->quick;
		if (options->only && !pt_only_all(options->only)) {
			s.chosen = *options->only;
			s.only = &s.chosen;
		}
		s.before = s.only && s.only->from.given;
		ret = run(&s, r, e);
		if (ret == 0 && options->used_code)
			ret = img_store_print_used(s.store, options->used_code, e);
	}
	pt_session_streams_free(&s);
	pt_session_sideband_free(&s);
	free(s.attrs);
	pt_vm_destroy(s.vm);
	pt_vm_scan_destroy(s.scan);
	pt_session_events_destroy(s.events);
	pt_vcpus_deinit(&s.vcpus);
	pt_emit_deinit(&s.emit);
	pt_machines_destroy(s.machines);
	img_store_destroy(s.store);
	ptc_meta_destroy(s.meta);
	pt_graph_deinit(&s.graph);
	return ret;
}
