/*
 * internal.h - what the session's files share. Private to them; session.h is the contract.
 *
 * Layers, the highest first. A file calls those below it, never those above or beside it:
 *
 *     session.c                 a whole decode: sets it up, reads chunks, writes the results
 *     chunks.c                  one chunk of the container, to where it belongs
 *     advance.c                 decodes streams and applies sideband records, in the order of time
 *     guest_clock.c             holds AUX data back until the guests' clocks are known
 *     stream.c                  a stream: its AUX data and its flow
 *     due.c                     which streams have something to decode before a time
 *     address_space.c, vcpu.c   answer the flow: which process comes to user space; which vCPU is entered
 *     ahead.c                   sideband records that are applied ahead of their time
 *     apply.c                   a sideband record whose time has come
 *     context.c                 which thread runs where, and so which code a flow follows
 *     select.c                  what is not selected (selection.h) is left out
 *     seek.c                    which AUX data is read of a container that is a file
 *     queue.c                   sideband records in the order of time
 *     segments.c                what other threads decode ahead
 *     world.c                   what these can know of whose code comes
 *
 * selection.c, psb_time.c and events.c know nothing of a session.
 *
 * A flow calls back while it is fed: stream.c -> pt_flow_feed() -> address_space.c -> ahead.c -> apply.c ->
 * context.c, which sets the flow's code. A callback that fails leaves its error in the session
 * (pt_session_fail()), and advance.c stops there.
 *
 * Functions that return int without saying more: 0, or -1 and *e.
 */
#ifndef DECODE_SESSION_INTERNAL_H
#define DECODE_SESSION_INTERNAL_H

#include "decode/code/graph.h"
#include "decode/flow/flow.h"
#include "decode/flow/vm_transition.h"
#include "decode/packet/clock.h"
#include "decode/packet/perf_clock.h"
#include "decode/session/events.h"
#include "decode/session/psb_time.h"
#include "decode/session/selection.h"
#include "decode/session/segments.h"
#include "decode/session/session.h"
#include "decode/vm/scan.h"
#include "decode/vm/vm.h"
#include "schema/hash.h"

/* Bits of pt_config in META, which is IA32_RTIT_CTL (SDM vol. 3, "IA32_RTIT_CTL MSR"). */
#define PT_RTIT_CYC_EN	((uint64_t)1 << 1)
#define PT_RTIT_MTC_EN	((uint64_t)1 << 9)
#define PT_RTIT_TSC_EN	((uint64_t)1 << 10)
#define PT_RTIT_DIS_TNT ((uint64_t)1 << 55)

/* AUX data of a stream that has not been fed to its flow. Those of a stream are a list, in order. */
struct piece {
	struct piece *next;
	uint64_t aux_offset;   /* of `at` in the stream */
	uint8_t *at, *end;     /* in bytes */
	bool lost_after;       /* PTC_AUX_TRUNCATED: the AUX buffer was full */
	bool context;	       /* PTC_AUX_CONTEXT: what it says is not reported */
	bool skipped_before;   /* bytes that are not selected were left out before it */
	uint64_t memory_bytes; /* that the piece takes */
	uint8_t *bytes;	       /* headroom for the end of the piece before, then AUX data */
	size_t bytes_room;     /* where they are the reader's chunk; 0: they follow the struct */
};

/*
 * A stream: the AUX data of one CPU, or of one thread. cpu is the host's CPU of the stream, or stands for
 * the one where its thread runs. In VMX non-root operation the stream is at a vCPU of a guest.
 */
struct stream {
	struct stream *next;
	struct session *session;
	uint32_t id;
	struct ptc_stream info;
	struct pt_flow *flow;	   /* owned */
	struct pt_emit_stream out; /* what the flow reports, by who runs */

	struct piece *first, **last;
	struct pt_segment_jobs jobs; /* of the pieces; none without segments of the session */
	/* after the AUX data that was added last; UINT64_MAX: more was lost there, or none */
	uint64_t end_offset;
	struct pt_first_psb first_psb; /* of the AUX data since the last gap */
	/* Up to where its AUX data is decoded: feeding it up to a later time may decode more.
	 * UINT64_MAX: only with more AUX data. TSC ticks. */
	uint64_t decoded_tsc;
	size_t number, due_place; /* in the order of declaration; in due_streams */
	bool begins;		  /* no AUX data was added yet */
	bool reached_begin;	  /* of the time that is selected (select.c) */
	bool alone;		  /* no other thread decodes it ahead */

	struct pt_cpu_context cpu;
	struct pt_cpu_context
	    *cpu_context;     /* where the flow is now: &cpu, or a guest's vCPU (the machine's) */
	uint64_t switch_vmcs; /* the VMCS, when the CPU last switched threads */
};

/* The vCPU that had this VMCS last, and its thread in the host (vcpu.c). */
struct vmcs_owner {
	uint64_t vmcs;
	struct pt_cpu_context *vcpu;
	struct pt_task *task;
	bool nested; /* its vCPU's nested guests have it */
};

#define SEARCH_SETS 256
#define SEARCH_WAYS 4

/*
 * Sideband records in the order of host time. They lie in [first, end) of records, with room on both sides.
 * Records of a guest whose clock is not known yet wait in a list beside it, in the order of arrival.
 */
struct record_queue {
	/* Searches that found nothing: they need not be made again in the same records (queue.c). A cache
	 * of sets: a stream makes a few kinds of searches in turn, so that two must not push out each
	 * other. */
	struct record_search {
		uint64_t key[3];
		uint64_t generation;
		uint64_t searched_tsc; /* none is among the records up to there */
	} searches[SEARCH_SETS][SEARCH_WAYS];
	uint64_t generation;	   /* of the searches that hold */
	uint64_t searched_max_tsc; /* of these */
	struct pt_sideband_record **records;
	size_t first, end, room;
	struct pt_sideband_record *waiting, **waiting_last;
	size_t waiting_count;
	/* What was known of the guests' times when the waiting ones were last looked at (queue.c). */
	uint64_t waiting_known;
	uint64_t arrived; /* records so far: gives each its `order` */
};

/* All streams as a heap by decoded_tsc (due.c); now: those that are due. */
struct due_streams {
	struct stream **heap, **now;
	size_t count, heap_room, now_room;
};

/*
 * What is selected, with `selection` having the VMs' pids. The ends of the selected time stand in the queue
 * as marks, from when begin_known is true. before_begin and after_end say where the records that were
 * applied are.
 */
struct selected {
	bool all; /* nothing below counts */
	struct pt_selection selection;
	bool begin_known, detail_known;
	uint64_t begin_tsc; /* host TSC */
	bool before_begin, after_end;
	struct pt_number_list self; /* pids of pt-capture, which are left out; empty: none */
};

/*
 * While a guest's sideband waits for its clock, or a stream begins in a guest, AUX data is scanned
 * for the guest's TSC and not decoded (guest_clock.c). done: the clocks are as well known as a scan
 * for the sideband can make them, and it was the last such.
 */
struct guest_clock_search {
	struct pt_vm_scan *scan; /* NULL: none is under way */
	uint64_t scanned_bytes;
	bool done;
	struct pt_vm_begin *begins; /* what scans have found */
	size_t begin_count, begin_room;
};

/*
 * A container has rounds (container.h, PTC_ROUND): up to round_tsc its sideband is complete, and its AUX
 * data up to last_round_tsc, the round before. Rounds wait until more AUX data has come after them, which other
 * threads decode meanwhile. clock_changes: the state of the guests' clocks by which the records' times were
 * computed (pt_vm_clocks_changes()).
 */
enum { ROUNDS_WAITING = 64 };
struct progress {
	uint64_t round_tsc, last_round_tsc;
	struct waiting_round {
		uint64_t tsc, aux_bytes; /* of all streams, that have come before it */
	} waiting[ROUNDS_WAITING];
	unsigned waiting_count;
	uint64_t clock_changes;
};

/* Of a stream: the PTC_AUX chunks that are read, by their offsets in the container, inclusive. */
struct seek_part {
	uint32_t stream;
	uint64_t first_offset, last_offset;
};

/* With options.from_psb: what is read (seek.c). part_count 0: all. */
struct seek {
	struct ptc_reader *reader;
	bool planned;
	uint64_t from_tsc, until_tsc;
	struct seek_part *parts;
	size_t part_count, part_room;
};

struct session {
	const struct pt_session_options *options;
	struct pt_session_result *result;
	struct ptc_reader *reader;

	/* The recording: META, and what chunks.c reads from it before the first chunk of another kind
	 * (started). */
	struct ptc_meta *meta;
	uint32_t meta_chunks; /* that meta is of */
	bool started;
	struct pt_perf_clock perf_clock; /* the host's */
	struct pt_clock_config clock;
	bool timeless; /* AUX data or sideband has no time: the order of the container is all that is known */
	bool kernel_traced;   /* the host's */
	uint64_t code_begins; /* how often a process without code has got some */
	/* A sideband record may explain what a stream shows if it is at most this far ahead of the stream's
	 * clock: 1 ms where MTC or CYC packets keep the clock exact, else UINT64_MAX. TSC ticks. */
	uint64_t window_tsc;
	struct pt_sideband_attrs attrs; /* how the records of each perf_event_attr are shaped */
	/* By the number of a perf_event_attr: the machine that recorded with it. */
	struct pt_machine **attr_machines;
	size_t attr_count, attr_room;

	/* What decodes it. All are owned; vm exists once started. */
	struct img_store *store;
	struct pt_graph graph;
	struct pt_machines *machines;
	struct pt_machine *host; /* one of them */
	struct pt_session_events *events;
	struct pt_vcpus vcpus;
	struct pt_vm *vm;
	struct pt_emit emit;
	enum pt_flow_detail detail; /* of what is selected */

	struct pt_thread_pool *pool; /* NULL: there are no other threads */
	/* What they decode ahead; NULL: nothing. stops_arrived: queue.arrived when they were
	 * last given the times at which flows will stop. world_changes: pt_session_world_changes() when they
	 * were last given what is known of the world. */
	struct pt_segments *segments;
	uint64_t stops_arrived, world_changes;
	uint64_t timeless_bytes;  /* of AUX data without time that has come and was not decoded, */
	uint32_t timeless_stream; /* of this stream */

	struct stream *streams, **last_stream; /* last_stream: where the next one goes */
	struct stream **stream_of;	       /* the same, to be found by id */
	size_t stream_count, stream_room;
	struct pt_hash stream_hash; /* numbers of stream_of, from 1 */
	struct due_streams due;
	struct vmcs_owner *vmcs_owners;
	size_t vmcs_owner_count, vmcs_owner_room;
	uint64_t vmcs_owner_changes; /* so far */

	struct record_queue queue;
	struct selected selected;
	struct seek seek;
	struct guest_clock_search guest_clock;
	struct progress progress;

	/* Memory for pieces and for records that were not applied. */
	uint64_t held_bytes, held_bytes_max;

	/* Of a callback. */
	bool failed;
	struct pt_error error;
};

/* A callback has failed with *e. Only the first error is kept. */
static inline void pt_session_fail(struct session *s, const struct pt_error *e)
{
	if (s->failed)
		return;
	s->failed = true;
	s->error = *e;
}

/* ---- queue.c ------------------------------------------------------------------------------------------ */

/*
 * Accounts for bytes that are held from now on; whoever frees them subtracts them from held_bytes.
 * PT_ERR_NO_MEMORY: they would be more than held_bytes_max.
 */
int pt_session_hold_bytes(struct session *s, uint64_t bytes, struct pt_error *e);

/* True if the machine's sideband records cannot be ordered by time: the recording has no time; of a guest also
 * when its recording does not say how its clock follows from the TSC, or --tsc-offset contradicts its TSC
 * packets. */
bool pt_session_is_timeless(const struct session *s, struct pt_machine *m);

/* Puts the record, which becomes the queue's also on failure, at its time; or among the waiting ones while
 * that is not known. PT_ERR_NO_MEMORY. */
int pt_session_queue_add(struct session *s, struct pt_sideband_record *record, struct pt_error *e);

/* Queues the guests' records that were waiting for their clock, if more is known of the clocks than when this
 * was called last. With all, also those whose time is still unknown (at the end of the trace).
 * PT_ERR_NO_MEMORY. */
int pt_session_queue_waiting(struct session *s, bool all, struct pt_error *e);

/* After the guests' clocks have changed: their records in the queue get new times, or wait again.
 * PT_ERR_NO_MEMORY. */
int pt_session_queue_retime(struct session *s, struct pt_error *e);

/* The TSC of the first record; UINT64_MAX if there is none. */
uint64_t pt_session_queue_tsc(const struct session *s);

/* Takes the first record out; there must be one. Free it with pt_session_record_free(). */
struct pt_sideband_record *pt_session_queue_take(struct session *s);

/* Which records pt_session_queue_take_until() takes. Each function gets arg. key: two filters of the
 * same key say the same of each record. */
struct record_filter {
	uint64_t key[3];
	bool (*matches)(const struct pt_sideband_record *record, const void *arg);
	bool (*is_last)(const struct pt_sideband_record *record, const void *arg); /* of records that match */
	/* Of records that match: the search ends before it. NULL: of none. */
	bool (*ends)(const struct pt_sideband_record *record, const void *arg);
	const void *arg;
};

/*
 * Looks for the first record not later than limit_tsc that matches and is_last. Takes it out, and all that
 * match before it. Returns them in order, linked by `next`; NULL if there is no such record, and then the
 * queue is as it was.
 */
struct pt_sideband_record *pt_session_queue_take_until(struct session *s, uint64_t limit_tsc,
						       const struct record_filter *filter);

/* The first record not later than limit_tsc that matches and is_last, which remains in the queue; NULL: there
 * is none. */
const struct pt_sideband_record *pt_session_queue_find(struct session *s, uint64_t limit_tsc,
						       const struct record_filter *filter);

/* Of a record that was taken out. */
void pt_session_record_free(struct session *s, struct pt_sideband_record *record);

/* Frees all records. */
void pt_session_queue_deinit(struct session *s);

/* ---- select.c ----------------------------------------------------------------------------------------- */

/* Once META is complete: the names of --vm become pids. PT_ERR_USAGE: there is no VM of a name. */
int pt_session_select_vms(struct session *s, struct pt_error *e);

/*
 * Whether AUX data of the stream is to be kept: 1 yes, without its first *ret_skip bytes; 0 no; or -1 and
 * *e: PT_ERR_USAGE (--time, but the trace has no time), PT_ERR_NO_MEMORY.
 */
int pt_session_selects_aux(struct session *s, struct stream *st, const struct ptc_aux *aux,
			   uint64_t *ret_skip, struct pt_error *e);

/* Which processes META says are pt-capture itself; called for each META chunk. */
void pt_session_select_self(struct session *s);
/* Sets how closely the stream's flow looks at what runs now, and out.unwanted. */
void pt_session_select_detail(struct stream *st);

/* A mark was reached: the beginning or the end of the selected time. */
void pt_session_select_mark(struct session *s, const struct pt_sideband_record *mark);

/* Whether a sample or switch record is to become an EVENT. */
bool pt_session_selects_event(const struct session *s, const struct pt_sideband_record *record);

/* ---- seek.c ------------------------------------------------------------------------------------------- */

/* r leaves out AUX data that is far from the selected time. */
void pt_session_seek(struct session *s, struct ptc_reader *r);
/* Whether all that is selected has been decoded, so that the rest of the container need not be read. */
bool pt_session_seek_done(const struct session *s);
void pt_session_seek_deinit(struct session *s);

/* ---- context.c ---------------------------------------------------------------------------------------- */

/* The code of what runs on the host's CPU: what the flow follows unless it is in a guest. NULL: as
 * pt_flow_set_code() has it. */
void pt_session_host_code(const struct stream *st, struct pt_code **ret_user, struct pt_code **ret_kernel);

/* Says to the stream's flow and output who runs in it, by cpu_context: which code the flow follows, and
 * which thread, vCPU and machine the records are of. */
void pt_session_update_context(struct stream *st);

/*
 * Thread tid of process pid runs in the context from now on, since tsc (the sideband's time, PTR_NO_TSC
 * unknown). In a stream whose flow is still before the kernel's switch the change waits, as
 * cpu_context->late. PT_ERR_NO_MEMORY.
 */
int pt_session_switch(struct session *s, struct pt_cpu_context *cpu_context, int32_t pid, int32_t tid,
		      uint64_t tsc, struct pt_error *e);

/* By a record the context's switch is over. One that waits is made where the stream's flow had a gap since:
 * it is behind the place. */
void pt_session_switch_over(struct session *s, struct pt_cpu_context *cpu_context);

/* Makes the switch that waits in the context, if there is one. */
void pt_session_switch_late(struct stream *st, struct pt_cpu_context *cpu_context);
/* The stream's flow came past the place where the kernel switches; found: it is known that to the context's
 * task. */
void pt_session_switch_seen(const struct stream *st, struct pt_cpu_context *cpu_context, bool found);
/* The task of the stream's context runs: the flow has seen the switch to it, and what the kernel did since. */
bool pt_session_sees_switches(const struct stream *st);

/* A nested guest runs there, whose code is not that of the machine, which the container has. */
bool pt_session_is_unknown_nested(const struct pt_cpu_context *cpu_context);

/* The context that a switch record is about. NULL: no stream is of that CPU. */
struct pt_cpu_context *pt_session_context_of(struct session *s, const struct pt_sideband_record *record);

/* True if the task (may be NULL) is of a process that has code. */
bool pt_session_has_user_code(const struct pt_task *task);

/* True if the host's record was written by the thread, or on the CPU, that the stream is of. */
bool pt_session_is_of_stream(const struct pt_sideband_record *record, const struct stream *st);

/* ---- apply.c ------------------------------------------------------------------------------------------ */

/* Changes code and threads, and writes events, as the record says. The caller frees it. PT_ERR_NO_MEMORY. */
int pt_session_apply(struct session *s, const struct pt_sideband_record *record, struct pt_error *e);

/* ---- ahead.c ------------------------------------------------------------------------------------------ */

/* All return true if there was such a record. It has been applied then, and those of the same context, or
 * process, before it. */

/* A switch to that process; to that thread; to any that has user code, or an exec of the process that
 * runs. (To user code none, where it is not known what runs: see pt_session_ran_before().) */
bool pt_session_ahead_to_process(struct stream *st, struct pt_cpu_context *cpu_context,
				 const struct pt_process *process);
bool pt_session_ahead_to_task(struct stream *st, struct pt_cpu_context *cpu_context,
			      const struct pt_task *task);
bool pt_session_ahead_to_user_code(struct stream *st, struct pt_cpu_context *cpu_context);
/* An exec of the process that runs. */
bool pt_session_ahead_to_exec(struct stream *st, struct pt_cpu_context *cpu_context);

/* The thread that runs in the context, of which there was no record yet, by the first switch that is to come.
 * NULL: it is not known. */
const struct pt_task *pt_session_ran_before(struct stream *st, const struct pt_cpu_context *cpu_context);

/* CR3 without the PCID, which is no part of the address space. (A kernel with page table isolation enters
 * user space with page tables of their own, whose CR3 is another one of the same process, but always that
 * one.) */
static inline uint64_t pt_session_page_tables(uint64_t cr3)
{
	return cr3 & ~(uint64_t)0xfff;
}

/* Callbacks of struct pt_flow_env; arg is the stream. missing: a mapping of code at ip. switching: the next
 * switch. */
bool pt_session_on_missing(void *arg, struct pt_flow *f, uint64_t ip);
void pt_session_on_switching(void *arg, struct pt_flow *f);

/* ---- address_space.c, vcpu.c: callbacks of struct pt_flow_env; arg is the stream ----------------------- */

void pt_session_on_user(void *arg, struct pt_flow *f);
bool pt_session_user_stays(void *arg, const struct pt_flow *f, uint64_t cr3);
void pt_session_on_side(void *arg, struct pt_flow *f, const struct pt_vm_transition *transition);

/* ---- world.c ------------------------------------------------------------------------------------------ */

/* What is known now. NULL: no memory, and then nothing is expected. */
struct pt_segment_world *pt_session_world(const struct session *s);
void pt_session_world_destroy(struct pt_segment_world *w); /* NULL is fine */
/* The number there of the VM that the thread on the stream's CPU runs; 0: none. */
size_t pt_session_world_guest(const struct stream *st);
/* A number that changes when pt_session_world() would say something else. */
uint64_t pt_session_world_changes(const struct session *s);

/* ---- stream.c ----------------------------------------------------------------------------------------- */

/* NULL: it was not declared. */
struct stream *pt_session_stream(struct session *s, uint32_t id);
/* PT_ERR_BAD_INPUT (it was declared before), PT_ERR_NO_MEMORY. */
int pt_session_stream_add(struct session *s, uint32_t id, const struct ptc_stream *info, struct pt_error *e);
/* Keeps a copy of the AUX data but for its first `skip` bytes. PT_ERR_NO_MEMORY. */
int pt_session_stream_add_aux(struct stream *st, const struct ptc_aux *aux, uint64_t skip,
			      struct pt_error *e);
/* Makes the threads that decode ahead, if the options want any. Once META is complete. Without memory
 * there are none. */
void pt_session_segments_start(struct session *s);
/* Decodes up to the host TSC stop_tsc, or what there is of AUX data. last: no more follows. */
void pt_session_stream_feed(struct stream *st, uint64_t stop_tsc, bool last);
void pt_session_streams_deinit(struct session *s);

/* ---- due.c -------------------------------------------------------------------------------------------- */

/* The stream is new. PT_ERR_NO_MEMORY. */
int pt_session_due_add(struct session *s, struct stream *st, struct pt_error *e);
void pt_session_due_set(struct session *s, struct stream *st, uint64_t decoded_tsc);
/* The streams that are decoded up to a time before stop_tsc, or all, in the order of their
 * declaration. Valid until the next call. */
struct stream *const *pt_session_due(struct session *s, uint64_t stop_tsc, bool all, size_t *ret_count);
void pt_session_due_deinit(struct session *s);

/* ---- guest_clock.c ------------------------------------------------------------------------------------ */

/* Scans AUX data if a guest's clock is wanted, or this begins in a guest. To be called before it becomes the
 * stream's. PT_ERR_NO_MEMORY. */
int pt_session_scan_aux(struct session *s, struct stream *st, const struct ptc_aux *aux, struct pt_error *e);
/* The host TSC of the guest TSC packet with which the stream, or what follows a gap, begins.
 * PT_CLOCK_UNKNOWN: it is none such, or that was not found. */
uint64_t pt_session_begin_tsc(const struct session *s, const struct stream *st, uint64_t guest_tsc);
/* Before decoding. last: no AUX data follows. 1: the scan goes on, do not decode; 0: decode; or -1 and *e:
 * PT_ERR_NO_MEMORY. */
int pt_session_scan_end(struct session *s, bool last, struct pt_error *e);

/* ---- advance.c ---------------------------------------------------------------------------------------- */

/*
 * Decodes up to decode_tsc and applies sideband records up to record_tsc, which is older than all AUX data
 * to come. last: nothing follows. -1: any error of a callback, too.
 */
int pt_session_advance(struct session *s, uint64_t decode_tsc, uint64_t record_tsc, bool last,
		       struct pt_error *e);

/* ---- chunks.c ----------------------------------------------------------------------------------------- */

/* Reads from META what decoding needs, and writes META records. Once, when META is complete; then it does
 * nothing. PT_ERR_USAGE (--vm), PT_ERR_NO_MEMORY, errors of the writer. */
int pt_session_start(struct session *s, struct pt_error *e);
/* All chunks have come: decodes up to the last round. */
int pt_session_end_rounds(struct session *s, struct pt_error *e);
/* PT_ERR_BAD_INPUT or PT_ERR_TRUNCATED: the chunk is damaged. */
int pt_session_take_chunk(struct session *s, const struct ptc_chunk *c, struct pt_error *e);

#endif
