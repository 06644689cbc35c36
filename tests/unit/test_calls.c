/*
 * test_calls.c - call stacks across gaps: the threads that may have run in one have a new stack after it, all
 * others keep theirs.
 *
 * What flows report is made up: the branches of three threads of the host and of two guests' threads.
 * Expected are the record stream's calls, one per line: the path from the bottom, begin and end, and "!" when
 * the return was not seen. And each call's caller, by its stack and depth, is the call of its path's parent.
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
	s->vcpu = guest ? s->cpu : -1;
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

/* Of each call the path, of each path the parent: as many as a test has. */
enum { CALLS = 1 << 19, STACKS = 8, DEPTHS = 1 << 15 };
static struct ptr_call calls[CALLS];
static uint32_t call_count, parents[CALLS];

/* As struct ptr_call says who is whose caller: calls that have another caller than their path, or none. */
static uint32_t wrong_callers(uint32_t *ret_without)
{
	static const struct ptr_call *next[STACKS][DEPTHS]; /* that returns there */
	uint32_t wrong = 0;

	memset(next, 0, sizeof next);
	*ret_without = 0;
	for (uint32_t i = call_count; i-- > 0;) {
		const struct ptr_call *c = &calls[i], *caller;

		if (c->stack >= STACKS || c->depth >= DEPTHS)
			check_stop("too many stacks");
		next[c->stack][c->depth] = c;
		if (!c->depth)
			continue;
		caller = next[c->stack][c->depth - 1];
		*ret_without += !caller;
		wrong += caller && (caller->call_path != parents[c->call_path] ||
				    caller->call_tsc > c->call_tsc || caller->return_tsc < c->return_tsc);
	}
	return wrong;
}

/* The stream's calls. expected NULL: there are too many to list. without: have a caller that is not in it. */
#define PATHS 256
static void expect(const char *what, const char *expected, uint32_t without)
{
	static char got[1 << 14], paths[PATHS][64], callers[64];
	uint32_t got_without;
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
	call_count = 0;
	while ((more = ptr_next(reader, &r, &e)) > 0) {
		if ((r.type == PTR_CALL || r.type == PTR_CALL_PATH) && r.number >= CALLS)
			check_stop("too many calls");
		if (r.type == PTR_CALL_PATH)
			parents[r.number] = r.call_path.parent;
		if (r.type == PTR_CALL)
			calls[call_count++] = r.call;
		if (r.type == PTR_CALL_PATH && expected && r.number < PATHS) {
			uint64_t base = r.call_path.ip < GUEST ? HOST : GUEST;

			snprintf(callers, sizeof callers, "%s", paths[r.call_path.parent]);
			snprintf(paths[r.number], sizeof paths[0], "%.60s%c", callers,
				 (int)((r.call_path.ip - base) >> 8) + (base == HOST ? 'a' : 'A'));
		}
		if (r.type == PTR_CALL && expected)
			n += (size_t)snprintf(got + n, sizeof got - n, "%s %" PRIu64 "-%" PRIu64 "%s\n",
					      paths[r.call.call_path], r.call.call_tsc, r.call.return_tsc,
					      r.call.flags & PTR_CALL_NO_RETURN ? "!" : "");
	}
	if (more < 0)
		check_stop(e.message);
	if (expected)
		check_text(got, expected, what);
	snprintf(got, sizeof got, "%s: callers", what);
	check(wrong_callers(&got_without) == 0, got);
	snprintf(got, sizeof got, "%s: calls without", what);
	check(got_without == without, got);
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
			  "C 30-32!\na 43-43!\n",
		    0);
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
		    "c 50-50!\na 61-61!\na 10-81!\n",
		    0);
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
	expect("lost in the host",
	       "a 10-20!\naAB 12-12!\naA 11-12!\naB 40-41!\naAB 12-41\naA 11-41!\na "
	       "10-13!\naA 41-41!\na 30-30!\n",
	       0);
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
	expect("another vCPU continues", "aABD 22-23\nc 20-20!\naAB 12-23!\naA 11-23!\na 10-10!\n", 0);
}

/* A thread has another name, and so another THREAD, before its calls return. */
static void renamed(void)
{
	struct pt_emit_stream *s = &cpus[0];
	struct pt_task *task;

	start();
	to(s, 50, 0, 0, 'a', 10);
	call(s, 'a', 'b', 11);
	call(s, 'b', 'c', 12);
	back(s, 'c', 'b', 13);
	task = pt_tasks_get(pt_machine_get(machines, 0)->tasks, 50, 50);
	snprintf(task->comm, sizeof task->comm, "other");
	task->version++;
	to(s, 50, 0, 0, 'b', 20);
	call(s, 'b', 'd', 21);
	back(s, 'd', 'b', 22);
	back(s, 'b', 'a', 23);
	expect("renamed", "abc 12-13\nabd 21-22\nab 11-23\na 10-23!\n", 0);
	check(calls[0].thread != calls[1].thread, "renamed: it is another THREAD");
}

/* Idle threads, of one THREAD, on two CPUs: the host's, or a guest's on two vCPUs. */
static void idle(void)
{
	for (int32_t guest = 0; guest <= 50; guest += 50) {
		start();
		to(&cpus[0], guest, guest, 0, 'a', 10);
		call(&cpus[0], 'a', 'b', 11);
		to(&cpus[1], guest, guest, 0, 'c', 12);
		call(&cpus[1], 'c', 'd', 13);
		call(&cpus[1], 'd', 'e', 14);
		back(&cpus[1], 'e', 'd', 15);
		back(&cpus[0], 'b', 'a', 20);
		back(&cpus[1], 'd', 'c', 21);
		expect(guest ? "a guest's idle threads" : "idle threads",
		       guest ? "CDE 14-15\nAB 11-20\nCD 13-21\nC 12-21!\nA 10-20!\n"
			     : "cde 14-15\nab 11-20\ncd 13-21\nc 12-21!\na 10-20!\n",
		       0);
		check(calls[0].thread == calls[1].thread, "idle threads are one THREAD");
	}
}

/* Recursion of which the bottom is dropped: what is left have their callers, but for the first of it. */
static void deep(void)
{
	struct pt_emit_stream *s = &cpus[0];

	start();
	to(s, 50, 0, 0, 'a', 1);
	call(s, 'a', 'b', 2);
	for (uint64_t tsc = 3; tsc < 17000; tsc++) {
		call(s, 'b', 'c', tsc);
		back(s, 'c', 'b', tsc);
		call(s, 'b', 'b', tsc);
	}
	for (uint64_t tsc = 17000; tsc < 34000; tsc++)
		back(s, 'b', 'b', tsc);
	/* 8192 are dropped, whose 'c' have returned. */
	expect("deep recursion", NULL, 8192);
}

/* ---- Calls within a run ----------------------------------------------------------------------------- */

/* A walk through functions 'a' to 'd': each calls some of these, in their order, and returns. */
enum { WALK_DEPTH = 12, WALK = 800000 };
struct walk {
	uint32_t random;
	uint32_t depth;
	struct {
		char function;
		unsigned next; /* place that it may call from */
	} frames[WALK_DEPTH];
};

static uint32_t next_random(struct walk *w, uint32_t below)
{
	w->random = w->random * 1664525 + 1013904223;
	w->random &= 0xffff; /* so it comes by the same places again and again */
	return (w->random >> 6) % below;
}

/* The next branch. */
static enum ptr_kind walk(struct walk *w, uint64_t *ret_from, uint64_t *ret_to)
{
	char c = w->frames[w->depth].function, to;
	unsigned at = w->frames[w->depth].next + next_random(w, 2);

	if (at < 4 && w->depth + 1 < WALK_DEPTH && next_random(w, 8) < 6) {
		to = (char)('a' + at);
		*ret_from = CALLER(HOST, c, to);
		*ret_to = FN(HOST, to);
		w->frames[w->depth].next = at + 1;
		w->frames[++w->depth].function = to;
		w->frames[w->depth].next = 0;
		return PTR_CALL_DIR;
	}
	*ret_from = FN(HOST, c) + 0xff;
	if (!w->depth) {
		w->frames[0].next = 0;
		*ret_to = FN(HOST, c);
		return PTR_JMP;
	}
	/* Some do not return to who has called them (longjmp). */
	w->depth -= w->depth > 1 && next_random(w, 16) == 0 ? 2 : 1;
	*ret_to = CALLER(HOST, w->frames[w->depth].function, w->frames[w->depth + 1].function) + 5;
	return PTR_RET;
}

/* Runs of the walk's branches, up to `most` in each. Every so often what is known of paths is forgotten. */
static void walk_by(uint32_t most, uint32_t *first_of_run)
{
	static struct walk w;
	struct pt_emit_stream *s = &cpus[0];
	uint64_t start_ip = FN(HOST, 'a'), to = 0;
	uint32_t done = 0;

	w = (struct walk){.random = 1, .frames[0].function = 'a'};
	for (uint32_t turn = 0; done < WALK; turn++) {
		uint32_t edges[PTR_PATH_EDGES + 3], n = 0, count = turn % 7 * 5 % most + 1;
		struct pt_flow_run r = {
		    .repeats = 1, .tsc = 100 + done, .timing = PTR_TIME_BEFORE, .cyc_count = PTR_UNKNOWN};

		if (count > WALK - done)
			count = WALK - done;
		for (; n < count; n++) {
			uint64_t from;
			enum ptr_kind kind = walk(&w, &from, &to);

			edges[n] = pt_graph_edge(&graph, s->machine->code, from, to, kind);
		}
		r.path = pt_graph_path(&graph,
				       &(struct pt_path_key){.code = s->machine->code,
							     .start_ip = start_ip,
							     .end_ip = to,
							     .edges = edges,
							     .count = n,
							     .mode = INSN_64},
				       0);
		first_of_run[turn + 1] = done;
		start_ip = to;
		done += n;
		pt_emit_output.runs(s, flow, &r, 1);
		if (turn % 30000 == 29999)
			pt_emit_recycle(&emit);
	}
}

/* By runs of up to 31 branches calls are what they are by runs of one each: but for their times. */
static void within_runs(void)
{
	static struct ptr_call one_by_one[CALLS];
	static uint32_t first_of_run[2][WALK + 2];
	uint32_t count = 0, differ = 0, inner = 0;

	for (uint32_t most = 1; most <= 31; most += 30) {
		start();
		to(&cpus[0], 50, 0, 0, 'a', 10);
		walk_by(most, first_of_run[most > 1]);
		expect("a walk", NULL, 0);
		if (most > 1)
			break;
		count = call_count;
		memcpy(one_by_one, calls, count * sizeof *calls);
	}
	check_same(call_count, count, "a walk: calls");
	for (uint32_t i = 0; i < call_count; i++) {
		const struct ptr_call *a = &one_by_one[i], *b = &calls[i];
		uint64_t run = b->return_branch / PTR_RUN_BRANCHES;

		differ += a->call_path != b->call_path || a->depth != b->depth || a->flags != b->flags ||
			  a->branch_count != b->branch_count || a->insn_count != b->insn_count ||
			  a->thread != b->thread || a->stack != b->stack;
		differ += b->return_branch && first_of_run[0][a->return_branch / PTR_RUN_BRANCHES] !=
						  first_of_run[1][run] + b->return_branch % PTR_RUN_BRANCHES;
		differ += b->call_branch && first_of_run[0][a->call_branch / PTR_RUN_BRANCHES] !=
						first_of_run[1][b->call_branch / PTR_RUN_BRANCHES] +
						    b->call_branch % PTR_RUN_BRANCHES;
		if (b->call_branch && b->call_branch / PTR_RUN_BRANCHES == run) {
			inner++;
			differ += b->call_tsc != b->return_tsc || b->return_tsc != 100 + first_of_run[1][run];
		}
	}
	check_same(differ, 0, "a walk: calls are other ones by runs");
	check(inner > 20000, "a walk: calls within a run");
}

int main(void)
{
	in_guest();
	at_switch();
	in_host();
	on_another_vcpu();
	renamed();
	idle();
	deep();
	within_runs();
	return sum_up();
}
