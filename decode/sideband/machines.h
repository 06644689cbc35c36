/*
 * machines.h - the host and its virtual machines: each with its kernel, its threads, and its CPUs' seats.
 *
 * A machine is told by the pid of its VM process in the host, 0 for the host itself. Its kernel's code is one space that
 * all its processes see at addresses of the upper half. A seat is a CPU of a machine: the host's CPU that a stream
 * is of, or a guest's vCPU.
 */
#ifndef DECODE_SIDEBAND_MACHINES_H
#define DECODE_SIDEBAND_MACHINES_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/unknown_process.h"
#include "decode/sideband/tasks.h"

struct pt_cpu_context {
	struct pt_machine *machine;
	int32_t index;		/* the CPU's or vCPU's number, -1 unknown */
	struct pt_task *task;	/* who runs there as the sideband says; NULL unknown */
	struct pt_task *before; /* who ran before that */
	/* who is switched to, when the flow comes to where the kernel does; NULL nobody */
	struct pt_task *late;
	struct pt_task unknown; /* stands for a guest's thread that is not known */
	uint64_t user_cr3;	/* at the last time that it came to user space, 0: none yet */
	uint32_t switches;	/* applied since then */
	uint64_t queued_tsc,
	    applied_tsc; /* of a guest's: host TSC of its last record that has one, that was applied; 0 none */
	struct pt_cpu_context *next;
};

struct pt_address_space { /* a CR3 that was seen with a process */
	uint64_t cr3;
	struct pt_process *process;	/* NULL: only doubts */
	const struct pt_process *doubt; /* another one that the sideband says it is, so many times in a row */
	uint32_t doubts;
};

struct pt_machine {
	int32_t pid;		/* 0: the host */
	char name[160];		/* "host", or the VM's: no two have the same */
	uint32_t number;	/* of its record, 0 not written yet (output/emit.c) */
	struct img_space space; /* the kernel's */
	struct pt_code *code;
	struct pt_tasks *tasks;
	struct pt_cpu_context *cpu_contexts; /* of a guest's vCPUs */
	struct pt_address_space *spaces;
	uint32_t space_count, space_room;
	bool images;	   /* the container has code of it */
	bool timeless;	   /* a guest's, when nobody knows which of its processes runs */
	bool contradicted; /* a guest's: --tsc-offset is not its clock, so its sideband has no time */
	struct pt_unknown_process unknown_process; /* what is sure nevertheless */
	struct pt_machine *next;
};

struct pt_machines;

/* meta: VMs' names, machine.PID.name; a VM without one is "vm PID". It must outlive this; NULL: no names. NULL: no memory. */
struct pt_machines *pt_machines_create(struct img_store *store, struct pt_graph *graph,
				       const struct ptc_meta *meta);
void pt_machines_destroy(struct pt_machines *m);
/* The machine, made when it is new; pid 0 is the host. NULL: no memory. */
struct pt_machine *pt_machine_get(struct pt_machines *m, int32_t pid);
/* A guest's vCPU, made when it is new. NULL: no memory. */
struct pt_cpu_context *pt_machine_cpu_context(struct pt_machine *m, int32_t vcpu);
void pt_cpu_context_init(struct pt_cpu_context *cpu_context, struct pt_machine *m, int32_t index);

/*
 * CR3 (without PCID) to the process that runs with it, NULL not known; and learning it. A process has one CR3 in user space,
 * until an exec gives it another: learning takes it out of `fresh`, and puts the process that had the CR3 back.
 */
struct pt_process *pt_machine_process(const struct pt_machine *m, uint64_t cr3);
void pt_machine_learn(struct pt_machine *m, uint64_t cr3, struct pt_process *process);
/* The sideband says `process`, what was learnt says another (of this CR3, or of this process): how often in a row it has now, as
 * far as is remembered. again: it is still the same time. process NULL: they agree. */
uint32_t pt_machine_doubt(struct pt_machine *m, uint64_t cr3, const struct pt_process *process, bool again);
/* The process has gone: its page tables may become another's. */
void pt_machine_forget(struct pt_machine *m, const struct pt_process *process);

/* The first machine; its `next` leads on. */
struct pt_machine *pt_machines_first(struct pt_machines *m);

#endif
