/* vm.c - see vm.h. */
#include "decode/vm/vm.h"

#include <stdlib.h>

#include "decode/vm/internal.h"

struct pt_vm *pt_vm_create(struct pt_emit *emit, const struct pt_vcpus *vcpus,
			   const struct pt_vm_options *options, uint64_t tolerance, uint64_t host_khz)
{
	struct pt_vm *vm = calloc(1, sizeof *vm);

	if (!vm)
		return NULL;
	vm->emit = emit;
	vm->vcpus = vcpus;
	vm->clocks = pt_vm_clocks_create(tolerance, host_khz);
	vm->bounded_clocks = pt_vm_clocks_create(tolerance, host_khz);
	if (!vm->clocks || !vm->bounded_clocks || (options && pt_vm_options_apply(options, vm->clocks) < 0) ||
	    pt_vcpus_apply_all(vcpus, vm->clocks) < 0) {
		pt_vm_destroy(vm);
		return NULL;
	}
	return vm;
}

void pt_vm_destroy(struct pt_vm *vm)
{
	if (!vm)
		return;
	while (vm->vcpu_list) {
		struct pt_vm_vcpu *vcpu = vm->vcpu_list;

		vm->vcpu_list = vcpu->next;
		free(vcpu);
	}
	while (vm->streams) {
		struct pt_vm_stream *st = vm->streams;

		vm->streams = st->next;
		free(st);
	}
	pt_vm_clocks_destroy(vm->clocks);
	pt_vm_clocks_destroy(vm->bounded_clocks);
	free(vm->roles.items);
	free(vm->owners.items);
	free(vm->uses.items);
	free(vm->writes.items);
	free(vm);
}

struct pt_vm_clocks *pt_vm_clocks_of(struct pt_vm *vm)
{
	return vm->clocks;
}

bool pt_vm_slowest_exit(const struct pt_vm *vm, uint64_t *ret_exit_tsc, uint64_t *ret_entry_tsc)
{
	*ret_exit_tsc = vm->slowest.exit_tsc;
	*ret_entry_tsc = vm->slowest.entry_tsc;
	return vm->slowest.entry_tsc != 0;
}

void pt_vm_finish(struct pt_vm *vm)
{
	pt_vm_close_all(vm);
	pt_vm_put_clocks(vm);
}

void pt_vm_no_memory(struct pt_vm *vm)
{
	pt_emit_no_memory(vm->emit, "virtual machines");
}

uint32_t pt_vm_thread_number(struct pt_vm *vm, const struct pt_task *task)
{
	return task ? pt_emit_thread(vm->emit, (struct pt_task *)task) : 0;
}

/* NULL: no memory, emit has failed. */
static struct pt_vm_stream *stream_of(struct pt_vm *vm, struct pt_emit_stream *s)
{
	struct pt_vm_stream *st = s->vm_stream;

	s->runs_wanted = true;
	if (st)
		return st;
	st = calloc(1, sizeof *st);
	if (!st) {
		pt_vm_no_memory(vm);
		return NULL;
	}
	st->s = s;
	st->bounds.host_tsc = PT_CLOCK_UNKNOWN;
	pt_vm_event_trace_reset(st);
	st->next = vm->streams;
	vm->streams = st;
	s->vm_stream = st;
	return st;
}

/* ---- Events ----------------------------------------------------------------------------------------- */

static void transition(void *arg, struct pt_emit_stream *s, const struct pt_flow *f,
		       const struct pt_vm_transition *t)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = stream_of(vm, s);

	if (!st || vm->emit->failed)
		return;
	pt_vm_settle_uncertainty(st, pt_flow_tsc(f));
	if (t->entry && t->vmcs != PT_VMCS_UNKNOWN)
		pt_vm_clock_of(vm, s->host_task, t->vmcs);
	pt_vm_transition(vm, st, f, t);
}

static bool is_in_exit(const struct pt_vm_vcpu *vcpu)
{
	return vcpu && vcpu->exit.open && vcpu->place == PT_VM_IN_HOST;
}

/* Runs are wanted while something waits for them, or a vCPU is known; what begins that is always one of
 * the other events. */
static void runs(void *arg, struct pt_emit_stream *s, const struct pt_flow_run *r, uint32_t n)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = stream_of(vm, s);

	if (!st)
		return;
	st->in_gap = false;
	for (uint32_t i = 0; i < n && st->waiting.uncertainty; i++)
		pt_vm_settle_uncertainty(st, r[i].tsc);
	for (uint32_t i = 0; i < n && is_in_exit(st->vcpu); i++)
		pt_vm_host_path(vm, st->vcpu, &vm->emit->graph->paths[r[i].path], &r[i]);
	s->runs_wanted = st->waiting.uncertainty || st->vcpu;
}

static bool reads_runs(const void *arg, const struct pt_emit_stream *s)
{
	const struct pt_vm_stream *st = s->vm_stream;

	(void)arg;
	return st && (st->waiting.uncertainty || is_in_exit(st->vcpu));
}

static void recycled(void *arg)
{
	pt_vm_host_recycled(arg);
}

static void gap(void *arg, struct pt_emit_stream *s, const struct pt_flow *f)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = stream_of(vm, s);

	(void)f;
	if (st)
		pt_vm_gap(vm, st);
}

static void no_image(void *arg, struct pt_emit_stream *s, const struct pt_flow *f)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = stream_of(vm, s);

	if (!st || !st->vcpu)
		return;
	/* On the way into a guest that is not selected the VM exit was seen; only the guest run is not. */
	if (pt_flow_in_guest(f) && st->vcpu->place == PT_VM_IN_HOST)
		return;
	st->vcpu->uncounted.insns = true;
}

static void switched(void *arg, struct pt_emit_stream *s, const struct pt_flow *f, uint64_t tsc)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = stream_of(vm, s);

	if (!st)
		return;
	pt_vm_settle_uncertainty(st, pt_flow_tsc(f));
	pt_vm_switched(vm, st, f, tsc);
}

static void moved(void *arg, struct pt_emit_stream *s, const struct pt_flow *f, const struct pt_task *task,
		  bool left, uint64_t tsc)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = stream_of(vm, s);

	if (st)
		pt_vm_moved(vm, st, f, task, left, tsc);
}

static void event_trace(void *arg, struct pt_emit_stream *s, bool is_cfe, uint32_t type, uint64_t value)
{
	struct pt_vm_stream *st = stream_of(arg, s);

	if (st)
		pt_vm_event_trace(st, is_cfe, type, value);
}

static void host_tsc_seen(void *arg, struct pt_emit_stream *s, uint64_t tsc)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = stream_of(vm, s);

	if (st)
		pt_vm_host_tsc_seen(vm, st, tsc);
}

static uint64_t host_tsc(void *arg, struct pt_emit_stream *s, struct pt_flow *f,
			 const struct pt_tsc_packet *packet)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = stream_of(vm, s);

	return st ? pt_vm_host_tsc(vm, st, f, packet) : PT_CLOCK_UNKNOWN;
}

static bool nested(void *arg, struct pt_emit_stream *s, uint64_t vmcs)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = stream_of(vm, s);

	return st && st->vcpu && st->vcpu->task == s->host_task ? pt_vm_enters_nested(vm, st->vcpu, vmcs)
								: pt_vm_is_nested(vm, vmcs);
}

const struct pt_vm_events pt_vm_events = {.transition = transition,
					  .nested = nested,
					  .runs = runs,
					  .reads_runs = reads_runs,
					  .recycled = recycled,
					  .gap = gap,
					  .no_image = no_image,
					  .event_trace = event_trace,
					  .switched = switched,
					  .moved = moved,
					  .host_tsc = host_tsc,
					  .host_tsc_seen = host_tsc_seen,
					  .host_time = pt_vm_host_time};
