/* test_event_list.c - capture/record/event_list.h: perf's lists of events, one or several -e. */
#include "capture/record/event_list.h"
#include "tests/unit/check.h"

/* Adds both texts, of which one may be NULL: what comes out, names behind the terms. */
static void is(const char *first, const char *second, const char *want)
{
	struct event_list l = {0};
	struct pt_error e = {0};
	char got[300];
	int r = event_list_add(&l, first, &e);

	if (r == 0 && second)
		r = event_list_add(&l, second, &e);
	snprintf(got, sizeof got, "%s", r ? "error" : l.terms ? l.terms : "-");
	for (size_t i = 0; i < l.name_count; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), " %s", l.names[i]);
	for (size_t i = 0; i < l.sampler_count; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), " [%s]", l.samplers[i]);
	if (l.dummy)
		snprintf(got + strlen(got), sizeof got - strlen(got), " dummy");
	check_case(strcmp(got, want) == 0, want, got);
	event_list_deinit(&l);
}

int main(void)
{
	is("cyc", NULL, "intel_pt/cyc/");
	is("cyc,mtc_period=3", NULL, "intel_pt/cyc,mtc_period=3/");
	is("cyc", "noretcomp", "intel_pt/cyc,noretcomp/");
	is("intel_pt/cyc,psb_period=0/u", NULL, "intel_pt/cyc,psb_period=0/u");
	is("intel_pt//u", "intel_pt/cyc/", "intel_pt/cyc/u");
	is("intel_pt/cyc/u,kvm:kvm_exit,sched:sched_switch", NULL,
	   "intel_pt/cyc/u kvm:kvm_exit sched:sched_switch");
	is("kvm:kvm_exit", "kvm:kvm_exit", "- kvm:kvm_exit");
	is("intel_pt/cyc,aux-action=start-paused/k", "kvm:kvm_entry",
	   "intel_pt/cyc,aux-action=start-paused/k kvm:kvm_entry");
	is("", NULL, "-");
	is("no-such-system:*", NULL, "error");
	is("intel_pt/", NULL, "intel_pt//");
	is("{intel_pt//u,branch-misses:u}", NULL, "intel_pt//u [branch-misses:u]");
	is("{intel_pt//u,branch-misses/aux-sample-size=8192/u}", NULL,
	   "intel_pt//u [branch-misses/aux-sample-size=8192/u]");
	is("intel_pt/cyc/", "cycles,r1c2,kvm:kvm_exit", "intel_pt/cyc/ kvm:kvm_exit [cycles] [r1c2]");
	is("intel_pt//u", "cpu_core/cycles,period=7/u,cpu/branches/",
	   "intel_pt//u [cpu_core/cycles,period=7/u] [cpu/branches/]");
	is("cpu-clock,cpu_atom/r1c2/", NULL, "- [cpu-clock] [cpu_atom/r1c2/]");
	is("intel_pt//,cpu/event=0xd1,umask=0x20,period=7/u", "cpu_core/cmask=1,event=60,inv/",
	   "intel_pt// [cpu/event=0xd1,umask=0x20,period=7/u] [cpu_core/cmask=1,event=60,inv/]");
	is("dummy:u", NULL, "- dummy");
	is("{}", "{intel_pt//}", "intel_pt//");
	return sum_up();
}
