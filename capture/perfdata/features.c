/* features.c - see features.h. The layouts are those of tools/perf/util/header.c and intel-pt.c. */
#include "capture/perfdata/features.h"
#include "capture/perfdata/perf_user.h"
#include "schema/array.h"
#include "schema/bytes.h"

#include <stdlib.h>
#include <string.h>

#define INFO_PT	      1	 /* enum auxtrace_type: PERF_AUXTRACE_INTEL_PT */
#define INFO_WORDS    16 /* of AUXTRACE_INFO's private part, which every perf wrote */
#define INFO_LEAST    9	 /* of them without which it says nothing of Intel PT */
#define BUILD_ID_HEAD 36 /* perf_event_header, pid, 24 bytes of build id */
#define UPDATE_NAME   2	 /* PERF_EVENT_UPDATE__NAME */

/* ---- Strings ---- */

/*
 * perf's string at *p: u32 size, then that many bytes with padding. NULL: there is none (or, *failed, no
 * memory).
 */
static char *take_string(const uint8_t **p, const uint8_t *end, bool *failed)
{
	uint32_t n;
	char *s;

	if (end - *p < 4)
		return NULL;
	n = u32(*p);
	if (n > (size_t)(end - *p) - 4)
		return NULL;
	s = strndup((const char *)*p + 4, n);
	*failed = *failed || !s;
	*p += 4 + n;
	return s;
}

static int take_text(struct perf_description *d, enum perf_file_text which, const uint8_t *p, size_t n,
		     struct pt_error *e)
{
	bool failed = false;
	char *s = take_string(&p, p + n, &failed);

	if (failed)
		return pt_fail_no_memory(e, "the perf.data");
	if (s) {
		free(d->text[which]);
		d->text[which] = s;
	}
	return 0;
}

/* u32 count, then that many strings: the words of the command line. */
static int take_command(struct perf_description *d, const uint8_t *p, size_t n, struct pt_error *e)
{
	const uint8_t *end = p + n;
	char *line = NULL;
	size_t bytes = 0;
	uint32_t count;

	if (n < 4)
		return 0;
	count = u32(p);
	p += 4;
	for (uint32_t i = 0; i < count; i++) {
		bool failed = false;
		char *word = take_string(&p, end, &failed), *grown;

		if (!word && !failed)
			break;
		grown = word ? realloc(line, bytes + strlen(word) + 2) : NULL;
		if (!grown) {
			free(word);
			free(line);
			return pt_fail_no_memory(e, "the perf.data");
		}
		line = grown;
		if (bytes)
			line[bytes++] = ' ';
		memcpy(line + bytes, word, strlen(word) + 1);
		bytes += strlen(word);
		free(word);
	}
	if (line) {
		free(d->text[PERF_TEXT_COMMAND]);
		d->text[PERF_TEXT_COMMAND] = line;
	}
	return 0;
}

/* u32 count, then that many times two strings: the name of a type's PMU, and its CPUs. */
static int take_cpu_types(struct perf_description *d, const uint8_t *p, size_t n, struct pt_error *e)
{
	const uint8_t *end = p + n;
	uint32_t count;

	if (n < 4 || d->cpu_type_count)
		return 0;
	count = u32(p);
	for (p += 4; count && d->cpu_type_count < PERF_CPU_TYPES_MAX; count--) {
		struct perf_file_cpu_type *t = &d->cpu_types[d->cpu_type_count];
		bool failed = false;

		t->name = take_string(&p, end, &failed);
		t->cpus = t->name ? take_string(&p, end, &failed) : NULL;
		if (failed)
			return pt_fail_no_memory(e, "the perf.data");
		if (!t->cpus) {
			free(t->name);
			t->name = NULL;
			break;
		}
		d->cpu_type_count++;
	}
	return 0;
}

/* ---- Events ---- */

static struct perf_file_event *event_of_id(struct perf_description *d, uint64_t id)
{
	const struct perf_file_id *known = perf_description_find_id(d, id);

	return known && known->event < d->event_count ? &d->events[known->event] : NULL;
}

static void rename_event(struct perf_file_event *ev, char *name)
{
	free(ev->name);
	ev->name = name;
}

/*
 * u32 count, u32 attr size, then each: the attr, u32 ids, name, ids. Only the names are not known from
 * elsewhere.
 */
static int take_event_desc(struct perf_description *d, const uint8_t *p, size_t n, struct pt_error *e)
{
	const uint8_t *end = p + n;
	uint32_t count, attr_size;

	if (n < 8)
		return 0;
	count = u32(p);
	attr_size = u32(p + 4);
	p += 8;
	for (uint32_t i = 0;
	     i < count && attr_size <= (size_t)(end - p) && (size_t)(end - p) - attr_size >= 4; i++) {
		uint32_t ids = u32(p + attr_size);
		struct perf_file_event *ev = NULL;
		bool failed = false;
		char *name;

		p += attr_size + 4;
		name = take_string(&p, end, &failed);
		if (failed)
			return pt_fail_no_memory(e, "the perf.data");
		if (!name)
			return 0;
		if (ids > (size_t)(end - p) / 8) {
			free(name);
			return 0;
		}
		if (ids)
			ev = event_of_id(d, u64(p));
		else if (i < d->event_count)
			ev = &d->events[i];
		if (ev)
			rename_event(ev, name);
		else
			free(name);
		p += (size_t)ids * 8;
	}
	return 0;
}

/* HEADER_ATTR: the attr, which says its own size, then its ids. */
static int take_attr(struct perf_description *d, const struct perf_record *r, struct pt_error *e)
{
	uint32_t size = r->size >= 16 ? u32(r->bytes + 12) : 0;

	if (size < PERF_ATTR_SIZE_VER0 || size > r->size - 8u)
		return pt_fail(e, PT_ERR_BAD_INPUT, r->offset, "an event of %u bytes in a record of %u", size,
			       r->size);
	if (perf_description_add_event(d, r->bytes + 8, size, e))
		return -1;
	return perf_description_add_ids(d, (uint32_t)d->event_count - 1, r->bytes + 8 + size,
					(r->size - 8u - size) / 8, e);
}

/* EVENT_UPDATE: u64 what it is about, u64 id, data; of which the name is wanted. */
static int take_update(struct perf_description *d, const struct perf_record *r, struct pt_error *e)
{
	struct perf_file_event *ev;
	char *name;

	if (r->size <= 24 || u64(r->bytes + 8) != UPDATE_NAME || !(ev = event_of_id(d, u64(r->bytes + 16))))
		return 0;
	name = strndup((const char *)r->bytes + 24, r->size - 24u);
	if (!name)
		return pt_fail_no_memory(e, "the perf.data");
	rename_event(ev, name);
	return 0;
}

/* ID_INDEX: u64 nr, nr x {id, idx, cpu, tid}; since perf 6.0 then nr x {machine_pid, vcpu}; all u64. */
static int take_id_index(struct perf_description *d, const struct perf_record *r, struct pt_error *e)
{
	const uint8_t *p = r->bytes + 16, *guests = NULL;
	uint64_t nr;

	if (r->size < 16)
		return 0;
	nr = u64(r->bytes + 8);
	if (nr > (r->size - 16u) / 32)
		return 0;
	if (r->size - 16u >= nr * 48)
		guests = p + nr * 32;
	for (uint64_t i = 0; i < nr; i++, p += 32) {
		struct perf_file_id id = {.id = u64(p),
					  .event = PERF_EVENT_UNKNOWN,
					  .cpu = (int32_t)u64(p + 16),
					  .tid = (int32_t)u64(p + 24),
					  .vcpu = -1};

		if (guests) {
			id.machine_pid = (int32_t)u64(guests + 16 * i);
			id.vcpu = (int32_t)u64(guests + 16 * i + 8);
		}
		if (perf_description_add_id(d, &id, e))
			return -1;
	}
	return 0;
}

/* ---- Build ids ---- */

/*
 * A struct perf_record_header_build_id of n bytes: header, s32 pid, u8 build id[20], u8 size, padding, name.
 */
static int take_build_id(struct perf_description *d, const uint8_t *p, size_t n, struct pt_error *e)
{
	struct perf_file_build_id *b;
	struct perf_event_header h;

	memcpy(&h, p, sizeof h);
	if (pt_array_grow(&d->build_ids, d->build_id_count, &d->build_id_room, e))
		return -1;
	b = &d->build_ids[d->build_id_count];
	*b = (struct perf_file_build_id){.pid = (int32_t)u32(p + 8), .size = 20};
	memcpy(b->bytes, p + 12, 20);
	if (h.misc & PERF_BUILD_ID_SIZE_KNOWN)
		b->size = p[32] <= 20 ? p[32] : 20;
	b->name = strndup((const char *)p + BUILD_ID_HEAD, n - BUILD_ID_HEAD);
	if (!b->name)
		return pt_fail_no_memory(e, "the perf.data");
	d->build_id_count++;
	return 0;
}

static int take_build_ids(struct perf_description *d, const uint8_t *p, size_t n, struct pt_error *e)
{
	struct perf_event_header h;

	while (n > BUILD_ID_HEAD) {
		memcpy(&h, p, sizeof h);
		if (h.size <= BUILD_ID_HEAD || h.size > n)
			return 0;
		if (take_build_id(d, p, h.size, e))
			return -1;
		p += h.size;
		n -= h.size;
	}
	return 0;
}

/* ---- Intel PT and clocks ---- */

/*
 * Filters and more after AUXTRACE_INFO's first words: u64 length of the filter, then it and at least one NUL,
 * in whole words.
 */
static void take_filter(struct perf_file_pt *pt, const uint8_t *p, size_t bytes)
{
	uint64_t n = u64(p);

	if (n <= bytes - 8 && n < sizeof pt->filter)
		memcpy(pt->filter, p + 8, n);
}

/* Of intel_pt: u32 type, u32 0, then u64: INTEL_PT_PMU_TYPE... of tools/perf/util/intel-pt.h. */
static void take_info(struct perf_description *d, const struct perf_record *r)
{
	uint64_t w[INFO_WORDS] = {0};
	size_t words = r->size > 16 ? (r->size - 16u) / 8 : 0;

	if (r->size < 16)
		return;
	d->aux_type = u32(r->bytes + 8);
	if (d->aux_type != INFO_PT || words < INFO_LEAST)
		return;
	memcpy(w, r->bytes + 16, (words < INFO_WORDS ? words : INFO_WORDS) * 8);
	d->pt = (struct perf_file_pt){.present = true,
				      .pmu_type = (uint32_t)w[0],
				      .tsc_bit = w[5],
				      .noretcomp_bit = w[6],
				      .snapshot = w[8],
				      .per_cpu = w[9],
				      .mtc_bit = w[10],
				      .mtc_freq_bits = w[11],
				      .tsc_ctc_numerator = w[12],
				      .tsc_ctc_denominator = w[13],
				      .cyc_bit = w[14],
				      .max_nonturbo_ratio = w[15]};
	if (w[4] && w[2])
		d->clock = (struct perf_file_clock){.shift = w[1], .mult = w[2], .zero = w[3]};
	if (words > INFO_WORDS)
		take_filter(&d->pt, r->bytes + 16 + 8 * (size_t)INFO_WORDS, (words - INFO_WORDS) * 8);
}

/* TIME_CONV: u64 shift, mult, zero; then, since 5.10, more that x86 does not need. */
static void take_time_conv(struct perf_description *d, const struct perf_record *r)
{
	if (r->size >= 32 && !d->clock.mult)
		d->clock = (struct perf_file_clock){
		    .shift = u64(r->bytes + 8), .mult = u64(r->bytes + 16), .zero = u64(r->bytes + 24)};
}

/* ---- All of them ---- */

/* A copy of a feature that is read later. */
static int keep(uint8_t **to, size_t *to_bytes, const uint8_t *bytes, size_t n, struct pt_error *e)
{
	free(*to);
	*to_bytes = n;
	*to = malloc(n ? n : 1);
	if (!*to)
		return pt_fail_no_memory(e, "the perf.data");
	memcpy(*to, bytes, n);
	return 0;
}

int perf_feature_take(struct perf_description *d, unsigned feature, const uint8_t *bytes, size_t n,
		      struct pt_error *e)
{
	switch (feature) {
	case FEATURE_TRACING_DATA: return keep(&d->tracing_data, &d->tracing_bytes, bytes, n, e);
	case FEATURE_BPF_PROG_INFO: return keep(&d->bpf, &d->bpf_bytes, bytes, n, e);
	case FEATURE_BUILD_ID: return take_build_ids(d, bytes, n, e);
	case FEATURE_HOSTNAME: return take_text(d, PERF_TEXT_HOST, bytes, n, e);
	case FEATURE_OSRELEASE: return take_text(d, PERF_TEXT_RELEASE, bytes, n, e);
	case FEATURE_ARCH: return take_text(d, PERF_TEXT_ARCH, bytes, n, e);
	case FEATURE_CPUDESC: return take_text(d, PERF_TEXT_CPU, bytes, n, e);
	case FEATURE_CPUID: return take_text(d, PERF_TEXT_CPUID, bytes, n, e);
	case FEATURE_CMDLINE: return take_command(d, bytes, n, e);
	case FEATURE_EVENT_DESC: return take_event_desc(d, bytes, n, e);
	case FEATURE_HYBRID_TOPOLOGY: return take_cpu_types(d, bytes, n, e);
	case FEATURE_NRCPUS:
		if (n >= 8)
			d->cpus_online = u32(bytes + 4);
		return 0;
	default: return 0;
	}
}

int perf_feature_take_record(struct perf_description *d, const struct perf_record *r, struct pt_error *e)
{
	switch (r->type) {
	case PERF_USER_HEADER_ATTR: return take_attr(d, r, e);
	case PERF_USER_EVENT_UPDATE: return take_update(d, r, e);
	case PERF_USER_HEADER_FEATURE:
		return r->size < 16 ? 0
				    : perf_feature_take(d, (unsigned)u64(r->bytes + 8), r->bytes + 16,
							r->size - 16u, e);
	case PERF_USER_HEADER_BUILD_ID:
		return r->size > BUILD_ID_HEAD ? take_build_id(d, r->bytes, r->size, e) : 0;
	case PERF_USER_ID_INDEX: return take_id_index(d, r, e);
	case PERF_USER_AUXTRACE_INFO: take_info(d, r); return 0;
	case PERF_USER_TIME_CONV: take_time_conv(d, r); return 0;
	default: return 0;
	}
}
