/* import_tracecmd.c - pt-capture import of trace-cmd's recordings: events of a host, and of its guests, as tracepoint samples. */
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
#include "capture/container_copy.h"
#include "capture/output.h"
#include "capture/trace_dat.h"
#include "schema/container.h"
#include "schema/version.h"

#define GUESTS_MOST 64
#define VCPUS_MOST  1024
#define FLUSH_BYTES ((size_t)1 << 20)
#define SAMPLE_TYPE                                                                                          \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW)
#define ID_BASE 0x7472616365000000u /* of the events' sample ids, apart from a kernel's small ones */

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
    "                          knows from trace-cmd's agent; its VM is then named by its first vCPU's "
    "thread\n"
    "      --tsc-hz HZ         the TSC's frequency, when no file says it (trace-cmd record --tsc2nsec)\n"
    "  -o, --output FILE       write the container to FILE, not to standard output\n"
    "  -z, --level N           zstd level, -7 (fastest) to 19; default 1\n"
    "  -h, --help              this text\n"
    "\n"
    "Record with `trace-cmd record -C x86-tsc --tsc2nsec`. The clocks local, global and perf are perf's: "
    "good for a host;\n"
    "without --into, nanoseconds are then the trace's TSC ticks.\n"
    "Exit status: 0 done; 1 failed, nothing is left; 2 wrong usage; 3 done, but events were lost, or "
    "CONTAINER was cut.\n";

struct guest {
	const char *path;
	int32_t pid; /* 0: to be found */
	bool has_offset;
	int64_t offset;
	struct trace_dat *dat;
};

struct import {
	const char *host_path, *into, *output;
	uint64_t tsc_hz;
	int level;
	struct guest guests[GUESTS_MOST];
	size_t guest_count;

	struct trace_dat *host;
	struct ptc_meta *meta; /* of --into; else empty */
	struct ptc_writer *w;
	uint64_t mult, shift, zero;		     /* ns of the host's TSC */
	uint32_t attrs_before, attrs_in, attr_count; /* of --into before ours; ours; all written so far */
	uint64_t events, lost;
	bool some_lost, ordered;
	uint64_t last_ns;
	/* The file at hand: */
	struct trace_dat *dat;
	int32_t machine_pid;
	uint64_t guest_mult, guest_shift, guest_zero;
	uint32_t *attr_of; /* by event id, + 1; 0: none yet */
	size_t attr_room;
	uint32_t first_attr; /* of the file, + 1 */
	uint8_t *side;
	size_t side_bytes, side_room;
	uint8_t *named; /* bit by thread: its COMM was written */
	int32_t vcpu_tids[VCPUS_MOST];
	unsigned vcpus;
};

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
}

/* ---- Records ---------------------------------------------------------------------------------------- */

static int flush(struct import *m, struct pt_error *e)
{
	int r = m->side_bytes ? ptc_put_sideband(m->w, m->first_attr - 1, m->side, m->side_bytes, e) : 0;

	/* One file in time order: who reads may go on. */
	if (r == 0 && m->side_bytes && m->ordered)
		r = ptc_put_round(m->w, m->last_ns, e);
	m->side_bytes = 0;
	return r;
}

/* A zeroed record of `bytes` behind its header; its body, or NULL. */
static uint8_t *record(struct import *m, uint32_t type, size_t bytes, struct pt_error *e)
{
	struct perf_event_header h = {type, 0, (uint16_t)(sizeof h + bytes)};
	uint8_t *p;

	if (sizeof h + bytes > UINT16_MAX) {
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "an event of %zu bytes: too long", bytes);
		return NULL;
	}
	if (m->side_bytes + h.size > FLUSH_BYTES && flush(m, e) < 0)
		return NULL;
	if (m->side_bytes + h.size > m->side_room) {
		p = realloc(m->side, FLUSH_BYTES + UINT16_MAX);
		if (!p) {
			no_memory(e);
			return NULL;
		}
		m->side = p;
		m->side_room = FLUSH_BYTES + UINT16_MAX;
	}
	p = m->side + m->side_bytes;
	memset(p, 0, h.size);
	memcpy(p, &h, sizeof h);
	m->side_bytes += h.size;
	return p + sizeof h;
}

struct sample_id { /* what ends a record, by SAMPLE_TYPE */
	int32_t pid, tid;
	uint64_t time;
	uint32_t cpu, zero;
	uint64_t id;
};

static uint64_t ns_of(const struct import *m, uint64_t time)
{
	if (trace_dat_clock(m->dat) != TRACE_DAT_TSC)
		return time;
	return m->guest_zero + (uint64_t)((unsigned __int128)time * m->guest_mult >> m->guest_shift);
}

/* The event's attr and format, written when it is met first; its sample id. */
static int event_id(struct import *m, uint32_t id, uint64_t *ret, struct pt_error *e)
{
	struct perf_event_attr a = {.type = PERF_TYPE_TRACEPOINT,
				    .size = sizeof a,
				    .config = id,
				    .sample_period = 1,
				    .sample_type = SAMPLE_TYPE,
				    .sample_id_all = 1};
	struct trace_dat_format f;
	struct ptc_tracepoint t;
	uint64_t sample_id;
	char name[256];
	int r;

	if (id >= m->attr_room) {
		uint32_t *grown = realloc(m->attr_of, ((size_t)id + 256) * sizeof *grown);

		if (!grown)
			return no_memory(e);
		memset(grown + m->attr_room, 0, ((size_t)id + 256 - m->attr_room) * sizeof *grown);
		m->attr_of = grown;
		m->attr_room = (size_t)id + 256;
	}
	if (m->attr_of[id]) {
		*ret = ID_BASE + m->attr_of[id] - 1;
		return 0;
	}
	if (flush(m, e) < 0 || trace_dat_format(m->dat, id, &f, e) < 0)
		return -1;
	snprintf(name, sizeof name, "%s:%s", f.system, f.name);
	sample_id = ID_BASE + m->attr_count;
	t = (struct ptc_tracepoint){.machine_pid = m->machine_pid,
				    .id = id,
				    .system = f.system,
				    .system_bytes = (uint32_t)strlen(f.system),
				    .name = f.name,
				    .name_bytes = (uint32_t)strlen(f.name),
				    .format = f.text,
				    .format_bytes = (uint32_t)strlen(f.text)};
	r = m->machine_pid ? ptc_put_guest_attr(m->w, m->machine_pid, name, &a, sizeof a, &sample_id, 1, e)
			   : ptc_put_attr(m->w, name, &a, sizeof a, &sample_id, 1, e);
	if (r == 0)
		r = ptc_put_format(m->w, &t, e);
	free(f.text);
	if (r < 0)
		return -1;
	m->attr_of[id] = ++m->attr_count;
	m->attrs_in++;
	if (!m->first_attr)
		m->first_attr = m->attr_count;
	*ret = sample_id;
	return 0;
}

/* A thread's name, once; a container that we add to knows its own. */
static int name_thread(struct import *m, const struct sample_id *id, struct pt_error *e)
{
	enum { THREADS = 1 << 22 };
	const char *comm;
	uint8_t *p;

	if (m->into || id->tid <= 0 || id->tid >= THREADS)
		return 0;
	if (!m->named && !(m->named = calloc(1, THREADS / 8)))
		return no_memory(e);
	if (m->named[id->tid / 8] >> (id->tid % 8) & 1)
		return 0;
	m->named[id->tid / 8] |= (uint8_t)(1 << (id->tid % 8));
	comm = trace_dat_comm(m->dat, id->tid);
	if (!*comm)
		return 0;
	p = record(m, PERF_RECORD_COMM, 8 + 16 + sizeof *id, e);
	if (!p)
		return -1;
	memcpy(p, &id->pid, 8);
	memcpy(p + 8, comm, strnlen(comm, 15));
	memcpy(p + 24, id, sizeof *id);
	return 0;
}

/* Which thread is which vCPU's, as the host's kvm_entry tells. */
static void note_vcpu(struct import *m, const struct trace_dat_event *event)
{
	uint64_t vcpu;

	if (m->machine_pid || m->guest_count != 1 || !trace_dat_number(m->dat, event, "vcpu_id", &vcpu) ||
	    vcpu >= VCPUS_MOST || m->vcpu_tids[vcpu])
		return;
	m->vcpu_tids[vcpu] = event->tid;
	if (vcpu >= m->vcpus)
		m->vcpus = (unsigned)vcpu + 1;
}

static int take(void *arg, const struct trace_dat_event *event, struct pt_error *e)
{
	struct import *m = arg;
	struct sample_id id = {
	    .pid = -1, .tid = event->tid, .time = ns_of(m, event->time), .cpu = (uint32_t)event->cpu};
	uint32_t raw_bytes = (event->raw_bytes + 4 + 7) / 8 * 8 - 4;
	uint8_t *p;

	if (event_id(m, event->id, &id.id, e) < 0 || name_thread(m, &id, e) < 0)
		return -1;
	if (event->missed) {
		uint64_t lost = event->missed == UINT64_MAX ? 0 : event->missed;

		m->lost += lost;
		m->some_lost = true;
		p = record(m, PERF_RECORD_LOST, 16 + sizeof id, e);
		if (!p)
			return -1;
		memcpy(p, &id.id, 8);
		memcpy(p + 8, &lost, 8);
		memcpy(p + 16, &id, sizeof id);
	}
	p = record(m, PERF_RECORD_SAMPLE, 32 + 4 + raw_bytes, e);
	if (!p)
		return -1;
	memcpy(p, &id.id, 8);
	memcpy(p + 8, &id, 24); /* pid, tid; time; cpu */
	memcpy(p + 32, &raw_bytes, 4);
	memcpy(p + 36, event->raw, event->raw_bytes);
	note_vcpu(m, event);
	m->last_ns = id.time;
	m->events++;
	return 0;
}

/* ---- Files ------------------------------------------------------------------------------------------ */

/* All of one file's events. */
static int put_file(struct import *m, struct trace_dat *dat, int32_t machine_pid, struct pt_error *e)
{
	int r;

	m->dat = dat;
	m->machine_pid = machine_pid;
	m->first_attr = 0;
	if (m->attr_room)
		memset(m->attr_of, 0, m->attr_room * sizeof *m->attr_of);
	free(m->named);
	m->named = NULL;
	r = trace_dat_each(dat, take, m, e);
	return r < 0 ? -1 : flush(m, e);
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
		return ptc_put_metaf(m->w, e, key, "%" PRId64,
				     (int64_t)m->zero -
					 (int64_t)((__int128)g->offset * (__int128)m->mult >> m->shift));
	}
	snprintf(key, sizeof key, "machine.%d.time_mult", g->pid);
	r |= ptc_put_metaf(m->w, e, key, "%" PRIu64, m->mult);
	snprintf(key, sizeof key, "machine.%d.time_shift", g->pid);
	r |= ptc_put_metaf(m->w, e, key, "%" PRIu64, m->shift);
	snprintf(key, sizeof key, "machine.%d.time_zero", g->pid);
	r |= ptc_put_meta(m->w, key, "0", e);
	return r;
}

static int put_guest(struct import *m, struct guest *g, struct pt_error *e)
{
	char key[64];
	const char *name = NULL;
	const int *tids;
	int cpus = trace_dat_guest_cpus(m->host, g->dat, &name, &tids), r = 0;

	snprintf(key, sizeof key, "machine.%d.time_mult", g->pid);
	m->guest_mult = ptc_meta_number(m->meta, key, 0);
	if (m->guest_mult) { /* the container has the guest's own clock */
		snprintf(key, sizeof key, "machine.%d.time_shift", g->pid);
		m->guest_shift = ptc_meta_number(m->meta, key, 0) & 63;
		snprintf(key, sizeof key, "machine.%d.time_zero", g->pid);
		m->guest_zero = ptc_meta_number(m->meta, key, 0);
	} else { /* of a TSC, nanoseconds are as good as of another one */
		m->guest_mult = m->mult;
		m->guest_shift = m->shift;
		m->guest_zero = 0;
		r = put_guest_clock(m, g, e);
	}
	if (name && *name)
		r |= ptc_put_meta(m->w, (snprintf(key, sizeof key, "machine.%d.name", g->pid), key), name, e);
	if (*trace_dat_host(g->dat))
		r |= ptc_put_meta(m->w, (snprintf(key, sizeof key, "machine.%d.host", g->pid), key),
				  trace_dat_host(g->dat), e);
	if (*trace_dat_kernel(g->dat))
		r |= ptc_put_meta(m->w, (snprintf(key, sizeof key, "machine.%d.kernel", g->pid), key),
				  trace_dat_kernel(g->dat), e);
	for (int i = 0; i < cpus && i < VCPUS_MOST; i++)
		m->vcpu_tids[i] = tids[i];
	if (cpus > (int)m->vcpus)
		m->vcpus = (unsigned)cpus;
	for (unsigned i = 0; i < m->vcpus || i == 0; i++) {
		if (m->vcpu_tids[i])
			r |= ptc_put_metaf(m->w, e,
					   (snprintf(key, sizeof key, "kvm.%d.%u.tid", g->pid, i), key), "%d",
					   m->vcpu_tids[i]);
		if (g->has_offset)
			r |= ptc_put_metaf(
			    m->w, e, (snprintf(key, sizeof key, "kvm.%d.%u.tsc_offset", g->pid, i), key),
			    "%" PRId64, g->offset);
	}
	return r < 0 ? -1 : put_file(m, g->dat, g->pid, e);
}

static int put_all(struct import *m, struct pt_error *e)
{
	m->guest_mult = m->mult;
	m->guest_shift = m->shift;
	m->guest_zero = m->zero;
	m->ordered = !m->into && m->guest_count == 0 && trace_dat_buffers(m->host) == 1;
	if (put_file(m, m->host, 0, e) < 0)
		return -1;
	for (size_t i = 0; i < m->guest_count; i++)
		if (put_guest(m, &m->guests[i], e) < 0)
			return -1;
	return 0;
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
	m->zero = ptc_meta_number(m->meta, "time_zero", 0);
	m->mult = ptc_meta_number(m->meta, "time_mult", 0);
	m->shift = ptc_meta_number(m->meta, "time_shift", 0) & 63;
	if (m->into && !m->mult)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s does not tell how its clocks relate",
			       m->into);
	if (m->into)
		return 0;
	if (clock == TRACE_DAT_PERF) {
		m->mult = 1;
	} else if (m->tsc_hz) {
		m->shift = 31;
		m->mult = (uint64_t)((((unsigned __int128)1000000000 << 31) + m->tsc_hz / 2) / m->tsc_hz);
	} else if (trace_dat_tsc2nsec(m->host, &mult, &shift)) {
		m->mult = mult;
		m->shift = shift;
	} else {
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s does not say how fast the TSC is: give --tsc-hz, or --into a container, "
			       "or record with "
			       "--tsc2nsec",
			       m->host_path);
	}
	return 0;
}

/* A guest's pid, as far as the host's file tells; both are there. */
static int find_pids(struct import *m, struct pt_error *e)
{
	for (size_t i = 0; i < m->guest_count; i++) {
		struct guest *g = &m->guests[i];
		const char *name;
		const int *tids;

		if (!g->pid && trace_dat_guest_cpus(m->host, g->dat, &name, &tids) > 0)
			g->pid = tids[0];
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
	int r = container_new_uuid(m->w, e);

	r |= ptc_put_meta(m->w, "tool", "pt-capture", e);
	r |= ptc_put_meta(m->w, "tool_version", PT_VERSION, e);
	r |= ptc_put_meta(m->w, "engine", "import-trace-cmd", e);
	r |= ptc_put_meta(m->w, "trace_clock", trace_dat_clock_name(m->host), e);
	if (*trace_dat_host(m->host))
		r |= ptc_put_meta(m->w, "host", trace_dat_host(m->host), e);
	if (*trace_dat_kernel(m->host))
		r |= ptc_put_meta(m->w, "kernel", trace_dat_kernel(m->host), e);
	r |= ptc_put_metaf(m->w, e, "time_zero", "%" PRIu64, m->zero);
	r |= ptc_put_metaf(m->w, e, "time_mult", "%" PRIu64, m->mult);
	r |= ptc_put_metaf(m->w, e, "time_shift", "%" PRIu64, m->shift);
	return r < 0 ? -1 : 0;
}

/* A chunk of --into behind our records: attrs that come later have other numbers now. */
static int copy_behind(struct import *m, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_stream stream;
	const uint8_t *records;
	uint64_t size;
	uint32_t attr;

	switch (c->type) {
	case PTC_STREAM:
		if (ptc_parse_stream(c, &stream, e) < 0)
			return -1;
		if (stream.attr != UINT32_MAX && stream.attr >= m->attrs_before)
			stream.attr += m->attrs_in;
		return ptc_put_stream(m->w, &stream, e) < 0 ? -1 : 0;
	case PTC_SIDEBAND:
		if (ptc_parse_sideband(c, &attr, &records, &size, e) < 0)
			return -1;
		return ptc_put_sideband(m->w, attr >= m->attrs_before ? attr + m->attrs_in : attr, records,
					size, e);
	default: return container_copy_chunk(m->w, c, e);
	}
}

/* Its chunks up to the first AUX data, our records, the rest. 1: it was cut (which is told), 0, -1. */
static int merge(struct import *m, int in, struct pt_error *e)
{
	struct pt_error damage = {0};
	struct ptc_reader *r;
	struct ptc_chunk c;
	bool put = false;
	int got = 0, ret = -1;

	if (lseek(in, 0, SEEK_SET) < 0)
		return pt_fail_errno(e, "cannot read %s twice", m->into);
	r = ptc_reader_create(in, e);
	if (!r || container_new_uuid(m->w, e) < 0)
		goto out;
	while ((got = ptc_next(r, &c, &damage)) > 0) {
		if (!put && (c.type == PTC_AUX || c.type == PTC_ROUND || c.type == PTC_END)) {
			put = true;
			m->attrs_before = m->attr_count;
			if (put_all(m, e) < 0)
				goto out;
		}
		if (put ? copy_behind(m, &c, e) < 0 : container_copy_chunk(m->w, &c, e) < 0)
			goto out;
		m->attr_count += c.type == PTC_ATTR;
	}
	if (got < 0 && damage.kind != PT_ERR_TRUNCATED && damage.kind != PT_ERR_BAD_INPUT) {
		*e = damage;
		goto out;
	}
	if (got < 0)
		command_failed(&damage);
	if (!put && put_all(m, e) < 0)
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

	while (ret == 0 && ptc_next(r, &c, &end) > 0)
		if (c.type == PTC_META)
			ret = ptc_meta_add(m->meta, &c, e);
	ptc_reader_destroy(r);
	return ret;
}

static int import(struct import *m, int in, int out, struct pt_error *e)
{
	int r;

	m->meta = ptc_meta_create();
	if (!m->meta)
		return no_memory(e);
	if ((m->into && read_meta(m, in, e) < 0) || !(m->host = trace_dat_open(m->host_path, e)))
		return -1;
	for (size_t i = 0; i < m->guest_count; i++)
		if (!(m->guests[i].dat = trace_dat_open(m->guests[i].path, e)))
			return -1;
	if (find_pids(m, e) < 0 || clocks(m, e) < 0)
		return -1;
	m->w = ptc_writer_create(out, m->level, e);
	if (!m->w)
		return -1;
	r = m->into ? merge(m, in, e) : put_meta(m, e) < 0 ? -1 : put_all(m, e);
	if (r >= 0 && ptc_writer_finish(m->w, e) < 0)
		r = -1;
	return r;
}

static void free_import(struct import *m)
{
	ptc_writer_destroy(m->w);
	ptc_meta_destroy(m->meta);
	trace_dat_close(m->host);
	for (size_t i = 0; i < m->guest_count; i++)
		trace_dat_close(m->guests[i].dat);
	free(m->attr_of);
	free(m->side);
	free(m->named);
}

static uint64_t file_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* What a sound file of that size never needs. */
static void limit(const struct import *m)
{
	uint64_t bytes = file_bytes(m->host_path);

	for (size_t i = 0; i < m->guest_count; i++)
		bytes += file_bytes(m->guests[i].path);
	setrlimit(RLIMIT_CPU, &(struct rlimit){20 + bytes / 1000000, 30 + bytes / 1000000});
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifndef __SANITIZE_ADDRESS__ /* which maps terabytes */
	setrlimit(RLIMIT_AS, &(struct rlimit){(4ull << 30) + 4 * bytes, (4ull << 30) + 4 * bytes});
#endif
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

		limit(m);
		r = import(m, in, out, &e);
		if (r >= 0 && m->some_lost) {
			fprintf(stderr, "pt-capture: trace-cmd lost events: %" PRIu64 " are known of\n",
				m->lost);
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

	if (m->guest_count == GUESTS_MOST)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "more than %d guests", GUESTS_MOST);
	*g = (struct guest){.path = text};
	m->guest_count++;
	if (!option)
		return 0;
	if (comma) {
		*comma = 0;
		g->pid = (int32_t)strtol(comma + 1, &end, 10);
		if (*end == ',') {
			char *offset = end + 1;

			g->has_offset = true;
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
			if (*end || end == optarg || m->level < -7 || m->level > 19)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "-z %s: not a level from -7 to 19", optarg);
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
		no_memory(&e);
		return command_failed(&e);
	}
	m->level = 1;
	r = parse(argc, argv, m, &e);
	if (r == 0 && m->into && (in = open(m->into, O_RDONLY | O_CLOEXEC)) < 0)
		r = pt_fail_errno(&e, "cannot open %s", m->into);
	if (r == 0)
		r = output_open(&out, m->output, "a container", &e);
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
