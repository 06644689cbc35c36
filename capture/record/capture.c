/* capture.c - a capture from its beginning to its end; see capture.h. */
#include "capture/record/capture_internal.h"
#include "capture/record/proc.h"
#include "capture/record/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double capture_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* After each chunk: writing may have taken long. */
static void on_chunk(void *arg)
{
	struct capture *c = arg;

	if (!c->drain.threads) /* which do it themselves */
		hw_drain_spill(&c->drain);
}

/*
 * After a loss an event may be off, or on and not tracing, for to start one that is on does nothing: off and
 * on again mends both. perf_aux_output_end() notes in pending_disable that the event is to be off, as the
 * number of its CPU. On Linux 6.1 the number 0 means no; from 6.11 on nobody looks at it until the event is
 * scheduled out, on any CPU (mended in 6.16; Debian's 6.12.117 is so). Where it works, the record of the loss
 * is there before the event is off. To turn it off takes back what was noted.
 */
static void on_restart(void *arg, size_t ring)
{
	struct capture *c = arg;

	hw_events_enable_ring(&c->ev, ring, false);
	hw_events_enable_ring(&c->ev, ring, true);
}

static int put_drained(void *arg, struct pt_error *e)
{
	return hw_drain_put_records(arg, e);
}

static uint64_t perf_clock(const void *arg)
{
	return capture_now_ns(arg);
}

/* Where data is written. */
int capture_use_writer(struct capture *c, struct pt_error *e)
{
	c->drain.w = c->w;
	c->tasks.w = c->w;
	ptc_writer_on_chunk(c->w, on_chunk, c);
	/* A sample's bytes that the one before it has are left out: the first one of a container has all. */
	for (size_t i = 0; i < c->ev.ring_count; i++)
		aux_sample_deinit(&c->ev.rings[i].samples);
	return hw_images_restart(c->images, c->w, e);
}

const char *capture_container_name(struct capture *c)
{
	const struct hw_rotation *r = c->o->steering.rotation;

	if (!r)
		return NULL;
	if (r->by == HW_ROTATE_NEVER)
		return output_name(r->path);
	snprintf(c->part.name, sizeof c->part.name, "%s, part %u", r->path, c->part.number);
	return c->part.name;
}

static int open_container(struct capture *c, int fd, struct pt_error *e)
{
	c->w = ptc_writer_create(fd, capture_container_name(c), c->o->level, e);
	if (!c->w)
		return -1;
	c->images = hw_images_create(c->w);
	if (!c->images)
		return pt_fail_no_memory(e, "the images");
	hw_images_clock(c->images, perf_clock, c);
	c->drained = (struct hw_images_pending){.put = put_drained, .arg = &c->drain};
	hw_images_pending(c->images, &c->drained);
	if (c->o->jit) {
		c->jit = hw_jit_create(c->w, perf_clock, c);
		if (!c->jit)
			return pt_fail_no_memory(e, "code that is made at run time");
		hw_images_jit(c->images, c->jit);
		c->drain.jit = c->jit;
	}
	c->drain.on_record = capture_on_record;
	c->drain.forked = capture_forked;
	c->drain.on_records_end = capture_on_records_end;
	c->drain.restart = on_restart;
	c->drain.arg = c;
	return capture_use_writer(c, e);
}

static int prepare_rings(struct capture *c, struct pt_error *e)
{
	c->snapshots = calloc(c->ev.ring_count, sizeof *c->snapshots);
	if (!c->snapshots)
		return pt_fail_no_memory(e, "snapshots");
	for (size_t i = 0; i < c->ev.ring_count; i++) {
		c->ev.rings[i].task = !c->o->target.system_wide;
		c->ev.rings[i].published_ns = capture_now_ns(c);
	}
	return 0;
}

static void fill_result(struct capture *c)
{
	struct hw_result *r = c->result;
	const char *why;

	r->have_status = c->child.pid && c->child.ended;
	r->status = c->child.status;
	r->left_running = c->child.ended ? 0 : c->child.pid;
	r->losses = c->drain.losses;
	r->aux_bytes = c->drain.aux_bytes;
	r->container_bytes = c->part.bytes_before + ptc_writer_bytes(c->w);
	r->containers = c->part.number;
	r->trigger_missed = c->o->steering.trigger ? c->o->steering.trigger->missed : 0;
	r->missing_images = hw_images_missing(c->images, &why);
	snprintf(r->missing_why, sizeof r->missing_why, "%s", why);
	if (c->jit)
		r->jit_bytes = hw_jit_bytes(c->jit, &r->jit_processes);
	r->rings = (unsigned)c->ev.ring_count;
	r->samples = c->drain.sample_count;
	r->empty_samples = c->drain.empty_samples;
}

static int run(struct capture *c, int fd, struct pt_error *e)
{
	const struct hw_options *o = c->o;

	if (hw_proc_cpus(&c->online, e) || capture_find_threads(c, e))
		return -1;
	if (o->target.program && hw_child_start(&c->child, o->target.program, o->stdout_to_stderr, e))
		return -1;
	/* The program is there by now, and runs as it would without. */
	if (hw_schedule(&o->affinity, o->realtime, e))
		return -1;
	if (capture_open_events(c, e) || capture_set_filters(c, e))
		return -1;
	if (open_container(c, fd, e) || capture_put_head(c, e) || prepare_rings(c, e))
		return -1;
	/* What a running program has made by now is known from the first branch on. */
	if (c->jit && hw_jit_read(c->jit, true, e))
		return -1;
	c->started_s = c->part.started_s = capture_seconds();
	c->paused = o->steering.delay_ms != 0;
	hw_drain_allow_restart(&c->drain, !c->paused);
	if (!c->paused && (o->target.system_wide || c->tids.count))
		hw_events_start(&c->ev);
	if (capture_run(c, e) || capture_finish(c, e))
		return -1;
	fill_result(c);
	return 0;
}

int hw_capture(const struct hw_options *o, const struct hw_pmu *pmu, int fd, void (*notice)(const char *text),
	       struct hw_result *result, struct pt_error *e)
{
	struct capture c = {.o = o,
			    .pmu = pmu,
			    .notice = notice,
			    .result = result,
			    .compression.level = o->level,
			    .part.number = 1,
			    .drain.restart_lock = PTHREAD_MUTEX_INITIALIZER};
	int ret;

	memset(result, 0, sizeof *result);
	ret = run(&c, fd, e);
	hw_child_end(&c.child);
	hw_drain_threads_destroy(c.drain.threads);
	capture_switch_deinit(&c);
	hw_drain_deinit(&c.drain);
	hw_events_close(&c.ev);
	if (c.cgroup_fd > 0)
		close(c.cgroup_fd);
	hw_tasks_deinit(&c.tasks);
	hw_images_destroy(c.images);
	free(c.module_loads);
	hw_jit_destroy(c.jit);
	vm_clocks_close(c.vm_clocks);
	hw_bpf_code_destroy(c.bpf_code);
	hw_own_pokes_close(c.own_pokes);
	free(c.snapshots);
	ptc_writer_destroy(c.w);
	hw_list_deinit(&c.tids);
	hw_list_deinit(&c.children);
	hw_list_deinit(&c.online);
	hw_cpu_types_deinit(&c.cpu_types);
	hw_list_deinit(&c.not_traced);
	return ret;
}
