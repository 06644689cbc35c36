/* machines.c - see machines.h. */
#include "decode/sideband/machines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pt_machines {
	struct img_store *store;
	struct pt_graph *graph;
	const struct ptc_meta *meta;
	struct pt_machine *first;
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
	if (!pt_machine_get(m, 0)) {
		free(m);
		return NULL;
	}
	return m;
}

void pt_machines_destroy(struct pt_machines *m)
{
	if (!m)
		return;
	while (m->first) {
		struct pt_machine *one = m->first;

		m->first = one->next;
		while (one->cpu_contexts) {
			struct pt_cpu_context *cpu_context = one->cpu_contexts;

			one->cpu_contexts = cpu_context->next;
			free(cpu_context);
		}
		pt_tasks_destroy(one->tasks);
		img_space_deinit(&one->space);
		pt_unknown_process_deinit(&one->unknown_process);
		free(one->spaces);
		free(one);
	}
	free(m);
}

struct pt_machine *pt_machines_first(struct pt_machines *m)
{
	return m->first;
}

/* Its VM's name, with the pid where another machine has that: a VM can be called "host", and two can be called alike. */
static void name_machine(const struct pt_machines *m, struct pt_machine *one)
{
	const struct pt_machine *other = m->first;
	const char *name;
	char key[48];

	snprintf(key, sizeof key, "machine.%" PRId32 ".name", one->pid);
	name = !one->pid ? "host" : m->meta ? ptc_meta_get(m->meta, key) : NULL;
	if (!name || !*name) {
		snprintf(one->name, sizeof one->name, "vm %" PRId32, one->pid);
		return;
	}
	snprintf(one->name, sizeof one->name, "%.127s", name);
	while (other && strcmp(other->name, one->name) != 0)
		other = other->next;
	if (other)
		snprintf(one->name, sizeof one->name, "%.127s (%" PRId32 ")", name, one->pid);
}

struct pt_machine *pt_machine_get(struct pt_machines *m, int32_t pid)
{
	struct pt_machine **at = &m->first, *one;

	for (; *at; at = &(*at)->next)
		if ((*at)->pid == pid)
			return *at;
	one = calloc(1, sizeof *one);
	if (!one)
		return NULL;
	one->pid = pid;
	name_machine(m, one);
	img_space_init(&one->space);
	img_space_of(&one->space, m->store, pid, PTC_ANY_PID);
	one->code = pt_graph_code(m->graph, &one->space);
	one->tasks = one->code ? pt_tasks_create(m->store, m->graph, one) : NULL;
	if (!one->tasks) {
		free(one);
		return NULL;
	}
	*at = one;
	return one;
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

static struct pt_address_space *find(const struct pt_machine *m, uint64_t cr3)
{
	for (uint32_t i = m->space_count; i-- > 0;)
		if (m->spaces[i].cr3 == cr3)
			return &m->spaces[i];
	return NULL;
}

struct pt_process *pt_machine_process(const struct pt_machine *m, uint64_t cr3)
{
	const struct pt_address_space *a = find(m, cr3);

	return a ? a->process : NULL;
}

static struct pt_address_space *find_or_add(struct pt_machine *m, uint64_t cr3)
{
	struct pt_address_space *a = find(m, cr3);

	if (!a && m->space_count == m->space_room) {
		uint32_t room = m->space_room ? m->space_room * 2 : 32;
		struct pt_address_space *spaces = realloc(m->spaces, room * sizeof *spaces);

		if (!spaces)
			return NULL; /* it is asked for again */
		m->spaces = spaces;
		m->space_room = room;
	}
	if (!a) {
		a = &m->spaces[m->space_count++];
		*a = (struct pt_address_space){.cr3 = cr3};
	}
	return a;
}

void pt_machine_learn(struct pt_machine *m, uint64_t cr3, struct pt_process *process)
{
	struct pt_address_space *a;

	pt_machine_forget(m, process);
	a = find_or_add(m, cr3);
	if (!a)
		return;
	if (a->process)
		a->process->fresh = true;
	*a = (struct pt_address_space){.cr3 = cr3, .process = process};
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): nobody has a space, but somebody learns of it */
	process->fresh = false;
}

uint32_t pt_machine_doubt(struct pt_machine *m, uint64_t cr3, const struct pt_process *process, bool again)
{
	struct pt_address_space *a = process ? find_or_add(m, cr3) : find(m, cr3);

	if (!a)
		return 0;
	if (a->doubt != process)
		a->doubts = 0;
	if (process && (!again || !a->doubts))
		a->doubts++;
	a->doubt = process;
	return a->doubts;
}

void pt_machine_forget(struct pt_machine *m, const struct pt_process *process)
{
	uint32_t to = 0;

	for (uint32_t i = 0; i < m->space_count; i++)
		if (m->spaces[i].process != process &&
		    (m->spaces[i].process || m->spaces[i].doubt != process))
			m->spaces[to++] = m->spaces[i];
	m->space_count = to;
}
