/*
 * test_calls.c - call stacks across gaps: the threads that may have run in one have a new stack after it, all
 * others keep theirs.
 *
 * What flows report is made up: the branches of three threads of the host and of two guests' threads.
 * Expected are the record stream's calls, one per line: the path from the bottom, begin and end, and "!" when
 * the return was not seen.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/output/emit.h"
#include "decode/sideband/machines.h"
#include "tests/unit/check.h"

/* 16 functions per code, 'a' and so on, of 256 bytes each: calls of all of them, one every 8 bytes, and a
 * RET. */
#define HOST		    0xffffffff81000000u
#define GUEST		    0xffffffff82000000u
#define BYTES		    0x1000u
#define FN(base, c)	    ((base) + (uint64_t)((c) - 'a') * 0x100)
#define CALLER(base, c, to) (FN(base, c) + (uint64_t)((to) - 'a') * 8)

static struct pt_graph graph;
static struct pt_emit emit;
static struct pt_machines *machines;
static struct pt_flow *flow;
static struct pt_emit_stream cpus[2];
static int fd;

static void code_of(struct img_store *store, struct pt_machine *m, uint64_t base)
{
	static uint8_t bytes[BYTES];
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .machine_pid = m->pid,
				  .pid = PTC_ANY_PID,
				  .name = "k",
				  .name_bytes = 1,
				  .vaddr = base,
				  .bytes = bytes,
				  .size = sizeof bytes};
	struct img_file *file;
	struct pt_error e;

	memset(bytes, 0x90, sizeof bytes);
	for (unsigned f = 0; f < 16; f++) {
		for (unsigned to = 0; to < 16; to++) {
			int32_t rel = (int32_t)(to * 0x100) - (int32_t)(f * 0x100 + to * 8 + 5);

			bytes[f * 0x100 + to * 8] = 0xe8;
			memcpy(bytes + f * 0x100 + to * 8 + 1, &rel, 4);
		}
		bytes[f * 0x100 + 0xff] = 0xc3;
	}
	file = img_store_memory(store, &image, &e);
	if (!file || img_space_map(&m->space, base, base + BYTES, base, file, &e) < 0)
		check_stop("code");
}

static void run(struct pt_emit_stream *s, uint64_t from, uint64_t to, enum ptr_kind kind, uint64_t tsc)
{
	uint32_t edges[PTR_PATH_EDGES + 3] = {pt_graph_edge(&graph, s->machine->code, from, to, kind)};
	struct pt_flow_run r = {
	    .repeats = 1, .tsc = tsc, .timing = PTR_TIME_BEFORE, .cyc_count = PTR_UNKNOWN};

	r.path = pt_graph_path(&graph,
			       &(struct pt_path_key){.code = s->machine->code,
						     .start_ip = from,
						     .end_ip = to,
						     .edges = edges,
						     .count = 1,
						     .mode = INSN_64},
			       0);
	pt_emit_output.runs(s, flow, &r, 1);
}

/* In function c another is called; from it a return leads to c, after its call. */
static void call(struct pt_emit_stream *s, char c, char to, uint64_t tsc)
{
	uint64_t base = s->machine->pid ? GUEST : HOST;

	run(s, CALLER(base, c, to), FN(base, to), PTR_CALL_DIR, tsc);
}

static void back(struct pt_emit_stream *s, char from, char c, uint64_t tsc)
{
	uint64_t base = s->machine->pid ? GUEST : HOST;

	run(s, FN(base, from) + 0xff, CALLER(base, c, from) + 5, PTR_RET, tsc);
}

/* The CPU switches to another thread. guest: 0, or the VM's pid, of which `host` is the vCPU's thread. */
static void switch_to(struct pt_emit_stream *s, int32_t host, int32_t guest, int32_t tid)
{
	struct pt_machine *h = pt_machine_get(machines, 0), *g = pt_machine_get(machines, guest);

	s->host_task = pt_tasks_get(h->tasks, host, host);
	s->machine = g;
	s->task = guest ? pt_tasks_get(g->tasks, tid, tid) : s->host_task;
	s->vcpu = guest ? 0 : -1;
	pt_emit_who(s);
}

static void begin(struct pt_emit_stream *s, char c, uint64_t tsc)
{
	pt_emit_output.begin(s, flow, tsc, s->machine->code, FN(s->machine->pid ? GUEST : HOST, c));
}

static void end(struct pt_emit_stream *s, uint64_t tsc)
{
	pt_emit_output.end(s, flow, tsc, 0, PTR_UNKNOWN);
}

static void to(struct pt_emit_stream *s, int32_t host, int32_t guest, int32_t tid, char c, uint64_t tsc)
{
	if (s->slice)
		end(s, tsc);
	switch_to(s, host, guest, tid);
	begin(s, c, tsc);
}

static void miss(struct pt_emit_stream *s, uint64_t tsc, bool no_image)
{
	struct pt_flow_error err = {.kind = no_image ? PT_FLOW_NO_CODE : PT_FLOW_LOST,
				    .tsc = tsc,
				    .message = "missed",
				    .no_image = no_image};

	end(s, tsc);
	s->slice = 0;
	pt_emit_output.error(s, flow, &err);
}

static struct img_store *store;

static void start(void)
{
	struct pt_error e;

	store = img_store_create();
	flow = pt_flow_create(&(struct pt_flow_config){.graph = &graph});
	fd = memfd_create("calls", MFD_CLOEXEC);
	if (!store || !flow || fd < 0 || pt_graph_init(&graph, &e) < 0 ||
	    !(machines = pt_machines_create(store, &graph, NULL)) ||
	    pt_emit_init(&emit, ptr_writer_create(fd, NULL, &e), &graph, &e) < 0)
		check_stop("no memory");
	emit.calls = emit.definitions = true;
	code_of(store, pt_machine_get(machines, 0), HOST);
	code_of(store, pt_machine_get(machines, 50), GUEST);
	code_of(store, pt_machine_get(machines, 60), GUEST);
	for (int32_t i = 0; i < 2; i++)
		cpus[i] = (struct pt_emit_stream){.emit = &emit, .cpu = i, .stream = (uint32_t)i, .vcpu = -1};
}

#define PATHS 256
static void expect(const char *what, const char *expected)
{
	static char got[1 << 14], paths[PATHS][64], callers[64];
	struct ptr_record r;
	struct pt_error e = {0};
	struct ptr_reader *reader;
	size_t n = 0;
	int more;

	pt_emit_finish(&emit);
	if (emit.failed || ptr_writer_finish(emit.writer, &e) < 0)
		check_stop(emit.failed ? emit.error.message : e.message);
	lseek(fd, 0, SEEK_SET);
	reader = ptr_reader_create(fd, &e);
	got[0] = 0;
	while ((more = ptr_next(reader, &r, &e)) > 0) {
		if (r.type == PTR_CALL_PATH && r.number < PATHS) {
			uint64_t base = r.call_path.ip < GUEST ? HOST : GUEST;

			snprintf(callers, sizeof callers, "%s", paths[r.call_path.parent]);
			snprintf(paths[r.number], sizeof paths[0], "%.60s%c", callers,
				 (int)((r.call_path.ip - base) >> 8) + (base == HOST ? 'a' : 'A'));
		}
		if (r.type == PTR_CALL)
			n += (size_t)snprintf(got + n, sizeof got - n, "%s %" PRIu64 "-%" PRIu64 "%s\n",
					      paths[r.call.call_path], r.call.call_tsc, r.call.return_tsc,
					      r.call.flags & PTR_CALL_NO_RETURN ? "!" : "");
	}
	if (more < 0)
		check_stop(e.message);
	check_text(got, expected, what);
	ptr_reader_destroy(reader);
	ptr_writer_destroy(emit.writer);
	pt_emit_deinit(&emit);
	pt_machines_destroy(machines);
	img_store_destroy(store);
	pt_flow_destroy(flow);
	pt_graph_deinit(&graph);
	close(fd);
}

/* A guest's stack stands on its vCPU's; what is missed in the guest may have been the host, too. */
static void in_guest(void)
{
	struct pt_emit_stream *s = &cpus[0];

	for (int no_image = 0; no_image < 2; no_image++) {
		start();
		to(s, 50, 0, 0, 'a', 10);
		call(s, 'a', 'b', 11);
		to(s, 50, 50, 7, 'a', 12);
		call(s, 'a', 'b', 13);
		miss(s, 20, no_image);
		begin(s, 'c', 30);
		call(s, 'c', 'd', 31);
		back(s, 'd', 'c', 32);
		to(s, 50, 0, 0, 'b', 40);
		call(s, 'b', 'e', 41);
		back(s, 'e', 'b', 42);
		back(s, 'b', 'a', 43);
		expect(
		    no_image ? "a guest's code is missing" : "lost in a guest",
		    no_image
			? "abAB 13-20!\nabA 12-20!\nabCD 31-32\nabe 41-42\nab 11-43\nabC 30-32!\na 10-43!\n"
			: "abAB 13-20!\nabA 12-20!\nab 11-11!\na 10-11!\nCD 31-32\nbe 41-42\nb 40-43!\n"
			  "C 30-32!\na 43-43!\n");
	}
}

/* 1 runs; it is lost how it comes to 2, which ran before; 3 did not run, nor did the guest of 3. */
static void at_switch(void)
{
	struct pt_emit_stream *s = &cpus[0];

	for (int no_image = 0; no_image < 2; no_image++) {
		start();
		for (int32_t tid = 3; tid > 0; tid--) {
			to(s, tid, 0, 0, 'a', 40 - 10 * (uint64_t)tid);
			call(s, 'a', 'b', 41 - 10 * (uint64_t)tid);
		}
		to(s, 3, 60, 8, 'a', 35);
		call(s, 'a', 'b', 36);
		to(s, 1, 0, 0, 'b', 38);
		miss(s, 40, no_image);
		switch_to(s, 2, 0, 0);
		switch_to(s, 1, 0, 0);
		begin(s, 'c', 50);
		to(s, 2, 0, 0, 'b', 60);
		back(s, 'b', 'a', 61);
		to(s, 3, 60, 8, 'b', 70);
		back(s, 'b', 'a', 71);
		to(s, 3, 0, 0, 'b', 80);
		back(s, 'b', 'a', 81);
		expect(
		    no_image ? "a switch in code that is missing" : "a switch in what was lost",
		    "ab 31-40!\na 30-40!\nab 21-21!\na 20-21!\nb 60-61!\nabAB 36-71\nab 11-81\nabA 35-71!\n"
		    "c 50-50!\na 61-61!\na 10-81!\n");
	}
}

/* Data lost in the host may have been of its guest, of any of its threads; not of another CPU's guest. */
static void in_host(void)
{
	start();
	for (int32_t i = 0; i < 2; i++) {
		to(&cpus[i], 50 + 10 * i, 0, 0, 'a', 10);
		to(&cpus[i], 50 + 10 * i, 50 + 10 * i, 7, 'a', 11);
		call(&cpus[i], 'a', 'b', 12);
		to(&cpus[i], 50 + 10 * i, 0, 0, 'a', 13);
	}
	miss(&cpus[0], 20, false);
	begin(&cpus[0], 'a', 30);
	for (int32_t i = 0; i < 2; i++) {
		to(&cpus[i], 50 + 10 * i, 50 + 10 * i, 7, 'b', 40);
		back(&cpus[i], 'b', 'a', 41);
	}
	expect("lost in the host", "a 10-20!\naAB 12-12!\naA 11-12!\naB 40-41!\naAB 12-41\naA 11-41!\na "
				   "10-13!\naA 41-41!\na 30-30!\n");
}

/* A guest's thread continues on another vCPU: a call's path is its caller's and one more. */
static void on_another_vcpu(void)
{
	struct pt_emit_stream *s = &cpus[0];

	start();
	to(s, 50, 0, 0, 'a', 10);
	to(s, 50, 50, 7, 'a', 11);
	call(s, 'a', 'b', 12);
	to(&cpus[1], 51, 0, 0, 'c', 20);
	to(&cpus[1], 51, 50, 7, 'b', 21);
	call(&cpus[1], 'b', 'd', 22);
	back(&cpus[1], 'd', 'b', 23);
	expect("another vCPU continues", "aABD 22-23\nc 20-20!\naAB 12-23!\naA 11-23!\na 10-10!\n");
}

int main(void)
{
	in_guest();
	at_switch();
	in_host();
	on_another_vcpu();
	return sum_up();
}
