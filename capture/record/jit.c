/* jit.c - see jit.h. */
#include "capture/record/jit.h"
#include "capture/record/byte_buffer.h"
#include "capture/record/jit_names.h"
#include "capture/record/jit_process.h"
#include "capture/record/sample_id.h"
#include "schema/array.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NAME	  "[jit]"
#define IMAGE_MAX ((size_t)1 << 20)
#define SAME_MIN  64 /* bytes that are equal between two that differ: fewer count as different */
#define REST	  9  /* times as long as a reading took it is not read again */

/* What is known to be true of a page at the last settled reading. */
struct page {
	uint64_t address;
	bool fixed;
	uint8_t bytes[JIT_PAGE];
};

struct event {
	uint64_t start, end, time_ns;
};

struct process {
	int32_t pid;
	struct event *events; /* of mappings, not settled */
	size_t event_count, event_room;
	struct page *pages; /* of the last settled reading, by address */
	size_t page_count;
	uint64_t settled_start_ns;   /* that reading's beginning; 0: there was none */
	struct jit_reading *reading; /* not settled; NULL: none */
	bool ended;
	struct jit_names *names;
};

struct hw_jit {
	struct ptc_writer *w;
	uint64_t (*now_ns)(const void *arg);
	const void *arg;
	uint32_t attr;
	uint64_t id;
	struct process *processes;
	size_t count, room;
	uint64_t next_ns;    /* not read again before */
	uint64_t settled_ns; /* the beginning of the last reading that is settled */
	uint64_t bytes;
	/* The image that grows. */
	int32_t pid;
	uint64_t at, time_ns;
	struct hw_bytes image;
	struct hw_bytes record;
};

struct hw_jit *hw_jit_create(struct ptc_writer *w, uint64_t (*now_ns)(const void *arg), const void *arg)
{
	struct hw_jit *j = calloc(1, sizeof *j);

	if (j)
		*j = (struct hw_jit){.w = w, .now_ns = now_ns, .arg = arg};
	return j;
}

void hw_jit_destroy(struct hw_jit *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->count; i++) {
		free(j->processes[i].events);
		free(j->processes[i].pages);
		jit_reading_destroy(j->processes[i].reading);
		jit_names_destroy(j->processes[i].names);
	}
	free(j->processes);
	hw_bytes_deinit(&j->image);
	hw_bytes_deinit(&j->record);
	free(j);
}

void hw_jit_origin(struct hw_jit *j, uint32_t attr, uint64_t id)
{
	j->attr = attr;
	j->id = id;
}

bool hw_jit_name(const char *name)
{
	return jit_is_anonymous(name) || jit_is_memory_file(name);
}

static struct process *process_of(struct hw_jit *j, int32_t pid, struct pt_error *e)
{
	for (size_t i = 0; i < j->count; i++)
		if (j->processes[i].pid == pid)
			return &j->processes[i];
	if (pt_array_grow(&j->processes, j->count, &j->room, e))
		return NULL;
	j->processes[j->count] = (struct process){.pid = pid, .names = jit_names_create(pid)};
	if (!j->processes[j->count].names) {
		pt_fail_no_memory(e, "code that is made at run time");
		return NULL;
	}
	return &j->processes[j->count++];
}

int hw_jit_mapped(struct hw_jit *j, int32_t pid, uint64_t start, uint64_t bytes, uint64_t time_ns,
		  struct pt_error *e)
{
	struct process *p = process_of(j, pid, e);

	if (!p || pt_array_grow(&p->events, p->event_count, &p->event_room, e))
		return -1;
	p->events[p->event_count++] = (struct event){start, start + bytes, time_ns};
	return 0;
}

int hw_jit_forked(struct hw_jit *j, int32_t child, int32_t parent, uint64_t time_ns, struct pt_error *e)
{
	const struct process *from = NULL;
	struct page *pages;
	struct process *to;

	for (size_t i = 0; i < j->count && !from; i++)
		if (j->processes[i].pid == parent && j->processes[i].page_count)
			from = &j->processes[i];
	if (!from || child == parent)
		return 0;
	pages = malloc(from->page_count * sizeof *pages);
	if (!pages)
		return pt_fail_no_memory(e, "code that is made at run time");
	memcpy(pages, from->pages, from->page_count * sizeof *pages);
	size_t count = from->page_count;

	to = process_of(j, child, e); /* from is not valid any more */
	if (!to) {
		free(pages);
		return -1;
	}
	free(to->pages);
	to->pages = pages;
	to->page_count = count;
	to->event_count = 0;
	to->ended = false;
	/* The child's memory is the parent's at that time, of which the last reading may be older. */
	to->settled_start_ns = time_ns + 1;
	return 0;
}

int hw_jit_read(struct hw_jit *j, bool always, struct pt_error *e)
{
	uint64_t start = j->now_ns(j->arg), end;

	if (!j->count || (!always && start < j->next_ns))
		return 0;
	for (size_t i = 0; i < j->count; i++) {
		struct process *p = &j->processes[i];

		jit_reading_destroy(p->reading);
		if (jit_reading_create(&p->reading, p->pid, j->now_ns, j->arg, e))
			return -1;
		p->ended = !p->reading;
	}
	end = j->now_ns(j->arg);
	j->next_ns = end + REST * (end - start);
	return 0;
}

/* ---- Images ---- */

static int flush_image(struct hw_jit *j, struct pt_error *e)
{
	const struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
					.pid = j->pid,
					.vaddr = j->at,
					.time_ns = j->time_ns,
					.name = NAME,
					.name_bytes = sizeof NAME - 1,
					.bytes = j->image.bytes,
					.size = j->image.count};

	if (j->image.count && ptc_put_image(j->w, &image, e))
		return -1;
	j->bytes += j->image.count;
	hw_bytes_clear(&j->image);
	return 0;
}

/* Bytes of code that are valid from time_ns on. */
static int put_code(struct hw_jit *j, int32_t pid, uint64_t address, const uint8_t *bytes, size_t n,
		    uint64_t time_ns, struct pt_error *e)
{
	bool more = j->image.count && j->pid == pid && j->time_ns == time_ns &&
		    j->at + j->image.count == address && j->image.count + n <= IMAGE_MAX;

	if (!more && flush_image(j, e))
		return -1;
	if (!more) {
		j->pid = pid;
		j->at = address;
		j->time_ns = time_ns;
	}
	return hw_bytes_add(&j->image, bytes, n, e);
}

/* From time_ns on nobody knows what is there: a mapping that no file has the code of. */
static int put_unknown(struct hw_jit *j, int32_t pid, uint64_t address, size_t n, uint64_t time_ns,
		       struct pt_error *e)
{
	const struct {
		struct perf_event_header header;
		int32_t pid, tid;
		uint64_t address, bytes, offset;
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t protection, flags;
		char name[8];
		struct hw_sample_id sample_id;
	} r = {.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, sizeof r},
	       .pid = pid,
	       .tid = pid,
	       .address = address,
	       .bytes = n,
	       .protection = PROT_READ | PROT_EXEC,
	       .flags = MAP_PRIVATE,
	       .name = "//anon",
	       .sample_id = {.pid = pid, .tid = pid, .time_ns = time_ns, .id = j->id}};

	return hw_bytes_add(&j->record, &r, sizeof r, e);
}

/* ---- What a reading means ---- */

static const struct page *page_at(const struct process *p, uint64_t address)
{
	size_t low = 0, high = p->page_count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (p->pages[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->page_count && p->pages[low].address == address ? &p->pages[low] : NULL;
}

/* The last record of a mapping that covers the page, no later than the time; 0: none. */
static uint64_t last_event(const struct process *p, uint64_t address, uint64_t until_ns)
{
	uint64_t last = 0;

	for (size_t i = 0; i < p->event_count; i++) {
		const struct event *v = &p->events[i];

		if (v->time_ns <= until_ns && v->time_ns > last && v->start < address + JIT_PAGE &&
		    v->end > address)
			last = v->time_ns;
	}
	return last;
}

/* The next n bytes from `from` on that are all equal or all different; *ret_same says which. */
static size_t stretch(const uint8_t *a, const uint8_t *b, size_t from, bool *ret_same)
{
	size_t same = 0, at = from;

	while (at < JIT_PAGE && a[at] == b[at])
		at++;
	*ret_same = at - from >= SAME_MIN || at == JIT_PAGE;
	if (*ret_same && at > from)
		return at - from;
	*ret_same = false;
	for (; at < JIT_PAGE && same < SAME_MIN; at++)
		same = a[at] == b[at] ? same + 1 : 0;
	return at - from - same;
}

/*
 * A page that can be written to, and was read before. mapped_ns: a record has unmapped it meanwhile; 0: none.
 */
static int put_changes(struct hw_jit *j, struct process *p, const struct page *old, const uint8_t *bytes,
		       uint64_t mapped_ns, struct pt_error *e)
{
	bool same;

	for (size_t at = 0, n; at < JIT_PAGE; at += n) {
		uint64_t address = old->address + at;

		n = stretch(old->bytes, bytes, at, &same);
		if (same && mapped_ns && put_code(j, p->pid, address, bytes + at, n, mapped_ns, e))
			return -1;
		if (same)
			continue;
		if (put_unknown(j, p->pid, address, n, p->settled_start_ns, e) ||
		    put_code(j, p->pid, address, bytes + at, n, p->reading->end_ns, e))
			return -1;
	}
	return 0;
}

static bool is_empty(const uint8_t *bytes)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, JIT_PAGE - 1) == 0;
}

static int settle_page(struct hw_jit *j, struct process *p, const struct jit_page *page, struct pt_error *e)
{
	const struct page *old = page_at(p, page->address);
	uint64_t mapped_ns = last_event(p, page->address, p->reading->start_ns);

	if (page->fixed && mapped_ns)
		return put_code(j, p->pid, page->address, page->bytes, JIT_PAGE, mapped_ns, e);
	if (old && (mapped_ns || memcmp(old->bytes, page->bytes, JIT_PAGE) != 0))
		return put_changes(j, p, old, page->bytes, mapped_ns, e);
	if (old || is_empty(page->bytes))
		return 0;
	return put_code(j, p->pid, page->address, page->bytes, JIT_PAGE, p->reading->end_ns, e);
}

/* The reading becomes what is known, and what it explains is settled. */
static int keep(struct process *p, struct pt_error *e)
{
	const struct jit_reading *r = p->reading;
	struct page *pages = r->count ? malloc(r->count * sizeof *pages) : NULL;
	size_t kept = 0;

	if (r->count && !pages)
		return pt_fail_no_memory(e, "code that is made at run time");
	for (size_t i = 0; i < r->count; i++) {
		pages[i].address = r->pages[i].address;
		pages[i].fixed = r->pages[i].fixed;
		memcpy(pages[i].bytes, r->pages[i].bytes, JIT_PAGE);
	}
	free(p->pages);
	p->pages = pages;
	p->page_count = r->count;
	p->settled_start_ns = r->start_ns;
	for (size_t i = 0; i < p->event_count; i++)
		if (p->events[i].time_ns > r->start_ns)
			p->events[kept++] = p->events[i];
	p->event_count = kept;
	return 0;
}

/* Whether a mapping changed while it was read. */
static bool disturbed(const struct process *p)
{
	for (size_t i = 0; i < p->event_count; i++)
		if (p->events[i].time_ns > p->reading->start_ns && p->events[i].time_ns <= p->reading->end_ns)
			return true;
	return !p->reading->steady;
}

/*
 * Pages that were writable, and are not there any more: what was written and run after the last
 * reading is not known.
 */
static int settle_gone(struct hw_jit *j, struct process *p, struct pt_error *e)
{
	const struct jit_reading *r = p->reading;
	size_t next = 0;

	for (size_t i = 0; i < p->page_count; i++) {
		const struct page *old = &p->pages[i];

		while (r && next < r->count && r->pages[next].address < old->address)
			next++;
		if (old->fixed || (r && next < r->count && r->pages[next].address == old->address))
			continue;
		if (put_unknown(j, p->pid, old->address, JIT_PAGE, p->settled_start_ns, e))
			return -1;
	}
	return 0;
}

static int settle_reading(struct hw_jit *j, struct process *p, struct pt_error *e)
{
	for (size_t i = 0; i < p->reading->count; i++)
		if (settle_page(j, p, &p->reading->pages[i], e))
			return -1;
	return settle_gone(j, p, e) || flush_image(j, e) || keep(p, e) ? -1 : 0;
}

static int settle_process(struct hw_jit *j, struct process *p, struct pt_error *e)
{
	if (p->reading && !disturbed(p) && settle_reading(j, p, e))
		return -1;
	if (!p->reading && p->ended) {
		if (settle_gone(j, p, e))
			return -1;
		p->page_count = p->event_count = 0;
	}
	jit_reading_destroy(p->reading);
	p->reading = NULL;
	return jit_names_put(p->names, j->w, e);
}

int hw_jit_settle(struct hw_jit *j, struct pt_error *e)
{
	hw_bytes_clear(&j->record);
	for (size_t i = 0; i < j->count; i++)
		if (settle_process(j, &j->processes[i], e))
			return -1;
	return j->record.count ? ptc_put_sideband(j->w, j->attr, j->record.bytes, j->record.count, e) : 0;
}

uint64_t hw_jit_bound(const struct hw_jit *j)
{
	uint64_t bound = UINT64_MAX;

	for (size_t i = 0; i < j->count; i++) {
		const struct process *p = &j->processes[i];

		/* What changed since the last reading is unknown from that reading on. */
		if (p->page_count && p->settled_start_ns < bound)
			bound = p->settled_start_ns;
		for (size_t k = 0; k < p->event_count; k++)
			if (p->events[k].time_ns < bound)
				bound = p->events[k].time_ns;
	}
	return bound;
}

uint64_t hw_jit_bytes(const struct hw_jit *j, unsigned *ret_processes)
{
	*ret_processes = (unsigned)j->count;
	return j->bytes;
}
