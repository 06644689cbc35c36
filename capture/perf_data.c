/* perf_data.c - see perf_data.h. */
#include "capture/perf_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER_BYTES	      104
#define ATTR_BYTES	      128 /* PERF_ATTR_SIZE_VER7: what perf 6.1 writes */
#define NAME_ALIGN	      64
#define PT_PMU		      8 /* when the container does not say: any number will do */
#define PT_ID		      0x70740001u
#define RECORD_AUXTRACE_INFO  70
#define RECORD_AUXTRACE	      71
#define RECORD_FINISHED_ROUND 68
#define INFO_WORDS	      18 /* of its private part */
#define AUX_RECORD_MOST	      128

/* perf's default: tsc, mtc, mtc_period=3, psb_period=3, pt, branch. */
#define PT_CONFIG_DEFAULT    0x300e601u
#define PT_CONFIG_TSC	     0x400u
#define PT_CONFIG_NORETCOMP  0x800u
#define PT_CONFIG_MTC	     0x200u
#define PT_CONFIG_MTC_PERIOD 0x3c000u
#define PT_CONFIG_CYC	     0x2u

enum feature {
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CPUDESC = 8,
	FEATURE_CPUID = 9,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_AUXTRACE = 18,
	FEATURES = 19
};

static int put(struct perf_data *p, const void *bytes, size_t n, struct pt_error *e)
{
	if (n && fwrite(bytes, 1, n, p->file) != n)
		return pt_fail_errno(e, "cannot write the perf.data");
	p->offset += n;
	return 0;
}

static int put64(struct perf_data *p, uint64_t v, struct pt_error *e)
{
	return put(p, &v, sizeof v, e);
}

static int put32(struct perf_data *p, uint32_t v, struct pt_error *e)
{
	return put(p, &v, sizeof v, e);
}

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for the perf.data");
}

/* AUXTRACE_INFO: what perf must know of PT before the data. META may come late, so it is written twice. */
static int put_info(struct perf_data *p, const struct ptc_meta *meta, struct pt_error *e)
{
	struct {
		struct perf_event_header h;
		uint32_t type, reserved;
		uint64_t words[INFO_WORDS];
	} info = {.h = {.type = RECORD_AUXTRACE_INFO, .size = sizeof info}, .type = 1};
	uint64_t *w = info.words;

	if (meta) {
		w[0] = p->has_pt_event ? p->events[p->pt_event].attr.type : PT_PMU;
		w[1] = ptc_meta_number(meta, "time_shift", 0);
		w[2] = ptc_meta_number(meta, "time_mult", 0);
		w[3] = ptc_meta_number(meta, "time_zero", 0);
		w[4] = w[2] != 0;
		w[5] = PT_CONFIG_TSC;
		w[6] = PT_CONFIG_NORETCOMP;
		/* Of a stream a thread, perf would ask the switches for the thread of "CPU -1". */
		w[7] = p->per_cpu && p->has_switches ? 2 : 0;
		w[8] = p->snapshot;
		w[9] = p->per_cpu;
		w[10] = PT_CONFIG_MTC;
		w[11] = PT_CONFIG_MTC_PERIOD;
		w[12] = ptc_meta_number(meta, "tsc_ctc_numerator", 0);
		w[13] = ptc_meta_number(meta, "tsc_ctc_denominator", 0);
		w[14] = PT_CONFIG_CYC;
		w[15] = ptc_meta_number(meta, "nominal_ratio", 0);
		w[16] = 0; /* bytes of an address filter */
		w[17] = 0; /* Event Trace: perf's word for "may be there" is only for its own messages */
	}
	return put(p, &info, sizeof info, e);
}

int perf_data_begin(struct perf_data *p, int fd, struct pt_error *e)
{
	static const char zero[HEADER_BYTES];
	int copy;

	*p = (struct perf_data){.cpus = 1};
	copy = dup(fd);
	p->file = copy < 0 ? NULL : fdopen(copy, "w");
	if (!p->file) {
		pt_fail_errno(e, "cannot write the perf.data");
		if (copy >= 0)
			close(copy);
		return -1;
	}
	return put(p, zero, sizeof zero, e) ? -1 : put_info(p, NULL, e);
}

static struct perf_data_event *new_event(struct perf_data *p, const char *name, size_t name_bytes,
					 uint32_t ids, struct pt_error *e)
{
	struct perf_data_event *ev;

	if (p->event_count == p->event_room) {
		uint32_t room = p->event_room ? 2 * p->event_room : 8;

		ev = realloc(p->events, room * sizeof *ev);
		if (!ev) {
			no_memory(e);
			return NULL;
		}
		p->events = ev;
		p->event_room = room;
	}
	ev = &p->events[p->event_count];
	memset(ev, 0, sizeof *ev);
	ev->name = strndup(name, name_bytes);
	ev->ids = calloc(ids + 1, sizeof *ev->ids);
	if (!ev->name || !ev->ids) {
		free(ev->name);
		free(ev->ids);
		no_memory(e);
		return NULL;
	}
	ev->id_count = ids;
	p->event_count++;
	return ev;
}

int perf_data_event(struct perf_data *p, const struct ptc_attr *attr, bool is_pt, struct pt_error *e)
{
	struct perf_data_event *ev = new_event(p, attr->name, attr->name_bytes, attr->count, e);

	if (!ev)
		return -1;
	memcpy(&ev->attr, attr->attr, attr->attr_bytes < ATTR_BYTES ? attr->attr_bytes : ATTR_BYTES);
	ev->attr.size = ATTR_BYTES;
	memcpy(ev->ids, attr->ids, (size_t)attr->count * 8);
	if (ev->attr.context_switch)
		p->has_switches = true;
	if (is_pt) {
		p->has_pt_event = true;
		p->pt_event = p->event_count - 1;
	}
	return 0;
}

/* The event that recorded the AUX data, when the container names none. It must agree with the others on how records
 * end, or perf refuses them all. */
static int make_pt_event(struct perf_data *p, const struct ptc_meta *meta, struct pt_error *e)
{
	struct perf_data_event *ev = new_event(p, "intel_pt//u", strlen("intel_pt//u"), 1, e);
	uint64_t period = ptc_meta_number(meta, "mtc_freq", 3);
	struct perf_event_attr *a;

	if (!ev)
		return -1;
	a = &ev->attr;
	a->type = PT_PMU;
	a->size = ATTR_BYTES;
	a->config = ptc_meta_number(
	    meta, "pt_config", (PT_CONFIG_DEFAULT & ~(uint64_t)PT_CONFIG_MTC_PERIOD) | (period & 15) << 14);
	a->sample_period = 1;
	a->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	a->read_format = PERF_FORMAT_ID;
	a->sample_id_all = 1;
	a->disabled = 1;
	if (p->event_count > 1) {
		a->sample_type = p->events[0].attr.sample_type;
		a->read_format = p->events[0].attr.read_format;
		a->sample_id_all = p->events[0].attr.sample_id_all;
	}
	if (a->sample_type & PERF_SAMPLE_IDENTIFIER)
		a->sample_type |= PERF_SAMPLE_IP;
	a->exclude_kernel = ptc_meta_number(meta, "pt_user_only", 0) == 1;
	a->exclude_hv = a->exclude_kernel;
	ev->ids[0] = PT_ID;
	p->has_pt_event = true;
	p->pt_event = p->event_count - 1;
	return 0;
}

int perf_data_records(struct perf_data *p, const void *records, size_t bytes, struct pt_error *e)
{
	return put(p, records, bytes, e);
}

/* A PERF_RECORD_AUX, with the trailer that the event asks for. */
static int put_aux_record(struct perf_data *p, const struct perf_data_aux *aux, struct pt_error *e)
{
	const struct perf_data_event *ev = &p->events[p->pt_event];
	uint64_t words[AUX_RECORD_MOST / 8], id = ev->id_count ? ev->ids[0] : 0;
	uint64_t cpu = aux->cpu < 0 ? 0 : (uint64_t)aux->cpu;
	struct perf_event_header h = {.type = PERF_RECORD_AUX};
	size_t n = 1;

	words[n++] = aux->offset;
	words[n++] = aux->size;
	words[n++] = aux->flags;
	if (ev->attr.sample_id_all) {
		uint64_t type = ev->attr.sample_type;

		if (type & PERF_SAMPLE_TID)
			words[n++] = (uint32_t)aux->pid | (uint64_t)(uint32_t)aux->tid << 32;
		if (type & PERF_SAMPLE_TIME)
			words[n++] = aux->time_ns;
		if (type & PERF_SAMPLE_ID)
			words[n++] = id;
		if (type & PERF_SAMPLE_STREAM_ID)
			words[n++] = id;
		if (type & PERF_SAMPLE_CPU)
			words[n++] = cpu;
		if (type & PERF_SAMPLE_IDENTIFIER)
			words[n++] = id;
	}
	h.size = (uint16_t)(n * 8);
	memcpy(words, &h, sizeof h);
	return put(p, words, n * 8, e);
}

/* The TSC when the piece was read: perf takes the upper bits from it that TSC packets lack. 0 would tell it that there
 * is no time at all, and crash it. */
static uint64_t reference_tsc(const struct ptc_meta *meta, uint64_t time_ns)
{
	uint64_t mult = ptc_meta_number(meta, "time_mult", 0), shift = ptc_meta_number(meta, "time_shift", 0);
	unsigned __int128 ns = time_ns - ptc_meta_number(meta, "time_zero", 0);
	uint64_t tsc = mult && time_ns && shift < 64 ? (uint64_t)((ns << shift) / mult) : 0;

	return tsc ? tsc : 1;
}

int perf_data_aux(struct perf_data *p, const struct ptc_meta *meta, const struct perf_data_aux *aux,
		  struct pt_error *e)
{
	static const uint8_t pad[8];
	uint64_t padded = (aux->size + 7) / 8 * 8;
	struct {
		struct perf_event_header h;
		uint64_t size, offset, reference;
		uint32_t idx, tid, cpu, reserved;
	} record = {.h = {.type = RECORD_AUXTRACE, .size = sizeof record},
		    .size = padded,
		    .offset = aux->offset,
		    .reference = reference_tsc(meta, aux->time_ns),
		    .idx = aux->queue,
		    .tid = aux->cpu < 0 ? (uint32_t)aux->tid : UINT32_MAX,
		    .cpu = (uint32_t)aux->cpu};

	if (!p->has_pt_event && make_pt_event(p, meta, e))
		return -1;
	if (put_aux_record(p, aux, e))
		return -1;
	if (aux->cpu >= 0) {
		p->per_cpu = true;
		if ((uint32_t)aux->cpu >= p->cpus)
			p->cpus = (uint32_t)aux->cpu + 1;
	}
	if (aux->size == 0)
		return 0;
	if (p->index_count == p->index_room) {
		size_t room = p->index_room ? 2 * p->index_room : 256;
		uint64_t *grown = realloc(p->index, room * 2 * sizeof *grown);

		if (!grown)
			return no_memory(e);
		p->index = grown;
		p->index_room = room;
	}
	p->index[2 * p->index_count] = p->offset;
	p->index[2 * p->index_count + 1] = sizeof record;
	p->index_count++;
	return put(p, &record, sizeof record, e) || put(p, aux->bytes, aux->size, e) ||
		       put(p, pad, padded - aux->size, e)
		   ? -1
		   : 0;
}

/* ---- Features ---- */

/* perf's strings: their length, padded with NULs, then that many bytes. */
static int put_string(struct perf_data *p, const char *s, struct pt_error *e)
{
	static const char zero[NAME_ALIGN];
	size_t n = strlen(s), room = (n + NAME_ALIGN) / NAME_ALIGN * NAME_ALIGN;

	return put32(p, (uint32_t)room, e) || put(p, s, n, e) || put(p, zero, room - n, e) ? -1 : 0;
}

static int put_event_desc(struct perf_data *p, struct pt_error *e)
{
	if (put32(p, p->event_count, e) || put32(p, ATTR_BYTES, e))
		return -1;
	for (uint32_t i = 0; i < p->event_count; i++) {
		const struct perf_data_event *ev = &p->events[i];

		if (put(p, &ev->attr, ATTR_BYTES, e) || put32(p, ev->id_count, e) ||
		    put_string(p, ev->name, e) || put(p, ev->ids, (size_t)ev->id_count * 8, e))
			return -1;
	}
	return 0;
}

static int put_meta_string(struct perf_data *p, const struct ptc_meta *meta, const char *key,
			   struct pt_error *e)
{
	const char *value = ptc_meta_get(meta, key);

	return put_string(p, value ? value : "", e);
}

static int put_feature(struct perf_data *p, enum feature f, const struct ptc_meta *meta, struct pt_error *e)
{
	char cpuid[200];

	switch (f) {
	case FEATURE_HOSTNAME: return put_meta_string(p, meta, "host", e);
	case FEATURE_OSRELEASE: return put_meta_string(p, meta, "kernel", e);
	case FEATURE_ARCH: return put_string(p, "x86_64", e);
	case FEATURE_NRCPUS: return put32(p, p->cpus, e) ? -1 : put32(p, p->cpus, e);
	case FEATURE_CPUDESC: return put_meta_string(p, meta, "cpu_name", e);
	case FEATURE_CPUID:
		snprintf(cpuid, sizeof cpuid, "%.100s,%" PRIu64 ",%" PRIu64 ",%" PRIu64,
			 ptc_meta_get(meta, "cpu_vendor") ? ptc_meta_get(meta, "cpu_vendor") : "GenuineIntel",
			 ptc_meta_number(meta, "cpu_family", 6), ptc_meta_number(meta, "cpu_model", 0),
			 ptc_meta_number(meta, "cpu_stepping", 0));
		return put_string(p, cpuid, e);
	case FEATURE_CMDLINE: return put32(p, 1, e) ? -1 : put_meta_string(p, meta, "command", e);
	case FEATURE_EVENT_DESC: return put_event_desc(p, e);
	case FEATURE_AUXTRACE:
		return put64(p, p->index_count, e) ? -1 : put(p, p->index, p->index_count * 16, e);
	default: return 0;
	}
}

static bool wanted(enum feature f, const struct ptc_meta *meta)
{
	switch (f) {
	case FEATURE_HOSTNAME: return ptc_meta_get(meta, "host") != NULL;
	case FEATURE_OSRELEASE: return ptc_meta_get(meta, "kernel") != NULL;
	case FEATURE_CMDLINE: return ptc_meta_get(meta, "command") != NULL;
	case FEATURE_ARCH:
	case FEATURE_NRCPUS:
	case FEATURE_CPUDESC:
	case FEATURE_CPUID:
	case FEATURE_EVENT_DESC:
	case FEATURE_AUXTRACE: return true;
	default: return false;
	}
}

static int seek(struct perf_data *p, uint64_t offset, struct pt_error *e)
{
	if (fseeko(p->file, (off_t)offset, SEEK_SET))
		return pt_fail_errno(e, "cannot write the perf.data");
	p->offset = offset;
	return 0;
}

/* The features behind the data, and in front of them where each is. Returns their bits in *ret. */
static int put_features(struct perf_data *p, const struct ptc_meta *meta, uint64_t *ret, struct pt_error *e)
{
	uint64_t table = p->offset, sections[2 * FEATURES], count = 0, end;

	*ret = 0;
	for (int f = 0; f < FEATURES; f++)
		*ret |= (uint64_t)wanted((enum feature)f, meta) << f;
	if (seek(p, table + 16 * (uint64_t)__builtin_popcountll(*ret), e))
		return -1;
	for (int f = 0; f < FEATURES; f++) {
		if (!(*ret >> f & 1))
			continue;
		sections[2 * count] = p->offset;
		if (put_feature(p, (enum feature)f, meta, e))
			return -1;
		sections[2 * count + 1] = p->offset - sections[2 * count];
		count++;
	}
	end = p->offset;
	if (seek(p, table, e) || put(p, sections, count * 16, e))
		return -1;
	return seek(p, end, e);
}

int perf_data_finish(struct perf_data *p, const struct ptc_meta *meta, struct pt_error *e)
{
	struct perf_event_header round = {.type = RECORD_FINISHED_ROUND, .size = sizeof round};
	uint64_t header[HEADER_BYTES / 8] = {0}, data_end, ids, attrs;

	if (!p->has_pt_event && make_pt_event(p, meta, e))
		return -1;
	if (put(p, &round, sizeof round, e))
		return -1;
	data_end = p->offset;
	if (put_features(p, meta, &header[9], e))
		return -1;
	ids = p->offset;
	for (uint32_t i = 0; i < p->event_count; i++)
		if (put(p, p->events[i].ids, (size_t)p->events[i].id_count * 8, e))
			return -1;
	attrs = p->offset;
	for (uint32_t i = 0; i < p->event_count; i++) {
		uint64_t bytes = (uint64_t)p->events[i].id_count * 8;

		if (put(p, &p->events[i].attr, ATTR_BYTES, e) || put64(p, ids, e) || put64(p, bytes, e))
			return -1;
		ids += bytes;
	}
	memcpy(header, "PERFILE2", 8);
	header[1] = HEADER_BYTES;
	header[2] = ATTR_BYTES + 16;
	header[3] = attrs;
	header[4] = (uint64_t)p->event_count * (ATTR_BYTES + 16);
	header[5] = HEADER_BYTES;
	header[6] = data_end - HEADER_BYTES;
	if (seek(p, 0, e) || put(p, header, sizeof header, e) || put_info(p, meta, e))
		return -1;
	if (fflush(p->file))
		return pt_fail_errno(e, "cannot write the perf.data");
	return 0;
}

void perf_data_deinit(struct perf_data *p)
{
	if (p->file)
		fclose(p->file);
	for (uint32_t i = 0; i < p->event_count; i++) {
		free(p->events[i].name);
		free(p->events[i].ids);
	}
	free(p->events);
	free(p->index);
	*p = (struct perf_data){0};
}
