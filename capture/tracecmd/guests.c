/* guests.c - see guests.h. */
#include "capture/tracecmd/guests.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY_BYTES 64

/* ---- Which VM ---- */

/*
 * The process of a thread by the last FORK or COMM record in sideband that has it: *ret changes, if there is
 * one.
 */
static void process_in_records(const uint8_t *p, uint64_t size, int32_t tid, int32_t *ret)
{
	while (size) {
		struct perf_event_header h;
		int32_t ids[4] = {-1, -1, -1, -1}; /* FORK: pid, ppid, tid; COMM: pid, tid */

		memcpy(&h, p, sizeof h);
		memcpy(ids, p + sizeof h, h.size - sizeof h < sizeof ids ? h.size - sizeof h : sizeof ids);
		if ((h.type == PERF_RECORD_FORK && ids[2] == tid) ||
		    (h.type == PERF_RECORD_COMM && ids[1] == tid))
			*ret = ids[0];
		p += h.size;
		size -= h.size;
	}
}

/*
 * The process of a thread of the host, as the container's records have it; the thread's own number when they
 * do not.
 */
static int32_t process_of(const struct dat_host *h, int in, int32_t tid)
{
	struct ptc_reader *r = NULL;
	struct pt_error end;
	struct ptc_chunk c;
	int32_t ret = tid;

	if (in < 0 || lseek(in, 0, SEEK_SET) < 0 || !(r = ptc_reader_create(in, &end)))
		return tid;
	while (ret == tid && ptc_next(r, &c, &end) > 0) {
		const uint8_t *p;
		uint64_t size;
		uint32_t attr;

		if (h->progress)
			h->progress();
		if (c.type == PTC_SIDEBAND && ptc_parse_sideband(&c, &attr, &p, &size, &end) == 0)
			process_in_records(p, size, tid, &ret);
	}
	ptc_reader_destroy(r);
	return ret > 0 ? ret : tid;
}

/* The VM's process that META has a vCPU's thread of; 0: none. */
static int32_t process_in_meta(const struct dat_host *h, int32_t tid)
{
	const char *key, *value;

	for (size_t i = 0; ptc_meta_pair(h->meta, i, &key, &value); i++) {
		int pid, vcpu, n = 0;

		if (sscanf(key, "kvm.%d.%d.tid%n", &pid, &vcpu, &n) == 2 && n && !key[n] &&
		    atoi(value) == tid)
			return pid;
	}
	return 0;
}

int dat_guest_find_pid(struct dat_guest *g, const struct dat_host *h, int in, struct pt_error *e)
{
	const char *name;
	const int *tids;

	g->pid = g->of->pid;
	if (!g->pid && trace_dat_guest_cpus(h->dat, g->dat, &name, &tids) > 0) {
		g->pid = process_in_meta(h, tids[0]);
		if (!g->pid)
			g->pid = process_of(h, in, tids[0]);
	}
	if (g->pid)
		return 0;
	return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		       "%s does not know the guest of %s: say --guest %s,PID, of its VM's process", h->path,
		       g->of->path, g->of->path);
}

int dat_host_find_vcpus(struct dat_host *h, struct pt_error *e)
{
	enum { EVENTS_MAX = 1 << 20 };
	struct trace_dat_event event;
	struct trace_dat *dat = trace_dat_open(h->path, e);
	uint64_t vcpu;

	if (!dat)
		return -1;
	for (int i = 0; i < EVENTS_MAX && trace_dat_next(dat, &event, e) > 0; i++) {
		if (!trace_dat_number(dat, &event, "vcpu_id", &vcpu) || vcpu >= DAT_VCPUS_MAX ||
		    h->vcpu_tids[vcpu])
			continue;
		h->vcpu_tids[vcpu] = event.tid;
		if (vcpu >= h->vcpus)
			h->vcpus = (unsigned)vcpu + 1;
	}
	trace_dat_close(dat);
	return 0;
}

/* ---- Clocks ---- */

/* Offsets are modulo 2^64, as the TSC is. */
static int64_t minus(int64_t offset)
{
	return (int64_t)(0 - (uint64_t)offset);
}

/*
 * The offset that the command line says, else what trace-cmd's agent has found. The file has it the other way
 * round: what is to be added to the guest's times.
 */
static void find_offset(struct dat_guest *g)
{
	const struct trace_dat_shift *shift = trace_dat_shift(g->dat, 0);

	g->has_offset = g->of->has_offset;
	g->offset = g->of->offset;
	if (g->has_offset || !shift || shift->scaled)
		return;
	g->has_offset = true;
	g->offset = minus(shift->first);
}

/* "PREFIX.PID.VCPU.tsc_offset" */
static int put_kvm_offset(struct ptc_writer *w, const char *prefix, const struct dat_guest *g, unsigned vcpu,
			  int64_t offset, struct pt_error *e)
{
	char key[KEY_BYTES];

	snprintf(key, sizeof key, "%s.%d.%u.tsc_offset", prefix, g->pid, vcpu);
	return ptc_put_metaf(w, e, key, "%" PRId64, offset);
}

/* Of a vCPU; the end's only where the clock was set in between. */
static int put_offset(struct ptc_writer *w, const struct dat_guest *g, unsigned vcpu, struct pt_error *e)
{
	const struct trace_dat_shift *shift = trace_dat_shift(g->dat, vcpu);
	int64_t first = g->offset, last = g->offset;

	if (!g->of->has_offset && shift && !shift->scaled) {
		first = minus(shift->first);
		last = minus(shift->last);
	}
	if (put_kvm_offset(w, "kvm", g, vcpu, first, e))
		return -1;
	return first == last ? 0 : put_kvm_offset(w, "kvm_end", g, vcpu, last, e);
}

static const char *machine_key(char to[KEY_BYTES], const struct dat_guest *g, const char *key)
{
	snprintf(to, KEY_BYTES, "machine.%d.%s", g->pid, key);
	return to;
}

/*
 * How a guest's times relate to the host's: by its TSC's offset, which the trace in the container says, too.
 * Where there is no trace, by the offset of the nanoseconds that both TSCs are counted in.
 */
static int put_clock(struct ptc_writer *w, const struct dat_guest *g, const struct dat_host *h,
		     struct pt_error *e)
{
	const struct dat_clock *clock = &h->clock;
	char key[KEY_BYTES];
	__int128 ns;

	if (!h->into && g->has_offset) {
		ns = (__int128)g->offset * (__int128)clock->mult >> clock->shift;
		return ptc_put_metaf(w, e, machine_key(key, g, "clock_offset_ns"), "%" PRId64,
				     (int64_t)(clock->zero - (uint64_t)ns));
	}
	return ptc_put_metaf(w, e, machine_key(key, g, "time_mult"), "%" PRIu64, clock->mult) ||
		       ptc_put_metaf(w, e, machine_key(key, g, "time_shift"), "%" PRIu64, clock->shift) ||
		       ptc_put_meta(w, machine_key(key, g, "time_zero"), "0", e)
		   ? -1
		   : 0;
}

/*
 * The clock of the guest's records: its own, when the container has it. Of a TSC, the host's nanoseconds are
 * as good.
 */
static int begin_clock(struct ptc_writer *w, const struct dat_guest *g, const struct dat_host *h,
		       struct dat_clock *ret, struct pt_error *e)
{
	char key[KEY_BYTES];

	ret->mult = ptc_meta_number(h->meta, machine_key(key, g, "time_mult"), 0);
	if (ret->mult) {
		ret->shift = ptc_meta_number(h->meta, machine_key(key, g, "time_shift"), 0) & 63;
		ret->zero = ptc_meta_number(h->meta, machine_key(key, g, "time_zero"), 0);
		return 0;
	}
	*ret = (struct dat_clock){.mult = h->clock.mult, .shift = h->clock.shift};
	return put_clock(w, g, h, e);
}

/* ---- META ---- */

static int put_name(struct ptc_writer *w, const struct dat_guest *g, const char *key, const char *value,
		    struct pt_error *e)
{
	char name[KEY_BYTES];

	return value && *value ? ptc_put_meta(w, machine_key(name, g, key), value, e) : 0;
}

static int put_vcpu(struct ptc_writer *w, const struct dat_guest *g, unsigned vcpu, int tid,
		    struct pt_error *e)
{
	char key[KEY_BYTES];

	snprintf(key, sizeof key, "kvm.%d.%u.tid", g->pid, vcpu);
	if (tid && ptc_put_metaf(w, e, key, "%d", tid))
		return -1;
	return g->has_offset ? put_offset(w, g, vcpu, e) : 0;
}

int dat_guest_begin(struct dat_guest *g, const struct dat_host *h, struct ptc_writer *w,
		    struct dat_source *ret, struct pt_error *e)
{
	const struct trace_dat_head *head = trace_dat_head(g->dat);
	const char *name = NULL;
	const int *tids;
	unsigned known = (unsigned)trace_dat_guest_cpus(h->dat, g->dat, &name, &tids);

	find_offset(g);
	*ret = (struct dat_source){.dat = g->dat,
				   .machine_pid = g->pid,
				   .host = h->clock,
				   .related = g->has_offset,
				   .tsc_offset = g->offset,
				   .names = !h->into};
	if (begin_clock(w, g, h, &ret->clock, e) || put_name(w, g, "name", name, e) ||
	    put_name(w, g, "host", head->host, e) || put_name(w, g, "kernel", head->kernel, e))
		return -1;
	for (unsigned i = 0; i < h->vcpus || i < known || i == 0; i++)
		if (put_vcpu(w, g, i, i < known ? tids[i] : i < h->vcpus ? h->vcpu_tids[i] : 0, e))
			return -1;
	return 0;
}
