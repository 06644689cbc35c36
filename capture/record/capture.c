/* capture.c - see capture.h. */
#include "capture/record/capture.h"
#include "capture/record/host_meta.h"
#include "capture/record/child.h"
#include "capture/record/event_name.h"
#include "capture/record/events.h"
#include "capture/record/spill_thread.h"
#include "capture/record/images.h"
#include "capture/record/capabilities.h"
#include "capture/record/snapshot.h"
#include "capture/record/tasks.h"
#include "schema/bytes.h"

#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TRIGGER_MS    1	    /* a trigger is looked for that often: meanwhile the buffer is overwritten */
#define ROUND_MS      20    /* between rounds when no ring asks for one */
#define FAST_LEVEL    (-7)  /* zstd's: what a user may ask for */
#define FASTEST_LEVEL (-50) /* 600 MB/s a core and more; smaller by a fifth still (tests/bench/capture.sh) */

struct capture {
	const struct hw_options *o;
	const struct hw_pmu *pmu;
	void (*notice)(const char *text);
	struct hw_result *result;
	struct ptc_writer *w;
	struct hw_events ev;
	struct hw_drain drain;
	struct hw_spill_thread *spill_thread;
	struct hw_images *images;
	struct hw_tasks tasks;
	struct hw_child child;
	struct vm_clocks *clocks;
	struct hw_snapshot *snapshots; /* a ring each */
	bool fire;		       /* a trigger's sample was among the records */
	bool paused;		       /* by control */
	struct hw_clock clock;
	struct hw_list tids, online;
	unsigned levels;
	int level; /* zstd's, as of now */
	unsigned calm;
	double started;
	uint64_t told;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void look_after_rings(void *arg)
{
	struct capture *c = arg;

	hw_drain_stash(&c->drain);
}

/* ---- Records ---------------------------------------------------------------------------------------- */

static int known(struct capture *c, int32_t pid, struct pt_error *e)
{
	return pid > 0 ? hw_tasks_put(&c->tasks, pid, c->drain.round_ns, c->images, c->w,
				      c->drain.sideband_attr, e)
		       : 0;
}

/* A record is about to go into the container: what it needs goes before it. */
static int on_record(void *arg, struct hw_drain_ring *ring, const uint8_t *p, uint64_t time_ns, int32_t pid,
		     int32_t tid, uint32_t attr, struct pt_error *e)
{
	struct capture *c = arg;
	struct perf_event_header h;

	(void)ring;
	memcpy(&h, p, sizeof h);
	if (known(c, pid, e))
		return -1;
	switch (h.type) {
	case PERF_RECORD_ITRACE_START:
	case PERF_RECORD_SWITCH_CPU_WIDE: return h.size >= 16 ? known(c, (int32_t)u32(p + 8), e) : 0;
	case PERF_RECORD_MMAP2:
		if (h.size < 80 || !(u32(p + 64) & PROT_EXEC) || (int32_t)u32(p + 8) == -1)
			return 0;
		return hw_images_mapping(c->images, (int32_t)u32(p + 8), (const char *)p + 72, u64(p + 16),
					 u64(p + 24),
					 h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID ? 0 : u64(p + 48), e);
	case PERF_RECORD_KSYMBOL:
		if (h.size < 24 || p[23] || p[22] & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
			return 0;
		return hw_kernel_code(c->images, u64(p + 8), u32(p + 16), time_ns, e);
	case PERF_RECORD_SAMPLE:
		if (attr < c->ev.attr_count && c->o->trigger &&
		    hw_trigger_sample(c->o->trigger, c->ev.attrs[attr].name, tid, time_ns))
			c->fire = true;
		if (attr < c->ev.attr_count && !strcmp(c->ev.attrs[attr].name, "module:module_load"))
			return hw_kernel_rescan(c->images, time_ns, e);
		return 0;
	default: return 0;
	}
}

/* ---- Opening ---------------------------------------------------------------------------------------- */

/* All threads of the target, a consistent list: looked at again until no new one turns up. */
static int find_tids(struct capture *c, struct pt_error *e)
{
	size_t before;

	for (size_t i = 0; i < c->o->tids.count; i++)
		if (hw_list_add(&c->tids, c->o->tids.at[i], e))
			return -1;
	do {
		before = c->tids.count;
		for (size_t i = 0; i < c->o->pids.count; i++)
			if (hw_threads(&c->tids, c->o->pids.at[i], e))
				return -1;
	} while (c->tids.count != before);
	for (size_t i = 0; i < c->o->tids.count; i++)
		if (hw_process_of(c->o->tids.at[i]) < 0)
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "there is no thread %d",
				       c->o->tids.at[i]);
	return 0;
}

static bool samples(const struct hw_options *o)
{
	for (size_t i = 0; i < o->group_count; i++)
		if (o->group[i].sample_bytes)
			return true;
	return false;
}

static int open_events(struct capture *c, struct pt_error *e)
{
	const struct hw_options *o = c->o;
	bool able = hw_capabilities_have(CAP_PERFMON) || hw_capabilities_have(CAP_SYS_ADMIN);
	const struct hw_list *cpus = o->cpus.count ? &o->cpus : &c->online;
	struct hw_events_options eo = {.cpus = cpus->at,
				       .cpu_count = cpus->count,
				       .online = c->online.at,
				       .online_count = c->online.count,
				       .pt_type = c->pmu ? c->pmu->type : 0,
				       .config = o->config,
				       .pt = !o->sideband_only,
				       .per_thread = o->per_thread,
				       .overwrite = o->snapshot || samples(o),
				       .inherit = !o->per_thread && !o->system_wide,
				       .enable_on_exec = o->program && !o->system_wide && !c->tids.count,
				       .tracepoints = o->tracepoints,
				       .tracepoint_count = o->tracepoint_count,
				       .group = o->group,
				       .group_count = o->group_count,
				       .start_paused = o->start_paused};
	int32_t child = c->child.pid;
	int r;

	for (size_t i = 0; i < o->cpus.count; i++)
		if (!hw_list_has(&c->online, o->cpus.at[i]))
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-C: CPU %d is not online",
				       o->cpus.at[i]);
	if (c->tids.count) {
		eo.tids = c->tids.at;
		eo.tid_count = c->tids.count;
	} else if (!o->system_wide) {
		eo.tids = &child;
		eo.tid_count = 1;
	}
	eo.data_bytes = o->data_bytes		       ? o->data_bytes
			: !able			       ? HW_DATA_KB_UNPRIVILEGED * 1024
			: eo.overwrite && !o->snapshot ? HW_SAMPLED_KB * 1024
						       : HW_DATA_KB * 1024;
	eo.aux_bytes = o->aux_bytes ? o->aux_bytes : (able ? HW_AUX_KB : HW_AUX_KB_UNPRIVILEGED) * 1024;
	eo.levels = o->levels ? o->levels : HW_USER | HW_KERNEL;
	eo.kernel_side = eo.levels & HW_KERNEL && able;
	eo.all_switches = able && !o->per_thread && !o->sideband_only;
	r = hw_events_open(&c->ev, &eo, e);
	if (r < 0 && !o->levels && e->kind == PT_ERR_REFUSED && !able && !o->system_wide) {
		/* Nobody asked for the kernel in so many words. */
		struct pt_error again = {0};

		hw_events_close(&c->ev);
		eo.levels = HW_USER;
		eo.kernel_side = false;
		r = hw_events_open(&c->ev, &eo, &again);
		if (r < 0)
			*e = again;
		else
			c->notice("only user space is traced: the kernel needs root, CAP_PERFMON or a "
				  "perf_event_paranoid of 1 or less");
	}
	c->levels = eo.levels;
	return r;
}

static const char *command_text(const struct hw_options *o, char *to, size_t room)
{
	size_t n = 0;

	to[0] = 0;
	for (char **p = o->program; p && *p && n < room; p++)
		n += (size_t)snprintf(to + n, room - n, "%s%s", n ? " " : "", *p);
	return to;
}

/* How the tracepoints' raw bytes read. */
static int put_formats(struct capture *c, struct pt_error *e)
{
	int ret = 0;

	for (uint32_t a = 0; a < c->ev.attr_count && ret == 0; a++) {
		const struct hw_event_attr *ea = &c->ev.attrs[a];
		const char *colon = strchr(ea->name, ':');
		char path[512], text[65536];
		FILE *f = NULL;
		size_t n;

		if (ea->attr.type == PERF_TYPE_TRACEPOINT &&
		    hw_tracepoint_file(ea->name, "format", path, sizeof path))
			f = fopen(path, "re");
		if (!f)
			continue;
		n = fread(text, 1, sizeof text, f);
		fclose(f);
		struct ptc_tracepoint t = {.id = (uint32_t)ea->attr.config,
					   .system = ea->name,
					   .system_bytes = (uint32_t)(colon - ea->name),
					   .name = colon + 1,
					   .name_bytes = (uint32_t)strlen(colon + 1),
					   .format = text,
					   .format_bytes = (uint32_t)n};

		ret = ptc_put_format(c->w, &t, e);
	}
	return ret;
}

static int put_vms(struct capture *c, struct pt_error *e)
{
	char key[64];

	for (size_t i = 0; i < c->o->vms->count; i++) {
		snprintf(key, sizeof key, "machine.%d.name", c->o->vms->at[i].pid);
		if (ptc_put_meta(c->w, key, c->o->vms->at[i].name, e))
			return -1;
	}
	c->clocks = vm_clocks_open(c->o->vms);
	if (!c->clocks)
		return pt_fail_no_memory(e, "the guests' clocks");
	return vm_clocks_put(c->clocks, c->w, "kvm", &c->result->clocks, e);
}

static int put_guests(struct capture *c, struct pt_error *e)
{
	const char *empty;
	char text[1200];

	if (guest_kernels_put(c->o->kernels, c->w, &empty, e))
		return -1;
	if (empty) {
		snprintf(text, sizeof text,
			 "%.1000s has no proc/kallsyms beneath it that tells addresses: the guest's kernel "
			 "is not in "
			 "the container; its files are for `pt-capture merge --guest-root`",
			 empty);
		c->notice(text);
	}
	return 0;
}

/* Who may run in the target's place: names only. */
static int put_others(struct capture *c, const struct hw_list *pids, uint64_t id, struct pt_error *e)
{
	struct hw_bytes b = {0};
	int ret = hw_proc_names(&b, pids, hw_clock_now_ns(&c->clock), id, e);

	if (ret == 0 && b.count)
		ret = ptc_put_sideband(c->w, c->drain.sideband_attr, b.bytes, b.count, e);
	free(b.bytes);
	return ret;
}

/* The container's begin: everything that AUX data will need and that is known already. */
static int put_head(struct capture *c, struct pt_error *e)
{
	struct pt_error why = {0};
	struct hw_list pids = {0};
	char command[4096];
	uint64_t id = 0;
	int ret = -1;

	c->clock = hw_clock_read(c->ev.rings[0].ring.page);
	if (host_meta_put(c->w, c->o->sideband_only ? "sideband" : "perf",
			  command_text(c->o, command, sizeof command), e) ||
	    host_meta_put_pt(c->w, c->pmu, c->o->config, c->levels, &c->clock, e) ||
	    (c->o->vms && put_vms(c, e)) || hw_events_declare(&c->ev, c->w, &c->drain, e) ||
	    put_formats(c, e))
		return -1;
	if (!c->clock.mult)
		c->notice(
		    "this kernel's perf clock is not the TSC: sideband cannot be put in time with the trace");
	for (size_t i = 0; i < c->ev.count && !id; i++)
		if (c->ev.events[i].kind == HW_EVENT_SIDEBAND)
			id = c->ev.events[i].id;
	if ((c->levels & HW_KERNEL || c->o->sideband_only)) {
		if (!hw_kernel_open(c->images, &why)) {
			char text[1200];

			snprintf(text, sizeof text,
				 "%s: the kernel's code is not in the container, and branches in it "
				 "cannot be decoded",
				 why.message);
			c->notice(text);
		}
	}
	if (c->o->kernels && put_guests(c, e))
		return -1;
	if (!hw_capabilities_drop() && c->o->verbose)
		c->notice("capabilities could not be dropped");
	c->spill_thread = hw_spill_thread_create(&c->drain, e);
	if (!c->spill_thread)
		return -1;
	if ((c->levels & HW_KERNEL || c->o->sideband_only) && hw_kernel_put(c->images, e))
		return -1;
	/* The events that tell of changes count already; what is read now is not older than they. */
	for (size_t i = 0; i < c->tids.count; i++) {
		int32_t pid = hw_process_of(c->tids.at[i]);

		if (pid > 0 && !hw_list_has(&pids, pid) && hw_list_add(&pids, pid, e))
			goto out;
	}
	if (c->tids.count || c->o->system_wide) {
		if (hw_tasks_read(&c->tasks, c->o->system_wide ? NULL : &pids, hw_clock_now_ns(&c->clock), id,
				  look_after_rings, c, e))
			goto out;
		if (!c->o->system_wide &&
		    hw_tasks_put_all(&c->tasks, c->images, c->w, c->drain.sideband_attr, e))
			goto out;
	}
	if (!c->o->system_wide && c->ev.rings[0].all_switches &&
	    ((c->child.pid && hw_list_add(&pids, c->child.pid, e)) || put_others(c, &pids, id, e)))
		goto out;
	ret = ptc_flush_meta(c->w, e);
out:
	free(pids.at);
	return ret;
}

/* ---- Rounds ----------------------------------------------------------------------------------------- */

/* Compresses less when rings fill faster than they are emptied, and more again when they do not. */
static void adapt(struct capture *c)
{
	int level = c->level;
	char text[100];

	if (c->drain.fill > 75 || (c->drain.fill > 50 && level <= FAST_LEVEL))
		level = FASTEST_LEVEL;
	else if (c->drain.fill > 50)
		level = level - 3 > FAST_LEVEL ? level - 3 : FAST_LEVEL;
	else if (c->drain.fill < 25 && ++c->calm > 50 && level < c->o->level)
		level = level < FAST_LEVEL && c->o->level >= FAST_LEVEL ? FAST_LEVEL : level + 1;
	if (level == c->level)
		return;
	c->calm = 0;
	c->level = level;
	ptc_writer_level(c->w, level);
	if (!c->o->verbose)
		return;
	/* More than full: some of it is set aside. */
	snprintf(text, sizeof text, "a buffer was %u %% full: zstd level %d from now on",
		 c->drain.fill < 100 ? c->drain.fill : 100, level);
	c->notice(text);
}

static uint64_t lost(const struct hw_losses *l)
{
	return l->truncated + l->partial + l->records;
}

static int put_snapshot(struct capture *c, size_t i, struct pt_error *e)
{
	struct hw_drain_ring *r = &c->ev.rings[i];
	struct hw_snapshot_piece p = hw_snapshot_take(&c->snapshots[i], &r->ring);

	while (p.bytes) {
		struct ptc_aux aux = {.aux_offset = p.offset,
				      .flags = PTC_AUX_OVERWRITE,
				      .time_ns = hw_clock_now_ns(&c->clock)};
		uint64_t n = hw_ring_aux(&r->ring, p.from, p.bytes, &aux.bytes);

		aux.size = n;
		if (ptc_put_aux(c->w, r->stream, &aux, e))
			return -1;
		c->drain.aux_bytes += n;
		p.from += n;
		p.offset += n;
		p.bytes -= n;
	}
	return 0;
}

/* The events are stopped while the buffers are read. */
static int take_snapshot(struct capture *c, bool go_on, struct pt_error *e)
{
	if (!c->o->snapshot)
		return 0;
	hw_events_disable(&c->ev);
	if (hw_drain_round(&c->drain, hw_clock_now_ns(&c->clock), e))
		return -1;
	for (size_t i = 0; i < c->ev.ring_count; i++)
		if (c->ev.rings[i].ring.aux && put_snapshot(c, i, e))
			return -1;
	if (c->o->trigger)
		c->o->trigger->armed_ns = hw_clock_now_ns(&c->clock);
	c->fire = false;
	c->result->snapshots++;
	if (c->o->verbose)
		c->notice("snapshot taken");
	if (go_on && !c->paused)
		hw_events_enable(&c->ev);
	return 0;
}

/* 1: stop. */
static int obey(struct capture *c, struct pt_error *e)
{
	enum hw_command command;

	while (c->o->control && (command = hw_control_next(c->o->control)) != HW_NO_COMMAND) {
		switch (command) {
		case HW_SNAPSHOT:
			if (take_snapshot(c, true, e))
				return -1;
			break;
		case HW_ENABLE:
		case HW_DISABLE:
			c->paused = command == HW_DISABLE;
			if (c->paused)
				hw_events_disable(&c->ev);
			else
				hw_events_enable(&c->ev);
			break;
		case HW_STOP: hw_control_ack(c->o->control); return 1;
		case HW_UNKNOWN_COMMAND: c->notice("the control FIFO says what is no command"); continue;
		default: break;
		}
		hw_control_ack(c->o->control);
	}
	return 0;
}

static int one_round(struct capture *c, struct pt_error *e)
{
	char text[160];

	if (hw_drain_round(&c->drain, hw_clock_now_ns(&c->clock), e))
		return -1;
	/* After a loss an event may be off, or (Linux 6.1 on CPU 0) on and not tracing: off and on again mends both. */
	for (size_t i = 0; i < c->drain.ring_count; i++) {
		if (!c->drain.rings[i].truncated)
			continue;
		hw_events_enable_ring(&c->ev, i, false);
		hw_events_enable_ring(&c->ev, i, true);
	}
	adapt(c);
	if (lost(&c->drain.losses) > c->told && !c->o->quiet) {
		snprintf(text, sizeof text, "data is being lost: %llu times AUX data, %llu records",
			 (unsigned long long)c->drain.losses.truncated + c->drain.losses.partial,
			 (unsigned long long)c->drain.losses.records);
		if (!c->told || lost(&c->drain.losses) > 2 * c->told) {
			c->notice(text);
			c->told = lost(&c->drain.losses);
		}
	}
	return 0;
}

static bool target_gone(const struct capture *c)
{
	char path[64];

	for (size_t i = 0; i < c->tids.count; i++) {
		snprintf(path, sizeof path, "/proc/%d", c->tids.at[i]);
		if (access(path, F_OK) == 0)
			return false;
	}
	return c->tids.count > 0;
}

static int trace(struct capture *c, struct pt_error *e)
{
	bool child_signalled = false;
	sig_atomic_t taken = 0;
	int command;
	double looked = 0, now, killed = 0;

	if (c->child.pid && hw_child_go(&c->child, c->o->program[0], e))
		return -1;
	for (;;) {
		hw_spill_thread_busy(c->spill_thread, false);
		hw_events_wait(&c->ev, c->o->trigger ? TRIGGER_MS : ROUND_MS);
		hw_spill_thread_busy(c->spill_thread, true);
		if (one_round(c, e))
			return -1;
		if (c->fire || (c->o->want_snapshot && *c->o->want_snapshot != taken)) {
			taken = c->o->want_snapshot ? *c->o->want_snapshot : 0;
			if (take_snapshot(c, true, e))
				return -1;
		}
		command = obey(c, e);
		if (command)
			return command < 0 ? -1 : 0;
		now = seconds();
		if (c->child.pid && hw_child_ended(&c->child))
			break;
		if (c->o->seconds > 0 && now - c->started >= c->o->seconds)
			break;
		if (*c->o->stop > 1 || (*c->o->stop && !c->child.pid))
			break;
		/* The program gets the signal, and two seconds to end by it. */
		if (*c->o->stop && !child_signalled) {
			kill(c->child.pid, *c->o->stop_signal);
			child_signalled = true;
			killed = now;
		}
		if (child_signalled && now - killed > 2)
			break;
		if (now - looked > 0.2) {
			looked = now;
			if (!c->child.pid && target_gone(c))
				break;
		}
	}
	return 0;
}

/* What was dropped after a ring's last PERF_RECORD_LOST: no record came that could have told of it, so one is made. */
static int put_unreported_losses(struct capture *c, struct pt_error *e)
{
	for (size_t i = 0; i < c->ev.ring_count; i++) {
		struct hw_drain_ring *r = &c->ev.rings[i];
		uint64_t id, lost = hw_events_lost(&c->ev, i, &id);
		struct {
			struct perf_event_header h;
			uint64_t id, lost;
			int32_t pid, tid;
			uint64_t time_ns;
			uint32_t cpu, zero;
			uint64_t identifier;
		} record = {{PERF_RECORD_LOST, 0, sizeof record},
			    id,
			    lost - r->lost,
			    0,
			    0,
			    hw_clock_now_ns(&c->clock),
			    (uint32_t)r->cpu,
			    0,
			    id};

		if (lost <= r->lost)
			continue;
		c->drain.losses.records += record.lost;
		if (ptc_put_sideband(c->w, c->drain.sideband_attr, &record, sizeof record, e))
			return -1;
	}
	return 0;
}

static int finish(struct capture *c, struct pt_error *e)
{
	size_t seen;

	hw_events_disable(&c->ev);
	if (c->o->snapshot && take_snapshot(c, false, e))
		return -1;
	/* Twice: data whose record was under way in the first. */
	/* NOLINTNEXTLINE(misc-redundant-expression): each call reads anew */
	if (hw_drain_round(&c->drain, hw_clock_now_ns(&c->clock), e) ||
	    /* NOLINTNEXTLINE(misc-redundant-expression) */
	    hw_drain_round(&c->drain, hw_clock_now_ns(&c->clock), e))
		return -1;
	if (put_unreported_losses(c, e))
		return -1;
	if (c->clocks && vm_clocks_put(c->clocks, c->w, "kvm_end", &seen, e))
		return -1;
	if (c->child.pid && c->child.ended && ptc_put_metaf(c->w, e, "exit_status", "%d", c->child.status))
		return -1;
	return ptc_writer_finish(c->w, e);
}

/* One for each ring that can fill at the same time as others; privileges are dropped by now, for them, too. */
static int make_drain_threads(struct capture *c, struct pt_error *e)
{
	size_t count = c->ev.ring_count < c->online.count ? c->ev.ring_count : c->online.count;

	if (!c->pmu || c->ev.overwrite || count < 2)
		return 0;
	c->drain.readers = hw_drain_threads_create(c->w, (unsigned)count, e);
	return c->drain.readers ? 0 : -1;
}

static void print_result(struct capture *c)
{
	const char *why;

	c->result->have_status = c->child.pid && c->child.ended;
	c->result->status = c->child.status;
	c->result->losses = c->drain.losses;
	c->result->aux_bytes = c->drain.aux_bytes;
	c->result->container_bytes = ptc_writer_bytes(c->w);
	c->result->missing_images = hw_images_missing(c->images, &why);
	snprintf(c->result->missing_why, sizeof c->result->missing_why, "%s", why);
	c->result->rings = (unsigned)c->ev.ring_count;
	c->result->samples = c->drain.sample_count;
	c->result->empty_samples = c->drain.empty_samples;
}

int hw_capture(const struct hw_options *o, const struct hw_pmu *pmu, int fd, void (*notice)(const char *text),
	       struct hw_result *result, struct pt_error *e)
{
	struct capture c = {.o = o,
			    .pmu = pmu,
			    .notice = notice,
			    .result = result,
			    .level = o->level,
			    .drain.lock = PTHREAD_MUTEX_INITIALIZER};
	int ret = -1;

	memset(result, 0, sizeof *result);
	if (hw_online(&c.online, e) || find_tids(&c, e))
		goto out;
	if (o->program && hw_child_start(&c.child, o->program, o->stdout_to_stderr, e))
		goto out;
	if (open_events(&c, e) || (o->filter && hw_events_filter(&c.ev, o->filter, e)))
		goto out;
	c.w = ptc_writer_create(fd, o->level, e);
	if (!c.w)
		goto out;
	c.images = hw_images_create(c.w);
	if (!c.images) {
		pt_fail_no_memory(e, "the images");
		goto out;
	}
	c.drain.w = c.w;
	c.drain.on_record = on_record;
	c.drain.arg = &c;
	ptc_writer_on_chunk(c.w, look_after_rings, &c);
	if (put_head(&c, e))
		goto out;
	c.snapshots = calloc(c.ev.ring_count, sizeof *c.snapshots);
	if (!c.snapshots) {
		pt_fail_no_memory(e, "snapshots");
		goto out;
	}
	for (size_t i = 0; i < c.ev.ring_count; i++) {
		c.ev.rings[i].task = !o->system_wide;
		c.ev.rings[i].published_ns = hw_clock_now_ns(&c.clock);
	}
	if (make_drain_threads(&c, e))
		goto out;
	c.started = seconds();
	if (o->system_wide || c.tids.count)
		hw_events_start(&c.ev);
	if (trace(&c, e) || finish(&c, e))
		goto out;
	print_result(&c);
	ret = 0;
out:
	hw_child_end(&c.child);
	hw_spill_thread_destroy(c.spill_thread);
	hw_drain_threads_destroy(c.drain.readers);
	hw_drain_deinit(&c.drain);
	hw_events_close(&c.ev);
	hw_tasks_deinit(&c.tasks);
	hw_images_destroy(c.images);
	vm_clocks_close(c.clocks);
	free(c.snapshots);
	ptc_writer_destroy(c.w);
	free(c.tids.at);
	free(c.online.at);
	return ret;
}
