/* maps.c - what is mapped, its sideband records, and its images. See internal.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capture/step/internal.h"

#define SIDEBAND_ID 2 /* of the dummy event, which has these records */

void step_fail(struct step *s)
{
	s->failed = true;
}

static void no_memory(struct step *s)
{
	if (!s->failed)
		pt_fail_no_memory(s->e, NULL);
	s->failed = true;
}

uint64_t step_now_ns(const struct step *s)
{
	return pt_model_tsc(&s->model) * (1000000000 / (PT_MODEL_TSC_HZ / 2)) / 2;
}

static int put_attr(struct step *s, const char *name, const struct perf_event_attr *attr, uint64_t id)
{
	struct ptc_attr put = ptc_host_attr(name, attr, sizeof *attr, &id, 1);

	return ptc_put_attr(s->w, &put, s->e);
}

int step_attrs(struct step *s, const char *command)
{
	struct perf_event_attr a = {
	    .size = sizeof a, .type = 8, .config = s->options->config, .sample_period = 1};

	(void)command;
	a.sample_type =
	    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	a.read_format = PERF_FORMAT_ID;
	a.disabled = a.inherit = a.exclude_kernel = a.exclude_hv = a.enable_on_exec = a.sample_id_all = 1;
	if (put_attr(s, "intel_pt//u", &a, 1) < 0)
		return -1;
	a.type = PERF_TYPE_SOFTWARE;
	a.config = PERF_COUNT_SW_DUMMY;
	a.mmap = a.mmap2 = a.comm = a.comm_exec = a.task = a.context_switch = 1;
	return put_attr(s, "dummy:u", &a, SIDEBAND_ID);
}

/* ---- Records ---------------------------------------------------------------------------------------- */

static void record(struct step *s, struct step_thread *t, uint32_t type, uint16_t misc, const void *body,
		   size_t bytes)
{
	struct {
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, zero;
		uint64_t id;
	} trailer = {(uint32_t)t->process->pid, (uint32_t)t->tid, step_now_ns(s), 0, 0, SIDEBAND_ID};
	struct perf_event_header h = {type, misc, (uint16_t)(sizeof h + bytes + sizeof trailer)};

	if (s->sideband_bytes + h.size > s->sideband_room) {
		size_t room = s->sideband_room ? s->sideband_room * 2 : 65536;
		uint8_t *sideband = realloc(s->sideband, room);

		if (!sideband) {
			no_memory(s);
			return;
		}
		s->sideband = sideband;
		s->sideband_room = room;
	}
	memcpy(s->sideband + s->sideband_bytes, &h, sizeof h);
	memcpy(s->sideband + s->sideband_bytes + sizeof h, body, bytes);
	memcpy(s->sideband + s->sideband_bytes + sizeof h + bytes, &trailer, sizeof trailer);
	s->sideband_bytes += h.size;
}

void step_comm(struct step *s, struct step_thread *t, bool exec)
{
	struct {
		uint32_t pid, tid;
		char comm[16];
	} r = {(uint32_t)t->process->pid, (uint32_t)t->tid, ""};
	char path[64], name[sizeof r.comm + 1] = "";
	int fd;

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", t->process->pid, t->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* It may have ended. */
	if ((fd < 0 && errno != ENOENT) || (fd >= 0 && read(fd, name, sizeof name - 1) < 0 && errno != ESRCH))
		step_error(s, "cannot read a thread's name");
	if (fd >= 0)
		close(fd);
	name[strcspn(name, "\n")] = 0;
	memcpy(r.comm, name, sizeof r.comm - 1);
	record(s, t, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC | 2 : 2, &r, sizeof r);
}

static void task(struct step *s, struct step_thread *t, uint32_t type, pid_t ppid, pid_t ptid)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} r = {(uint32_t)t->process->pid, (uint32_t)ppid, (uint32_t)t->tid, (uint32_t)ptid, step_now_ns(s)};

	record(s, t, type, 2, &r, sizeof r);
}

void step_fork(struct step *s, struct step_thread *t, pid_t ppid, pid_t ptid)
{
	task(s, t, PERF_RECORD_FORK, ppid, ptid);
}

void step_exit(struct step *s, struct step_thread *t)
{
	task(s, t, PERF_RECORD_EXIT, t->process->pid, t->process->pid);
}

void step_itrace_start(struct step *s, struct step_thread *t)
{
	uint32_t r[2] = {(uint32_t)t->process->pid, (uint32_t)t->tid};

	record(s, t, PERF_RECORD_ITRACE_START, 0, r, sizeof r);
}

void step_switch(struct step *s, struct step_thread *t, bool out)
{
	record(s, t, PERF_RECORD_SWITCH, out ? PERF_RECORD_MISC_SWITCH_OUT | 2 : 2, "", 0);
}

static void mmap2(struct step *s, struct step_thread *t, const struct step_map *m)
{
	struct {
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		uint32_t maj, min;
		uint64_t ino, generation;
		uint32_t prot, flags;
		char name[4096];
	} r = {.pid = (uint32_t)t->process->pid,
	       .tid = (uint32_t)t->tid,
	       .addr = m->start,
	       .len = m->end - m->start,
	       .pgoff = m->offset,
	       .prot = m->writable ? 7 : 5,
	       .flags = 2};
	size_t n = strnlen(m->name, sizeof r.name - 8);

	memcpy(r.name, m->name, n);
	record(s, t, PERF_RECORD_MMAP2, 2, &r, offsetof(__typeof__(r), name) + ((n + 8) & ~(size_t)7));
}

/* ---- Mappings --------------------------------------------------------------------------------------- */

const struct step_map *step_map_at(const struct step_process *p, uint64_t ip)
{
	for (size_t i = 0; i < p->map_count; i++)
		if (ip - p->maps[i].start < p->maps[i].end - p->maps[i].start)
			return &p->maps[i];
	return NULL;
}

static void maps_free(struct step_map *maps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(maps[i].name);
	free(maps);
}

void step_maps_forget(struct step_process *p)
{
	maps_free(p->maps, p->map_count);
	free(p->pages);
	p->maps = NULL;
	p->pages = NULL;
	p->map_count = p->page_count = 0;
	memset(p->cache, 0, STEP_CACHE * sizeof *p->cache);
	if (p->memory >= 0) /* exec has made another one */
		close(p->memory);
	p->memory = -1;
}

void step_maps_copy(struct step *s, struct step_process *to, const struct step_process *from)
{
	to->maps = calloc(from->map_count + 1, sizeof *to->maps);
	to->pages = malloc((from->page_count + 1) * sizeof *to->pages);
	if (!to->maps || !to->pages) {
		no_memory(s);
		return;
	}
	for (size_t i = 0; i < from->map_count; i++) {
		to->maps[i] = from->maps[i];
		to->maps[i].name = strdup(from->maps[i].name);
		if (!to->maps[i].name) {
			no_memory(s);
			return;
		}
		to->map_count++;
	}
	/* Its pages are its parent's: the container's reader copies them with the FORK. */
	if (from->page_count)
		memcpy(to->pages, from->pages, from->page_count * sizeof *to->pages);
	to->page_count = from->page_count;
}

static bool same(const struct step_map *a, const struct step_map *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       !strcmp(a->name, b->name);
}

/* Writes the mapping's image. False when there is none: its pages are written as they run, like code
 * that no file holds. */
static bool image(struct step *s, struct step_thread *t, const struct step_map *m)
{
	char path[128];
	int r;

	if (!strcmp(m->name, "[vdso]")) {
		size_t n = m->end - m->start;
		uint8_t *bytes = malloc(n);
		struct iovec local = {bytes, n}, remote = {(void *)(uintptr_t)m->start, n};

		if (!bytes) {
			no_memory(s);
			return false;
		}
		r = process_vm_readv(t->tid, &local, 1, &remote, 1, 0) == (ssize_t)n
			? image_set_add_bytes(s->images, s->w, m->name, bytes, n, s->e)
			: IMAGE_SET_SKIPPED;
		free(bytes);
	} else {
		/* map_files opens what was mapped, even when it was deleted or replaced since. */
		snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, t->process->pid,
			 m->start, m->end);
		r = image_set_add_file(s->images, s->w, &(struct image_file){.name = m->name, .path = path},
				       s->e);
		if (r == IMAGE_SET_SKIPPED)
			r = image_set_add_file(s->images, s->w,
					       &(struct image_file){.name = m->name, .path = m->name}, s->e);
	}
	if (r < 0)
		step_fail(s);
	return r == IMAGE_SET_DONE;
}

/* What was known of the pages there is no longer so: the mapping's record covers it. */
static void pages_forget(struct step_process *p, uint64_t start, uint64_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < p->page_count; i++)
		if (p->pages[i].address < start || p->pages[i].address >= end)
			p->pages[n++] = p->pages[i];
	p->page_count = n;
}

void step_maps_update(struct step *s, struct step_thread *t, bool written)
{
	struct step_process *p = t->process;
	struct step_map *maps = NULL;
	size_t count = 0, room = 0, n = 0;
	char path[64], *line = NULL;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/maps", p->pid);
	f = fopen(path, "re");
	if (!f)
		return;
	while (getline(&line, &n, f) > 0) {
		char perms[8], *name;
		unsigned long start, end, offset, inode;
		int at = 0;

		if (sscanf(line, "%lx-%lx %7s %lx %*s %lu %n", &start, &end, perms, &offset, &inode, &at) <
			5 ||
		    perms[2] != 'x')
			continue;
		name = line + at;
		name[strcspn(name, "\n")] = 0;
		if (count == room) {
			struct step_map *grown = realloc(maps, (room = room ? room * 2 : 16) * sizeof *maps);

			if (!grown) {
				no_memory(s);
				break;
			}
			maps = grown;
		}
		maps[count] = (struct step_map){.start = start,
						.end = end,
						.offset = offset,
						/* by this mapping, or another one of the same memory */
						.writable = perms[1] == 'w' || perms[3] == 's',
						.file = (inode && name[0] == '/') || !strcmp(name, "[vdso]"),
						.name = strdup(name[0] ? name : "//anon")};
		if (!maps[count].name) {
			no_memory(s);
			break;
		}
		count++;
	}
	free(line);
	fclose(f);
	for (size_t i = 0; i < count && !s->failed; i++) {
		size_t k;

		for (k = 0; k < p->map_count && !same(&maps[i], &p->maps[k]); k++)
			;
		if (k < p->map_count) {
			maps[i].file = p->maps[k].file;
			continue;
		}
		if (maps[i].file)
			maps[i].file = image(s, t, &maps[i]);
		/* A file's code that is, or was, writable may not be the file's any more. */
		if (maps[i].writable || (written && maps[i].name[0] == '/'))
			maps[i].file = false;
		pages_forget(p, maps[i].start, maps[i].end);
		mmap2(s, t, &maps[i]);
		t->want_psb = true;
	}
	maps_free(p->maps, p->map_count);
	p->maps = maps;
	p->map_count = count;
	memset(p->cache, 0, STEP_CACHE * sizeof *p->cache);
}

void step_maps_written(struct step *s)
{
	for (struct step_process *p = s->processes; p; p = p->next) {
		for (size_t i = 0; i < p->map_count; i++)
			p->maps[i].file = false;
		memset(p->cache, 0, STEP_CACHE * sizeof *p->cache);
	}
}

bool step_code_page(struct step *s, struct step_thread *t, uint64_t ip)
{
	struct step_process *p = t->process;
	uint64_t address = ip & ~(uint64_t)4095;
	uint8_t bytes[4096];
	struct iovec local = {bytes, sizeof bytes}, remote = {(void *)(uintptr_t)address, sizeof bytes};
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .pid = p->pid,
				  .vaddr = address,
				  .time_ns = step_now_ns(s),
				  .name = "//anon",
				  .name_bytes = 6,
				  .bytes = bytes,
				  .size = sizeof bytes};
	struct step_page *page = NULL, *pages;

	if (process_vm_readv(t->tid, &local, 1, &remote, 1, 0) != sizeof bytes)
		return false;
	for (size_t i = 0; i < p->page_count && !page; i++)
		if (p->pages[i].address == address)
			page = &p->pages[i];
	if (page && !memcmp(page->bytes, bytes, sizeof bytes))
		return false;
	if (!page) {
		pages = realloc(p->pages, (p->page_count + 1) * sizeof *pages);
		if (!pages) {
			no_memory(s);
			return false;
		}
		p->pages = pages;
		page = &pages[p->page_count++];
		page->address = address;
	}
	memcpy(page->bytes, bytes, sizeof bytes);
	/* What ran before ran the old bytes. Without time the container's order is the only sign of it. */
	pt_encode_flush(&t->encoder);
	step_put_aux(s, t);
	if (ptc_put_image(s->w, &image, s->e) < 0)
		step_fail(s);
	return true;
}

/* ---- Writing ---------------------------------------------------------------------------------------- */

void step_put_sideband(struct step *s)
{
	if (s->sideband_bytes && !s->failed &&
	    ptc_put_sideband(s->w, 1, s->sideband, s->sideband_bytes, s->e) < 0)
		step_fail(s);
	s->sideband_bytes = 0;
}

void step_put_aux(struct step *s, struct step_thread *t)
{
	struct pt_encoder *e = &t->encoder;

	if (e->no_memory)
		no_memory(s);
	step_put_sideband(s);
	if (!e->size || s->failed)
		return;
	if (!t->stream) {
		struct ptc_stream info = {.cpu = -1, .pid = t->process->pid, .tid = t->tid, .attr = 0};
		int64_t number = ptc_put_stream(s->w, &info, s->e);

		if (number < 0) {
			step_fail(s);
			return;
		}
		t->stream = (uint32_t)number;
	}
	if (ptc_put_aux(s->w, t->stream,
			&(struct ptc_aux){.aux_offset = t->aux_offset,
					  .time_ns = step_now_ns(s),
					  .bytes = e->bytes,
					  .size = e->size},
			s->e) < 0)
		step_fail(s);
	t->aux_offset += e->size;
	e->size = 0;
}

void step_put_all(struct step *s)
{
	for (struct step_thread *t = s->threads; t; t = t->next) {
		pt_encode_flush(&t->encoder);
		step_put_aux(s, t);
	}
}
