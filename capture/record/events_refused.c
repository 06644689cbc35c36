/* events_refused.c - why the kernel refused an event, its memory or its filter, and what helps. */
#include "capture/record/events_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

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

static int actions_refused(const struct hw_event_attr *a, int why, struct pt_error *e)
{
	struct utsname u = {.release = "?"};

	uname(&u);
	return pt_fail(
	    e, PT_ERR_REFUSED, PT_NO_OFFSET,
	    "this kernel (%s) refuses %s with aux-action (%s): pausing and resuming the trace needs Linux "
	    "6.13 and a CPU with a driver that can",
	    u.release, a->name, strerror(why));
}

static bool is_permission(int why)
{
	return why == EACCES || why == EPERM;
}

static int no_file(const struct hw_event_attr *a, int why, struct pt_error *e)
{
	struct rlimit l = {0};

	getrlimit(RLIMIT_NOFILE, &l);
	if (why == ENFILE)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "no file descriptor for %s: this machine has no more (sysctl fs.file-max)",
			       a->name);
	return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		       "no file descriptor for %s: too many threads and CPUs for the limit of open files, "
		       "%llu: raise it "
		       "(ulimit -Hn), or use -C or --per-thread",
		       a->name, (unsigned long long)l.rlim_cur);
}

static int refused(const struct hw_event_attr *a, int32_t tid, int32_t cpu, int why, struct pt_error *e)
{
	if (is_permission(why))
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "the kernel does not permit %s%s (perf_event_paranoid is %d): run as root or with "
		    "CAP_PERFMON, %s",
		    a->name, tid == -1 ? " for a whole CPU" : "", paranoid(),
		    tid == -1 ? "or trace a single program of yours"
			      : "or trace user space only (--all-user) of a program of yours");
	switch (why) {
	case EBUSY:
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "Processor Trace is in use already on CPU %d: by another tracer (perf?), or by a "
		    "guest",
		    cpu);
	case ENOSPC:
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s: all breakpoints of this CPU or thread are in use (a debugger's, another "
			       "perf's); there are 4",
			       a->name);
	case EMFILE:
	case ENFILE: return no_file(a, why, e);
	case ENOMEM:
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "the kernel has no memory for %s: use -C, or fewer threads", a->name);
	case EINVAL:
	case EOPNOTSUPP:
	case ENODEV:
		if (hw_aux_action(&a->attr))
			return actions_refused(a, why, e);
		if (a->attr.type == PERF_TYPE_BREAKPOINT)
			return pt_fail(
			    e, PT_ERR_REFUSED, PT_NO_OFFSET,
			    "the kernel refuses a breakpoint there, %s (%s): a few of its own functions "
			    "may have none",
			    a->name, strerror(why));
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "the kernel refuses %s (%s); `pt-capture check` says more", a->name,
			       strerror(why));
	default: errno = why; return pt_fail_errno(e, "cannot open %s", a->name);
	}
}

int hw_event_refused(const struct hw_event_attr *a, int32_t tid, int32_t cpu, struct pt_error *e)
{
	int why = errno, r = refused(a, tid, cpu, why, e);

	errno = why;
	return r;
}

#define AUX_MAX                                                                                              \
	((uint64_t)2 << 30) /* the kernel's array of pages is one piece of at most 4 MB (rb_alloc_aux()) */
#define ONE_ENTRY_MAX ((uint64_t)4 << 20) /* and so is memory without a gap */

/* Sizes that no amount of memory helps with. */
static bool too_big(const struct hw_events *ev, struct pt_error *e)
{
	if (ev->one_entry && ev->aux_bytes > ONE_ENTRY_MAX)
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			"an AUX buffer of %llu KB: this CPU's Processor Trace (Broadwell's) wants one "
			"contiguous piece of "
			"memory, of which the kernel gives 4096 KB at most: -m ,4M",
			(unsigned long long)ev->aux_bytes / 1024);
	else if (ev->aux_bytes > AUX_MAX)
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			"an AUX buffer of %llu MB: the kernel gives about 2048 MB for each at most: -m ,2G",
			(unsigned long long)ev->aux_bytes >> 20);
	else
		return false;
	return true;
}

int hw_ring_refused(const struct hw_events *ev, const char *what, bool aux, struct pt_error *e)
{
	int why = errno;

	if (aux && too_big(ev, e))
		return -1;
	if (why == EPERM || why == ENOMEM)
		pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "no memory for %s (%llu KB of records and %llu KB of AUX data per CPU): use smaller "
		    "buffers (-m), or raise perf_event_mlock_kb or ulimit -l%s",
		    what, (unsigned long long)ev->data_bytes / 1024, (unsigned long long)ev->aux_bytes / 1024,
		    ev->one_entry && aux ? "; of this CPU (Broadwell's) it must be contiguous: -m ,1M" : "");
	else
		pt_fail_errno(e, "cannot map %s", what);
	errno = why;
	return -1;
}

int hw_filter_refused(const char *filter, struct pt_error *e)
{
	const char *note =
	    errno == EOPNOTSUPP
		? " (Intel PT has filter and tracestop, as many as this CPU has ranges; of a file for "
		  "tasks, not for whole CPUs)"
		: "";

	return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "the kernel refuses --filter '%s': %s%s", filter,
		       strerror(errno), note);
}
