/*
 * vcpu.c - the flow has entered or left a guest: which vCPU of which VM is it?
 *
 * The vCPU is that of the host's thread that runs on the CPU. VMCS packets say which VMCS was entered,
 * whose owner is remembered: where the sideband names another thread, the switch to the owner may be a
 * little ahead. After lost bytes a PSB shows the guest before the clock is at its time: then the owner is asked
 * for, and not changed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/session/internal.h"
#include "schema/array.h"

/* The number of the vCPU whose thread it is, by META ("kvm.PID.VCPU.tid") or by QEMU's name for it. -1:
 * unknown. */
static int32_t vcpu_number(const struct session *s, const struct pt_task *task)
{
	const char *key, *value;
	char prefix[32], tid[16];
	int n = snprintf(prefix, sizeof prefix, "kvm.%" PRId32 ".", task->pid), number;

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
	return sscanf(task->comm, "CPU %d/KVM", &number) == 1 ? number : -1;
}

static struct vmcs_owner *owner_of(const struct session *s, uint64_t vmcs)
{
	for (size_t i = 0; i < s->vmcs_owner_count; i++)
		if (s->vmcs_owners[i].vmcs == vmcs)
			return &s->vmcs_owners[i];
	return NULL;
}

/* Whether the task has a VMCS. */
static bool owns_vmcs(const struct session *s, const struct pt_task *task)
{
	for (size_t i = 0; i < s->vmcs_owner_count; i++)
		if (task && s->vmcs_owners[i].task == task)
			return true;
	return false;
}

static void fail_no_memory(struct session *s)
{
	struct pt_error e;

	pt_fail_no_memory(&e, NULL);
	pt_session_fail(s, &e);
}

static void set_owner(struct session *s, const struct vmcs_owner *owner)
{
	struct vmcs_owner *known = owner_of(s, owner->vmcs);

	s->vmcs_owner_changes++;
	if (known)
		*known = *owner;
	else if (pt_array_grow(&s->vmcs_owners, s->vmcs_owner_count, &s->vmcs_owner_room, NULL) == 0)
		s->vmcs_owners[s->vmcs_owner_count++] = *owner;
	else
		fail_no_memory(s);
}

/* The vCPU that the stream's CPU has entered. NULL: it is not known which thread did; or there is no
 * memory, and the session has failed. */
static struct pt_cpu_context *entered_vcpu(struct stream *st)
{
	struct session *s = st->session;
	uint64_t vmcs = pt_flow_vmcs(st->flow);
	const struct vmcs_owner *owner;
	struct pt_machine *m;
	struct pt_cpu_context *vcpu;

	pt_session_switch_late(st, &st->cpu);
	owner = owner_of(s, vmcs);
	/* Of the threads that run when a PSB was sent nothing is known at the time before it. */
	if (owner && (owner->task == st->cpu.task || pt_flow_time_waits(st->flow)))
		return owner->vcpu;
	/* If no switch to the owner follows, the VMCS is another thread's now. */
	if (owner && pt_session_ahead_to_task(st, &st->cpu, owner->task))
		return owner->vcpu;
	/*
	 * A new VMCS, but the thread that runs by the sideband has another one, and was not switched
	 * to since: another thread runs. Where the flow sees the kernel switch threads, none has
	 * come: the thread has another VMCS itself, of a nested guest.
	 */
	if (!owner && vmcs != PT_VMCS_UNKNOWN && !pt_flow_time_waits(st->flow) && !s->host->code->switch_ip &&
	    owns_vmcs(s, st->cpu.task) && st->switch_vmcs != vmcs && !st->cpu.switches)
		pt_session_ahead_to_user_code(st, &st->cpu);
	if (!st->cpu.task)
		return owner ? owner->vcpu : NULL;
	m = pt_machine_get(s->machines, st->cpu.task->pid);
	vcpu = m ? pt_machine_cpu_context(m, vcpu_number(s, st->cpu.task)) : NULL;
	if (!vcpu)
		fail_no_memory(s);
	else if (vmcs != PT_VMCS_UNKNOWN && !pt_flow_time_waits(st->flow))
		set_owner(s, &(struct vmcs_owner){.vmcs = vmcs, .vcpu = vcpu, .task = st->cpu.task});
	return vcpu;
}

/* Whether it is a nested guest that was entered. */
static bool is_nested(struct stream *st)
{
	struct session *s = st->session;
	uint64_t vmcs = pt_flow_vmcs(st->flow);
	struct vmcs_owner *owner = owner_of(s, vmcs);
	bool nested = s->emit.vm && s->emit.vm->nested && s->emit.vm->nested(s->emit.vm_arg, &st->out, vmcs);

	if (owner && owner->nested != nested) {
		owner->nested = nested;
		s->vmcs_owner_changes++;
	}
	return nested;
}

static void enter_guest(struct stream *st)
{
	struct session *s = st->session;
	struct pt_cpu_context *vcpu = entered_vcpu(st);

	if (!vcpu) { /* some VM's */
		struct pt_machine *unknown = pt_machine_get(s->machines, -1);

		vcpu = unknown ? pt_machine_cpu_context(unknown, -1) : NULL;
	} else if (is_nested(st)) {
		vcpu = pt_cpu_context_nested(vcpu);
	}
	if (vcpu)
		st->cpu_context = vcpu;
	else
		fail_no_memory(s);
}

void pt_session_on_side(void *arg, struct pt_flow *f, const struct pt_vm_transition *transition)
{
	struct stream *st = arg;
	struct session *s = st->session;
	struct pt_error e;

	if (transition && transition->concealed)
		return;
	st->cpu_context = &st->cpu;
	if (pt_flow_in_guest(f))
		enter_guest(st);
	else if (!s->host->code->switch_ip)
		pt_session_switch_late(st, &st->cpu);
	pt_session_update_context(st);
	/* The entry may have shown the clock of a guest. */
	if (transition && transition->entry && pt_session_queue_waiting(s, false, &e) < 0)
		pt_session_fail(s, &e);
}
