/* tasks.c - see tasks.h. Record layouts: the kernel's include/uapi/linux/perf_event.h. */
#include "decode/sideband/machines.h"
#include "schema/bytes.h"

#include <linux/perf_event.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct shape {
	uint64_t sample_type;
	bool sample_id_all;
};

struct pt_tasks {
	struct img_store *store;
	struct pt_graph *graph;
	struct pt_machine *machine;
	struct pt_process *processes;
	/* tsearch()'s. The last: of those of one tid, the newest. */
	void *process_by_pid, *task_by_tid_pid, *task_by_tid;
	struct shape *shapes;
	uint32_t shape_count;
};

struct pt_tasks *pt_tasks_create(struct img_store *store, struct pt_graph *graph, struct pt_machine *machine)
{
	struct pt_tasks *t = calloc(1, sizeof *t);

	if (t) {
		t->store = store;
		t->graph = graph;
		t->machine = machine;
	}
	return t;
}

static int by_pid(const void *a, const void *b)
{
	const struct pt_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int by_tid(const void *a, const void *b)
{
	const struct pt_task *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int by_tid_pid(const void *a, const void *b)
{
	const struct pt_task *x = a, *y = b;

	return x->tid != y->tid ? by_tid(a, b) : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Of what the processes' list frees. */
static void leave(void *node)
{
	(void)node;
}

void pt_tasks_destroy(struct pt_tasks *t)
{
	if (!t)
		return;
	tdestroy(t->task_by_tid, leave);
	tdestroy(t->task_by_tid_pid, leave);
	tdestroy(t->process_by_pid, leave);
	while (t->processes) {
		struct pt_process *p = t->processes;

		t->processes = p->next;
		while (p->tasks) {
			struct pt_task *task = p->tasks;

			p->tasks = task->next;
			free(task);
		}
		img_space_deinit(&p->space);
		free(p);
	}
	free(t->shapes);
	free(t);
}

int pt_tasks_attr(struct pt_tasks *t, const struct ptc_attr *a, struct pt_error *e)
{
	struct perf_event_attr attr = {0};

	if (a->attr_bytes < PERF_ATTR_SIZE_VER0)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "a perf_event_attr of %u bytes",
			       a->attr_bytes);
	if (a->index >= 65536)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "attr index %u", a->index);
	memcpy(&attr, a->attr, a->attr_bytes < sizeof attr ? a->attr_bytes : sizeof attr);
	if (a->index >= t->shape_count) {
		struct shape *s = realloc(t->shapes, (a->index + 1) * sizeof *s);

		if (!s)
			return pt_fail_no_memory(e, "the sideband");
		memset(s + t->shape_count, 0, (a->index + 1 - t->shape_count) * sizeof *s);
		t->shapes = s;
		t->shape_count = a->index + 1;
	}
	t->shapes[a->index].sample_type = attr.sample_type;
	t->shapes[a->index].sample_id_all = attr.sample_id_all;
	return 0;
}

/* The trailer (struct sample_id), read from the record's end: PERF_SAMPLE_* order TID TIME ID STREAM_ID CPU IDENTIFIER. */
static void trailer(const struct shape *shape, struct pt_sideband_record *s)
{
	uint64_t type = shape->sample_type;
	const uint8_t *p = s->record + s->size;
	const uint8_t *begin = s->record + sizeof(struct perf_event_header);

#define BACK(flag) ((type & (flag)) && (size_t)(p - begin) >= 8 && (p -= 8))
	if (!shape->sample_id_all)
		return;
	(void)BACK(PERF_SAMPLE_IDENTIFIER);
	if (BACK(PERF_SAMPLE_CPU))
		s->cpu = (int32_t)u32(p);
	(void)BACK(PERF_SAMPLE_STREAM_ID);
	(void)BACK(PERF_SAMPLE_ID);
	if (BACK(PERF_SAMPLE_TIME))
		s->time_ns = u64(p);
	if (BACK(PERF_SAMPLE_TID)) {
		s->pid = (int32_t)u32(p);
		s->tid = (int32_t)u32(p + 4);
	}
#undef BACK
}

int pt_tasks_parse(struct pt_tasks *t, uint32_t attr, const uint8_t *p, uint64_t have,
		   struct pt_sideband_record **ret, uint32_t *ret_size, struct pt_error *e)
{
	struct perf_event_header h;
	struct pt_sideband_record *s;

	if (have < sizeof h)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "a sideband record is cut");
	memcpy(&h, p, sizeof h);
	if (h.size < sizeof h || h.size > have)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "a sideband record of type %u has size %u, %llu are there", h.type, h.size,
			       (unsigned long long)have);
	/* Zeros behind it: the parsers of strings and fields below may look further than a short record goes. */
	s = calloc(1, sizeof *s + h.size + 80);
	if (!s)
		return pt_fail_no_memory(e, "the sideband");
	s->pid = s->tid = s->cpu = -1;
	s->machine = t->machine;
	s->size = h.size;
	memcpy(s->record, p, h.size);
	if (attr < t->shape_count)
		trailer(&t->shapes[attr], s);
	*ret = s;
	*ret_size = h.size;
	return 0;
}

static const struct perf_event_header *header(const struct pt_sideband_record *s)
{
	return (const void *)s->record;
}

static bool is_mmap(const struct pt_sideband_record *s)
{
	return !s->memory && (header(s)->type == PERF_RECORD_MMAP || header(s)->type == PERF_RECORD_MMAP2);
}

static bool executable(const struct pt_sideband_record *s)
{
	const uint8_t *p = s->record + 8;

	if (header(s)->type == PERF_RECORD_MMAP2)
		return u32(p + 32 + 24) & PROT_EXEC;
	return !(header(s)->misc & PERF_RECORD_MISC_MMAP_DATA);
}

bool pt_sideband_is_sample(const struct pt_sideband_record *s)
{
	return !s->memory && header(s)->type == PERF_RECORD_SAMPLE;
}

unsigned pt_sideband_effect(const struct pt_sideband_record *s)
{
	if (s->memory)
		return PT_SIDEBAND_CODE;
	if (s->mark)
		return PT_SIDEBAND_MARK;
	if (s->event)
		return PT_SIDEBAND_EVENT;
	switch (header(s)->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2: return executable(s) ? PT_SIDEBAND_CODE : 0;
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_TEXT_POKE: return PT_SIDEBAND_CODE;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
	case PERF_RECORD_ITRACE_START: return PT_SIDEBAND_SWITCH | PT_SIDEBAND_EVENT;
	case PERF_RECORD_LOST: return PT_SIDEBAND_LOST;
	case PERF_RECORD_EXIT: return PT_SIDEBAND_EXIT;
	default: return 0;
	}
}

int32_t pt_sideband_pid(const struct pt_sideband_record *s)
{
	if (s->memory)
		return s->pid;
	switch (header(s)->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT: return (int32_t)u32(s->record + 8);
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_TEXT_POKE: return PTC_ANY_PID;
	default: return s->pid;
	}
}

bool pt_sideband_maps(const struct pt_sideband_record *s, int32_t pid, uint64_t ip)
{
	if (pt_sideband_pid(s) != pid)
		return false;
	if (s->memory)
		return ip >= s->start && ip < s->end;
	return is_mmap(s) && executable(s) && ip - u64(s->record + 16) < u64(s->record + 24);
}

bool pt_sideband_execs(const struct pt_sideband_record *s, int32_t pid)
{
	return !s->memory && header(s)->type == PERF_RECORD_COMM &&
	       header(s)->misc & PERF_RECORD_MISC_COMM_EXEC && pt_sideband_pid(s) == pid;
}

bool pt_sideband_switched(const struct pt_sideband_record *s, int32_t *ret_pid, int32_t *ret_tid)
{
	const struct perf_event_header *h = header(s);
	bool out = h->misc & PERF_RECORD_MISC_SWITCH_OUT;

	if (s->memory)
		return false;
	if (h->type == PERF_RECORD_ITRACE_START) {
		*ret_pid = (int32_t)u32(s->record + 8);
		*ret_tid = (int32_t)u32(s->record + 12);
		return true;
	}
	if (h->type == PERF_RECORD_SWITCH_CPU_WIDE && out) {
		*ret_pid = (int32_t)u32(s->record + 8);
		*ret_tid = (int32_t)u32(s->record + 12);
		return true;
	}
	if ((h->type == PERF_RECORD_SWITCH || h->type == PERF_RECORD_SWITCH_CPU_WIDE) && !out) {
		*ret_pid = s->pid;
		*ret_tid = s->tid;
		return s->tid >= 0;
	}
	return false;
}

bool pt_sideband_moved(const struct pt_sideband_record *s, bool *ret_left)
{
	*ret_left = !s->memory && header(s)->misc & PERF_RECORD_MISC_SWITCH_OUT;
	return !s->memory && header(s)->type == PERF_RECORD_SWITCH && s->tid >= 0;
}

static struct pt_process *find_process(const struct pt_tasks *t, int32_t pid)
{
	const struct pt_process key = {.pid = pid};
	struct pt_process *const *found = tfind(&key, &t->process_by_pid, by_pid);

	return found ? *found : NULL;
}

struct pt_process *pt_tasks_process(struct pt_tasks *t, int32_t pid)
{
	struct pt_process *p = find_process(t, pid);

	if (p)
		return p;
	p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->pid = pid;
	p->fresh = true;
	p->parent = -1;
	img_space_init(&p->space);
	img_space_of(&p->space, t->store, t->machine->pid, pid);
	p->space.upper = &t->machine->space;
	p->code = pt_graph_code(t->graph, &p->space);
	if (!p->code) {
		free(p);
		return NULL;
	}
	p->next = t->processes;
	t->processes = p;
	/* (Without memory it is made anew.) */
	return tsearch(p, &t->process_by_pid, by_pid) ? p : NULL;
}

/* pid -1: the newest of that tid. */
static struct pt_task *find_task(const struct pt_tasks *t, int32_t pid, int32_t tid)
{
	const struct pt_task key = {.pid = pid, .tid = tid};
	struct pt_task *const *found =
	    pid == -1 ? tfind(&key, &t->task_by_tid, by_tid) : tfind(&key, &t->task_by_tid_pid, by_tid_pid);

	return found ? *found : NULL;
}

struct pt_task *pt_tasks_get(struct pt_tasks *t, int32_t pid, int32_t tid)
{
	struct pt_task *task = find_task(t, pid, tid), **node;

	if (task)
		return task;
	task = calloc(1, sizeof *task);
	if (!task)
		return NULL;
	task->pid = pid == -1 ? tid : pid;
	task->tid = tid;
	if (tid == 0) /* the idle task, which no record names */
		memcpy(task->comm, "swapper", sizeof "swapper");
	task->machine = t->machine;
	task->process = pt_tasks_process(t, task->pid);
	if (!task->process) {
		free(task);
		return NULL;
	}
	task->next = task->process->tasks;
	task->process->tasks = task;
	node = tsearch(task, &t->task_by_tid, by_tid);
	if (!node || !tsearch(task, &t->task_by_tid_pid, by_tid_pid))
		return NULL;
	*node = task;
	return task;
}

/* An exec: nothing of the old program is mapped any more. */
static void forget(struct pt_machine *m, struct pt_process *p)
{
	pt_machine_forget(m, p);
	p->fresh = true;
	p->parent = -1;
	p->execs++;
	img_space_clear(&p->space);
}

static int apply_mmap(struct pt_tasks *t, const struct pt_sideband_record *s, struct pt_error *e)
{
	const struct perf_event_header *h = header(s);
	const uint8_t *p = s->record + 8;
	size_t fixed = h->type == PERF_RECORD_MMAP2 ? 8 + 64 : 8 + 32;
	uint64_t start = u64(p + 8), size = u64(p + 16), offset = u64(p + 24);
	struct pt_process *proc;
	struct img_file *file;
	const char *name;

	if (h->size <= fixed || !executable(s) || size > UINT64_MAX - start)
		return 0;
	if ((int32_t)u32(p) == PTC_ANY_PID)
		return 0; /* of the kernel: its code comes as memory images, as it ran */
	name = (const char *)s->record + fixed; /* NUL-terminated: pt_tasks_parse() adds zeros */
	proc = pt_tasks_process(t, (int32_t)u32(p));
	if (!proc)
		return pt_fail_no_memory(e, "the sideband");
	if (h->type == PERF_RECORD_MMAP2 && (h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && p[32] <= 20)
		file = img_store_find(t->store, t->machine->pid, name, p + 36, p[32]);
	else
		file = img_store_find(t->store, t->machine->pid, name, NULL, 0);
	if (t->machine->timeless) {
		struct img_map map = {.start = start, .end = start + size, .offset = offset, .file = file};
		const struct img_map *has = img_space_find(&proc->space, start);
		bool anew = s->time_ns && name[0] != '[' &&
			    !(has && has->file == file && has->offset - has->start == offset - start);

		if (pt_unknown_process_map(&t->machine->unknown_process, t->graph, &t->machine->space, &map,
					   anew, e) < 0)
			return -1;
	}
	return img_space_map(&proc->space, start, start + size, offset, file, e);
}

/* struct ksymbol_event's and struct text_poke_event's fields behind the header. */
struct kernel_range {
	uint64_t start, end;
	const uint8_t *new_bytes; /* TEXT_POKE */
	size_t new_count;
	const char *name; /* KSYMBOL */
	bool gone;
};

static bool kernel_range(const struct pt_sideband_record *s, struct kernel_range *ret)
{
	const uint8_t *p = s->record + 8;
	uint32_t size = header(s)->size;

	memset(ret, 0, sizeof *ret);
	ret->start = u64(p);
	if (header(s)->type == PERF_RECORD_KSYMBOL) {
		if (size <= 24)
			return false;
		ret->end = ret->start + u32(p + 8);
		ret->gone = p[14] & 1; /* PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER */
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

static bool is_kernel_range(const struct pt_sideband_record *s)
{
	return !s->memory &&
	       (header(s)->type == PERF_RECORD_KSYMBOL || header(s)->type == PERF_RECORD_TEXT_POKE);
}

bool pt_tasks_disturbs(struct pt_tasks *t, const struct pt_sideband_record *s)
{
	const struct perf_event_header *h = header(s);
	struct pt_process *p;
	struct img_space *space = &t->machine->space;
	struct pt_code *code = t->machine->code;
	uint64_t start = s->start, end = s->end;

	if (is_kernel_range(s)) {
		struct kernel_range r;

		return kernel_range(s, &r) && img_space_overlaps(space, r.start, r.end);
	}
	if (pt_sideband_pid(s) != PTC_ANY_PID) {
		p = find_process(t, pt_sideband_pid(s));
		if (!p)
			return false;
		space = &p->space;
		code = p->code;
	}
	if (!s->memory && !is_mmap(s))
		return h->type == PERF_RECORD_COMM || h->type == PERF_RECORD_FORK;
	if (!s->memory) {
		start = u64(s->record + 16);
		end = start + u64(s->record + 24);
	}
	return code->holes || img_space_overlaps(space, start, end);
}

static int apply_kernel_range(struct pt_tasks *t, const struct pt_sideband_record *s, struct pt_error *e)
{
	struct img_space *space = &t->machine->space;
	struct kernel_range r;

	if (!kernel_range(s, &r))
		return 0;
	if (r.new_bytes) {
		img_space_write(space, r.start, r.new_bytes, r.new_count);
		return 0;
	}
	/* What is registered has its code from a memory image, or nobody has it. */
	if (r.gone)
		return img_space_overlaps(space, r.start, r.end)
			   ? img_space_map(space, r.start, r.end, r.start, NULL, e)
			   : 0;
	return img_space_name(space, r.start, r.end, r.name, e);
}

int pt_tasks_apply(struct pt_tasks *t, const struct pt_sideband_record *s, struct pt_error *e)
{
	const struct perf_event_header *h = header(s);
	const uint8_t *p = s->record + 8;
	struct pt_task *task;

	if (s->memory) {
		struct pt_process *proc = s->pid == PTC_ANY_PID ? NULL : pt_tasks_process(t, s->pid);

		if (!proc && s->pid != PTC_ANY_PID)
			return pt_fail_no_memory(e, "the sideband");
		return img_space_map(proc ? &proc->space : &t->machine->space, s->start, s->end, s->start,
				     s->memory, e);
	}
	switch (h->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2: return apply_mmap(t, s, e);
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_TEXT_POKE: return apply_kernel_range(t, s, e);
	case PERF_RECORD_COMM:
		task = pt_tasks_get(t, (int32_t)u32(p), (int32_t)u32(p + 4));
		if (!task)
			return pt_fail_no_memory(e, "the sideband");
		memset(task->comm, 0, sizeof task->comm);
		memcpy(task->comm, p + 8, strnlen((const char *)p + 8, sizeof task->comm - 1));
		task->version++;
		if (h->misc & PERF_RECORD_MISC_COMM_EXEC)
			forget(t->machine, task->process);
		return 0;
	case PERF_RECORD_FORK: {
		int32_t pid = (int32_t)u32(p), ppid = (int32_t)u32(p + 4), tid = (int32_t)u32(p + 8),
			ptid = (int32_t)u32(p + 12);
		struct pt_task *parent = pt_tasks_get(t, ppid, ptid);

		task = pt_tasks_get(t, pid, tid);
		if (!task || !parent)
			return pt_fail_no_memory(e, "the sideband");
		memcpy(task->comm, parent->comm, sizeof task->comm);
		task->version++;
		task->exited = task->process->gone = false;
		if (pid == ppid)
			return 0;
		pt_machine_forget(t->machine, task->process);
		task->process->fresh = true;
		task->process->parent = ppid;
		return img_space_copy(&task->process->space, &parent->process->space, e);
	}
	default: return 0;
	}
}

void pt_tasks_exit(struct pt_tasks *t, const struct pt_sideband_record *s)
{
	int32_t pid = (int32_t)u32(s->record + 8), tid = (int32_t)u32(s->record + 16);
	struct pt_process *process = find_process(t, pid);
	bool left = false;

	if (!process)
		return;
	for (struct pt_task *task = process->tasks; task; task = task->next) {
		if (task->tid == tid)
			task->exited = true;
		left |= !task->exited;
	}
	process->gone = !left;
	if (pid == tid) {
		pt_machine_forget(t->machine, process);
		process->fresh = true;
	}
}
