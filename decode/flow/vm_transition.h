/*
 * vm_transition.h - what a stream tells of virtual machines, for whoever keeps their clocks, runs and exits (vm*.h).
 *
 * A stream is in the host or in a guest. It enters with the TIP of a VMLAUNCH or VMRESUME, and leaves with FUP, PIP
 * (NR = 0), TIP (SDM, "Packet generation scenarios", VM entry and VM exit). Each is told here once, in order; where
 * the transition itself was not seen (an overflow, lost data, a PSB+ that says another side) gap() is told instead.
 */
#ifndef DECODE_FLOW_VM_TRANSITION_H
#define DECODE_FLOW_VM_TRANSITION_H

#include <stdbool.h>
#include <stdint.h>

struct pt_emit_stream;
struct pt_machine;
struct pt_flow;
struct pt_flow_run;
struct pt_path;
struct pt_task;

struct pt_vm_transition {
	bool entry;   /* false: an exit */
	bool no_code; /* an exit: there is no code where it was left, so it may have gone round to there */
	/* VMX controls keep the guest out of the trace: s->machine stays the host. An exit: host_ip is where tracing began again */
	bool concealed;
	uint64_t tsc;	   /* host TSC at the last timing packet before: it is not older. PT_CLOCK_UNKNOWN */
	uint64_t guest_ip; /* where the guest begins (entry) or was left (exit); 0: not traced or not known */
	uint64_t host_ip; /* the VMLAUNCH or VMRESUME (entry); where the host goes on (exit); 0: not traced */
	uint64_t vmcs;	  /* address of the VMCS, PT_VMCS_UNKNOWN before the first VMCS packet */
	uint64_t cr3;	  /* the guest's, as PIP has it; 0 unknown */
	uint64_t insns;	  /* executed by the stream so far, host and guest */
	uint64_t cycles;  /* core cycles so far (sum of CYC packets); meaningless unless has_cyc */
	bool has_cyc;
};

#define PT_VMCS_UNKNOWN UINT64_MAX

/* Any of them may be NULL. A transition comes behind the last run and the end of the slice that it ended, before the
 * begin of the other side's; the stream (machine, task, vcpu) is the guest's at entries and exits alike. */
struct pt_vm_events {
	void (*transition)(void *arg, struct pt_emit_stream *s, struct pt_flow *f,
			   const struct pt_vm_transition *t);
	/* n > 0 runs of branches of the host or a guest (s->machine says whose), record numbers from `number` on. */
	void (*runs)(void *arg, struct pt_emit_stream *s, const struct pt_flow_run *runs, uint32_t n,
		     uint64_t number);
	/* Something was not seen; the side and all that was pending is not known to go on. */
	void (*gap)(void *arg, struct pt_emit_stream *s, struct pt_flow *f);
	/* Code is missing: transitions are still told, but what is executed is not counted until the next one. */
	void (*no_image)(void *arg, struct pt_emit_stream *s, struct pt_flow *f);
	/* Event Trace: a CFE packet's type and vector, an EVD's type and payload. */
	void (*event_trace)(void *arg, struct pt_emit_stream *s, bool is_cfe, uint32_t type, uint64_t value);
	/* Another host thread runs on the stream's CPU from now on (s->host_task). */
	void (*switched)(void *arg, struct pt_emit_stream *s, struct pt_flow *f);
	/* Where threads are traced, not CPUs: the host's thread has come onto the stream's CPU at tsc, or (left) leaves it to nobody
	 * knows whom. PTR_NO_TSC: unknown. Told before what that switches. */
	void (*moved)(void *arg, struct pt_emit_stream *s, struct pt_flow *f, const struct pt_task *task,
		      bool left, uint64_t tsc);
	/* A TSC packet in a guest: the host TSC of it, or PT_CLOCK_UNKNOWN when that is not known (the packet is
	 * ignored then). f->clock stands before the packet. */
	uint64_t (*host_tsc)(void *arg, struct pt_emit_stream *s, struct pt_flow *f, uint64_t guest_tsc);
	/* The host TSC of a record that the guest's vCPU wrote at guest_tsc (PTR_NO_TSC: unknown), the one before it at the host
	 * TSC after_tsc (0 unknown): true and *ret, or false while it is not known. It is asked again after every VM entry. */
	bool (*host_time)(void *arg, struct pt_machine *machine, int32_t vcpu, uint64_t guest_tsc,
			  uint64_t after_tsc, uint64_t *ret);
};

#endif
