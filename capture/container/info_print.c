/* info_print.c - see info.h. */
#include "capture/container/info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "schema/utf8.h"

const char *info_chunk_name(size_t type)
{
	static const char *const names[INFO_TYPES] = {
	    [PTC_META] = "META",       [PTC_STREAM] = "STREAM",	    [PTC_AUX] = "AUX",
	    [PTC_ATTR] = "ATTR",       [PTC_SIDEBAND] = "SIDEBAND", [PTC_IMAGE] = "IMAGE",
	    [PTC_SYMBOLS] = "SYMBOLS", [PTC_ROUND] = "ROUND",	    [PTC_INDEX] = "INDEX",
	    [PTC_END] = "END",	       [PTC_FORMAT] = "FORMAT"};

	return type < INFO_TYPES && names[type] ? names[type] : "unknown";
}

const char *info_record_name(size_t type)
{
	static const char *const names[] = {
	    [1] = "MMAP",	   [2] = "LOST",       [3] = "COMM",
	    [4] = "EXIT",	   [5] = "THROTTLE",   [6] = "UNTHROTTLE",
	    [7] = "FORK",	   [8] = "READ",       [9] = "SAMPLE",
	    [10] = "MMAP2",	   [11] = "AUX",       [12] = "ITRACE_START",
	    [13] = "LOST_SAMPLES", [14] = "SWITCH",    [15] = "SWITCH_CPU_WIDE",
	    [16] = "NAMESPACES",   [17] = "KSYMBOL",   [18] = "BPF_EVENT",
	    [19] = "CGROUP",	   [20] = "TEXT_POKE", [21] = "AUX_OUTPUT_HW_ID"};

	return type < sizeof names / sizeof *names ? names[type] : NULL;
}

static const char *kind_name(enum ptc_image_kind kind)
{
	return kind == PTC_IMAGE_FILE ? "file" : "memory";
}

/* ---- Text ---- */

/* Names come from elsewhere: nothing of them may steer the terminal. */
static void print_plain(const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < 0x20 || c == 0x7f)
			printf("\\x%02x", c);
		else
			putchar(c);
	}
}

static void print_flags(const struct info_stream *s)
{
	static const char *const names[] = {"truncated", "overwrite", "partial", "collision"};
	const uint64_t counts[] = {s->truncated, s->overwrite, s->partial, s->collision};

	for (size_t f = 0; f < 4; f++)
		if (counts[f])
			printf(", %" PRIu64 " %s", counts[f], names[f]);
}

static void print_streams(const struct info *i)
{
	printf("streams: %zu\n", i->stream_count);
	for (size_t n = 0; n < i->stream_count; n++) {
		const struct info_stream *s = &i->streams[n];

		printf("  %u:", s->number);
		if (s->stream.cpu >= 0)
			printf(" cpu %d", s->stream.cpu);
		if (s->stream.pid >= 0)
			printf(" pid %d", s->stream.pid);
		if (s->stream.tid >= 0)
			printf(" tid %d", s->stream.tid);
		printf("%s, %" PRIu64 " bytes in %" PRIu64 " pieces at 0x%" PRIx64 "..0x%" PRIx64,
		       s->stream.snapshot ? " snapshot" : "", s->bytes, s->pieces, s->first_offset,
		       s->end_offset);
		if (s->gaps)
			printf(", %" PRIu64 " gaps of %" PRIu64 " bytes", s->gaps, s->gap_bytes);
		if (s->overlaps)
			printf(", %" PRIu64 " overlaps", s->overlaps);
		print_flags(s);
		putchar('\n');
	}
}

static void print_sideband(const struct info *i)
{
	printf("sideband: %" PRIu64 " records, %" PRIu64 " bytes\n", i->record_count, i->record_bytes);
	for (size_t n = 0; n < 256; n++) {
		const char *name = info_record_name(n);

		if (!i->records[n])
			continue;
		if (name)
			printf("  %-16s %" PRIu64 "\n", name, i->records[n]);
		else if (n)
			printf("  type %-11zu %" PRIu64 "\n", n, i->records[n]);
		else
			printf("  %-16s %" PRIu64 "\n", "other", i->records[n]);
	}
	for (size_t n = 0; n < i->attr_count; n++) {
		const struct info_attr *a = &i->attrs[n];

		printf("  event %u: ", a->index);
		print_plain(a->name);
		printf(" (type %u, config 0x%" PRIx64 ", sample_type 0x%" PRIx64 ", %u ids)\n", a->type,
		       a->config, a->sample_type, a->ids);
	}
}

static void print_images(const struct info *i)
{
	printf("images: %zu\n", i->image_count);
	for (size_t n = 0; n < i->image_count; n++) {
		const struct info_image *m = &i->images[n];

		fputs("  ", stdout);
		print_plain(m->name);
		printf(" (%s", kind_name(m->kind));
		if (m->build_id[0])
			printf(", build id %s", m->build_id);
		if (m->machine_pid)
			printf(", guest of pid %d", m->machine_pid);
		if (m->pid >= 0)
			printf(", pid %d", m->pid);
		if (m->bytes || m->symbols) /* (a kernel's module has symbols alone) */
			printf("): %" PRIu64 " bytes, %" PRIu64 " symbols", m->bytes, m->symbols);
		else
			printf("): not read");
		if (m->versions > 1)
			printf(", written %" PRIu64 " times", m->versions);
		putchar('\n');
		for (uint32_t r = 0; r < m->listed; r++)
			printf("    offset 0x%" PRIx64 " vaddr 0x%" PRIx64 " size 0x%" PRIx64 "\n",
			       m->ranges[r].offset, m->ranges[r].vaddr, m->ranges[r].size);
		if (m->range_count > m->listed)
			printf("    and %" PRIu64 " more ranges\n", m->range_count - m->listed);
	}
}

void info_print_text(const struct info *i)
{
	const char *key, *value;
	uint64_t raw = 0, stored = 0;

	for (size_t n = 0; ptc_meta_pair(i->meta, n, &key, &value); n++) {
		print_plain(key);
		fputs(": ", stdout);
		print_plain(value);
		putchar('\n');
	}
	print_streams(i);
	print_sideband(i);
	print_images(i);
	puts("chunks:");
	for (size_t n = 0; n < INFO_TYPES; n++) {
		const struct info_chunks *k = &i->chunks[n];

		if (!k->count)
			continue;
		raw += k->raw_bytes;
		stored += k->stored_bytes;
		printf("  %-9s %8" PRIu64 ", %12" PRIu64 " bytes, %12" PRIu64 " stored\n", info_chunk_name(n),
		       k->count, k->raw_bytes, k->stored_bytes);
	}
	printf("  %-9s %8s  %12" PRIu64 " bytes, %12" PRIu64 " stored\n", "all", "", raw, stored);
	if (i->complete)
		puts("complete");
	else
		printf("NOT COMPLETE: %s (at byte %" PRIu64 ")\n", i->error.message, i->error.offset);
}

/* ---- JSON ---- */

static void json_string(const char *string)
{
	const unsigned char *s = (const unsigned char *)string;

	putchar('"');
	while (*s) {
		size_t n = pt_utf8_bytes(s, strnlen((const char *)s, 4));

		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if (n && pt_utf8_controls(s, n))
			printf("\\u%04x", pt_utf8_code(s, n));
		else if (n == 0)
			fputs("\\ufffd", stdout);
		else
			fwrite(s, 1, n, stdout);
		s += n ? n : 1;
	}
	putchar('"');
}

static void json_member(const char *key, uint64_t value)
{
	printf(", \"%s\": %" PRIu64, key, value);
}

static void json_streams(const struct info *i)
{
	fputs(" \"streams\": [", stdout);
	for (size_t n = 0; n < i->stream_count; n++) {
		const struct info_stream *s = &i->streams[n];

		printf("%s\n  {\"stream\": %u, \"cpu\": %d, \"pid\": %d, \"tid\": %d", n ? "," : "",
		       s->number, s->stream.cpu, s->stream.pid, s->stream.tid);
		if (s->stream.attr != UINT32_MAX)
			json_member("attr", s->stream.attr);
		printf(", \"snapshot\": %s", s->stream.snapshot ? "true" : "false");
		json_member("pieces", s->pieces);
		json_member("bytes", s->bytes);
		json_member("first_offset", s->first_offset);
		json_member("end_offset", s->end_offset);
		json_member("gaps", s->gaps);
		json_member("gap_bytes", s->gap_bytes);
		json_member("overlaps", s->overlaps);
		json_member("truncated", s->truncated);
		json_member("overwrite", s->overwrite);
		json_member("partial", s->partial);
		json_member("collision", s->collision);
		putchar('}');
	}
	puts("],");
}

static void json_sideband(const struct info *i)
{
	const char *comma = "";

	fputs(" \"events\": [", stdout);
	for (size_t n = 0; n < i->attr_count; n++) {
		const struct info_attr *a = &i->attrs[n];

		printf("%s\n  {\"index\": %u, \"name\": ", n ? "," : "", a->index);
		json_string(a->name);
		json_member("type", a->type);
		json_member("config", a->config);
		json_member("sample_type", a->sample_type);
		json_member("ids", a->ids);
		putchar('}');
	}
	printf("],\n \"sideband\": {\"records\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"types\": {",
	       i->record_count, i->record_bytes);
	for (size_t n = 0; n < 256; n++) {
		const char *name = info_record_name(n);

		if (!i->records[n])
			continue;
		if (name)
			printf("%s\"%s\": %" PRIu64, comma, name, i->records[n]);
		else
			printf("%s\"%zu\": %" PRIu64, comma, n, i->records[n]);
		comma = ", ";
	}
	puts("}},");
}

static void json_images(const struct info *i)
{
	fputs(" \"images\": [", stdout);
	for (size_t n = 0; n < i->image_count; n++) {
		const struct info_image *m = &i->images[n];

		printf("%s\n  {\"name\": ", n ? "," : "");
		json_string(m->name);
		printf(", \"kind\": \"%s\", \"build_id\": ", kind_name(m->kind));
		if (m->build_id[0])
			json_string(m->build_id);
		else
			fputs("null", stdout);
		printf(", \"machine_pid\": %d, \"pid\": %d", m->machine_pid, m->pid);
		json_member("bytes", m->bytes);
		json_member("symbols", m->symbols);
		json_member("versions", m->versions);
		json_member("range_count", m->range_count);
		fputs(", \"ranges\": [", stdout);
		for (uint32_t r = 0; r < m->listed; r++)
			printf("%s{\"offset\": %" PRIu64 ", \"vaddr\": %" PRIu64 ", \"size\": %" PRIu64 "}",
			       r ? ", " : "", m->ranges[r].offset, m->ranges[r].vaddr, m->ranges[r].size);
		fputs("]}", stdout);
	}
	puts("],");
}

void info_print_json(const struct info *i)
{
	const char *key, *value, *comma = "";

	fputs("{\"file\": ", stdout);
	json_string(i->file);
	printf(",\n \"complete\": %s,\n \"error\": ", i->complete ? "true" : "false");
	if (i->complete) {
		fputs("null", stdout);
	} else {
		printf("{\"kind\": \"%s\", \"offset\": %" PRIu64 ", \"message\": ",
		       i->error.kind == PT_ERR_TRUNCATED ? "cut" : "damaged", i->error.offset);
		json_string(i->error.message);
		putchar('}');
	}
	printf(",\n \"bytes\": %" PRIu64 ",\n \"meta\": {", i->bytes);
	for (size_t n = 0; ptc_meta_pair(i->meta, n, &key, &value); n++) {
		fputs(n ? ", " : "", stdout);
		json_string(key);
		fputs(": ", stdout);
		json_string(value);
	}
	puts("},");
	json_streams(i);
	json_sideband(i);
	json_images(i);
	printf(" \"symbols\": %" PRIu64 ",\n \"rounds\": %" PRIu64 ",\n \"chunks\": {", i->symbols,
	       i->rounds);
	for (size_t n = 0; n < INFO_TYPES; n++) {
		const struct info_chunks *k = &i->chunks[n];

		if (!k->count)
			continue;
		printf("%s\n  \"%s\": {\"count\": %" PRIu64 ", \"raw_bytes\": %" PRIu64
		       ", \"stored_bytes\": %" PRIu64 "}",
		       comma, info_chunk_name(n), k->count, k->raw_bytes, k->stored_bytes);
		comma = ",";
	}
	puts("}}");
}
