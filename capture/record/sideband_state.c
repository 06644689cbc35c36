/* sideband_state.c - see sideband_state.h. Record layouts: perf_event_open(2). */
#include "capture/record/sideband_state.h"
#include "capture/record/sample_id.h"
#include "schema/array.h"
#include "schema/bytes.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS	  4096 /* a power of two: of processes, and of kernel addresses */
#define CPUS_MAX  65536
#define POKES_MAX 8192

#define NEVER	  UINT64_MAX

struct kept {
	struct kept *next;
	uint64_t time_ns, order;
	uint64_t dead_ns; /* since when it is no longer so; NEVER: it still is */
	uint16_t type, size;
	int32_t pid, tid;
	uint8_t bytes[];
};

/* Records in the order in which they came. */
struct list {
	struct kept *first, **last; /* last: where the next one goes, if there is one */
	size_t count;
	unsigned put; /* of tasks: the number of the container that has what was known when it began */
};

struct hw_state {
	struct list tasks[BUCKETS], symbols[BUCKETS], pokes;
	struct list *cpus;
	size_t cpu_count, cpu_room;
	uint64_t order, pokes_since_ns;
	size_t dead;
	unsigned container;	  /* its number, from 0 */
	uint64_t container_order; /* records before this one came before it began */
};

/* ---- Lists ---- */

static void append(struct list *l, struct kept *k)
{
	/* (An empty list may have moved.) */
	if (!l->count)
		l->last = &l->first;
	k->next = NULL;
	*l->last = k;
	l->last = &k->next;
	l->count++;
}

/* Frees those of which gone(arg) is true. Returns their number. */
static size_t remove_if(struct list *l, bool (*gone)(const struct kept *k, const void *arg), const void *arg)
{
	struct kept **at = &l->first, *k;
	size_t before = l->count;

	while ((k = *at)) {
		if (!gone(k, arg)) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		free(k);
		l->count--;
	}
	l->last = at;
	return before - l->count;
}

static bool always(const struct kept *k, const void *arg)
{
	(void)k, (void)arg;
	return true;
}

static bool died_before(const struct kept *k, const void *ns)
{
	return k->dead_ns < *(const uint64_t *)ns;
}

static bool came_before(const struct kept *k, const void *ns)
{
	return k->time_ns < *(const uint64_t *)ns;
}

/* A copy of a record, at the end of the list. NULL: no memory. */
static struct kept *keep(struct hw_state *s, struct list *l, const uint8_t *record, struct pt_error *e)
{
	struct perf_event_header h;
	struct kept *k;

	memcpy(&h, record, sizeof h);
	k = malloc(sizeof *k + h.size);
	if (!k) {
		pt_fail_no_memory(e, "what the next container begins with");
		return NULL;
	}
	*k = (struct kept){.order = s->order++, .dead_ns = NEVER, .type = (uint16_t)h.type, .size = h.size};
	memcpy(k->bytes, record, h.size);
	k->time_ns =
	    u64(record + h.size - sizeof(struct hw_sample_id) + offsetof(struct hw_sample_id, time_ns));
	k->pid = (int32_t)u32(record + 8);
	k->tid = (int32_t)u32(record + 12);
	append(l, k);
	return k;
}

static void die(struct hw_state *s, struct kept *k, uint64_t time_ns)
{
	k->dead_ns = time_ns;
	s->dead++;
}

static struct list *tasks_of(struct hw_state *s, int32_t pid)
{
	return &s->tasks[(uint32_t)pid % BUCKETS];
}

static bool lives(const struct kept *k, uint32_t type, int32_t pid)
{
	return k->dead_ns == NEVER && k->type == type && k->pid == pid;
}

/* ---- Tasks ---- */

static int on_comm(struct hw_state *s, const uint8_t *record, struct pt_error *e)
{
	struct list *l = tasks_of(s, (int32_t)u32(record + 8));
	struct kept *k = keep(s, l, record, e);
	struct perf_event_header h;
	bool exec;

	if (!k)
		return -1;
	memcpy(&h, record, sizeof h);
	exec = h.misc & PERF_RECORD_MISC_COMM_EXEC;
	/* An exec ends the process's other threads, and all that is mapped. */
	for (struct kept *old = l->first; old; old = old->next)
		if (old != k && ((lives(old, PERF_RECORD_COMM, k->pid) && (exec || old->tid == k->tid)) ||
				 (exec && lives(old, PERF_RECORD_MMAP2, k->pid))))
			die(s, old, k->time_ns);
	return 0;
}

static int on_mmap2(struct hw_state *s, const uint8_t *record, struct pt_error *e)
{
	struct list *l = tasks_of(s, (int32_t)u32(record + 8));
	struct kept *k = keep(s, l, record, e);
	uint64_t start, end;

	if (!k)
		return -1;
	start = u64(record + 16);
	end = start + u64(record + 24);
	for (struct kept *old = l->first; old; old = old->next)
		if (old != k && lives(old, PERF_RECORD_MMAP2, k->pid) && u64(old->bytes + 16) >= start &&
		    u64(old->bytes + 16) + u64(old->bytes + 24) <= end)
			die(s, old, k->time_ns);
	return 0;
}

/* A copy for another thread, which has it since time_ns. */
static int inherit(struct hw_state *s, const struct kept *from, int32_t pid, int32_t tid, uint64_t time_ns,
		   struct pt_error *e)
{
	struct kept *k = keep(s, tasks_of(s, pid), from->bytes, e);
	struct perf_event_header h;
	struct hw_sample_id id;

	if (!k)
		return -1;
	/* It is none that executed something. */
	memcpy(&h, k->bytes, sizeof h);
	if (h.type == PERF_RECORD_COMM)
		h.misc &= (uint16_t)~PERF_RECORD_MISC_COMM_EXEC;
	memcpy(k->bytes, &h, sizeof h);
	memcpy(&id, k->bytes + k->size - sizeof id, sizeof id);
	id.pid = k->pid = pid;
	id.tid = k->tid = tid;
	id.time_ns = k->time_ns = time_ns;
	memcpy(k->bytes + 8, &pid, sizeof pid);
	memcpy(k->bytes + 12, &tid, sizeof tid);
	memcpy(k->bytes + k->size - sizeof id, &id, sizeof id);
	return 0;
}

/* {u32 pid, ppid, tid, ptid; u64 time} */
static int on_fork(struct hw_state *s, const uint8_t *record, struct pt_error *e)
{
	int32_t pid = (int32_t)u32(record + 8), parent = (int32_t)u32(record + 12);
	int32_t tid = (int32_t)u32(record + 16), parent_tid = (int32_t)u32(record + 20);
	struct list *l = tasks_of(s, parent);
	uint64_t time_ns = u64(record + 24), until = s->order;

	/* Not what is added meanwhile: it may be the same list. */
	for (const struct kept *k = l->first; k && k->order < until; k = k->next) {
		bool name = lives(k, PERF_RECORD_COMM, parent) && k->tid == parent_tid;
		bool mapping = pid != parent && lives(k, PERF_RECORD_MMAP2, parent);

		if ((name || mapping) && inherit(s, k, pid, tid, time_ns, e))
			return -1;
	}
	return 0;
}

static int on_task_exit(struct hw_state *s, const uint8_t *record, struct pt_error *e)
{
	int32_t pid = (int32_t)u32(record + 8), tid = (int32_t)u32(record + 16);
	struct list *l = tasks_of(s, pid);
	struct kept *k = keep(s, l, record, e);
	bool others = false;

	if (!k)
		return -1;
	die(s, k, k->time_ns);
	for (struct kept *old = l->first; old; old = old->next) {
		if (!lives(old, PERF_RECORD_COMM, pid))
			continue;
		if (old->tid == tid)
			die(s, old, k->time_ns);
		else
			others = true;
	}
	for (struct kept *old = others ? NULL : l->first; old; old = old->next)
		if (lives(old, PERF_RECORD_MMAP2, pid))
			die(s, old, k->time_ns);
	return 0;
}

/* ---- CPUs, the kernel ---- */

static int on_switch(struct hw_state *s, const uint8_t *record, struct pt_error *e)
{
	struct perf_event_header h;
	uint32_t cpu;

	memcpy(&h, record, sizeof h);
	cpu = u32(record + h.size - sizeof(struct hw_sample_id) + offsetof(struct hw_sample_id, cpu));
	if (cpu >= CPUS_MAX)
		return 0;
	while (s->cpu_count <= cpu) {
		if (pt_array_grow(&s->cpus, s->cpu_count, &s->cpu_room, e))
			return -1;
		s->cpus[s->cpu_count++] = (struct list){0};
	}
	return keep(s, &s->cpus[cpu], record, e) ? 0 : -1;
}

/* {u64 address; u32 bytes; u16 type, flags; name} */
static int on_ksymbol(struct hw_state *s, const uint8_t *record, struct pt_error *e)
{
	uint64_t address = u64(record + 8);
	struct list *l = &s->symbols[(address >> 4) % BUCKETS];
	struct kept *k = keep(s, l, record, e);

	if (!k)
		return -1;
	for (struct kept *old = l->first; old; old = old->next)
		if (old != k && old->dead_ns == NEVER && u64(old->bytes + 8) == address)
			die(s, old, k->time_ns);
	if (record[22] & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		die(s, k, k->time_ns);
	return 0;
}

static int on_poke(struct hw_state *s, const uint8_t *record, struct pt_error *e)
{
	if (!keep(s, &s->pokes, record, e))
		return -1;
	if (s->pokes.count <= POKES_MAX)
		return 0;
	s->pokes_since_ns = s->pokes.first->time_ns + 1;
	hw_state_settle_pokes(s, s->pokes_since_ns);
	return 0;
}

/* ---- What others call ---- */

struct hw_state *hw_state_create(void)
{
	return calloc(1, sizeof(struct hw_state));
}

void hw_state_destroy(struct hw_state *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		remove_if(&s->tasks[i], always, NULL);
		remove_if(&s->symbols[i], always, NULL);
	}
	for (size_t i = 0; i < s->cpu_count; i++)
		remove_if(&s->cpus[i], always, NULL);
	remove_if(&s->pokes, always, NULL);
	free(s->cpus);
	free(s);
}

int hw_state_record(struct hw_state *s, const uint8_t *record, struct pt_error *e)
{
	struct perf_event_header h;
	size_t least = sizeof h + sizeof(struct hw_sample_id);

	memcpy(&h, record, sizeof h);
	switch (h.type) {
	case PERF_RECORD_COMM: return h.size >= least + 8 ? on_comm(s, record, e) : 0;
	case PERF_RECORD_MMAP2: return h.size >= least + 64 ? on_mmap2(s, record, e) : 0;
	case PERF_RECORD_FORK: return h.size >= least + 24 ? on_fork(s, record, e) : 0;
	case PERF_RECORD_EXIT: return h.size >= least + 24 ? on_task_exit(s, record, e) : 0;
	case PERF_RECORD_ITRACE_START: return h.size >= least + 8 ? on_switch(s, record, e) : 0;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE: return h.size >= least ? on_switch(s, record, e) : 0;
	case PERF_RECORD_KSYMBOL: return h.size >= least + 24 ? on_ksymbol(s, record, e) : 0;
	case PERF_RECORD_TEXT_POKE: return h.size >= least + 12 ? on_poke(s, record, e) : 0;
	/* They are few, and never change. */
	case PERF_RECORD_CGROUP: return h.size >= least + 8 ? -!keep(s, &s->symbols[0], record, e) : 0;
	default: return 0;
	}
}

void hw_state_settle(struct hw_state *s, uint64_t settled_ns)
{
	if (!s->dead)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		s->dead -= remove_if(&s->tasks[i], died_before, &settled_ns);
		s->dead -= remove_if(&s->symbols[i], died_before, &settled_ns);
	}
}

void hw_state_settle_cpu(struct hw_state *s, int32_t cpu, uint64_t since_ns)
{
	uint64_t last_ns = 0;

	if (cpu < 0 || (size_t)cpu >= s->cpu_count)
		return;
	for (const struct kept *k = s->cpus[cpu].first; k; k = k->next)
		if (k->time_ns < since_ns && k->time_ns > last_ns)
			last_ns = k->time_ns;
	remove_if(&s->cpus[cpu], came_before, &last_ns);
}

void hw_state_settle_pokes(struct hw_state *s, uint64_t since_ns)
{
	remove_if(&s->pokes, came_before, &since_ns);
}

uint64_t hw_state_pokes_since_ns(const struct hw_state *s)
{
	return s->pokes_since_ns;
}

bool hw_state_poked(const struct hw_state *s, uint64_t address)
{
	for (const struct kept *k = s->pokes.first; k; k = k->next)
		if (u64(k->bytes + 8) == address)
			return true;
	return false;
}

/* ---- Into a container ---- */

/* Records that are to be put. */
struct chosen {
	const struct kept **at;
	size_t count, room;
};

static int choose(const struct hw_state *s, const struct list *l, struct chosen *to, struct pt_error *e)
{
	for (const struct kept *k = l->first; k && k->order < s->container_order; k = k->next) {
		if (pt_array_grow(&to->at, to->count, &to->room, e))
			return -1;
		to->at[to->count++] = k;
	}
	return 0;
}

static int choose_tasks(struct hw_state *s, struct list *l, struct chosen *to, struct pt_error *e)
{
	if (l->put == s->container)
		return 0;
	l->put = s->container;
	return choose(s, l, to, e);
}

/* The processes that a CPU's switches name. */
static int choose_running(struct hw_state *s, const struct list *cpu, struct chosen *to, struct pt_error *e)
{
	for (const struct kept *k = cpu->first; k; k = k->next) {
		int32_t own = (int32_t)u32(k->bytes + k->size - sizeof(struct hw_sample_id));

		if (choose_tasks(s, tasks_of(s, own), to, e) ||
		    (k->type != PERF_RECORD_SWITCH && choose_tasks(s, tasks_of(s, k->pid), to, e)))
			return -1;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct kept *x = *(struct kept *const *)a, *y = *(struct kept *const *)b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int put_chosen(const struct chosen *c, uint64_t not_before_ns, struct hw_bytes *to, struct pt_error *e)
{
	size_t at = offsetof(struct hw_sample_id, time_ns);

	if (c->count)
		qsort(c->at, c->count, sizeof(struct kept *), by_time);
	for (size_t i = 0; i < c->count; i++) {
		if (hw_bytes_add(to, c->at[i]->bytes, c->at[i]->size, e))
			return -1;
		if (c->at[i]->time_ns < not_before_ns)
			memcpy(to->bytes + to->count - sizeof(struct hw_sample_id) + at, &not_before_ns,
			       sizeof not_before_ns);
	}
	return 0;
}

int hw_state_begin(struct hw_state *s, bool all_tasks, struct hw_bytes *to, struct pt_error *e)
{
	struct chosen c = {0};
	int r;

	s->container++;
	s->container_order = s->order;
	r = choose(s, &s->pokes, &c, e);
	for (size_t i = 0; r == 0 && i < s->cpu_count; i++)
		r = choose(s, &s->cpus[i], &c, e) ? -1 : choose_running(s, &s->cpus[i], &c, e);
	for (size_t i = 0; r == 0 && i < BUCKETS; i++)
		r = choose(s, &s->symbols[i], &c, e) || (all_tasks && choose_tasks(s, &s->tasks[i], &c, e))
			? -1
			: 0;
	if (r == 0)
		r = put_chosen(&c, 0, to, e);
	free(c.at);
	return r;
}

int hw_state_put_process(struct hw_state *s, int32_t pid, uint64_t not_before_ns, struct hw_bytes *to,
			 struct pt_error *e)
{
	struct chosen c = {0};
	int r = choose_tasks(s, tasks_of(s, pid), &c, e);

	if (r == 0)
		r = put_chosen(&c, not_before_ns, to, e);
	free(c.at);
	return r;
}
