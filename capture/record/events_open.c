/* events_open.c - opens the events and maps their rings; see events.h. */
#include "capture/record/buffer_size.h"
#include "capture/record/events_internal.h"
#include "schema/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int kernel_open(struct perf_event_attr *a, int32_t tid, int32_t cpu, int group_fd)
{
	return (int)syscall(SYS_perf_event_open, a, tid, cpu, group_fd, PERF_FLAG_FD_CLOEXEC);
}

static int kernel_open_cgroup(struct perf_event_attr *a, int cgroup_fd, int32_t cpu, int group_fd)
{
	return (int)syscall(SYS_perf_event_open, a, cgroup_fd, cpu, group_fd,
			    PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP);
}

static int kernel_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg);
}

static const struct hw_perf_calls kernel_calls = {kernel_open, kernel_ioctl, kernel_open_cgroup};

/* ---- Rings ---- */

/* The ring of that CPU or thread, or, when it has none yet, a new one without memory; -1 (e filled). */
static long ring_of(struct hw_events *ev, int32_t cpu, int32_t tid, struct pt_error *e)
{
	for (size_t i = 0; i < ev->ring_count; i++)
		if (ev->rings[i].cpu == cpu && (cpu >= 0 || ev->rings[i].tid == tid))
			return (long)i;
	if (pt_array_grow(&ev->rings, ev->ring_count, &ev->ring_room, e))
		return -1;
	ev->rings[ev->ring_count] = (struct hw_drain_ring){.cpu = cpu, .tid = cpu >= 0 ? -1 : tid};
	return (long)ev->ring_count++;
}

/* Maps the memory of a ring, which belongs to its first event. */
static int map_ring(struct hw_events *ev, struct hw_drain_ring *r, int fd, bool aux, struct pt_error *e)
{
	void *p = mmap(NULL, HW_PAGE + ev->data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return hw_ring_refused(ev, "a ring buffer", false, e);
	r->ring.page = p;
	r->ring.data = (uint8_t *)p + HW_PAGE;
	r->ring.data_size = ev->data_bytes;
	if (!aux)
		return 0;
	r->ring.page->aux_offset = HW_PAGE + ev->data_bytes;
	r->ring.page->aux_size = ev->aux_bytes;
	p = mmap(NULL, ev->aux_bytes, ev->overwrite ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 (off_t)r->ring.page->aux_offset);
	if (p == MAP_FAILED)
		return hw_ring_refused(ev, "an AUX buffer", true, e);
	r->overwrite = ev->overwrite;
	r->ring.aux = p;
	r->ring.aux_size = ev->aux_bytes;
	return 0;
}

/* The event writes into its ring: the first one into new memory, the others into the first one's. */
static int join_ring(struct hw_events *ev, const struct hw_event *event, struct pt_error *e)
{
	const struct hw_event_attr *a = &ev->attrs[event->attr];
	struct hw_drain_ring *r = &ev->rings[event->ring];
	const struct hw_event *first = ev->events;

	if (!r->ring.page)
		return map_ring(ev, r, event->fd, event->kind == HW_EVENT_PT, e);
	while (first->ring != event->ring)
		first++;
	if (ev->calls->ioctl(event->fd, PERF_EVENT_IOC_SET_OUTPUT, (void *)(intptr_t)first->fd))
		return pt_fail_errno(e, "cannot join %s to its ring buffer", a->name);
	return 0;
}

/* ---- Events ---- */

/* The PT event of that thread and CPU; -1: the thread had ended. */
static int leader_of(const struct hw_events *ev, int32_t tid, int32_t cpu)
{
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_PT && ev->events[i].tid == tid && ev->events[i].cpu == cpu)
			return ev->events[i].fd;
	return -1;
}

/* An event whose ring the kernel refused; and the ring, if it was made for this event. */
static void drop_last_event(struct hw_events *ev)
{
	const struct hw_event *event = &ev->events[--ev->count];

	if (!ev->rings[event->ring].ring.page)
		ev->ring_count--;
	close(event->fd);
}

/* What is asked for; who runs on a CPU, and what code there is, is needed of all. */
static bool is_in_cgroup(enum hw_event_kind kind)
{
	return kind == HW_EVENT_PT || kind == HW_EVENT_GROUP || kind == HW_EVENT_TRACE;
}

/* 1: the thread has ended. */
static int add_event(struct hw_events *ev, uint32_t attr, int32_t tid, int32_t cpu, struct pt_error *e)
{
	struct hw_event_attr *a = &ev->attrs[attr];
	int leader = a->kind == HW_EVENT_GROUP ? leader_of(ev, tid, cpu) : -1, fd;
	struct hw_event *event;
	long ring;

	if (a->kind == HW_EVENT_GROUP && leader < 0)
		return 1;
	fd = ev->cgroup_fd && is_in_cgroup(a->kind)
		 ? ev->calls->open_cgroup(&a->attr, ev->cgroup_fd, cpu, leader)
		 : ev->calls->open(&a->attr, tid, cpu, leader);
	if (fd < 0)
		return errno == ESRCH ? 1 : hw_event_refused(a, tid, cpu, e);
	ring = ring_of(ev, cpu, tid, e);
	if (ring < 0 || pt_array_grow(&ev->events, ev->count, &ev->room, e)) {
		close(fd);
		return -1;
	}
	event = &ev->events[ev->count++]; /* from here on it is closed with the others */
	*event = (struct hw_event){fd, a->kind, attr, 0, (size_t)ring, tid, cpu};
	if (join_ring(ev, event, e)) {
		int why = errno;

		drop_last_event(ev);
		errno = why;
		return -1;
	}
	if (ev->calls->ioctl(fd, PERF_EVENT_IOC_ID, &event->id))
		return pt_fail_errno(e, "cannot ask %s for its id", a->name);
	return 0;
}

/* Where an attr's events are: on each of these CPUs for each of these threads. */
struct placement {
	const int32_t *tids, *cpus;
	size_t tid_count, cpu_count;
	const struct hw_list *except; /* not on these CPUs; NULL: on all */
};

static struct placement place(const struct hw_events_options *o, enum hw_event_kind kind)
{
	static const int32_t all = -1;
	bool kernel = kind == HW_EVENT_KERNEL, elsewhere = kind == HW_EVENT_ELSEWHERE;
	struct placement p = {&all, &all, 1, 1, NULL};
	/* The kernel's code may be changed on any CPU; which other tasks run matters on those that are
	 * traced. */
	const struct hw_list *cpus = elsewhere || (kernel && o->kernel_sideband) ? o->online
				     : o->per_thread				 ? NULL
										 : o->cpus;

	if (o->tids && !kernel) {
		p.tids = o->tids->at;
		p.tid_count = o->tids->count;
	}
	if (cpus) {
		p.cpus = cpus->at;
		p.cpu_count = cpus->count;
	}
	if (elsewhere)
		p.except = o->cpus;
	return p;
}

/* Only what is not permitted, and was not asked for by name: what fails for want of descriptors or
 * memory would be missing unseen. */
static bool may_leave_out(struct hw_event_attr *a, int why)
{
	if (!a->optional || (why != EACCES && why != EPERM))
		return false;
	a->left_out++;
	a->why = why;
	return true;
}

/*
 * Raises the limit of open files to what the events take and HW_SPARE_FILES others, the hard one, too, if
 * this process may. Before the events are open: with all taken, no file's code could be read.
 */
static void raise_file_limit(const struct hw_events *ev, const struct hw_events_options *o)
{
	rlim_t wanted = HW_SPARE_FILES;
	struct rlimit l;

	for (uint32_t a = 0; a < ev->attr_count; a++) {
		struct placement p = place(o, ev->attrs[a].kind);

		wanted += p.tid_count * p.cpu_count;
	}
	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= wanted)
		return;
	l.rlim_cur = l.rlim_max < wanted ? l.rlim_max : wanted;
	if (l.rlim_max < wanted && setrlimit(RLIMIT_NOFILE, &(struct rlimit){wanted, wanted}) == 0)
		return;
	setrlimit(RLIMIT_NOFILE, &l);
}

/*
 * One event of each ring is waited for: data of any of its events wakes all (ring_buffer_wakeup()). By edges:
 * that of a task that has ended is ready forever.
 */
static int watch_rings(struct hw_events *ev, size_t first, struct pt_error *e)
{
	if (!ev->opened)
		ev->epoll = epoll_create1(EPOLL_CLOEXEC);
	ev->opened = ev->epoll >= 0;
	if (!ev->opened)
		return pt_fail_errno(e, "cannot wait for events");
	for (size_t r = first; r < ev->ring_count; r++) {
		struct epoll_event event = {.events = EPOLLIN | EPOLLET};
		size_t i = 0;

		while (ev->events[i].ring != r)
			i++;
		/* EPERM: it is a file, a test's double. */
		if (epoll_ctl(ev->epoll, EPOLL_CTL_ADD, ev->events[i].fd, &event) && errno != EPERM)
			return pt_fail_errno(e, "cannot wait for %s", ev->attrs[ev->events[i].attr].name);
	}
	return 0;
}

/* Opens an attr's events. *opened: increased by their number. */
static int add_events(struct hw_events *ev, uint32_t attr, const struct placement *p, size_t *opened,
		      struct pt_error *e)
{
	for (size_t t = 0; t < p->tid_count; t++) {
		for (size_t c = 0; c < p->cpu_count; c++) {
			const struct hw_list *only = ev->attrs[attr].cpus;
			int r;

			if ((p->except && hw_list_has(p->except, p->cpus[c])) ||
			    (only && !hw_list_has(only, p->cpus[c])))
				continue;
			errno = 0;
			r = add_event(ev, attr, p->tids[t], p->cpus[c], e);
			if (r < 0 && !may_leave_out(&ev->attrs[attr], errno))
				return -1;
			*opened += r == 0;
		}
	}
	return 0;
}

int hw_events_open(struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e)
{
	size_t opened = 0, traced = 0;

	ev->data_bytes = o->data_bytes;
	ev->aux_bytes = o->pt ? o->aux_bytes : 0;
	ev->overwrite = o->overwrite;
	ev->one_entry = o->one_entry;
	ev->cgroup_fd = o->cgroup_fd;
	ev->raw_clock = o->raw_clock;
	ev->calls = o->calls ? o->calls : &kernel_calls;
	if (hw_events_make_attrs(ev, o, e))
		return -1;
	raise_file_limit(ev, o);
	/* PT first: a ring's first event has its memory, and only PT's can have an AUX area. Of all threads
	 * before the others of any: a thread that inherits PT's may not inherit those, and one that does
	 * not does neither. */
	for (uint32_t a = 0; a < ev->attr_count; a++) {
		struct placement p = place(o, ev->attrs[a].kind);

		if (add_events(ev, a, &p, a == 0 ? &traced : &opened, e))
			return -1;
	}
	if (!traced)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "what was to be traced has ended already");
	return watch_rings(ev, 0, e);
}

/* ---- Threads that begin meanwhile ---- */

/* 1: the thread inherits PT on all CPUs, or has ended; 0: not on some, where it has it now. */
static int add_begun_pt(struct hw_events *ev, const struct placement *p, struct pt_error *e)
{
	int r = 1;

	for (size_t c = 0; c < p->cpu_count; c++) {
		int added = add_event(ev, 0, p->tids[0], p->cpus[c], e);

		/* A task has one PT event on a CPU (exclusive_event_installable()). */
		if (added < 0 && errno != EBUSY)
			return -1;
		if (added == 0)
			r = 0;
	}
	return r;
}

/* Whether it does no harm if a task has two of them. */
static bool may_be_twice(enum hw_event_kind kind)
{
	return kind == HW_EVENT_SIDEBAND || kind == HW_EVENT_ELSEWHERE;
}

static int add_begun(struct hw_events *ev, const struct hw_events_options *o, int32_t tid, bool *ret_opened,
		     struct pt_error *e)
{
	struct placement p = place(o, HW_EVENT_PT);
	size_t opened = 0;
	int inherits;

	p.tids = &tid;
	p.tid_count = 1;
	inherits = add_begun_pt(ev, &p, e);
	if (inherits < 0)
		return -1;
	*ret_opened = !inherits;
	for (uint32_t a = 1; a < ev->attr_count; a++) {
		enum hw_event_kind kind = ev->attrs[a].kind;

		if (kind == HW_EVENT_KERNEL || (inherits && !may_be_twice(kind)))
			continue;
		p = place(o, kind);
		p.tids = &tid;
		p.tid_count = 1;
		if (add_events(ev, a, &p, &opened, e))
			return -1;
	}
	return 0;
}

int hw_events_open_begun(struct hw_events *ev, const struct hw_events_options *o, size_t *ret_opened,
			 struct pt_error *e)
{
	size_t rings = ev->ring_count;
	bool opened;

	*ret_opened = 0;
	for (size_t t = 0; t < o->tids->count; t++) {
		if (add_begun(ev, o, o->tids->at[t], &opened, e))
			return -1;
		*ret_opened += opened;
	}
	return watch_rings(ev, rings, e);
}
