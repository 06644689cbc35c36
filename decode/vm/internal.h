/*
 * internal.h - what the sources of vm.h's contract share:
 *
 * - vm.c: the object; what streams show, handed on to the others.
 * - exits.c: guest runs and VM exit intervals, from their beginning to their record.
 * - schedule.c: a vCPU's thread leaves its CPU and comes back, in a VM exit interval.
 * - host.c: what the host did in a VM exit interval.
 * - nested.c: which VMCSs are nested guests'.
 * - samples.c: what Event Trace and KVM's tracepoints say about a VM exit or entry.
 * - vmcs.c: which vCPU a VMCS belongs to, and so which clock a guest has.
 */
#ifndef DECODE_VM_INTERNAL_H
#define DECODE_VM_INTERNAL_H

#include "decode/flow/flow.h"
#include "decode/flow/vm_transition.h"
#include "decode/sideband/machines.h"
#include "decode/vm/kvm.h"
#include "decode/vm/vm.h"

struct pt_vm_stream;

/* ---- A vCPU ----------------------------------------------------------------------------------------- */

/* What the host's trace shows in a VM exit interval: its functions (kvm.h). */
struct pt_vm_host {
	struct {
		bool found;    /* KVM has called one: it says the reason */
		bool on_stack; /* it has not returned: depth counts frames under it */
		struct img_space *space;
		uint64_t ip, deepest_ip;
		int64_t depth, deepest_depth;
	} handler;
	bool interrupt; /* an interrupt was handed on; its entry comes next */
	/* A nested guest was left at an instruction that always exits (exit_instruction.h), and KVM called no
	 * handler, but handed the exit to the nested guest's hypervisor. */
	struct {
		uint64_t reason, next_ip; /* next_ip 0: it was not at one */
		bool handed;
	} instruction;
	bool wrote_tsc;	   /* KVM has written the vCPU's TSC offset */
	bool nested_enter; /* KVM has made ready to enter a nested guest, which may not have run yet */
	struct {
		bool called, blocks; /* kvm_vcpu_halt() was called; kvm_vcpu_block() was */
		uint32_t checks;     /* calls of kvm_vcpu_check_block() before another thread ran */
	} halt;
	struct {
		bool inside; /* the VM process's own code runs */
		uint64_t since_tsc;
	} user;
};

/* The intervals of a vCPU are written late: a guest run when the uncertainty of its exit is known; a VM exit
 * after the guest run that follows, whose number it has. */
struct pt_vm_run_interval {
	struct ptr_guest_run record;
	bool open;			    /* the vCPU is in it */
	bool ended;			    /* and it is still to be written */
	uint64_t entry_insns, entry_cycles; /* the stream's at the entry */
};

struct pt_vm_exit_interval {
	struct ptr_vmexit record; /* the vCPU is in it when open */
	bool open;
	struct ptr_vmexit last; /* the one before, still to be written when last_ended */
	bool last_ended;
	/* One that KVM handed to the nested guest's hypervisor waits for the nested guest's next entry: at
	 * next_ip, the instruction was what exited, for it was done. next_ip 0: none waits. */
	struct pt_vm_handed_exit {
		struct ptr_vmexit record;
		uint64_t reason, next_ip;
	} handed;
	uint64_t last_reason, last_next_ip; /* of `last`, which may become `handed`; 0 */
};

/* Its thread's time on and off CPUs, in a VM exit interval. */
struct pt_vm_cpu_time {
	uint64_t insns, cycles; /* the stream's when it came on: what comes after is its own */
	uint64_t off_tsc;	/* when it went off; PTR_NO_TSC: it is on, or unknown */
	bool leaving;		/* it leaves its CPU at leaving_tsc; who follows is unknown */
	uint64_t leaving_tsc;
};

enum pt_vm_place { PT_VM_NOWHERE, PT_VM_IN_GUEST, PT_VM_IN_HOST };

struct pt_vm_vcpu {
	struct pt_vm_vcpu *next;
	const struct pt_task *task;  /* the host's thread that runs it; NULL unknown: it is known by vmcs */
	struct pt_machine *machine;  /* the guest, NULL unknown */
	int32_t number;		     /* -1 unknown */
	uint64_t vmcs;		     /* of the last transition */
	bool vmcs_used;		     /* pt_vm.uses has it */
	enum pt_vm_place place;	     /* NOWHERE: unknown */
	struct pt_vm_stream *stream; /* of the CPU where it runs; NULL: on none */
	struct pt_vm_run_interval run;
	struct pt_vm_exit_interval exit;
	struct pt_vm_host host;
	struct pt_vm_cpu_time on_cpu;
	struct {
		bool insns, cycles; /* since the last transition, not all were counted */
	} uncounted;
	struct {
		bool now;  /* the last entry was into a nested guest */
		bool next; /* the next entry will be */
		/* Of its nested guests: KVM has one for all of a vCPU's. PT_VMCS_UNKNOWN: none was seen. */
		uint64_t vmcs;
	} nested;
	struct {
		bool any;
		struct pt_vm_exit_sample sample;
	} early;	   /* of an exit that is still to be decoded */
	uint64_t injected; /* by the next entry; PTR_UNKNOWN */
};

/* ---- A stream --------------------------------------------------------------------------------------- */

struct pt_vm_stream {
	struct pt_vm_stream *next;
	struct pt_emit_stream *s;
	const struct pt_flow *flow; /* NULL before the first transition */
	struct pt_vm_vcpu *vcpu;    /* that runs on its CPU, in host or guest; NULL: none that is known */
	struct {
		uint64_t *uncertainty; /* in a record of a vCPU; NULL: none waits */
		uint64_t tsc;	       /* the transition's */
		uint64_t cycles_tsc;   /* the latest time that it may have had, by its cycles */
	} waiting;		       /* for the next timing packet: the last transition's uncertainty */
	bool in_gap;
	/* A TSC packet in a guest of which only bounds of the host TSC are known: the last TSC packet in the
	 * host before it, and the next one. */
	struct {
		uint64_t host_tsc; /* the last; PT_CLOCK_UNKNOWN */
		bool open;	   /* the next one is waited for */
		uint64_t vmcs, guest_tsc, host_lo;
	} bounds;
	struct {
		bool exit;				/* a CFE packet has reported it */
		uint64_t reason, qualification, vector; /* PTR_UNKNOWN */
	} event_trace;					/* of the VM exit that comes next */
};

/* ---- The machine ------------------------------------------------------------------------------------ */

/* What an edge of the graph means to host.c. */
struct pt_vm_role {
	uint8_t step;	  /* enum step; 0 not asked yet */
	uint8_t function; /* pt_kvm_find() of its target */
	uint8_t begins;	  /* its target is a function's first instruction */
};

struct pt_vm {
	struct pt_emit *emit;
	const struct pt_vcpus *vcpus; /* that META knows */
	struct pt_vm_clocks *clocks;
	/* What bounds say (struct pt_vm_stream), of a VMCS of which nothing better is known: too uncertain to
	 * give anything a time. */
	struct pt_vm_clocks *bounded_clocks;
	struct pt_vm_vcpu *vcpu_list;
	struct pt_vm_stream *streams;
	struct {
		uint64_t exit_tsc, entry_tsc; /* both 0: there is none */
	} slowest;			      /* of the VM exits whose latency is known, the first such */
	struct {
		struct pt_vm_role *items; /* by edge number */
		uint32_t count;
	} roles;
	/* vmcs.c's. */
	struct {
		struct pt_vm_owner {
			uint64_t vmcs;
			int32_t pid; /* of the VM process */
		} * items;
		size_t count, room;
	} owners; /* known before the decode */
	struct {
		struct pt_vm_use {
			uint64_t vmcs, from_tsc; /* 0: since its first entry */
			const struct pt_vm_vcpu *vcpu;
		} * items;
		size_t count, room;
	} uses; /* of VMCSs by vCPUs, in the order of time */
	struct {
		struct pt_vm_write {
			int32_t pid, vcpu;
			int64_t offset;
		} * items;
		size_t count, room;
	} writes;	       /* the last one by KVM of each vCPU's TSC offset */
	uint64_t vmcs_changes; /* how often it became known, or changed, whose a VMCS is */
};

/* PT_CLOCK_UNKNOWN is PTR_NO_TSC in records. */
static inline uint64_t pt_vm_record_tsc(uint64_t tsc)
{
	return tsc == PT_CLOCK_UNKNOWN ? PTR_NO_TSC : tsc;
}

/* vm.c */
void pt_vm_no_memory(struct pt_vm *vm);
/* The thread's record number, 0 for NULL. Its name may change: to be called when a record is written. */
uint32_t pt_vm_thread_number(struct pt_vm *vm, const struct pt_task *task);

/* exits.c */
void pt_vm_transition(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f,
		      const struct pt_vm_transition *t);
/* The stream's clock has come to now_tsc: the transition that waits lies before that. */
void pt_vm_settle_uncertainty(struct pt_vm_stream *st, uint64_t now_tsc);
void pt_vm_gap(struct pt_vm *vm, struct pt_vm_stream *st);
void pt_vm_close_all(struct pt_vm *vm);

/* schedule.c */
/* The vCPU's thread comes on the stream's CPU, of which these are the counts. */
void pt_vm_come_on(struct pt_vm_vcpu *vcpu, struct pt_vm_stream *st, uint64_t insns, uint64_t cycles);
/* What the thread has executed in the host up to these counts of its stream is the VM exit's. */
void pt_vm_count_host(struct pt_vm_vcpu *vcpu, uint64_t insns, uint64_t cycles, bool has_cyc);
/* pt_vm_events' switched() and moved(). */
void pt_vm_switched(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f, uint64_t tsc);
void pt_vm_moved(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f,
		 const struct pt_task *task, bool left, uint64_t tsc);

/* host.c */
void pt_vm_host_path(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, const struct pt_path *path,
		     const struct pt_flow_run *run);
/* The thread leaves its CPU, or enters the guest. */
void pt_vm_host_pause(struct pt_vm_vcpu *vcpu, uint64_t tsc);
/* The interval is over: its record gets the handler. */
void pt_vm_host_end(struct pt_vm *vm, struct pt_vm_vcpu *vcpu);
/* Edges' roles are asked anew after the graph was recycled. */
void pt_vm_host_recycled(struct pt_vm *vm);

/* nested.c */
/* KVM's functions show that the guest that was left, in a VM exit interval that is open, is a nested one. */
void pt_vm_left_nested(struct pt_vm *vm, struct pt_vm_vcpu *vcpu);
/* The vCPU enters a guest by that VMCS (PT_VMCS_UNKNOWN: which one is not known): whether it is a nested one,
 * by KVM's functions since the exit; where none are seen, as it was. */
bool pt_vm_enters_nested(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, uint64_t vmcs);
/* Whether nested guests have the VMCS. */
bool pt_vm_is_nested(const struct pt_vm *vm, uint64_t vmcs);

/* samples.c */
void pt_vm_event_trace(struct pt_vm_stream *st, bool is_cfe, uint32_t type, uint64_t value);
void pt_vm_event_trace_reset(struct pt_vm_stream *st);
/* The VM exit that begins gets what is known of its reason already. */
void pt_vm_apply_reasons(struct pt_vm_vcpu *vcpu, const struct pt_vm_stream *st);

/* vmcs.c */
/* It is that machine's vCPU of that number. */
void pt_vm_identify(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, struct pt_machine *machine, int32_t number);
/* The VMCS is the vCPU's from tsc on: it takes it from the one that had it before. */
void pt_vm_use_vmcs(struct pt_vm *vm, uint64_t vmcs, struct pt_vm_vcpu *vcpu, uint64_t tsc);
/* The clock of the VMCS, which the host's thread (NULL: unknown) runs a vCPU with. NULL: no memory. */
struct pt_vm_clock *pt_vm_clock_of(struct pt_vm *vm, const struct pt_task *thread, uint64_t vmcs);
/* pt_vm_events' host_tsc() and host_time(). */
uint64_t pt_vm_host_tsc(struct pt_vm *vm, struct pt_vm_stream *st, struct pt_flow *f,
			const struct pt_tsc_packet *packet);
bool pt_vm_host_time(void *arg, struct pt_machine *machine, int32_t vcpu, uint64_t guest_tsc,
		     uint64_t after_tsc, uint64_t *ret);
/* pt_vm_events' host_tsc_seen(). */
void pt_vm_host_tsc_seen(struct pt_vm *vm, struct pt_vm_stream *st, uint64_t tsc);
/* KVM has written the vCPU's TSC offset at tsc. Of a VM exit's several reports the first counts. */
void pt_vm_wrote_tsc(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, uint64_t tsc);
/* Writes the VM_CLOCK records of all clocks. */
void pt_vm_put_clocks(struct pt_vm *vm);

#endif
