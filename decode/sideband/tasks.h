/*
 * tasks.h - the processes and threads of one machine (machines.h), as its sideband has reported them so far.
 */
#ifndef DECODE_SIDEBAND_TASKS_H
#define DECODE_SIDEBAND_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/address_space.h"
#include "decode/code/graph.h"

struct pt_machine;

struct pt_process {
	int32_t pid;
	struct img_space space;
	struct pt_code *code;
	bool fresh; /* new, or an exec has given it another address space: its CR3 was not seen yet */
	uint32_t execs;
	int32_t parent; /* the process that forked it, until its first exec; -1 none, or unknown */
	bool begins;	/* it was forked while recorded, and not in user space since */
	bool gone;	/* all of its known threads have exited */
	struct pt_task *tasks;
	struct pt_process *next;
};

struct pt_task {
	int32_t pid, tid;
	char comm[16];
	uint32_t version;		 /* changes with comm, pid */
	uint32_t number, number_version; /* of its record, and its version then; 0 none (output/emit.c) */
	bool exited;
	struct pt_process *process;
	struct pt_machine *machine;
	struct pt_task *next; /* of the process */
};

struct pt_tasks;

/* kernel: the space of the machine's kernel, which all processes see in the upper half of their addresses.
 * Both it and the graph must outlive the tasks. NULL: no memory. */
struct pt_tasks *pt_tasks_create(struct pt_graph *graph, struct pt_machine *machine,
				 struct img_space *kernel);
void pt_tasks_destroy(struct pt_tasks *t);

/* The task, made when it is new. pid -1: the newest of that tid. NULL: no memory. */
struct pt_task *pt_tasks_get(struct pt_tasks *t, int32_t pid, int32_t tid);
/* The process, made when it is new. NULL: no memory. */
struct pt_process *pt_tasks_process(struct pt_tasks *t, int32_t pid);
/* The process, NULL when there is none. */
struct pt_process *pt_tasks_find_process(const struct pt_tasks *t, int32_t pid);

#endif
