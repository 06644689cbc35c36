/* options.c - see options.h. */
#include "capture/tracecmd/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_MAX ((uint32_t)1 << 20) /* bytes of one */

enum { DONE = 0, TIME_SHIFT = 12, TSC2NSEC = 14, SECTIONS_MAX = 64, OPTIONS_MAX = 4096 };

static bool read_bytes(FILE *f, void *to, size_t n)
{
	return fread(to, n, 1, f) == 1;
}

static bool skip(FILE *f, uint64_t n)
{
	return n <= INT64_MAX && fseeko(f, (off_t)n, SEEK_CUR) == 0;
}

/* Past a string and its NUL. */
static bool skip_string(FILE *f)
{
	int c;

	while ((c = getc(f)) > 0)
		;
	return c == 0;
}

/* ---- Options ---- */

struct cursor {
	const uint8_t *at, *end; /* at NULL: it is cut */
};

static uint64_t take(struct cursor *c, size_t n)
{
	uint64_t v = 0;

	if (!c->at || n > (size_t)(c->end - c->at)) {
		c->at = NULL;
		return 0;
	}
	memcpy(&v, c->at, n);
	c->at += n;
	return v;
}

/* u64 id of the peer, u32 flags, u32 CPUs, then for each: u32 count, count x u64 time, count x i64 offset, count x u64
 * scaling. Behind all of them, newer ones have count x u64 fraction bits for each. */
static void take_time_shift(struct trace_dat_options *o, const uint8_t *bytes, uint32_t n)
{
	struct cursor c = {bytes, bytes + n};
	struct trace_dat_shift *shifts = o->shifts;
	uint64_t scaling[TRACE_DAT_CPUS_MAX];
	uint32_t counts[TRACE_DAT_CPUS_MAX];
	uint32_t cpus;

	take(&c, 8);
	take(&c, 4);
	cpus = (uint32_t)take(&c, 4);
	if (!c.at || cpus > TRACE_DAT_CPUS_MAX)
		return;
	for (uint32_t cpu = 0; cpu < cpus && c.at; cpu++) {
		uint32_t count = counts[cpu] = (uint32_t)take(&c, 4);
		uint64_t oldest = UINT64_MAX, newest = 0, time, scale;
		int64_t offset;

		scaling[cpu] = 1;
		if (c.at && count > (size_t)(c.end - c.at) / 24)
			c.at = NULL;
		for (size_t i = 0; c.at && i < count; i++) {
			memcpy(&time, c.at + 8 * i, 8);
			memcpy(&offset, c.at + 8 * (count + i), 8);
			memcpy(&scale, c.at + 8 * (2 * (size_t)count + i), 8);
			if (time <= oldest) {
				oldest = time;
				shifts[cpu].first = offset;
			}
			if (time >= newest) {
				newest = time;
				shifts[cpu].last = offset;
			}
			shifts[cpu].known = true;
			if (scale != 1)
				scaling[cpu] = scale;
		}
		if (c.at)
			c.at += 24 * (size_t)count;
	}
	if (!c.at) {
		memset(shifts, 0, cpus * sizeof *shifts);
		return;
	}
	o->shift_count = cpus;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		bool has_bits = counts[cpu] && (size_t)(c.end - c.at) >= 8 * (size_t)counts[cpu];
		uint64_t bits = has_bits ? take(&c, 8) : 0;

		for (uint32_t i = 1; has_bits && i < counts[cpu]; i++)
			take(&c, 8);
		shifts[cpu].scaled = scaling[cpu] > 1 && (bits > 63 || scaling[cpu] != (uint64_t)1 << bits);
	}
}

/* From here on, up to the one that ends them; its data is the place of the next section, or 0. */
static uint64_t read_options(struct trace_dat_options *o, FILE *f)
{
	for (int option = 0; option < OPTIONS_MAX; option++) {
		uint64_t next = 0;
		uint8_t *bytes;
		uint16_t id;
		uint32_t size;

		if (!read_bytes(f, &id, sizeof id))
			return 0;
		/* In version 6 the last one is its id alone. */
		if (!read_bytes(f, &size, sizeof size) ||
		    (id == DONE && (size < sizeof next || !read_bytes(f, &next, sizeof next))))
			return 0;
		if (id == DONE)
			return next;
		if (id != TSC2NSEC && id != TIME_SHIFT) {
			if (!skip(f, size))
				return 0;
			continue;
		}
		bytes = size && size <= OPTION_MAX ? malloc(size) : NULL;
		if (!bytes || !read_bytes(f, bytes, size)) {
			free(bytes);
			return 0;
		}
		if (id == TIME_SHIFT) {
			take_time_shift(o, bytes, size);
		} else if (size >= 8) {
			memcpy(&o->mult, bytes, 4);
			memcpy(&o->shift, bytes + 4, 4);
			o->tsc2nsec = o->mult && o->shift < 64;
		}
		free(bytes);
	}
	return 0;
}

/* ---- Files ---- */

/* Behind the head: compression's name and version, u64 place of the first section of options. A section: u16 id, u16 flags
 * (1: compressed), u32 name, u64 size. */
static void read_v7(struct trace_dat_options *o, FILE *f)
{
	uint64_t at;

	/* NOLINTNEXTLINE(misc-redundant-expression): each call skips one */
	if (!skip_string(f) || !skip_string(f) || !read_bytes(f, &at, sizeof at))
		return;
	for (int section = 0; at && at <= INT64_MAX && section < SECTIONS_MAX; section++) {
		uint16_t head[2];

		if (fseeko(f, (off_t)at, SEEK_SET) || !read_bytes(f, head, sizeof head) || head[1] & 1 ||
		    !skip(f, 12))
			return;
		at = read_options(o, f);
	}
}

/* u64 size, and so many bytes. */
static bool skip_sized(FILE *f)
{
	uint64_t n;

	return read_bytes(f, &n, sizeof n) && skip(f, n);
}

/* Behind the head: "header_page", "header_event", ftrace's formats, all others, kallsyms, printk's strings, command lines,
 * u32 CPUs; then "options  ", if there are any. */
static void read_v6(struct trace_dat_options *o, FILE *f)
{
	uint32_t n, systems, formats;
	char tag[10];

	for (int i = 0; i < 2; i++)
		if (!skip_string(f) || !skip_sized(f))
			return;
	if (!read_bytes(f, &formats, sizeof formats))
		return;
	while (formats--)
		if (!skip_sized(f))
			return;
	if (!read_bytes(f, &systems, sizeof systems))
		return;
	while (systems--) {
		if (!skip_string(f) || !read_bytes(f, &formats, sizeof formats))
			return;
		while (formats--)
			if (!skip_sized(f))
				return;
	}
	for (int i = 0; i < 2; i++)
		if (!read_bytes(f, &n, sizeof n) || !skip(f, n))
			return;
	if (!skip_sized(f) || !skip(f, 4) || !read_bytes(f, tag, sizeof tag) ||
	    memcmp(tag, "options  ", 10) != 0)
		return;
	read_options(o, f);
}

void trace_dat_options_read(struct trace_dat_options *ret, const char *path)
{
	/* magic 10, version string, endian 1 (0: little), size of long 1, page size 4 */
	char version[8] = "", c;
	FILE *f = fopen(path, "re");
	size_t n = 0;

	memset(ret, 0, sizeof *ret);
	if (!f)
		return;
	if (skip(f, 10)) {
		while (n < sizeof version - 1 && read_bytes(f, &c, 1) && c)
			version[n++] = c;
		if (read_bytes(f, &c, 1) && c == 0 && skip(f, 5)) {
			if (strcmp(version, "7") == 0)
				read_v7(ret, f);
			else if (strcmp(version, "6") == 0)
				read_v6(ret, f);
		}
	}
	fclose(f);
}
