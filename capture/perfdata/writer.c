/* writer.c - see writer.h. */
#include "capture/perfdata/writer.h"
#include "capture/perfdata/perf_user.h"
#include "capture/perfdata/writer_features.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define HEADER_BYTES  104
#define PT_PMU	      8 /* when the container does not say: any number will do */
#define PT_ID	      0x70740001u
#define INFO_WORDS    17 /* of its private part, before the filter */
#define FILTER_MAX    4096
#define TRAILER_WORDS 6

/* perf's default: tsc, mtc, mtc_period=3, psb_period=3, pt, branch. */
#define PT_CONFIG_DEFAULT    0x300e601u
#define PT_CONFIG_TSC	     0x400u
#define PT_CONFIG_NORETCOMP  0x800u
#define PT_CONFIG_MTC	     0x200u
#define PT_CONFIG_MTC_PERIOD 0x3c000u
#define PT_CONFIG_CYC	     0x2u

/* ---- Records before all others ---- */

/* How the machine's perf clock relates to its TSC. */
static int put_time_conv(struct perf_data *p, struct pt_error *e)
{
	const struct perf_contents *c = &p->contents;
	struct {
		struct perf_event_header h;
		uint64_t shift, mult, zero, cycles, mask;
		uint8_t cap_user_time_zero, cap_user_time_short, unused[6];
	} conv = {.h = {.type = PERF_USER_TIME_CONV, .size = sizeof conv},
		  .shift = perf_contents_meta_number(c, "time_shift"),
		  .mult = perf_contents_meta_number(c, "time_mult"),
		  .zero = perf_contents_meta_number(c, "time_zero")};

	conv.cap_user_time_zero = conv.mult != 0;
	return perf_out_bytes(&p->out, &conv, sizeof conv, e);
}

/*
 * AUXTRACE_INFO: what perf must know of PT before the data. What follows from the data is not known before
 * it, so this is written twice. Without PT in the data perf refuses it: then the second one is an end of a
 * round of that size, which every perf passes over.
 */
static int put_info(struct perf_data *p, struct pt_error *e)
{
	const struct ptc_meta *meta = p->contents.meta;
	struct {
		struct perf_event_header h;
		uint32_t type, reserved;
		uint64_t words[INFO_WORDS];
	} info = {.h = {.type = PERF_USER_AUXTRACE_INFO}, .type = 1};
	char filter[FILTER_MAX] = "";
	uint64_t *w = info.words, event_trace = 0;

	info.h.size = (uint16_t)(sizeof info + p->filter_bytes + sizeof event_trace);
	if (p->contents.without_pt)
		info.h.type = PERF_USER_FINISHED_ROUND;
	w[0] = p->has_pt_event ? p->contents.events[p->pt_event].attr.type : PT_PMU;
	w[1] = ptc_meta_number(meta, "time_shift", 0);
	w[2] = ptc_meta_number(meta, "time_mult", 0);
	w[3] = ptc_meta_number(meta, "time_zero", 0);
	w[4] = w[2] != 0;
	w[5] = PT_CONFIG_TSC;
	w[6] = PT_CONFIG_NORETCOMP;
	/* Of one stream per thread, perf would ask the switches for the thread of "CPU -1". */
	w[7] = p->per_cpu && p->has_switches ? 2 : 0;
	w[8] = p->snapshot;
	w[9] = p->per_cpu;
	w[10] = PT_CONFIG_MTC;
	w[11] = PT_CONFIG_MTC_PERIOD;
	w[12] = ptc_meta_number(meta, "tsc_ctc_numerator", 0);
	w[13] = ptc_meta_number(meta, "tsc_ctc_denominator", 0);
	w[14] = PT_CONFIG_CYC;
	w[15] = ptc_meta_number(meta, "nominal_ratio", 0);
	if (p->filter_bytes) {
		snprintf(filter, sizeof filter, "%s", ptc_meta_get(meta, "addr_filter"));
		w[16] = strlen(filter); /* perf pads it with 1 to 8 NULs */
	}
	/* Event Trace: perf's "may be there" matters to its own messages only. */
	return perf_out_bytes(&p->out, &info, sizeof info, e) ||
		       perf_out_bytes(&p->out, filter, p->filter_bytes, e) ||
		       perf_out_bytes(&p->out, &event_trace, sizeof event_trace, e)
		   ? -1
		   : 0;
}

static int put_head(struct perf_data *p, struct pt_error *e)
{
	return put_time_conv(p, e) || (!p->contents.machine_pid && put_info(p, e)) ? -1 : 0;
}

/* To be called before any other record is written. */
static int need_head(struct perf_data *p, struct pt_error *e)
{
	const char *filter = ptc_meta_get(p->contents.meta, "addr_filter");

	if (p->has_head)
		return 0;
	p->has_head = true;
	if (filter && filter[0] && strlen(filter) < FILTER_MAX - 8)
		p->filter_bytes = strlen(filter) / 8 * 8 + 8;
	return put_head(p, e);
}

/* FINISHED_INIT: perf inject looks for vCPUs' threads up to here. */
static int need_init(struct perf_data *p, struct pt_error *e)
{
	struct perf_event_header h = {.type = PERF_USER_FINISHED_INIT, .size = sizeof h};

	if (p->has_init)
		return 0;
	p->has_init = true;
	return perf_out_bytes(&p->out, &h, sizeof h, e);
}

/* ---- Events ---- */

int perf_data_begin(struct perf_data *p, int fd, const char *name, int32_t machine_pid,
		    const struct ptc_meta *meta, struct pt_error *e)
{
	static const char zero[HEADER_BYTES];

	*p = (struct perf_data){.contents = {.cpus = 1, .machine_pid = machine_pid, .meta = meta}};
	return perf_out_open(&p->out, fd, name, e) ? -1 : perf_out_bytes(&p->out, zero, sizeof zero, e);
}

void perf_data_set_pt_event(struct perf_data *p, uint32_t event)
{
	p->has_pt_event = true;
	p->pt_event = event;
}

int perf_data_event(struct perf_data *p, const struct ptc_attr *attr, bool is_pt, struct pt_error *e)
{
	struct perf_out_event *ev =
	    perf_contents_add_event(&p->contents, attr->name, attr->name_bytes, attr->count, e);

	if (!ev)
		return -1;
	memcpy(&ev->attr, attr->attr,
	       attr->attr_bytes < PERF_ATTR_BYTES ? attr->attr_bytes : PERF_ATTR_BYTES);
	ev->attr.size = PERF_ATTR_BYTES;
	memcpy(ev->ids, attr->ids, (size_t)attr->count * 8);
	if (ev->attr.context_switch)
		p->has_switches = true;
	if (is_pt)
		perf_data_set_pt_event(p, (uint32_t)p->contents.event_count - 1);
	return 0;
}

/*
 * The event that recorded the AUX data, when the container names none. It must agree with the others on how
 * records end, or perf refuses them all.
 */
static int make_pt_event(struct perf_data *p, struct pt_error *e)
{
	static const char name[] = "intel_pt//u";
	const struct ptc_meta *meta = p->contents.meta;
	struct perf_out_event *ev = perf_contents_add_event(&p->contents, name, strlen(name), 1, e);
	uint64_t period = ptc_meta_number(meta, "mtc_freq", 3);
	const struct perf_event_attr *first;
	struct perf_event_attr *a;

	if (!ev)
		return -1;
	a = &ev->attr;
	a->type = PT_PMU;
	a->size = PERF_ATTR_BYTES;
	a->config = ptc_meta_number(
	    meta, "pt_config", (PT_CONFIG_DEFAULT & ~(uint64_t)PT_CONFIG_MTC_PERIOD) | (period & 15) << 14);
	a->sample_period = 1;
	a->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	a->read_format = PERF_FORMAT_ID;
	a->sample_id_all = 1;
	a->disabled = 1;
	if (p->contents.event_count > 1) {
		first = &p->contents.events[0].attr;
		a->sample_type = first->sample_type;
		a->read_format = first->read_format;
		a->sample_id_all = first->sample_id_all;
	}
	if (a->sample_type & PERF_SAMPLE_IDENTIFIER)
		a->sample_type |= PERF_SAMPLE_IP;
	a->exclude_kernel = ptc_meta_number(meta, "pt_user_only", 0) == 1;
	a->exclude_hv = a->exclude_kernel;
	ev->ids[0] = PT_ID;
	perf_data_set_pt_event(p, (uint32_t)p->contents.event_count - 1);
	return 0;
}

/* ---- Records ---- */

int perf_data_record(struct perf_data *p, const void *record, size_t bytes, struct pt_error *e)
{
	if (need_head(p, e) ||
	    (p->contents.machine_pid && perf_contents_add_id(&p->contents, record, bytes, e)))
		return -1;
	return perf_out_bytes(&p->out, record, bytes, e);
}

/* What ends a record by its event's sample_id_all. Returns how many words. */
static size_t trailer(const struct perf_out_event *ev, const struct perf_data_aux *aux,
		      uint64_t words[TRAILER_WORDS])
{
	uint64_t id = ev->id_count ? ev->ids[0] : 0, type = ev->attr.sample_type;
	size_t n = 0;

	if (!ev->attr.sample_id_all)
		return 0;
	if (type & PERF_SAMPLE_TID)
		words[n++] = (uint32_t)aux->pid | (uint64_t)(uint32_t)aux->tid << 32;
	if (type & PERF_SAMPLE_TIME)
		words[n++] = aux->time_ns;
	if (type & PERF_SAMPLE_ID)
		words[n++] = id;
	if (type & PERF_SAMPLE_STREAM_ID)
		words[n++] = id;
	if (type & PERF_SAMPLE_CPU)
		words[n++] = aux->cpu < 0 ? 0 : (uint64_t)aux->cpu;
	if (type & PERF_SAMPLE_IDENTIFIER)
		words[n++] = id;
	return n;
}

int perf_data_kernel(struct perf_data *p, uint64_t start, uint64_t end, uint64_t text, struct pt_error *e)
{
	static const struct perf_data_aux nowhere = {.cpu = -1};
	struct {
		struct perf_event_header h;
		int32_t pid, tid;
		uint64_t start, bytes, offset;
		char name[24];
		uint64_t trailer[TRAILER_WORDS];
	} map = {.h = {.type = PERF_RECORD_MMAP, .misc = PERF_RECORD_MISC_KERNEL},
		 .pid = -1,
		 .start = start,
		 .bytes = end - start,
		 .offset = text,
		 .name = "[kernel.kallsyms]_text"};
	size_t words = 0;

	if (!p->contents.machine_pid && !p->has_pt_event && make_pt_event(p, e))
		return -1;
	if (p->contents.event_count)
		words = trailer(&p->contents.events[0], &nowhere, map.trailer);
	map.h.size = (uint16_t)(offsetof(__typeof__(map), trailer) + 8 * words);
	return perf_data_record(p, &map, map.h.size, e);
}

/* What perf inject finds a guest's vCPUs by. */
static int put_id_index(struct perf_data *p, struct pt_error *e)
{
	const struct perf_contents *c = &p->contents;
	const size_t most = (UINT16_MAX - 16) / 32;
	uint64_t count = c->id_count < most ? c->id_count : most;
	struct perf_event_header h = {.type = PERF_USER_ID_INDEX, .size = (uint16_t)(16 + 32 * count)};

	if (perf_out_bytes(&p->out, &h, sizeof h, e) || perf_out_u64(&p->out, count, e))
		return -1;
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t entry[] = {c->ids[i].id, c->ids[i].cpu, c->ids[i].cpu, UINT64_MAX};

		if (perf_out_bytes(&p->out, entry, sizeof entry, e))
			return -1;
	}
	return 0;
}

/* ---- AUX data ---- */

/* A PERF_RECORD_AUX, with the trailer that the event asks for. */
static int put_aux_record(struct perf_data *p, const struct perf_data_aux *aux, struct pt_error *e)
{
	uint64_t words[4 + TRAILER_WORDS] = {0, aux->offset, aux->size, aux->flags};
	struct perf_event_header h = {.type = PERF_RECORD_AUX};
	size_t n = 4 + trailer(&p->contents.events[p->pt_event], aux, words + 4);

	h.size = (uint16_t)(n * 8);
	memcpy(words, &h, sizeof h);
	return perf_out_bytes(&p->out, words, n * 8, e);
}

/*
 * The TSC when the piece was read: perf takes the upper bits from it that TSC packets lack. With 0 perf takes
 * it that there is no time at all, and crashes.
 */
static uint64_t reference_tsc(const struct ptc_meta *meta, uint64_t time_ns)
{
	uint64_t mult = ptc_meta_number(meta, "time_mult", 0), shift = ptc_meta_number(meta, "time_shift", 0);
	unsigned __int128 ns = time_ns - ptc_meta_number(meta, "time_zero", 0);
	uint64_t tsc = mult && time_ns && shift < 64 ? (uint64_t)((ns << shift) / mult) : 0;

	return tsc ? tsc : 1;
}

/* An AUXTRACE record, and its bytes filled up to whole words. */
static int put_auxtrace(struct perf_data *p, const struct perf_data_aux *aux, struct pt_error *e)
{
	static const uint8_t pad[8];
	uint64_t padded = (aux->size + 7) / 8 * 8;
	struct {
		struct perf_event_header h;
		uint64_t size, offset, reference;
		uint32_t idx, tid, cpu, reserved;
	} record = {.h = {.type = PERF_USER_AUXTRACE, .size = sizeof record},
		    .size = padded,
		    .offset = aux->offset,
		    .reference = reference_tsc(p->contents.meta, aux->time_ns),
		    .idx = aux->queue,
		    .tid = aux->cpu < 0 ? (uint32_t)aux->tid : UINT32_MAX,
		    .cpu = (uint32_t)aux->cpu};

	if (perf_contents_add_aux(&p->contents, p->out.offset, sizeof record, e))
		return -1;
	return perf_out_bytes(&p->out, &record, sizeof record, e) ||
		       perf_out_bytes(&p->out, aux->bytes, aux->size, e) ||
		       perf_out_bytes(&p->out, pad, padded - aux->size, e)
		   ? -1
		   : 0;
}

int perf_data_aux(struct perf_data *p, const struct perf_data_aux *aux, struct pt_error *e)
{
	if ((!p->has_pt_event && make_pt_event(p, e)) || need_head(p, e) || need_init(p, e) ||
	    put_aux_record(p, aux, e))
		return -1;
	if (aux->cpu >= 0) {
		p->per_cpu = true;
		if ((uint32_t)aux->cpu >= p->contents.cpus)
			p->contents.cpus = (uint32_t)aux->cpu + 1;
	}
	return aux->size ? put_auxtrace(p, aux, e) : 0;
}

/* ---- The end ---- */

/* All sample ids, then the attributes, each with the place of its ids. *ret: where they begin. */
static int put_attrs(struct perf_data *p, uint64_t *ret, struct pt_error *e)
{
	const struct perf_contents *c = &p->contents;
	uint64_t ids = p->out.offset;

	for (size_t i = 0; i < c->event_count; i++)
		if (perf_out_bytes(&p->out, c->events[i].ids, (size_t)c->events[i].id_count * 8, e))
			return -1;
	*ret = p->out.offset;
	for (size_t i = 0; i < c->event_count; i++) {
		uint64_t bytes = (uint64_t)c->events[i].id_count * 8;

		if (perf_out_bytes(&p->out, &c->events[i].attr, PERF_ATTR_BYTES, e) ||
		    perf_out_u64(&p->out, ids, e) || perf_out_u64(&p->out, bytes, e))
			return -1;
		ids += bytes;
	}
	return 0;
}

int perf_data_finish(struct perf_data *p, struct pt_error *e)
{
	struct perf_event_header round = {.type = PERF_USER_FINISHED_ROUND, .size = sizeof round};
	uint64_t header[HEADER_BYTES / 8] = {0}, data_end;
	struct perf_contents *c = &p->contents;

	if (!c->machine_pid && !p->has_pt_event) {
		c->without_pt = c->event_count > 0;
		if (!c->without_pt && make_pt_event(p, e))
			return -1;
	}
	if (need_head(p, e) || need_init(p, e) || (c->machine_pid && put_id_index(p, e)) ||
	    perf_out_bytes(&p->out, &round, sizeof round, e))
		return -1;
	data_end = p->out.offset;
	if (perf_features_put(&p->out, c, &header[9], e) || put_attrs(p, &header[3], e))
		return -1;
	/*
	 * struct perf_file_header: size, attr_size, {attrs, data: offset, size}, event_types, features' bits
	 */
	memcpy(header, "PERFILE2", 8);
	header[1] = HEADER_BYTES;
	header[2] = PERF_ATTR_BYTES + 16;
	header[4] = (uint64_t)c->event_count * (PERF_ATTR_BYTES + 16);
	header[5] = HEADER_BYTES;
	header[6] = data_end - HEADER_BYTES;
	if (perf_out_seek(&p->out, 0, e) || perf_out_bytes(&p->out, header, sizeof header, e) ||
	    put_head(p, e))
		return -1;
	return perf_out_flush(&p->out, e);
}

void perf_data_deinit(struct perf_data *p)
{
	perf_out_close(&p->out);
	perf_contents_deinit(&p->contents);
	*p = (struct perf_data){0};
}
