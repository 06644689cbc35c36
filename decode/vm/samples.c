/* samples.c - what Event Trace and KVM's tracepoints say about VM exits and entries; see internal.h. */
#include "decode/vm/internal.h"

/* SDM vol. 3, "Control Flow Event (CFE) Packet", "Event Data (EVD) Packet". */
enum { CFE_INTR = 1, CFE_VMEXIT = 8, CFE_VMEXIT_INTR = 9 };
enum { EVD_QUALIFICATION = 1, EVD_REASON = 2 };

#define VECTOR_NMI 2
#define EXCEPTIONS 32 /* vectors below are exceptions' and the NMI's */

static uint64_t basic_reason(uint64_t raw_reason)
{
	return raw_reason == PTR_UNKNOWN ? PTR_UNKNOWN : raw_reason & 0xffff;
}

/* ---- Event Trace ------------------------------------------------------------------------------------ */

void pt_vm_event_trace_reset(struct pt_vm_stream *st)
{
	st->event_trace.exit = false;
	st->event_trace.reason = st->event_trace.qualification = st->event_trace.vector = PTR_UNKNOWN;
}

/* The guest run's entry has injected this, and so has the VM exit interval's that ended with it. */
static void set_injected(struct pt_vm_vcpu *vcpu, uint64_t intr_info)
{
	struct ptr_vmexit *last = &vcpu->exit.last;

	vcpu->run.record.injected = intr_info;
	if (vcpu->exit.last_ended && last->entry_tsc == vcpu->run.record.entry_tsc)
		last->injected = intr_info;
}

/*
 * An interrupt or exception that is delivered at a guest's first instruction, before anything was executed,
 * was injected by the VM entry. The packet has its vector only; the type follows from that.
 */
static void note_injection(struct pt_vm_vcpu *vcpu, const struct pt_flow *f, uint64_t vector)
{
	uint64_t type = vector == VECTOR_NMI  ? PT_VM_INFO_NMI
			: vector < EXCEPTIONS ? PT_VM_INFO_EXCEPTION
					      : 0;
	struct ptr_guest_run *run = &vcpu->run.record;

	if (vcpu->place == PT_VM_IN_GUEST && run->injected == PTR_UNKNOWN && f &&
	    !(run->flags & PTR_VM_BEGIN_UNSEEN) && pt_flow_counts(f)->insns == vcpu->run.entry_insns)
		set_injected(vcpu, PT_VM_INFO_VALID | type | vector);
}

void pt_vm_event_trace(struct pt_vm_stream *st, bool is_cfe, uint32_t type, uint64_t value)
{
	if (is_cfe && type == CFE_INTR && st->vcpu) {
		note_injection(st->vcpu, st->flow, value);
	} else if (is_cfe && (type == CFE_VMEXIT || type == CFE_VMEXIT_INTR)) {
		st->event_trace.exit = true;
		if (type == CFE_VMEXIT_INTR)
			st->event_trace.vector = value;
	} else if (!is_cfe && type == EVD_QUALIFICATION) {
		st->event_trace.qualification = value;
	} else if (!is_cfe && type == EVD_REASON) {
		st->event_trace.reason = value;
	}
}

/* ---- Tracepoints ------------------------------------------------------------------------------------ */

/* The VM exit gets what the sample of kvm_exit says. False: the sample is of another VM exit. */
static bool apply_sample(struct ptr_vmexit *r, const struct pt_vm_exit_sample *sample)
{
	bool has_vector = sample->intr_info != PTR_UNKNOWN && (sample->intr_info & PT_VM_INFO_VALID);

	if (sample->guest_rip && r->guest_ip && sample->guest_rip != r->guest_ip)
		return false;
	if (r->source == PTR_REASON_TRACEPOINT)
		return false; /* it has its own */
	r->operand = sample->operand;
	if (r->source == PTR_REASON_EVENT_TRACE) {
		if (r->qualification == PTR_UNKNOWN)
			r->qualification = sample->qualification;
		return true;
	}
	r->source = PTR_REASON_TRACEPOINT;
	r->raw_reason = sample->reason;
	r->reason = basic_reason(sample->reason);
	r->qualification = sample->qualification;
	r->vector = has_vector ? sample->intr_info & 0xff : PTR_UNKNOWN;
	return true;
}

void pt_vm_apply_reasons(struct pt_vm_vcpu *vcpu, const struct pt_vm_stream *st)
{
	struct ptr_vmexit *r = &vcpu->exit.record;

	if (st->event_trace.exit) {
		r->source = PTR_REASON_EVENT_TRACE;
		r->raw_reason = st->event_trace.reason;
		r->reason = basic_reason(st->event_trace.reason);
		r->qualification = st->event_trace.qualification;
		r->vector = st->event_trace.vector;
	}
	if (vcpu->early.any && apply_sample(r, &vcpu->early.sample))
		vcpu->early.any = false;
}

static struct pt_vm_vcpu *vcpu_by_tid(const struct pt_vm *vm, int32_t tid)
{
	for (struct pt_vm_vcpu *vcpu = vm->vcpu_list; vcpu; vcpu = vcpu->next)
		if (vcpu->task && vcpu->task->tid == tid)
			return vcpu;
	return NULL;
}

/* The sample is taken right after the VM exit. That is the present one; or the last one, which has just
 * ended; or, when the stream is decoded later than the sideband, the next one. */
void pt_vm_sample_exit(struct pt_vm *vm, const struct pt_vm_exit_sample *sample)
{
	struct pt_vm_vcpu *vcpu = vcpu_by_tid(vm, sample->tid);

	if (!vcpu)
		return;
	if (vcpu->exit.open && apply_sample(&vcpu->exit.record, sample))
		return;
	if (vcpu->exit.last_ended && sample->tsc <= vcpu->exit.last.entry_tsc &&
	    apply_sample(&vcpu->exit.last, sample))
		return;
	vcpu->early.sample = *sample;
	vcpu->early.any = true;
}

static bool is_of_reason(uint64_t raw_reason, const struct pt_vm_operand_sample *sample)
{
	uint64_t reason = basic_reason(raw_reason);

	return reason == sample->reasons[0] || reason == sample->reasons[1];
}

/*
 * The VM exit gets the operand if its kvm_exit was sampled (by which the reason is known), and not yet one.
 */
static bool apply_operand(struct ptr_vmexit *r, const struct pt_vm_operand_sample *sample)
{
	if (r->source != PTR_REASON_TRACEPOINT || !is_of_reason(r->raw_reason, sample) ||
	    r->operand != PTR_UNKNOWN || (r->exit_tsc != PTR_NO_TSC && sample->tsc < r->exit_tsc))
		return false;
	r->operand = sample->operand;
	return true;
}

/* MSRs with which a guest changes its TSC. */
static bool is_tsc_write(const struct pt_vm_operand_sample *sample)
{
	enum { IA32_TSC = 0x10, IA32_TSC_ADJUST = 0x3b };

	return sample->reasons[0] == PT_VM_EXIT_WRMSR &&
	       (sample->operand == IA32_TSC || sample->operand == IA32_TSC_ADJUST);
}

void pt_vm_sample_operand(struct pt_vm *vm, const struct pt_vm_operand_sample *sample)
{
	struct pt_vm_vcpu *vcpu = vcpu_by_tid(vm, sample->tid);

	if (!vcpu)
		return;
	if (is_tsc_write(sample))
		pt_vm_wrote_tsc(vm, vcpu, sample->tsc);
	if (vcpu->early.any) {
		if (is_of_reason(vcpu->early.sample.reason, sample))
			vcpu->early.sample.operand = sample->operand;
		return;
	}
	if (vcpu->exit.open)
		apply_operand(&vcpu->exit.record, sample);
	else if (vcpu->exit.last_ended && sample->tsc <= vcpu->exit.last.entry_tsc)
		apply_operand(&vcpu->exit.last, sample);
}

void pt_vm_sample_inject(struct pt_vm *vm, int32_t tid, uint64_t tsc, uint64_t intr_info)
{
	struct pt_vm_vcpu *vcpu = vcpu_by_tid(vm, tid);

	if (!vcpu)
		return;
	/* Of the entry that was just decoded; or, when the sideband is early, of the next one. */
	if (vcpu->run.open && vcpu->run.record.entry_tsc != PTR_NO_TSC && tsc <= vcpu->run.record.entry_tsc)
		set_injected(vcpu, intr_info);
	else
		vcpu->injected = intr_info;
}
