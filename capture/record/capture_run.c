/* capture_run.c - rounds, until the target, the user or the time ends the capture. */
#include "capture/record/capture_internal.h"
#include "capture/record/proc.h"
#include "capture/record/sample_id.h"
#include "capture/record/trace_meta.h"

#include <stdio.h>
#include <string.h>

#define TRIGGER_MS    1	     /* between looks for a trigger: meanwhile the buffer is overwritten */
#define ROUND_MS      20     /* between rounds when no ring asks for one */
#define JIT_MS	      4	     /* the same when code that is made at run time is read */
#define TARGET_S      0.2    /* between looks whether the target's threads are there, and which CPUs */
#define GRACE_S	      2	     /* that the program has to end by a signal */
#define FAST_LEVEL    (-7)   /* zstd's: what a user may ask for */
#define FASTER_LEVEL  (-30)  /* what it costs and saves: pt-capture(1), -z */
#define FASTEST_LEVEL (-100) /* 1.0 to 1.2 GB/s a core, 1.1 to 1.6 times smaller (tests/bench/capture.sh) */

/* ---- One round ---- */

/* Compresses less when rings fill faster than they are emptied, and more again when they do not. */
static void adapt(struct capture *c)
{
	int wanted = c->o->level, level = c->compression.level;
	unsigned fill = c->drain.fill;
	char text[100];

	if (fill > 75 || (fill > 50 && level <= FASTER_LEVEL))
		level = FASTEST_LEVEL;
	else if (fill > 50)
		level = level <= FAST_LEVEL ? FASTER_LEVEL : level - 3 > FAST_LEVEL ? level - 3 : FAST_LEVEL;
	else if (fill < 25 && ++c->compression.calm_rounds > 50 && level < wanted)
		level = level < FASTER_LEVEL ? FASTER_LEVEL : level < FAST_LEVEL ? FAST_LEVEL : level + 1;
	if (level == c->compression.level)
		return;
	c->compression.calm_rounds = 0;
	c->compression.level = level;
	ptc_writer_level(c->w, level);
	if (!c->o->verbose)
		return;
	/* It can be more than full: some of it was spilled. */
	snprintf(text, sizeof text, "a buffer was %u %% full: zstd level %d from now on",
		 fill < 100 ? fill : 100, level);
	c->notice(text);
}

/* Says that data is lost: the first time, and when it has become more than twice as much. */
static void report_losses(struct capture *c)
{
	const struct hw_losses *l = &c->drain.losses;
	uint64_t lost = l->truncated + l->partial + l->records;
	char text[160];

	if (lost <= c->reported_losses || c->o->quiet)
		return;
	if (c->reported_losses && lost <= 2 * c->reported_losses)
		return;
	snprintf(text, sizeof text, "data is being lost: %llu times AUX data, %llu records",
		 (unsigned long long)l->truncated + l->partial, (unsigned long long)l->records);
	c->notice(text);
	c->reported_losses = lost;
}

static int one_round(struct capture *c, struct pt_error *e)
{
	if (hw_drain_round(&c->drain, capture_now_ns(c), e))
		return -1;
	adapt(c);
	report_losses(c);
	return 0;
}

/* ---- What steers it ---- */

static void pause_or_go_on(struct capture *c, bool paused)
{
	bool first = !paused && !c->was_enabled && c->o->steering.delay_ms;

	c->paused = paused;
	c->was_enabled |= !paused;
	hw_drain_allow_restart(&c->drain, !paused);
	if (paused)
		hw_events_disable(&c->ev);
	else if (first)
		hw_events_start(&c->ev);
	else
		hw_events_enable(&c->ev);
}

/* -D: the time has come. */
static void end_delay(struct capture *c)
{
	long long delay_ms = c->o->steering.delay_ms;

	if (delay_ms > 0 && !c->was_enabled && capture_seconds() - c->started_s >= (double)delay_ms / 1e3)
		pause_or_go_on(c, false);
}

/* The control FIFO's commands. 1: stop. */
static int obey(struct capture *c, struct pt_error *e)
{
	struct hw_control *control = c->o->steering.control;
	enum hw_command command;

	while (control && (command = hw_control_next(control)) != HW_NO_COMMAND) {
		switch (command) {
		case HW_SNAPSHOT:
			if (capture_take_snapshot(c, true, e))
				return -1;
			break;
		case HW_ENABLE:
		case HW_DISABLE: pause_or_go_on(c, command == HW_DISABLE); break;
		case HW_STOP: hw_control_ack(control); return 1;
		case HW_UNKNOWN_COMMAND: c->notice("the control FIFO says what is no command"); continue;
		default: break;
		}
		hw_control_ack(control);
	}
	return 0;
}

/*
 * Signals that come close together share one snapshot, which is said. *answered: the value of *want_snapshot
 * at the last snapshot.
 */
static bool snapshot_wanted(struct capture *c, sig_atomic_t *answered)
{
	sig_atomic_t asked = c->o->steering.want_snapshot ? *c->o->steering.want_snapshot : 0;
	unsigned requests = (unsigned)(asked - *answered);
	char text[100];

	if (!c->fire && !requests)
		return false;
	*answered = asked;
	if (!c->o->events.snapshot || requests < 2)
		return true;
	snprintf(text, sizeof text, "%u requests for a snapshot came close together: they share one",
		 requests);
	c->notice(text);
	c->result->shared_requests += requests - 1;
	return true;
}

static bool target_gone(const struct capture *c)
{
	for (size_t i = 0; i < c->tids.count; i++)
		if (!hw_proc_has_ended(c->tids.at[i]))
			return false;
	return c->tids.count > 0;
}

/* What is known of the end that is near; times as of capture_seconds(). */
struct ending {
	bool signalled; /* the program got the user's signal */
	double signalled_s, looked_s, cpus_s;
};

static bool has_ended(struct capture *c, struct ending *end)
{
	const struct hw_steering *steering = &c->o->steering;
	double now = capture_seconds();

	if (c->child.pid && hw_child_ended(&c->child))
		return true;
	if (steering->max_bytes && c->part.bytes_before + ptc_writer_bytes(c->w) >= steering->max_bytes) {
		c->notice(c->state ? "--max-size: the containers have that many bytes"
				   : "--max-size: the container has that many bytes");
		return true;
	}
	if (steering->seconds > 0 && now - c->started_s >= steering->seconds)
		return true;
	if (*steering->stop > 1 || (*steering->stop && !c->child.pid))
		return true;
	if (*steering->stop && !end->signalled) {
		kill(c->child.pid, *steering->stop_signal);
		end->signalled = true;
		end->signalled_s = now;
	}
	if (end->signalled && now - end->signalled_s > GRACE_S)
		return true;
	if (now - end->looked_s <= TARGET_S)
		return false;
	end->looked_s = now;
	return !c->child.pid && target_gone(c);
}

static int look_at_cpus(struct capture *c, struct ending *end, struct pt_error *e)
{
	double now = capture_seconds();

	if (now - end->cpus_s <= TARGET_S)
		return 0;
	end->cpus_s = now;
	return capture_look_at_cpus(c, e);
}

/* All that is to be traced is traced from here on. */
static void say_ready(struct capture *c)
{
	c->started_late = target_gone(c);
	if (c->o->verbose)
		c->notice(c->pmu ? "recording" : "recording sideband");
	hw_ready_put(c->o->steering.ready_fd);
}

static int wait_ms(const struct capture *c)
{
	unsigned processes = 0;

	if (c->o->steering.trigger)
		return TRIGGER_MS;
	if (c->jit)
		hw_jit_bytes(c->jit, &processes);
	return processes ? JIT_MS : ROUND_MS;
}

int capture_run(struct capture *c, struct pt_error *e)
{
	struct ending end = {0};
	sig_atomic_t answered = 0, switched = 0;
	int command;

	if (c->child.pid && hw_child_go(&c->child, c->o->target.program[0], e))
		return -1;
	say_ready(c);
	do {
		hw_drain_threads_busy(c->drain.threads, false);
		hw_events_wait(&c->ev, wait_ms(c));
		hw_drain_threads_busy(c->drain.threads, true);
		end_delay(c);
		if (one_round(c, e) || (snapshot_wanted(c, &answered) && capture_take_snapshot(c, true, e)))
			return -1;
		if (look_at_cpus(c, &end, e))
			return -1;
		if (c->triggered)
			return 0;
		if (capture_switch_due(c, &switched) && capture_switch(c, e))
			return -1;
		command = obey(c, e);
		if (command)
			return command < 0 ? -1 : 0;
	} while (!has_ended(c, &end));
	return 0;
}

/* ---- The end ---- */

/*
 * Puts a PERF_RECORD_LOST for what was dropped after a ring's last one: no record came any more that could
 * have reported it.
 */
static int put_unreported_losses(struct capture *c, struct pt_error *e)
{
	for (size_t i = 0; i < c->ev.ring_count; i++) {
		struct hw_drain_ring *r = &c->ev.rings[i];
		uint64_t id, lost = hw_events_lost(&c->ev, i, &id);
		struct {
			struct perf_event_header h;
			uint64_t id, lost;
			struct hw_sample_id sample_id;
		} record = {{PERF_RECORD_LOST, 0, sizeof record},
			    id,
			    lost - r->lost,
			    {0, 0, capture_now_ns(c), (uint32_t)r->cpu, 0, id}};

		if (lost <= r->lost)
			continue;
		c->drain.losses.records += record.lost;
		if (ptc_put_sideband(c->w, c->drain.events.sideband_attr, &record, sizeof record, e))
			return -1;
	}
	return 0;
}

/*
 * Compressing or the output was too slow: the data stayed in its rings meanwhile. Of interest when some was
 * lost.
 */
static void report_held_back(struct capture *c)
{
	struct hw_held_back held = hw_drain_threads_held_back(c->drain.threads);
	const struct hw_losses *l = &c->drain.losses;
	char text[200];

	if (!held.times || c->o->quiet || (!c->o->verbose && !l->truncated && !l->records))
		return;
	snprintf(text, sizeof text,
		 "compressing and the output were too slow %llu times, %llu ms in all: a faster disk, -z -7, "
		 "or fewer "
		 "events help",
		 (unsigned long long)held.times, (unsigned long long)(held.ns / 1000000));
	c->notice(text);
}

int capture_put_end(struct capture *c, struct pt_error *e)
{
	size_t seen;

	report_held_back(c);
	/* Who merges sideband reads all META before it (merge.c), so that the last one counts. */
	if (c->clock.raw && c->o->target.sideband_only) {
		hw_clock_refine(&c->clock);
		if (hw_clock_meta_put(c->w, &c->clock, e))
			return -1;
	}
	return c->vm_clocks ? vm_clocks_put(c->vm_clocks, c->w, "kvm_end", &seen, e) : 0;
}

int capture_finish(struct capture *c, struct pt_error *e)
{
	c->drain.jit_always = true;
	if (c->jit && hw_drain_round(&c->drain, capture_now_ns(c), e))
		return -1;
	hw_drain_allow_restart(&c->drain, false);
	hw_events_disable(&c->ev);
	if (c->o->events.snapshot && !c->triggered && capture_take_snapshot(c, false, e))
		return -1;
	/* Twice: data of which the record was not published yet in the first. */
	/* NOLINTNEXTLINE(misc-redundant-expression): each call reads anew */
	if (hw_drain_round(&c->drain, capture_now_ns(c), e) ||
	    /* NOLINTNEXTLINE(misc-redundant-expression) */
	    hw_drain_round(&c->drain, capture_now_ns(c), e) || hw_drain_settle(&c->drain, e))
		return -1;
	if (put_unreported_losses(c, e) || capture_look_at_cpus(c, e))
		return -1;
	if (c->pmu && c->started_late && !c->drain.aux_bytes)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "nothing was traced: what was to be traced had ended before recording began");
	if (capture_put_end(c, e))
		return -1;
	if (c->child.pid && c->child.ended && ptc_put_metaf(c->w, e, "exit_status", "%d", c->child.status))
		return -1;
	return ptc_writer_finish(c->w, e);
}
