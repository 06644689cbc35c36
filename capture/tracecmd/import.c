/* import.c - pt-capture import of trace-cmd's recordings: events of a host, and of its guests, as tracepoint samples. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/commands.h"
#include "capture/container/copy.h"
#include "schema/output.h"
#include "capture/tracecmd/put.h"
#include "schema/container.h"
#include "schema/version.h"

#define GUESTS_MAX 64
#define VCPUS_MAX  1024

static const char usage[] =
    "usage: pt-capture import [options] HOST.dat [GUEST.dat...]\n"
    "Makes a container of what trace-cmd recorded: every event of the host, and of guests, becomes an event "
    "of the trace\n"
    "(kvm_exit, kvm_entry, sched_switch and all others) on the host's TSC clock.\n"
    "\n"
    "      --into CONTAINER    add them to a recording of Intel PT of the same run; CONTAINER itself is not "
    "changed\n"
    "      --guest FILE,PID[,OFFSET]\n"
    "                          a guest's recording, the pid of its VM's process, and its TSC's offset as "
    "KVM's debugfs\n"
    "                          tells it (guest TSC = host TSC + OFFSET). A GUEST.dat without PID is one that "
    "HOST.dat\n"
    "                          knows from trace-cmd's agent, which also tells OFFSET; its VM is then named "
    "by its "
    "first\n"
    "                          vCPU's thread where CONTAINER does not tell whose it is\n"
    "      --tsc-hz HZ         the TSC's frequency, when no file says it (trace-cmd record --tsc2nsec)\n"
    "  -o, --output FILE       write the container to FILE, not to standard output\n"
    "  -z, --level N           zstd level, -100 (fastest) to 19; default 1\n"
    "  -h, --help              this text\n"
    "\n"
    "Record with `trace-cmd record -C x86-tsc --tsc2nsec`. The clocks local, global and perf are perf's: "
    "good for a host;\n"
    "without --into, nanoseconds are then the trace's TSC ticks.\n"
    "Exit status: 0 done; 1 failed, nothing is left; 2 wrong usage; 3 done, but events were lost, or "
    "CONTAINER was cut.\n";

struct guest {
	const char *path;
	int32_t pid;	       /* 0: to be found */
	bool has_offset, told; /* told: by the command line */
	int64_t offset;
	struct trace_dat *dat;
};

struct import {
	const char *host_path, *into, *output;
	uint64_t tsc_hz;
	int level;
	struct guest guests[GUESTS_MAX];
	size_t guest_count;

	struct trace_dat *host;
	struct ptc_meta *meta; /* of --into; else empty */
	struct dat_put put;
	struct dat_clock clock;	    /* the host's */
	struct dat_source *sources; /* the host's, and each guest's */
	uint32_t *attr_of;	    /* by --into's attr */
	uint32_t attr_count, attr_room;
	int32_t vcpu_tids[VCPUS_MAX]; /* of the only guest, as the host's kvm_entry tells */
	unsigned vcpus;
};

/* ---- A process of its own --------------------------------------------------------------------------- */

#define CPU_SECONDS 20 /* in which no sound file is without progress */

/* libtracecmd may run for ever on a damaged file: so it is given time as long as something comes of it. */
static void progress(void)
{
	struct rlimit limit;
	struct rusage used;

	if (getrusage(RUSAGE_SELF, &used) || getrlimit(RLIMIT_CPU, &limit))
		return;
	limit.rlim_cur = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + CPU_SECONDS;
	setrlimit(RLIMIT_CPU, &limit);
}

static uint64_t file_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* What a sound file of that size never needs. */
static void limit_memory(const struct import *m)
{
	uint64_t bytes = file_bytes(m->host_path);

	for (size_t i = 0; i < m->guest_count; i++)
		bytes += file_bytes(m->guests[i].path);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifndef __SANITIZE_ADDRESS__ /* which maps terabytes */
	setrlimit(RLIMIT_AS, &(struct rlimit){(4ull << 30) + 4 * bytes, (4ull << 30) + 4 * bytes});
#endif
}

/* ---- vCPUs ------------------------------------------------------------------------------------------ */

/* Which thread is which vCPU's: the first events tell. */
static int find_vcpus(struct import *m, struct pt_error *e)
{
	enum { EVENTS_MAX = 1 << 20 };
	struct trace_dat_event event;
	struct trace_dat *dat;
	uint64_t vcpu;

	if (m->guest_count != 1)
		return 0;
	dat = trace_dat_open(m->host_path, e);
	if (!dat)
		return -1;
	for (int i = 0; i < EVENTS_MAX && trace_dat_next(dat, &event, e) > 0; i++) {
		if (!trace_dat_number(dat, &event, "vcpu_id", &vcpu) || vcpu >= VCPUS_MAX ||
		    m->vcpu_tids[vcpu])
			continue;
		m->vcpu_tids[vcpu] = event.tid;
		if (vcpu >= m->vcpus)
			m->vcpus = (unsigned)vcpu + 1;
	}
	trace_dat_close(dat);
	return 0;
}

/* ---- Guests ----------------------------------------------------------------------------------------- */

/* Offsets are modulo 2^64, as the TSC is. */
static int64_t minus(int64_t offset)
{
	return (int64_t)(0 - (uint64_t)offset);
}

/* What trace-cmd's agent has found of the guest's TSC, unless the command line tells it. The file has it the other way
 * round: what is to be added to the guest's times. */
static void find_offset(struct guest *g)
{
	const struct trace_dat_shift *shift = trace_dat_shift(g->dat, 0);

	if (g->has_offset || !shift || shift->scaled)
		return;
	g->has_offset = true;
	g->offset = minus(shift->first);
}

/* Of a vCPU; the end's only where the clock was set in between. */
static int put_offset(struct import *m, const struct guest *g, unsigned vcpu, struct pt_error *e)
{
	const struct trace_dat_shift *shift = trace_dat_shift(g->dat, vcpu);
	int64_t first = g->offset, last = g->offset;
	char key[64];

	if (!g->told && shift && !shift->scaled) {
		first = minus(shift->first);
		last = minus(shift->last);
	}
	snprintf(key, sizeof key, "kvm.%d.%u.tsc_offset", g->pid, vcpu);
	if (ptc_put_metaf(m->put.w, e, key, "%" PRId64, first) < 0)
		return -1;
	snprintf(key, sizeof key, "kvm_end.%d.%u.tsc_offset", g->pid, vcpu);
	return first == last ? 0 : ptc_put_metaf(m->put.w, e, key, "%" PRId64, last);
}

/*
 * How a guest's times relate to the host's: by its TSC's offset, which --into's trace tells as well; where there is no trace,
 * by that of the nanoseconds that both TSCs are counted in.
 */
static int put_guest_clock(struct import *m, const struct guest *g, struct pt_error *e)
{
	char key[64];
	int r = 0;

	if (!m->into && g->has_offset) {
		snprintf(key, sizeof key, "machine.%d.clock_offset_ns", g->pid);
		return ptc_put_metaf(
		    m->put.w, e, key, "%" PRId64,
		    (int64_t)(m->clock.zero -
			      (uint64_t)((__int128)g->offset * (__int128)m->clock.mult >> m->clock.shift)));
	}
	snprintf(key, sizeof key, "machine.%d.time_mult", g->pid);
	r |= ptc_put_metaf(m->put.w, e, key, "%" PRIu64, m->clock.mult);
	snprintf(key, sizeof key, "machine.%d.time_shift", g->pid);
	r |= ptc_put_metaf(m->put.w, e, key, "%" PRIu64, m->clock.shift);
	snprintf(key, sizeof key, "machine.%d.time_zero", g->pid);
	r |= ptc_put_meta(m->put.w, key, "0", e);
	return r;
}

/* What is known of the guest, and how its file is to be read. */
static int begin_guest(struct import *m, struct guest *g, struct dat_source *source, struct pt_error *e)
{
	char key[64];
	const char *name = NULL;
	const int *tids;
	int cpus = trace_dat_guest_cpus(m->host, g->dat, &name, &tids), r = 0;

	find_offset(g);
	*source = (struct dat_source){.dat = g->dat,
				      .machine_pid = g->pid,
				      .host = m->clock,
				      .related = g->has_offset,
				      .tsc_offset = g->offset,
				      .names = !m->into};
	snprintf(key, sizeof key, "machine.%d.time_mult", g->pid);
	source->clock.mult = ptc_meta_number(m->meta, key, 0);
	if (source->clock.mult) { /* the container has the guest's own clock */
		snprintf(key, sizeof key, "machine.%d.time_shift", g->pid);
		source->clock.shift = ptc_meta_number(m->meta, key, 0) & 63;
		snprintf(key, sizeof key, "machine.%d.time_zero", g->pid);
		source->clock.zero = ptc_meta_number(m->meta, key, 0);
	} else { /* of a TSC, nanoseconds are as good as of another one */
		source->clock = (struct dat_clock){.mult = m->clock.mult, .shift = m->clock.shift};
		r = put_guest_clock(m, g, e);
	}
	if (name && *name)
		r |= ptc_put_meta(m->put.w, (snprintf(key, sizeof key, "machine.%d.name", g->pid), key), name,
				  e);
	if (*trace_dat_host(g->dat))
		r |= ptc_put_meta(m->put.w, (snprintf(key, sizeof key, "machine.%d.host", g->pid), key),
				  trace_dat_host(g->dat), e);
	if (*trace_dat_kernel(g->dat))
		r |= ptc_put_meta(m->put.w, (snprintf(key, sizeof key, "machine.%d.kernel", g->pid), key),
				  trace_dat_kernel(g->dat), e);
	for (unsigned i = 0; i < m->vcpus || (int)i < cpus || i == 0; i++) {
		int tid = (int)i < cpus ? tids[i] : i < m->vcpus ? m->vcpu_tids[i] : 0;

		if (tid)
			r |= ptc_put_metaf(m->put.w, e,
					   (snprintf(key, sizeof key, "kvm.%d.%u.tid", g->pid, i), key), "%d",
					   tid);
		if (g->has_offset)
			r |= put_offset(m, g, i, e);
	}
	return r < 0 ? -1 : 0;
}

/* META of all, and the first event of each. */
static int begin(struct import *m, struct pt_error *e)
{
	m->sources = calloc(m->guest_count + 1, sizeof *m->sources);
	if (!m->sources)
		return pt_fail_no_memory(e, NULL);
	m->sources[0] = (struct dat_source){
	    .dat = m->host, .clock = m->clock, .host = m->clock, .related = true, .names = !m->into};
	if (find_vcpus(m, e) < 0)
		return -1;
	for (size_t i = 0; i < m->guest_count; i++)
		if (begin_guest(m, &m->guests[i], &m->sources[i + 1], e) < 0)
			return -1;
	return dat_put_begin(m->sources, m->guest_count + 1, e);
}

static int put_until(struct import *m, uint64_t until_ns, struct pt_error *e)
{
	return dat_put_until(&m->put, m->sources, m->guest_count + 1, until_ns, !m->into, e);
}

/* ---- Clocks ----------------------------------------------------------------------------------------- */

static int clocks(struct import *m, struct pt_error *e)
{
	enum trace_dat_clock clock = trace_dat_clock(m->host);
	uint32_t mult = 0, shift = 0;

	if (clock == TRACE_DAT_OTHER)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s was recorded with the clock %s, which has no relation to the TSC: record "
			       "with -C x86-tsc",
			       m->host_path, trace_dat_clock_name(m->host));
	for (size_t i = 0; i < m->guest_count; i++)
		if (trace_dat_clock(m->guests[i].dat) != TRACE_DAT_TSC || clock != TRACE_DAT_TSC)
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				       "%s and %s must both be recorded with -C x86-tsc: a guest's other "
				       "clocks have no relation to "
				       "the host's",
				       m->host_path, m->guests[i].path);
	m->clock.zero = ptc_meta_number(m->meta, "time_zero", 0);
	m->clock.mult = ptc_meta_number(m->meta, "time_mult", 0);
	m->clock.shift = ptc_meta_number(m->meta, "time_shift", 0) & 63;
	if (m->into && !m->clock.mult)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s does not tell how its clocks relate",
			       m->into);
	if (m->into)
		return 0;
	if (clock == TRACE_DAT_PERF) {
		m->clock.mult = 1;
	} else if (m->tsc_hz) {
		m->clock.shift = 31;
		m->clock.mult =
		    (uint64_t)((((unsigned __int128)1000000000 << 31) + m->tsc_hz / 2) / m->tsc_hz);
	} else if (trace_dat_tsc2nsec(m->host, &mult, &shift)) {
		m->clock.mult = mult;
		m->clock.shift = shift;
	} else {
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s does not say how fast the TSC is: give --tsc-hz, or --into a container, "
			       "or record with "
			       "--tsc2nsec",
			       m->host_path);
	}
	return 0;
}

/* The process of a thread of the host, as --into's records have it; the thread's own number when they do not. */
static int32_t process_of(int in, int32_t tid)
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

		progress();
		if (c.type != PTC_SIDEBAND || ptc_parse_sideband(&c, &attr, &p, &size, &end) < 0)
			continue;
		while (size) {
			struct perf_event_header h;
			int32_t ids[4] = {-1, -1, -1, -1}; /* FORK: pid, ppid, tid; COMM: pid, tid */

			memcpy(&h, p, sizeof h);
			memcpy(ids, p + sizeof h,
			       h.size - sizeof h < sizeof ids ? h.size - sizeof h : sizeof ids);
			if ((h.type == PERF_RECORD_FORK && ids[2] == tid) ||
			    (h.type == PERF_RECORD_COMM && ids[1] == tid))
				ret = ids[0];
			p += h.size;
			size -= h.size;
		}
	}
	ptc_reader_destroy(r);
	return ret > 0 ? ret : tid;
}

/* The VM's process that META has a vCPU's thread of; 0: none. */
static int32_t process_in_meta(const struct import *m, int32_t tid)
{
	const char *key, *value;

	for (size_t i = 0; ptc_meta_pair(m->meta, i, &key, &value); i++) {
		int pid, vcpu, n = 0;

		if (sscanf(key, "kvm.%d.%d.tid%n", &pid, &vcpu, &n) == 2 && n && !key[n] &&
		    atoi(value) == tid)
			return pid;
	}
	return 0;
}

/* A guest's pid, as far as the host's file tells; both are there. */
static int find_pids(struct import *m, int in, struct pt_error *e)
{
	for (size_t i = 0; i < m->guest_count; i++) {
		struct guest *g = &m->guests[i];
		const char *name;
		const int *tids;

		if (!g->pid && trace_dat_guest_cpus(m->host, g->dat, &name, &tids) > 0)
			g->pid = process_in_meta(m, tids[0]);
		if (!g->pid && trace_dat_guest_cpus(m->host, g->dat, &name, &tids) > 0)
			g->pid = process_of(in, tids[0]);
		if (!g->pid)
			return pt_fail(
			    e, PT_ERR_REFUSED, PT_NO_OFFSET,
			    "%s does not know the guest of %s: say --guest %s,PID, of its VM's process",
			    m->host_path, g->path, g->path);
	}
	return 0;
}

/* ---- The container ---------------------------------------------------------------------------------- */

static int put_meta(struct import *m, struct pt_error *e)
{
	int r = container_new_uuid(m->put.w, e);

	r |= ptc_put_meta(m->put.w, "tool", "pt-capture", e);
	r |= ptc_put_meta(m->put.w, "tool_version", PT_VERSION, e);
	r |= ptc_put_meta(m->put.w, "engine", "import-trace-cmd", e);
	r |= ptc_put_meta(m->put.w, "trace_clock", trace_dat_clock_name(m->host), e);
	if (*trace_dat_host(m->host))
		r |= ptc_put_meta(m->put.w, "host", trace_dat_host(m->host), e);
	if (*trace_dat_kernel(m->host))
		r |= ptc_put_meta(m->put.w, "kernel", trace_dat_kernel(m->host), e);
	r |= ptc_put_metaf(m->put.w, e, "time_zero", "%" PRIu64, m->clock.zero);
	r |= ptc_put_metaf(m->put.w, e, "time_mult", "%" PRIu64, m->clock.mult);
	r |= ptc_put_metaf(m->put.w, e, "time_shift", "%" PRIu64, m->clock.shift);
	return r < 0 ? -1 : 0;
}

/* An attr of --into gets the next number, which may be another one here. */
static int copy_attr(struct import *m, const struct ptc_chunk *c, struct pt_error *e)
{
	if (m->attr_count == m->attr_room) {
		uint32_t room = 2 * m->attr_room + 64, *grown = realloc(m->attr_of, room * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, NULL);
		m->attr_of = grown;
		m->attr_room = room;
	}
	m->attr_of[m->attr_count++] = m->put.attr_count++;
	return container_copy_chunk(m->put.w, c, e);
}

static uint32_t attr_here(const struct import *m, uint32_t attr)
{
	return attr < m->attr_count ? m->attr_of[attr] : attr;
}

/* A chunk of --into, behind those of our records that are to stand before it. */
static int copy(struct import *m, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_stream stream;
	const uint8_t *records;
	uint64_t size;
	uint32_t attr;

	switch (c->type) {
	case PTC_STREAM:
		if (ptc_parse_stream(c, &stream, e) < 0)
			return -1;
		if (stream.attr != UINT32_MAX)
			stream.attr = attr_here(m, stream.attr);
		return ptc_put_stream(m->put.w, &stream, e) < 0 ? -1 : 0;
	case PTC_ATTR: return copy_attr(m, c, e);
	case PTC_SIDEBAND:
		if (ptc_parse_sideband(c, &attr, &records, &size, e) < 0)
			return -1;
		return ptc_put_sideband(m->put.w, attr_here(m, attr), records, size, e);
	case PTC_ROUND:
		/* Nothing that is older than it may follow. */
		if (ptc_parse_round(c, &size, e) < 0 || put_until(m, size, e) < 0)
			return -1;
		return container_copy_chunk(m->put.w, c, e);
	case PTC_END: return put_until(m, UINT64_MAX, e);
	default: return container_copy_chunk(m->put.w, c, e);
	}
}

/* Its chunks, and our records where their time has come. 1: it was cut (which is told), 0, -1. */
static int merge(struct import *m, int in, struct pt_error *e)
{
	struct pt_error damage = {0};
	struct ptc_reader *r;
	struct ptc_chunk c;
	int got = 0, ret = -1;

	if (lseek(in, 0, SEEK_SET) < 0)
		return pt_fail_errno(e, "cannot read %s twice", m->into);
	r = ptc_reader_create(in, e);
	if (!r || container_new_uuid(m->put.w, e) < 0)
		goto out;
	/* Its META comes first, and ours is to win. */
	for (bool begun = false; (got = ptc_next(r, &c, &damage)) > 0;) {
		if (!begun && c.type != PTC_META) {
			begun = true;
			if (begin(m, e) < 0)
				goto out;
		}
		if (copy(m, &c, e) < 0)
			goto out;
		progress();
	}
	if (got < 0 && damage.kind != PT_ERR_TRUNCATED && damage.kind != PT_ERR_BAD_INPUT) {
		*e = damage;
		goto out;
	}
	if (got < 0)
		command_failed(&damage);
	if (got < 0 && ((!m->sources && begin(m, e) < 0) || put_until(m, UINT64_MAX, e) < 0))
		goto out;
	ret = got < 0;
out:
	ptc_reader_destroy(r);
	return ret;
}

/* The META of --into. */
static int read_meta(struct import *m, int in, struct pt_error *e)
{
	struct ptc_reader *r = ptc_reader_create(in, e);
	struct pt_error end = {0};
	struct ptc_chunk c;
	int ret = r ? 0 : -1;

	while (ret == 0 && ptc_next(r, &c, &end) > 0) {
		if (c.type == PTC_META)
			ret = ptc_meta_add(m->meta, &c, e);
		progress();
	}
	ptc_reader_destroy(r);
	return ret;
}

static int import(struct import *m, int in, int out, struct pt_error *e)
{
	int r;

	m->meta = ptc_meta_create();
	if (!m->meta)
		return pt_fail_no_memory(e, NULL);
	if ((m->into && read_meta(m, in, e) < 0) || !(m->host = trace_dat_open(m->host_path, e)))
		return -1;
	for (size_t i = 0; i < m->guest_count; i++)
		if (!(m->guests[i].dat = trace_dat_open(m->guests[i].path, e)))
			return -1;
	if (find_pids(m, in, e) < 0 || clocks(m, e) < 0)
		return -1;
	m->put.w = ptc_writer_create(out, m->level, e);
	if (!m->put.w)
		return -1;
	r = m->into				    ? merge(m, in, e)
	    : put_meta(m, e) < 0 || begin(m, e) < 0 ? -1
						    : put_until(m, UINT64_MAX, e);
	if (r >= 0 && ptc_writer_finish(m->put.w, e) < 0)
		r = -1;
	return r;
}

static void free_import(struct import *m)
{
	ptc_writer_destroy(m->put.w);
	ptc_meta_destroy(m->meta);
	trace_dat_close(m->host);
	for (size_t i = 0; i < m->guest_count; i++)
		trace_dat_close(m->guests[i].dat);
	for (size_t i = 0; m->sources && i <= m->guest_count; i++)
		dat_source_deinit(&m->sources[i]);
	free(m->sources);
	free(m->attr_of);
}

/*
 * libtracecmd 1.3 runs wild on some damaged files: a process of its own does the work, and what becomes of it is told. Returns
 * the exit status; on 0 and 3 the container is whole.
 */
static int import_apart(struct import *m, int in, int out)
{
	struct pt_error e = {0};
	int status;
	pid_t pid = fork();

	if (pid < 0) {
		pt_fail_errno(&e, "cannot start another process");
		return command_failed(&e);
	}
	if (pid == 0) {
		int r;

		limit_memory(m);
		progress();
		m->put.progress = progress;
		r = import(m, in, out, &e);
		if (r >= 0 && m->put.some_lost) {
			fprintf(stderr, "pt-capture: trace-cmd lost events: %" PRIu64 " are known of\n",
				m->put.lost);
			r = 1;
		}
		status = r < 0 ? command_failed(&e) : r ? 3 : 0;
		free_import(m);
		_exit(status);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	pt_fail(&e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
		"%s (or a guest's file) is damaged: libtracecmd ended with signal %d (%s)", m->host_path,
		WTERMSIG(status), strsignal(WTERMSIG(status)));
	return command_failed(&e);
}

/* ---- The command line ------------------------------------------------------------------------------- */

static int add_guest(struct import *m, char *text, bool option, struct pt_error *e)
{
	struct guest *g = &m->guests[m->guest_count];
	char *comma = option ? strchr(text, ',') : NULL, *end;

	if (m->guest_count == GUESTS_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "more than %d guests", GUESTS_MAX);
	*g = (struct guest){.path = text};
	m->guest_count++;
	if (!option)
		return 0;
	if (comma) {
		*comma = 0;
		g->pid = (int32_t)strtol(comma + 1, &end, 10);
		if (*end == ',') {
			char *offset = end + 1;

			g->has_offset = g->told = true;
			g->offset = *offset == '-' ? (int64_t)strtoll(offset, &end, 0)
						   : (int64_t)strtoull(offset, &end, 0);
			if (end == offset)
				g->pid = 0;
		}
	}
	if (!comma || *end || g->pid <= 0)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--guest %s: it is FILE,PID[,OFFSET]", text);
	return 0;
}

static int parse(int argc, char **argv, struct import *m, struct pt_error *e)
{
	enum { INTO = 256, GUEST, TSC_HZ };
	static const struct option longs[] = {{"into", required_argument, NULL, INTO},
					      {"guest", required_argument, NULL, GUEST},
					      {"tsc-hz", required_argument, NULL, TSC_HZ},
					      {"output", required_argument, NULL, 'o'},
					      {"level", required_argument, NULL, 'z'},
					      {"quiet", no_argument, NULL, 'q'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	char *end;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "o:z:qh", longs, NULL)) != -1) {
		switch (c) {
		case INTO: m->into = optarg; break;
		case GUEST:
			if (add_guest(m, optarg, true, e) < 0)
				return -1;
			break;
		case TSC_HZ:
			m->tsc_hz = strtoull(optarg, &end, 10);
			if (*end || !m->tsc_hz || *optarg == '-')
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "--tsc-hz %s: not a frequency in Hz", optarg);
			break;
		case 'o': m->output = optarg; break;
		case 'z':
			m->level = (int)strtol(optarg, &end, 10);
			if (*end || end == optarg || m->level < PTC_LEVEL_FASTEST || m->level > 19)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "-z %s: not a level from -100 to 19", optarg);
			break;
		case 'q': break;
		case 'h': fputs(usage, stdout); return 1;
		default:
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				       "see 'pt-capture import TRACE.dat --help'");
		}
	}
	if (optind == argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "no host's trace.dat");
	m->host_path = argv[optind++];
	while (optind < argc)
		if (add_guest(m, argv[optind++], false, e) < 0)
			return -1;
	return 0;
}

int import_tracecmd(int argc, char **argv)
{
	struct import *m = calloc(1, sizeof *m);
	struct output out = {0};
	struct pt_error e = {0};
	int in = -1, r;

	if (!m) {
		pt_fail_no_memory(&e, NULL);
		return command_failed(&e);
	}
	m->level = 1;
	r = parse(argc, argv, m, &e);
	if (r == 0 && m->into && (in = open(m->into, O_RDONLY | O_CLOEXEC)) < 0)
		r = pt_fail_errno(&e, "cannot open %s", m->into);
	if (r == 0)
		r = output_open_private(&out, m->output, "a container", &e);
	if (r == 0) {
		r = import_apart(m, in, out.fd);
		if ((r == 0 || r == 3) && output_commit(&out, &e) < 0)
			r = command_failed(&e);
		output_abort(&out); /* of a committed one, nothing */
	} else {
		r = r > 0 ? 0 : command_failed(&e);
	}
	if (in >= 0)
		close(in);
	free_import(m);
	free(m);
	return r;
}
