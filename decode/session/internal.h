/*
 * internal.h - what the session's files share: session.c (chunks, results), queue.c (sideband in its
 * time) and context.c (streams, and who runs in them). Private to them; session.h is the contract.
 */
#ifndef DECODE_SESSION_INTERNAL_H
#define DECODE_SESSION_INTERNAL_H

#include "decode/flow/flow.h"
#include "decode/session/selection.h"
#include "decode/session/session.h"
#include "decode/session/events.h"
#include "decode/vm/vm.h"
#include "decode/vm/scan.h"

struct piece {
	struct piece *next;
	uint64_t aux_offset; /* of `at` */
	uint8_t *at, *end;
	bool lost_after; /* PTC_AUX_TRUNCATED */
	bool left_out;	 /* bytes before it are not wanted */
	uint64_t bytes;	 /* that it takes */
	uint8_t room[];	 /* headroom, then the bytes */
};

struct stream {
	struct stream *next;
	struct ptc_stream info;
	uint32_t id;
	struct pt_flow *flow;
	struct pt_emit_stream out;
	struct piece *first, **last;
	struct session *session;
	struct pt_cpu_context cpu;	    /* the host's CPU or thread that it is of */
	struct pt_cpu_context *cpu_context; /* where it is now: &cpu, or a guest's vCPU */
	bool begun;			    /* at or before the time that is wanted */
	uint64_t switch_vmcs;		    /* at the last switch of the CPU */
};

struct vmcs { /* which vCPU it was last */
	uint64_t address;
	struct pt_cpu_context *cpu_context;
	struct pt_task *task; /* its thread in the host */
};

struct session {
	struct ptc_meta *meta;
	struct img_store *store;
	struct pt_graph graph;
	struct pt_machines *machines;
	struct pt_machine *host;
	struct pt_emit emit;
	struct stream *streams;
	struct pt_sideband_record **queue; /* [queue_at, queue_count): sideband that waits, in time order */
	size_t queue_at, queue_count, queue_room;
	struct pt_sideband_record *waiting,
	    **waiting_last;	   /* guests' sideband whose time in the host is not known yet, in order */
	struct pt_machine **attrs; /* whose the attrs are */
	uint32_t attr_count;
	enum pt_flow_detail detail; /* --quick */
	struct pt_only chosen;
	const struct pt_only *only; /* it; NULL: all is wanted */
	bool before, past;	    /* the time that is wanted is to come; is over */
	bool from_known;
	uint64_t from_tsc;		  /* where it begins */
	struct pt_session_events *events; /* samples */
	struct pt_vm *vm;		  /* clocks, stays and round trips of guests */
	struct pt_vcpus vcpus;
	struct pt_vm_scan *scan; /* while AUX data is held for it; NULL */
	uint64_t held_bytes;
	uint64_t clock_changes; /* that the queue's times are by */
	bool clocks_known;	/* as well as AUX data that was held tells */
	const struct pt_vm_options *tsc_offsets;
	struct vmcs *vmcs;
	size_t vmcs_count;
	uint64_t order;
	struct pt_perf_clock conversion;
	struct pt_clock_config clock;
	bool timeless, started, kernel_traced, guest_code;
	uint64_t round_tsc,
	    last_round_tsc; /* sideband is complete up to the first; AUX data up to the second */
	/* how far a record may be ahead of a stream's clock to explain what the trace shows */
	uint64_t window_tsc;
	uint64_t kept_bytes, kept_max; /* of pieces and sideband that wait */
	struct pt_session_result *result;
	struct pt_error error; /* of a callback */
	bool failed;
};

/* queue.c. Functions that return int: 0, or -1 and *e. */

/* Takes side, which the queue frees. */
int pt_session_queue(struct session *s, struct pt_sideband_record *side, struct pt_error *e);
/* Guests' sideband that waited for its clock, when that is known now. */
/* The machine's sideband has no time: the trace has none, or nobody knows its clock. */
bool pt_session_timeless(const struct session *s, const struct pt_machine *m);
int pt_session_queue_waiting(struct session *s, bool all, struct pt_error *e);
/* What is known of the guests' clocks has changed: their sideband in the queue gets its time anew. */
int pt_session_retime(struct session *s, struct pt_error *e);
int pt_session_apply(struct session *s, const struct pt_sideband_record *side, struct pt_error *e);
/* Applies at once, ahead of its time, what of the queue is not later than now + window_tsc and `matches`, up to the last
 * that `wanted` says yes to; nothing when there is none. True when there was. */
bool pt_session_ahead(struct session *s, uint64_t now, uint64_t window_tsc,
		      bool (*matches)(const struct pt_sideband_record *side, void *arg),
		      bool (*wanted)(const struct pt_sideband_record *side, void *arg), void *arg);
bool pt_session_missing(void *arg, struct pt_flow *f, uint64_t ip); /* arg: struct stream */
void pt_session_sideband_free(struct session *s);

/*
 * guest_clock.c. A guest's sideband that waits for its clock holds back the decode until AUX data tells the clock, at most
 * for 64 MB of it: what the guest mapped before has to be there when its code is met. Whether the container is a file
 * or a pipe makes no difference.
 */

/* Looks at AUX data: 1: it is to be held, 0: go on, -1 and *e. */
int pt_session_hold(struct session *s, const struct ptc_aux *aux, uint32_t stream, struct pt_error *e);
/* Before a decode. last: no AUX data follows. 1: hold on, 0: go on, -1 and *e. */
int pt_session_release(struct session *s, bool last, struct pt_error *e);

/*
 * select.c. Ends of the time that is wanted are marks in the queue of sideband.
 */

/* META is there: names become pids. 0, or -1: PT_ERR_USAGE. */
int pt_session_names(struct session *s, struct pt_error *e);
/* AUX data of a stream that is to be looked at: *ret_skip bytes at its beginning are not. False: none of it is. */
bool pt_session_wants(struct session *s, struct stream *st, const struct ptc_aux *aux, uint64_t *ret_skip,
		      struct pt_error *e);
/* Whether the stream's flow is wanted now: sets flow.skip and out.unwanted. */
void pt_session_choose(struct stream *st);
/* A mark's time has come. */
void pt_session_mark(struct session *s, const struct pt_sideband_record *mark);
/* A sample or switch is wanted. */
bool pt_session_wants_event(const struct session *s, const struct pt_sideband_record *side);

/* context.c */

struct stream *pt_session_stream(struct session *s, uint32_t id); /* NULL: not declared */
int pt_session_stream_add(struct session *s, uint32_t id, const struct ptc_stream *info, struct pt_error *e);
void pt_session_streams_free(struct session *s);
/* Whose code the stream's flow sees, from its seat. */
void pt_session_codes(struct stream *st);
/* Tells it to the VMs, where the record is of a thread that is traced by itself. */
int pt_session_moved(struct session *s, const struct pt_sideband_record *side, struct pt_error *e);
/* pid, tid run in seat from now on. */
int pt_session_switch(struct session *s, struct pt_cpu_context *cpu_context, int32_t pid, int32_t tid,
		      struct pt_error *e);
/* The seat that a switch record tells of, NULL when no stream is there. */
struct pt_cpu_context *pt_session_cpu_context(struct session *s, const struct pt_sideband_record *side);

/* Bytes that are kept from now on: 0, or -1, they are too many. */
static inline int pt_session_keep(struct session *s, uint64_t bytes, struct pt_error *e)
{
	if (bytes > s->kept_max - s->kept_bytes)
		return pt_fail(
		    e, PT_ERR_NO_MEMORY, PT_NO_OFFSET,
		    "out of memory: sideband and AUX data that wait for their time take more than %llu MB",
		    (unsigned long long)(s->kept_max >> 20));
	s->kept_bytes += bytes;
	return 0;
}

static inline uint64_t pt_session_sideband_bytes(const struct pt_sideband_record *side)
{
	return sizeof *side + side->size +
	       112; /* the zeros behind it, its place in the queue, malloc()'s own */
}

#endif
