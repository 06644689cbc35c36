/* vmcs.c - which vCPU a VMCS belongs to, and so which clock a guest has; see internal.h. */
#include "decode/vm/guest_tsc.h"
#include "decode/vm/internal.h"
#include "schema/array.h"

/* ---- Which vCPU has a VMCS -------------------------------------------------------------------------- */

void pt_vm_bind(struct pt_vm *vm, uint64_t vmcs, int32_t pid)
{
	if (pt_array_grow(&vm->owners.items, vm->owners.count, &vm->owners.room, NULL) < 0) {
		pt_vm_no_memory(vm);
		return;
	}
	vm->vmcs_changes++;
	vm->owners.items[vm->owners.count++] = (struct pt_vm_owner){.vmcs = vmcs, .pid = pid};
}

void pt_vm_identify(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, struct pt_machine *machine, int32_t number)
{
	vm->vmcs_changes += vcpu->machine != machine || vcpu->number != number;
	vcpu->machine = machine;
	vcpu->number = number;
}

/* KVM has freed it: it was another vCPU's before. */
static void take_from_others(struct pt_vm *vm, uint64_t vmcs, const struct pt_vm_vcpu *vcpu)
{
	for (struct pt_vm_vcpu *other = vm->vcpu_list; other; other = other->next) {
		if (other != vcpu && other->vmcs == vmcs) {
			other->vmcs = PT_VMCS_UNKNOWN;
			other->vmcs_used = false;
		}
		if (other != vcpu && other->nested.vmcs == vmcs)
			other->nested.vmcs = PT_VMCS_UNKNOWN;
	}
}

/* The clock of a VMCS gets what is known of the vCPU's offset, when it becomes the vCPU's at tsc. */
static void apply_known(struct pt_vm *vm, const struct pt_vm_vcpu *vcpu, struct pt_vm_clock *clock,
			uint64_t tsc)
{
	const struct pt_vcpu *v = vcpu->task ? pt_vcpus_by_tid(vm->vcpus, vcpu->task->tid) : NULL;
	int r;

	/* Its hypervisor has set another offset. */
	if (pt_vm_is_nested(vm, pt_vm_clock_vmcs(clock)))
		return;
	r = v ? pt_vcpu_apply(v, clock) : 0;

	for (size_t i = 0; i < vm->writes.count && !(v && v->begin.known) && r == 0; i++) {
		const struct pt_vm_write *write = &vm->writes.items[i];
		struct pt_vm_known known = {
		    .offset = write->offset, .frac_bits = PT_VM_RATIO_BITS, .source = PTR_CLOCK_TRACEPOINT};

		if (vcpu->task && write->pid == vcpu->task->pid && write->vcpu == vcpu->number)
			r = pt_vm_clock_know(clock, tsc, &known);
	}
	if (r < 0)
		pt_vm_no_memory(vm);
}

/* Its last use; NULL: none. */
static const struct pt_vm_use *last_use(const struct pt_vm *vm, uint64_t vmcs)
{
	for (size_t i = vm->uses.count; i-- > 0;)
		if (vm->uses.items[i].vmcs == vmcs)
			return &vm->uses.items[i];
	return NULL;
}

void pt_vm_use_vmcs(struct pt_vm *vm, uint64_t vmcs, struct pt_vm_vcpu *vcpu, uint64_t tsc)
{
	const struct pt_vm_use *last;
	struct pt_vm_clock *clock;
	size_t spans;
	bool is_first;

	if (vcpu->vmcs == vmcs && vcpu->vmcs_used)
		return;
	vcpu->vmcs_used = true;
	last = last_use(vm, vmcs);
	is_first = !last;
	if (last && last->vcpu == vcpu)
		return;
	if (pt_array_grow(&vm->uses.items, vm->uses.count, &vm->uses.room, NULL) < 0) {
		pt_vm_no_memory(vm);
		return;
	}
	vm->vmcs_changes++;
	vm->uses.items[vm->uses.count++] =
	    (struct pt_vm_use){.vmcs = vmcs, .from_tsc = is_first ? 0 : tsc, .vcpu = vcpu};
	clock = pt_vm_clocks_get(vm->clocks, vmcs);
	if (!clock) {
		pt_vm_no_memory(vm);
		return;
	}
	if (is_first || tsc == PTR_NO_TSC) {
		pt_vm_clock_spans(clock, &spans);
		if (!spans)
			apply_known(vm, vcpu, clock, 0);
		return;
	}
	take_from_others(vm, vmcs, vcpu);
	if (pt_vm_clock_restart(clock, tsc))
		apply_known(vm, vcpu, clock, tsc);
}

/* The vCPU that had the VMCS at tsc; NULL unknown. */
static const struct pt_vm_vcpu *user_at(const struct pt_vm *vm, uint64_t vmcs, uint64_t tsc)
{
	const struct pt_vm_vcpu *vcpu = NULL;

	for (size_t i = 0; i < vm->uses.count; i++) {
		const struct pt_vm_use *use = &vm->uses.items[i];

		if (use->vmcs == vmcs && (!vcpu || use->from_tsc <= tsc))
			vcpu = use->vcpu;
	}
	return vcpu;
}

/* ---- From guest to host ----------------------------------------------------------------------------- */

struct pt_vm_clock *pt_vm_clock_of(struct pt_vm *vm, const struct pt_task *thread, uint64_t vmcs)
{
	bool is_new = !pt_vm_clocks_find(vm->clocks, vmcs);
	struct pt_vm_clock *c = pt_vm_clocks_get(vm->clocks, vmcs);
	const struct pt_vcpu *v = thread ? pt_vcpus_by_tid(vm->vcpus, thread->tid) : NULL;

	if (!c || (is_new && v && !pt_vm_is_nested(vm, vmcs) && pt_vcpu_apply(v, c) < 0))
		pt_vm_no_memory(vm);
	else if (thread && pt_vcpus_have_vm(vm->vcpus, thread->pid))
		pt_vm_clock_confirm(c);
	return c;
}

void pt_vm_host_tsc_seen(struct pt_vm *vm, struct pt_vm_stream *st, uint64_t tsc)
{
	struct pt_vm_observation o = {
	    .guest_tsc = st->bounds.guest_tsc, .host_lo = st->bounds.host_lo, .host_hi = tsc};
	struct pt_vm_clock *c;

	st->bounds.host_tsc = tsc;
	if (!st->bounds.open)
		return;
	st->bounds.open = false;
	if (o.host_hi < o.host_lo)
		return;
	c = pt_vm_clocks_get(vm->bounded_clocks, st->bounds.vmcs);
	if (!c || pt_vm_clock_observe(c, &o) < 0)
		pt_vm_no_memory(vm);
}

/* The packet's host TSC lies between the last TSC packet in the host and the next. */
static void open_bounds(struct pt_vm_stream *st, const struct pt_flow *f, const struct pt_tsc_packet *packet)
{
	if (st->bounds.host_tsc == PT_CLOCK_UNKNOWN)
		return;
	st->bounds.open = true;
	st->bounds.vmcs = pt_flow_vmcs(f);
	st->bounds.guest_tsc = packet->tsc;
	st->bounds.host_lo = st->bounds.host_tsc;
}

/* A CPU's flow that is not in sync is before the packet's time, when another thread may have run. */
static bool is_thread_known(const struct pt_emit_stream *s, const struct pt_flow *f)
{
	return s->of_thread || pt_flow_state(f) >= PT_FLOW_DISABLED;
}

uint64_t pt_vm_host_tsc(struct pt_vm *vm, struct pt_vm_stream *st, struct pt_flow *f,
			const struct pt_tsc_packet *packet)
{
	bool thread_known = is_thread_known(st->s, f);
	struct pt_vm_clock *c = pt_vm_clock_of(vm, thread_known ? st->s->host_task : NULL, pt_flow_vmcs(f));
	uint64_t host;
	bool sure = false, known, wrong;

	if (!c)
		return PT_CLOCK_UNKNOWN;
	wrong = pt_vm_clock_contradicted(c) || (pt_vm_clock_assumed(c) && !thread_known);
	known = pt_vm_tsc_to_host(pt_flow_clock(f), wrong ? NULL : c, packet, &host, &sure);
	if (!sure)
		open_bounds(st, f, packet);
	if (!known)
		return PT_CLOCK_UNKNOWN;
	if (sure) {
		struct pt_vm_observation o = {.guest_tsc = packet->tsc, .host_lo = host, .host_hi = host};
		uint64_t changes = pt_vm_clocks_changes(vm->clocks);

		if (pt_vm_clock_observe(c, &o) < 0)
			pt_vm_no_memory(vm);
		/* The times of the guest's sideband are computed anew before the flow continues. */
		if (changes != pt_vm_clocks_changes(vm->clocks))
			pt_flow_set_stop(f, 0);
	}
	return host;
}

/* How likely it is that a VMCS is a vCPU's, from what its uses and owner say. */
enum fit {
	FIT_NO,
	FIT_UNKNOWN, /* nothing is known of the VMCS */
	FIT_OWNER,   /* known before the decode to be this machine's */
	FIT_MACHINE, /* another vCPU of this machine has used it */
	FIT_VCPU
};

static enum fit fit_of(const struct pt_vm *vm, uint64_t vmcs, const struct pt_machine *machine, int32_t vcpu)
{
	bool others = false;

	for (size_t i = vm->uses.count; i-- > 0;) {
		const struct pt_vm_vcpu *user = vm->uses.items[i].vcpu;

		if (vm->uses.items[i].vmcs != vmcs || !user->machine)
			continue;
		if (user->machine == machine)
			return user->number == vcpu ? FIT_VCPU : FIT_MACHINE;
		others = true;
	}
	if (others)
		return FIT_NO;
	for (size_t i = 0; i < vm->owners.count; i++)
		if (vm->owners.items[i].vmcs == vmcs)
			return vm->owners.items[i].pid == machine->pid ? FIT_OWNER : FIT_NO;
	return FIT_UNKNOWN;
}

uint64_t pt_vm_contradicted(const struct pt_vm *vm, const struct pt_machine *machine)
{
	const struct pt_vm_clock *c;

	for (size_t i = 0; (c = pt_vm_clocks_at(vm->clocks, i)); i++)
		if (pt_vm_clock_contradicted(c) && fit_of(vm, pt_vm_clock_vmcs(c), machine, -1) != FIT_NO)
			return pt_vm_clock_contradicted(c);
	return 0;
}

/* The host TSC by what META says of the vCPU alone. */
static bool host_time_by_meta(const struct pt_vcpu *v, uint64_t guest_tsc, uint64_t *ret)
{
	struct pt_vm_clocks *clocks = pt_vm_clocks_create(0, 0);
	struct pt_vm_clock *clock = clocks ? pt_vm_clocks_get(clocks, 0) : NULL;
	bool known =
	    clock && pt_vcpu_apply(v, clock) == 0 && pt_vm_clock_to_host(clock, guest_tsc, PTR_NO_TSC, ret);

	pt_vm_clocks_destroy(clocks);
	return known;
}

bool pt_vm_host_time(void *arg, struct pt_machine *machine, int32_t vcpu, uint64_t guest_tsc,
		     uint64_t after_tsc, uint64_t *ret)
{
	struct pt_vm *vm = arg;
	const struct pt_vcpu *v = pt_vcpus_by_number(vm->vcpus, machine->pid, vcpu);
	const struct pt_vm_clock *c, *best = NULL;
	enum fit fit, best_fit = FIT_NO;

	if (guest_tsc == PTR_NO_TSC)
		return false;
	for (size_t i = 0; (c = pt_vm_clocks_at(vm->clocks, i)); i++) {
		fit = fit_of(vm, pt_vm_clock_vmcs(c), machine, vcpu);
		if (fit > best_fit && pt_vm_clock_settled(c) && !pt_vm_is_nested(vm, pt_vm_clock_vmcs(c))) {
			best = c;
			best_fit = fit;
		}
	}
	if (best_fit < FIT_MACHINE && v && v->begin.known && host_time_by_meta(v, guest_tsc, ret))
		return true;
	if (!best)
		best = pt_vm_clocks_any(vm->clocks);
	return pt_vm_clock_to_host_after(best, guest_tsc, after_tsc, ret);
}

uint64_t pt_vm_times_known(const struct pt_vm *vm)
{
	return vm->vmcs_changes ^ pt_vm_clocks_known(vm->clocks);
}

/* ---- Writes by KVM ---------------------------------------------------------------------------------- */

/* For a VMCS that the vCPU will have. */
static int note_write(struct pt_vm *vm, const struct pt_vm_offset_sample *sample)
{
	struct pt_vm_write *w;
	size_t i = 0;

	for (; i < vm->writes.count; i++) {
		w = &vm->writes.items[i];
		if (w->pid == sample->pid && w->vcpu == sample->vcpu)
			break;
	}
	if (i == vm->writes.count) {
		if (pt_array_grow(&vm->writes.items, vm->writes.count, &vm->writes.room, NULL) < 0)
			return -1;
		vm->writes.count++;
	}
	vm->writes.items[i] =
	    (struct pt_vm_write){.pid = sample->pid, .vcpu = sample->vcpu, .offset = sample->next};
	return 0;
}

/* The clock's offset changes from previous to next; its ratio does not change. */
static int change_offset(struct pt_vm_clock *clock, const struct pt_vm_offset_sample *sample)
{
	size_t n;
	const struct pt_vm_span *spans = pt_vm_clock_spans(clock, &n);
	struct pt_vm_known known = {.offset = sample->previous,
				    .ratio = n ? spans[n - 1].ratio : 0,
				    .frac_bits = PT_VM_RATIO_BITS,
				    .source = PTR_CLOCK_TRACEPOINT};

	if (!n && pt_vm_clock_know(clock, 0, &known) < 0)
		return -1;
	known.offset = sample->next;
	return pt_vm_clock_know(clock, sample->tsc, &known);
}

void pt_vm_wrote_tsc(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, uint64_t tsc)
{
	struct pt_vm_clock *clock;

	if (vcpu->vmcs == PT_VMCS_UNKNOWN || tsc == PT_CLOCK_UNKNOWN || vcpu->host.wrote_tsc)
		return;
	vcpu->host.wrote_tsc = true;
	clock = pt_vm_clocks_get(vm->clocks, vcpu->vmcs);
	if (clock)
		pt_vm_clock_written(clock, tsc);
}

void pt_vm_sample_tsc_offset(struct pt_vm *vm, const struct pt_vm_offset_sample *sample)
{
	if (note_write(vm, sample) < 0)
		pt_vm_no_memory(vm);
	for (struct pt_vm_vcpu *vcpu = vm->vcpu_list; vcpu; vcpu = vcpu->next) {
		struct pt_vm_clock *clock;

		if (!vcpu->task || vcpu->task->pid != sample->pid || vcpu->number != sample->vcpu ||
		    vcpu->vmcs == PT_VMCS_UNKNOWN)
			continue;
		clock = pt_vm_clocks_get(vm->clocks, vcpu->vmcs);
		if (!clock || change_offset(clock, sample) < 0)
			pt_vm_no_memory(vm);
	}
}

/* ---- Records ---------------------------------------------------------------------------------------- */

static void put_clock(struct pt_vm *vm, const struct pt_vm_clock *clock)
{
	size_t n;
	const struct pt_vm_span *span = pt_vm_clock_spans(clock, &n);
	uint64_t vmcs = pt_vm_clock_vmcs(clock), since_tsc;

	if (pt_vm_clock_gave_up(clock, &since_tsc))
		pt_emit_error(vm->emit, 0, -1, since_tsc, "clock",
			      "a guest's TSC offset has changed too often: from here on the guest's times "
			      "are not known");
	for (; n-- && !vm->emit->failed; span++) {
		const struct pt_vm_vcpu *vcpu = user_at(vm, vmcs, span->from_tsc);
		struct ptr_vm_clock r = {
		    .machine = vcpu && vcpu->machine ? pt_emit_machine(vm->emit, vcpu->machine) : 0,
		    .vcpu = vcpu ? vcpu->number : -1,
		    .vmcs = vmcs == PT_VMCS_UNKNOWN ? PTR_UNKNOWN : vmcs,
		    .from_tsc = span->from_tsc ? span->from_tsc : PTR_NO_TSC,
		    .offset = (uint64_t)span->offset,
		    .ratio = span->ratio == PT_VM_RATIO_ONE ? PTR_UNKNOWN : span->ratio,
		    .frac_bits = PT_VM_RATIO_BITS,
		    .source = span->source,
		    .observations = span->observations,
		    .worst_residual_tsc = span->observations ? span->worst_residual : PTR_UNKNOWN,
		    .slack_tsc = span->slack};

		pt_emit_put(vm->emit, ptr_put_vm_clock(vm->emit->writer, &r, &vm->emit->error));
	}
}

void pt_vm_put_clocks(struct pt_vm *vm)
{
	const struct pt_vm_clock *c;
	size_t n;

	for (size_t i = 0; (c = pt_vm_clocks_at(vm->clocks, i)); i++)
		put_clock(vm, c);
	for (size_t i = 0; (c = pt_vm_clocks_at(vm->bounded_clocks, i)); i++) {
		const struct pt_vm_clock *better = pt_vm_clocks_find(vm->clocks, pt_vm_clock_vmcs(c));

		if (better)
			pt_vm_clock_spans(better, &n);
		if (!better || !n)
			put_clock(vm, c);
	}
}
