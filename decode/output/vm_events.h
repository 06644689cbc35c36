/*
 * vm_events.h - what streams show of virtual machines, for the part that keeps their clocks, runs and
 * exits (vm/vm.h).
 *
 * VM entries and exits are those that flows report (flow/vm_transition.h). Where the transition
 * itself was not seen, gap() is called instead.
 */
#ifndef DECODE_OUTPUT_VM_EVENTS_H
#define DECODE_OUTPUT_VM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct pt_emit_stream;
struct pt_flow;
struct pt_tsc_packet;
struct pt_flow_run;
struct pt_machine;
struct pt_task;
struct pt_vm_transition;

/*
 * Any of them may be NULL. A transition comes after the last run and the end of the slice that it
 * ended, before that of the other side begins; the stream (machine, task, vcpu) is the guest's at
 * entries and exits alike.
 */
struct pt_vm_events {
	void (*transition)(void *arg, struct pt_emit_stream *s, const struct pt_flow *f,
			   const struct pt_vm_transition *t);
	/* n > 0 runs of branches of the host or a guest (s->machine), while s->runs_wanted, which
	 * whoever is called here sets and clears. */
	void (*runs)(void *arg, struct pt_emit_stream *s, const struct pt_flow_run *runs, uint32_t n);
	/* Whether runs() would do anything but clear that: it need not be called else. */
	bool (*reads_runs)(const void *arg, const struct pt_emit_stream *s);
	/* The graph has been recycled, or is about to be: numbers of edges mean others from now on. */
	void (*recycled)(void *arg);
	/* Something was not seen: the side may be another one, and what was pending may be over. */
	void (*gap)(void *arg, struct pt_emit_stream *s, const struct pt_flow *f);
	/* Code is missing: transitions are still reported, but what is executed is not counted until
	 * the next one. */
	void (*no_image)(void *arg, struct pt_emit_stream *s, const struct pt_flow *f);
	/* Event Trace: a CFE packet's type and vector, an EVD's type and payload. */
	void (*event_trace)(void *arg, struct pt_emit_stream *s, bool is_cfe, uint32_t type, uint64_t value);
	/* Another host thread runs on the stream's CPU from now on (s->host_task). tsc: the time that the
	 * sideband has of it, PTR_NO_TSC unknown. */
	void (*switched)(void *arg, struct pt_emit_stream *s, const struct pt_flow *f, uint64_t tsc);
	/*
	 * Where threads are traced, not CPUs: the host's thread has come onto the stream's CPU at
	 * tsc, or (left) leaves it to an unknown thread. PTR_NO_TSC: unknown. Called before what that
	 * switches.
	 */
	void (*moved)(void *arg, struct pt_emit_stream *s, const struct pt_flow *f,
		      const struct pt_task *task, bool left, uint64_t tsc);
	/* Whether the guest that is entered by the VMCS, or is there when the flow begins, is a nested one.
	 * Asked before transition(). */
	bool (*nested)(void *arg, struct pt_emit_stream *s, uint64_t vmcs);
	/* A TSC packet in a guest: the host TSC of it, or PT_CLOCK_UNKNOWN when that is not known
	 * (the packet is ignored then). The flow's clock is that before the packet. */
	uint64_t (*host_tsc)(void *arg, struct pt_emit_stream *s, struct pt_flow *f,
			     const struct pt_tsc_packet *packet);
	/* A TSC packet in the host: its TSC, 64 bits. */
	void (*host_tsc_seen)(void *arg, struct pt_emit_stream *s, uint64_t tsc);
	/*
	 * The host TSC of a record that the guest's vCPU wrote at guest_tsc (PTR_NO_TSC: unknown),
	 * the one before it at the host TSC after_tsc (0 unknown): true and *ret, or false while it
	 * is not known. It is asked again after every VM entry.
	 */
	bool (*host_time)(void *arg, struct pt_machine *machine, int32_t vcpu, uint64_t guest_tsc,
			  uint64_t after_tsc, uint64_t *ret);
};

#endif
