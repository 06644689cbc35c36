/* writer_features.c - what a perf.data says of itself: the features behind its data. */
#include "capture/perfdata/writer.h"
#include "capture/perfdata/perf_user.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_ALIGN 64
#define FEATURES   (FEATURE_AUXTRACE + 1)

/* perf's strings: their length, padded with NULs, then that many bytes. */
static int put_string(struct perf_data *p, const char *s, struct pt_error *e)
{
	static const char zero[NAME_ALIGN];
	size_t n = strlen(s), room = (n + NAME_ALIGN) / NAME_ALIGN * NAME_ALIGN;

	return perf_data_put32(p, (uint32_t)room, e) || perf_data_put(p, s, n, e) ||
		       perf_data_put(p, zero, room - n, e)
		   ? -1
		   : 0;
}

static int put_event_desc(struct perf_data *p, struct pt_error *e)
{
	if (perf_data_put32(p, p->event_count, e) || perf_data_put32(p, PERF_DATA_ATTR_BYTES, e))
		return -1;
	for (uint32_t i = 0; i < p->event_count; i++) {
		const struct perf_data_event *ev = &p->events[i];

		if (perf_data_put(p, &ev->attr, PERF_DATA_ATTR_BYTES, e) ||
		    perf_data_put32(p, ev->id_count, e) || put_string(p, ev->name, e) ||
		    perf_data_put(p, ev->ids, (size_t)ev->id_count * 8, e))
			return -1;
	}
	return 0;
}

static bool same_system(const struct perf_data *p, size_t a, size_t b)
{
	return strcmp(p->formats[a].system, p->formats[b].system) == 0;
}

/* What perf's util/trace-event-info.c writes, of tracepoints alone. */
static int put_tracing_data(struct perf_data *p, struct pt_error *e)
{
	static const char head[] = "\x17\x08\x44tracing0.6\0\0\x08"; /* version, little endian, sizeof long */
	static const char page[] = "header_page", event[] = "header_event";
	/* tracefs' events/header_page, of 64 bits: perf gives up where it is empty. */
	static const char fields[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				     "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				     "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				     "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
	uint32_t systems = 0;

	for (size_t i = 0; i < p->format_count; i++) {
		bool is_new = true;

		for (size_t k = 0; k < i && is_new; k++)
			is_new = !same_system(p, i, k);
		systems += is_new;
	}
	if (perf_data_put(p, head, sizeof head - 1, e) || perf_data_put32(p, 4096, e) ||
	    perf_data_put(p, page, sizeof page, e) || perf_data_put64(p, sizeof fields - 1, e) ||
	    perf_data_put(p, fields, sizeof fields - 1, e) || perf_data_put(p, event, sizeof event, e) ||
	    perf_data_put64(p, 0, e) || perf_data_put32(p, 0, e) || perf_data_put32(p, systems, e))
		return -1;
	for (size_t i = 0; i < p->format_count; i++) {
		uint32_t count = 0;
		bool is_new = true;

		for (size_t k = 0; k < p->format_count; k++) {
			count += same_system(p, i, k);
			is_new = is_new && (k >= i || !same_system(p, i, k));
		}
		if (!is_new)
			continue;
		if (perf_data_put(p, p->formats[i].system, strlen(p->formats[i].system) + 1, e) ||
		    perf_data_put32(p, count, e))
			return -1;
		for (size_t k = i; k < p->format_count; k++)
			if (same_system(p, i, k) &&
			    (perf_data_put64(p, p->formats[k].text_bytes, e) ||
			     perf_data_put(p, p->formats[k].text, p->formats[k].text_bytes, e)))
				return -1;
	}
	/*
	 * Neither kernel symbols nor printk's strings, their sizes of 32 bits each; nor threads' names,
	 * theirs of 64.
	 */
	return perf_data_put64(p, 0, e) ? -1 : perf_data_put64(p, 0, e);
}

static int put_build_ids(struct perf_data *p, struct pt_error *e)
{
	static const char zero[NAME_ALIGN];

	for (size_t i = 0; i < p->build_id_count; i++) {
		const struct perf_data_build_id *b = &p->build_ids[i];
		size_t n = strlen(b->name), room = (n + NAME_ALIGN) / NAME_ALIGN * NAME_ALIGN;
		uint8_t id[24] = {0};
		struct perf_event_header h = {.misc = PERF_RECORD_MISC_USER | PERF_BUILD_ID_SIZE_KNOWN,
					      .size = (uint16_t)(sizeof h + 4 + sizeof id + room)};

		memcpy(id, b->bytes, b->count);
		id[20] = b->count;
		if (perf_data_put(p, &h, sizeof h, e) || perf_data_put32(p, UINT32_MAX, e) ||
		    perf_data_put(p, id, sizeof id, e) || perf_data_put(p, b->name, n, e) ||
		    perf_data_put(p, zero, room - n, e))
			return -1;
	}
	return 0;
}

static int put_meta_string(struct perf_data *p, const struct ptc_meta *meta, const char *key,
			   struct pt_error *e)
{
	const char *value = perf_data_meta(p, meta, key);

	return put_string(p, value ? value : "", e);
}

static int put_feature(struct perf_data *p, enum perf_feature f, const struct ptc_meta *meta,
		       struct pt_error *e)
{
	char cpuid[200];

	switch (f) {
	case FEATURE_TRACING_DATA: return put_tracing_data(p, e);
	case FEATURE_BUILD_ID: return put_build_ids(p, e);
	case FEATURE_HOSTNAME: return put_meta_string(p, meta, "host", e);
	case FEATURE_OSRELEASE: return put_meta_string(p, meta, "kernel", e);
	case FEATURE_ARCH: return put_string(p, "x86_64", e);
	case FEATURE_NRCPUS: return perf_data_put32(p, p->cpus, e) ? -1 : perf_data_put32(p, p->cpus, e);
	case FEATURE_CPUDESC: return put_meta_string(p, meta, "cpu_name", e);
	case FEATURE_CPUID:
		snprintf(cpuid, sizeof cpuid, "%.100s,%" PRIu64 ",%" PRIu64 ",%" PRIu64,
			 ptc_meta_get(meta, "cpu_vendor") ? ptc_meta_get(meta, "cpu_vendor") : "GenuineIntel",
			 ptc_meta_number(meta, "cpu_family", 6), ptc_meta_number(meta, "cpu_model", 0),
			 ptc_meta_number(meta, "cpu_stepping", 0));
		return put_string(p, cpuid, e);
	case FEATURE_CMDLINE: return perf_data_put32(p, 1, e) ? -1 : put_meta_string(p, meta, "command", e);
	case FEATURE_EVENT_DESC: return put_event_desc(p, e);
	case FEATURE_AUXTRACE:
		return perf_data_put64(p, p->index_count, e)
			   ? -1
			   : perf_data_put(p, p->index, p->index_count * 16, e);
	default: return 0;
	}
}

static bool wanted(const struct perf_data *p, enum perf_feature f, const struct ptc_meta *meta)
{
	switch (f) {
	case FEATURE_TRACING_DATA: return p->format_count > 0;
	case FEATURE_BUILD_ID: return p->build_id_count > 0;
	case FEATURE_HOSTNAME: return perf_data_meta(p, meta, "host") != NULL;
	case FEATURE_OSRELEASE: return perf_data_meta(p, meta, "kernel") != NULL;
	case FEATURE_CMDLINE: return perf_data_meta(p, meta, "command") != NULL;
	case FEATURE_AUXTRACE: return !p->machine_pid && !p->without_pt;
	case FEATURE_ARCH:
	case FEATURE_NRCPUS:
	case FEATURE_CPUDESC:
	case FEATURE_CPUID:
	case FEATURE_EVENT_DESC: return true;
	default: return false;
	}
}

int perf_data_features(struct perf_data *p, const struct ptc_meta *meta, uint64_t *ret, struct pt_error *e)
{
	uint64_t table = p->offset, sections[2 * FEATURES], count = 0, end;

	*ret = 0;
	for (int f = 0; f < FEATURES; f++)
		*ret |= (uint64_t)wanted(p, (enum perf_feature)f, meta) << f;
	if (perf_data_seek(p, table + 16 * (uint64_t)__builtin_popcountll(*ret), e))
		return -1;
	for (int f = 0; f < FEATURES; f++) {
		if (!(*ret >> f & 1))
			continue;
		sections[2 * count] = p->offset;
		if (put_feature(p, (enum perf_feature)f, meta, e))
			return -1;
		sections[2 * count + 1] = p->offset - sections[2 * count];
		count++;
	}
	end = p->offset;
	if (perf_data_seek(p, table, e) || perf_data_put(p, sections, count * 16, e))
		return -1;
	return perf_data_seek(p, end, e);
}
