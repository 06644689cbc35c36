/*
 * record.h - one sideband record: a perf record (struct perf_event_header first), or a memory image,
 * waiting for its time.
 *
 * Record layouts are the kernel's, include/uapi/linux/perf_event.h. Times are perf's clock, and the TSC by
 * the container's conversion. What applying a record does is in apply.h.
 */
#ifndef DECODE_SIDEBAND_RECORD_H
#define DECODE_SIDEBAND_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"

struct img_file;
struct pt_event;
struct pt_machine;

struct pt_sideband_record {
	uint64_t time_ns; /* 0: from the start, or unknown */
	uint64_t tsc;
	uint64_t order;	  /* of arrival */
	int32_t pid, tid; /* of the sample_id trailer, -1 unknown */
	int32_t cpu;
	struct pt_machine *machine; /* where it was recorded */
	struct pt_sideband_record *next;
	struct pt_event *event; /* of a sample: its event (session/events.h) */
	struct img_file *file;	/* of a mapping: its file, if the container had it before the record */
	bool context;		/* PTC_SIDEBAND_CONTEXT: no event */
	bool mark, mark_end;	/* no record: the time that is wanted begins, or ends (session/select.c) */
	struct img_file
	    *memory; /* no record: a PTC_IMAGE_MEMORY, which is mapped from now on in [start, end) */
	uint64_t start, end;
	uint32_t size;	  /* of record */
	uint8_t record[]; /* struct perf_event_header ... */
};

/*
 * A record with these bytes, all else unknown or none. Zeros follow them, so that strings end, and fields
 * of a short record can be read. size 0: as if its type were 0, which perf does not use. Free it with
 * free(). NULL: no memory.
 */
struct pt_sideband_record *pt_sideband_record_create(const uint8_t *record, uint32_t size);

/* How the records of each perf_event_attr are shaped. Zeroed is empty; free shapes. */
struct pt_sideband_attrs {
	struct pt_sideband_shape *shapes;
	uint32_t count;
};
void pt_sideband_attrs_deinit(struct pt_sideband_attrs *a);
/* 0, or -1 (PT_ERR_BAD_INPUT, PT_ERR_NO_MEMORY). */
int pt_sideband_attr(struct pt_sideband_attrs *a, const struct ptc_attr *attr, struct pt_error *e);
/*
 * Copies the record that begins at p (of `have` bytes) and reads its sample_id trailer, as the attr says.
 * attr: a number given to pt_sideband_attr(); of others the trailer is unknown. NULL: PT_ERR_BAD_INPUT (the
 * record is larger than what is there, or too small), PT_ERR_NO_MEMORY.
 */
struct pt_sideband_record *pt_sideband_parse(const struct pt_sideband_attrs *a, uint32_t attr,
					     const uint8_t *p, uint64_t have, struct pt_error *e);

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
bool pt_sideband_is_mmap(const struct pt_sideband_record *s);
/* An mmap record's mapping holds code. */
bool pt_sideband_executable(const struct pt_sideband_record *s);
/* The process that it concerns; PTC_ANY_PID: the kernel. */
int32_t pt_sideband_pid(const struct pt_sideband_record *s);
/* True when it maps ip for process pid (PTC_ANY_PID: the kernel). */
bool pt_sideband_maps(const struct pt_sideband_record *s, int32_t pid, uint64_t ip);
/* True when it is an exec of process pid. */
bool pt_sideband_execs(const struct pt_sideband_record *s, int32_t pid);
/* True when a thread that is traced by itself (s->pid, s->tid) comes onto a CPU, or (*ret_left) leaves it. */
bool pt_sideband_moved(const struct pt_sideband_record *s, bool *ret_left);
/* True when an event that traces was turned off, or its AUX data was full up to a mark. */
bool pt_sideband_ends_aux(const struct pt_sideband_record *s);
/* True when the kernel is about to switch threads; another record will say that it has. */
bool pt_sideband_begins_switch(const struct pt_sideband_record *s);
/* The thread that ran on s->cpu until a switch (pid, tid; 0 = idle). False when the record does not say. */
bool pt_sideband_ran_before(const struct pt_sideband_record *s, int32_t *ret_pid, int32_t *ret_tid);
/* SWITCH records: the thread that runs on s->cpu from now on (pid, tid; 0 = idle). False when it does not
 * say. */
bool pt_sideband_switched(const struct pt_sideband_record *s, int32_t *ret_pid, int32_t *ret_tid);

#endif
