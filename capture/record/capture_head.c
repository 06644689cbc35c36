/* capture_head.c - the container's beginning: META, events, the kernel, what runs already. */
#include "capture/pt/host_meta.h"
#include "capture/record/capabilities.h"
#include "capture/record/capture_internal.h"
#include "capture/record/cgroup_records.h"
#include "capture/record/event_name.h"
#include "capture/record/numa.h"
#include "capture/record/proc.h"
#include "capture/record/trace_meta.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPRESSORS_MAX	 64		      /* at 1 GB/s each more than one file takes */
#define QUEUE_BYTES	 ((uint64_t)16 << 20) /* of what waits for them */
#define QUEUE_BYTES_EACH ((uint64_t)2 << 20)

static int put_meta(struct capture *c, struct pt_error *e)
{
	struct host_meta m = {.engine = c->o->target.sideband_only ? "sideband" : "perf",
			      .command = c->o->target.program,
			      .ret_uuid = c->part.uuid};

	if (host_meta_put(c->w, &m, e) || hw_clock_meta_put(c->w, &c->clock, e) ||
	    (c->o->target.cgroup && ptc_put_meta(c->w, "cgroup", c->o->target.cgroup, e)))
		return -1;
	if (hw_cpu_types_put(&c->cpu_types, c->w, e))
		return -1;
	return c->pmu ? hw_trace_meta_put(c->w, c->pmu, c->o->events.config, c->levels, e) : 0;
}

/*
 * Of whole CPUs this process is recorded, too: the hardware cannot leave a process out. pt-decode
 * does, by its number.
 */
static int put_recorder(struct capture *c, pid_t pid, struct pt_error *e)
{
	char key[32];

	if (!c->pmu || !c->o->target.system_wide)
		return 0;
	snprintf(key, sizeof key, "recorder.%d", (int)pid);
	return ptc_put_meta(c->w, key, "pt-capture", e);
}

static int put_vms(struct capture *c, struct pt_error *e)
{
	const struct vms *vms = c->o->guests.vms;
	char key[64];

	for (size_t i = 0; i < vms->count; i++) {
		snprintf(key, sizeof key, "machine.%d.name", vms->at[i].pid);
		if (ptc_put_meta(c->w, key, vms->at[i].name, e))
			return -1;
	}
	/* Each of KVM's files can be read once. */
	vm_clocks_close(c->vm_clocks);
	c->vm_clocks = vm_clocks_open(vms);
	if (!c->vm_clocks)
		return pt_fail_no_memory(e, "the guests' clocks");
	return vm_clocks_put(c->vm_clocks, c->w, "kvm", &c->result->clocks, e);
}

/* How to read a tracepoint's raw bytes: the text of its format file, if it can be read. */
static int put_format(struct capture *c, const struct hw_event_attr *a, struct pt_error *e)
{
	const char *colon = strchr(a->name, ':');
	char path[512], text[65536];
	FILE *f = NULL;
	size_t n;

	if (a->attr.type == PERF_TYPE_TRACEPOINT && hw_tracepoint_file(a->name, "format", path, sizeof path))
		f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof text, f);
	fclose(f);
	struct ptc_tracepoint t = {.id = (uint32_t)a->attr.config,
				   .system = a->name,
				   .system_bytes = (uint32_t)(colon - a->name),
				   .name = colon + 1,
				   .name_bytes = (uint32_t)strlen(colon + 1),
				   .format = text,
				   .format_bytes = (uint32_t)n};

	return ptc_put_format(c->w, &t, e);
}

static int put_formats(struct capture *c, struct pt_error *e)
{
	for (uint32_t a = 0; a < c->ev.attr_count; a++)
		if (put_format(c, &c->ev.attrs[a], e))
			return -1;
	return 0;
}

/* ---- Kernels ---- */

static bool wants_kernel(const struct capture *c)
{
	return c->levels & HW_KERNEL || c->o->target.sideband_only;
}

static void open_kernel(struct capture *c)
{
	struct pt_error why = {0};
	char text[1200];

	if (hw_images_open_kernel(c->images, &why))
		return;
	snprintf(text, sizeof text,
		 "%s: the kernel's code is not in the container, and branches in it cannot be decoded",
		 why.message);
	c->notice(text);
}

/* Where the kernel reports BPF programs. */
static void open_bpf_code(struct capture *c)
{
	struct pt_error why = {0};
	char text[1200];
	bool reported = false;

	for (uint32_t a = 0; a < c->ev.attr_count; a++)
		reported |= c->ev.attrs[a].attr.bpf_event;
	if (!reported)
		return;
	c->bpf_code = hw_bpf_code_create(&c->online, &why);
	if (c->bpf_code)
		return;
	snprintf(text, sizeof text, "the code of BPF programs that are loaded from now on cannot be read: %s",
		 why.message);
	c->notice(text);
}

static int put_guest_kernels(struct capture *c, struct pt_error *e)
{
	const char *empty;
	char text[1200];

	if (guest_kernels_put(c->o->guests.kernels, c->w, &empty, e))
		return -1;
	if (empty) {
		snprintf(
		    text, sizeof text,
		    "%.1000s has no proc/kallsyms beneath it that shows addresses: the guest's kernel is "
		    "not in the container; its files are for `pt-capture merge --guest-root`",
		    empty);
		c->notice(text);
	}
	return 0;
}

/* The sample id of a sideband event, for records that are made here. */
static uint64_t sideband_id(const struct hw_events *ev)
{
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_SIDEBAND && ev->events[i].id)
			return ev->events[i].id;
	return 0;
}

/* ---- Tasks ---- */

static void spill(void *arg)
{
	struct capture *c = arg;

	hw_drain_spill(&c->drain);
}

/* The processes that the threads belong to. */
static int find_processes(const struct hw_list *tids, struct hw_list *ret, struct pt_error *e)
{
	for (size_t i = 0; i < tids->count; i++) {
		int32_t pid = hw_proc_of_thread(tids->at[i]);

		if (pid > 0 && !hw_list_has(ret, pid) && hw_list_add(ret, pid, e))
			return -1;
	}
	return 0;
}

/* Records of what is there already, also for the next containers. */
static int put_records(struct capture *c, const struct hw_bytes *b, struct pt_error *e)
{
	struct perf_event_header h;

	for (size_t i = 0; c->state && i < b->count; i += h.size) {
		memcpy(&h, b->bytes + i, sizeof h);
		if (hw_state_record(c->state, b->bytes + i, e))
			return -1;
	}
	return b->count ? ptc_put_sideband(c->w, c->drain.events.sideband_attr, b->bytes, b->count, e) : 0;
}

/* Tasks that may run in the target's place: their names only. */
static int put_other_names(struct capture *c, const struct hw_list *pids, uint64_t id, struct pt_error *e)
{
	struct hw_record_origin now = {capture_now_ns(c), id};
	struct hw_bytes b = {0};
	int ret = hw_task_names(&b, pids, &now, e);

	if (ret == 0)
		ret = put_records(c, &b, e);
	hw_bytes_deinit(&b);
	return ret;
}

static int put_cgroups(struct capture *c, const struct hw_record_origin *origin, struct pt_error *e)
{
	struct hw_bytes b = {0};
	int ret = hw_cgroup_records(&b, "/proc/self/mounts", origin, e);

	if (ret == 0)
		ret = put_records(c, &b, e);
	hw_bytes_deinit(&b);
	return ret;
}

/* What runs already. */
struct running {
	struct hw_record_origin read; /* when it was */
	struct hw_list pids;	      /* of the target's threads */
};

/*
 * Events that report changes count by now, so what is read here is no older than they are. What ends before it
 * is read is not known: it is read before all else.
 */
static int read_running(struct capture *c, struct running *ret, struct pt_error *e)
{
	bool all = c->o->target.system_wide;

	ret->read = (struct hw_record_origin){capture_now_ns(c), sideband_id(&c->ev)};
	if (find_processes(&c->tids, &ret->pids, e))
		return -1;
	if (!all && !c->tids.count)
		return 0;
	return hw_tasks_read(&c->tasks, all ? NULL : &ret->pids, &ret->read, spill, c, e);
}

/* Puts it; of all tasks each when it is seen (tasks.h). */
static int put_running(struct capture *c, struct running *r, struct pt_error *e)
{
	bool all = c->o->target.system_wide;

	if (c->o->events.cgroups && put_cgroups(c, &r->read, e))
		return -1;
	if (!all && hw_tasks_put_all(&c->tasks, e))
		return -1;
	if (all || !c->ev.rings[0].all_switches)
		return 0;
	if (c->child.pid && hw_list_add(&r->pids, c->child.pid, e))
		return -1;
	return put_other_names(c, &r->pids, r->read.id, e);
}

/* ---- Threads ---- */

/* Those that compress: as many as can run at the same time, for one ring, too. */
static unsigned compressors(void)
{
	cpu_set_t mine;
	int count = sched_getaffinity(0, sizeof mine, &mine) ? 1 : CPU_COUNT(&mine);

	return count < 1 ? 1 : count > COMPRESSORS_MAX ? COMPRESSORS_MAX : (unsigned)count;
}

int capture_make_threads(struct capture *c, struct pt_error *e)
{
	unsigned count = compressors();
	uint64_t queue = QUEUE_BYTES + count * QUEUE_BYTES_EACH;
	struct hw_numa numa = {0};
	int r = -1;

	if (hw_numa_read(&numa, HW_NUMA_SYSFS, e) == 0 && ptc_writer_threads(c->w, count, queue, e) == 0)
		c->drain.threads = hw_drain_threads_create(&c->drain, &numa, e);
	if (c->drain.threads)
		r = 0;
	hw_numa_deinit(&numa);
	return r;
}

/* What the head has is compressed by now, so that this takes no CPU from what is traced. */
static int wait_until_written(struct capture *c, struct pt_error *e)
{
	int r;

	while ((r = ptc_writer_wait(c->w, 1, e)) > 0)
		spill(c);
	return r;
}

/* ---- The whole of it ---- */

/* The kernel's code, without what opening the events has changed in it, and records of that. */
static int put_kernel_of_before(struct capture *c, struct pt_error *e)
{
	const struct hw_bytes *records;
	int r = 0;

	if (c->own_pokes &&
	    (hw_own_pokes_take(c->own_pokes, sideband_id(&c->ev), &records, e) || put_records(c, records, e)))
		return -1;
	r = hw_images_put_kernel(c->images, c->own_pokes, e);
	hw_own_pokes_close(c->own_pokes);
	c->own_pokes = NULL;
	return r;
}

int capture_put_events(struct capture *c, struct pt_error *e)
{
	if (put_meta(c, e) || put_recorder(c, getpid(), e) || (c->o->guests.vms && put_vms(c, e)) ||
	    hw_events_declare(&c->ev, c->w, &c->drain, e) || put_formats(c, e))
		return -1;
	return c->bpf_code ? put_recorder(c, hw_bpf_code_pid(c->bpf_code), e) : 0;
}

int capture_put_kernels(struct capture *c, struct pt_error *e)
{
	if (c->o->guests.kernels && put_guest_kernels(c, e))
		return -1;
	return wants_kernel(c) ? hw_images_put_kernel(c->images, NULL, e) : 0;
}

/* Where records go that are made here. */
static void set_origins(struct capture *c)
{
	c->tasks.w = c->w;
	c->tasks.images = c->images;
	c->tasks.attr = c->drain.events.sideband_attr;
	hw_images_origin(c->images, c->drain.events.sideband_attr, sideband_id(&c->ev));
	if (c->jit)
		hw_jit_origin(c->jit, c->drain.events.sideband_attr, sideband_id(&c->ev));
}

static int put_after_events(struct capture *c, struct running *running, struct pt_error *e)
{
	if (capture_switch_prepare(c, e))
		return -1;
	if (wants_kernel(c))
		open_kernel(c);
	if (c->o->guests.kernels && put_guest_kernels(c, e))
		return -1;
	if (wants_kernel(c))
		open_bpf_code(c);
	if (c->bpf_code && put_recorder(c, hw_bpf_code_pid(c->bpf_code), e))
		return -1;
	if (!hw_capabilities_drop() && c->o->verbose)
		c->notice("capabilities could not be dropped");
	if (capture_make_threads(c, e))
		return -1;
	/* First, for a kernel's code may take a second. */
	if (put_running(c, running, e))
		return -1;
	if (wants_kernel(c) && put_kernel_of_before(c, e))
		return -1;
	return ptc_flush_meta(c->w, e) || wait_until_written(c, e) ? -1 : 0;
}

int capture_put_head(struct capture *c, struct pt_error *e)
{
	struct running running = {0};
	int r;

	hw_clock_settle(&c->clock, c->ev.rings[0].ring.page);
	if (capture_put_events(c, e))
		return -1;
	if (!c->clock.mult)
		c->notice("no clock of this kernel follows from the TSC: sideband has no place in the "
			  "trace's time");
	if (!c->clock.mult && c->jit) {
		c->notice("--jit needs that place: code that is made at run time is not read");
		hw_images_jit(c->images, NULL);
		c->drain.jit = NULL;
	}
	set_origins(c);
	r = read_running(c, &running, e);
	if (r == 0)
		r = put_after_events(c, &running, e);
	hw_list_deinit(&running.pids);
	return r;
}
