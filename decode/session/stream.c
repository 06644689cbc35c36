/* stream.c - a session's streams: their AUX data in pieces, and the flows that decode them. See
 * internal.h. */
#include <stdlib.h>
#include <string.h>

#include "decode/code/address_filter.h"
#include "decode/packet/clock_meta.h"
#include "decode/packet/errata.h"
#include "decode/output/calls.h"
#include "decode/session/internal.h"
#include "schema/array.h"

/* Before a piece's bytes: more than the rest of the piece before can be, which is a part of a packet. */
#define HEADROOM_BYTES 32

static const char buffer_full[] = "AUX data was lost: the buffer was full";
static const char no_beginning[] =
    "what the container before this one ended with does not lead to what follows";

/* ---- Threads that decode ahead ---------------------------------------------------------------------- */

void pt_session_segments_start(struct session *s)
{
	const struct pt_session_options *o = s->options;
	bool sums = o->detail == PTR_DETAIL_SUMS && !o->detail_time;
	const struct pt_segment_config config = {
	    .no_tnt = ptc_meta_number(s->meta, "pt_config", 0) & PT_RTIT_DIS_TNT,
	    .stats = o->stats,
	    .sums = sums,
	    .store = s->store,
	    .graph_bytes = o->graph_bytes,
	    .graphs = o->threads,
	};
	const struct pt_segments_options options = {
	    .pool = s->pool,
	    .threads = o->threads - 1,
	    .job_bytes = o->segment_bytes ? o->segment_bytes : PT_SEGMENTS_JOB_BYTES,
	    .every_other = o->threads == 2,
	    .encodes = o->definitions && !o->text && (o->detail == PTR_DETAIL_BRANCHES || sums),
	    .waits = o->segments_wait,
	    .meanwhile = o->calls ? pt_calls_help : NULL,
	    .meanwhile_arg = s->emit.stacks,
	};

	if (!s->pool)
		return;
	/* Where it is listed which bytes were read as code, only the session's thread can say. */
	if (s->detail == PT_FLOW_FOLLOW && !o->used_code)
		s->segments = pt_segments_create(&options, &config);
	if (pt_thread_pool_grow(s->pool) > 0)
		return;
	pt_segments_destroy(s->segments); /* what no thread can do */
	s->segments = NULL;
}

/* Gives the threads the times of the records that have come: flows will stop there. */
static void set_stops(struct session *s)
{
	const struct record_queue *q = &s->queue;
	size_t count = q->end - q->first;
	uint64_t *tsc = count ? malloc(count * sizeof *tsc) : NULL;

	s->stops_arrived = q->arrived;
	if (!tsc)
		return;
	for (size_t i = 0; i < count; i++)
		tsc[i] = q->records[q->first + i]->tsc;
	pt_segments_set_stops(s->segments, tsc, count);
}

static void give_segments(struct stream *st)
{
	struct session *s = st->session;
	uint64_t world_changes = pt_session_world_changes(s);

	if (s->stops_arrived != s->queue.arrived)
		set_stops(s);
	if (s->world_changes != world_changes) {
		s->world_changes = world_changes;
		pt_segments_set_world(s->segments, pt_session_world(s));
	}
	pt_segments_give(s->segments, st);
}

/* ---- Pieces ----------------------------------------------------------------------------------------- */

/* The stream's first bytes, without context: of a container that continues another one, up to the first
 * PSB they are lost. */
static void report_no_beginning(struct stream *st, const struct ptc_aux *aux)
{
	const uint8_t *end = aux->bytes + aux->size;

	if (aux->aux_offset && aux->size && ptc_meta_get(st->session->meta, "continues") &&
	    pt_find_psb(aux->bytes, end) != aux->bytes)
		pt_flow_lost(st->flow, aux->aux_offset, true, no_beginning);
}

/* Smaller ones are copied: a list of such chunks is no gain. */
#define TAKEN_BYTES_MIN 65536

/* A piece with the bytes, copied. NULL: no memory. */
static struct piece *copied_piece(const uint8_t *bytes, uint64_t size)
{
	struct piece *p = malloc(sizeof *p + HEADROOM_BYTES + size);

	if (!p)
		return NULL;
	*p = (struct piece){.bytes = (uint8_t *)(p + 1)};
	p->at = p->bytes + HEADROOM_BYTES;
	if (size)
		memcpy(p->at, bytes, size);
	return p;
}

/* With those of the reader's last chunk, whose data is the piece's then: the payload's head is their headroom.
 * NULL: no memory, or what it is in is much more. */
static struct piece *taken_piece(struct ptc_reader *r, const uint8_t *bytes, uint64_t size)
{
	struct piece *p = size >= TAKEN_BYTES_MIN ? malloc(sizeof *p) : NULL;

	if (!p)
		return NULL;
	*p = (struct piece){0};
	p->bytes = ptc_take_data(r, size + size / 8, &p->bytes_room);
	if (!p->bytes) {
		free(p);
		return NULL;
	}
	p->at = p->bytes + (bytes - p->bytes);
	return p;
}

int pt_session_stream_add_aux(struct stream *st, const struct ptc_aux *aux, uint64_t skip, struct pt_error *e)
{
	uint64_t size = aux->size - skip;
	uint64_t memory_bytes = sizeof(struct piece) + HEADROOM_BYTES + size;
	struct piece *p;

	if (pt_session_hold_bytes(st->session, memory_bytes, e) < 0)
		return -1;
	p = taken_piece(st->session->reader, aux->bytes + skip, size);
	if (!p)
		p = copied_piece(aux->bytes + skip, size);
	if (!p)
		return pt_fail_no_memory(e, "AUX data");
	p->aux_offset = aux->aux_offset + skip;
	p->end = p->at + size;
	p->lost_after = aux->flags & PTC_AUX_TRUNCATED;
	p->context = aux->flags & PTC_AUX_CONTEXT;
	p->skipped_before = skip;
	p->memory_bytes = memory_bytes;
	if (p->context)
		st->out.muted = true;
	else if (st->begins)
		report_no_beginning(st, aux);
	st->begins = false;
	*st->last = p;
	st->last = &p->next;
	st->end_offset = p->lost_after ? UINT64_MAX : aux->aux_offset + aux->size;
	pt_session_due_set(st->session, st, 0);
	if (st->session->segments && !st->alone) {
		pt_segments_add(st->session->segments, &st->jobs, p->at, p->end, p->aux_offset);
		give_segments(st);
	}
	return 0;
}

static void piece_free(struct stream *st, struct piece *p)
{
	if (st->session->segments)
		pt_segments_forget(st->session->segments, &st->jobs, p->bytes, p->end + 1);
	st->session->held_bytes -= p->memory_bytes;
	if (p->bytes_room)
		ptc_give_data(st->session->reader, p->bytes, p->bytes_room);
	free(p);
}

/* Snapshots overlap: takes what the first piece has away from the beginning of the second one. False
 * when nothing was left of that. */
static bool cut_overlap(struct stream *st)
{
	struct piece *p = st->first, *next = p->next;
	uint64_t end = p->aux_offset + (uint64_t)(p->end - p->at), size = (uint64_t)(next->end - next->at);
	uint64_t overlap = next->aux_offset < end ? end - next->aux_offset : 0;

	if (!overlap)
		return true;
	if (overlap >= size) {
		p->lost_after |= next->lost_after && overlap == size;
		p->next = next->next;
		if (!p->next)
			st->last = &p->next;
		piece_free(st, next);
		return false;
	}
	next->at += overlap;
	next->aux_offset += overlap;
	return true;
}

/*
 * What the container's own AUX data says is reported from here on. The kernel hands out AUX data when
 * tracing has stopped, so in between there is no run that both have a part of.
 */
static void end_context(struct stream *st)
{
	pt_flow_pause(st->flow, true);
	st->out.muted = false;
	pt_flow_resume(st->flow);
}

/* The flow has taken the first piece but for a part of a packet, which is put before the second piece. If
 * bytes are missing between the two it is lost. */
static void next_piece(struct stream *st)
{
	struct piece *p = st->first, *next = p->next;
	size_t rest = (size_t)(p->end - p->at);
	uint64_t end = p->aux_offset + rest;
	bool context_ends = p->context && !next->context;

	if (context_ends)
		end_context(st);
	if (next->skipped_before) {
		pt_flow_restart(st->flow);
	} else if (!cut_overlap(st)) {
		return;
	} else if (!p->lost_after && next->aux_offset == end && rest <= HEADROOM_BYTES) {
		if (rest)
			memcpy(next->at - rest, p->at, rest);
		next->at -= rest;
		next->aux_offset -= rest;
		if (context_ends && pt_flow_state(st->flow) < PT_FLOW_DISABLED)
			pt_flow_lost(st->flow, end, true, no_beginning);
	} else {
		pt_flow_lost(st->flow, end, p->lost_after,
			     p->lost_after ? buffer_full : "AUX data is missing from the container");
	}
	st->first = next;
	piece_free(st, p);
}

/* No AUX data follows the only piece that is left. */
static void end_piece(struct stream *st)
{
	struct piece *p = st->first;

	if (p->lost_after)
		pt_flow_lost(st->flow, p->aux_offset, true, buffer_full);
	st->first = NULL;
	st->last = &st->first;
	piece_free(st, p);
}

/* ---- Feeding ---------------------------------------------------------------------------------------- */

/* The graph has grown to its limit: all flows go on in an empty one. False: no memory. */
static bool recycle_graph(struct session *s)
{
	struct pt_error e;

	for (struct stream *st = s->streams; st && !s->failed; st = st->next)
		if (pt_flow_detach(st->flow, &e) < 0)
			pt_session_fail(s, &e);
	if (s->failed)
		return false;
	if (s->segments)
		pt_segments_recycle(s->segments);
	pt_emit_recycle(&s->emit);
	pt_graph_recycle(&s->graph);
	for (struct stream *st = s->streams; st; st = st->next)
		pt_flow_reattach(st->flow);
	return true;
}

/* A thread's stream that does not say of which process: the sideband before its first AUX data says it. */
static bool find_process(struct stream *st)
{
	struct pt_error e;

	if (st->info.tid <= 0 || st->info.pid > 0 || st->cpu.task)
		return true;
	if (pt_session_switch(st->session, &st->cpu, -1, st->info.tid, PTR_NO_TSC, &e) < 0) {
		pt_session_fail(st->session, &e);
		return false;
	}
	return true;
}

static void advance_piece(struct piece *p, const uint8_t *at)
{
	p->aux_offset += (uint64_t)(at - p->at);
	p->at += at - p->at;
}

/* Takes over what was decoded ahead, if something was from here on. True if the flow has reached the
 * time where it is to stop. */
static bool take_segments(struct stream *st, struct piece *p)
{
	struct pt_segments *segments = st->session->segments;

	pt_segments_pass(segments, &st->jobs, p->bytes, p->at);
	while (pt_segments_at(&st->jobs, p->at)) {
		const uint8_t *at = p->at;
		enum pt_segment_taken taken = pt_segments_take(segments, &st->jobs, st->flow, &at);

		advance_piece(p, at);
		if (st->session->failed || taken == PT_SEGMENT_TIME)
			return true;
		if (!st->jobs.current)
			give_segments(st);
	}
	return false;
}

/* A piece, up to the time where the flow is to stop. */
static enum pt_flow_feed feed_piece(struct stream *st, struct piece *p, bool last)
{
	enum pt_flow_feed r;
	const uint8_t *at, *end;

	do {
		end = p->end;
		if (st->session->segments) {
			if (take_segments(st, p))
				return PT_FEED_TIME;
			end = pt_segments_limit(&st->jobs, p->at, p->end);
		}
		r = pt_flow_feed(st->flow, p->at, end, p->aux_offset, last && !p->next && end == p->end, &at);
		/* The segment's begin is in the middle of what the flow takes for a packet. */
		if (r == PT_FEED_MORE && at != end && end != p->end)
			pt_segments_pass(st->session->segments, &st->jobs, end, end + 1);
		advance_piece(p, at);
	} while (r == PT_FEED_MORE && end != p->end);
	return r;
}

/* What the stream has, up to the time where its flow is to stop. True if it has reached that. */
static bool feed_pieces(struct stream *st, bool last)
{
	while (st->first) {
		struct piece *p = st->first;
		enum pt_flow_feed r = feed_piece(st, p, last);

		if (r == PT_FEED_TIME)
			return true;
		if (r == PT_FEED_CACHE_FULL) {
			if (!recycle_graph(st->session))
				return false;
		} else if (p->next) {
			next_piece(st);
		} else {
			break;
		}
	}
	if (last && st->first)
		end_piece(st);
	return false;
}

void pt_session_stream_feed(struct stream *st, uint64_t stop_tsc, bool last)
{
	if (!find_process(st))
		return;
	pt_flow_set_stop(st->flow, stop_tsc);
	pt_session_due_set(st->session, st, feed_pieces(st, last) ? pt_flow_tsc(st->flow) : UINT64_MAX);
}

/* ---- The flow's environment ------------------------------------------------------------------------- */

static uint64_t on_guest_tsc(void *arg, struct pt_flow *f, const struct pt_tsc_packet *packet)
{
	struct stream *st = arg;
	const struct pt_emit *emit = &st->session->emit;
	uint64_t host = PT_CLOCK_UNKNOWN;

	if (!pt_flow_clock(f)->have_ctc)
		host = pt_session_begin_tsc(st->session, st, packet->tsc);
	if (host != PT_CLOCK_UNKNOWN)
		return host;
	return emit->vm && emit->vm->host_tsc ? emit->vm->host_tsc(emit->vm_arg, &st->out, f, packet)
					      : PT_CLOCK_UNKNOWN;
}

static void on_host_tsc(void *arg, struct pt_flow *f, uint64_t tsc)
{
	struct stream *st = arg;
	const struct pt_emit *emit = &st->session->emit;

	(void)f;
	if (emit->vm && emit->vm->host_tsc_seen)
		emit->vm->host_tsc_seen(emit->vm_arg, &st->out, tsc);
}

static bool is_filtered(void *arg, struct pt_flow *f, uint64_t ip)
{
	const struct stream *st = arg;

	return pt_filter_shuts_out(&st->session->emit.filter, pt_flow_code(f)->space, ip);
}

static const struct pt_flow_env flow_env = {.missing = pt_session_on_missing,
					    .user = pt_session_on_user,
					    .user_stays = pt_session_user_stays,
					    .switching = pt_session_on_switching,
					    .side = pt_session_on_side,
					    .guest_tsc = on_guest_tsc,
					    .host_tsc = on_host_tsc,
					    .filtered = is_filtered};

/* Of the stream's CPU: a hybrid processor's differ. */
static uint32_t errata_of(const struct stream *st)
{
	const struct ptc_meta *meta = st->session->meta;
	int32_t cpu = st->info.cpu;

	return pt_errata_of((uint32_t)ptc_meta_cpu_number(meta, cpu, "cpu_family", 0),
			    (uint32_t)ptc_meta_cpu_number(meta, cpu, "cpu_model", 0));
}

static struct pt_flow *flow_create(struct stream *st)
{
	struct session *s = st->session;
	struct pt_flow_config config = {
	    .graph = &s->graph,
	    .env = &flow_env,
	    .env_arg = st,
	    .output = &pt_emit_output,
	    .output_arg = &st->out,
	    .errata = errata_of(st),
	    .snapshot = st->info.snapshot,
	    .no_tnt = ptc_meta_number(s->meta, "pt_config", 0) & PT_RTIT_DIS_TNT,
	};

	/* What the errata want to know of an address filter only the session's thread can say. */
	st->alone = config.errata & PT_SKL014 && ptc_meta_get(s->meta, "addr_filter");
	pt_clock_config_from_meta(s->meta, st->info.cpu, &config.clock);
	return pt_flow_create(&config);
}

/* ---- Streams ---------------------------------------------------------------------------------------- */

struct stream *pt_session_stream(struct session *s, uint32_t id)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(&s->stream_hash, pt_hash_mix(id)); (n = s->stream_hash.slots[i]);
	     i = pt_hash_next(&s->stream_hash, i))
		if (s->stream_of[n - 1]->id == id)
			return s->stream_of[n - 1];
	return NULL;
}

static uint64_t key_of(const void *streams, uint32_t n)
{
	return pt_hash_mix(((struct stream *const *)streams)[n - 1]->id);
}

/* Appends the stream, which is the session's then. */
static int append(struct session *s, struct stream *st, struct pt_error *e)
{
	if (pt_array_grow(&s->stream_of, s->stream_count, &s->stream_room, e)) {
		free(st);
		return -1;
	}
	s->stream_of[s->stream_count] = st;
	*s->last_stream = st;
	s->last_stream = &st->next;
	return pt_hash_insert(&s->stream_hash, pt_hash_mix(st->id), (uint32_t)++s->stream_count, key_of,
			      s->stream_of, e);
}

int pt_session_stream_add(struct session *s, uint32_t id, const struct ptc_stream *info, struct pt_error *e)
{
	struct stream *st;

	if (pt_session_stream(s, id))
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "stream %u is declared twice", id);
	st = calloc(1, sizeof *st);
	if (!st)
		return pt_fail_no_memory(e, NULL);
	st->session = s;
	st->id = id;
	st->info = *info;
	st->last = &st->first;
	pt_segments_stream_init(&st->jobs);
	st->end_offset = UINT64_MAX;
	st->begins = true;
	if (append(s, st, e) < 0 || pt_session_due_add(s, st, e) < 0)
		return -1;
	pt_cpu_context_init(&st->cpu, s->host, info->cpu);
	st->cpu_context = &st->cpu;
	st->out = (struct pt_emit_stream){
	    .emit = &s->emit, .stream = id, .cpu = info->cpu, .of_thread = info->tid > 0};
	st->flow = flow_create(st);
	if (!st->flow)
		return pt_fail_no_memory(e, NULL);
	pt_filter_parse(&s->emit.filter, ptc_meta_get(s->meta, "addr_filter"));
	pt_session_update_context(st);
	return info->tid > 0 && info->pid > 0
		   ? pt_session_switch(s, &st->cpu, info->pid, info->tid, PTR_NO_TSC, e)
		   : 0;
}

void pt_session_streams_deinit(struct session *s)
{
	while (s->streams) {
		struct stream *st = s->streams;

		s->streams = st->next;
		st->jobs.current = NULL;
		while (st->first) {
			struct piece *p = st->first;

			st->first = p->next;
			piece_free(st, p);
		}
		pt_flow_destroy(st->flow);
		free(st);
	}
	free(s->stream_of);
	pt_hash_deinit(&s->stream_hash);
	free(s->vmcs_owners);
	pt_session_due_deinit(s);
}
