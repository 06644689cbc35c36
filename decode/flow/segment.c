/* segment.c - see segment.h: the threads that decode ahead. */
#include "decode/flow/segment_decoder.h"

#include <stdlib.h>

#include "schema/array.h"

/* A checkpoint is made at least each so many bytes: where a segment ends, what came after the last one is
 * decoded again. */
#define CHECKPOINT_BYTES 8192
/* Where it is no more than this, it is left to the flow. */
#define REST_BYTES 48
/* Packets of a PSB+, at most: TSC, TMA, CBR, MODE.Exec, MODE.TSX, PIP, VMCS, FUP, PADs, MTCs. */
#define PSB_PACKETS_MAX 64

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
	if (config->graph_bytes) {
		pt_graph_limit(&d->graph, config->graph_bytes);
	} else {
		pt_graph_limit(&d->graph, PT_GRAPH_BYTES / 2);
		pt_graph_may_grow(&d->graph, config->graphs);
	}
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

bool pt_segment_decoder_sums(const struct pt_segment_decoder *d)
{
	return d->config.sums;
}

bool pt_segment_decoder_is_full(const struct pt_segment_decoder *d)
{
	return d->graph.cache_full;
}

void pt_segment_decoder_empty(struct pt_segment_decoder *d)
{
	pt_graph_recycle(&d->graph);
}

/* ---- Codes ------------------------------------------------------------------------------------------ */

static struct segment_known_code *known_code(struct pt_segment_decoder *d, struct img_space *space)
{
	struct segment_known_code *known;

	for (size_t i = d->code_count; i-- > 0;)
		if (d->codes[i].space == space)
			return &d->codes[i];
	if (pt_array_grow(&d->codes, d->code_count, &d->code_room, NULL) < 0)
		return NULL;
	known = &d->codes[d->code_count];
	*known = (struct segment_known_code){.space = space, .code = pt_graph_code(&d->graph, space)};
	if (!known->code)
		return NULL;
	known->code->peeks = true;
	d->code_count++;
	return known;
}

/* As the space is now, unless the task has used it already: its version is that of the task, then. */
static struct pt_code *renewed(struct pt_segment_decoder *d, struct img_space *space)
{
	struct segment_known_code *known = known_code(d, space);

	if (!known)
		return NULL;
	if (known->task == d->task_count)
		return known->code;
	known->task = d->task_count;
	if (known->code->later)
		pt_code_renew(&d->graph, known->code);
	else
		pt_code_refresh(&d->graph, known->code);
	known->code->later = false;
	return known->code;
}

struct pt_code *pt_segment_code_of(struct pt_segment_decoder *d, struct img_space *space)
{
	struct pt_code *code;

	if (!space)
		return NULL;
	img_store_read_begin(d->config.store);
	code = renewed(d, space);
	img_store_read_end(d->config.store);
	if (code && !d->graph.full)
		return code;
	d->ended = true;
	return NULL;
}

/* ---- Segments --------------------------------------------------------------------------------------- */

/* A segment begins at `at`, after the decoder's last one, with the flow as it is. False: no memory. */
static bool begin_segment(struct pt_segment_decoder *d, const uint8_t *at, bool after_psb)
{
	struct pt_segment *s = calloc(1, sizeof *s), *last = d->segment;
	const struct pt_flow *f = d->flow;
	const struct pt_code *user = f->user, *kernel = f->kernel;

	if (!s)
		return false;
	if (last)
		last->next = s;
	d->segment = s;
	d->asked = d->lost = d->user_entered = d->begun = d->cyc_run = false;
	s->graph = &d->graph;
	s->begin_at = at;
	s->after_psb = after_psb;
	s->in_kernel = kernel && f->at.code == kernel;
	s->user = user ? user->space : NULL;
	s->kernel = kernel ? kernel->space : NULL;
	s->user_generation = user ? user->generation : 0;
	s->kernel_generation = kernel ? kernel->generation : 0;
	s->user_code = user ? user->id : UINT32_MAX;
	s->kernel_code = kernel ? kernel->id : UINT32_MAX;
	s->user_uid = user ? user->uid : UINT32_MAX;
	s->kernel_uid = kernel ? kernel->uid : UINT32_MAX;
	s->begin = *f;
	return true;
}

static bool add_checkpoint(struct pt_segment_decoder *d, const uint8_t *at, uint64_t stop_tsc)
{
	struct pt_segment *s = d->segment;
	struct segment_checkpoint *c;

	if (s->checkpoint_count == s->checkpoint_room) { /* most segments have one or two, of 4 KB each */
		size_t room = s->checkpoint_room ? 2 * s->checkpoint_room : 1;

		c = realloc(s->checkpoints, room * sizeof *c);
		if (!c)
			return false;
		s->checkpoints = c;
		s->checkpoint_room = room;
	}
	c = &s->checkpoints[s->checkpoint_count++];
	c->at = at;
	c->stop_tsc = stop_tsc;
	c->runs = s->run_count;
	c->entries = s->entry_count;
	c->begun = d->begun;
	c->cyc_run = d->cyc_run;
	c->user_entered = d->user_entered;
	c->flow = *d->flow;
	return true;
}

/* The segment is what it was at its last checkpoint, or its begin; so is the flow. Returns the place. */
static const uint8_t *return_to_checkpoint(struct pt_segment_decoder *d)
{
	struct pt_segment *s = d->segment;
	const struct segment_checkpoint *c =
	    s->checkpoint_count ? &s->checkpoints[s->checkpoint_count - 1] : NULL;

	s->run_count = c ? c->runs : 0;
	s->entry_count = c ? c->entries : 0;
	*d->flow = c ? c->flow : s->begin;
	d->begun = c && c->begun;
	d->cyc_run = c && c->cyc_run;
	d->user_entered = c && c->user_entered;
	d->asked = false;
	return c ? c->at : s->begin_at;
}

struct pt_segment *pt_segment_next(const struct pt_segment *segment)
{
	return segment->next;
}

const uint8_t *pt_segment_begin(const struct pt_segment *segment)
{
	return segment->begin_at;
}

void pt_segment_destroy(struct pt_segment *segment)
{
	struct pt_segment *next;

	for (; segment; segment = next) {
		next = segment->next;
		if (segment->encoded)
			pt_runs_release(segment->encoded);
		else
			free(segment->runs);
		free(segment->entries);
		free(segment->checkpoints);
		free(segment);
	}
}

/* ---- Decoding --------------------------------------------------------------------------------------- */

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

const uint8_t *pt_segment_after_psb(const uint8_t *psb, const uint8_t *end, struct pt_segment_psb *ret)
{
	struct pt_packet k;

	*ret = (struct pt_segment_psb){.cr3 = 0};
	for (int i = 0; i < PSB_PACKETS_MAX; i++) {
		int n = pt_packet_decode(psb, end, 0, &k);

		if (n <= 0 || k.type == PT_OVF)
			return NULL;
		psb += n;
		if (k.type == PT_PIP)
			*ret = (struct pt_segment_psb){.cr3 = k.a, .in_guest = k.b};
		if (k.type == PT_PSBEND)
			return psb;
	}
	return NULL;
}

/* A flow that has seen no packet yet. NULL: no memory. */
static struct pt_flow *create_flow(struct pt_segment_decoder *d)
{
	struct pt_flow *f;
	const struct pt_flow_config config = {.graph = &d->graph,
					      .clock = d->task->clock,
					      .env = &pt_segment_env,
					      .env_arg = d,
					      .output = &pt_segment_output,
					      .output_arg = d,
					      .errata = d->task->errata,
					      .no_tnt = d->config.no_tnt};

	f = pt_flow_create(&config);
	if (!f)
		return NULL;
	f->cyc_binding.samples = PT_CYC_BINDING_SAMPLES;
	f->cyc_binding.times_last = d->task->times_last;
	f->clock.has_cyc = d->task->has_cyc;
	return f;
}

/* The flow has seen a PSB+, which ends before `at`, and nothing else: a segment begins. False: it does not. */
static bool begin_after_psb(struct pt_segment_decoder *d, const uint8_t *at)
{
	struct pt_flow *f = d->flow;

	if (d->ended || f->state != PT_FLOW_RUNNING || !f->slice.open || f->graph->full ||
	    f->undelivered.count)
		return false;
	f->psb.alone = false;
	f->timing.now_tsc = f->clock.tsc;
	f->timing.tnt_tsc = FLOW_TNT_UNSEEN;
	return begin_segment(d, at, true);
}

static void feed_psb(struct pt_segment_decoder *d, const uint8_t *psb, const uint8_t *begin,
		     const uint8_t **at)
{
	const struct pt_segment_task *task = d->task;
	struct pt_flow *f = d->flow;

	d->asked = true; /* nothing is logged */
	pt_flow_feed(f, psb, begin, task->aux_offset + (uint64_t)(psb - task->psb), false, at);
	f->stack.user.unseen = f->host_stack.user.unseen = true;
}

/*
 * At a PSB+ in the host, which ends before `begin`: the flow is there then as a flow that came there running,
 * in the code of user and the task's kernel, and a segment begins. False: it does not.
 */
static bool begin_at_psb(struct pt_segment_decoder *d, const uint8_t *psb, const uint8_t *begin,
			 struct img_space *user_space)
{
	const struct pt_segment_task *task = d->task;
	struct pt_code *user = pt_segment_code_of(d, user_space),
		       *kernel = pt_segment_code_of(d, task->kernel);
	const uint8_t *at = psb;

	pt_flow_destroy(d->flow);
	d->flow = create_flow(d);
	if (!d->flow)
		return false;
	if (kernel)
		kernel->switch_ip = task->switch_ip;
	pt_flow_set_code(d->flow, user, kernel);
	feed_psb(d, psb, begin, &at);
	return at == begin && begin_after_psb(d, begin);
}

/* The next packet that announces a VM entry or exit, in [from, end); end: none does. PIP: 02 43. */
static const uint8_t *find_transition(const struct pt_flow *f, const uint8_t *from, const uint8_t *end)
{
	struct pt_packet k;

	/* (memchr() is several times as fast as a search for both bytes.) */
	for (const uint8_t *p = from + 1; p < end && (p = memchr(p, 0x43, (size_t)(end - p))); p++)
		if (p[-1] == 0x02 && pt_packet_decode(p - 1, end, 0, &k) > 0 && k.type == PT_PIP &&
		    k.b != f->side.nr)
			return p - 1;
	return end;
}

/* Up to where the flow is fed at once, so that there is a checkpoint before what will need the environment: a
 * VM entry or exit, and a guest's PSB+, which has the guest's time. These are looked for from `from` on. */
static const uint8_t *next_checkpoint(const struct pt_segment_decoder *d, const uint8_t *at,
				      const uint8_t *from)
{
	const uint8_t *end = d->task->end - at > CHECKPOINT_BYTES ? at + CHECKPOINT_BYTES : d->task->end;
	const uint8_t *psb;

	end = find_transition(d->flow, from, end);
	psb = d->flow->side.nr && from < end ? pt_find_psb(from, end) : NULL;
	return psb ? psb : end;
}

/* The next PSB in the host from `from` on where a segment can begin, which begins then. Returns after its
 * PSB+; NULL: there is none. */
static const uint8_t *begin_at_next_psb(struct pt_segment_decoder *d, const uint8_t *from)
{
	const struct pt_segment_task *task = d->task;

	for (const uint8_t *psb = from; !d->ended && (psb = pt_find_psb(psb, task->end)); psb++) {
		struct pt_segment_psb says;
		const uint8_t *begin = pt_segment_after_psb(psb, task->end, &says);
		struct img_space *user = says.cr3 && task->world
					     ? pt_segment_process_space(&task->world->machines[0], says.cr3)
					     : NULL;

		if (begin && !says.in_guest && begin_at_psb(d, psb, begin, user ? user : task->user))
			return begin;
	}
	return NULL;
}

/* A PSB+ that is being passed in a guest, and what was before it. */
struct passed_psb {
	const uint8_t *psb; /* NULL: none */
	struct pt_clock clock;
	uint64_t vmcs;
};

/* A new flow, which has seen the PSB+ and nothing else. False: it is not in a guest. */
static bool feed_guest_psb(struct pt_segment_decoder *d, const struct passed_psb *passed,
			   const uint8_t *begin)
{
	const uint8_t *at = passed->psb;

	d->flow = create_flow(d);
	if (!d->flow)
		return false;
	d->flow->clock = passed->clock;
	d->flow->side.vmcs = passed->vmcs;
	feed_psb(d, passed->psb, begin, &at);
	return at == begin && d->flow->side.nr;
}

/*
 * The flow has passed a PSB+ in a guest, which ends before `begin`. What it was before, which may well be
 * wrong, matters no more: a segment begins with a new flow. False: it does not.
 */
static bool begin_at_guest_psb(struct pt_segment_decoder *d, const struct passed_psb *passed,
			       const uint8_t *begin)
{
	struct pt_flow *before = d->flow;

	if (feed_guest_psb(d, passed, begin) && begin_after_psb(d, begin)) {
		pt_flow_destroy(before);
		return true;
	}
	pt_flow_destroy(d->flow);
	d->flow = before;
	return false;
}

/* Passes what is the flow's own, packet by packet: what asks, at asked_offset, and up to where another segment
 * can begin. Begins that. NULL: there is none. */
static const uint8_t *pass(struct pt_segment_decoder *d, const uint8_t *at)
{
	const struct pt_segment_task *task = d->task;
	struct pt_flow *f = d->flow;
	const uint8_t *asks = task->psb + (d->asked_offset - task->aux_offset);
	struct passed_psb passed = {.psb = NULL};
	bool at_psbend = false;

	f->stop_tsc = UINT64_MAX;
	while (!d->lost && (at <= asks || !pt_segment_may_begin(f) ||
			    (!d->segment && f->pips.insns == f->counts.insns))) {
		const uint8_t *before;
		struct pt_packet k;
		int n;

		if (f->state == PT_FLOW_UNSYNCED && !f->psb.open)
			at = pt_find_psb(at, task->end);
		n = at ? pt_packet_decode(at, task->end, f->packet.bip_bytes, &k) : 0;
		if (n <= 0)
			return NULL;
		before = at;
		if (k.type == PT_PSB)
			passed = (struct passed_psb){at, f->clock, f->side.vmcs};
		at_psbend = k.type == PT_PSBEND;
		pt_flow_feed(f, at, at + n, task->aux_offset + (uint64_t)(at - task->psb), false, &at);
		if (d->ended || f->graph->full || f->graph->cache_full || at == before)
			return NULL;
	}
	if (d->lost)
		return begin_at_next_psb(d, at);
	if (at_psbend && passed.psb && f->side.nr && begin_at_guest_psb(d, &passed, at))
		return at;
	return begin_segment(d, at, false) ? at : NULL;
}

/*
 * The guest's code is not known at the PSB: nor was it before, and the flow has been in PT_FLOW_NO_IMAGE for a
 * while, without an error since. What comes after it is the first segment. Returns where; NULL: there is none.
 */
static const uint8_t *begin_after_guest(struct pt_segment_decoder *d)
{
	const struct pt_segment_task *task = d->task;
	struct pt_flow *f = d->flow;

	if (f->state == PT_FLOW_RUNNING)
		pt_flow_skip_code(f);
	f->stack_state.stale_hw = f->stack_state.skipped = false;
	f->stack_state.kernel_unseen = task->kernel_unseen;
	d->asked_offset = task->aux_offset;
	d->lost = false;
	return f->state == PT_FLOW_NO_IMAGE ? pass(d, task->begin) : NULL;
}

/* The task's PSB+ is in a guest. Returns where the first segment begins. NULL: there is none. */
static const uint8_t *begin_in_guest(struct pt_segment_decoder *d)
{
	const struct pt_segment_task *task = d->task;
	const struct passed_psb psb = {task->psb, task->now, task->vmcs};

	if (!feed_guest_psb(d, &psb, task->begin))
		return NULL;
	if (d->flow->state == PT_FLOW_RUNNING && pt_flow_has_code(d->flow, pt_flow_here(d->flow)))
		return begin_after_psb(d, task->begin) ? task->begin : NULL;
	return begin_after_guest(d);
}

static const uint8_t *begin_task(struct pt_segment_decoder *d)
{
	const struct pt_segment_task *task = d->task;

	if (task->in_guest)
		return begin_in_guest(d);
	return begin_at_psb(d, task->psb, task->begin, task->user) ? task->begin : NULL;
}

/* Takes the packets of [*at, end), or some of them, into the segment. False: all of the task that can be
 * decoded was. */
static bool decode(struct pt_segment_decoder *d, const uint8_t **at, const uint8_t *end)
{
	const struct pt_segment_task *task = d->task;
	struct pt_flow *f = d->flow;
	uint64_t stop_tsc = next_stop(task->stops, f->clock.tsc);
	const uint8_t *before = *at;
	enum pt_flow_feed fed;

	f->stop_tsc = stop_tsc;
	f->user_wanted = f->unseen_wanted = false;
	fed = pt_flow_feed(f, before, end, task->aux_offset + (uint64_t)(before - task->psb), false, at);
	if ((pt_segment_user_unasked(d) || f->unseen_wanted) && !d->asked) {
		d->asked = true;
		d->asked_offset = task->aux_offset + (uint64_t)(before - task->psb);
	}
	if (d->ended || f->graph->full)
		return false;
	if (d->asked)
		return true;
	if (*at == before && fed == PT_FEED_MORE)
		return end != task->end; /* else a packet is longer than what was given of it */
	return add_checkpoint(d, *at, fed == PT_FEED_TIME ? stop_tsc : UINT64_MAX) &&
	       fed != PT_FEED_CACHE_FULL && (*at > before || end != task->end);
}

/* The environment was needed: the segment ends before that packet, and another one begins after it. Returns
 * where; NULL: none does. */
static const uint8_t *end_segment(struct pt_segment_decoder *d)
{
	const struct pt_segment_task *task = d->task;
	const uint8_t *packet = task->psb + (d->asked_offset - task->aux_offset);
	bool lost = d->lost;
	const uint8_t *at = return_to_checkpoint(d);

	/* A PSB+ is passed as a whole. */
	while (packet - at > REST_BYTES && !d->asked && pt_find_psb(at, packet) != at) {
		const uint8_t *before = at;

		if (!decode(d, &at, packet))
			return NULL;
		if (at == before)
			break;
	}
	if (d->asked)
		at = return_to_checkpoint(d);
	d->asked = true;
	d->lost = lost;
	return pass(d, at);
}

/* What follows a segment's begin, up to the task's end. */
static void go_on(struct pt_segment_decoder *d, const uint8_t *at)
{
	const struct pt_segment_task *task = d->task;
	const uint8_t *from = at;

	while (at && at < task->end) {
		const uint8_t *end = next_checkpoint(d, at, from);

		if (!decode(d, &at, end))
			return;
		from = at > end ? at : end + 1;
		if (d->asked)
			from = at = end_segment(d);
	}
}

/* Of the list, those that have something. */
static struct pt_segment *without_empty(struct pt_segment *first)
{
	struct pt_segment **at = &first;

	while (*at) {
		struct pt_segment *s = *at;

		if (s->checkpoint_count) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		s->next = NULL;
		pt_segment_destroy(s);
	}
	return first;
}

struct pt_segment *pt_segment_decode(struct pt_segment_decoder *d, const struct pt_segment_task *task)
{
	struct pt_segment *first;
	const uint8_t *begin;

	d->task = task;
	d->task_count++;
	d->segment = NULL;
	d->ended = false;
	begin = begin_task(d);
	first = d->segment;
	if (begin)
		go_on(d, begin);
	pt_flow_destroy(d->flow);
	d->flow = NULL;
	d->task = NULL;
	d->segment = NULL;
	return without_empty(first);
}
