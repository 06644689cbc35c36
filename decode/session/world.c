/* world.c - what is known of whose code runs where, for threads that decode ahead. See internal.h. */
#include <stdlib.h>

#include "decode/session/internal.h"
#include "decode/vm/span.h"

uint64_t pt_session_world_changes(const struct session *s)
{
	uint64_t changes = s->vmcs_owner_changes + pt_vm_clocks_known(pt_vm_clocks_of(s->vm));

	for (const struct pt_machine *m = s->host; m; m = m->next)
		changes += 1 + m->learnt + m->space.changes + m->unknown_process.mappings;
	return changes;
}

static size_t count_machines(const struct session *s)
{
	size_t n = 1; /* the host */

	for (const struct pt_machine *m = s->host->next; m; m = m->next)
		n++;
	return n;
}

static size_t number_of(const struct session *s, const struct pt_machine *machine)
{
	size_t n = 0;

	for (const struct pt_machine *m = s->host; m && m != machine; m = m->next)
		n++;
	return n;
}

size_t pt_session_world_guest(const struct stream *st)
{
	const struct pt_machine *m = st->session->host->next;
	size_t n = 1;

	for (; m && st->cpu.task; m = m->next, n++)
		if (m->pid == st->cpu.task->pid)
			return n;
	return 0;
}

/* Without memory none is known. */
static void add_processes(struct pt_segment_machine *to, const struct pt_machine *m)
{
	struct pt_process *process;
	uint64_t page_tables;
	size_t n = 0;

	while (pt_machine_page_tables(m, n, &page_tables, &process))
		n++;
	to->processes = n ? malloc(n * sizeof *to->processes) : NULL;
	if (!to->processes)
		return;
	for (size_t i = 0; pt_machine_page_tables(m, i, &page_tables, &process); i++)
		if (process && !process->gone)
			to->processes[to->process_count++] =
			    (struct pt_segment_process){.page_tables = page_tables, .space = &process->space};
	pt_segment_sort_processes(to);
}

/* As context.c sets the code. */
static void add_machine(struct pt_segment_machine *to, struct pt_machine *m)
{
	to->kernel = &m->space;
	to->switch_ip = m->code->switch_ip;
	if (m->pid)
		to->other = m->unknown_process.code ? &m->unknown_process.space : &m->space;
	add_processes(to, m);
}

static uint64_t host_tsc(const struct pt_segment_vmcs *v, uint64_t guest_tsc, uint64_t about_tsc)
{
	const struct pt_vm_span s = {.ratio = v->tsc_ratio, .offset = v->tsc_offset};

	return pt_vm_span_to_host_near(&s, guest_tsc, about_tsc);
}

/* The VMCS's clock, once it is certain. */
static void add_clock(struct pt_segment_vmcs *to, const struct pt_vm_clock *clock)
{
	size_t n;
	const struct pt_vm_span *spans = clock ? pt_vm_clock_spans(clock, &n) : NULL;

	if (!spans || !pt_vm_clock_settled(clock))
		return;
	to->tsc_ratio = spans[n - 1].ratio;
	to->tsc_offset = spans[n - 1].offset;
}

/* The number of the machine whose code runs there: of nested guests one that has none. */
static size_t machine_of(struct pt_segment_world *w, const struct session *s, const struct vmcs_owner *owner)
{
	struct pt_machine *m = owner->vcpu->machine;

	if (!owner->nested || !owner->vcpu->nested_guest ||
	    !pt_session_is_unknown_nested(owner->vcpu->nested_guest))
		return number_of(s, m);
	w->machines[w->machine_count] =
	    (struct pt_segment_machine){.kernel = &m->nested_space, .other = &m->nested_space};
	return w->machine_count++;
}

struct pt_segment_world *pt_session_world(const struct session *s)
{
	struct pt_segment_world *w = calloc(1, sizeof *w);
	size_t n = count_machines(s);

	if (!w)
		return NULL;
	w->host_tsc = host_tsc;
	/* Each VMCS may be nested guests'. */
	w->machines = calloc(n + s->vmcs_owner_count, sizeof *w->machines);
	w->vmcses = s->vmcs_owner_count ? malloc(s->vmcs_owner_count * sizeof *w->vmcses) : NULL;
	if (!w->machines || (s->vmcs_owner_count && !w->vmcses)) {
		pt_session_world_destroy(w);
		return NULL;
	}
	for (struct pt_machine *m = s->host; m; m = m->next)
		add_machine(&w->machines[w->machine_count++], m);
	for (size_t i = 0; i < s->vmcs_owner_count; i++) {
		const struct vmcs_owner *owner = &s->vmcs_owners[i];
		struct pt_segment_vmcs *to = &w->vmcses[w->vmcs_count++];

		*to = (struct pt_segment_vmcs){.vmcs = owner->vmcs, .machine = machine_of(w, s, owner)};
		add_clock(to, pt_vm_clocks_find(pt_vm_clocks_of(s->vm), owner->vmcs));
	}
	return w;
}

void pt_session_world_destroy(struct pt_segment_world *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->machine_count; i++)
		free(w->machines[i].processes);
	free(w->machines);
	free(w->vmcses);
	free(w);
}
