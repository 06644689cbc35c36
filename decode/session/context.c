/*
 * context.c - a session's streams, and who runs in them: threads by switch records, processes by CR3, guests by VMCS.
 *
 * A switch record has a time, the trace has PIP packets; neither alone says whose user code it is: times are exact
 * to the next timing packet only, and a CR3 is just a number. So a switch takes effect when the flow comes by where the
 * kernel switches threads; where that is not known, at its time, but not while the flow is in user space or in a guest.
 * And when the flow comes to user space with a CR3 that another process was seen with, the switch that tells of it is
 * taken ahead of its time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/session/internal.h"

/* ---- Codes ------------------------------------------------------------------------------------------ */

void pt_session_codes(struct stream *st)
{
	struct session *s = st->session;
	struct pt_cpu_context *cpu_context = st->cpu_context;
	struct pt_machine *m = cpu_context->machine;
	struct pt_code *user = cpu_context->task ? cpu_context->task->process->code : NULL;

	st->out.machine = m;
	st->out.task = cpu_context->task;
	st->out.host_task = st->cpu.task;
	st->out.vcpu = cpu_context == &st->cpu ? -1 : cpu_context->index;
	pt_emit_who(&st->out);
	pt_session_choose(st);
	if (!pt_flow_follows(st->flow)) {
		pt_flow_set_code(st->flow, NULL, NULL);
		return;
	}
	if (cpu_context == &st->cpu) {
		pt_flow_set_code(st->flow, user, s->kernel_traced || m->space.count ? m->code : NULL);
		return;
	}
	/* A guest: what is not known of its processes may still be in its memory's images (a boot loader's code). */
	if (!cpu_context->task)
		st->out.task = &cpu_context->unknown;
	if (s->guest_code && !m->space.count && st->cpu.task)
		pt_flow_set_code(st->flow, st->cpu.task->process->code, NULL);
	else
		pt_flow_set_code(st->flow,
				 user			   ? user
				 : m->unknown_process.code ? m->unknown_process.code
							   : m->code,
				 m->code);
}

/* ---- Switches --------------------------------------------------------------------------------------- */

/* A switch waits for where the kernel switches; or, when nobody knows where that is, until the flow has left user space.
 * The host's CPU waits while it is in a guest. */
static bool waits(const struct stream *st, const struct pt_cpu_context *cpu_context)
{
	if (!cpu_context->task || pt_flow_state(st->flow) < PT_FLOW_NO_IMAGE)
		return false;
	if (st->cpu_context != cpu_context)
		return true;
	if (!pt_flow_kernel_code(st->flow) || pt_flow_state(st->flow) != PT_FLOW_RUNNING)
		return false;
	return cpu_context->machine->code->switch_ip ||
	       pt_flow_code(st->flow) != pt_flow_kernel_code(st->flow);
}

static void sit(struct stream *st, struct pt_cpu_context *cpu_context, struct pt_task *task)
{
	bool here = st->cpu_context == cpu_context;

	if (here)
		pt_flow_pause(st->flow, true);
	cpu_context->before = cpu_context->task;
	cpu_context->task = task;
	cpu_context->switches++;
	if (cpu_context == &st->cpu)
		st->switch_vmcs = pt_flow_vmcs(st->flow);
	pt_session_codes(st);
	if (here)
		pt_flow_resume(st->flow);
	if (cpu_context == &st->cpu && st->session->emit.vm && st->session->emit.vm->switched)
		st->session->emit.vm->switched(st->session->emit.vm_arg, &st->out, st->flow);
}

static void switch_late(struct stream *st, struct pt_cpu_context *cpu_context)
{
	struct pt_task *task = cpu_context->late;

	cpu_context->late = NULL;
	if (task && cpu_context->task != task)
		sit(st, cpu_context, task);
}

int pt_session_switch(struct session *s, struct pt_cpu_context *cpu_context, int32_t pid, int32_t tid,
		      struct pt_error *e)
{
	struct pt_task *task = pt_tasks_get(cpu_context->machine->tasks, pid, tid);
	bool anywhere = false;

	if (!task)
		return pt_fail_no_memory(e, NULL);
	for (struct stream *st = s->streams; st; st = st->next) {
		if (st->cpu_context != cpu_context && &st->cpu != cpu_context)
			continue;
		anywhere = true;
		if (task == (cpu_context->late ? cpu_context->late : cpu_context->task))
			continue; /* told twice: out of one, into the other */
		/* The flow has not come by where the one before was to take effect. */
		switch_late(st, cpu_context);
		if (waits(st, cpu_context))
			cpu_context->late = task;
		else
			sit(st, cpu_context, task);
	}
	if (!anywhere && cpu_context->task != task) { /* a vCPU that is out */
		cpu_context->before = cpu_context->task;
		cpu_context->task = task;
		cpu_context->late = NULL;
		cpu_context->switches++;
	}
	return 0;
}

int pt_session_moved(struct session *s, const struct pt_sideband_record *side, struct pt_error *e)
{
	const struct pt_vm_events *vm = s->emit.vm;
	const struct pt_task *task;
	bool left;

	if (side->machine->pid || !vm || !vm->moved || !pt_sideband_moved(side, &left))
		return 0;
	task = pt_tasks_get(side->machine->tasks, side->pid, side->tid);
	if (!task)
		return pt_fail_no_memory(e, NULL);
	for (struct stream *st = s->streams; st; st = st->next)
		if (st->info.tid > 0 ? st->info.tid == side->tid : st->info.cpu == side->cpu)
			vm->moved(s->emit.vm_arg, &st->out, st->flow, task, left,
				  side->tsc ? side->tsc : PTR_NO_TSC);
	return 0;
}

struct pt_cpu_context *pt_session_cpu_context(struct session *s, const struct pt_sideband_record *side)
{
	if (side->machine->pid)
		return pt_machine_cpu_context(side->machine, side->cpu);
	for (struct stream *st = s->streams; st; st = st->next)
		if (st->info.tid == -1 && st->info.cpu == side->cpu)
			return &st->cpu;
	return NULL;
}

static bool has_user_code(const struct pt_task *task)
{
	return task && task->process->space.count;
}

struct ahead {
	struct session *session;
	const struct pt_cpu_context *cpu_context;
	const struct pt_process *process; /* NULL: any */
	const struct pt_task *task;	  /* NULL: any */
	bool user;			  /* any that has user code, or an exec of who runs now */
	bool next;			  /* any other than who runs now */
};

static bool of_cpu_context(const struct pt_sideband_record *side, void *arg)
{
	const struct ahead *a = arg;

	if (a->user && a->cpu_context->task && side->machine == a->cpu_context->machine &&
	    (pt_sideband_effect(side) & PT_SIDEBAND_CODE))
		return pt_sideband_pid(side) == a->cpu_context->task->pid;
	return (pt_sideband_effect(side) & PT_SIDEBAND_SWITCH) && side->machine == a->cpu_context->machine &&
	       pt_session_cpu_context(a->session, side) == a->cpu_context;
}

static bool to_process(const struct pt_sideband_record *side, void *arg)
{
	const struct ahead *a = arg;
	int32_t pid, tid;

	if (a->user && a->cpu_context->task && pt_sideband_execs(side, a->cpu_context->task->pid))
		return true;
	if (!pt_sideband_switched(side, &pid, &tid))
		return false;
	if (a->next)
		return pt_tasks_get(side->machine->tasks, pid, tid) != a->cpu_context->task;
	if (a->user)
		return has_user_code(pt_tasks_get(side->machine->tasks, pid, tid));
	return (!a->process || pid == a->process->pid) && (!a->task || tid == a->task->tid);
}

/* The next switch to a process or thread (both NULL: to whatever has user code, or an exec), ahead of its time. */
static bool ahead(struct stream *st, struct pt_cpu_context *cpu_context, const struct pt_process *process,
		  const struct pt_task *task)
{
	struct ahead a = {.session = st->session,
			  .cpu_context = cpu_context,
			  .process = process,
			  .task = task,
			  .user = !process && !task};
	bool found = pt_session_ahead(st->session, pt_flow_tsc(st->flow), st->session->window_tsc,
				      of_cpu_context, to_process, &a);

	if (found)
		switch_late(st, cpu_context);
	return found;
}

/* The flow comes by where the kernel switches threads. Time is uncertain up to the next timing packet: the record of it may
 * be late, but not much. */
static void on_switching(void *arg, struct pt_flow *f)
{
	struct stream *st = arg;
	struct ahead a = {.session = st->session, .cpu_context = st->cpu_context, .next = true};
	uint64_t window = st->session->window_tsc;

	(void)f;
	if (!st->cpu_context->late)
		pt_session_ahead(st->session, pt_flow_tsc(st->flow),
				 window == UINT64_MAX ? window : window / 50, of_cpu_context, to_process, &a);
	switch_late(st, st->cpu_context);
}

/* ---- User space ------------------------------------------------------------------------------------- */

/* PCID is no part of the address space. A kernel with page table isolation comes to user space with tables of its
 * own, whose CR3 is another one of the same process: always that one. */
static uint64_t page_tables(uint64_t cr3)
{
	return cr3 & ~(uint64_t)0xfff;
}

/* So many times in a row the sideband has to say it until a CR3 becomes another process's that had one before. */
#define DOUBTS_MAX 4
/* Processes that share the address space of one another's parent, at most. */
#define SHARED_DEPTH_MAX 8

/*
 * May this process run in the address space of `known`? A new process does so until its exec or exit when it was made by vfork(),
 * posix_spawn() or clone(CLONE_VM); its parent may share its own parent's. FORK records do not say how it was made: as long as no
 * CR3 of its own was seen (fresh), it may.
 */
static bool shares(const struct pt_machine *m, const struct pt_process *process,
		   const struct pt_process *known)
{
	for (int depth = 0; process && known && depth < SHARED_DEPTH_MAX; depth++) {
		if (!process->fresh || process->execs || process->parent < 0)
			return false;
		if (process->parent == known->pid)
			return true;
		process = pt_tasks_process(m->tasks, process->parent);
	}
	return false;
}

/* What comes is this process's code; NULL: sideband and CR3 contradict each other, and nobody knows whose it is. */
static void see(struct stream *st, const struct pt_process *process)
{
	if (pt_flow_follows(st->flow))
		pt_flow_set_user_code(st->flow, process ? process->code : NULL);
}

/* The flow comes to user space. */
static void on_user(void *arg, struct pt_flow *f)
{
	struct stream *st = arg;
	struct pt_cpu_context *cpu_context = st->cpu_context;
	struct pt_machine *m = cpu_context->machine;
	uint64_t cr3 = page_tables(pt_flow_cr3(st->flow));
	struct pt_process *known, *process;
	bool again;

	(void)f;
	switch_late(st, cpu_context);
	if (st->session->failed)
		return;
	if (!cr3) { /* nobody says otherwise */
		cpu_context->user_cr3 = 0;
		cpu_context->switches = 0;
		return;
	}
	known = pt_machine_process(m, cr3);
	if (known && cpu_context->task && cpu_context->task->process == known) {
		cpu_context->user_cr3 = cr3;
		cpu_context->switches = 0;
		pt_machine_doubt(m, cr3, NULL, false);
		see(st, known);
		return;
	}
	if (known && cpu_context->task && shares(m, cpu_context->task->process, known)) {
		/* The CR3 fits both; no switch that is to come is taken for having happened. */
		cpu_context->user_cr3 = cr3;
		cpu_context->switches = 0;
		see(st, cpu_context->task->process);
		return;
	}
	if (known && cpu_context->before && cpu_context->before->process == known &&
	    cpu_context->user_cr3 == cr3 && !ahead(st, cpu_context, known, NULL)) {
		/* The switch's time has come, but not the switch. */
		see(st, known);
		return;
	}
	if (known && !(cpu_context->task && cpu_context->task->process->fresh && cpu_context->switches))
		ahead(st, cpu_context, known, NULL);
	else if (!known && (!has_user_code(cpu_context->task) ||
			    (!cpu_context->task->process->fresh && !cpu_context->switches)))
		ahead(st, cpu_context, NULL, NULL);
	again = !cpu_context->switches && cpu_context->user_cr3 == cr3;
	cpu_context->user_cr3 = cr3;
	cpu_context->switches = 0;
	if (!has_user_code(cpu_context->task)) {
		if (known)
			see(st, known);
		return;
	}
	process = cpu_context->task->process;
	/* Now that a switch may have been taken ahead of its time. */
	known = pt_machine_process(m, cr3);
	if (known == process || shares(m, process, known)) {
		see(st, process);
		return;
	}
	if (!process->gone &&
	    ((!known && process->fresh) || pt_machine_doubt(m, cr3, process, again) >= DOUBTS_MAX))
		pt_machine_learn(m, cr3, process);
	else
		process = NULL;
	see(st, process);
}

/* ---- Guests ----------------------------------------------------------------------------------------- */

static int32_t vcpu_of(struct session *s, const struct pt_task *task)
{
	const char *key, *value;
	char prefix[32], tid[16];
	int n = snprintf(prefix, sizeof prefix, "kvm.%" PRId32 ".", task->pid), index;

	snprintf(tid, sizeof tid, "%" PRId32, task->tid);
	for (size_t i = 0; ptc_meta_pair(s->meta, i, &key, &value); i++) {
		char *end;
		long vcpu;

		if (strncmp(key, prefix, (size_t)n) != 0 || strcmp(value, tid) != 0)
			continue;
		vcpu = strtol(key + n, &end, 10);
		if (end != key + n && !strcmp(end, ".tid"))
			return (int32_t)vcpu;
	}
	if (sscanf(task->comm, "CPU %d/KVM", &index) == 1)
		return index;
	return -1;
}

/* Which vCPU it is that the stream's CPU enters now. NULL: nobody knows which thread it is. */
static struct pt_cpu_context *guest_cpu_context(struct stream *st)
{
	struct session *s = st->session;
	struct vmcs *known = NULL;
	struct pt_machine *m;
	struct pt_cpu_context *cpu_context;
	bool others = false; /* who runs as far as is known has a VMCS of its own */

	switch_late(st, &st->cpu);
	for (size_t i = 0; i < s->vmcs_count; i++) {
		if (s->vmcs[i].address == pt_flow_vmcs(st->flow))
			known = &s->vmcs[i];
		others |= st->cpu.task && s->vmcs[i].task == st->cpu.task;
	}
	if (known && known->task == st->cpu.task)
		return known->cpu_context;
	/* The record of the switch to the vCPU's thread may be late; else the VMCS is another's now. */
	if (known && ahead(st, &st->cpu, NULL, known->task))
		return known->cpu_context;
	if (!known && others && st->switch_vmcs != pt_flow_vmcs(st->flow) && !st->cpu.switches)
		ahead(st, &st->cpu, NULL, NULL);
	if (!st->cpu.task)
		return known ? known->cpu_context : NULL;
	m = pt_machine_get(s->machines, st->cpu.task->pid);
	cpu_context = m ? pt_machine_cpu_context(m, vcpu_of(s, st->cpu.task)) : NULL;
	if (!cpu_context || pt_flow_vmcs(st->flow) == PT_VMCS_UNKNOWN)
		return cpu_context;
	if (!known) {
		struct vmcs *more = realloc(s->vmcs, (s->vmcs_count + 1) * sizeof *more);

		if (!more)
			return cpu_context;
		s->vmcs = more;
		known = &more[s->vmcs_count++];
	}
	*known = (struct vmcs){
	    .address = pt_flow_vmcs(st->flow), .cpu_context = cpu_context, .task = st->cpu.task};
	return cpu_context;
}

/* The flow has changed sides. */
static void on_side(void *arg, struct pt_flow *f, const struct pt_vm_transition *t)
{
	struct stream *st = arg;
	struct session *s = st->session;
	struct pt_error e;

	(void)f;
	if (t && t->concealed)
		return;
	st->cpu_context = &st->cpu;
	if (pt_flow_in_guest(st->flow)) {
		struct pt_cpu_context *cpu_context = guest_cpu_context(st);
		struct pt_machine *m = cpu_context ? NULL : pt_machine_get(s->machines, -1);

		/* Which VM it is, is not known. */
		if (!cpu_context)
			cpu_context = m ? pt_machine_cpu_context(m, -1) : NULL;
		if (cpu_context)
			st->cpu_context = cpu_context;
		else
			s->failed = pt_fail_no_memory(&s->error, NULL) < 0;
	} else if (!s->host->code->switch_ip) {
		switch_late(st, &st->cpu);
	}
	pt_session_codes(st);
	if (t && t->entry && s->waiting && pt_session_queue_waiting(s, false, &e) < 0) {
		s->failed = true;
		s->error = e;
	}
}

static uint64_t on_guest_tsc(void *arg, struct pt_flow *f, const struct pt_tsc_packet *packet)
{
	struct stream *st = arg;
	const struct pt_emit *emit = &st->session->emit;

	return emit->vm && emit->vm->host_tsc ? emit->vm->host_tsc(emit->vm_arg, &st->out, f, packet)
					      : PT_CLOCK_UNKNOWN;
}

static bool is_filtered(void *arg, struct pt_flow *f, uint64_t ip)
{
	struct stream *st = arg;

	return pt_filter_shuts_out(&st->session->emit.filter, pt_flow_code(f)->space, ip);
}

static const struct pt_flow_env flow_env = {.missing = pt_session_missing,
					    .user = on_user,
					    .switching = on_switching,
					    .side = on_side,
					    .guest_tsc = on_guest_tsc,
					    .filtered = is_filtered};

/* ---- Streams ---------------------------------------------------------------------------------------- */

struct stream *pt_session_stream(struct session *s, uint32_t id)
{
	struct stream *st;

	for (st = s->streams; st && st->id != id; st = st->next)
		;
	return st;
}

static struct pt_flow *flow_create(struct stream *st)
{
	struct session *s = st->session;
	struct pt_flow_config config = {.graph = &s->graph,
					.clock = s->clock,
					.env = &flow_env,
					.env_arg = st,
					.output = &pt_emit_output,
					.output_arg = &st->out,
					.errata =
					    pt_errata_of((uint32_t)ptc_meta_number(s->meta, "cpu_family", 0),
							 (uint32_t)ptc_meta_number(s->meta, "cpu_model", 0)),
					.no_tnt = ptc_meta_number(s->meta, "pt_config", 0) >> 55 & 1};

	return pt_flow_create(&config);
}

int pt_session_stream_add(struct session *s, uint32_t id, const struct ptc_stream *info, struct pt_error *e)
{
	struct stream *st, **at = &s->streams;

	if (pt_session_stream(s, id))
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "stream %u is declared twice", id);
	st = calloc(1, sizeof *st);
	if (!st)
		return pt_fail_no_memory(e, NULL);
	while (*at)
		at = &(*at)->next;
	*at = st;
	st->info = *info;
	st->id = id;
	st->last = &st->first;
	st->session = s;
	pt_cpu_context_init(&st->cpu, s->host, info->cpu);
	st->cpu_context = &st->cpu;
	st->out = (struct pt_emit_stream){
	    .emit = &s->emit,
	    .stream = id,
	    .cpu = info->cpu,
	};
	st->flow = flow_create(st);
	if (!st->flow)
		return pt_fail_no_memory(e, NULL);
	pt_filter_parse(&s->emit.filter, ptc_meta_get(s->meta, "addr_filter"));
	pt_session_codes(st);
	return info->tid > 0 ? pt_session_switch(s, &st->cpu, info->pid, info->tid, e) : 0;
}

void pt_session_streams_free(struct session *s)
{
	while (s->streams) {
		struct stream *st = s->streams;

		s->streams = st->next;
		while (st->first) {
			struct piece *p = st->first;

			st->first = p->next;
			free(p);
		}
		pt_flow_destroy(st->flow);
		free(st);
	}
	free(s->vmcs);
}
