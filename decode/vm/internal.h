/*
 * internal.h - what vm.c (clocks, samples), exits.c (stays and round trips) and host.c (what the host did in a round
 * trip) share; vm.h is the contract.
 */
#ifndef DECODE_VM_INTERNAL_H
#define DECODE_VM_INTERNAL_H

#include "decode/vm/vm.h"
#include "decode/vm/kvm.h"

/* What the host's own trace tells of a round trip. */
struct pt_vm_host {
	bool found;	   /* a handler */
	bool interrupt;	   /* an interrupt was handed on; its entry comes next */
	bool in_handler;   /* depth counts frames under it */
	bool in_user;	   /* the VM process's own code runs, since user_tsc */
	bool halt, blocks; /* kvm_vcpu_halt() was called; kvm_vcpu_block() was */
	uint32_t checks;   /* calls of kvm_vcpu_check_block() before another thread ran */
	int64_t depth, deepest_depth;
	struct img_space *space;
	uint64_t handler_ip, deepest_ip;
	uint64_t user_tsc;
};

enum pt_vm_place { PT_VM_NOWHERE, PT_VM_IN_GUEST, PT_VM_IN_HOST };

/* A VM's thread, by the host's task; by the VMCS when that is not known. */
struct pt_vm_cpu {
	struct pt_vm_cpu *next;
	const struct pt_task *task;
	uint64_t vmcs; /* of the last transition */
	bool used;     /* and it is told in uses */
	struct pt_machine *machine;
	int32_t vcpu;
	enum pt_vm_place place;
	struct pt_vm_stream *on; /* where it runs; NULL: on no CPU */

	struct ptr_guest_run run; /* in the guest; or over, and held until its exit's uncertainty is known */
	bool run_open, run_held;
	uint64_t run_insns, run_cycles; /* the stream's at the entry */

	struct ptr_vmexit vmexit; /* in the host */
	bool vmexit_open;
	struct ptr_vmexit held; /* over, and held for the number of the stay behind it */
	bool has_held;
	struct pt_vm_host host;
	uint64_t host_insns, host_cycles; /* the stream's when it came on */
	uint64_t off_tsc;		  /* when it went off its CPU; PTR_NO_TSC: it is on, or unknown */
	bool left;			  /* it goes off its CPU, at left_tsc, and nobody knows for whom */
	uint64_t left_tsc;
	bool no_image;	  /* instructions since the last transition are not all counted */
	bool uncounted;	  /* nor are cycles */
	bool nested_next; /* KVM is about to enter a nested guest */
	bool nested;	  /* the last entry was into one */

	struct pt_vm_exit_sample early; /* a sample of an exit that was not decoded yet */
	bool has_early;
	uint64_t injected; /* for the next entry, PTR_UNKNOWN */
};

struct pt_vm_stream {
	struct pt_vm_stream *next;
	struct pt_emit_stream *s;
	const struct pt_flow *flow;
	struct pt_vm_cpu *cpu;		 /* that runs on it, in host or guest; NULL: none that is known */
	uint64_t branch;		 /* id of the last branch, 0 none */
	uint64_t *uncertainty;		 /* of the last transition: not known yet. NULL: nothing waits */
	uint64_t waiting_tsc, reach_tsc; /* the transition's; the time that it may have had by its cycles */
	bool in_gap;
	/* Event Trace, of the exit that comes: PTR_UNKNOWN */
	uint64_t reason, qualification, vector;
	bool exit_reported;
};

struct pt_vm_role {	  /* of an edge */
	uint8_t what;	  /* enum pt_vm_step; 0 not asked yet */
	uint8_t function; /* pt_kvm_find() of its target */
	uint8_t begins;	  /* its target is a function's first instruction */
};

struct pt_vm {
	struct pt_emit *emit;
	const struct pt_vcpus *vcpus;
	struct pt_vm_clocks *clocks;
	struct pt_vm_owner { /* of a VMCS */
		uint64_t vmcs;
		int32_t pid;
	} * owners;
	size_t owner_count;
	struct pt_vm_use { /* of a VMCS: whose it was from from_tsc on (0: from its first entry) */
		uint64_t vmcs, from_tsc;
		const struct pt_vm_cpu *cpu;
	} * uses; /* in the order of time */
	size_t use_count;
	struct pt_vm_write { /* the last one that KVM made of a vCPU's TSC offset */
		int32_t pid, vcpu;
		int64_t offset;
	} * writes;
	size_t write_count;
	struct pt_vm_cpu *cpus;
	struct pt_vm_stream *streams;
	struct pt_vm_role *roles; /* of the graph's edges */
	uint32_t role_count;
	uint32_t edge_count; /* of the graph, at the last run: fewer now means that it has forgotten them */
};

/* vm.c */
struct pt_vm_stream *pt_vm_stream_of(struct pt_vm *vm,
				     struct pt_emit_stream *s); /* NULL: no memory, emit has failed */
void pt_vm_no_memory(struct pt_vm *vm);
/* The clock has come to `now`: the transition that waits lies before. */
void pt_vm_pass(struct pt_vm_stream *st, uint64_t now);
/* By the cycles since the last timing packet, though the MTC that should have come by then is still to come: the clock
 * does not go past it. */
uint64_t pt_vm_reach(const struct pt_clock *c);

/* exits.c */
void pt_vm_transition(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f,
		      const struct pt_vm_transition *t);
void pt_vm_switched(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f);
void pt_vm_moved(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f,
		 const struct pt_task *task, bool left, uint64_t tsc);
void pt_vm_gap(struct pt_vm *vm, struct pt_vm_stream *st);
void pt_vm_close_all(struct pt_vm *vm);
/* The VMCS is c's from tsc on: it takes it from who had it before. */
void pt_vm_use(struct pt_vm *vm, uint64_t vmcs, struct pt_vm_cpu *c, uint64_t tsc);
struct pt_vm_cpu *pt_vm_cpu_by_tid(struct pt_vm *vm, int32_t tid);
/* Gives the trip the sample's reason, when it is its: false when it is another's. */
bool pt_vmexit_sample(struct ptr_vmexit *vmexit, const struct pt_vm_exit_sample *sample);

/* host.c */
void pt_vm_host_begin(struct pt_vm_host *h);
void pt_vm_host_path(struct pt_vm *vm, struct pt_vm_cpu *c, const struct pt_path *path,
		     const struct pt_flow_run *run);
/* The thread has left the CPU, or the trip is over: fills what the host's trace told. */
void pt_vm_host_pause(struct pt_vm_cpu *c, uint64_t tsc);
void pt_vm_host_end(struct pt_vm *vm, struct pt_vm_cpu *c);

#endif
