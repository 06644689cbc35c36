/* exits.c - guest runs and VM exit intervals, from their beginning to their record; see internal.h. */
#include <stdlib.h>

#include "decode/vm/exit_instruction.h"
#include "decode/vm/internal.h"

static struct pt_vm_vcpu *vcpu_of(struct pt_vm *vm, const struct pt_task *task, uint64_t vmcs)
{
	struct pt_vm_vcpu *vcpu, **at = &vm->vcpu_list;

	for (; *at; at = &(*at)->next)
		if (task ? (*at)->task == task : !(*at)->task && (*at)->vmcs == vmcs)
			return *at;
	vcpu = calloc(1, sizeof *vcpu);
	if (!vcpu) {
		pt_vm_no_memory(vm);
		return NULL;
	}
	vcpu->task = task;
	vcpu->vmcs = vmcs;
	vcpu->number = -1;
	vcpu->nested.vmcs = PT_VMCS_UNKNOWN;
	vcpu->on_cpu.off_tsc = PTR_NO_TSC;
	vcpu->injected = PTR_UNKNOWN;
	*at = vcpu;
	return vcpu;
}

static int32_t vcpu_number(const struct pt_vm *vm, const struct pt_emit_stream *s)
{
	const struct pt_vcpu *v;

	if (s->vcpu >= 0 || !s->host_task)
		return s->vcpu;
	v = pt_vcpus_by_tid(vm->vcpus, s->host_task->tid);
	return v ? v->vcpu : pt_vcpu_of_name(s->host_task->comm);
}

static uint64_t record_vmcs(const struct pt_vm_vcpu *vcpu)
{
	return vcpu->vmcs == PT_VMCS_UNKNOWN ? PTR_UNKNOWN : vcpu->vmcs;
}

/* ---- Writing --------------------------------------------------------------------------------------- */

static uint32_t machine_number(struct pt_vm *vm, const struct pt_vm_vcpu *vcpu)
{
	return vcpu->machine ? pt_emit_machine(vm->emit, vcpu->machine) : 0;
}

static void note_slowest(struct pt_vm *vm, const struct ptr_vmexit *r)
{
	/* Of these no latency is known (as pt-load has it). */
	const uint32_t unknown = PTR_VM_BEGIN_UNSEEN | PTR_VM_END_UNSEEN | PTR_VM_GAP | PTR_VM_CONCEALED;

	if (r->flags & unknown || r->exit_tsc == PTR_NO_TSC || r->entry_tsc == PTR_NO_TSC ||
	    r->entry_tsc <= r->exit_tsc ||
	    r->entry_tsc - r->exit_tsc <= vm->slowest.entry_tsc - vm->slowest.exit_tsc)
		return;
	vm->slowest.exit_tsc = r->exit_tsc;
	vm->slowest.entry_tsc = r->entry_tsc;
}

static void put_exit(struct pt_vm *vm, const struct ptr_vmexit *r)
{
	note_slowest(vm, r);
	if (!vm->emit->failed)
		pt_emit_put(vm->emit, ptr_put_vmexit(vm->emit->writer, r, &vm->emit->error));
}

/* The nested guest is entered at guest_ip; 0: that will not be known. */
static void write_handed(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, uint64_t guest_ip)
{
	struct pt_vm_handed_exit *h = &vcpu->exit.handed;

	if (!h->next_ip)
		return;
	if (guest_ip == h->next_ip) {
		h->record.source = PTR_REASON_INSTRUCTION;
		h->record.reason = h->reason;
	}
	put_exit(vm, &h->record);
	h->next_ip = 0;
}

/* Writes the last VM exit, if it waits: `after` is the number of the guest run that follows it. */
static void write_exit(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, uint32_t after)
{
	struct ptr_vmexit *r = &vcpu->exit.last;

	if (!vcpu->exit.last_ended)
		return;
	vcpu->exit.last_ended = false;
	r->after = after;
	r->machine = machine_number(vm, vcpu);
	r->thread = pt_vm_thread_number(vm, vcpu->task);
	if (!vcpu->exit.last_next_ip || r->source != PTR_REASON_UNKNOWN) {
		put_exit(vm, r);
		return;
	}
	write_handed(vm, vcpu, 0);
	vcpu->exit.handed = (struct pt_vm_handed_exit){
	    .record = *r, .reason = vcpu->exit.last_reason, .next_ip = vcpu->exit.last_next_ip};
}

/* Writes the guest run that is over, if it waits, and then the VM exit before it. */
static void write_run(struct pt_vm *vm, struct pt_vm_vcpu *vcpu)
{
	struct ptr_guest_run *r = &vcpu->run.record;
	uint32_t number = 0;

	if (vcpu->run.ended) {
		vcpu->run.ended = false;
		r->machine = machine_number(vm, vcpu);
		r->thread = pt_vm_thread_number(vm, vcpu->task);
		if (!vm->emit->failed)
			number =
			    pt_emit_put(vm->emit, ptr_put_guest_run(vm->emit->writer, r, &vm->emit->error));
		if (vcpu->exit.open)
			vcpu->exit.record.before = number;
	}
	write_exit(vm, vcpu, number);
}

/* ---- Uncertainty ----------------------------------------------------------------------------------- */

/* The latest time that a packet may have by the cycles since the last timing packet. The clock itself does
 * not pass the MTC that should have come by then, and is still to come. */
static uint64_t cycles_tsc(const struct pt_clock *c)
{
	if (c->tsc == PT_CLOCK_UNKNOWN)
		return c->tsc;
	/* And one, for a tick that has begun. */
	return c->anchor_tsc +
	       (uint64_t)(((unsigned __int128)(c->cyc - c->anchor_cyc) * c->tsc_per_cyc) >> 32) + 1;
}

static void wait(struct pt_vm_stream *st, uint64_t *uncertainty, uint64_t tsc, const struct pt_flow *f)
{
	if (tsc == PTR_NO_TSC)
		return;
	*uncertainty = PTR_UNKNOWN;
	st->waiting.uncertainty = uncertainty;
	st->waiting.tsc = tsc;
	st->waiting.cycles_tsc = cycles_tsc(pt_flow_clock(f));
}

void pt_vm_settle_uncertainty(struct pt_vm_stream *st, uint64_t now_tsc)
{
	if (!st->waiting.uncertainty || now_tsc == PT_CLOCK_UNKNOWN || now_tsc <= st->waiting.tsc)
		return;
	if (now_tsc < st->waiting.cycles_tsc)
		now_tsc = st->waiting.cycles_tsc;
	*st->waiting.uncertainty = now_tsc - st->waiting.tsc;
	st->waiting.uncertainty = NULL;
}

/* The vCPU's records are written, or used anew. */
static void stop_waiting(struct pt_vm *vm, const struct pt_vm_vcpu *vcpu)
{
	/* As numbers: pointers to different objects cannot be compared. */
	uintptr_t begin = (uintptr_t)vcpu, end = begin + sizeof *vcpu;

	for (struct pt_vm_stream *st = vm->streams; st; st = st->next) {
		uintptr_t uncertainty = (uintptr_t)st->waiting.uncertainty;

		if (uncertainty >= begin && uncertainty < end)
			st->waiting.uncertainty = NULL;
	}
}

/* ---- Beginnings and ends --------------------------------------------------------------------------- */

static void begin_run(struct pt_vm_vcpu *vcpu, const struct pt_vm_stream *st)
{
	vcpu->run.record = (struct ptr_guest_run){.cpu = st->s->cpu,
						  .vcpu = vcpu->number,
						  .vmcs = record_vmcs(vcpu),
						  .cr3 = PTR_UNKNOWN,
						  .entry_tsc = PTR_NO_TSC,
						  .exit_tsc = PTR_NO_TSC,
						  .entry_uncertainty_tsc = PTR_UNKNOWN,
						  .exit_uncertainty_tsc = PTR_UNKNOWN,
						  .insn_count = PTR_UNKNOWN,
						  .cyc_count = PTR_UNKNOWN,
						  .injected = PTR_UNKNOWN};
	vcpu->run.open = true;
	vcpu->place = PT_VM_IN_GUEST;
}

static void begin_exit(struct pt_vm_vcpu *vcpu)
{
	vcpu->exit.record = (struct ptr_vmexit){.vcpu = vcpu->number,
						.exit_cpu = -1,
						.entry_cpu = -1,
						.vmcs = record_vmcs(vcpu),
						.guest_cr3 = PTR_UNKNOWN,
						.exit_tsc = PTR_NO_TSC,
						.entry_tsc = PTR_NO_TSC,
						.exit_uncertainty_tsc = PTR_UNKNOWN,
						.entry_uncertainty_tsc = PTR_UNKNOWN,
						.reason = PTR_UNKNOWN,
						.raw_reason = PTR_UNKNOWN,
						.qualification = PTR_UNKNOWN,
						.vector = PTR_UNKNOWN,
						.operand = PTR_UNKNOWN,
						.injected = PTR_UNKNOWN,
						.host_insns = PTR_UNKNOWN,
						.host_cycles = PTR_UNKNOWN};
	vcpu->host = (struct pt_vm_host){0};
	vcpu->exit.open = true;
	vcpu->place = PT_VM_IN_HOST;
}

/* flags: PTR_VM_*. With END_UNSEEN nothing more becomes known of the interval, so it is written at once. */
static void end_run(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, uint32_t flags)
{
	if (!vcpu->run.open)
		return;
	vcpu->run.record.flags |= flags;
	vcpu->run.open = false;
	vcpu->run.ended = true;
	if (flags & PTR_VM_END_UNSEEN) {
		stop_waiting(vm, vcpu);
		write_run(vm, vcpu);
	}
}

static void end_exit(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, uint32_t flags)
{
	if (!vcpu->exit.open)
		return;
	pt_vm_host_end(vm, vcpu);
	/* The guest run before it is written first: the VM exit has its number. */
	if (vcpu->run.ended)
		vcpu->exit.record.exit_uncertainty_tsc = vcpu->run.record.exit_uncertainty_tsc;
	write_run(vm, vcpu);
	vcpu->exit.record.flags |= flags;
	vcpu->exit.open = false;
	vcpu->exit.last = vcpu->exit.record;
	vcpu->exit.last_ended = true;
	vcpu->exit.last_reason = vcpu->host.instruction.reason;
	vcpu->exit.last_next_ip = vcpu->host.instruction.handed ? vcpu->host.instruction.next_ip : 0;
	if (flags & PTR_VM_END_UNSEEN) {
		stop_waiting(vm, vcpu);
		write_exit(vm, vcpu, 0);
	}
}

/* Nothing is known of the vCPU any more. */
static void close_vcpu(struct pt_vm *vm, struct pt_vm_vcpu *vcpu)
{
	end_run(vm, vcpu, PTR_VM_END_UNSEEN);
	end_exit(vm, vcpu, PTR_VM_END_UNSEEN);
	write_run(vm, vcpu);
	write_handed(vm, vcpu, 0);
	stop_waiting(vm, vcpu);
	vcpu->place = PT_VM_NOWHERE;
	vcpu->on_cpu.leaving = vcpu->uncounted.cycles = false;
	vcpu->on_cpu.off_tsc = PTR_NO_TSC;
	vcpu->early.any = vcpu->nested.next = false;
	vcpu->injected = PTR_UNKNOWN;
	if (vcpu->stream)
		vcpu->stream->vcpu = NULL;
	vcpu->stream = NULL;
}

void pt_vm_close_all(struct pt_vm *vm)
{
	for (struct pt_vm_vcpu *vcpu = vm->vcpu_list; vcpu; vcpu = vcpu->next)
		close_vcpu(vm, vcpu);
}

void pt_vm_gap(struct pt_vm *vm, struct pt_vm_stream *st)
{
	st->in_gap = true;
	st->bounds.open = false;
	pt_vm_event_trace_reset(st);
	if (st->vcpu)
		close_vcpu(vm, st->vcpu);
}

/* ---- Transitions ----------------------------------------------------------------------------------- */

/* The VM exit interval before a VM entry ends with it. An exit that was not seen has no record: the guest run
 * that begins says all that is known. */
static void end_exit_at_entry(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, const struct pt_vm_stream *st,
			      const struct pt_vm_transition *t, uint32_t flags)
{
	struct ptr_vmexit *r = &vcpu->exit.record;

	if (!vcpu->exit.open) {
		/* A sample that came before is of the exit that was not seen. */
		vcpu->early.any &= vcpu->early.sample.tsc > t->tsc;
		return;
	}
	pt_vm_count_host(vcpu, t->insns, t->cycles, t->has_cyc);
	pt_vm_host_pause(vcpu, t->tsc);
	if (vcpu->uncounted.insns)
		r->host_insns = PTR_UNKNOWN;
	if (vcpu->uncounted.cycles)
		r->host_cycles = PTR_UNKNOWN;
	r->entry_tsc = pt_vm_record_tsc(t->tsc);
	r->entry_cpu = st->s->cpu;
	r->entry_branch = st->s->last_branch;
	r->injected = vcpu->injected;
	if (r->exit_cpu >= 0 && r->exit_cpu != st->s->cpu)
		r->flags |= PTR_VM_MIGRATED;
	end_exit(vm, vcpu, flags);
}

static void on_entry(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, struct pt_vm_stream *st,
		     const struct pt_flow *f, const struct pt_vm_transition *t)
{
	uint32_t concealed = t->concealed ? PTR_VM_CONCEALED : 0;
	bool nested = vcpu->nested.next; /* close_vcpu() forgets it */
	struct ptr_guest_run *r = &vcpu->run.record;

	if (vcpu->place == PT_VM_IN_GUEST) /* its exit was not seen, or it is another guest's */
		close_vcpu(vm, vcpu);
	end_exit_at_entry(vm, vcpu, st, t, concealed);
	vcpu->nested.now = vcpu->nested.next = nested;
	if (vcpu->nested.now)
		write_handed(vm, vcpu, t->guest_ip);
	begin_run(vcpu, st);
	r->injected = vcpu->injected;
	vcpu->injected = PTR_UNKNOWN;
	r->entry_tsc = pt_vm_record_tsc(t->tsc);
	r->entry_ip = t->guest_ip;
	r->entry_branch = st->s->last_branch;
	r->cr3 = t->cr3 ? t->cr3 : PTR_UNKNOWN;
	r->flags |= concealed | (vcpu->nested.now ? PTR_VM_NESTED : 0);
	vcpu->run.entry_insns = t->insns;
	vcpu->run.entry_cycles = t->cycles;
	vcpu->uncounted.insns = !pt_flow_follows(f);
	vcpu->uncounted.cycles = false;
	pt_vm_come_on(vcpu, st, t->insns, t->cycles);
	wait(st, &r->entry_uncertainty_tsc, r->entry_tsc, f);
}

/* The guest run before a VM exit ends with it. */
static void end_run_at_exit(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, const struct pt_vm_stream *st,
			    const struct pt_vm_transition *t, uint32_t flags)
{
	struct ptr_guest_run *r = &vcpu->run.record;

	if (!vcpu->run.open) {
		begin_run(vcpu, st);
		r->flags |= PTR_VM_BEGIN_UNSEEN;
	} else if (!t->concealed && t->guest_ip) {
		if (!vcpu->uncounted.insns && !(t->no_code && t->insns == vcpu->run.entry_insns))
			r->insn_count = t->insns - vcpu->run.entry_insns;
		if (t->has_cyc)
			r->cyc_count = t->cycles - vcpu->run.entry_cycles;
	}
	if (vcpu->exit.last_ended)
		vcpu->exit.last.entry_uncertainty_tsc = r->entry_uncertainty_tsc;
	r->exit_tsc = pt_vm_record_tsc(t->tsc);
	r->exit_ip = t->guest_ip;
	r->exit_branch = st->s->last_branch;
	end_run(vm, vcpu, flags);
}

/* Who was left, and in which code. */
static void note_guest(struct pt_vm *vm, struct ptr_vmexit *r, const struct pt_vm_stream *st,
		       const struct pt_flow *f, const struct pt_vm_transition *t)
{
	struct pt_task *task = st->s->task;
	const struct pt_code *code = t->guest_ip >> 63 ? pt_flow_kernel_code(f) : pt_flow_user_code(f);

	r->guest_cr3 = t->cr3 ? t->cr3 : PTR_UNKNOWN;
	if (!vm->emit->definitions)
		return;
	if (task && task->pid >= 0)
		r->guest_thread = pt_emit_thread(vm->emit, task);
	if (t->guest_ip && code) {
		r->guest_symbol = pt_emit_place(vm->emit, code->space, t->guest_ip);
		r->guest_dso = pt_emit_dso(vm->emit, code->space, t->guest_ip);
	}
}

/* The nested guest was left at an instruction that always exits: perhaps it was that. */
static void note_instruction(struct pt_vm_vcpu *vcpu, const struct pt_flow *f, uint64_t guest_ip)
{
	const struct pt_code *code = guest_ip >> 63 ? pt_flow_kernel_code(f) : pt_flow_user_code(f);
	uint8_t bytes[3];
	unsigned length;

	if (vcpu->nested.now && guest_ip && code &&
	    pt_vm_exit_instruction(bytes, img_space_read(code->space, guest_ip, bytes, sizeof bytes),
				   &vcpu->host.instruction.reason, &length))
		vcpu->host.instruction.next_ip = guest_ip + length;
}

static void on_exit_seen(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, struct pt_vm_stream *st,
			 const struct pt_flow *f, const struct pt_vm_transition *t)
{
	uint32_t concealed = t->concealed || !t->host_ip ? PTR_VM_CONCEALED : 0;
	struct ptr_vmexit *r = &vcpu->exit.record;

	if (vcpu->place == PT_VM_IN_HOST) /* its entry was not seen */
		close_vcpu(vm, vcpu);
	end_run_at_exit(vm, vcpu, st, t, concealed);
	vcpu->uncounted.insns = false;
	begin_exit(vcpu);
	r->exit_cpu = st->s->cpu;
	r->exit_tsc = pt_vm_record_tsc(t->tsc);
	r->guest_ip = t->guest_ip;
	r->exit_branch = st->s->last_branch;
	note_guest(vm, r, st, f, t);
	note_instruction(vcpu, f, t->guest_ip);
	r->flags |= concealed | (vcpu->nested.now ? PTR_VM_NESTED : 0);
	pt_vm_apply_reasons(vcpu, st);
	pt_vm_come_on(vcpu, st, t->insns, t->cycles);
	wait(st, &vcpu->run.record.exit_uncertainty_tsc, r->exit_tsc, f);
}

/* The stream's CPU is now the vCPU's: it is on no other one, and no other one is on it. */
static void take_cpu(struct pt_vm *vm, struct pt_vm_stream *st, struct pt_vm_vcpu *vcpu)
{
	if (st->vcpu && st->vcpu != vcpu) {
		if (st->vcpu->place == PT_VM_IN_GUEST)
			close_vcpu(vm, st->vcpu);
		else
			st->vcpu->stream = NULL;
		st->vcpu = NULL;
	}
	if (vcpu->stream && vcpu->stream != st)
		close_vcpu(vm, vcpu);
}

void pt_vm_transition(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f,
		      const struct pt_vm_transition *t)
{
	struct pt_vm_vcpu *vcpu = vcpu_of(vm, st->s->host_task, t->vmcs);

	st->in_gap = false;
	st->flow = f;
	if (!vcpu)
		return;
	take_cpu(vm, st, vcpu);
	pt_vm_identify(vm, vcpu, st->s->machine && st->s->machine->pid ? st->s->machine : vcpu->machine,
		       vcpu_number(vm, st->s));
	if (t->entry)
		vcpu->nested.next = pt_vm_enters_nested(vm, vcpu, t->vmcs);
	else if (t->vmcs != PT_VMCS_UNKNOWN)
		vcpu->nested.now = vcpu->nested.vmcs == t->vmcs;
	if (t->entry && t->vmcs != PT_VMCS_UNKNOWN)
		pt_vm_use_vmcs(vm, t->vmcs, vcpu, pt_vm_record_tsc(t->tsc));
	vcpu->vmcs = t->vmcs;
	if (t->entry)
		on_entry(vm, vcpu, st, f, t);
	else
		on_exit_seen(vm, vcpu, st, f, t);
	pt_vm_event_trace_reset(st);
}
