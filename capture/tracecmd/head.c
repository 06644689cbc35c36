/* head.c - see head.h. */
#include "capture/tracecmd/head.h"
#include "schema/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OPTION_MAX ((uint32_t)1 << 20) /* bytes of one that is looked into */

enum {
	DONE = 0,
	BUFFER = 3,
	TRACECLOCK = 4,
	UNAME = 5,
	CPUCOUNT = 8,
	TIME_SHIFT = 12,
	TSC2NSEC = 14,
	SECTIONS_MAX = 64,
	OPTIONS_MAX = 4096
};

struct head_file {
	FILE *f;
	const char *path;
	uint64_t bytes;
	unsigned version;
	uint32_t page_bytes;
	uint32_t cpu_count;  /* version 6 */
	bool clock_follows;  /* version 6: the clock's name is after the main buffer's table */
	bool in_instance;    /* version 6: its table is being read */
	uint64_t *instances; /* version 6: offsets of the instances' tables */
	size_t instance_count, instance_room;
	struct trace_dat_head *head;
};

static int malformed(const struct head_file *h, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_BAD_INPUT, (uint64_t)ftello(h->f), "%s is no trace.dat that can be read",
		       h->path);
}

/* ---- Bytes ---- */

static bool read_bytes(FILE *f, void *to, size_t n)
{
	return fread(to, n, 1, f) == 1;
}

static bool skip(FILE *f, uint64_t n)
{
	return n <= INT64_MAX && fseeko(f, (off_t)n, SEEK_CUR) == 0;
}

static bool seek(FILE *f, uint64_t offset)
{
	return offset <= INT64_MAX && fseeko(f, (off_t)offset, SEEK_SET) == 0;
}

/* A string and its NUL; what of it is longer than room is dropped. */
static bool read_string(FILE *f, char *to, size_t room)
{
	size_t n = 0;
	int c;

	while ((c = getc(f)) > 0)
		if (n + 1 < room)
			to[n++] = (char)c;
	if (room)
		to[n] = 0;
	return c == 0;
}

static bool skip_string(FILE *f)
{
	return read_string(f, NULL, 0);
}

/* u64 size, and that many bytes. */
static bool skip_sized(FILE *f)
{
	uint64_t n;

	return read_bytes(f, &n, sizeof n) && skip(f, n);
}

/* ---- Options ---- */

struct cursor {
	const uint8_t *at, *end; /* at NULL: it is cut */
};

/* A number of n bytes, at most 8. */
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

static const char *take_string(struct cursor *c)
{
	const uint8_t *s = c->at, *nul = s ? memchr(s, 0, (size_t)(c->end - s)) : NULL;

	c->at = nul ? nul + 1 : NULL;
	return nul ? (const char *)s : "";
}

/*
 * What a CPU's clock corrections say: count x u64 time, count x i64 shift, count x u64 scaling. Returns the
 * scaling.
 */
static uint64_t take_corrections(struct cursor *c, uint32_t count, struct trace_dat_shift *ret)
{
	uint64_t oldest = UINT64_MAX, newest = 0, scaling = 1;

	if (!c->at || count > (size_t)(c->end - c->at) / 24) {
		c->at = NULL;
		return scaling;
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t time, scale;
		int64_t shift;

		memcpy(&time, c->at + 8 * i, 8);
		memcpy(&shift, c->at + 8 * (count + i), 8);
		memcpy(&scale, c->at + 8 * (2 * (size_t)count + i), 8);
		if (time <= oldest) {
			oldest = time;
			ret->first = shift;
		}
		if (time >= newest) {
			newest = time;
			ret->last = shift;
		}
		ret->known = true;
		if (scale != 1)
			scaling = scale;
	}
	c->at += 24 * (size_t)count;
	return scaling;
}

/*
 * u64 id of the peer, u32 flags, u32 CPUs, then for each: u32 count, and corrections. After all of them,
 * newer ones have count x u64 fraction bits for each.
 */
static void take_time_shift(struct trace_dat_head *h, struct cursor c)
{
	uint64_t scaling[TRACE_DAT_SHIFTS_MAX];
	uint32_t counts[TRACE_DAT_SHIFTS_MAX];
	uint32_t cpus;

	take(&c, 8);
	take(&c, 4);
	cpus = (uint32_t)take(&c, 4);
	if (!c.at || cpus > TRACE_DAT_SHIFTS_MAX)
		return;
	for (uint32_t cpu = 0; cpu < cpus && c.at; cpu++) {
		counts[cpu] = (uint32_t)take(&c, 4);
		scaling[cpu] = take_corrections(&c, counts[cpu], &h->shifts[cpu]);
	}
	if (!c.at) {
		memset(h->shifts, 0, cpus * sizeof *h->shifts);
		return;
	}
	h->shift_count = cpus;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		bool has_bits = counts[cpu] && (size_t)(c.end - c.at) >= 8 * (size_t)counts[cpu];
		uint64_t bits = has_bits ? take(&c, 8) : 0;

		for (uint32_t i = 1; has_bits && i < counts[cpu]; i++)
			take(&c, 8);
		h->shifts[cpu].scaled =
		    scaling[cpu] > 1 && (bits > 63 || scaling[cpu] != (uint64_t)1 << bits);
	}
}

static void take_tsc2nsec(struct trace_dat_head *h, struct cursor c)
{
	uint32_t mult = (uint32_t)take(&c, 4), shift = (uint32_t)take(&c, 4);

	if (!c.at)
		return;
	h->mult = mult;
	h->shift = shift;
	h->tsc2nsec = mult && shift < 64;
}

/*
 * The clock in use, of "local global [x86-tsc] ...", the content of tracefs's trace_clock. False: none is
 * marked.
 */
static bool take_clock(struct trace_dat_head *h, const char *text, size_t n)
{
	const char *open = memchr(text, '[', n);
	size_t left = open ? n - (size_t)(open + 1 - text) : 0, bytes = 0;

	while (bytes < left && !strchr("] \n", open[1 + bytes])) /* (strchr() finds the NUL, too.) */
		bytes++;
	if (!open || bytes == 0)
		return false;
	snprintf(h->clock, sizeof h->clock, "%.*s", (int)bytes, open + 1);
	return true;
}

/* "Linux HOST RELEASE ..." */
static void take_uname(struct trace_dat_head *h, struct cursor c)
{
	if (sscanf(take_string(&c), "%*s %127s %127s", h->host, h->kernel) != 2)
		h->host[0] = h->kernel[0] = 0;
}

/* ---- Buffers ---- */

static struct trace_dat_buffer *add_buffer(struct trace_dat_head *h, uint32_t cpus, struct pt_error *e)
{
	struct trace_dat_buffer *b;

	if (pt_array_grow(&h->buffers, h->buffer_count, &h->buffer_room, e))
		return NULL;
	b = &h->buffers[h->buffer_count];
	*b = (struct trace_dat_buffer){.cpus = calloc((size_t)cpus + 1, sizeof *b->cpus), .cpu_count = cpus};
	if (!b->cpus) {
		pt_fail_no_memory(e, "the trace.dat");
		return NULL;
	}
	h->buffer_count++;
	return b;
}

static int check_cpu(const struct head_file *h, uint32_t cpu, const struct trace_dat_cpu *c,
		     struct pt_error *e)
{
	if (c->bytes == 0 || (c->offset <= h->bytes && c->bytes <= h->bytes - c->offset))
		return 0;
	return pt_fail(e, PT_ERR_TRUNCATED, h->bytes, "%s ends before the data of CPU %u does", h->path, cpu);
}

/*
 * After the buffer's place, name and clock: u32 page size, u32 count, count x {u32 CPU, u64 offset, u64
 * bytes}.
 */
static int take_cpus(struct head_file *h, struct cursor c, struct pt_error *e)
{
	uint32_t page_bytes = (uint32_t)take(&c, 4), count = (uint32_t)take(&c, 4), cpus = 0;
	struct cursor first = c;
	struct trace_dat_buffer *b;

	if (!c.at || count > (size_t)(c.end - c.at) / 20)
		return malformed(h, e);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t cpu = (uint32_t)take(&c, 4);

		take(&c, 8);
		take(&c, 8);
		if (cpu >= TRACE_DAT_CPUS_MAX)
			return malformed(h, e);
		cpus = cpu >= cpus ? cpu + 1 : cpus;
	}
	b = add_buffer(h->head, cpus, e);
	if (!b)
		return -1;
	b->page_bytes = page_bytes;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t cpu = (uint32_t)take(&first, 4);
		struct trace_dat_cpu *to = &b->cpus[cpu];

		if (to->bytes)
			return malformed(h, e);
		to->offset = take(&first, 8);
		to->bytes = take(&first, 8);
		if (check_cpu(h, cpu, to, e))
			return -1;
	}
	return 0;
}

/* Whether the section at offset is compressed: u16 id, u16 flags (1: compressed), u32 name, u64 size. */
static bool is_compressed(const struct head_file *h, uint64_t offset)
{
	off_t here = ftello(h->f);
	uint16_t head[2] = {0};
	bool ret = seek(h->f, offset) && read_bytes(h->f, head, sizeof head) && head[1] & 1;

	fseeko(h->f, here, SEEK_SET);
	return ret;
}

/* u64 place of the buffer's section, its name ("" the main one); of version 7 its clock, and its CPUs. */
static int take_buffer(struct head_file *h, struct cursor c, struct pt_error *e)
{
	uint64_t place = take(&c, 8);
	const char *name = take_string(&c), *clock;
	struct trace_dat_head *head = h->head;

	if (!c.at)
		return malformed(h, e);
	if (h->version == 6) {
		if (*name == 0 || h->in_instance)
			return 0;
		if (pt_array_grow(&h->instances, h->instance_count, &h->instance_room, e))
			return -1;
		h->instances[h->instance_count++] = place;
		return 0;
	}
	clock = take_string(&c);
	if (*name == 0 && !head->clock[0] && !take_clock(head, clock, strlen(clock)))
		snprintf(head->clock, sizeof head->clock, "%.*s", (int)strcspn(clock, "] \n"), clock);
	if (take_cpus(h, c, e))
		return -1;
	head->buffers[head->buffer_count - 1].compressed = is_compressed(h, place);
	if (*name == 0) { /* to the front */
		struct trace_dat_buffer main_one = head->buffers[head->buffer_count - 1];

		memmove(head->buffers + 1, head->buffers, (head->buffer_count - 1) * sizeof *head->buffers);
		head->buffers[0] = main_one;
	}
	return 0;
}

static int take_option(struct head_file *h, uint16_t id, struct cursor c, struct pt_error *e)
{
	switch (id) {
	case BUFFER: return take_buffer(h, c, e);
	case TRACECLOCK:
		h->clock_follows = true;
		take_clock(h->head, (const char *)c.at, (size_t)(c.end - c.at));
		return 0;
	case UNAME: take_uname(h->head, c); return 0;
	case CPUCOUNT:
		if (c.end - c.at >= 4)
			h->cpu_count = (uint32_t)take(&c, 4);
		return 0;
	case TIME_SHIFT: take_time_shift(h->head, c); return 0;
	case TSC2NSEC: take_tsc2nsec(h->head, c); return 0;
	default: return 0;
	}
}

/* An option's bytes. */
static int read_option(struct head_file *h, uint16_t id, uint32_t size, struct pt_error *e)
{
	uint8_t *bytes;
	int ret;

	if (size > OPTION_MAX)
		return skip(h->f, size) ? 0 : malformed(h, e);
	bytes = malloc((size_t)size + 1);
	if (!bytes)
		return pt_fail_no_memory(e, "the trace.dat");
	if (size && !read_bytes(h->f, bytes, size))
		ret = malformed(h, e);
	else
		ret = take_option(h, id, (struct cursor){bytes, bytes + size}, e);
	free(bytes);
	return ret;
}

/*
 * From here on, up to the option that ends them; *ret_next: its data, the place of the next section of
 * options, or 0.
 */
static int read_options(struct head_file *h, uint64_t *ret_next, struct pt_error *e)
{
	*ret_next = 0;
	for (int option = 0; option < OPTIONS_MAX; option++) {
		uint16_t id;
		uint32_t size;

		if (!read_bytes(h->f, &id, sizeof id))
			return malformed(h, e);
		/* In version 6 the last one is its id alone. */
		if (id == DONE && h->version == 6)
			return 0;
		if (!read_bytes(h->f, &size, sizeof size))
			return malformed(h, e);
		if (id == DONE)
			return size >= 8 && read_bytes(h->f, ret_next, 8) ? 0 : malformed(h, e);
		if (read_option(h, id, size, e))
			return -1;
	}
	return malformed(h, e);
}

/* ---- Files ---- */

/* After the head: compression's name and version, u64 place of the first section of options. */
static int read_v7(struct head_file *h, struct pt_error *e)
{
	static const char *const names[] = {"none", "zlib", "zstd"};
	char name[16];
	uint64_t at;

	if (!read_string(h->f, name, sizeof name) || !skip_string(h->f) || !read_bytes(h->f, &at, sizeof at))
		return malformed(h, e);
	h->head->compression = TRACE_DAT_UNKNOWN;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			h->head->compression = (enum trace_dat_compression)i;
	for (int section = 0; at && section < SECTIONS_MAX; section++) {
		uint16_t head[2];

		/* (Options are never compressed.) */
		if (!seek(h->f, at) || !read_bytes(h->f, head, sizeof head) || head[1] & 1 || !skip(h->f, 12))
			return malformed(h, e);
		if (read_options(h, &at, e))
			return -1;
	}
	return 0;
}

/* u64 offset and u64 bytes for each CPU of a buffer. */
static int read_table(struct head_file *h, struct pt_error *e)
{
	struct trace_dat_buffer *b;

	if (h->cpu_count > TRACE_DAT_CPUS_MAX)
		return malformed(h, e);
	b = add_buffer(h->head, h->cpu_count, e);
	if (!b)
		return -1;
	b->page_bytes = h->page_bytes;
	for (uint32_t cpu = 0; cpu < b->cpu_count; cpu++) {
		if (!read_bytes(h->f, &b->cpus[cpu], sizeof b->cpus[cpu]))
			return malformed(h, e);
		if (check_cpu(h, cpu, &b->cpus[cpu], e))
			return -1;
	}
	return 0;
}

/*
 * "options  ", and options, if there are any; "flyrecord", and the table of a buffer. ("latency  ": a text.)
 */
static int read_buffer(struct head_file *h, struct pt_error *e)
{
	uint64_t none;
	char tag[10];

	if (!read_bytes(h->f, tag, sizeof tag))
		return malformed(h, e);
	if (memcmp(tag, "options", 7) == 0) {
		if (read_options(h, &none, e))
			return -1;
		if (!read_bytes(h->f, tag, sizeof tag))
			return malformed(h, e);
	}
	if (memcmp(tag, "flyrecord", 9) != 0)
		return malformed(h, e);
	return read_table(h, e);
}

/* u64 size and the content of tracefs's trace_clock; "local" where trace-cmd did not write it. */
static void read_clock(struct head_file *h)
{
	char text[1024];
	uint64_t n;

	if (read_bytes(h->f, &n, sizeof n) && n && n <= sizeof text && read_bytes(h->f, text, n))
		take_clock(h->head, text, n);
	else
		strcpy(h->head->clock, "local");
}

/*
 * "header_page", "header_event", ftrace's formats, all others, kallsyms, printk's strings, command lines, u32
 * CPUs.
 */
static bool skip_formats(struct head_file *h)
{
	uint32_t n, systems, formats;

	for (int i = 0; i < 2; i++)
		if (!skip_string(h->f) || !skip_sized(h->f))
			return false;
	if (!read_bytes(h->f, &formats, sizeof formats))
		return false;
	while (formats--)
		if (!skip_sized(h->f))
			return false;
	if (!read_bytes(h->f, &systems, sizeof systems))
		return false;
	while (systems--) {
		if (!skip_string(h->f) || !read_bytes(h->f, &formats, sizeof formats))
			return false;
		while (formats--)
			if (!skip_sized(h->f))
				return false;
	}
	for (int i = 0; i < 2; i++)
		if (!read_bytes(h->f, &n, sizeof n) || !skip(h->f, n))
			return false;
	return skip_sized(h->f) && read_bytes(h->f, &h->cpu_count, sizeof h->cpu_count);
}

static int read_v6(struct head_file *h, struct pt_error *e)
{
	if (!skip_formats(h))
		return malformed(h, e);
	if (read_buffer(h, e))
		return -1;
	if (h->clock_follows)
		read_clock(h);
	h->in_instance = true;
	for (size_t i = 0; i < h->instance_count; i++) {
		if (!seek(h->f, h->instances[i]))
			return malformed(h, e);
		if (read_buffer(h, e))
			return -1;
	}
	return 0;
}

/* magic 10, version string, u8 endian (0: little), u8 size of long, u32 page size. */
static int read_file(struct head_file *h, struct pt_error *e)
{
	char magic[10], version[8];
	uint8_t machine[2];

	if (!read_bytes(h->f, magic, sizeof magic) || memcmp(magic, TRACE_DAT_MAGIC, sizeof magic) != 0 ||
	    !read_string(h->f, version, sizeof version) || !read_bytes(h->f, machine, sizeof machine) ||
	    !read_bytes(h->f, &h->page_bytes, sizeof h->page_bytes))
		return malformed(h, e);
	if (machine[0])
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "%s is of a big-endian machine, which is no x86", h->path);
	h->head->long_bytes = machine[1];
	h->version = strcmp(version, "7") == 0 ? 7 : strcmp(version, "6") == 0 ? 6 : 0;
	if (h->version == 0)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "%s is a trace.dat of version %s: 6 and 7 are known", h->path, version);
	return h->version == 7 ? read_v7(h, e) : read_v6(h, e);
}

int trace_dat_head_read(struct trace_dat_head *ret, const char *path, struct pt_error *e)
{
	struct head_file h = {.f = fopen(path, "re"), .path = path, .head = ret};
	struct stat st;
	int r;

	memset(ret, 0, sizeof *ret);
	if (!h.f || fstat(fileno(h.f), &st) < 0) {
		r = pt_fail_errno(e, "cannot open %s", path);
	} else {
		h.bytes = (uint64_t)st.st_size;
		r = read_file(&h, e);
	}
	if (h.f)
		fclose(h.f);
	free(h.instances);
	return r;
}

void trace_dat_head_deinit(struct trace_dat_head *h)
{
	for (size_t i = 0; i < h->buffer_count; i++)
		free(h->buffers[i].cpus);
	free(h->buffers);
	h->buffers = NULL;
	h->buffer_count = h->buffer_room = 0;
}
