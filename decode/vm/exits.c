/* exits.c - stays in a guest and round trips out of it; see vm.h. */
#include <stdlib.h>

#include "decode/vm/internal.h"

/* ---- Who ------------------------------------------------------------------------------------------- */

struct pt_vm_cpu *pt_vm_cpu_by_tid(struct pt_vm *vm, int32_t tid)
{
	struct pt_vm_cpu *c;

	for (c = vm->cpus; c; c = c->next)
		if (c->task && c->task->tid == tid)
			return c;
	return NULL;
}

static struct pt_vm_cpu *cpu_of(struct pt_vm *vm, const struct pt_task *task, uint64_t vmcs)
{
	struct pt_vm_cpu *c, **at = &vm->cpus;

	for (; *at; at = &(*at)->next)
		if (task ? (*at)->task == task : !(*at)->task && (*at)->vmcs == vmcs)
			return *at;
	c = calloc(1, sizeof *c);
	if (!c) {
		pt_vm_no_memory(vm);
		return NULL;
	}
	c->task = task;
	c->vmcs = vmcs;
	c->vcpu = -1;
	c->off_tsc = PTR_NO_TSC;
	c->injected = PTR_UNKNOWN;
	*at = c;
	return c;
}

static int32_t vcpu_number(const struct pt_vm *vm, const struct pt_emit_stream *s)
{
	const struct pt_vcpu *v;

	if (s->vcpu >= 0 || !s->host_task)
		return s->vcpu;
	v = pt_vcpus_by_tid(vm->vcpus, s->host_task->tid);
	return v ? v->vcpu : pt_vcpu_of_name(s->host_task->comm);
}

/* The names are asked for when a record is written: a thread's may have changed. */
static uint32_t machine_number(struct pt_vm *vm, const struct pt_vm_cpu *c)
{
	return c->machine ? pt_emit_machine(vm->emit, c->machine) : 0;
}

static uint32_t thread_number(struct pt_vm *vm, const struct pt_task *task)
{
	return task ? pt_emit_thread(vm->emit, (struct pt_task *)task) : 0;
}

/* ---- Writing --------------------------------------------------------------------------------------- */

static uint32_t put(struct pt_vm *vm, int64_t number)
{
	if (number >= 0)
		return (uint32_t)number;
	vm->emit->failed = true;
	return 0;
}

/* The trip that waits for the number of the stay behind it. */
static void write_vmexit(struct pt_vm *vm, struct pt_vm_cpu *c, uint32_t after)
{
	if (!c->has_held)
		return;
	c->has_held = false;
	c->held.after = after;
	c->held.machine = machine_number(vm, c);
	c->held.thread = thread_number(vm, c->task);
	if (!vm->emit->failed)
		put(vm, ptr_put_vmexit(vm->emit->writer, &c->held, &vm->emit->error));
}

/* The stay that is over, and the trip before it. */
static void write_run(struct pt_vm *vm, struct pt_vm_cpu *c)
{
	uint32_t number = 0;

	if (c->run_held) {
		c->run_held = false;
		c->run.machine = machine_number(vm, c);
		c->run.thread = thread_number(vm, c->task);
		if (!vm->emit->failed)
			number = put(vm, ptr_put_guest_run(vm->emit->writer, &c->run, &vm->emit->error));
		if (c->vmexit_open)
			c->vmexit.before = number;
	}
	write_vmexit(vm, c, number);
}

/* ---- Beginnings and ends --------------------------------------------------------------------------- */

static void wait(struct pt_vm_stream *st, uint64_t *uncertainty, uint64_t tsc, uint64_t reach)
{
	*uncertainty = PTR_UNKNOWN;
	st->uncertainty = uncertainty;
	st->waiting_tsc = tsc;
	st->reach_tsc = reach;
}

static void stop_waiting(struct pt_vm *vm, const struct pt_vm_cpu *c)
{
	const char *begin = (const char *)c, *end = begin + sizeof *c;

	for (struct pt_vm_stream *st = vm->streams; st; st = st->next)
		if ((const char *)st->uncertainty >= begin && (const char *)st->uncertainty < end)
			st->uncertainty = NULL;
}

static uint64_t host_tsc(uint64_t tsc)
{
	return tsc == PT_CLOCK_UNKNOWN ? PTR_NO_TSC : tsc;
}

static void begin_run(struct pt_vm_cpu *c, struct pt_vm_stream *st)
{
	c->run = (struct ptr_guest_run){.cpu = st->s->cpu,
					.vcpu = c->vcpu,
					.vmcs = c->vmcs == PT_VMCS_UNKNOWN ? PTR_UNKNOWN : c->vmcs,
					.cr3 = PTR_UNKNOWN,
					.entry_tsc = PTR_NO_TSC,
					.exit_tsc = PTR_NO_TSC,
					.entry_uncertainty_tsc = PTR_UNKNOWN,
					.exit_uncertainty_tsc = PTR_UNKNOWN,
					.insn_count = PTR_UNKNOWN,
					.cyc_count = PTR_UNKNOWN};
	c->run_open = true;
	c->place = PT_VM_IN_GUEST;
}

static void begin_vmexit(struct pt_vm_cpu *c)
{
	c->vmexit = (struct ptr_vmexit){.vcpu = c->vcpu,
					.exit_cpu = -1,
					.entry_cpu = -1,
					.vmcs = c->vmcs == PT_VMCS_UNKNOWN ? PTR_UNKNOWN : c->vmcs,
					.exit_tsc = PTR_NO_TSC,
					.entry_tsc = PTR_NO_TSC,
					.exit_uncertainty_tsc = PTR_UNKNOWN,
					.entry_uncertainty_tsc = PTR_UNKNOWN,
					.reason = PTR_UNKNOWN,
					.raw_reason = PTR_UNKNOWN,
					.qualification = PTR_UNKNOWN,
					.vector = PTR_UNKNOWN,
					.injected = PTR_UNKNOWN,
					.host_insns = PTR_UNKNOWN,
					.host_cycles = PTR_UNKNOWN};
	pt_vm_host_begin(&c->host);
	c->vmexit_open = true;
	c->place = PT_VM_IN_HOST;
}

static void come_on(struct pt_vm_cpu *c, struct pt_vm_stream *st, uint64_t insns, uint64_t cycles)
{
	c->on = st;
	st->cpu = c;
	c->host_insns = insns;
	c->host_cycles = cycles;
	c->off_tsc = PTR_NO_TSC;
}

/* What the thread has executed in the host since it came on its CPU is the trip's. */
static void count_host(struct pt_vm_cpu *c, uint64_t insns, uint64_t cycles, bool has_cyc)
{
	if (!c->vmexit_open)
		return;
	c->vmexit.host_insns =
	    (c->vmexit.host_insns == PTR_UNKNOWN ? 0 : c->vmexit.host_insns) + insns - c->host_insns;
	if (has_cyc)
		c->vmexit.host_cycles = (c->vmexit.host_cycles == PTR_UNKNOWN ? 0 : c->vmexit.host_cycles) +
					cycles - c->host_cycles;
	c->host_insns = insns;
	c->host_cycles = cycles;
}

static void end_run(struct pt_vm *vm, struct pt_vm_cpu *c, uint32_t flags)
{
	if (!c->run_open)
		return;
	c->run.flags |= flags;
	c->run_open = false;
	c->run_held = true;
	if (flags & PTR_VM_END_UNSEEN) {
		stop_waiting(vm, c);
		write_run(vm, c);
	}
}

static void end_vmexit(struct pt_vm *vm, struct pt_vm_cpu *c, uint32_t flags)
{
	if (!c->vmexit_open)
		return;
	pt_vm_host_end(vm, c);
	/* The stay before it comes first: its number is the trip's. */
	if (c->run_held)
		c->vmexit.exit_uncertainty_tsc = c->run.exit_uncertainty_tsc;
	write_run(vm, c);
	c->vmexit.flags |= flags;
	c->vmexit_open = false;
	c->held = c->vmexit;
	c->has_held = true;
	if (flags & PTR_VM_END_UNSEEN) {
		stop_waiting(vm, c);
		write_vmexit(vm, c, 0);
	}
}

/* Nothing is known of it any more. */
static void close_cpu(struct pt_vm *vm, struct pt_vm_cpu *c)
{
	end_run(vm, c, PTR_VM_END_UNSEEN);
	end_vmexit(vm, c, PTR_VM_END_UNSEEN);
	write_run(vm, c);
	stop_waiting(vm, c);
	c->place = PT_VM_NOWHERE;
	c->left = c->uncounted = false;
	c->off_tsc = PTR_NO_TSC;
	c->has_early = c->nested_next = false;
	c->injected = PTR_UNKNOWN;
	if (c->on)
		c->on->cpu = NULL;
	c->on = NULL;
}

/* ---- Transitions ----------------------------------------------------------------------------------- */

static void on_entry(struct pt_vm *vm, struct pt_vm_cpu *c, struct pt_vm_stream *st,
		     const struct pt_vm_transition *t, uint64_t reach, bool skip)
{
	uint64_t tsc = host_tsc(t->tsc);
	uint32_t hidden = t->concealed ? PTR_VM_CONCEALED : 0;

	if (c->place == PT_VM_IN_GUEST) /* its exit was not seen, or it is another guest's */
		close_cpu(vm, c);
	if (!c->vmexit_open) {
		begin_vmexit(c);
		c->vmexit.flags |= PTR_VM_BEGIN_UNSEEN;
		c->vmexit.off_cpu_tsc = c->vmexit.userspace_tsc = PTR_UNKNOWN;
	} else {
		count_host(c, t->insns, t->cycles, t->has_cyc);
	}
	pt_vm_host_pause(c, t->tsc);
	if (c->no_image)
		c->vmexit.host_insns = PTR_UNKNOWN;
	if (c->uncounted)
		c->vmexit.host_cycles = PTR_UNKNOWN;
	c->uncounted = false;
	c->no_image = false;
	c->nested = c->nested_next;
	c->vmexit.entry_tsc = tsc;
	c->vmexit.entry_cpu = st->s->cpu;
	c->vmexit.entry_branch = st->branch;
	c->vmexit.injected = c->injected;
	c->injected = PTR_UNKNOWN;
	if (c->vmexit.exit_cpu >= 0 && c->vmexit.exit_cpu != st->s->cpu)
		c->vmexit.flags |= PTR_VM_MIGRATED;
	end_vmexit(vm, c, hidden);
	begin_run(c, st);
	c->run.entry_tsc = tsc;
	c->run.entry_ip = t->guest_ip;
	c->run.entry_branch = st->branch;
	c->run.cr3 = t->cr3 ? t->cr3 : PTR_UNKNOWN;
	c->run.flags |= hidden | (c->nested ? PTR_VM_NESTED : 0);
	c->run_insns = t->insns;
	c->run_cycles = t->cycles;
	c->no_image = skip;
	come_on(c, st, t->insns, t->cycles);
	if (tsc != PTR_NO_TSC)
		wait(st, &c->run.entry_uncertainty_tsc, tsc, reach);
}

static void on_exit_seen(struct pt_vm *vm, struct pt_vm_cpu *c, struct pt_vm_stream *st,
			 const struct pt_vm_transition *t, uint64_t reach)
{
	uint64_t tsc = host_tsc(t->tsc);
	uint32_t hidden = t->concealed || !t->host_ip ? PTR_VM_CONCEALED : 0;

	if (c->place == PT_VM_IN_HOST) /* its entry was not seen */
		close_cpu(vm, c);
	if (!c->run_open) {
		begin_run(c, st);
		c->run.flags |= PTR_VM_BEGIN_UNSEEN;
	} else if (!t->concealed && t->guest_ip) {
		if (!c->no_image && !(t->no_code && t->insns == c->run_insns))
			c->run.insn_count = t->insns - c->run_insns;
		if (t->has_cyc)
			c->run.cyc_count = t->cycles - c->run_cycles;
	}
	if (c->has_held)
		c->held.entry_uncertainty_tsc = c->run.entry_uncertainty_tsc;
	c->run.exit_tsc = tsc;
	c->run.exit_ip = t->guest_ip;
	c->run.exit_branch = st->branch;
	end_run(vm, c, hidden);
	c->no_image = false;
	begin_vmexit(c);
	c->vmexit.exit_cpu = st->s->cpu;
	c->vmexit.exit_tsc = tsc;
	c->vmexit.guest_ip = t->guest_ip;
	c->vmexit.exit_branch = st->branch;
	if (t->guest_ip && st->s->task && st->s->task->process && vm->emit->definitions)
		c->vmexit.guest_symbol = pt_emit_symbol(vm->emit, &st->s->task->process->space, t->guest_ip);
	c->vmexit.flags |= hidden | (c->nested ? PTR_VM_NESTED : 0);
	if (st->exit_reported) {
		c->vmexit.source = PTR_REASON_EVENT_TRACE;
		c->vmexit.raw_reason = st->reason;
		c->vmexit.reason = st->reason == PTR_UNKNOWN ? PTR_UNKNOWN : st->reason & 0xffff;
		c->vmexit.qualification = st->qualification;
		c->vmexit.vector = st->vector;
	}
	if (c->has_early && pt_vmexit_sample(&c->vmexit, &c->early))
		c->has_early = false;
	come_on(c, st, t->insns, t->cycles);
	if (tsc != PTR_NO_TSC)
		wait(st, &c->run.exit_uncertainty_tsc, tsc, reach);
}

/* What is known of the vCPU's offset when a VMCS becomes its. */
static void tell(struct pt_vm *vm, const struct pt_vm_cpu *c, struct pt_vm_clock *clock, uint64_t tsc)
{
	const struct pt_vcpu *v = c->task ? pt_vcpus_by_tid(vm->vcpus, c->task->tid) : NULL;
	int r = v ? pt_vcpu_apply(v, clock) : 0;

	for (size_t i = 0; i < vm->write_count && !(v && v->has_offset) && r == 0; i++)
		if (c->task && vm->writes[i].pid == c->task->pid && vm->writes[i].vcpu == c->vcpu)
			r = pt_vm_clock_know(clock, tsc, vm->writes[i].offset, 0, PT_VM_RATIO_BITS,
					     PTR_CLOCK_TRACEPOINT);
	if (r < 0)
		pt_vm_no_memory(vm);
}

void pt_vm_use(struct pt_vm *vm, uint64_t vmcs, struct pt_vm_cpu *c, uint64_t tsc)
{
	struct pt_vm_clock *clock;
	struct pt_vm_use *uses;
	size_t i = vm->use_count, spans;

	if (c->vmcs == vmcs && c->used)
		return;
	while (i && vm->uses[i - 1].vmcs != vmcs)
		i--;
	c->used = true;
	if (i && vm->uses[i - 1].cpu == c)
		return;
	uses = realloc(vm->uses, (vm->use_count + 1) * sizeof *uses);
	if (!uses) {
		pt_vm_no_memory(vm);
		return;
	}
	vm->uses = uses;
	uses[vm->use_count++] = (struct pt_vm_use){.vmcs = vmcs, .from_tsc = i ? tsc : 0, .cpu = c};
	clock = pt_vm_clocks_get(vm->clocks, vmcs);
	if (!clock) {
		pt_vm_no_memory(vm);
		return;
	}
	pt_vm_clock_spans(clock, &spans);
	if (!i || tsc == PTR_NO_TSC) {
		if (!spans)
			tell(vm, c, clock, 0);
		return;
	}
	/* It was another's, and has been freed. */
	for (struct pt_vm_cpu *before = vm->cpus; before; before = before->next)
		if (before != c && before->vmcs == vmcs) {
			before->vmcs = PT_VMCS_UNKNOWN;
			before->used = false;
		}
	if (pt_vm_clock_restart(clock, tsc))
		tell(vm, c, clock, tsc);
}

void pt_vm_transition(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f,
		      const struct pt_vm_transition *t)
{
	struct pt_vm_cpu *c = cpu_of(vm, st->s->host_task, t->vmcs);

	st->in_gap = false;
	st->flow = f;
	if (!c)
		return;
	/* Who was on this CPU, and has not been seen to leave it. */
	if (st->cpu && st->cpu != c) {
		if (st->cpu->place == PT_VM_IN_GUEST)
			close_cpu(vm, st->cpu);
		else
			st->cpu->on = NULL;
		st->cpu = NULL;
	}
	if (c->on && c->on != st)
		close_cpu(vm, c);
	if (st->s->machine && st->s->machine->pid)
		c->machine = st->s->machine;
	c->vcpu = vcpu_number(vm, st->s);
	if (t->entry && t->vmcs != PT_VMCS_UNKNOWN)
		pt_vm_use(vm, t->vmcs, c, host_tsc(t->tsc));
	c->vmcs = t->vmcs;
	if (t->entry)
		on_entry(vm, c, st, t, pt_vm_reach(pt_flow_clock(f)), !pt_flow_follows(f));
	else
		on_exit_seen(vm, c, st, t, pt_vm_reach(pt_flow_clock(f)));
	st->exit_reported = false;
	st->reason = st->qualification = st->vector = PTR_UNKNOWN;
}

/* The thread that was on the stream's CPU is not any more, since tsc. */
static void go_off(struct pt_vm_stream *st, const struct pt_flow *f, uint64_t tsc)
{
	struct pt_vm_cpu *c = st->cpu;

	count_host(c, pt_flow_counts(f)->insns, pt_flow_clock(f)->cyc, pt_flow_has_cyc(f));
	pt_vm_host_pause(c, tsc == PTR_NO_TSC ? PT_CLOCK_UNKNOWN : tsc);
	c->vmexit.flags |= PTR_VM_SCHEDULED_OUT;
	c->off_tsc = tsc;
	c->on = NULL;
	st->cpu = NULL;
}

/* It is on it again, after a time that belongs to the trip. */
static void add_off(struct pt_vm_cpu *c, uint64_t since, uint64_t tsc)
{
	if (since == PTR_NO_TSC || tsc == PTR_NO_TSC || c->vmexit.off_cpu_tsc == PTR_UNKNOWN)
		c->vmexit.off_cpu_tsc = PTR_UNKNOWN;
	else if (tsc > since)
		c->vmexit.off_cpu_tsc += tsc - since;
}

void pt_vm_moved(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f,
		 const struct pt_task *task, bool left, uint64_t tsc)
{
	struct pt_vm_cpu *c = vm->cpus;

	while (c && c->task != task)
		c = c->next;
	if (left) {
		if (c) {
			c->left = true;
			c->left_tsc = tsc;
		}
		return;
	}
	/* Who was there has left, too. */
	if (st->cpu && st->cpu != c && st->cpu->left && st->cpu->place == PT_VM_IN_HOST)
		go_off(st, f, st->cpu->left_tsc);
	if (!c || !c->left)
		return;
	c->left = false;
	if (c->place != PT_VM_IN_HOST || (st->cpu && st->cpu != c))
		return;
	c->vmexit.flags |= PTR_VM_SCHEDULED_OUT;
	if (c->on == st) {
		add_off(c, c->left_tsc, tsc);
		return;
	}
	if (c->on)
		go_off(c->on, c->on->flow, c->left_tsc);
	add_off(c, c->off_tsc, tsc);
	come_on(c, st, pt_flow_counts(f)->insns, pt_flow_clock(f)->cyc);
	c->no_image = c->uncounted =
	    true; /* what it has executed here already, nobody has counted as its own */
}

void pt_vm_switched(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f)
{
	const struct pt_task *task = st->s->host_task;
	struct pt_vm_cpu *c = st->cpu;
	/* Where nothing is traced, of threads that nobody asked for, the clock stands still. */
	uint64_t tsc = pt_flow_state(f) < PT_FLOW_NO_IMAGE ? PTR_NO_TSC : host_tsc(pt_flow_tsc(f));

	if (c && c->task == task)
		return;
	if (c && c->place == PT_VM_IN_GUEST) {
		/* A guest does not switch the host's threads: its exit is to come, and what is told is early. */
		return;
	}
	if (c) {
		if (!c->left && !c->vmexit.stolen_by && task && task->tid > 0)
			c->vmexit.stolen_by = thread_number(vm, task);
		go_off(st, f, c->left ? c->left_tsc : tsc);
	}
	for (c = task ? vm->cpus : NULL; c && c->task != task; c = c->next)
		;
	if (!c || c->place != PT_VM_IN_HOST || c->on)
		return;
	if (st->in_gap)
		c->vmexit.flags |= PTR_VM_GAP;
	add_off(c, c->off_tsc, tsc);
	c->left = false;
	come_on(c, st, pt_flow_counts(f)->insns, pt_flow_clock(f)->cyc);
}

void pt_vm_gap(struct pt_vm *vm, struct pt_vm_stream *st)
{
	st->in_gap = true;
	st->exit_reported = false;
	st->reason = st->qualification = st->vector = PTR_UNKNOWN;
	if (st->cpu)
		close_cpu(vm, st->cpu);
}

void pt_vm_close_all(struct pt_vm *vm)
{
	for (struct pt_vm_cpu *c = vm->cpus; c; c = c->next)
		close_cpu(vm, c);
}

/* ---- Samples --------------------------------------------------------------------------------------- */

bool pt_vmexit_sample(struct ptr_vmexit *t, const struct pt_vm_exit_sample *sample)
{
	if (sample->guest_rip && t->guest_ip && sample->guest_rip != t->guest_ip)
		return false;
	if (t->source == PTR_REASON_TRACEPOINT)
		return false; /* it has its own */
	if (t->source == PTR_REASON_EVENT_TRACE) {
		if (t->qualification == PTR_UNKNOWN)
			t->qualification = sample->qualification;
		return true;
	}
	t->source = PTR_REASON_TRACEPOINT;
	t->raw_reason = sample->reason;
	t->reason = sample->reason == PTR_UNKNOWN ? PTR_UNKNOWN : sample->reason & 0xffff;
	t->qualification = sample->qualification;
	t->vector = sample->intr_info != PTR_UNKNOWN && (sample->intr_info & 1u << 31)
			? sample->intr_info & 0xff
			: PTR_UNKNOWN;
	return true;
}
