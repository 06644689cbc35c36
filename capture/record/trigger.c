/* trigger.c - see trigger.h. */
#include "capture/record/trigger.h"

#include <stdlib.h>
#include <string.h>

int hw_trigger_parse(struct hw_trigger *t, const char *text, struct pt_error *e)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	double value;
	char *end;

	memset(t, 0, sizeof *t);
	if (strcmp(text, "exit") == 0) {
		t->kind = HW_TRIGGER_EXIT;
		return 0;
	}
	if (strncmp(text, "vmexit>", 7) == 0) {
		value = strtod(text + 7, &end);
		for (size_t i = 0; end != text + 7 && value > 0 && i < sizeof units / sizeof *units; i++) {
			if (strcmp(end, units[i].name) != 0 || value * units[i].ns > 1e15)
				continue;
			t->kind = HW_TRIGGER_VMEXIT;
			t->longer_than_ns = (uint64_t)(value * units[i].ns);
			return 0;
		}
	} else if (strchr(text, ':') && strlen(text) < sizeof t->tracepoint) {
		t->kind = HW_TRIGGER_TRACEPOINT;
		strcpy(t->tracepoint, text);
		return 0;
	}
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
		       "--trigger %s: it can be vmexit>100us, SYSTEM:NAME or exit", text);
}

size_t hw_trigger_tracepoints(const struct hw_trigger *t, const char *ret[2])
{
	switch (t->kind) {
	case HW_TRIGGER_VMEXIT:
		ret[0] = "kvm:kvm_entry";
		ret[1] = "kvm:kvm_exit";
		return 2;
	case HW_TRIGGER_TRACEPOINT: ret[0] = t->tracepoint; return 1;
	default: return 0;
	}
}

/* Where a thread is, or has room, in t->vcpus; HW_TRIGGER_VCPUS: it is not there and all is taken. */
static size_t vcpu_of(const struct hw_trigger *t, int32_t tid)
{
	size_t at = (size_t)tid % HW_TRIGGER_VCPUS;

	for (size_t n = 0; n < HW_TRIGGER_VCPUS; n++) {
		if (!t->vcpus[at].tid || t->vcpus[at].tid == tid)
			return at;
		at = (at + 1) % HW_TRIGGER_VCPUS;
	}
	return HW_TRIGGER_VCPUS;
}

bool hw_trigger_sample(struct hw_trigger *t, const char *tracepoint, int32_t tid, uint64_t time_ns)
{
	uint64_t exit_ns;
	size_t at;

	if (t->kind == HW_TRIGGER_TRACEPOINT)
		return strcmp(tracepoint, t->tracepoint) == 0 && time_ns >= t->armed_ns;
	if (t->kind != HW_TRIGGER_VMEXIT || tid <= 0)
		return false;
	at = vcpu_of(t, tid);
	if (at == HW_TRIGGER_VCPUS)
		return false;
	if (strcmp(tracepoint, "kvm:kvm_exit") == 0) {
		t->vcpus[at].tid = tid;
		t->vcpus[at].exit_ns = time_ns;
		return false;
	}
	exit_ns = t->vcpus[at].exit_ns;
	if (strcmp(tracepoint, "kvm:kvm_entry") != 0 || t->vcpus[at].tid != tid || !exit_ns)
		return false;
	t->vcpus[at].exit_ns = 0;
	return time_ns - exit_ns > t->longer_than_ns && exit_ns >= t->armed_ns;
}
