/* chunks.c - one chunk of the container at a time: to streams, sideband, images, symbols. See internal.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/packet/clock_meta.h"
#include "decode/session/internal.h"
#include "decode/sideband/apply.h"
#include "schema/array.h"

/* ---- META ------------------------------------------------------------------------------------------- */

#define WINDOW_NS 1000000

/* The tolerance of the guests' clocks (vm/clock.h) without a CTC. TSC ticks. */
#define TOLERANCE_TSC 64

/* How exact the times of AUX data are (struct session). */
static void read_times(struct session *s)
{
	const struct pt_perf_clock *clock = &s->perf_clock;
	uint64_t config = ptc_meta_number(s->meta, "pt_config", UINT64_MAX);
	bool config_known = config != UINT64_MAX;

	pt_perf_clock_from_meta(s->meta, &s->perf_clock);
	pt_clock_config_from_meta(s->meta, -1, &s->clock);
	s->timeless = !clock->mult || (config_known && !(config & PT_RTIT_TSC_EN));
	s->window_tsc = UINT64_MAX;
	if (clock->mult && config_known && (config & (PT_RTIT_MTC_EN | PT_RTIT_CYC_EN)))
		s->window_tsc = (uint64_t)(((unsigned __int128)WINDOW_NS << clock->shift) / clock->mult);
}

static int start_vms(struct session *s, struct pt_error *e)
{
	/* Two guest TSC packets may differ by one tick of the CTC, which is not aligned with the TSC. */
	uint64_t tolerance_tsc = s->clock.ctc_den ? s->clock.ctc_num / s->clock.ctc_den + 1 : TOLERANCE_TSC;

	if (pt_vcpus_init(&s->vcpus, s->meta) < 0)
		return pt_fail_no_memory(e, NULL);
	s->vm = pt_vm_create(&s->emit, &s->vcpus, s->options->tsc_offsets, tolerance_tsc,
			     pt_tsc_khz_from_meta(s->meta));
	if (!s->vm)
		return pt_fail_no_memory(e, NULL);
	s->emit.vm = &pt_vm_events;
	s->emit.vm_arg = s->vm;
	return 0;
}

/* META's values of a vCPU's TSC that cannot be are reported, and not used. */
static void report_bad_ratios(struct session *s)
{
	for (size_t i = 0; i < s->vcpus.count; i++) {
		const struct pt_vcpu *v = &s->vcpus.items[i];
		char text[160];

		if (!v->bad_ratio)
			continue;
		snprintf(text, sizeof text,
			 "kvm.%" PRId32 ".%" PRId32 ".tsc_ratio %" PRIu64
			 " / 2^%u is none that a guest's TSC can have: its offset is not used either",
			 v->pid, v->vcpu, v->ratio, v->frac_bits);
		pt_emit_error(&s->emit, 0, -1, PTR_NO_TSC, "clock", text);
	}
}

int pt_session_start(struct session *s, struct pt_error *e)
{
	const char *key, *value;

	if (s->started)
		return 0;
	s->started = true;
	if (pt_session_select_vms(s, e) < 0)
		return -1;
	read_times(s);
	s->kernel_traced = ptc_meta_number(s->meta, "pt_user_only", 1) == 0;
	if (start_vms(s, e) < 0)
		return -1;
	pt_session_segments_start(s);
	for (size_t i = 0; ptc_meta_pair(s->meta, i, &key, &value); i++)
		if (ptr_put_meta(s->emit.writer, key, value, e) < 0)
			return -1;
	if (s->options->detail != PTR_DETAIL_BRANCHES &&
	    ptr_put_meta(s->emit.writer, "decode.detail", ptr_detail_name(s->options->detail), e) < 0)
		return -1;
	if (s->options->container_path &&
	    ptr_put_meta(s->emit.writer, "decode.container_path", s->options->container_path, e) < 0)
		return -1;
	report_bad_ratios(s);
	return 0;
}

/* ---- Sideband --------------------------------------------------------------------------------------- */

static int take_attr(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct pt_machine *m;
	struct ptc_attr attr;

	if (ptc_parse_attr(c, &attr, e) < 0)
		return -1;
	m = pt_machine_get(s->machines, attr.machine_pid);
	if (!m)
		return pt_fail_no_memory(e, NULL);
	if (pt_sideband_attr(&s->attrs, &attr, e) < 0 || pt_session_events_attr(s->events, &attr, e) < 0)
		return -1;
	while (attr.index >= s->attr_count) { /* numbers without an attr are the host's */
		if (pt_array_grow(&s->attr_machines, s->attr_count, &s->attr_room, e) < 0)
			return -1;
		s->attr_machines[s->attr_count++] = s->host;
	}
	s->attr_machines[attr.index] = m;
	return 0;
}

/* Replaces a sample by the record that waits for its time; NULL when nothing is known of its event. */
static int parse_sample(struct session *s, uint32_t attr, struct pt_sideband_record **record,
			struct pt_error *e)
{
	struct pt_sideband_record *sample = NULL;
	int r = pt_session_events_sample(s->events, attr, (*record)->record, (*record)->size, &sample, e);

	free(*record);
	*record = sample;
	return r;
}

static int take_sideband(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct pt_machine *m;
	const uint8_t *p;
	uint64_t size;
	uint32_t attr;

	if (ptc_parse_sideband(c, &attr, &p, &size, e) < 0)
		return -1;
	m = attr < s->attr_count ? s->attr_machines[attr] : s->host;
	while (size) {
		struct pt_sideband_record *record = pt_sideband_parse(&s->attrs, attr, p, size, e);
		uint32_t n;

		if (!record)
			return -1;
		n = record->size;
		if (pt_sideband_is_sample(record) && parse_sample(s, attr, &record, e) < 0)
			return -1;
		if (record) {
			record->machine = m;
			record->context = ptc_sideband_flags(c) & PTC_SIDEBAND_CONTEXT;
			if (pt_sideband_is_mmap(record))
				record->file = pt_sideband_find_file(record);
			if (pt_session_events_learn(s->events, record, e) < 0) {
				free(record);
				return -1;
			}
		}
		if (!record || !pt_sideband_effect(record))
			free(record);
		else if (pt_session_queue_add(s, record, e) < 0)
			return -1;
		p += n;
		size -= n;
	}
	return 0;
}

/* ---- Code ------------------------------------------------------------------------------------------- */

/* Memory's bytes are there from the image's time on: a record in the queue. */
static int queue_memory(struct session *s, const struct ptc_image *image, struct pt_error *e)
{
	struct pt_sideband_record *record = pt_sideband_record_create(NULL, 0);

	if (!record)
		return pt_fail_no_memory(e, "sideband");
	record->machine = pt_machine_get(s->machines, image->machine_pid);
	if (!record->machine) {
		free(record);
		return pt_fail_no_memory(e, NULL);
	}
	record->memory = img_store_memory(s->store, image, e);
	if (!record->memory) {
		free(record);
		return -1;
	}
	record->pid = image->pid;
	record->start = image->vaddr;
	record->end = image->vaddr + image->size;
	record->time_ns = image->time_ns;
	return pt_session_queue_add(s, record, e);
}

static int take_image(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_image image;

	if (ptc_parse_image(c, &image, e) < 0)
		return -1;
	if (s->detail != PT_FLOW_FOLLOW)
		return 0;
	if (image.kind == PTC_IMAGE_FILE)
		return img_store_image(s->store, &image, e);
	if (image.kind != PTC_IMAGE_MEMORY || image.size > UINT64_MAX - image.vaddr)
		return 0;
	return queue_memory(s, &image, e);
}

/* The value of the chunk's symbol of that name, 0: there is none. */
static uint64_t value_of(const struct ptc_symbols *symbols, const char *name)
{
	struct ptc_symbol symbol;

	for (uint32_t i = 0; i < symbols->count; i++) {
		memcpy(&symbol, (const uint8_t *)symbols->symbols + i * sizeof symbol, sizeof symbol);
		if (!strcmp(symbols->strings + symbol.name, name))
			return symbol.value;
	}
	return 0;
}

static int take_symbols(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_symbols symbols;
	struct pt_machine *m;

	if (ptc_parse_symbols(c, &symbols, e) < 0)
		return -1;
	if (s->detail != PT_FLOW_FOLLOW)
		return 0;
	if (img_store_symbols(s->store, &symbols, e) < 0)
		return -1;
	if (!symbols.absolute || symbols.pid != PTC_ANY_PID)
		return 0;
	m = pt_machine_get(s->machines, symbols.machine_pid);
	if (!m)
		return pt_fail_no_memory(e, NULL);
	/* Linux calls it on the next thread's stack, between the last instruction of one and the first of
	 * the other. */
	if (!m->code->switch_ip)
		m->code->switch_ip = value_of(&symbols, "__switch_to");
	return 0;
}

/* ---- AUX data --------------------------------------------------------------------------------------- */

/*
 * Without time AUX data is decoded in the order of the container. Where other threads decode ahead, that
 * begins when so much has come of a stream, or anything else than its AUX data.
 */
#define TIMELESS_BYTES (8u << 20)

static int advance_timeless(struct session *s, struct pt_error *e)
{
	s->timeless_bytes = 0;
	return pt_session_advance(s, UINT64_MAX, UINT64_MAX, false, e);
}

/*
 * So much AUX data for each stream is to have come after a round before it is decoded up to that, for it to be
 * decoded ahead meanwhile: not more, for what is decoded ahead assumes what is known by then of who runs. It is
 * the same without other threads, so that streams take turns at the same places.
 */
#define ROUND_AHEAD_BYTES (UINT64_C(64) << 10)

/* The oldest round that waits, if there is one, waits no longer. */
static void next_round(struct progress *p)
{
	p->last_round_tsc = p->round_tsc;
	p->round_tsc = p->waiting[0].tsc;
	p->waiting_count--;
	memmove(p->waiting, p->waiting + 1, p->waiting_count * sizeof *p->waiting);
}

static bool is_due(const struct session *s, const struct progress *p)
{
	return p->waiting_count &&
	       (p->waiting_count == ROUNDS_WAITING ||
		s->result->aux_bytes - p->waiting[0].aux_bytes >= ROUND_AHEAD_BYTES * s->stream_count ||
		s->held_bytes > s->held_bytes_max / 4);
}

/* Decodes up to the rounds that enough has come after. */
static int advance_rounds(struct session *s, struct pt_error *e)
{
	struct progress *p = &s->progress;

	while (is_due(s, p)) {
		next_round(p);
		if (pt_session_advance(s, p->round_tsc, p->last_round_tsc, false, e) < 0)
			return -1;
	}
	return 0;
}

int pt_session_end_rounds(struct session *s, struct pt_error *e)
{
	struct progress *p = &s->progress;

	while (p->waiting_count) {
		next_round(p);
		if (pt_session_advance(s, p->round_tsc, p->last_round_tsc, false, e) < 0)
			return -1;
	}
	return 0;
}

static int take_aux(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct stream *st = pt_session_stream(s, c->stream);
	struct ptc_aux aux;
	uint64_t skip;
	int selected;

	if (ptc_parse_aux(c, &aux, e) < 0)
		return -1;
	if (!st)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset,
			       "AUX data of stream %u, which was not declared", c->stream);
	s->result->aux_bytes += aux.size;
	selected = pt_session_selects_aux(s, st, &aux, &skip, e);
	if (selected <= 0)
		return selected;
	if (pt_session_scan_aux(s, st, &aux, e) < 0 || pt_session_stream_add_aux(st, &aux, skip, e) < 0)
		return -1;
	if (s->timeless) {
		s->timeless_bytes += aux.size;
		s->timeless_stream = c->stream;
		return s->segments && s->timeless_bytes < TIMELESS_BYTES ? 0 : advance_timeless(s, e);
	}
	return advance_rounds(s, e);
}

static int take_round(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct progress *p = &s->progress;
	uint64_t ns;

	if (ptc_parse_round(c, &ns, e) < 0)
		return -1;
	p->waiting[p->waiting_count++] = (struct waiting_round){
	    .tsc = ns == UINT64_MAX ? UINT64_MAX : pt_perf_clock_to_tsc(&s->perf_clock, ns),
	    .aux_bytes = s->result->aux_bytes};
	return advance_rounds(s, e);
}

/* ---- All chunks ------------------------------------------------------------------------------------- */

static int take_stream(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_stream info;

	return ptc_parse_stream(c, &info, e) < 0 ? -1 : pt_session_stream_add(s, c->stream, &info, e);
}

static int take_format(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_tracepoint t;

	return ptc_parse_format(c, &t, e) < 0 ? -1 : pt_session_events_format(s->events, &t, e);
}

int pt_session_take_chunk(struct session *s, const struct ptc_chunk *c, struct pt_error *e)
{
	if (c->type != PTC_META && pt_session_start(s, e) < 0)
		return -1;
	if (s->timeless_bytes && (c->type != PTC_AUX || c->stream != s->timeless_stream) &&
	    advance_timeless(s, e) < 0)
		return -1;
	switch (c->type) {
	case PTC_META:
		if (ptc_meta_add(s->meta, c, e) < 0)
			return -1;
		s->meta_chunks++;
		pt_session_select_self(s);
		return 0;
	case PTC_STREAM: return take_stream(s, c, e);
	case PTC_AUX: return take_aux(s, c, e);
	case PTC_ATTR: return take_attr(s, c, e);
	case PTC_SIDEBAND: return take_sideband(s, c, e);
	case PTC_FORMAT: return take_format(s, c, e);
	case PTC_IMAGE: return take_image(s, c, e);
	case PTC_SYMBOLS: return take_symbols(s, c, e);
	case PTC_ROUND: return take_round(s, c, e);
	default: return 0;
	}
}
