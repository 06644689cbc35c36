/* writer_features.c - see writer_features.h. */
#include "capture/perfdata/writer_features.h"
#include "capture/perfdata/perf_user.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_ALIGN 64
#define FEATURES   (FEATURE_HYBRID_TOPOLOGY + 1)

/* perf's strings: their length, padded with NULs, then that many bytes. */
static int put_string(struct perf_out *o, const char *s, struct pt_error *e)
{
	static const char zero[NAME_ALIGN];
	size_t n = strlen(s), room = (n + NAME_ALIGN) / NAME_ALIGN * NAME_ALIGN;

	return perf_out_u32(o, (uint32_t)room, e) || perf_out_bytes(o, s, n, e) ||
		       perf_out_bytes(o, zero, room - n, e)
		   ? -1
		   : 0;
}

static int put_event_desc(struct perf_out *o, const struct perf_contents *c, struct pt_error *e)
{
	if (perf_out_u32(o, c->event_count, e) || perf_out_u32(o, PERF_ATTR_BYTES, e))
		return -1;
	for (size_t i = 0; i < c->event_count; i++) {
		const struct perf_out_event *ev = &c->events[i];

		if (perf_out_bytes(o, &ev->attr, PERF_ATTR_BYTES, e) || perf_out_u32(o, ev->id_count, e) ||
		    put_string(o, ev->name, e) || perf_out_bytes(o, ev->ids, (size_t)ev->id_count * 8, e))
			return -1;
	}
	return 0;
}

static bool same_system(const struct perf_contents *c, size_t a, size_t b)
{
	return strcmp(c->formats[a].system, c->formats[b].system) == 0;
}

/* Whether the format is its system's first. */
static bool begins_system(const struct perf_contents *c, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (same_system(c, i, k))
			return false;
	return true;
}

/* All formats of the system of which format i is the first. */
static int put_system(struct perf_out *o, const struct perf_contents *c, size_t i, struct pt_error *e)
{
	uint32_t count = 0;

	for (size_t k = i; k < c->format_count; k++)
		count += same_system(c, i, k);
	if (perf_out_bytes(o, c->formats[i].system, strlen(c->formats[i].system) + 1, e) ||
	    perf_out_u32(o, count, e))
		return -1;
	for (size_t k = i; k < c->format_count; k++)
		if (same_system(c, i, k) &&
		    (perf_out_u64(o, c->formats[k].text_bytes, e) ||
		     perf_out_bytes(o, c->formats[k].text, c->formats[k].text_bytes, e)))
			return -1;
	return 0;
}

/* What perf's util/trace-event-info.c writes, of tracepoints alone; formats.h has the layout. */
static int put_tracing_data(struct perf_out *o, const struct perf_contents *c, struct pt_error *e)
{
	static const char head[] = "\x17\x08\x44tracing0.6\0\0\x08"; /* version, little endian, sizeof long */
	static const char page[] = "header_page", event[] = "header_event";
	/* tracefs' events/header_page, of 64 bits: perf gives up where it is empty. */
	static const char fields[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				     "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				     "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				     "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
	uint32_t systems = 0;

	for (size_t i = 0; i < c->format_count; i++)
		systems += begins_system(c, i);
	if (perf_out_bytes(o, head, sizeof head - 1, e) || perf_out_u32(o, 4096, e) ||
	    perf_out_bytes(o, page, sizeof page, e) || perf_out_u64(o, sizeof fields - 1, e) ||
	    perf_out_bytes(o, fields, sizeof fields - 1, e) || perf_out_bytes(o, event, sizeof event, e) ||
	    perf_out_u64(o, 0, e) || perf_out_u32(o, 0, e) || perf_out_u32(o, systems, e))
		return -1;
	for (size_t i = 0; i < c->format_count; i++)
		if (begins_system(c, i) && put_system(o, c, i, e))
			return -1;
	/*
	 * Neither kernel symbols nor printk's strings, their sizes of 32 bits each; nor threads' names,
	 * theirs of 64.
	 */
	return perf_out_u64(o, 0, e) ? -1 : perf_out_u64(o, 0, e);
}

static int put_build_ids(struct perf_out *o, const struct perf_contents *c, struct pt_error *e)
{
	static const char zero[NAME_ALIGN];

	for (size_t i = 0; i < c->build_id_count; i++) {
		const struct perf_out_build_id *b = &c->build_ids[i];
		size_t n = strlen(b->name), room = (n + NAME_ALIGN) / NAME_ALIGN * NAME_ALIGN;
		uint8_t id[24] = {0};
		struct perf_event_header h = {.misc = PERF_RECORD_MISC_USER | PERF_BUILD_ID_SIZE_KNOWN,
					      .size = (uint16_t)(sizeof h + 4 + sizeof id + room)};

		memcpy(id, b->bytes, b->count);
		id[20] = b->count;
		if (perf_out_bytes(o, &h, sizeof h, e) || perf_out_u32(o, UINT32_MAX, e) ||
		    perf_out_bytes(o, id, sizeof id, e) || perf_out_bytes(o, b->name, n, e) ||
		    perf_out_bytes(o, zero, room - n, e))
			return -1;
	}
	return 0;
}

static int put_meta_string(struct perf_out *o, const struct perf_contents *c, const char *key,
			   struct pt_error *e)
{
	const char *value = perf_contents_meta(c, key);

	return put_string(o, value ? value : "", e);
}

static int put_cpuid(struct perf_out *o, const struct perf_contents *c, struct pt_error *e)
{
	const char *vendor = ptc_meta_get(c->meta, "cpu_vendor");
	char cpuid[200];

	snprintf(cpuid, sizeof cpuid, "%.100s,%" PRIu64 ",%" PRIu64 ",%" PRIu64,
		 vendor ? vendor : "GenuineIntel", ptc_meta_number(c->meta, "cpu_family", 6),
		 ptc_meta_number(c->meta, "cpu_model", 0), ptc_meta_number(c->meta, "cpu_stepping", 0));
	return put_string(o, cpuid, e);
}

/* What META says of the n'th type of CPUs; NULL: there is none. */
static const char *cpu_type(const struct perf_contents *c, unsigned n, const char *what)
{
	char key[64];

	snprintf(key, sizeof key, "cpu_type.%u.%s", n, what);
	return ptc_meta_get(c->meta, key);
}

static int put_cpu_types(struct perf_out *o, const struct perf_contents *c, struct pt_error *e)
{
	unsigned count = 0;

	while (cpu_type(c, count, "name") && cpu_type(c, count, "cpus"))
		count++;
	if (perf_out_u32(o, count, e))
		return -1;
	for (unsigned n = 0; n < count; n++)
		if (put_string(o, cpu_type(c, n, "name"), e) || put_string(o, cpu_type(c, n, "cpus"), e))
			return -1;
	return 0;
}

/* Where each AUXTRACE record is. */
static int put_aux_index(struct perf_out *o, const struct perf_contents *c, struct pt_error *e)
{
	return perf_out_u64(o, c->aux_count, e) ? -1
						: perf_out_bytes(o, c->aux, c->aux_count * sizeof *c->aux, e);
}

static int put_feature(struct perf_out *o, enum perf_feature f, const struct perf_contents *c,
		       struct pt_error *e)
{
	switch (f) {
	case FEATURE_TRACING_DATA: return put_tracing_data(o, c, e);
	case FEATURE_BUILD_ID: return put_build_ids(o, c, e);
	case FEATURE_HOSTNAME: return put_meta_string(o, c, "host", e);
	case FEATURE_OSRELEASE: return put_meta_string(o, c, "kernel", e);
	case FEATURE_ARCH: return put_string(o, "x86_64", e);
	case FEATURE_NRCPUS: return perf_out_u32(o, c->cpus, e) ? -1 : perf_out_u32(o, c->cpus, e);
	case FEATURE_CPUDESC: return put_meta_string(o, c, "cpu_name", e);
	case FEATURE_CPUID: return put_cpuid(o, c, e);
	case FEATURE_CMDLINE: return perf_out_u32(o, 1, e) ? -1 : put_meta_string(o, c, "command", e);
	case FEATURE_EVENT_DESC: return put_event_desc(o, c, e);
	case FEATURE_AUXTRACE: return put_aux_index(o, c, e);
	case FEATURE_HYBRID_TOPOLOGY: return put_cpu_types(o, c, e);
	default: return 0;
	}
}

static bool is_wanted(const struct perf_contents *c, enum perf_feature f)
{
	switch (f) {
	case FEATURE_TRACING_DATA: return c->format_count > 0;
	case FEATURE_BUILD_ID: return c->build_id_count > 0;
	case FEATURE_HOSTNAME: return perf_contents_meta(c, "host") != NULL;
	case FEATURE_OSRELEASE: return perf_contents_meta(c, "kernel") != NULL;
	case FEATURE_CMDLINE: return perf_contents_meta(c, "command") != NULL;
	case FEATURE_AUXTRACE: return !c->machine_pid && !c->without_pt;
	case FEATURE_HYBRID_TOPOLOGY: return !c->machine_pid && cpu_type(c, 0, "cpus");
	case FEATURE_ARCH:
	case FEATURE_NRCPUS:
	case FEATURE_CPUDESC:
	case FEATURE_CPUID:
	case FEATURE_EVENT_DESC: return true;
	default: return false;
	}
}

int perf_features_put(struct perf_out *o, const struct perf_contents *c, uint64_t *ret_bits,
		      struct pt_error *e)
{
	uint64_t table = o->offset, sections[2 * FEATURES], count = 0, end;

	*ret_bits = 0;
	for (int f = 0; f < FEATURES; f++)
		*ret_bits |= (uint64_t)is_wanted(c, (enum perf_feature)f) << f;
	if (perf_out_seek(o, table + 16 * (uint64_t)__builtin_popcountll(*ret_bits), e))
		return -1;
	for (int f = 0; f < FEATURES; f++) {
		if (!(*ret_bits >> f & 1))
			continue;
		sections[2 * count] = o->offset;
		if (put_feature(o, (enum perf_feature)f, c, e))
			return -1;
		sections[2 * count + 1] = o->offset - sections[2 * count];
		count++;
	}
	end = o->offset;
	if (perf_out_seek(o, table, e) || perf_out_bytes(o, sections, count * 16, e))
		return -1;
	return perf_out_seek(o, end, e);
}
