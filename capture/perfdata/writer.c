/* writer.c - see writer.h. */
#include "capture/perfdata/writer.h"
#include "capture/perfdata/perf_user.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER_BYTES   104
#define ATTR_BYTES     PERF_DATA_ATTR_BYTES
#define PT_PMU	       8 /* when the container does not say: any number will do */
#define PT_ID	       0x70740001u
#define INFO_WORDS     17 /* of its private part, in front of the filter */
#define FILTER_MAX     4096
#define AUX_RECORD_MAX 128

/* perf's default: tsc, mtc, mtc_period=3, psb_period=3, pt, branch. */
#define PT_CONFIG_DEFAULT    0x300e601u
#define PT_CONFIG_TSC	     0x400u
#define PT_CONFIG_NORETCOMP  0x800u
#define PT_CONFIG_MTC	     0x200u
#define PT_CONFIG_MTC_PERIOD 0x3c000u
#define PT_CONFIG_CYC	     0x2u

int perf_data_put(struct perf_data *p, const void *bytes, size_t n, struct pt_error *e)
{
	if (n && fwrite(bytes, 1, n, p->file) != n)
		return pt_fail_errno(e, "cannot write the perf.data");
	p->offset += n;
	return 0;
}

int perf_data_put64(struct perf_data *p, uint64_t v, struct pt_error *e)
{
	return perf_data_put(p, &v, sizeof v, e);
}

int perf_data_put32(struct perf_data *p, uint32_t v, struct pt_error *e)
{
	return perf_data_put(p, &v, sizeof v, e);
}

/* META's keys of this machine. */
const char *perf_data_meta(const struct perf_data *p, const struct ptc_meta *meta, const char *key)
{
	char name[64];

	if (!p->machine_pid)
		return ptc_meta_get(meta, key);
	snprintf(name, sizeof name, "machine.%" PRId32 ".%s", p->machine_pid, key);
	return ptc_meta_get(meta, name);
}

static uint64_t meta_number(const struct perf_data *p, const struct ptc_meta *meta, const char *key)
{
	char name[64];

	if (!p->machine_pid)
		return ptc_meta_number(meta, key, 0);
	snprintf(name, sizeof name, "machine.%" PRId32 ".%s", p->machine_pid, key);
	return ptc_meta_number(meta, name, 0);
}

/* How the machine's perf clock relates to its TSC. */
static int put_time_conv(struct perf_data *p, const struct ptc_meta *meta, struct pt_error *e)
{
	struct {
		struct perf_event_header h;
		uint64_t shift, mult, zero, cycles, mask;
		uint8_t cap_user_time_zero, cap_user_time_short, unused[6];
	} conv = {.h = {.type = PERF_USER_TIME_CONV, .size = sizeof conv},
		  .shift = meta_number(p, meta, "time_shift"),
		  .mult = meta_number(p, meta, "time_mult"),
		  .zero = meta_number(p, meta, "time_zero")};

	conv.cap_user_time_zero = conv.mult != 0;
	return perf_data_put(p, &conv, sizeof conv, e);
}

/*
 * AUXTRACE_INFO: what perf must know of PT before the data. What follows from the data is not known before
 * it, so this is written twice. Without PT in the data perf refuses it: then the second is an end of a round
 * of that size, which every perf passes over.
 */
static int put_info(struct perf_data *p, const struct ptc_meta *meta, struct pt_error *e)
{
	struct {
		struct perf_event_header h;
		uint32_t type, reserved;
		uint64_t words[INFO_WORDS];
	} info = {.h = {.type = PERF_USER_AUXTRACE_INFO}, .type = 1};
	char filter[FILTER_MAX] = "";
	uint64_t *w = info.words, event_trace = 0;

	info.h.size = (uint16_t)(sizeof info + p->filter_bytes + sizeof event_trace);
	if (p->without_pt)
		info.h.type = PERF_USER_FINISHED_ROUND;
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
	if (p->filter_bytes) {
		snprintf(filter, sizeof filter, "%s", ptc_meta_get(meta, "addr_filter"));
		w[16] = strlen(filter); /* perf pads it with 1 to 8 NULs */
	}
	/* Event Trace: perf's word for "may be there" is only for its own messages. */
	return perf_data_put(p, &info, sizeof info, e) || perf_data_put(p, filter, p->filter_bytes, e) ||
		       perf_data_put(p, &event_trace, sizeof event_trace, e)
		   ? -1
		   : 0;
}

static int put_head(struct perf_data *p, const struct ptc_meta *meta, struct pt_error *e)
{
	return put_time_conv(p, meta, e) || (!p->machine_pid && put_info(p, meta, e)) ? -1 : 0;
}

/* Before the first record. */
static int begin(struct perf_data *p, const struct ptc_meta *meta, struct pt_error *e)
{
	const char *filter = ptc_meta_get(meta, "addr_filter");

	if (p->begun)
		return 0;
	p->begun = true;
	if (filter && filter[0] && strlen(filter) < FILTER_MAX - 8)
		p->filter_bytes = strlen(filter) / 8 * 8 + 8;
	return put_head(p, meta, e);
}

int perf_data_begin(struct perf_data *p, int fd, int32_t machine_pid, struct pt_error *e)
{
	static const char zero[HEADER_BYTES];
	int copy;

	*p = (struct perf_data){.cpus = 1, .machine_pid = machine_pid};
	copy = dup(fd);
	p->file = copy < 0 ? NULL : fdopen(copy, "w");
	if (!p->file) {
		pt_fail_errno(e, "cannot write the perf.data");
		if (copy >= 0)
			close(copy);
		return -1;
	}
	return perf_data_put(p, zero, sizeof zero, e);
}

static struct perf_data_event *new_event(struct perf_data *p, const char *name, size_t name_bytes,
					 uint32_t ids, struct pt_error *e)
{
	struct perf_data_event *ev;

	if (p->event_count == p->event_room) {
		uint32_t room = p->event_room ? 2 * p->event_room : 8;

		ev = realloc(p->events, room * sizeof *ev);
		if (!ev) {
			pt_fail_no_memory(e, "the perf.data");
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
		pt_fail_no_memory(e, "the perf.data");
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

/*
 * The event that recorded the AUX data, when the container names none. It must agree with the others on how
 * records end, or perf refuses them all.
 */
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

int perf_data_format(struct perf_data *p, const struct ptc_tracepoint *t, struct pt_error *e)
{
	struct perf_data_format *grown = realloc(p->formats, (p->format_count + 1) * sizeof *grown), *f;

	if (!grown)
		return pt_fail_no_memory(e, "the perf.data");
	p->formats = grown;
	f = &grown[p->format_count];
	f->system = strndup(t->system, t->system_bytes);
	f->text = malloc(t->format_bytes + 1);
	f->text_bytes = t->format_bytes;
	p->format_count++;
	if (!f->system || !f->text)
		return pt_fail_no_memory(e, "the perf.data");
	memcpy(f->text, t->format, t->format_bytes);
	return 0;
}

int perf_data_build_id(struct perf_data *p, const struct ptc_image *image, struct pt_error *e)
{
	struct perf_data_build_id *grown, *b;

	for (size_t i = 0; i < p->build_id_count; i++)
		if (strlen(p->build_ids[i].name) == image->name_bytes &&
		    memcmp(p->build_ids[i].name, image->name, image->name_bytes) == 0)
			return 0;
	grown = realloc(p->build_ids, (p->build_id_count + 1) * sizeof *grown);
	if (!grown)
		return pt_fail_no_memory(e, "the perf.data");
	p->build_ids = grown;
	b = &grown[p->build_id_count];
	*b = (struct perf_data_build_id){.name = strndup(image->name, image->name_bytes),
					 .count = (uint8_t)image->build_id_bytes};
	if (!b->name)
		return pt_fail_no_memory(e, "the perf.data");
	memcpy(b->bytes, image->build_id, image->build_id_bytes);
	p->build_id_count++;
	return 0;
}

/* Of a record that ends with CPU and id. */
static int note_id(struct perf_data *p, const uint8_t *record, size_t bytes, struct pt_error *e)
{
	const uint64_t wanted = PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	struct perf_event_header h;
	struct perf_data_id *grown, id;

	memcpy(&h, record, sizeof h);
	if (p->event_count == 0 || !p->events[0].attr.sample_id_all || h.type == PERF_RECORD_SAMPLE ||
	    (p->events[0].attr.sample_type & wanted) != wanted || bytes < sizeof h + 16)
		return 0;
	memcpy(&id.id, record + bytes - 8, 8);
	memcpy(&id.cpu, record + bytes - 16, 4);
	for (size_t i = 0; i < p->id_count; i++)
		if (p->ids[i].id == id.id)
			return 0;
	for (uint32_t i = 0; i < p->event_count; i++)
		for (uint32_t k = 0; k < p->events[i].id_count; k++) {
			if (p->events[i].ids[k] != id.id)
				continue;
			grown = realloc(p->ids, (p->id_count + 1) * sizeof *grown);
			if (!grown)
				return pt_fail_no_memory(e, "the perf.data");
			p->ids = grown;
			p->ids[p->id_count++] = id;
			return 0;
		}
	return 0;
}

/* What perf inject finds a guest's vCPUs by. */
static int put_id_index(struct perf_data *p, struct pt_error *e)
{
	const size_t most = (UINT16_MAX - 16) / 32;
	uint64_t count = p->id_count < most ? p->id_count : most;
	struct perf_event_header h = {.type = PERF_USER_ID_INDEX, .size = (uint16_t)(16 + 32 * count)};

	if (perf_data_put(p, &h, sizeof h, e) || perf_data_put64(p, count, e))
		return -1;
	for (uint64_t i = 0; i < count; i++)
		if (perf_data_put64(p, p->ids[i].id, e) || perf_data_put64(p, p->ids[i].cpu, e) ||
		    perf_data_put64(p, p->ids[i].cpu, e) || perf_data_put64(p, UINT64_MAX, e))
			return -1;
	return 0;
}

/* "What was there before is told": perf inject looks for vCPUs' threads up to here. */
static int finish_init(struct perf_data *p, struct pt_error *e)
{
	struct perf_event_header h = {.type = PERF_USER_FINISHED_INIT, .size = sizeof h};

	if (p->initial)
		return 0;
	p->initial = true;
	return perf_data_put(p, &h, sizeof h, e);
}

int perf_data_record(struct perf_data *p, const struct ptc_meta *meta, const void *record, size_t bytes,
		     struct pt_error *e)
{
	if (begin(p, meta, e) || (p->machine_pid && note_id(p, record, bytes, e)))
		return -1;
	return perf_data_put(p, record, bytes, e);
}

/* What ends a record by its event's sample_id_all; returns the words. */
static size_t trailer(const struct perf_data_event *ev, const struct perf_data_aux *aux, uint64_t *words)
{
	uint64_t id = ev->id_count ? ev->ids[0] : 0, cpu = aux->cpu < 0 ? 0 : (uint64_t)aux->cpu;
	size_t n = 0;

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
	return n;
}

/* A PERF_RECORD_AUX, with the trailer that the event asks for. */
static int put_aux_record(struct perf_data *p, const struct perf_data_aux *aux, struct pt_error *e)
{
	uint64_t words[AUX_RECORD_MAX / 8];
	struct perf_event_header h = {.type = PERF_RECORD_AUX};
	size_t n = 4;

	words[1] = aux->offset;
	words[2] = aux->size;
	words[3] = aux->flags;
	n += trailer(&p->events[p->pt_event], aux, words + n);
	h.size = (uint16_t)(n * 8);
	memcpy(words, &h, sizeof h);
	return perf_data_put(p, words, n * 8, e);
}

int perf_data_kernel(struct perf_data *p, const struct ptc_meta *meta, uint64_t start, uint64_t end,
		     uint64_t text, struct pt_error *e)
{
	static const struct perf_data_aux nowhere = {.cpu = -1};
	struct {
		struct perf_event_header h;
		int32_t pid, tid;
		uint64_t start, bytes, offset;
		char name[24];
		uint64_t trailer[16];
	} map = {.h = {.type = PERF_RECORD_MMAP, .misc = PERF_RECORD_MISC_KERNEL},
		 .pid = -1,
		 .start = start,
		 .bytes = end - start,
		 .offset = text,
		 .name = "[kernel.kallsyms]_text"};

	if (!p->machine_pid && !p->has_pt_event && make_pt_event(p, meta, e))
		return -1;
	map.h.size = (uint16_t)(offsetof(__typeof__(map), trailer) +
				8 * (p->event_count ? trailer(&p->events[0], &nowhere, map.trailer) : 0));
	return perf_data_record(p, meta, &map, map.h.size, e);
}

/*
 * The TSC when the piece was read: perf takes the upper bits from it that TSC packets lack. 0 would tell it
 * that there is no time at all, and crash it.
 */
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
	} record = {.h = {.type = PERF_USER_AUXTRACE, .size = sizeof record},
		    .size = padded,
		    .offset = aux->offset,
		    .reference = reference_tsc(meta, aux->time_ns),
		    .idx = aux->queue,
		    .tid = aux->cpu < 0 ? (uint32_t)aux->tid : UINT32_MAX,
		    .cpu = (uint32_t)aux->cpu};

	if ((!p->has_pt_event && make_pt_event(p, meta, e)) || begin(p, meta, e))
		return -1;
	if (finish_init(p, e) || put_aux_record(p, aux, e))
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
			return pt_fail_no_memory(e, "the perf.data");
		p->index = grown;
		p->index_room = room;
	}
	p->index[2 * p->index_count] = p->offset;
	p->index[2 * p->index_count + 1] = sizeof record;
	p->index_count++;
	return perf_data_put(p, &record, sizeof record, e) || perf_data_put(p, aux->bytes, aux->size, e) ||
		       perf_data_put(p, pad, padded - aux->size, e)
		   ? -1
		   : 0;
}

int perf_data_seek(struct perf_data *p, uint64_t offset, struct pt_error *e)
{
	if (fseeko(p->file, (off_t)offset, SEEK_SET))
		return pt_fail_errno(e, "cannot write the perf.data");
	p->offset = offset;
	return 0;
}

int perf_data_finish(struct perf_data *p, const struct ptc_meta *meta, struct pt_error *e)
{
	struct perf_event_header round = {.type = PERF_USER_FINISHED_ROUND, .size = sizeof round};
	uint64_t header[HEADER_BYTES / 8] = {0}, data_end, ids, attrs;

	if (!p->machine_pid && !p->has_pt_event) {
		p->without_pt = p->event_count > 0;
		if (!p->without_pt && make_pt_event(p, meta, e))
			return -1;
	}
	if (begin(p, meta, e) || finish_init(p, e) || (p->machine_pid && put_id_index(p, e)) ||
	    perf_data_put(p, &round, sizeof round, e))
		return -1;
	data_end = p->offset;
	if (perf_data_features(p, meta, &header[9], e))
		return -1;
	ids = p->offset;
	for (uint32_t i = 0; i < p->event_count; i++)
		if (perf_data_put(p, p->events[i].ids, (size_t)p->events[i].id_count * 8, e))
			return -1;
	attrs = p->offset;
	for (uint32_t i = 0; i < p->event_count; i++) {
		uint64_t bytes = (uint64_t)p->events[i].id_count * 8;

		if (perf_data_put(p, &p->events[i].attr, ATTR_BYTES, e) || perf_data_put64(p, ids, e) ||
		    perf_data_put64(p, bytes, e))
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
	if (perf_data_seek(p, 0, e) || perf_data_put(p, header, sizeof header, e) || put_head(p, meta, e))
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
	for (size_t i = 0; i < p->format_count; i++) {
		free(p->formats[i].system);
		free(p->formats[i].text);
	}
	for (size_t i = 0; i < p->build_id_count; i++)
		free(p->build_ids[i].name);
	free(p->build_ids);
	free(p->ids);
	free(p->formats);
	free(p->events);
	free(p->index);
	*p = (struct perf_data){0};
}
