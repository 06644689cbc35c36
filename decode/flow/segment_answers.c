/* segment_answers.c - what a flow asks, and what it reports, in a thread that decodes ahead; see segment.h. */
#include <stdlib.h>

#include "decode/flow/segment_decoder.h"
#include "decode/flow/vm_transition.h"
#include "schema/array.h"

static void end(struct pt_segment_decoder *d, struct pt_flow *f)
{
	d->ended = true;
	f->stop_tsc = 0;
}

/* The flow is to stop at the next packet: the segment ends before this one. */
static void ask(struct pt_segment_decoder *d, struct pt_flow *f)
{
	if (d->asked)
		return;
	d->asked = true;
	d->asked_offset = f->packet.aux_offset;
	f->stop_tsc = 0;
}

/* The same, and what comes depends on code that is not known here. In a guest it may well not be known at all,
 * and the flow goes on without. */
static void lose(struct pt_segment_decoder *d, struct pt_flow *f)
{
	ask(d, f);
	d->lost |= !f->side.nr;
}

static struct segment_entry *add_entry(struct pt_segment_decoder *d, struct pt_flow *f, int type)
{
	struct pt_segment *s = d->segment;
	struct segment_entry *entry;

	if (d->asked || d->ended)
		return NULL;
	if (pt_array_grow(&s->entries, s->entry_count, &s->entry_room, NULL) < 0) {
		end(d, f);
		return NULL;
	}
	entry = &s->entries[s->entry_count++];
	*entry = (struct segment_entry){.runs = s->run_count, .clock_tsc = f->clock.tsc};
	entry->type = type;
	return entry;
}

/* ---- What is expected ------------------------------------------------------------------------------- */

/* The page tables that user space runs with beside the kernel's (arch/x86: PTI_USER_PGTABLE_BIT): either may
 * be the process's that is known. */
#define KPTI_USER_PGTABLE_BIT 0x1000

static int by_page_tables(const void *a, const void *b)
{
	const struct pt_segment_process *x = a, *y = b;

	return x->page_tables < y->page_tables ? -1 : x->page_tables > y->page_tables;
}

void pt_segment_sort_processes(struct pt_segment_machine *m)
{
	if (m->process_count)
		qsort(m->processes, m->process_count, sizeof *m->processes, by_page_tables);
}

static struct img_space *find_process(const struct pt_segment_machine *m, uint64_t page_tables)
{
	const struct pt_segment_process key = {.page_tables = page_tables},
					*found = m->process_count
						     ? bsearch(&key, m->processes, m->process_count,
							       sizeof key, by_page_tables)
						     : NULL;

	return found ? found->space : NULL;
}

struct img_space *pt_segment_process_space(const struct pt_segment_machine *m, uint64_t cr3)
{
	uint64_t page_tables = cr3 & ~(uint64_t)0xfff;
	struct img_space *space = find_process(m, page_tables);

	if (!space)
		space = find_process(m, page_tables ^ KPTI_USER_PGTABLE_BIT);
	return space ? space : m->other;
}

/* NULL: nothing is known of it. */
static const struct pt_segment_vmcs *find_vmcs(const struct pt_segment_world *world, uint64_t vmcs)
{
	for (size_t i = 0; world && i < world->vmcs_count; i++)
		if (world->vmcses[i].vmcs == vmcs)
			return &world->vmcses[i];
	return NULL;
}

/* The machine in which the flow is; NULL: it is not known. */
static const struct pt_segment_machine *machine_of(const struct pt_segment_task *task,
						   const struct pt_flow *f)
{
	const struct pt_segment_world *world = task->world;
	const struct pt_segment_vmcs *vmcs = find_vmcs(world, f->side.vmcs);

	if (!world)
		return NULL;
	if (!f->side.nr)
		return &world->machines[0];
	if (vmcs)
		return &world->machines[vmcs->machine];
	return task->guest ? &world->machines[task->guest] : NULL;
}

/* Whose user space comes will be asked before the flow is there. */
static void set_kernel(struct pt_segment_decoder *d, struct pt_flow *f, struct img_space *space,
		       uint64_t switch_ip)
{
	struct pt_code *kernel = pt_segment_code_of(d, space);

	if (kernel)
		kernel->switch_ip = switch_ip;
	pt_flow_set_code(f, NULL, kernel);
}

/* ---- What the flow asks ----------------------------------------------------------------------------- */

static bool on_missing(void *arg, struct pt_flow *f, uint64_t ip)
{
	(void)ip;
	lose(arg, f);
	return false;
}

/*
 * Where the code that is expected is there already, or none is, the environment will be asked whether it
 * changes anything when the segment is taken over.
 */
static void on_user(void *arg, struct pt_flow *f)
{
	struct pt_segment_decoder *d = arg;
	uint64_t cr3 = f->side.cr3;
	const struct pt_segment_machine *m = machine_of(d->task, f);
	struct img_space *space = m && cr3 ? pt_segment_process_space(m, cr3) : NULL;
	struct segment_entry *entry;

	if (!f->user || (space && f->user->space != space) || pt_segment_user_unasked(d)) {
		ask(d, f);
		if (space)
			pt_flow_set_user_code(f, pt_segment_code_of(d, space));
		return;
	}
	entry = add_entry(d, f, SEGMENT_USER);
	if (!entry)
		return;
	entry->cr3 = cr3;
	d->user_entered = true;
}

static void on_switching(void *arg, struct pt_flow *f)
{
	struct pt_segment_decoder *d = arg;

	ask(d, f);
	pt_flow_pause(f, true);
	pt_flow_set_user_code(f, NULL);
	pt_flow_resume(f);
}

static void on_side(void *arg, struct pt_flow *f, const struct pt_vm_transition *transition)
{
	struct pt_segment_decoder *d = arg;
	const struct pt_segment_machine *m = machine_of(d->task, f);

	ask(d, f);
	if (transition && transition->concealed)
		return;
	if (f->side.nr)
		set_kernel(d, f, m ? m->kernel : NULL, m ? m->switch_ip : 0);
	else if (d->task->kernel)
		set_kernel(d, f, d->task->kernel, d->task->switch_ip);
	else
		pt_flow_set_code(f, pt_segment_code_of(d, d->task->user), NULL);
}

/* By the TMA after it; of a packet without one nothing is expected. The CTC repeats every few milliseconds:
 * when it was is known by the guest's clock. */
static uint64_t on_guest_tsc(void *arg, struct pt_flow *f, const struct pt_tsc_packet *packet)
{
	const struct pt_segment_decoder *d = arg;
	const struct pt_segment_vmcs *v = find_vmcs(d->task->world, f->side.vmcs);
	uint64_t host_tsc;
	bool known;

	ask(arg, f);
	if (!packet->has_tma)
		return PT_CLOCK_UNKNOWN;
	known = v && v->tsc_ratio && f->clock.tsc != PT_CLOCK_UNKNOWN
		    ? pt_clock_near(&f->clock, packet->ctc, packet->fast,
				    d->task->world->host_tsc(v, packet->tsc, f->clock.tsc), &host_tsc)
		    : pt_clock_at(&f->clock, packet->ctc, packet->fast, &host_tsc);
	return known ? host_tsc : PT_CLOCK_UNKNOWN;
}

static void on_host_tsc(void *arg, struct pt_flow *f, uint64_t tsc)
{
	struct segment_entry *entry = add_entry(arg, f, SEGMENT_HOST_TSC);

	if (entry)
		entry->tsc = tsc;
}

const struct pt_flow_env pt_segment_env = {.missing = on_missing,
					   .user = on_user,
					   .switching = on_switching,
					   .side = on_side,
					   .guest_tsc = on_guest_tsc,
					   .host_tsc = on_host_tsc};

/* ---- What it reports -------------------------------------------------------------------------------- */

/* The output gets the flow to read; it is the decoder's own. */
static void on_begin(void *arg, const struct pt_flow *f, uint64_t tsc, struct pt_code *code, uint64_t ip)
{
	struct pt_segment_decoder *d = arg;
	struct segment_entry *entry = add_entry(d, d->flow, SEGMENT_BEGIN);

	if (!entry)
		return;
	d->begun = true;
	entry->tsc = tsc;
	entry->ip = ip;
	entry->kernel = code == f->kernel;
}

static void on_runs(void *arg, const struct pt_flow *f, const struct pt_flow_run *runs, uint32_t n)
{
	struct pt_segment_decoder *d = arg;
	struct pt_segment *s = d->segment;

	(void)f;
	if (d->asked || d->ended)
		return;
	if (s->run_count + n > s->run_room) {
		size_t room = s->run_room ? 2 * s->run_room : d->most_runs + 64;
		struct pt_flow_run *grown = realloc(s->runs, room * sizeof *grown);

		if (!grown) {
			end(d, d->flow);
			return;
		}
		s->runs = grown;
		s->run_room = room;
	}
	memcpy(s->runs + s->run_count, runs, n * sizeof *runs);
	s->run_count += n;
	for (uint32_t i = 0; i < n && !d->cyc_run && !d->begun; i++)
		d->cyc_run = runs[i].cyc_count != PTR_UNKNOWN;
}

static void on_end(void *arg, const struct pt_flow *f, uint64_t tsc, uint64_t insn_count, uint64_t cyc_count)
{
	struct pt_segment_decoder *d = arg;
	struct segment_entry *entry = add_entry(d, d->flow, SEGMENT_END);

	(void)f;
	if (!entry)
		return;
	entry->tsc = tsc;
	entry->insns = insn_count;
	entry->cyc = cyc_count;
}

static void on_error(void *arg, const struct pt_flow *f, const struct pt_flow_error *error)
{
	struct pt_segment_decoder *d = arg;

	(void)f, (void)error;
	lose(d, d->flow);
}

static void on_event(void *arg, const struct pt_flow *f, const char *name, uint64_t ip, const char *fields)
{
	struct pt_segment_decoder *d = arg;
	struct segment_entry *entry = add_entry(d, d->flow, SEGMENT_EVENT);
	size_t n = strlen(fields);

	(void)f;
	if (!entry)
		return;
	entry->ip = ip;
	entry->name = name;
	if (n < sizeof entry->fields)
		memcpy(entry->fields, fields, n + 1);
	else
		ask(d, d->flow);
}

static void on_event_trace(void *arg, const struct pt_flow *f, bool is_cfe, uint32_t type, uint64_t value)
{
	struct pt_segment_decoder *d = arg;
	struct segment_entry *entry = add_entry(d, d->flow, is_cfe ? SEGMENT_CFE : SEGMENT_EVD);

	(void)f;
	if (!entry)
		return;
	entry->event = type;
	entry->value = value;
}

static void on_transition(void *arg, const struct pt_flow *f, const struct pt_vm_transition *transition)
{
	struct pt_segment_decoder *d = arg;

	(void)f, (void)transition;
	ask(d, d->flow);
}

const struct pt_flow_output pt_segment_output = {.begin = on_begin,
						 .runs = on_runs,
						 .end = on_end,
						 .error = on_error,
						 .event = on_event,
						 .event_trace = on_event_trace,
						 .transition = on_transition};
