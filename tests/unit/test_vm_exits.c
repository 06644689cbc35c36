/*
 * test_vm_exits.c - guest runs and VM exits, as records, from the transitions that a stream reports:
 * what VMX controls conceal is marked, on both sides of the transition that was not seen; a vCPU's
 * thread is off its CPU for as long as the sideband says where no clock runs meanwhile.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/output/emit.h"
#include "decode/sideband/machines.h"
#include "decode/vm/vm.h"
#include "tests/unit/check.h"

static const char *number(char *buffer, size_t size, uint64_t v)
{
	if (v == PTR_NO_TSC)
		return "-";
	snprintf(buffer, size, "%" PRIu64, v);
	return buffer;
}

static void describe(char *got, size_t size, int fd)
{
	struct pt_error e = {0};
	struct ptr_reader *reader = ptr_reader_create(fd, &e);
	struct ptr_record r;
	size_t n = 0;
	char a[24], b[24], c[24];
	int more;

	if (!reader)
		check_stop(e.message);
	got[0] = 0;
	while ((more = ptr_next(reader, &r, &e)) > 0) {
		if (r.type == PTR_GUEST_RUN)
			n += (size_t)snprintf(got + n, size - n,
					      "run %" PRIu64 " %s-%s ip %" PRIx64 " flags %u\n", r.number,
					      number(a, sizeof a, r.guest_run.entry_tsc),
					      number(b, sizeof b, r.guest_run.exit_tsc), r.guest_run.entry_ip,
					      r.guest_run.flags);
		if (r.type == PTR_VMEXIT_INTERVAL)
			n += (size_t)snprintf(
			    got + n, size - n, "exit %u-%u %s-%s off %s ip %" PRIx64 " flags %u\n",
			    r.vmexit.before, r.vmexit.after, number(a, sizeof a, r.vmexit.exit_tsc),
			    number(b, sizeof b, r.vmexit.entry_tsc),
			    number(c, sizeof c, r.vmexit.off_cpu_tsc), r.vmexit.guest_ip, r.vmexit.flags);
	}
	if (more < 0)
		check_stop(e.message);
	ptr_reader_destroy(reader);
}

/* The flow's clock comes to tsc. */
static void feed_tsc(struct pt_flow *flow, uint64_t tsc)
{
	uint8_t packets[26] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
			       0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x23, 0x19};
	const uint8_t *rest;

	for (unsigned i = 0; i < 7; i++)
		packets[19 + i] = (uint8_t)(tsc >> 8 * i);
	pt_flow_feed(flow, packets, packets + sizeof packets, 0, false, &rest);
}

/* What a stream reports: transitions, and in VM exit number `off` (from 0) its thread's switches, to another
 * one and back, at these times of the sideband. */
struct stream_story {
	const struct pt_vm_transition *t;
	size_t n, off; /* off SIZE_MAX: none */
	uint64_t out_tsc, in_tsc;
};

static void switch_away(struct pt_vm *vm, struct pt_emit_stream *s, struct pt_flow *flow,
			const struct stream_story *story)
{
	struct pt_task *own = s->host_task;

	s->task = s->host_task = pt_tasks_get(s->machine->tasks, 60, 60);
	pt_vm_events.switched(vm, s, flow, story->out_tsc);
	s->task = s->host_task = own;
	pt_vm_events.switched(vm, s, flow, story->in_tsc);
}

static const struct pt_flow_env no_env;

static void expect(const char *what, const struct stream_story *story, const char *expected)
{
	static char got[4096];
	const struct pt_vm_transition *t = story->t;
	size_t n = story->n, exits = 0;
	struct pt_graph graph;
	struct pt_emit emit;
	struct pt_vcpus vcpus = {0};
	struct pt_flow *flow = pt_flow_create(&(struct pt_flow_config){.graph = &graph, .env = &no_env});
	struct pt_error e = {0};
	struct img_store *store = img_store_create();
	struct pt_machines *machines;
	struct pt_machine *host;
	struct ptr_writer *w;
	struct pt_vm *vm;
	struct pt_emit_stream s = {.emit = &emit, .vcpu = -1};
	int fd = memfd_create("exits", MFD_CLOEXEC);

	if (!flow || !store || fd < 0 || pt_graph_init(&graph, &e) < 0 ||
	    !(machines = pt_machines_create(store, &graph, NULL)) || !(w = ptr_writer_create(fd, NULL, &e)) ||
	    pt_emit_init(&emit, w, &graph, &e) < 0 || !(vm = pt_vm_create(&emit, &vcpus, NULL, 0, 0)))
		check_stop("no memory");
	host = pt_machine_get(machines, 0);
	s.machine = host;
	s.task = s.host_task = pt_tasks_get(host->tasks, 50, 50);
	for (size_t i = 0; i < n; i++) {
		if (t[i].tsc != PT_CLOCK_UNKNOWN)
			feed_tsc(flow, t[i].tsc);
		pt_vm_events.transition(vm, &s, flow, &t[i]);
		if (!t[i].entry && exits++ == story->off)
			switch_away(vm, &s, flow, story);
	}
	pt_vm_finish(vm);
	if (emit.failed || ptr_writer_finish(w, &e) < 0)
		check_stop(emit.failed ? emit.error.message : e.message);
	lseek(fd, 0, SEEK_SET);
	describe(got, sizeof got, fd);
	check_text(got, expected, what);
	ptr_writer_destroy(w);
	pt_vm_destroy(vm);
	pt_flow_destroy(flow);
	pt_emit_deinit(&emit);
	pt_machines_destroy(machines);
	pt_graph_deinit(&graph);
	img_store_destroy(store);
	close(fd);
}

int main(void)
{
	static const struct pt_vm_transition
	    plain[] = {{.entry = true, .tsc = 10, .guest_ip = 0x1000, .host_ip = 0x9000, .vmcs = 0x7000},
		       {.tsc = 20, .guest_ip = 0x1001, .host_ip = 0x9003, .vmcs = 0x7000},
		       {.entry = true, .tsc = 30, .guest_ip = 0x1001, .host_ip = 0x9000, .vmcs = 0x7000}},
	    between[] = {{.entry = true, .tsc = 10, .guest_ip = 0x1000, .host_ip = 0x9000, .vmcs = 0x7000},
			 {.tsc = 20, .guest_ip = 0x1001, .host_ip = 0x9003, .vmcs = 0x7000},
			 {.entry = true, .concealed = true, .tsc = 30, .host_ip = 0x9000, .vmcs = 0x7000},
			 {.concealed = true, .tsc = PT_CLOCK_UNKNOWN, .host_ip = 0x9003, .vmcs = 0x7000},
			 {.entry = true, .tsc = 50, .guest_ip = 0x1008, .host_ip = 0x9000, .vmcs = 0x7000},
			 {.tsc = 60, .guest_ip = 0x1009, .host_ip = 0x9003, .vmcs = 0x7000}},
	    last[] = {{.tsc = 20, .guest_ip = 0x1001, .host_ip = 0x9003, .vmcs = 0x7000},
		      {.entry = true, .concealed = true, .tsc = 30, .host_ip = 0x9000, .vmcs = 0x7000}};
	enum { BEGIN = PTR_VM_BEGIN_UNSEEN, END = PTR_VM_END_UNSEEN, CONCEALED = PTR_VM_CONCEALED };
	char expected[1024];

	snprintf(expected, sizeof expected,
		 "run 1 10-20 ip 1000 flags 0\nrun 2 30-- ip 1001 flags %d\n"
		 "exit 1-2 20-30 off 0 ip 1001 flags 0\n",
		 END);
	expect("nothing concealed", &(struct stream_story){plain, 3, SIZE_MAX, 0, 0}, expected);
	snprintf(expected, sizeof expected,
		 "run 1 10-20 ip 1000 flags 0\nrun 2 30-- ip 0 flags %d\n"
		 "exit 1-2 20-30 off 0 ip 1001 flags %d\nrun 3 50-60 ip 1008 flags 0\n"
		 "exit 2-3 --50 off 0 ip 0 flags %d\nexit 3-0 60-- off 0 ip 1009 flags %d\n",
		 CONCEALED, CONCEALED, CONCEALED, END);
	expect("a guest run is concealed", &(struct stream_story){between, 6, SIZE_MAX, 0, 0}, expected);
	snprintf(
	    expected, sizeof expected,
	    "run 1 --20 ip 0 flags %d\nrun 2 30-- ip 0 flags %d\nexit 1-2 20-30 off 0 ip 1001 flags %d\n",
	    BEGIN, CONCEALED | END, CONCEALED);
	expect("it lasts when the trace ends", &(struct stream_story){last, 2, SIZE_MAX, 0, 0}, expected);
	for (unsigned unknown = 0; unknown < 2; unknown++) {
		snprintf(expected, sizeof expected,
			 "run 1 10-20 ip 1000 flags 0\n"
			 "run 2 30-- ip 1001 flags %d\nexit 1-2 20-30 off %s ip 1001 flags %d\n",
			 END, unknown ? "-" : "5", PTR_VM_SCHEDULED_OUT);
		expect(unknown ? "off its CPU, for nobody knows how long"
			       : "off its CPU, by the sideband's times",
		       &(struct stream_story){plain, 3, 0, unknown ? PTR_NO_TSC : 22, 27}, expected);
	}
	return sum_up();
}
