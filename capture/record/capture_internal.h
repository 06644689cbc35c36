/*
 * capture_internal.h - what the capture's files share: capture.c (a capture from its beginning to its end),
 * capture_open.c (threads and events), capture_begun.c (threads that begin meanwhile), capture_cpus.c (CPUs
 * that come and go), capture_head.c (the container's beginning), capture_records.c (what a record needs before
 * it), capture_run.c (rounds, until the end), capture_snapshot.c, capture_switch.c (the next container).
 */
#ifndef CAPTURE_RECORD_CAPTURE_INTERNAL_H
#define CAPTURE_RECORD_CAPTURE_INTERNAL_H

#include "capture/pt/host_meta.h"
#include "capture/record/bpf_code.h"
#include "capture/record/capture.h"
#include "capture/record/child.h"
#include "capture/record/clock.h"
#include "capture/record/images.h"
#include "capture/record/own_pokes.h"
#include "capture/record/snapshot.h"
#include "capture/record/sideband_state.h"
#include "capture/record/tasks.h"
#include "capture/record/vm_clocks.h"

#include <limits.h>

#define CAPTURE_BPF_SYMBOLS 1024 /* functions whose program's number has not come yet, at most */

struct capture {
	const struct hw_options *o;
	const struct hw_pmu *pmu; /* NULL: sideband only */
	void (*notice)(const char *text);
	struct hw_result *result;

	/* The target. */
	struct hw_list tids;	 /* empty: all tasks, or the child */
	struct hw_list children; /* of the target's processes, before its events were opened: not traced */
	struct hw_list online;	 /* CPUs, when the events were opened */
	struct hw_cpu_types cpu_types;
	struct hw_list not_traced; /* CPUs that came or went since */
	struct hw_child child;
	int cgroup_fd; /* 0: none */
	unsigned levels;

	/* Where data comes from. */
	struct hw_events ev;
	struct hw_clock clock;
	struct hw_drain drain;
	struct hw_images_pending drained; /* its records, for the images */
	struct hw_own_pokes *own_pokes;	  /* until the kernel's code is put; NULL: there are none */
	struct hw_snapshot *snapshots;	  /* one per ring */

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
	struct hw_module_load *module_loads; /* of the round's records */
	size_t module_load_count, module_load_room;

	/* Of a capture in several containers (--switch-output); state NULL: it is in one. */
	struct hw_state *state;
	struct {
		char name[PATH_MAX + 32]; /* of capture_container_name() */
		unsigned number;	  /* of the one that is written, from 1 */
		char uuid[HOST_META_UUID_ROOM],
		    before[HOST_META_UUID_ROOM]; /* its, and that of the one before it */
		/* perf's clock when the kernel's code was read for it; 0: before tracing began */
		uint64_t kernel_ns;
		uint64_t bytes_before;	     /* of those that are complete */
		bool fired;		     /* it ends with a trigger's snapshot */
		double started_s, settled_s; /* as of capture_seconds() */
	} part;

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

/* ---- capture.c ---- */

/* What the container that is written is called in messages: the user's name for it, and with
 * --switch-output which part it is. NULL: standard output. Until the next call. */
const char *capture_container_name(struct capture *c);

/* From now on all is written to c->w: a new container. */
int capture_use_writer(struct capture *c, struct pt_error *e);

/* ---- capture_open.c ---- */

/* All threads of the target's processes; and which processes these had started before. */
int capture_find_threads(struct capture *c, struct pt_error *e);
/*
 * Opens the events, with as much as is permitted where nothing was asked for; also of threads and processes
 * that the target's processes begin meanwhile.
 */
int capture_open_events(struct capture *c, struct pt_error *e);

/*
 * The user's address filter, and where the CPU can: to stop where the trigger's breakpoint is. Without, the
 * trace goes on until the trigger is seen, which is said.
 */
int capture_set_filters(struct capture *c, struct pt_error *e);

/* ---- capture_begun.c ---- */

/*
 * Opens events, as o has them, of the threads that the target's processes have begun since they were
 * listed, and of the processes these have started. A thread inherits the events that the one which made it
 * had by then. Again until no new one turns up: what begins after a thread has all events inherits all.
 */
int capture_open_begun(struct capture *c, const struct hw_events_options *o, struct pt_error *e);

/* ---- capture_cpus.c ---- */

/* Says which CPUs came online or went since the events were opened, and puts a META line for each. */
int capture_look_at_cpus(struct capture *c, struct pt_error *e);

/* META of those that are not traced any more, in a later container. */
int capture_put_cpus_not_traced(struct capture *c, struct pt_error *e);

/* ---- capture_head.c ---- */

/* Of it: META, events, streams, formats, guests' clocks. */
int capture_put_events(struct capture *c, struct pt_error *e);
/* Of it: the kernels' code and symbols. */
int capture_put_kernels(struct capture *c, struct pt_error *e);

/* Those that drain, and those that compress what goes to c->w. Capabilities are dropped by now, for
 * them, too. */
int capture_make_threads(struct capture *c, struct pt_error *e);

/*
 * The container's beginning: everything that AUX data will need and that is known already. Drops
 * capabilities.
 */
int capture_put_head(struct capture *c, struct pt_error *e);

/* ---- capture_records.c: hw_drain.on_record ---- */

int capture_on_record(void *capture, const struct hw_record *r, struct pt_error *e);
void capture_forked(void *capture, int32_t child, int32_t parent);
int capture_on_records_end(void *capture, struct pt_error *e);

/* ---- capture_run.c ---- */

/* Starts the program, and does rounds until something ends the capture. */
int capture_run(struct capture *c, struct pt_error *e);
/* Of each container, before its end: what META says of that time, and whether its writer was too slow. */
int capture_put_end(struct capture *c, struct pt_error *e);
/* Stops tracing, takes what is left, and ends the container. */
int capture_finish(struct capture *c, struct pt_error *e);

/* ---- capture_snapshot.c ---- */

/* Stops the events, puts what is new in the overwritten buffers, and starts them again if `resume`. */
int capture_take_snapshot(struct capture *c, bool resume, struct pt_error *e);

/* ---- capture_switch.c ---- */

/* Before the first record: keeps what the next container needs, if there may be one. */
int capture_switch_prepare(struct capture *c, struct pt_error *e);
void capture_switch_deinit(struct capture *c);
/* A process is seen: puts what was known of it when this container began, once. */
int capture_switch_process(struct capture *c, int32_t pid, struct pt_error *e);
/* Of each record that is put, before. */
int capture_switch_record(struct capture *c, const struct hw_record *r, struct pt_error *e);
/* After each round: whether it is time for another container. *answered: the value of *want_snapshot at
 * the last one. */
bool capture_switch_due(struct capture *c, sig_atomic_t *answered);
/* After a round: ends the container and goes on in another one. */
int capture_switch(struct capture *c, struct pt_error *e);

#endif
