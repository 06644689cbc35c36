/* schedule.c - a vCPU's thread leaves its CPU and comes back, in a VM exit interval; see internal.h. */
#include "decode/vm/internal.h"

static struct pt_vm_vcpu *vcpu_of(const struct pt_vm *vm, const struct pt_task *task)
{
	struct pt_vm_vcpu *vcpu = vm->vcpu_list;

	while (vcpu && vcpu->task != task)
		vcpu = vcpu->next;
	return vcpu;
}

void pt_vm_come_on(struct pt_vm_vcpu *vcpu, struct pt_vm_stream *st, uint64_t insns, uint64_t cycles)
{
	vcpu->stream = st;
	st->vcpu = vcpu;
	vcpu->on_cpu.insns = insns;
	vcpu->on_cpu.cycles = cycles;
	vcpu->on_cpu.off_tsc = PTR_NO_TSC;
}

static void come_on(struct pt_vm_vcpu *vcpu, struct pt_vm_stream *st, const struct pt_flow *f)
{
	pt_vm_come_on(vcpu, st, pt_flow_counts(f)->insns, pt_flow_clock(f)->cyc);
}

static void add(uint64_t *sum, uint64_t n)
{
	*sum = (*sum == PTR_UNKNOWN ? 0 : *sum) + n;
}

void pt_vm_count_host(struct pt_vm_vcpu *vcpu, uint64_t insns, uint64_t cycles, bool has_cyc)
{
	if (!vcpu->exit.open)
		return;
	add(&vcpu->exit.record.host_insns, insns - vcpu->on_cpu.insns);
	if (has_cyc)
		add(&vcpu->exit.record.host_cycles, cycles - vcpu->on_cpu.cycles);
	vcpu->on_cpu.insns = insns;
	vcpu->on_cpu.cycles = cycles;
}

/* The stream's vCPU is not on its CPU any more, since tsc. */
static void go_off(struct pt_vm_stream *st, const struct pt_flow *f, uint64_t tsc)
{
	struct pt_vm_vcpu *vcpu = st->vcpu;

	pt_vm_count_host(vcpu, pt_flow_counts(f)->insns, pt_flow_clock(f)->cyc, pt_flow_has_cyc(f));
	pt_vm_host_pause(vcpu, tsc == PTR_NO_TSC ? PT_CLOCK_UNKNOWN : tsc);
	vcpu->exit.record.flags |= PTR_VM_SCHEDULED_OUT;
	vcpu->on_cpu.off_tsc = tsc;
	vcpu->stream = NULL;
	st->vcpu = NULL;
}

/* It was off its CPU from since_tsc to tsc. */
static void add_off(struct pt_vm_vcpu *vcpu, uint64_t since_tsc, uint64_t tsc)
{
	uint64_t *off = &vcpu->exit.record.off_cpu_tsc;

	if (since_tsc == PTR_NO_TSC || tsc == PTR_NO_TSC || *off == PTR_UNKNOWN)
		*off = PTR_UNKNOWN;
	else if (tsc > since_tsc)
		*off += tsc - since_tsc;
}

/* A vCPU that was leaving the stream's CPU has left it: its thread's successor is there. */
static void finish_leaving(struct pt_vm_stream *st, const struct pt_flow *f,
			   const struct pt_vm_vcpu *successor)
{
	const struct pt_vm_vcpu *vcpu = st->vcpu;

	if (vcpu && vcpu != successor && vcpu->on_cpu.leaving && vcpu->place == PT_VM_IN_HOST)
		go_off(st, f, vcpu->on_cpu.leaving_tsc);
}

void pt_vm_moved(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f,
		 const struct pt_task *task, bool left, uint64_t tsc)
{
	struct pt_vm_vcpu *vcpu = vcpu_of(vm, task);

	if (left) {
		if (vcpu) {
			vcpu->on_cpu.leaving = true;
			vcpu->on_cpu.leaving_tsc = tsc;
		}
		return;
	}
	finish_leaving(st, f, vcpu);
	if (!vcpu || !vcpu->on_cpu.leaving)
		return;
	vcpu->on_cpu.leaving = false;
	if (vcpu->place != PT_VM_IN_HOST || (st->vcpu && st->vcpu != vcpu))
		return;
	vcpu->exit.record.flags |= PTR_VM_SCHEDULED_OUT;
	if (vcpu->stream == st) {
		add_off(vcpu, vcpu->on_cpu.leaving_tsc, tsc);
		return;
	}
	if (vcpu->stream)
		go_off(vcpu->stream, vcpu->stream->flow, vcpu->on_cpu.leaving_tsc);
	add_off(vcpu, vcpu->on_cpu.off_tsc, tsc);
	come_on(vcpu, st, f);
	/* What it has executed here before this record came was not counted as its own. */
	vcpu->uncounted.insns = vcpu->uncounted.cycles = true;
}

void pt_vm_switched(struct pt_vm *vm, struct pt_vm_stream *st, const struct pt_flow *f, uint64_t tsc)
{
	const struct pt_task *task = st->s->host_task;
	struct pt_vm_vcpu *vcpu = st->vcpu;

	/* Where the switch itself is traced, the flow has its time. While nothing is, as of threads that are
	 * not selected, the flow's clock stands still, and the sideband's time is the better one. */
	if (pt_flow_state(f) >= PT_FLOW_NO_IMAGE && pt_flow_tsc(f) != PT_CLOCK_UNKNOWN)
		tsc = pt_flow_tsc(f);
	if (vcpu && vcpu->task == task)
		return;
	/* In a guest the host's threads are not switched: the VM exit is still to be decoded, and this record
	 * is early. */
	if (vcpu && vcpu->place == PT_VM_IN_GUEST)
		return;
	if (vcpu) {
		struct ptr_vmexit *r = &vcpu->exit.record;

		if (!vcpu->on_cpu.leaving && !r->stolen_by && task && task->tid > 0)
			r->stolen_by = pt_vm_thread_number(vm, task);
		go_off(st, f, vcpu->on_cpu.leaving ? vcpu->on_cpu.leaving_tsc : tsc);
	}
	vcpu = task ? vcpu_of(vm, task) : NULL;
	if (!vcpu || vcpu->place != PT_VM_IN_HOST || vcpu->stream)
		return;
	if (st->in_gap)
		vcpu->exit.record.flags |= PTR_VM_GAP;
	add_off(vcpu, vcpu->on_cpu.off_tsc, tsc);
	vcpu->on_cpu.leaving = false;
	come_on(vcpu, st, f);
}
