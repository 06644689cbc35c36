/* segment.c - see segment.h: the threads that decode ahead. */
#include "decode/flow/segment_log.h"

#include <stdlib.h>

#include "schema/array.h"

/* A checkpoint is made at least each so many bytes: what is lost where a segment ends early. */
#define CHECKPOINT_BYTES 8192

struct known_code {
	struct img_space *space;
	struct pt_code *code;
};

struct pt_segment_decoder {
	struct pt_segment_config config;
	struct pt_graph graph;
	struct known_code *codes;
	size_t code_count, code_room;
	/* The segment at hand. */
	struct pt_segment *segment;
	struct pt_flow *flow;
	bool muted; /* before `begin` */
	bool ended; /* what comes cannot be known here */
	bool begun, cyc_run;
};

/* ---- What the flow asks and reports ----------------------------------------------------------------- */

/* The flow is to stop at the next packet. */
static void end_early(struct pt_segment_decoder *d, struct pt_flow *f)
{
	d->ended = true;
	f->stop_tsc = 0;
}

static struct segment_entry *add_entry(struct pt_segment_decoder *d, struct pt_flow *f, int type)
{
	struct pt_segment *s = d->segment;
	struct segment_entry *entry;

	if (d->muted || d->ended)
		return NULL;
	if (pt_array_grow(&s->entries, s->entry_count, &s->entry_room, NULL) < 0) {
		end_early(d, f);
		return NULL;
	}
	entry = &s->entries[s->entry_count++];
	*entry = (struct segment_entry){.runs = s->run_count, .clock_tsc = f->clock.tsc};
	entry->type = type;
	return entry;
}

static bool on_missing(void *arg, struct pt_flow *f, uint64_t ip)
{
	(void)ip;
	end_early(arg, f);
	return false;
}

static void on_user(void *arg, struct pt_flow *f)
{
	struct segment_entry *entry = add_entry(arg, f, SEGMENT_USER);

	if (entry)
		entry->cr3 = f->side.cr3;
}

static void on_switching(void *arg, struct pt_flow *f)
{
	end_early(arg, f);
}

static void on_side(void *arg, struct pt_flow *f, const struct pt_vm_transition *transition)
{
	(void)transition;
	end_early(arg, f);
}

static uint64_t on_guest_tsc(void *arg, struct pt_flow *f, const struct pt_tsc_packet *packet)
{
	(void)packet;
	end_early(arg, f);
	return PT_CLOCK_UNKNOWN;
}

static void on_host_tsc(void *arg, struct pt_flow *f, uint64_t tsc)
{
	struct segment_entry *entry = add_entry(arg, f, SEGMENT_HOST_TSC);

	if (entry)
		entry->tsc = tsc;
}

static const struct pt_flow_env env = {.missing = on_missing,
				       .user = on_user,
				       .switching = on_switching,
				       .side = on_side,
				       .guest_tsc = on_guest_tsc,
				       .host_tsc = on_host_tsc};

/* The output gets the flow to read; it is the decoder's own. */
static void on_begin(void *arg, const struct pt_flow *f, uint64_t tsc, struct pt_code *code, uint64_t ip)
{
	struct pt_segment_decoder *d = arg;
	struct segment_entry *entry = add_entry(d, d->flow, SEGMENT_BEGIN);

	if (!entry)
		return;
	d->begun = true;
	entry->tsc = tsc;
	entry->ip = ip;
	entry->kernel = code == f->kernel;
}

static void on_runs(void *arg, const struct pt_flow *f, const struct pt_flow_run *runs, uint32_t n)
{
	struct pt_segment_decoder *d = arg;
	struct pt_segment *s = d->segment;

	(void)f;
	if (d->muted || d->ended)
		return;
	if (s->run_count + n > s->run_room) {
		size_t room = s->run_room ? 2 * s->run_room : 4096;
		struct pt_flow_run *grown = realloc(s->runs, room * sizeof *grown);

		if (!grown) {
			end_early(d, d->flow);
			return;
		}
		s->runs = grown;
		s->run_room = room;
	}
	memcpy(s->runs + s->run_count, runs, n * sizeof *runs);
	s->run_count += n;
	for (uint32_t i = 0; i < n && !d->cyc_run && !d->begun; i++)
		d->cyc_run = runs[i].cyc_count != PTR_UNKNOWN;
}

static void on_end(void *arg, const struct pt_flow *f, uint64_t tsc, uint64_t insn_count, uint64_t cyc_count)
{
	struct pt_segment_decoder *d = arg;
	struct segment_entry *entry = add_entry(d, d->flow, SEGMENT_END);

	(void)f;
	if (!entry)
		return;
	entry->tsc = tsc;
	entry->insns = insn_count;
	entry->cyc = cyc_count;
}

static void on_error(void *arg, const struct pt_flow *f, const struct pt_flow_error *error)
{
	struct pt_segment_decoder *d = arg;

	(void)f, (void)error;
	end_early(d, d->flow);
}

static void on_event(void *arg, const struct pt_flow *f, const char *name, uint64_t ip, const char *fields)
{
	struct pt_segment_decoder *d = arg;
	struct segment_entry *entry = add_entry(d, d->flow, SEGMENT_EVENT);
	size_t n = strlen(fields);

	(void)f;
	if (!entry)
		return;
	entry->ip = ip;
	entry->name = name;
	if (n < sizeof entry->fields)
		memcpy(entry->fields, fields, n + 1);
	else
		end_early(d, d->flow);
}

static void on_event_trace(void *arg, const struct pt_flow *f, bool is_cfe, uint32_t type, uint64_t value)
{
	struct pt_segment_decoder *d = arg;

	(void)f, (void)is_cfe, (void)type, (void)value;
	end_early(d, d->flow);
}

static void on_transition(void *arg, const struct pt_flow *f, const struct pt_vm_transition *transition)
{
	struct pt_segment_decoder *d = arg;

	(void)f, (void)transition;
	end_early(d, d->flow);
}

static const struct pt_flow_output output = {.begin = on_begin,
					     .runs = on_runs,
					     .end = on_end,
					     .error = on_error,
					     .event = on_event,
					     .event_trace = on_event_trace,
					     .transition = on_transition};

/* ---- The decoder ------------------------------------------------------------------------------------ */

static bool read_later(void *arg, struct pt_code *code)
{
	const struct pt_segment_decoder *d = arg;

	return d->config.read_code(d->config.arg, code->space, code->later_ip);
}

struct pt_segment_decoder *pt_segment_decoder_create(const struct pt_segment_config *config)
{
	struct pt_segment_decoder *d = calloc(1, sizeof *d);
	struct pt_error e;

	if (!d)
		return NULL;
	d->config = *config;
	if (pt_graph_init(&d->graph, &e) < 0) {
		free(d);
		return NULL;
	}
	if (config->stats && pt_graph_count_stats(&d->graph, &e) < 0) {
		pt_segment_decoder_destroy(d);
		return NULL;
	}
	pt_graph_limit(&d->graph, config->graph_bytes);
	if (config->read_code)
		d->graph.read_later = read_later;
	d->graph.read_later_arg = d;
	return d;
}

void pt_segment_decoder_destroy(struct pt_segment_decoder *d)
{
	if (!d)
		return;
	pt_graph_deinit(&d->graph);
	free(d->codes);
	free(d);
}

const struct pt_graph *pt_segment_decoder_graph(const struct pt_segment_decoder *d)
{
	return &d->graph;
}

bool pt_segment_decoder_is_full(const struct pt_segment_decoder *d)
{
	return d->graph.cache_full;
}

void pt_segment_decoder_empty(struct pt_segment_decoder *d)
{
	pt_graph_recycle(&d->graph);
}

/* The space's code in the decoder's graph, as the space is now. NULL: no space, or no memory. */
static struct pt_code *code_of(struct pt_segment_decoder *d, struct img_space *space)
{
	struct pt_code *code = NULL;

	if (!space)
		return NULL;
	for (size_t i = 0; i < d->code_count && !code; i++)
		if (d->codes[i].space == space)
			code = d->codes[i].code;
	if (!code) {
		if (pt_array_grow(&d->codes, d->code_count, &d->code_room, NULL) < 0)
			return NULL;
		code = pt_graph_code(&d->graph, space);
		if (!code)
			return NULL;
		code->peeks = true;
		d->codes[d->code_count++] = (struct known_code){space, code};
	}
	if (code->later)
		pt_code_renew(&d->graph, code);
	else
		pt_code_refresh(&d->graph, code);
	code->later = false;
	return code;
}

/* The codes of the task, into the flow and the segment. False: no memory. */
static bool set_codes(struct pt_segment_decoder *d, const struct pt_segment_task *task, struct pt_flow *f)
{
	struct pt_segment *s = d->segment;
	struct pt_code *user, *kernel;

	img_store_read_begin(d->config.store);
	user = code_of(d, task->user);
	kernel = code_of(d, task->kernel);
	img_store_read_end(d->config.store);
	if ((task->user && !user) || (task->kernel && !kernel) || d->graph.full)
		return false;
	s->user = task->user;
	s->kernel = task->kernel;
	s->user_generation = user ? user->generation : 0;
	s->kernel_generation = kernel ? kernel->generation : 0;
	s->user_code = user ? user->id : UINT32_MAX;
	s->kernel_code = kernel ? kernel->id : UINT32_MAX;
	s->user_uid = user ? user->uid : UINT32_MAX;
	s->kernel_uid = kernel ? kernel->uid : UINT32_MAX;
	if (kernel)
		kernel->switch_ip = task->switch_ip;
	pt_flow_set_code(f, user, kernel);
	return true;
}

/* ---- One segment ------------------------------------------------------------------------------------ */

static bool add_checkpoint(struct pt_segment_decoder *d, const uint8_t *at, uint64_t stop_tsc)
{
	struct pt_segment *s = d->segment;
	struct segment_checkpoint *c;

	if (pt_array_grow(&s->checkpoints, s->checkpoint_count, &s->checkpoint_room, NULL) < 0)
		return false;
	c = &s->checkpoints[s->checkpoint_count++];
	c->at = at;
	c->stop_tsc = stop_tsc;
	c->runs = s->run_count;
	c->entries = s->entry_count;
	c->begun = d->begun;
	c->cyc_run = d->cyc_run;
	c->flow = *d->flow;
	return true;
}

/* The first of the stops that the clock has not reached; UINT64_MAX: none. */
static uint64_t next_stop(const struct pt_segment_stops *stops, uint64_t tsc)
{
	size_t lo = 0, hi = stops ? stops->count : 0;

	if (tsc == PT_CLOCK_UNKNOWN)
		return UINT64_MAX;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (stops->tsc[mid] <= tsc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return stops && lo < stops->count ? stops->tsc[lo] : UINT64_MAX;
}

/* The PSB+: the flow is at the task's `begin` then, as a flow that came there running. False: it is not. */
static bool begin(struct pt_segment_decoder *d, const struct pt_segment_task *task)
{
	struct pt_flow *f = d->flow;
	const uint8_t *at = task->psb;

	f->cyc_binding.samples = PT_CYC_BINDING_SAMPLES;
	f->cyc_binding.times_last = task->times_last;
	f->timing.has_cyc = task->has_cyc;
	d->muted = true;
	pt_flow_feed(f, task->psb, task->begin, task->aux_offset, false, &at);
	d->muted = false;
	if (d->ended || at != task->begin || f->state != PT_FLOW_RUNNING || !f->slice.open ||
	    f->graph->full || f->undelivered.count)
		return false;
	f->psb.alone = false;
	f->timing.before_tsc = f->timing.now_tsc = f->clock.tsc;
	f->timing.tnt_tsc = FLOW_TNT_UNSEEN;
	d->segment->begin = *f;
	return true;
}

/* What follows, up to the segment's end. */
static void go_on(struct pt_segment_decoder *d, const struct pt_segment_task *task)
{
	struct pt_flow *f = d->flow;
	const uint8_t *at = task->begin;

	while (at < task->end && !d->ended) {
		const uint8_t *end = task->end - at > CHECKPOINT_BYTES ? at + CHECKPOINT_BYTES : task->end;
		uint64_t stop_tsc = next_stop(task->stops, f->clock.tsc);
		const uint8_t *before = at;
		enum pt_flow_feed fed;

		f->stop_tsc = stop_tsc;
		fed = pt_flow_feed(f, at, end, task->aux_offset + (uint64_t)(at - task->psb), false, &at);
		if (d->ended || f->graph->full ||
		    !add_checkpoint(d, at, fed == PT_FEED_TIME ? stop_tsc : UINT64_MAX))
			return;
		if (fed == PT_FEED_CACHE_FULL || (at == before && end == task->end))
			return;
		if (at == before && fed == PT_FEED_MORE) /* a packet is longer than what was given of it */
			return;
	}
}

struct pt_segment *pt_segment_decode(struct pt_segment_decoder *d, const struct pt_segment_task *task)
{
	const struct pt_flow_config config = {.graph = &d->graph,
					      .clock = task->clock,
					      .env = &env,
					      .env_arg = d,
					      .output = &output,
					      .output_arg = d,
					      .errata = task->errata,
					      .no_tnt = d->config.no_tnt};
	struct pt_segment *s = calloc(1, sizeof *s);

	d->flow = pt_flow_create(&config);
	d->segment = s;
	d->ended = d->begun = d->cyc_run = false;
	if (s && d->flow && set_codes(d, task, d->flow) && begin(d, task))
		go_on(d, task);
	pt_flow_destroy(d->flow);
	d->flow = NULL;
	d->segment = NULL;
	if (!s || !s->checkpoint_count) {
		pt_segment_destroy(s);
		return NULL;
	}
	s->decoder = d;
	s->graph = &d->graph;
	return s;
}

void pt_segment_destroy(struct pt_segment *segment)
{
	if (!segment)
		return;
	free(segment->runs);
	free(segment->entries);
	free(segment->checkpoints);
	free(segment);
}
