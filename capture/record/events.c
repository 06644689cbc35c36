/* events.c - see events.h. */
#include "capture/record/events.h"
#include "capture/record/event_name.h"
#include "capture/record/pmu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PAGE 4096

static int kernel_open(struct perf_event_attr *a, int32_t tid, int32_t cpu, int group_fd)
{
	return (int)syscall(SYS_perf_event_open, a, tid, cpu, group_fd, PERF_FLAG_FD_CLOEXEC);
}

static int kernel_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg);
}

static const struct hw_perf_calls kernel_calls = {kernel_open, kernel_ioctl};

static int paranoid(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int v = 2;

	if (f && fscanf(f, "%d", &v) != 1)
		v = 2;
	if (f)
		fclose(f);
	return v;
}

/* The word behind aux_sample_size, which headers before Linux 6.13 have no name for but "reserved". */
static void set_aux_action(struct perf_event_attr *a, unsigned action)
{
	uint32_t v = action;

	memcpy((uint8_t *)a + offsetof(struct perf_event_attr, aux_sample_size) + sizeof v, &v, sizeof v);
}

unsigned hw_aux_action(const struct perf_event_attr *a)
{
	uint32_t v;

	memcpy(&v, (const uint8_t *)a + offsetof(struct perf_event_attr, aux_sample_size) + sizeof v,
	       sizeof v);
	return v;
}

/* Why perf_event_open() failed, and what helps. */
static int no_actions(const struct hw_event_attr *a, struct pt_error *e)
{
	struct utsname u = {.release = "?"};

	uname(&u);
	return pt_fail(
	    e, PT_ERR_REFUSED, PT_NO_OFFSET,
	    "this kernel (%s) refuses %s with aux-action (%s): pausing and resuming the trace needs Linux "
	    "6.13 and a CPU whose driver can",
	    u.release, a->name, strerror(errno));
}

static int open_failed(const struct hw_event_attr *a, int32_t tid, int32_t cpu, struct pt_error *e)
{
	int why = errno;

	switch (why) {
	case EACCES:
	case EPERM:
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "the kernel does not permit %s%s (perf_event_paranoid is %d): run as root or with "
		    "CAP_PERFMON, %s",
		    a->name, tid == -1 ? " for a whole CPU" : "", paranoid(),
		    tid == -1 ? "or trace a single program of yours"
			      : "or trace user space only (-u) of a program of yours");
	case EBUSY:
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "Processor Trace is in use already on CPU %d: by another tracer (perf?), or by a "
		    "guest",
		    cpu);
	case EMFILE:
	case ENFILE:
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "too many threads and CPUs for the limit of open files: raise it (ulimit -n), or "
		    "use -C or --per-thread");
	case EINVAL:
	case EOPNOTSUPP:
	case ENODEV:
		if (hw_aux_action(&a->attr))
			return no_actions(a, e);
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "the kernel refuses %s (%s); `pt-capture check` tells more", a->name,
			       strerror(why));
	default: errno = why; return pt_fail_errno(e, "cannot open %s", a->name);
	}
}

/* ---- Attributes ------------------------------------------------------------------------------------- */

static struct perf_event_attr base(uint32_t type, uint64_t config)
{
	struct perf_event_attr a = {.type = type,
				    .size = sizeof a,
				    .config = config,
				    .sample_period = 1,
				    .sample_type = HW_SAMPLE_TYPE,
				    .read_format = PERF_FORMAT_ID};

	a.sample_id_all = 1;
	a.exclude_hv = 1;
	return a;
}

/* Sets those optional bits that this kernel knows and permits, tried one at a time. */
static void set_optional(const struct hw_events *ev, struct perf_event_attr *a, bool task, bool kernel,
			 int32_t tid, int32_t cpu)
{
	enum { COMM_EXEC, SWITCH, NAMESPACES, CGROUP, KSYMBOL, BPF, TEXT_POKE, BITS };

	for (int bit = 0; bit < BITS; bit++) {
		struct perf_event_attr try = *a;
		int fd;

		if (bit < KSYMBOL ? !task : !kernel)
			continue;
		switch (bit) {
		case COMM_EXEC: try.comm_exec = 1; break;
		case SWITCH: try.context_switch = 1; break;
		case NAMESPACES: try.namespaces = 1; break;
		case CGROUP: try.cgroup = 1; break;
		case KSYMBOL: try.ksymbol = 1; break;
		case BPF: try.bpf_event = 1; break;
		case TEXT_POKE: try.text_poke = 1; break;
		default: break;
		}
		fd = ev->calls->open(&try, tid, cpu, -1);
		if (fd < 0)
			continue;
		close(fd);
		*a = try;
	}
}

static struct hw_event_attr *add_attr(struct hw_events *ev, enum hw_event_kind kind, const char *name,
				      const struct perf_event_attr *attr)
{
	struct hw_event_attr *a = &ev->attrs[ev->attr_count++];

	a->kind = kind;
	snprintf(a->name, sizeof a->name, "%s", name);
	a->attr = *attr;
	a->attr.read_format = ev->read_format;
	return a;
}

static uint64_t watermark(uint64_t bytes, uint64_t part)
{
	return bytes / part ? bytes / part : 1;
}

static const char *suffix(unsigned levels)
{
	return levels == HW_USER ? "u" : levels == HW_KERNEL ? "k" : "";
}

static void add_tracepoint(struct hw_events *ev, const struct hw_events_options *o, const char *event,
			   enum hw_event_kind kind)
{
	unsigned long long config;
	struct perf_event_attr a;

	if (ev->attr_count == HW_DRAIN_ATTRS || !hw_tracepoint_id(event, &config))
		return;
	a = base(PERF_TYPE_TRACEPOINT, config);
	a.sample_type |= PERF_SAMPLE_RAW;
	a.exclude_hv = 0;
	a.inherit = kind == HW_EVENT_TRACE && o->inherit && o->tids;
	a.watermark = 1;
	a.wakeup_watermark = (uint32_t)watermark(o->data_bytes, 4);
	a.disabled = kind == HW_EVENT_TRACE;
	a.enable_on_exec = a.disabled && o->enable_on_exec;
	add_attr(ev, kind, event, &a);
}

/* What events in the PT event's group do to it; they count when it does. */
static int make_group(struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e)
{
	for (size_t i = 0; i < o->group_count; i++) {
		const struct hw_group_event *g = &o->group[i];
		struct perf_event_attr a = base(0, 0);
		char name[sizeof g->name + 2];

		if (ev->attr_count == HW_DRAIN_ATTRS)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "too many events");
		if (hw_event_named(&a, g->name, e))
			return -1;
		a.inherit = o->inherit;
		snprintf(name, sizeof name, "%s", g->name);
		if (a.type == PERF_TYPE_TRACEPOINT) {
			a.sample_type |= PERF_SAMPLE_RAW;
			a.exclude_hv = 0;
		} else {
			a.exclude_kernel = !(o->levels & HW_KERNEL);
			a.exclude_user = !(o->levels & HW_USER);
			if (o->levels != (HW_USER | HW_KERNEL))
				snprintf(name, sizeof name, "%s:%s", g->name, suffix(o->levels));
		}
		if (g->sample_bytes) {
			a.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_AUX;
			a.aux_sample_size = g->sample_bytes;
			a.freq = !g->period;
			if (a.freq)
				a.sample_freq = g->frequency;
			else
				a.sample_period = g->period;
			ev->sampled = true;
		}
		set_aux_action(&a, g->action);
		a.watermark = 1;
		a.wakeup_watermark = (uint32_t)watermark(o->data_bytes, 4);
		add_attr(ev, HW_EVENT_GROUP, name, &a);
	}
	return 0;
}

static int make_attrs(struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e)
{
	int32_t tid = o->tids ? o->tids[0] : -1, cpu = o->per_thread ? -1 : o->cpus[0];
	struct perf_event_attr a;
	char name[96];
	int fd;

	ev->read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	a = base(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	a.exclude_kernel = 1;
	a.read_format = ev->read_format;
	fd = ev->calls->open(&a, tid, cpu, -1);
	if (fd >= 0)
		close(fd);
	else
		ev->read_format = PERF_FORMAT_ID; /* before Linux 6.0 */

	if (o->pt) {
		a = base(o->pt_type, o->config);
		a.disabled = 1;
		a.inherit = o->inherit;
		a.enable_on_exec = o->enable_on_exec;
		a.exclude_kernel = !(o->levels & HW_KERNEL);
		a.exclude_user = !(o->levels & HW_USER);
		a.exclude_hv = !(o->levels & HW_KERNEL);
		a.watermark = 1;
		a.wakeup_watermark = (uint32_t)watermark(o->data_bytes, 4);
		if (!o->overwrite)
			a.aux_watermark = (uint32_t)watermark(o->aux_bytes, 4);
		if (o->start_paused)
			set_aux_action(&a, HW_AUX_START_PAUSED);
		snprintf(name, sizeof name, "intel_pt//%s", suffix(o->levels));
		add_attr(ev, HW_EVENT_PT, name, &a);
		if (make_group(ev, o, e))
			return -1;
	}
	a = base(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	a.exclude_kernel = 1;
	a.inherit = o->inherit;
	a.watermark = 1;
	a.wakeup_watermark = (uint32_t)watermark(o->data_bytes, 4);
	a.mmap = a.mmap2 = a.comm = a.task = 1;
	set_optional(ev, &a, true, o->tids == NULL && o->kernel_side, tid, cpu);
	a.disabled = a.enable_on_exec = o->enable_on_exec;
	add_attr(ev, HW_EVENT_SIDEBAND, "dummy:u", &a);
	if (!o->per_thread && o->cpu_count < o->online_count) {
		struct perf_event_attr elsewhere = a;

		elsewhere.context_switch = 0;
		add_attr(ev, HW_EVENT_ELSEWHERE, "dummy:u (other CPUs)", &elsewhere);
	}
	if (o->tids && (o->kernel_side || o->all_switches)) {
		a = base(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
		a.exclude_kernel = 1;
		a.watermark = 1;
		a.wakeup_watermark = (uint32_t)watermark(o->data_bytes, 4);
		set_optional(ev, &a, o->all_switches, o->kernel_side, -1, o->online[0]);
		a.comm_exec = a.namespaces = a.cgroup = 0; /* of the target: SIDE's */
		if (a.ksymbol || a.bpf_event || a.text_poke || a.context_switch)
			add_attr(ev, HW_EVENT_KERNEL, "dummy:u (whole CPU)", &a);
		if (!a.ksymbol && !a.bpf_event && !a.text_poke && o->kernel_side)
			ev->no_privilege = true;
	}
	/* No KSYMBOL record tells of modules. */
	if (o->kernel_side)
		add_tracepoint(ev, o, "module:module_load", HW_EVENT_KERNEL);
	return 0;
}

/* ---- Rings and events ------------------------------------------------------------------------------- */

/* The ring of that CPU, or, when it has none yet, a new one without memory; -1: no memory. */
static long ring_of(struct hw_events *ev, int32_t cpu, int32_t tid)
{
	for (size_t i = 0; i < ev->ring_count; i++)
		if (ev->rings[i].cpu == cpu && (cpu >= 0 || ev->rings[i].tid == tid))
			return (long)i;
	if (ev->ring_count == ev->ring_room) {
		size_t room = ev->ring_room ? 2 * ev->ring_room : 16;
		struct hw_drain_ring *grown = realloc(ev->rings, room * sizeof *grown);

		if (!grown)
			return -1;
		ev->rings = grown;
		ev->ring_room = room;
	}
	ev->rings[ev->ring_count] = (struct hw_drain_ring){.cpu = cpu, .tid = cpu >= 0 ? -1 : tid};
	return (long)ev->ring_count++;
}

static int map_failed(const struct hw_events *ev, const char *what, struct pt_error *e)
{
	if (errno == EPERM || errno == ENOMEM)
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "no memory for %s (%llu KB of records and %llu KB of AUX data a CPU): use smaller "
		    "buffers (-m), or raise perf_event_mlock_kb or ulimit -l",
		    what, (unsigned long long)ev->data_bytes / 1024,
		    (unsigned long long)ev->aux_bytes / 1024);
	return pt_fail_errno(e, "cannot map %s", what);
}

/* The first event of a ring has its memory. */
static int map_ring(struct hw_events *ev, struct hw_drain_ring *r, int fd, bool aux, struct pt_error *e)
{
	void *p = mmap(NULL, PAGE + ev->data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return map_failed(ev, "a ring buffer", e);
	r->ring.page = p;
	r->ring.data = (uint8_t *)p + PAGE;
	r->ring.data_size = ev->data_bytes;
	if (!aux)
		return 0;
	r->ring.page->aux_offset = PAGE + ev->data_bytes;
	r->ring.page->aux_size = ev->aux_bytes;
	p = mmap(NULL, ev->aux_bytes, ev->overwrite ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 (off_t)r->ring.page->aux_offset);
	if (p == MAP_FAILED)
		return map_failed(ev, "an AUX buffer", e);
	r->overwrite = ev->overwrite;
	r->ring.aux = p;
	r->ring.aux_size = ev->aux_bytes;
	return 0;
}

/* The PT event of that task and CPU; -1: the thread had gone. */
static int leader_of(const struct hw_events *ev, int32_t tid, int32_t cpu)
{
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_PT && ev->events[i].tid == tid && ev->events[i].cpu == cpu)
			return ev->events[i].fd;
	return -1;
}

/* 1: the thread has gone. */
static int add_event(struct hw_events *ev, uint32_t attr, int32_t tid, int32_t cpu, struct pt_error *e)
{
	struct hw_event_attr *a = &ev->attrs[attr];
	int leader = a->kind == HW_EVENT_GROUP ? leader_of(ev, tid, cpu) : -1, fd, owner = -1;
	struct hw_drain_ring *r;
	long ring;

	if (a->kind == HW_EVENT_GROUP && leader < 0)
		return 1;
	fd = ev->calls->open(&a->attr, tid, cpu, leader);
	if (fd < 0 && errno == ESRCH)
		return 1;
	if (fd < 0 && errno == EMFILE) {
		struct rlimit l;

		if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
			l.rlim_cur = l.rlim_max;
			setrlimit(RLIMIT_NOFILE, &l);
			fd = ev->calls->open(&a->attr, tid, cpu, leader);
		} else {
			errno = EMFILE;
		}
	}
	if (fd < 0)
		return open_failed(a, tid, cpu, e);
	if (ev->count == ev->room) {
		size_t room = ev->room ? 2 * ev->room : 64;
		struct hw_event *grown = realloc(ev->events, room * sizeof *grown);

		if (!grown) {
			close(fd);
			return pt_fail_no_memory(e, "events");
		}
		ev->events = grown;
		ev->room = room;
	}
	ring = ring_of(ev, cpu, tid);
	ev->events[ev->count] = (struct hw_event){fd, a->kind, attr, 0, (size_t)ring, tid, cpu};
	for (size_t i = 0; i < ev->count && owner < 0; i++)
		if (ev->events[i].ring == (size_t)ring)
			owner = ev->events[i].fd;
	ev->count++; /* from here on it is closed with the others */
	if (ring < 0)
		return pt_fail_no_memory(e, "events");
	r = &ev->rings[ring];
	if (!r->ring.page) {
		if (map_ring(ev, r, fd, a->kind == HW_EVENT_PT, e))
			return -1;
	} else if (ev->calls->ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (void *)(intptr_t)owner)) {
		return pt_fail_errno(e, "cannot join %s to its ring buffer", a->name);
	}
	if (ev->calls->ioctl(fd, PERF_EVENT_IOC_ID, &ev->events[ev->count - 1].id))
		return pt_fail_errno(e, "cannot ask %s for its id", a->name);
	return 0;
}

static bool among(const int32_t *cpus, size_t count, int32_t cpu)
{
	for (size_t i = 0; i < count; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}

int hw_events_open(struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e)
{
	static const int32_t everything = -1, anywhere = -1;
	const int32_t *tids = o->tids ? o->tids : &everything, *cpus = o->per_thread ? &anywhere : o->cpus;
	size_t tid_count = o->tids ? o->tid_count : 1, cpu_count = o->per_thread ? 1 : o->cpu_count;
	size_t begun = 0;

	ev->data_bytes = o->data_bytes;
	ev->aux_bytes = o->pt ? o->aux_bytes : 0;
	ev->overwrite = o->overwrite;
	ev->calls = o->calls ? o->calls : &kernel_calls;
	if (make_attrs(ev, o, e))
		return -1;
	for (size_t i = 0; i < o->tracepoint_count; i++)
		add_tracepoint(ev, o, o->tracepoints[i], HW_EVENT_TRACE);
	/* PT first: a ring's first event has its memory, and only PT's can have an AUX area. */
	for (uint32_t a = 0; a < ev->attr_count; a++) {
		bool kernel = ev->attrs[a].kind == HW_EVENT_KERNEL,
		     trace = ev->attrs[a].kind == HW_EVENT_TRACE,
		     elsewhere = ev->attrs[a].kind == HW_EVENT_ELSEWHERE;
		/* The kernel's code may be changed on any CPU; who else runs matters on those that are traced. */
		bool all = elsewhere || (kernel && o->kernel_side);
		size_t targets = kernel ? 1 : tid_count, places = all ? o->online_count : cpu_count;

		for (size_t t = 0; t < targets; t++) {
			for (size_t c = 0; c < places; c++) {
				int32_t cpu = all ? o->online[c] : cpus[c];
				int r;

				if (elsewhere && among(cpus, cpu_count, cpu))
					continue;
				r = add_event(ev, a, kernel ? -1 : tids[t], cpu, e);
				if (r < 0 && (kernel || trace || elsewhere) && e->kind == PT_ERR_REFUSED) {
					ev->no_privilege = true;
					break;
				}
				if (r < 0)
					return -1;
				begun += r == 0 && a == 0;
			}
		}
	}
	if (!begun)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "what was to be traced has ended already");
	ev->polls = calloc(ev->count, sizeof *ev->polls);
	if (!ev->polls)
		return pt_fail_no_memory(e, "events");
	for (size_t i = 0; i < ev->count; i++)
		ev->polls[i] = (struct pollfd){.fd = ev->events[i].fd, .events = POLLIN};
	return 0;
}

uint64_t hw_events_lost(const struct hw_events *ev, size_t ring, uint64_t *ret_id)
{
	uint64_t values[3], lost = 0, most = 0; /* value, id, lost */

	*ret_id = 0;
	for (size_t i = 0; ev->read_format & PERF_FORMAT_LOST && i < ev->count; i++) {
		if (ev->events[i].ring != ring ||
		    read(ev->events[i].fd, values, sizeof values) != sizeof values)
			continue;
		lost += values[2];
		if (values[2] > most) {
			most = values[2];
			*ret_id = values[1];
		}
	}
	return lost;
}

int hw_events_filter(struct hw_events *ev, const char *filter, struct pt_error *e)
{
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_PT &&
		    ev->calls->ioctl(ev->events[i].fd, PERF_EVENT_IOC_SET_FILTER, (void *)(uintptr_t)filter))
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				       "the kernel refuses --filter '%s': %s%s", filter, strerror(errno),
				       errno == EOPNOTSUPP ? " (Intel PT has filter and tracestop, as many "
							     "as this CPU has ranges; of a file for "
							     "tasks, not for whole CPUs)"
							   : "");
	return 0;
}

void hw_events_close(struct hw_events *ev)
{
	for (size_t i = 0; i < ev->ring_count; i++) {
		struct hw_ring *r = &ev->rings[i].ring;

		if (r->aux)
			munmap((void *)(uintptr_t)r->aux, r->aux_size);
		if (r->page)
			munmap(r->page, PAGE + r->data_size);
	}
	for (size_t i = 0; i < ev->count; i++)
		close(ev->events[i].fd);
	free(ev->events);
	free(ev->rings);
	free(ev->polls);
	memset(ev, 0, sizeof *ev);
}

void hw_events_enable_ring(struct hw_events *ev, size_t ring, bool enable)
{
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_PT && (ring == SIZE_MAX || ev->events[i].ring == ring))
			ev->calls->ioctl(ev->events[i].fd,
					 enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, NULL);
}

void hw_events_start(struct hw_events *ev)
{
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_TRACE)
			ev->calls->ioctl(ev->events[i].fd, PERF_EVENT_IOC_ENABLE, NULL);
	hw_events_enable(ev);
}

void hw_events_enable(struct hw_events *ev)
{
	hw_events_enable_ring(ev, SIZE_MAX, true);
}

void hw_events_disable(struct hw_events *ev)
{
	hw_events_enable_ring(ev, SIZE_MAX, false);
}

void hw_events_wait(struct hw_events *ev, int timeout_ms)
{
	/* An event whose task has ended is ready for ever: it is not asked again. Others of its ring still are. */
	if (poll(ev->polls, ev->count, timeout_ms) > 0)
		for (size_t i = 0; i < ev->count; i++)
			if (ev->polls[i].revents & (POLLHUP | POLLERR | POLLNVAL))
				ev->polls[i].fd = -1;
}

static int by_id(const void *a, const void *b)
{
	const struct hw_event *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

int hw_events_declare(struct hw_events *ev, struct ptc_writer *w, struct hw_drain *d, struct pt_error *e)
{
	struct hw_event *sorted = malloc(ev->count * sizeof *sorted);
	uint64_t *ids = malloc(ev->count * sizeof *ids), *mine = malloc(ev->count * sizeof *mine);
	uint32_t *attrs = malloc(ev->count * sizeof *attrs);
	int ret = -1;

	d->ids = ids; /* d's from now on */
	d->id_attrs = attrs;
	if (!sorted || !ids || !mine || !attrs) {
		pt_fail_no_memory(e, "events");
		goto out;
	}
	memcpy(sorted, ev->events, ev->count * sizeof *sorted);
	qsort(sorted, ev->count, sizeof *sorted, by_id);
	for (size_t i = 0; i < ev->count; i++) {
		ids[i] = sorted[i].id;
		attrs[i] = sorted[i].attr;
	}
	d->id_count = ev->count;
	for (uint32_t a = 0; a < ev->attr_count; a++) {
		uint32_t n = 0;

		for (size_t i = 0; i < ev->count; i++)
			if (ev->events[i].attr == a)
				mine[n++] = ev->events[i].id;
		if (ev->attrs[a].kind == HW_EVENT_SIDEBAND)
			d->sideband_attr = a;
		d->sample_types[a] = ev->attrs[a].attr.sample_type;
		if (ptc_put_attr(w,
				 &(struct ptc_attr){.name = ev->attrs[a].name,
						    .name_bytes = (uint32_t)strlen(ev->attrs[a].name),
						    .attr = (const uint8_t *)&ev->attrs[a].attr,
						    .attr_bytes = sizeof ev->attrs[a].attr,
						    .ids = (const uint8_t *)mine,
						    .count = n},
				 e))
			goto out;
	}
	for (size_t i = 0; i < ev->ring_count; i++) {
		struct hw_drain_ring *r = &ev->rings[i];
		struct ptc_stream s = {.cpu = r->cpu, .pid = -1, .tid = r->tid, .snapshot = ev->overwrite};
		int64_t n;

		if (!r->ring.aux)
			continue;
		n = ptc_put_stream(w, &s, e);
		if (n < 0)
			goto out;
		r->stream = (uint32_t)n;
	}
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_KERNEL &&
		    ev->attrs[ev->events[i].attr].attr.context_switch)
			ev->rings[ev->events[i].ring].all_switches = true;
	d->rings = ev->rings;
	d->ring_count = ev->ring_count;
	ret = 0;
out:
	free(sorted);
	free(mine);
	return ret;
}
