/* machines.c - see machines.h. */
#include "decode/sideband/machines.h"
#include "schema/array.h"
#include "schema/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pt_page_tables {
	uint64_t cr3;
	struct pt_process *process;	/* NULL: not learnt, only doubted */
	const struct pt_process *doubt; /* another one, which the sideband says it is */
	uint32_t doubts;		/* that many times in a row */
};

struct pt_machines {
	struct img_store *store;
	struct pt_graph *graph;
	const struct ptc_meta *meta;
	struct pt_machine *first, **last; /* last: where the next one goes */
	struct pt_machine **all;
	size_t count, room;
	struct pt_hash by_pid; /* numbers of all, from 1 */
};

struct pt_machines *pt_machines_create(struct img_store *store, struct pt_graph *graph,
				       const struct ptc_meta *meta)
{
	struct pt_machines *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->store = store;
	m->graph = graph;
	m->meta = meta;
	m->last = &m->first;
	if (pt_hash_init(&m->by_pid, 2, NULL) || !pt_machine_get(m, 0)) {
		pt_machines_destroy(m);
		return NULL;
	}
	return m;
}

static void machine_destroy(struct pt_machine *m)
{
	while (m->cpu_contexts) {
		struct pt_cpu_context *cpu_context = m->cpu_contexts;

		m->cpu_contexts = cpu_context->next;
		free(cpu_context->nested_guest);
		free(cpu_context);
	}
	pt_tasks_destroy(m->tasks);
	img_space_deinit(&m->space);
	if (m->nested_code)
		img_space_deinit(&m->nested_space);
	pt_unknown_process_deinit(&m->unknown_process);
	free(m->patched);
	free(m->page_tables);
	free(m);
}

void pt_machines_destroy(struct pt_machines *m)
{
	if (!m)
		return;
	while (m->first) {
		struct pt_machine *one = m->first;

		m->first = one->next;
		machine_destroy(one);
	}
	free(m->all);
	pt_hash_deinit(&m->by_pid);
	free(m);
}

struct pt_machine *pt_machines_first(struct pt_machines *m)
{
	return m->first;
}

/* Its VM's name, and the pid where another machine has that name: a VM can be called "host", and two can be
 * called alike. */
static void name_machine(const struct pt_machines *m, struct pt_machine *one)
{
	const struct pt_machine *other = m->first;
	const char *name;
	char key[48];

	snprintf(key, sizeof key, "machine.%" PRId32 ".name", one->pid);
	name = !one->pid ? "host" : m->meta ? ptc_meta_get(m->meta, key) : NULL;
	if (one->pid < 0) {
		snprintf(one->name, sizeof one->name, "unknown VM");
		return;
	}
	if (!name || !*name) {
		snprintf(one->name, sizeof one->name, "vm %" PRId32, one->pid);
		return;
	}
	snprintf(one->name, sizeof one->name, "%.127s", name);
	while (other && strcmp(other->name, one->name) != 0) /* (META has 16,384 names at most.) */
		other = other->next;
	if (other)
		snprintf(one->name, sizeof one->name, "%.127s (%" PRId32 ")", name, one->pid);
}

static uint64_t key_of(const void *all, uint32_t n)
{
	return pt_hash_mix((uint32_t)((struct pt_machine *const *)all)[n - 1]->pid);
}

static struct pt_machine *machine_create(const struct pt_machines *m, int32_t pid)
{
	struct pt_machine *one = calloc(1, sizeof *one);

	if (!one)
		return NULL;
	one->pid = pid;
	one->graph = m->graph;
	name_machine(m, one);
	img_space_init(&one->space);
	img_space_of(&one->space, m->store, pid, PTC_ANY_PID);
	one->code = pt_graph_code(m->graph, &one->space);
	one->tasks = one->code ? pt_tasks_create(m->graph, one, &one->space) : NULL;
	if (one->tasks)
		return one;
	free(one);
	return NULL;
}

struct pt_machine *pt_machine_get(struct pt_machines *m, int32_t pid)
{
	uint64_t key = pt_hash_mix((uint32_t)pid);
	struct pt_machine *one;
	uint32_t n;

	for (uint32_t i = pt_hash_first(&m->by_pid, key); (n = m->by_pid.slots[i]);
	     i = pt_hash_next(&m->by_pid, i))
		if (m->all[n - 1]->pid == pid)
			return m->all[n - 1];
	if (pt_array_grow(&m->all, m->count, &m->room, NULL))
		return NULL;
	one = machine_create(m, pid);
	if (!one)
		return NULL;
	m->all[m->count] = one;
	*m->last = one;
	m->last = &one->next;
	/* (Without memory it is not found again; the caller ends then.) */
	if (pt_hash_insert(&m->by_pid, key, (uint32_t)m->count + 1, key_of, m->all, NULL))
		return NULL;
	m->count++;
	return one;
}

struct pt_cpu_context *pt_cpu_context_nested(struct pt_cpu_context *vcpu)
{
	struct pt_machine *m = vcpu->machine;

	if (vcpu->nested_guest)
		return vcpu->nested_guest;
	if (!m->nested_code) {
		img_space_init(&m->nested_space);
		img_space_of(&m->nested_space, m->space.store, -1, PTC_ANY_PID);
		m->nested_code = pt_graph_code(m->graph, &m->nested_space);
		if (!m->nested_code)
			return NULL;
		m->nested_code->nested = true;
	}
	vcpu->nested_guest = malloc(sizeof *vcpu->nested_guest);
	if (!vcpu->nested_guest)
		return NULL;
	pt_cpu_context_init(vcpu->nested_guest, m, vcpu->index);
	vcpu->nested_guest->nested = true;
	return vcpu->nested_guest;
}

void pt_cpu_context_init(struct pt_cpu_context *cpu_context, struct pt_machine *m, int32_t index)
{
	memset(cpu_context, 0, sizeof *cpu_context);
	cpu_context->machine = m;
	cpu_context->index = index;
	cpu_context->unknown.pid = cpu_context->unknown.tid = -1;
	cpu_context->unknown.machine = m;
}

struct pt_cpu_context *pt_machine_cpu_context(struct pt_machine *m, int32_t vcpu)
{
	struct pt_cpu_context **at = &m->cpu_contexts;

	for (; *at; at = &(*at)->next)
		if ((*at)->index == vcpu)
			return *at;
	*at = malloc(sizeof **at);
	if (*at)
		pt_cpu_context_init(*at, m, vcpu);
	return *at;
}

/* ---- Page tables ------------------------------------------------------------------------------------ */

static struct pt_page_tables *find(const struct pt_machine *m, uint64_t cr3)
{
	for (size_t i = m->page_table_count; i-- > 0;)
		if (m->page_tables[i].cr3 == cr3)
			return &m->page_tables[i];
	return NULL;
}

struct pt_process *pt_machine_process(const struct pt_machine *m, uint64_t cr3)
{
	const struct pt_page_tables *t = find(m, cr3);

	return t ? t->process : NULL;
}

bool pt_machine_page_tables(const struct pt_machine *m, size_t i, uint64_t *ret_cr3,
			    struct pt_process **ret_process)
{
	if (i >= m->page_table_count)
		return false;
	*ret_cr3 = m->page_tables[i].cr3;
	*ret_process = m->page_tables[i].process;
	return true;
}

/* NULL: no memory. It is asked for again, so no error comes of it. */
static struct pt_page_tables *find_or_add(struct pt_machine *m, uint64_t cr3)
{
	struct pt_page_tables *t = find(m, cr3);

	if (t || pt_array_grow(&m->page_tables, m->page_table_count, &m->page_table_room, NULL) < 0)
		return t;
	t = &m->page_tables[m->page_table_count++];
	*t = (struct pt_page_tables){.cr3 = cr3};
	return t;
}

void pt_machine_learn(struct pt_machine *m, uint64_t cr3, struct pt_process *process)
{
	struct pt_page_tables *t;

	pt_machine_forget(m, process);
	t = find_or_add(m, cr3);
	if (!t)
		return;
	if (t->process)
		t->process->fresh = true;
	*t = (struct pt_page_tables){.cr3 = cr3, .process = process};
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): those without a process are not learnt */
	process->fresh = process->begins = false;
}

uint32_t pt_machine_doubt(struct pt_machine *m, uint64_t cr3, const struct pt_process *process, bool again)
{
	struct pt_page_tables *t = process ? find_or_add(m, cr3) : find(m, cr3);

	if (!t)
		return 0;
	if (t->doubt != process)
		t->doubts = 0;
	if (process && (!again || !t->doubts))
		t->doubts++;
	t->doubt = process;
	return t->doubts;
}

void pt_machine_forget(struct pt_machine *m, const struct pt_process *process)
{
	size_t to = 0;

	m->learnt++;
	for (size_t i = 0; i < m->page_table_count; i++)
		if (m->page_tables[i].process != process &&
		    (m->page_tables[i].process || m->page_tables[i].doubt != process))
			m->page_tables[to++] = m->page_tables[i];
	m->page_table_count = to;
}
