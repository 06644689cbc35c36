/* apply.c - see apply.h. Record layouts: the kernel's include/uapi/linux/perf_event.h. */
#include "decode/sideband/apply.h"
#include "schema/array.h"
#include "schema/bytes.h"

#include <linux/perf_event.h>
#include <string.h>

/* MMAP and MMAP2: pid, tid, addr, len, pgoff; of MMAP2 then build id or inode, prot and flags; then the
 * file's name. */
enum { MMAP_NAME = 8 + 32, MMAP2_NAME = 8 + 64, MMAP2_BUILD_ID = 8 + 36, BUILD_ID_MAX = 20 };

static const struct perf_event_header *header(const struct pt_sideband_record *s)
{
	return (const void *)s->record;
}

/* The n-th 32-bit number after the header. */
static int32_t number(const struct pt_sideband_record *s, unsigned n)
{
	return (int32_t)u32(s->record + sizeof(struct perf_event_header) + 4 * (size_t)n);
}

/* ---- The kernel's code ------------------------------------------------------------------------------ */

/* struct ksymbol_event's and struct text_poke_event's fields after the header. */
struct kernel_range {
	uint64_t start, end;
	const uint8_t *new_bytes; /* TEXT_POKE */
	size_t new_count;
	const char *name; /* KSYMBOL */
	bool gone;
};

static bool is_kernel_range(const struct pt_sideband_record *s)
{
	return !s->memory &&
	       (header(s)->type == PERF_RECORD_KSYMBOL || header(s)->type == PERF_RECORD_TEXT_POKE);
}

static bool parse_kernel_range(const struct pt_sideband_record *s, struct kernel_range *ret)
{
	const uint8_t *p = s->record + 8;
	uint32_t size = header(s)->size;

	memset(ret, 0, sizeof *ret);
	ret->start = u64(p);
	if (header(s)->type == PERF_RECORD_KSYMBOL) {
		if (size <= 24)
			return false;
		ret->end = ret->start + u32(p + 8);
		ret->gone = p[14] & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
		ret->name = (const char *)p + 16;
	} else {
		uint32_t old_len = p[8] | (uint32_t)p[9] << 8, new_len = p[10] | (uint32_t)p[11] << 8;

		if (size < 20 || old_len + new_len > size - 20)
			return false;
		ret->new_bytes = p + 12 + old_len;
		ret->new_count = new_len;
		ret->end = ret->start + new_len;
	}
	return ret->end >= ret->start;
}

/* The place is mapped, and has no code. */
static int hide(struct img_space *space, const struct pt_patched *p, struct pt_error *e)
{
	return img_space_overlaps(space, p->start, p->end)
		   ? img_space_map(space, p->start, p->end, p->start, NULL, e)
		   : 0;
}

/* Without time, what is patched has sometimes one code and sometimes the other. The kernel's image may come
 * before or after it. */
static int hide_patched(struct pt_machine *m, const struct kernel_range *r, struct pt_error *e)
{
	const struct pt_patched p = {r->start, r->end};

	if (pt_array_grow(&m->patched, m->patched_count, &m->patched_room, e))
		return -1;
	m->patched[m->patched_count++] = p;
	return hide(&m->space, &p, e);
}

static int apply_kernel_range(const struct pt_sideband_record *s, struct pt_error *e)
{
	struct img_space *space = &s->machine->space;
	struct kernel_range r;

	if (!parse_kernel_range(s, &r))
		return 0;
	if (r.new_bytes && s->machine->timeless)
		return hide_patched(s->machine, &r, e);
	if (r.new_bytes) {
		img_space_write(space, r.start, r.new_bytes, r.new_count);
		return 0;
	}
	/* What is registered has its code from a memory image, or from nowhere. */
	if (r.gone)
		return img_space_overlaps(space, r.start, r.end)
			   ? img_space_map(space, r.start, r.end, r.start, NULL, e)
			   : 0;
	return img_space_name(space, r.start, r.end, r.name, e);
}

/* ---- Mappings --------------------------------------------------------------------------------------- */

static const char *mapped_name(const struct pt_sideband_record *s)
{
	return (const char *)s->record + (header(s)->type == PERF_RECORD_MMAP2 ? MMAP2_NAME : MMAP_NAME);
}

struct img_file *pt_sideband_find_file(const struct pt_sideband_record *s)
{
	const struct pt_machine *m = s->machine;
	const uint8_t *id = s->record + MMAP2_BUILD_ID;
	const char *name = mapped_name(s);
	uint8_t id_bytes = id[-4];

	if (header(s)->type == PERF_RECORD_MMAP2 && (header(s)->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) &&
	    id_bytes <= BUILD_ID_MAX)
		return img_store_find(m->space.store, m->pid, name, id, id_bytes);
	return img_store_find(m->space.store, m->pid, name, NULL, 0);
}

/* NULL: the container has no bytes of what is mapped. Recordings of others may have its image after the
 * record. */
static struct img_file *mapped_file(const struct pt_sideband_record *s)
{
	struct img_file *f = s->file ? s->file : pt_sideband_find_file(s);

	return f && img_file_has_code(f) ? f : NULL;
}

/* When it is not known which process runs. */
static int map_for_unknown(const struct pt_sideband_record *s, struct pt_process *process,
			   const struct img_map *map, bool from_file, struct pt_error *e)
{
	struct pt_machine *m = s->machine;
	const struct img_map *has = img_space_find(&process->space, map->start);
	bool had = has && has->file == map->file && has->offset - has->start == map->offset - map->start;

	return pt_unknown_process_map(&m->unknown_process, m->graph, &m->space, map,
				      s->time_ns && from_file && !had, e);
}

static bool is_jitdump(const struct img_map *map)
{
	return map->file && strcmp(img_file_name(map->file), PTC_IMAGE_JITDUMP_NAME) == 0;
}

/* Memory that no file has the code of: what a runtime has written down of it remains. */
static int map_anonymous(struct img_space *space, uint64_t start, uint64_t end, struct img_file *unread,
			 struct pt_error *e)
{
	while (start < end) {
		const struct img_map *map = img_space_after(space, start);
		uint64_t until = end, next = end;

		while (map && map->start < end && !is_jitdump(map))
			map = img_space_after(space, map->end);
		if (map && map->start < end) {
			until = map->start > start ? map->start : start;
			next = map->end < end ? map->end : end;
		}
		if (until > start && img_space_map_unread(space, start, until, start, unread, e))
			return -1;
		start = next;
	}
	return 0;
}

static int apply_mmap(const struct pt_sideband_record *s, struct pt_error *e)
{
	const uint8_t *p = s->record + 8;
	uint64_t start = u64(p + 8), size = u64(p + 16), offset = u64(p + 24);
	const char *name = mapped_name(s);
	struct pt_process *process;
	struct img_map map;

	if (header(s)->size <= name - (const char *)s->record || !pt_sideband_executable(s) ||
	    size > UINT64_MAX - start)
		return 0;
	if (pt_sideband_pid(s) == PTC_ANY_PID)
		return 0; /* of the kernel: its code comes as memory images, as it ran */
	process = pt_tasks_process(s->machine->tasks, pt_sideband_pid(s));
	if (!process)
		return pt_fail_no_memory(e, "the sideband");
	map = (struct img_map){.start = start, .end = start + size, .offset = offset, .file = mapped_file(s)};
	if (s->machine->timeless && map_for_unknown(s, process, &map, name[0] != '[', e) < 0)
		return -1;
	if (!map.file && !(map.unread = img_store_unread(s->machine->space.store, s->machine->pid, name, e)))
		return -1;
	if (strcmp(name, "//anon") == 0)
		return map_anonymous(&process->space, map.start, map.end, map.unread, e);
	if (map.unread)
		return img_space_map_unread(&process->space, map.start, map.end, map.offset, map.unread, e);
	return img_space_map(&process->space, map.start, map.end, map.offset, map.file, e);
}

static int apply_memory(const struct pt_sideband_record *s, struct pt_error *e)
{
	struct img_space *space = &s->machine->space;

	if (s->pid != PTC_ANY_PID) {
		struct pt_process *process = pt_tasks_process(s->machine->tasks, s->pid);

		if (!process)
			return pt_fail_no_memory(e, "the sideband");
		space = &process->space;
	}
	if (img_space_map(space, s->start, s->end, s->start, s->memory, e))
		return -1;
	for (size_t i = 0; i < s->machine->patched_count && space == &s->machine->space; i++) {
		const struct pt_patched *p = &s->machine->patched[i];

		if (p->start < s->end && s->start < p->end && hide(space, p, e))
			return -1;
	}
	return 0;
}

bool pt_sideband_disturbs(const struct pt_sideband_record *s)
{
	struct img_space *space = &s->machine->space;
	struct pt_code *code = s->machine->code;
	uint64_t start = s->start, end = s->end;

	if (is_kernel_range(s)) {
		struct kernel_range r;

		return parse_kernel_range(s, &r) && img_space_overlaps(space, r.start, r.end);
	}
	if (pt_sideband_pid(s) != PTC_ANY_PID) {
		struct pt_process *p = pt_tasks_find_process(s->machine->tasks, pt_sideband_pid(s));

		if (!p)
			return false;
		space = &p->space;
		code = p->code;
	}
	if (!s->memory && !pt_sideband_is_mmap(s))
		return header(s)->type == PERF_RECORD_COMM || header(s)->type == PERF_RECORD_FORK;
	if (!s->memory) {
		start = u64(s->record + 16);
		end = start + u64(s->record + 24);
	}
	return code->holes || img_space_overlaps(space, start, end);
}

/* ---- Threads and processes -------------------------------------------------------------------------- */

/* An exec: nothing of the old program is mapped any more. */
static void leave_program(struct pt_machine *m, struct pt_process *p)
{
	pt_machine_forget(m, p);
	p->fresh = true;
	p->parent = -1;
	p->begins = false;
	p->execs++;
	img_space_clear(&p->space);
}

/* COMM: pid, tid, name. */
static int apply_comm(const struct pt_sideband_record *s, struct pt_error *e)
{
	struct pt_task *task = pt_tasks_get(s->machine->tasks, number(s, 0), number(s, 1));
	const char *name = (const char *)s->record + 16;

	if (!task)
		return pt_fail_no_memory(e, "the sideband");
	memset(task->comm, 0, sizeof task->comm);
	memcpy(task->comm, name, strnlen(name, sizeof task->comm - 1));
	task->version++;
	if (header(s)->misc & PERF_RECORD_MISC_COMM_EXEC)
		leave_program(s->machine, task->process);
	return 0;
}

/* FORK: pid, parent's pid, tid, parent's tid. */
static int apply_fork(const struct pt_sideband_record *s, struct pt_error *e)
{
	int32_t pid = number(s, 0), parent_pid = number(s, 1);
	struct pt_task *parent = pt_tasks_get(s->machine->tasks, parent_pid, number(s, 3));
	struct pt_task *task = pt_tasks_get(s->machine->tasks, pid, number(s, 2));

	if (!task || !parent)
		return pt_fail_no_memory(e, "the sideband");
	memcpy(task->comm, parent->comm, sizeof task->comm);
	task->version++;
	task->exited = task->process->gone = false;
	if (pid == parent_pid)
		return 0;
	pt_machine_forget(s->machine, task->process);
	task->process->fresh = true;
	task->process->begins = s->time_ns;
	task->process->parent = parent_pid;
	return img_space_copy(&task->process->space, &parent->process->space, e);
}

int pt_sideband_apply(const struct pt_sideband_record *s, struct pt_error *e)
{
	if (s->memory)
		return apply_memory(s, e);
	switch (header(s)->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2: return apply_mmap(s, e);
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_TEXT_POKE: return apply_kernel_range(s, e);
	case PERF_RECORD_COMM: return apply_comm(s, e);
	case PERF_RECORD_FORK: return apply_fork(s, e);
	default: return 0;
	}
}

/* EXIT: as FORK. The page tables are the process's until its last thread ends; but not all of its threads may
 * be known, so the main one must have ended, too. */
void pt_sideband_exit(const struct pt_sideband_record *s)
{
	int32_t pid = number(s, 0), tid = number(s, 2);
	struct pt_process *process = pt_tasks_find_process(s->machine->tasks, pid);
	bool alive = false, main_ended = pid == tid;

	if (!process)
		return;
	for (struct pt_task *task = process->tasks; task; task = task->next) {
		if (task->tid == tid)
			task->exited = true;
		alive |= !task->exited;
		main_ended |= task->tid == pid && task->exited;
	}
	process->gone = !alive;
	if (main_ended && !alive) {
		pt_machine_forget(s->machine, process);
		process->fresh = true;
	}
}
