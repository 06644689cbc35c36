/*
 * mkvmrecords.c - writes a record stream of made-up virtual machines, and what is true of them, for
 * tests and for timing the queries.
 *
 *   mkvmrecords [--exits N] [--vcpus N] [--runs N] [--seed N] [--truth FILE] > stream
 *
 * The same options give the same bytes. One VM of N vCPUs, each on a CPU of its own: guest and host
 * take turns, and time goes on as they do. --runs: how many a guest run has. The truth is CSV
 * with a first column that says what a line is:
 *   exit,id,vcpu,reason,exit_tsc,entry_tsc,flags,host_insns,host_cycles,off_cpu_tsc,userspace_tsc,stolen_by,
 *        symbol
 *   guest_run,id,vcpu,entry_tsc,exit_tsc,flags,insns,cycles
 *   timer,vcpu,interrupt_tsc,handler_tsc        a host timer interrupt that the guest's handler was run for
 *   event,tsc,name
 * Unknown is empty.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/records.h"

enum { VCPUS_MAX = 16, PLACES = 40, BODY_EDGES = 16, THIEVES = 3, TIMER_VECTOR = 236 };

#define HOST_BASE  0xffffffff81000000u
#define GUEST_BASE 0xffffffff9a000000u

static struct {
	uint64_t exits, vcpus, runs, seed;
	const char *truth;
} opt = {.exits = 2000, .vcpus = 2, .runs = 4, .seed = 1};

static struct pt_error error;
static struct ptr_writer *w;
static FILE *truth;
static uint64_t state;

static uint64_t rnd(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return n ? (state >> 33) % n : 0;
}

static uint32_t ok(int64_t ret)
{
	if (ret < 0) {
		fprintf(stderr, "mkvmrecords: %s\n", error.message);
		exit(1);
	}
	return (uint32_t)ret;
}

/* ---- Code --------------------------------------------------------------------------------------------- */

enum function { H_IOCTL, H_ENTER, H_HANDLE, H_SCHEDULE, H_TIMER, G_WORK, G_IDLE, G_TIMER, G_USER, FUNCTIONS };

static const char *const names[FUNCTIONS] = {[H_IOCTL] = "kvm_arch_vcpu_ioctl_run",
					     [H_ENTER] = "vmx_vcpu_enter_exit",
					     [H_HANDLE] = "vmx_handle_exit",
					     [H_SCHEDULE] = "schedule",
					     [H_TIMER] = "asm_sysvec_apic_timer_interrupt",
					     [G_WORK] = "do_work",
					     [G_IDLE] = "default_idle",
					     [G_TIMER] = "asm_sysvec_apic_timer_interrupt",
					     [G_USER] = "main"};
static uint32_t symbols[FUNCTIONS];

static uint64_t ip_of(enum function f, uint64_t at)
{
	return (f < G_WORK ? HOST_BASE : GUEST_BASE) + f * 0x1000u + at;
}

struct path {
	uint32_t number, count, insns;
};

static struct path body[FUNCTIONS], entry_path[PLACES], exit_path[PLACES], host_timer, guest_timer[PLACES];

/* Of the guest's places, which lie in its functions by turns. */
static enum function place_function(uint64_t place)
{
	return place % 4 == 3 ? G_USER : place % 4 == 2 ? G_IDLE : G_WORK;
}

static uint64_t place_ip(uint64_t place)
{
	return ip_of(place_function(place), 0x100 + place * 8);
}

static uint32_t edge(enum function f, uint64_t from, enum function g, uint64_t to, enum ptr_kind kind)
{
	return ok(ptr_put_edge(
	    w,
	    &(struct ptr_edge){
		.from = from, .to = to, .kind = kind, .from_symbol = symbols[f], .to_symbol = symbols[g]},
	    &error));
}

/* `count` turns in f, and then `last`, if any. */
static struct path make_path(enum function f, uint32_t count, uint32_t last)
{
	struct ptr_path p = {.start_ip = ip_of(f, 0x10)};
	struct path ret = {0};

	for (uint32_t i = 0; i < count; i++) {
		p.edge[p.count] = edge(f, ip_of(f, 0x20 + i * 8), f, ip_of(f, 0x24 + i * 8), PTR_JCC);
		p.insns[p.count++] = 3 + i % 5;
	}
	if (last) {
		p.edge[p.count] = last;
		p.insns[p.count++] = 2;
	}
	for (uint32_t i = 0; i < p.count; i++)
		ret.insns += p.insns[i];
	ret.count = p.count;
	ret.number = ok(ptr_put_path(w, &p, &error));
	return ret;
}

static void put_code(void)
{
	uint32_t host = ok(ptr_put_dso(w, &(struct ptr_dso){.name = "[kernel]", .build_id = ""}, &error));
	uint32_t guest =
	    ok(ptr_put_dso(w, &(struct ptr_dso){.name = "[guest.kernel]", .build_id = ""}, &error));

	for (int f = 0; f < FUNCTIONS; f++)
		symbols[f] = ok(ptr_put_symbol(w,
					       &(struct ptr_symbol){.dso = f < G_WORK ? host : guest,
								    .start = ip_of((enum function)f, 0),
								    .end = ip_of((enum function)f, 0x1000),
								    .name = names[f]},
					       &error));
	for (int f = 0; f < FUNCTIONS; f++)
		body[f] = make_path((enum function)f, BODY_EDGES, 0);
	host_timer = make_path(H_HANDLE, 2,
			       edge(H_HANDLE, ip_of(H_HANDLE, 0x200), H_TIMER, ip_of(H_TIMER, 0), PTR_ASYNC));
	for (uint64_t i = 0; i < PLACES; i++) {
		enum function f = place_function(i);

		entry_path[i] =
		    make_path(H_ENTER, 4, edge(H_ENTER, ip_of(H_ENTER, 0x300), f, place_ip(i), PTR_VMENTRY));
		exit_path[i] =
		    make_path(f, 4, edge(f, place_ip(i), H_ENTER, ip_of(H_ENTER, 0x304), PTR_VMEXIT));
		guest_timer[i] = make_path(f, 0, edge(f, place_ip(i), G_TIMER, ip_of(G_TIMER, 0), PTR_ASYNC));
	}
}

/*
 * ---- What goes on ---------------------------------------------------------------------------------------
 */

struct vcpu {
	uint32_t thread, slice;
	uint32_t guest_threads[2], guest_thread;
	int32_t index;
	uint64_t tsc, slice_insns, slice_branches;
	uint64_t place;	   /* where the guest is */
	uint32_t last_run; /* the GUEST_RUN that ended last, 0 none */
	bool timer;	   /* the next entry delivers a timer interrupt, that came at timer_tsc */
	uint64_t timer_tsc;
	struct ptr_guest_run run;
	struct ptr_vmexit vmexit;
	uint64_t host_insns, guest_insns; /* of all VM exits and guest runs */
};

static struct vcpu vcpus[VCPUS_MAX];
static uint32_t host, vm, thieves[THIEVES], guest_runs, vmexits;
static uint32_t root_path, enter_path, guest_paths[2];
static uint64_t last_run, branches;

static void begin_slice(struct vcpu *v, bool guest)
{
	v->slice = ok(ptr_put_slice(w,
				    &(struct ptr_slice){.thread = guest ? v->guest_thread : v->thread,
							.cpu = v->index,
							.vcpu = guest ? v->index : -1,
							.stream = (uint32_t)v->index + 1,
							.tsc = v->tsc},
				    &error));
	v->slice_insns = v->slice_branches = 0;
}

static void end_slice(struct vcpu *v)
{
	ok(ptr_put_slice_end(w,
			     &(struct ptr_slice_end){.slice = v->slice,
						     .tsc = v->tsc,
						     .insn_count = v->slice_insns,
						     .cyc_count = PTR_UNKNOWN,
						     .branch_count = v->slice_branches},
			     &error));
}

/* One execution of a path. Returns the id of its last branch. */
static uint64_t take(struct vcpu *v, const struct path *p)
{
	struct ptr_run r = {
	    .slice = v->slice, .tsc = v->tsc, .path = p->number, .repeats = 1, .cyc_count = PTR_UNKNOWN};

	last_run = ok(ptr_put_run(w, &r, p->count, &error));
	v->slice_insns += p->insns;
	v->slice_branches += p->count;
	branches += p->count;
	return last_run * PTR_RUN_BRANCHES + p->count - 1;
}

static void put_call(struct vcpu *v, uint32_t thread, uint32_t path, uint32_t depth, uint64_t from_tsc,
		     uint64_t insns)
{
	struct ptr_call c = {.thread = thread,
			     .stack = thread,
			     .call_path = path,
			     .call_tsc = from_tsc,
			     .return_tsc = v->tsc,
			     .insn_count = insns,
			     .cyc_count = PTR_UNKNOWN,
			     .depth = depth};

	ok(ptr_put_call(w, &c, &error));
}

static void put_event(struct vcpu *v, bool guest, const char *name, const char *fields)
{
	struct ptr_event ev = {.machine = guest ? vm : host,
			       .thread = guest ? v->guest_thread : v->thread,
			       .cpu = v->index,
			       .vcpu = guest ? v->index : -1,
			       .tsc = v->tsc,
			       .name = name,
			       .fields = fields};

	ok(ptr_put_event(w, &ev, &error));
	fprintf(truth, "event,%" PRIu64 ",%s\n", v->tsc, name);
}

static const char *number(uint64_t n)
{
	static char text[8][24];
	static int at;

	at = (at + 1) % 8;
	snprintf(text[at], sizeof text[at], "%" PRIu64, n);
	return n == PTR_UNKNOWN ? "" : text[at];
}

/* The guest runs, up to a VM exit. */
static void guest_run(struct vcpu *v)
{
	struct ptr_guest_run *g = &v->run;

	if (!rnd(8))
		v->guest_thread = v->guest_threads[rnd(2)];
	begin_slice(v, true);
	if (v->timer) {
		take(v, &guest_timer[v->place]);
		fprintf(truth, "timer,%d,%" PRIu64 ",%" PRIu64 "\n", v->index, v->timer_tsc, v->tsc);
		v->timer = false;
		v->tsc += rnd(50);
		take(v, &body[G_TIMER]);
	}
	for (uint64_t i = 0; i < opt.runs; i++) {
		v->tsc += rnd(20) ? rnd(300) : rnd(20000);
		take(v, &body[place_function(v->place)]);
	}
	if (!rnd(10))
		put_event(v, true, "sched:sched_switch",
			  "{\"prev_comm\":\"work\",\"next_comm\":\"swapper/0\"}");
	v->tsc += rnd(100);
	v->place = rnd(4) ? v->place : rnd(PLACES);
	g->exit_tsc = v->tsc;
	g->exit_uncertainty_tsc = rnd(30);
	g->exit_ip = place_ip(v->place);
	g->exit_branch = take(v, &exit_path[v->place]);
	g->insn_count = v->slice_insns;
	g->cyc_count = rnd(3) ? v->slice_insns / 2 + rnd(100) : PTR_UNKNOWN;
	g->flags = rnd(100) ? 0 : PTR_VM_GAP;
	v->last_run = ok(ptr_put_guest_run(w, g, &error));
	guest_runs++;
	v->guest_insns += v->slice_insns;
	fprintf(truth, "guest_run,%u,%d,%" PRIu64 ",%" PRIu64 ",%u,%s,%s\n", v->last_run, v->index,
		g->entry_tsc, g->exit_tsc, g->flags, number(g->insn_count), number(g->cyc_count));
	end_slice(v);
	put_call(v, v->guest_thread, guest_paths[v->guest_thread == v->guest_threads[1]], 0, g->entry_tsc,
		 v->slice_insns);
}

/* Why, and what of it: reasons as they are frequent. */
static void choose_reason(struct vcpu *v, struct ptr_vmexit *t)
{
	static const uint64_t reasons[] = {1,  1,  1,  12, 12, 48, 48,	32,
					   32, 32, 52, 30, 10, 7,  300, PTR_UNKNOWN};

	t->reason = t->raw_reason = reasons[rnd(sizeof reasons / sizeof *reasons)];
	t->source = t->reason == PTR_UNKNOWN ? PTR_REASON_UNKNOWN : 1 + (uint32_t)rnd(3);
	t->qualification = t->reason == 48 ? 0x182 : PTR_UNKNOWN;
	t->vector = t->reason == 1 ? (rnd(2) ? TIMER_VECTOR : 253) : PTR_UNKNOWN;
	if ((t->reason == 1 && t->vector == TIMER_VECTOR && rnd(3)) || t->reason == 52) {
		v->timer = true;
		v->timer_tsc = v->tsc;
	}
}

/* The vCPU's thread sleeps, or is preempted, or is in user space. The thread that ran meanwhile; 0. */
static uint32_t let_others_run(struct vcpu *v, struct ptr_vmexit *t)
{
	uint32_t thief = 0;

	if (t->reason == 12) {
		/* Sleeps until the timer wakes it. */
		t->flags |= PTR_VM_SCHEDULED_OUT;
		t->off_cpu_tsc = 5000 + rnd(100000);
		thief = thieves[0];
		v->tsc += t->off_cpu_tsc;
		v->timer = true;
		v->timer_tsc = v->tsc;
		take(v, &host_timer);
		v->tsc += rnd(500);
	} else if (!rnd(50)) {
		t->flags |= PTR_VM_SCHEDULED_OUT;
		t->off_cpu_tsc = 1000 + rnd(3000000);
		thief = thieves[1 + rnd(THIEVES - 1)];
		v->tsc += t->off_cpu_tsc;
		take(v, &body[H_SCHEDULE]);
		if (v->tsc % 4 == 0) /* its switches have no time */
			t->off_cpu_tsc = PTR_UNKNOWN;
	}
	if (t->reason == 30) {
		t->flags |= PTR_VM_TO_USERSPACE;
		t->userspace_tsc = 3000 + rnd(20000);
		v->tsc += t->userspace_tsc;
	}
	return thief;
}

/* The host runs, up to the VM entry. */
static void vmexit(struct vcpu *v)
{
	struct ptr_vmexit *t = &v->vmexit;

	*t = (struct ptr_vmexit){.machine = vm,
				 .thread = v->thread,
				 .vcpu = v->index,
				 .exit_cpu = v->index,
				 .entry_cpu = v->index,
				 .before = v->last_run,
				 .vmcs = 0x1000u * (uint64_t)(v->index + 1),
				 .exit_tsc = v->tsc,
				 .exit_uncertainty_tsc = v->run.exit_uncertainty_tsc,
				 .guest_ip = v->run.exit_ip,
				 .guest_symbol = symbols[place_function(v->place)],
				 .exit_branch = v->run.exit_branch,
				 .injected = PTR_UNKNOWN,
				 .handler = symbols[H_HANDLE],
				 .deepest = symbols[H_SCHEDULE],
				 .deepest_depth = 4,
				 .off_cpu_tsc = 0,
				 .userspace_tsc = 0};
	choose_reason(v, t);
	begin_slice(v, false);
	put_event(v, false, "kvm:kvm_exit", "{\"exit_reason\":1}");
	v->tsc += 200 + rnd(1000);
	take(v, &body[H_HANDLE]);
	t->stolen_by = let_others_run(v, t);
	v->tsc += rnd(100);
	t->entry_tsc = v->tsc;
	t->entry_uncertainty_tsc = rnd(30);
	t->injected = v->timer ? 0x80000000u | TIMER_VECTOR : PTR_UNKNOWN;
	t->entry_branch = take(v, &entry_path[v->place]);
	t->host_insns = rnd(40) ? v->slice_insns : PTR_UNKNOWN; /* some code is not there */
	t->host_cycles = rnd(3) ? v->slice_insns * 2 : PTR_UNKNOWN;
	t->flags |= rnd(80) ? 0 : rnd(2) ? PTR_VM_GAP : PTR_VM_CONCEALED;
	/* The guest run that follows ends after this one is written; guest runs of other vCPUs may
	 * end before. */
	t->after = 0;
	v->host_insns += v->slice_insns;
	end_slice(v);
	put_call(v, v->thread, enter_path, 1, t->exit_tsc, v->slice_insns);
	v->run = (struct ptr_guest_run){.machine = vm,
					.thread = v->thread,
					.cpu = v->index,
					.vcpu = v->index,
					.vmcs = t->vmcs,
					.cr3 = 0x10a000,
					.entry_tsc = t->entry_tsc,
					.entry_uncertainty_tsc = t->entry_uncertainty_tsc,
					.entry_ip = place_ip(v->place),
					.entry_branch = t->entry_branch};
}

/* A VM exit is written when the guest run after it has its number: then `after` is known. */
static void put_vmexit(struct vcpu *v)
{
	const struct ptr_vmexit *t = &v->vmexit;

	v->vmexit.after = v->last_run;
	vmexits = ok(ptr_put_vmexit(w, t, &error));
	fprintf(truth, "exit,%u,%d,%s,%" PRIu64 ",%" PRIu64 ",%u,%s,%s,%s,%s,%s,%s\n", vmexits, v->index,
		number(t->reason), t->exit_tsc, t->entry_tsc, t->flags, number(t->host_insns),
		number(t->host_cycles), number(t->off_cpu_tsc), number(t->userspace_tsc),
		t->stolen_by == 0	     ? ""
		: t->stolen_by == thieves[0] ? "swapper"
		: t->stolen_by == thieves[1] ? "make"
					     : "cc1",
		names[place_function((t->guest_ip - GUEST_BASE) / 0x1000u == G_USER   ? 3
				     : (t->guest_ip - GUEST_BASE) / 0x1000u == G_IDLE ? 2
										      : 0)]);
}

static uint32_t thread(uint32_t machine, int32_t pid, int32_t tid, const char *comm)
{
	return ok(ptr_put_thread(
	    w, &(struct ptr_thread){.machine = machine, .pid = pid, .tid = tid, .comm = comm}, &error));
}

static void put_who(void)
{
	static const char *const comms[THIEVES] = {"swapper/0", "make", "cc1"};
	char name[32];

	host = ok(ptr_put_machine(w, &(struct ptr_machine){.name = "host"}, &error));
	vm = ok(ptr_put_machine(w, &(struct ptr_machine){.pid = 4000, .name = "vm1"}, &error));
	for (int i = 0; i < THIEVES; i++)
		thieves[i] = thread(host, i ? 5000 + i : 0, i ? 5000 + i : 0, comms[i]);
	for (uint64_t i = 0; i < opt.vcpus; i++) {
		struct vcpu *v = &vcpus[i];

		snprintf(name, sizeof name, "CPU %" PRIu64 "/KVM", i);
		v->thread = thread(host, 4000, 4001 + (int32_t)i, name);
		snprintf(name, sizeof name, "swapper/%" PRIu64, i);
		v->guest_threads[0] = v->guest_thread = thread(vm, 0, 0, name);
		v->guest_threads[1] = thread(vm, 300, 300 + (int32_t)i, "work");
		v->index = (int32_t)i;
		v->tsc = 0x10000000000 + rnd(1000);
		v->place = rnd(PLACES);
		v->run = (struct ptr_guest_run){.machine = vm,
						.thread = v->thread,
						.cpu = v->index,
						.vcpu = v->index,
						.vmcs = 0x1000u * (i + 1),
						.cr3 = PTR_UNKNOWN,
						.entry_tsc = v->tsc,
						.entry_ip = place_ip(v->place)};
		ok(ptr_put_vm_clock(
		    w,
		    &(struct ptr_vm_clock){.machine = vm,
					   .vcpu = v->index,
					   .vmcs = 0x1000u * (i + 1),
					   .from_tsc = i ? v->tsc + 5000 : PTR_NO_TSC,
					   .offset = (uint64_t) - (int64_t)(1000000 + i),
					   .ratio = i ? 3ull << 47 : PTR_UNKNOWN,
					   .frac_bits = i ? 48 : 0,
					   .source = i ? PTR_CLOCK_CONTAINER : PTR_CLOCK_SOLVED,
					   .observations = 77,
					   .worst_residual_tsc = 12},
		    &error));
	}
	root_path = ok(ptr_put_call_path(
	    w, &(struct ptr_call_path){.symbol = symbols[H_IOCTL], .ip = ip_of(H_IOCTL, 0)}, &error));
	enter_path = ok(ptr_put_call_path(
	    w,
	    &(struct ptr_call_path){.parent = root_path, .symbol = symbols[H_ENTER], .ip = ip_of(H_ENTER, 0)},
	    &error));
	for (int i = 0; i < 2; i++)
		guest_paths[i] =
		    ok(ptr_put_call_path(w,
					 &(struct ptr_call_path){.parent = enter_path,
								 .symbol = symbols[i ? G_USER : G_WORK],
								 .ip = ip_of(i ? G_USER : G_WORK, 0)},
					 &error));
}

static void put_meta(void)
{
	static const char *const pairs[][2] = {
	    {"command", "made-up VMs"}, {"host", "nowhere"},
	    {"engine", "perf"},		{"time_zero", "18446744073709551000"},
	    {"time_mult", "699050667"}, {"time_shift", "31"}};
	char uuid[48];

	snprintf(uuid, sizeof uuid, "vm%030" PRIx64, opt.seed * 0x9e3779b97f4a7c15u);
	ok(ptr_put_meta(w, "uuid", uuid, &error));
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		ok(ptr_put_meta(w, pairs[i][0], pairs[i][1], &error));
}

/* The vCPU of which the time is the earliest. */
static struct vcpu *next_vcpu(void)
{
	struct vcpu *ret = vcpus;

	for (uint64_t i = 1; i < opt.vcpus; i++)
		if (vcpus[i].tsc < ret->tsc)
			ret = &vcpus[i];
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"exits", 1, 0, 'e'}, {"vcpus", 1, 0, 'v'},
						{"runs", 1, 0, 'r'},  {"seed", 1, 0, 's'},
						{"truth", 1, 0, 't'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		uint64_t n = strtoull(optarg ? optarg : "", NULL, 0);

		switch (c) {
		case 'e': opt.exits = n; break;
		case 'v': opt.vcpus = n < 1 ? 1 : n > VCPUS_MAX ? VCPUS_MAX : n; break;
		case 'r': opt.runs = n; break;
		case 's': opt.seed = n; break;
		case 't': opt.truth = optarg; break;
		default: return 2;
		}
	}
	state = opt.seed;
	truth = fopen(opt.truth ? opt.truth : "/dev/null", "w");
	w = ptr_writer_create(1, NULL, &error);
	if (!w || !truth)
		ok(-1);
	put_meta();
	put_code();
	put_who();
	for (uint64_t i = 0; i < opt.vcpus; i++)
		guest_run(&vcpus[i]);
	while (vmexits < opt.exits) {
		struct vcpu *v = next_vcpu();

		vmexit(v);
		guest_run(v);
		put_vmexit(v);
	}
	for (uint64_t i = 0; i < opt.vcpus; i++)
		put_call(&vcpus[i], vcpus[i].thread, root_path, 0, 0x10000000000, vcpus[i].host_insns + 1000);
	ok(ptr_put_meta(w, "decode.container", "complete", &error));
	ok(ptr_writer_finish(w, &error));
	ptr_writer_destroy(w);
	fprintf(stderr, "exits=%u guest_runs=%u branches=%" PRIu64 "\n", vmexits, guest_runs, branches);
	return fclose(truth) != 0;
}
