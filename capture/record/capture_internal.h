/*
 * capture_internal.h - what the capture's files share: capture.c (a capture from its beginning to its end),
 * capture_open.c (threads and events), capture_cpus.c (CPUs that come and go), capture_head.c (the
 * container's beginning), capture_records.c (what a record needs before it), capture_run.c (rounds, until the
 * end), capture_snapshot.c.
 */
#ifndef CAPTURE_RECORD_CAPTURE_INTERNAL_H
#define CAPTURE_RECORD_CAPTURE_INTERNAL_H

#include "capture/record/bpf_code.h"
#include "capture/record/capture.h"
#include "capture/record/child.h"
#include "capture/record/clock.h"
#include "capture/record/images.h"
#include "capture/record/snapshot.h"
#include "capture/record/tasks.h"
#include "capture/record/vm_clocks.h"

#define CAPTURE_BPF_SYMBOLS 1024 /* functions whose program's number has not come yet, at most */

struct capture {
	const struct hw_options *o;
	const struct hw_pmu *pmu; /* NULL: sideband only */
	void (*notice)(const char *text);
	struct hw_result *result;

	/* The target. */
	struct hw_list tids;   /* empty: all tasks, or the child */
	struct hw_list online; /* CPUs, when the events were opened */
	struct hw_cpu_types cpu_types;
	struct hw_list not_traced; /* CPUs that came or went since */
	struct hw_child child;
	int cgroup_fd; /* 0: none */
	unsigned levels;

	/* Where data comes from. */
	struct hw_events ev;
	struct hw_clock clock;
	struct hw_drain drain;
	struct hw_snapshot *snapshots; /* one per ring */

	/* Where it is written. */
	struct ptc_writer *w;
	struct hw_images *images;
	struct hw_tasks tasks;
	struct hw_jit *jit;	      /* NULL: not asked for */
	struct vm_clocks *vm_clocks;  /* NULL: none */
	struct hw_bpf_code *bpf_code; /* NULL: BPF programs' code is not asked for, or cannot be had */
	/* The last KSYMBOL records of BPF programs, around. */
	struct capture_bpf_symbol {
		uint64_t address, time_ns;
	} bpf_symbols[CAPTURE_BPF_SYMBOLS];
	unsigned bpf_symbol_next;

	/* While it runs. */
	bool fire;	  /* a trigger's sample was among the records */
	bool triggered;	  /* the trigger's last snapshot is taken, the capture ends with it */
	bool paused;	  /* by control, or until -D's time has come */
	bool was_enabled; /* -D: tracing has begun */
	double started_s; /* CLOCK_MONOTONIC */
	/* The target had ended when tracing was started, so there may be no trace of it. */
	bool started_late;
	struct {
		int level; /* zstd's, now */
		unsigned calm_rounds;
	} compression;
	uint64_t reported_losses;
};

static inline uint64_t capture_now_ns(const struct capture *c)
{
	return hw_clock_now_ns(&c->clock);
}

/* CLOCK_MONOTONIC in seconds. In capture.c. */
double capture_seconds(void);

/* Each below: 0, or -1 (e filled). */

/* ---- capture_open.c ---- */

/* All threads of the target's processes. */
int capture_find_threads(struct capture *c, struct pt_error *e);
/* Opens the events, with as much as is permitted where nothing was asked for. */
int capture_open_events(struct capture *c, struct pt_error *e);

/*
 * The user's address filter, and where the CPU can: to stop where the trigger's breakpoint is. Without, the
 * trace goes on until the trigger is seen, which is said.
 */
int capture_set_filters(struct capture *c, struct pt_error *e);

/* ---- capture_cpus.c ---- */

/* Says which CPUs came online or went since the events were opened, and puts a META line for each. */
int capture_look_at_cpus(struct capture *c, struct pt_error *e);

/* ---- capture_head.c ---- */

/*
 * The container's beginning: everything that AUX data will need and that is known already. Drops
 * capabilities.
 */
int capture_put_head(struct capture *c, struct pt_error *e);

/* ---- capture_records.c: hw_drain.on_record ---- */

int capture_on_record(void *capture, const struct hw_record *r, struct pt_error *e);

/* ---- capture_run.c ---- */

/* Starts the program, and does rounds until something ends the capture. */
int capture_run(struct capture *c, struct pt_error *e);
/* Stops tracing, takes what is left, and ends the container. */
int capture_finish(struct capture *c, struct pt_error *e);

/* ---- capture_snapshot.c ---- */

/* Stops the events, puts what is new in the overwritten buffers, and starts them again if `resume`. */
int capture_take_snapshot(struct capture *c, bool resume, struct pt_error *e);

#endif
