/* vm.c - the object, its clocks, and what tracepoints and Event Trace add; see vm.h. */
#include "decode/vm/vm.h"

#include <stdlib.h>
#include <string.h>

#include "decode/vm/internal.h"
#include "decode/vm/guest_tsc.h"

/* Event Trace, SDM "CFE packet", "EVD packet". */
enum { CFE_INTR = 1, CFE_VMEXIT = 8, CFE_VMEXIT_INTR = 9 };
enum { EVD_QUALIFICATION = 1, EVD_REASON = 2 };

struct pt_vm *pt_vm_create(struct pt_emit *emit, const struct pt_vcpus *vcpus,
			   const struct pt_vm_options *options, uint64_t tolerance, uint64_t host_khz)
{
	struct pt_vm *vm = calloc(1, sizeof *vm);

	if (!vm)
		return NULL;
	vm->emit = emit;
	vm->vcpus = vcpus;
	vm->clocks = pt_vm_clocks_create(tolerance, host_khz);
	if (!vm->clocks || (options && pt_vm_options_apply(options, vm->clocks) < 0) ||
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
	while (vm->cpus) {
		struct pt_vm_cpu *c = vm->cpus;

		vm->cpus = c->next;
		free(c);
	}
	while (vm->streams) {
		struct pt_vm_stream *st = vm->streams;

		vm->streams = st->next;
		free(st);
	}
	pt_vm_clocks_destroy(vm->clocks);
	free(vm->roles);
	free(vm->owners);
	free(vm->uses);
	free(vm->writes);
	free(vm);
}

struct pt_vm_clocks *pt_vm_clocks_of(struct pt_vm *vm)
{
	return vm->clocks;
}

void pt_vm_no_memory(struct pt_vm *vm)
{
	if (vm->emit->failed)
		return;
	vm->emit->failed = true;
	pt_fail_no_memory(&vm->emit->error, "virtual machines");
}

struct pt_vm_stream *pt_vm_stream_of(struct pt_vm *vm, struct pt_emit_stream *s)
{
	struct pt_vm_stream *st;

	for (st = vm->streams; st; st = st->next)
		if (st->s == s)
			return st;
	st = calloc(1, sizeof *st);
	if (!st) {
		pt_vm_no_memory(vm);
		return NULL;
	}
	st->s = s;
	st->reason = st->qualification = st->vector = PTR_UNKNOWN;
	st->next = vm->streams;
	vm->streams = st;
	return st;
}

void pt_vm_pass(struct pt_vm_stream *st, uint64_t now)
{
	if (!st->uncertainty || now == PT_CLOCK_UNKNOWN || now <= st->waiting_tsc)
		return;
	if (now < st->reach_tsc)
		now = st->reach_tsc;
	*st->uncertainty = now - st->waiting_tsc;
	st->uncertainty = NULL;
}

uint64_t pt_vm_reach(const struct pt_clock *c)
{
	if (c->tsc == PT_CLOCK_UNKNOWN)
		return c->tsc;
	/* And one, for a tick that has begun. */
	return c->anchor_tsc +
	       (uint64_t)(((unsigned __int128)(c->cyc - c->anchor_cyc) * c->tsc_per_cyc) >> 32) + 1;
}

/* ---- Clocks ----------------------------------------------------------------------------------------- */

static struct pt_vm_clock *clock_of(struct pt_vm *vm, const struct pt_emit_stream *s, uint64_t vmcs)
{
	const struct pt_vm_clock *known = pt_vm_clocks_find(vm->clocks, vmcs);
	struct pt_vm_clock *c = pt_vm_clocks_get(vm->clocks, vmcs);
	const struct pt_vcpu *v = s->host_task ? pt_vcpus_by_tid(vm->vcpus, s->host_task->tid) : NULL;

	if (!c || (!known && v && pt_vcpu_apply(v, c) < 0))
		pt_vm_no_memory(vm);
	return c;
}

static uint64_t host_tsc(void *arg, struct pt_emit_stream *s, struct pt_flow *f,
			 const struct pt_tsc_packet *packet)
{
	struct pt_vm *vm = arg;
	struct pt_vm_clock *c = clock_of(vm, s, pt_flow_vmcs(f));
	uint64_t host;
	bool sure;

	if (!c || !pt_vm_tsc_to_host(pt_flow_clock(f), pt_vm_clock_contradicted(c) ? NULL : c, packet, &host,
				     &sure))
		return PT_CLOCK_UNKNOWN;
	if (sure) {
		struct pt_vm_observation o = {.guest_tsc = packet->tsc, .host_lo = host, .host_hi = host};
		uint64_t changes = pt_vm_clocks_changes(vm->clocks);

		if (pt_vm_clock_observe(c, &o) < 0)
			pt_vm_no_memory(vm);
		/* The guest's sideband gets its times anew before the flow goes on. */
		if (changes != pt_vm_clocks_changes(vm->clocks))
			pt_flow_set_stop(f, 0);
	}
	return host;
}

void pt_vm_bind(struct pt_vm *vm, uint64_t vmcs, int32_t pid)
{
	struct pt_vm_owner *owners = realloc(vm->owners, (vm->owner_count + 1) * sizeof *owners);

	if (!owners) {
		pt_vm_no_memory(vm);
		return;
	}
	vm->owners = owners;
	owners[vm->owner_count++] = (struct pt_vm_owner){.vmcs = vmcs, .pid = pid};
}

/* How well a VMCS's clock fits for a vCPU of a machine: 0 not at all. */
static int fits(const struct pt_vm *vm, uint64_t vmcs, const struct pt_machine *machine, int32_t vcpu)
{
	bool others = false;

	for (size_t i = vm->use_count; i-- > 0;) {
		const struct pt_vm_cpu *c = vm->uses[i].cpu;

		if (vm->uses[i].vmcs != vmcs || !c->machine)
			continue;
		if (c->machine == machine)
			return c->vcpu == vcpu ? 4 : 3;
		others = true;
	}
	if (others)
		return 0;
	for (size_t i = 0; i < vm->owner_count; i++)
		if (vm->owners[i].vmcs == vmcs)
			return vm->owners[i].pid == machine->pid ? 2 : 0;
	return 1;
}

uint64_t pt_vm_contradicted(const struct pt_vm *vm, const struct pt_machine *machine)
{
	const struct pt_vm_clock *c;

	for (size_t i = 0; (c = pt_vm_clocks_at(vm->clocks, i)); i++)
		if (pt_vm_clock_contradicted(c) && fits(vm, pt_vm_clock_vmcs(c), machine, -1))
			return pt_vm_clock_contradicted(c);
	return 0;
}

static bool host_time(void *arg, struct pt_machine *machine, int32_t vcpu, uint64_t guest_tsc,
		      uint64_t after_tsc, uint64_t *ret)
{
	struct pt_vm *vm = arg;
	const struct pt_vcpu *v = pt_vcpus_by_number(vm->vcpus, machine->pid, vcpu);
	const struct pt_vm_clock *c, *best = NULL;
	int how, best_how = 0;

	if (guest_tsc == PTR_NO_TSC)
		return false;
	for (size_t i = 0; (c = pt_vm_clocks_at(vm->clocks, i)); i++) {
		how = fits(vm, pt_vm_clock_vmcs(c), machine, vcpu);
		if (how > best_how && pt_vm_clock_settled(c)) {
			best = c;
			best_how = how;
		}
	}
	if (best_how < 3 && v && v->has_offset) {
		struct pt_vm_clocks *told = pt_vm_clocks_create(0, 0);
		struct pt_vm_clock *clock = told ? pt_vm_clocks_get(told, 0) : NULL;
		bool known = clock && pt_vcpu_apply(v, clock) == 0 &&
			     pt_vm_clock_to_host(clock, guest_tsc, UINT64_MAX, ret);

		pt_vm_clocks_destroy(told);
		if (known)
			return true;
	}
	if (!best)
		best = pt_vm_clocks_any(vm->clocks);
	return pt_vm_clock_to_host_after(best, guest_tsc, after_tsc, ret);
}

/* ---- Events ----------------------------------------------------------------------------------------- */

static void transition(void *arg, struct pt_emit_stream *s, const struct pt_flow *f,
		       const struct pt_vm_transition *t)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = pt_vm_stream_of(vm, s);

	if (!st || vm->emit->failed)
		return;
	pt_vm_pass(st, pt_flow_tsc(f));
	if (t->entry && t->vmcs != PT_VMCS_UNKNOWN)
		clock_of(vm, s, t->vmcs);
	pt_vm_transition(vm, st, f, t);
}

static void runs(void *arg, struct pt_emit_stream *s, const struct pt_flow_run *r, uint32_t n,
		 uint64_t number)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = pt_vm_stream_of(vm, s);
	const struct pt_path *paths = vm->emit->graph->paths;

	if (!st)
		return;
	if (vm->emit->graph->edge_count < vm->edge_count && vm->role_count)
		memset(vm->roles, 0, vm->role_count * sizeof *vm->roles);
	vm->edge_count = vm->emit->graph->edge_count;
	st->in_gap = false;
	for (uint32_t i = n; i-- > 0;) {
		uint32_t count = vm->emit->graph->path_counts[r[i].path];

		if (count) {
			st->branch = (number + i) * PTR_RUN_BRANCHES + (uint64_t)count * r[i].repeats - 1;
			break;
		}
	}
	for (uint32_t i = 0; i < n && st->uncertainty; i++)
		pt_vm_pass(st, r[i].tsc);
	for (uint32_t i = 0; i < n && st->cpu && st->cpu->vmexit_open && st->cpu->place == PT_VM_IN_HOST; i++)
		pt_vm_host_path(vm, st->cpu, &paths[r[i].path], &r[i]);
}

static void gap(void *arg, struct pt_emit_stream *s, const struct pt_flow *f)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = pt_vm_stream_of(vm, s);

	(void)f;
	if (st)
		pt_vm_gap(vm, st);
}

static void no_image(void *arg, struct pt_emit_stream *s, const struct pt_flow *f)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = pt_vm_stream_of(vm, s);

	/* On the way into a guest that is not wanted, the stay is to come; the round trip was seen. */
	if (st && st->cpu && !(pt_flow_in_guest(f) && st->cpu->place == PT_VM_IN_HOST))
		st->cpu->no_image = true;
}

static void switched(void *arg, struct pt_emit_stream *s, const struct pt_flow *f)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = pt_vm_stream_of(vm, s);

	if (!st)
		return;
	pt_vm_pass(st, pt_flow_tsc(f));
	pt_vm_switched(vm, st, f);
}

static void moved(void *arg, struct pt_emit_stream *s, const struct pt_flow *f, const struct pt_task *task,
		  bool left, uint64_t tsc)
{
	struct pt_vm *vm = arg;
	struct pt_vm_stream *st = pt_vm_stream_of(vm, s);

	if (st)
		pt_vm_moved(vm, st, f, task, left, tsc);
}

/* An interrupt or exception at a guest's first instruction, before anything was executed: the entry has injected it. Of its type
 * the packet says nothing but the vector. */
static void injected(struct pt_vm_cpu *c, const struct pt_flow *f, uint64_t vector)
{
	uint64_t type = vector == 2 ? PT_VM_INFO_NMI : vector < 32 ? PT_VM_INFO_EXCEPTION : 0;

	if (c->place == PT_VM_IN_GUEST && c->has_held && c->held.injected == PTR_UNKNOWN &&
	    c->run.entry_tsc == c->held.entry_tsc && f && pt_flow_counts(f)->insns == c->run_insns)
		c->held.injected = PT_VM_INFO_VALID | type | vector;
}

static void event_trace(void *arg, struct pt_emit_stream *s, bool is_cfe, uint32_t type, uint64_t value)
{
	struct pt_vm_stream *st = pt_vm_stream_of(arg, s);

	if (!st)
		return;
	if (is_cfe && type == CFE_INTR && st->cpu) {
		injected(st->cpu, st->flow, value);
	} else if (is_cfe && (type == CFE_VMEXIT || type == CFE_VMEXIT_INTR)) {
		st->exit_reported = true;
		if (type == CFE_VMEXIT_INTR)
			st->vector = value;
	} else if (!is_cfe && type == EVD_QUALIFICATION) {
		st->qualification = value;
	} else if (!is_cfe && type == EVD_REASON) {
		st->reason = value;
	}
}

const struct pt_vm_events pt_vm_events = {.transition = transition,
					  .runs = runs,
					  .gap = gap,
					  .no_image = no_image,
					  .event_trace = event_trace,
					  .switched = switched,
					  .moved = moved,
					  .host_tsc = host_tsc,
					  .host_time = host_time};

/* ---- Samples ---------------------------------------------------------------------------------------- */

void pt_vm_sample_exit(struct pt_vm *vm, const struct pt_vm_exit_sample *sample)
{
	struct pt_vm_cpu *c = pt_vm_cpu_by_tid(vm, sample->tid);

	if (!c)
		return;
	/* The sample is taken right behind the exit: in the trip at hand, in the one that has just ended, or, where the
	 * stream's clock is behind, in the next one. */
	if (c->vmexit_open && pt_vmexit_sample(&c->vmexit, sample))
		return;
	if (c->has_held && sample->tsc <= c->held.entry_tsc && pt_vmexit_sample(&c->held, sample))
		return;
	c->early = *sample;
	c->has_early = true;
}

void pt_vm_sample_inject(struct pt_vm *vm, int32_t tid, uint64_t tsc, uint64_t intr_info)
{
	struct pt_vm_cpu *c = pt_vm_cpu_by_tid(vm, tid);

	if (!c)
		return;
	if (c->vmexit_open)
		c->injected = intr_info;
	else if (c->has_held && tsc <= c->held.entry_tsc)
		c->held.injected = intr_info;
	else
		c->injected = intr_info;
}

/* Remembered for a VMCS that is yet to be seen. */
static void remember(struct pt_vm *vm, int32_t pid, int32_t vcpu, int64_t offset)
{
	struct pt_vm_write *writes;
	size_t i = 0;

	while (i < vm->write_count && (vm->writes[i].pid != pid || vm->writes[i].vcpu != vcpu))
		i++;
	if (i == vm->write_count) {
		writes = realloc(vm->writes, (i + 1) * sizeof *writes);
		if (!writes) {
			pt_vm_no_memory(vm);
			return;
		}
		vm->writes = writes;
		vm->write_count++;
	}
	vm->writes[i] = (struct pt_vm_write){.pid = pid, .vcpu = vcpu, .offset = offset};
}

void pt_vm_sample_tsc_offset(struct pt_vm *vm, int32_t pid, int32_t vcpu, uint64_t tsc, int64_t previous,
			     int64_t next)
{
	remember(vm, pid, vcpu, next);
	for (struct pt_vm_cpu *c = vm->cpus; c; c = c->next) {
		struct pt_vm_clock *clock;
		const struct pt_vm_span *spans;
		size_t n;
		uint64_t ratio;

		if (!c->task || c->task->pid != pid || c->vcpu != vcpu || c->vmcs == PT_VMCS_UNKNOWN)
			continue;
		clock = pt_vm_clocks_get(vm->clocks, c->vmcs);
		if (!clock) {
			pt_vm_no_memory(vm);
			return;
		}
		spans = pt_vm_clock_spans(clock, &n);
		ratio = n ? spans[n - 1].ratio : 0;
		if ((!n && pt_vm_clock_know(clock, 0, previous, ratio, PT_VM_RATIO_BITS,
					    PTR_CLOCK_TRACEPOINT) < 0) ||
		    pt_vm_clock_know(clock, tsc, next, ratio, PT_VM_RATIO_BITS, PTR_CLOCK_TRACEPOINT) < 0)
			pt_vm_no_memory(vm);
	}
}

/* ---- The end ---------------------------------------------------------------------------------------- */

/* Whose the VMCS was when a span of its clock began; NULL: nobody's that is known. */
static const struct pt_vm_cpu *user_at(const struct pt_vm *vm, uint64_t vmcs, uint64_t tsc)
{
	const struct pt_vm_cpu *c = NULL;

	for (size_t i = 0; i < vm->use_count; i++)
		if (vm->uses[i].vmcs == vmcs && (!c || vm->uses[i].from_tsc <= tsc))
			c = vm->uses[i].cpu;
	return c;
}

static void put_clock(struct pt_vm *vm, const struct pt_vm_clock *clock)
{
	size_t n;
	const struct pt_vm_span *span = pt_vm_clock_spans(clock, &n);
	uint64_t vmcs = pt_vm_clock_vmcs(clock);

	for (; n-- && !vm->emit->failed; span++) {
		const struct pt_vm_cpu *c = user_at(vm, vmcs, span->from_tsc);
		struct ptr_vm_clock r = {
		    .machine = c && c->machine ? pt_emit_machine(vm->emit, c->machine) : 0,
		    .vcpu = c ? c->vcpu : -1,
		    .vmcs = vmcs == PT_VMCS_UNKNOWN ? PTR_UNKNOWN : vmcs,
		    .from_tsc = span->from_tsc ? span->from_tsc : PTR_NO_TSC,
		    .offset = (uint64_t)span->offset,
		    .ratio = span->ratio == PT_VM_RATIO_ONE ? PTR_UNKNOWN : span->ratio,
		    .frac_bits = PT_VM_RATIO_BITS,
		    .source = span->source,
		    .observations = span->observations,
		    .worst_residual_tsc = span->observations ? span->worst_residual : PTR_UNKNOWN};

		if (ptr_put_vm_clock(vm->emit->writer, &r, &vm->emit->error) < 0)
			vm->emit->failed = true;
	}
}

void pt_vm_finish(struct pt_vm *vm)
{
	const struct pt_vm_clock *c;

	pt_vm_close_all(vm);
	for (size_t i = 0; (c = pt_vm_clocks_at(vm->clocks, i)); i++)
		put_clock(vm, c);
}
