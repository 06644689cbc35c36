/*
 * tasks.h - which threads there are and what they have mapped: the sideband's story, applied record by record.
 *
 * Records are perf's (struct perf_event_header first), in the order of their time. Times are perf's clock, and
 * its TSC by the container's conversion. Each machine (machines.h) has tasks of its own.
 */
#ifndef DECODE_SIDEBAND_TASKS_H
#define DECODE_SIDEBAND_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/graph.h"
#include "decode/code/image.h"
#include "schema/container.h"

struct pt_machine;
struct pt_event;

struct pt_process {
	int32_t pid;
	struct img_space space;
	struct pt_code *code;
	bool fresh; /* new, or an exec has given it another address space: its CR3 was not seen yet */
	uint32_t execs;
	int32_t parent; /* who forked it and was not left by an exec since; -1 nobody, or unknown */
	bool gone;	/* none of its threads that are known is left */
	struct pt_task *tasks;
	struct pt_process *next;
};

struct pt_task {
	int32_t pid, tid;
	char comm[16];
	uint32_t version; /* changes with comm, pid */
	uint32_t number,
	    number_version; /* of its record and the version that this tells of, 0 none (output/emit.c) */
	bool exited;
	struct pt_process *process;
	struct pt_machine *machine;
	struct pt_task *next; /* of the process */
};

/* A sideband record or a memory image, waiting for its time. */
struct pt_sideband_record {
	uint64_t time_ns; /* 0: from the start, or unknown */
	uint64_t tsc;
	uint64_t order;	  /* of arrival */
	int32_t pid, tid; /* of the sample_id trailer, -1 unknown */
	int32_t cpu;
	struct pt_machine *machine; /* whose */
	struct pt_sideband_record *next;
	struct pt_event *event;	 /* a sample, of this event (session/events.h) */
	bool mark, mark_end;	 /* the time that is wanted begins or ends (session/select.c) */
	struct img_file *memory; /* a PTC_IMAGE_MEMORY: bytes that are there from now on */
	uint64_t start, end;
	uint32_t size;	  /* of the record */
	uint8_t record[]; /* struct perf_event_header ... */
};

struct pt_tasks;

struct pt_tasks *pt_tasks_create(struct img_store *store, struct pt_graph *graph, struct pt_machine *machine);
void pt_tasks_destroy(struct pt_tasks *t);

/* attr: how records are shaped (sample_type, sample_id_all). Copied. 0, or -1 (PT_ERR_BAD_INPUT, _NO_MEMORY). */
int pt_tasks_attr(struct pt_tasks *t, const struct ptc_attr *attr, struct pt_error *e);

/* Takes the record at p (of `have` bytes) apart as far as waiting needs. *ret is malloc()ed, *ret_size the record's
 * size. Attr numbers are those that pt_tasks_attr() was told of. -1: PT_ERR_BAD_INPUT (a record larger than what is there, or too small), PT_ERR_NO_MEMORY. */
int pt_tasks_parse(struct pt_tasks *t, uint32_t attr, const uint8_t *p, uint64_t have,
		   struct pt_sideband_record **ret, uint32_t *ret_size, struct pt_error *e);

enum {
	PT_SIDEBAND_CODE = 1,
	PT_SIDEBAND_SWITCH = 2,
	PT_SIDEBAND_LOST = 4,
	PT_SIDEBAND_EXIT = 8,
	PT_SIDEBAND_EVENT = 16,
	PT_SIDEBAND_MARK = 32
};
/* What applying it will change: PT_SIDEBAND_* or'ed. */
unsigned pt_sideband_effect(const struct pt_sideband_record *s);
bool pt_sideband_is_sample(const struct pt_sideband_record *s);
/* True when it maps ip for process pid (-1: the kernel). */
bool pt_sideband_maps(const struct pt_sideband_record *s, int32_t pid, uint64_t ip);
/* True when it is an exec of process pid. */
bool pt_sideband_execs(const struct pt_sideband_record *s, int32_t pid);
/* The process it concerns; -1: the kernel. */
int32_t pt_sideband_pid(const struct pt_sideband_record *s);
/* A thread that is traced by itself (s->pid, s->tid) comes onto a CPU, or (left) leaves it. */
bool pt_sideband_moved(const struct pt_sideband_record *s, bool *ret_left);
/* SWITCH records: who runs on s->cpu from now on (pid, tid; 0 = idle); false when it does not say. */
bool pt_sideband_switched(const struct pt_sideband_record *s, int32_t *ret_pid, int32_t *ret_tid);

/* True when applying it takes away or replaces code that may have been decoded: pause the flows of its process. */
bool pt_tasks_disturbs(struct pt_tasks *t, const struct pt_sideband_record *s);
/* 0, or -1 (PT_ERR_NO_MEMORY). Unknown records do nothing. */
int pt_tasks_apply(struct pt_tasks *t, const struct pt_sideband_record *s, struct pt_error *e);

/* A thread has ended: when its process has, too, its address space is forgotten (machines.h). */
void pt_tasks_exit(struct pt_tasks *t, const struct pt_sideband_record *s);
/* The task, made when it is new. NULL: no memory. */
struct pt_task *pt_tasks_get(struct pt_tasks *t, int32_t pid, int32_t tid);
/* The process, made when it is new. NULL: no memory. */
struct pt_process *pt_tasks_process(struct pt_tasks *t, int32_t pid);

#endif
