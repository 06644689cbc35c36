/*
 * machines.h - the host and its virtual machines: each with its kernel, its processes and threads, and what
 * its CPUs run.
 *
 * A machine is identified by the pid of its VM process in the host, 0 for the host itself, -1 for VMs of which
 * no process is known. Its kernel's
 * code is one space, which all its processes see in the upper half of their addresses.
 */
#ifndef DECODE_SIDEBAND_MACHINES_H
#define DECODE_SIDEBAND_MACHINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/unknown_process.h"
#include "decode/sideband/record.h"
#include "decode/sideband/tasks.h"

/* What a CPU of a machine runs: the host's CPU that a stream is of, or a guest's vCPU. */
struct pt_cpu_context {
	struct pt_machine *machine;
	int32_t index;		/* the CPU's or vCPU's number, -1 unknown */
	struct pt_task *task;	/* that runs there as the sideband says; NULL unknown */
	struct pt_task *before; /* that ran before */
	/* Runs there once the flow comes to where the kernel switches threads; NULL: no switch is due. */
	struct pt_task *late;
	uint64_t late_tsc;	/* when, as the sideband says; PTR_NO_TSC unknown */
	uint64_t late_gaps;	/* how many gaps in the kernel its stream had then */
	bool switching;		/* by the sideband the last switch has begun, but is not over */
	bool own_events;	/* each thread that is recorded there has events of its own */
	bool left;		/* the thread that runs there has left it; */
	uint64_t ended_tsc;	/* when its event was off, and its part of the trace over; 0 it is not */
	struct pt_task unknown; /* stands for a guest's thread that is not known */
	uint64_t user_cr3;	/* when it entered user space last, 0: not yet */
	uint32_t switches;	/* applied since then */
	/* A flow came past the kernel's switch to the task, when there had been so many gaps: in its stream; of
	 * a guest's, which may go from CPU to CPU, in all. */
	bool switch_seen;
	uint64_t seen_gaps;
	/* Of a vCPU: what pt_cpu_context_nested() made, NULL nothing yet; and whether this is that. */
	struct pt_cpu_context *nested_guest;
	bool nested;
	/* Of a guest's: the host TSC of its last record that has one, when queued and when applied; 0
	 * none. */
	uint64_t queued_tsc, applied_tsc;
	struct pt_cpu_context *next;
};

struct pt_machine {
	int32_t pid;	 /* 0: the host */
	char name[160];	 /* "host", or the VM's: no two have the same */
	uint32_t number; /* of its record, 0 not written yet (output/emit.c) */
	struct pt_graph *graph;
	struct img_space space; /* the kernel's */
	struct pt_code *code;	/* the kernel's */
	struct pt_tasks *tasks;
	struct pt_cpu_context *cpu_contexts; /* of a guest's vCPUs */
	struct img_space nested_space;	     /* of its nested guests: empty */
	struct pt_code *nested_code;	     /* over it; NULL: there was none */
	bool recorded; /* a record of a process, with a time, was applied: its events count */
	struct pt_page_tables *page_tables; /* which process each CR3 is of */
	size_t page_table_count, page_table_room;
	uint64_t learnt;    /* how often that has changed */
	bool images;	    /* the container has code of it */
	bool timeless;	    /* a guest's: its sideband has no time, so who runs is not known */
	bool timeless_said; /* by an error */
	/* Of timeless: what was patched in its kernel's code, and is not known for it. */
	struct pt_patched {
		uint64_t start, end;
	} * patched;
	size_t patched_count, patched_room;
	bool contradicted; /* a guest's: --tsc-offset is not its clock, so its sideband has no time */
	struct pt_unknown_process unknown_process; /* code that is known nevertheless */
	/* A guest's clock, by META (session/queue.c). */
	struct {
		uint64_t chunks; /* that META was of, + 1; 0: not read yet */
		uint64_t zero;	 /* as in packet/perf_clock.h */
		uint32_t mult, shift;
		uint64_t offset_ns; /* that it is behind the host's; UINT64_MAX not known */
	} meta_clock;
	struct pt_machine *next;
};

struct pt_machines;

/*
 * store, graph and meta (which may be NULL) must outlive it. META has VMs' names, machine.PID.name; a VM
 * without one is called "vm PID", that of pid -1 "unknown VM". The host is there from the start. NULL: no
 * memory.
 */
struct pt_machines *pt_machines_create(struct img_store *store, struct pt_graph *graph,
				       const struct ptc_meta *meta);
void pt_machines_destroy(struct pt_machines *m);
/* The first machine; its `next` leads on. */
struct pt_machine *pt_machines_first(struct pt_machines *m);
/* The machine, made when it is new; pid 0 is the host. NULL: no memory. */
struct pt_machine *pt_machine_get(struct pt_machines *m, int32_t pid);

/* A guest's vCPU, made when it is new. NULL: no memory. */
struct pt_cpu_context *pt_machine_cpu_context(struct pt_machine *m, int32_t vcpu);
/* What runs in the vCPU's place when its guest is a hypervisor: a nested guest, of which no thread is known.
 * Made when it is new. NULL: no memory. */
struct pt_cpu_context *pt_cpu_context_nested(struct pt_cpu_context *vcpu);
void pt_cpu_context_init(struct pt_cpu_context *cpu_context, struct pt_machine *m, int32_t index);

/*
 * CR3 (without PCID) to the process that has these page tables. A CR3 that the flow sees is learnt as that
 * of the process which the sideband says runs. Later the CR3 is more exact than the sideband's times. A
 * process has one CR3 in user space, until an exec gives it another.
 */

/* The process that was learnt, NULL not known. */
struct pt_process *pt_machine_process(const struct pt_machine *m, uint64_t cr3);
/* Those that were learnt, for i = 0, 1, ...: false after the last one. *ret_process is NULL where the CR3 is
 * no process's. */
bool pt_machine_page_tables(const struct pt_machine *m, size_t i, uint64_t *ret_cr3,
			    struct pt_process **ret_process);
/* The process runs with cr3 from now on: it is no longer `fresh`, but the process that had the CR3 before
 * is. */
void pt_machine_learn(struct pt_machine *m, uint64_t cr3, struct pt_process *process);
/*
 * The sideband says that cr3 is `process`, and what was learnt says otherwise, of this CR3 or of this
 * process. Returns how often in a row it has said so of this process, this time included. again: it is
 * still the last time, do not count it twice. process NULL: the two agree, and the count begins again. 0
 * when there is no memory.
 */
uint32_t pt_machine_doubt(struct pt_machine *m, uint64_t cr3, const struct pt_process *process, bool again);
/* The process has exited or called exec: its page tables may become another's. */
void pt_machine_forget(struct pt_machine *m, const struct pt_process *process);

#endif
