/*
 * growth_ptr.h - record streams. Part of mkgrowth.c.
 */
#ifndef TESTS_TOOLS_GROWTH_PTR_H
#define TESTS_TOOLS_GROWTH_PTR_H

#include "schema/records.h"
#include "tests/tools/growth_bytes.h"

static struct ptr_writer *ptr;

static void begin_stream(void)
{
	ptr = ptr_writer_create(1, NULL, &error);
	ok(ptr ? 0 : -1);
	ok(ptr_put_meta(ptr, "uuid", "5", &error));
	ok(ptr_put_machine(ptr, &(struct ptr_machine){.name = "host"}, &error));
	ok(ptr_put_thread(ptr, &(struct ptr_thread){.machine = 1, .pid = 5, .tid = 5, .comm = "c"}, &error));
}

static void end_stream(void)
{
	ok(ptr_writer_finish(ptr, &error));
	ptr_writer_destroy(ptr);
}

static void ptr_metas(uint64_t n)
{
	begin_stream();
	for (uint64_t i = n; i > 0; i--) {
		char key[32];

		snprintf(key, sizeof key, "key%u", (unsigned)i);
		ok(ptr_put_meta(ptr, key, "value", &error));
	}
	end_stream();
}

/* Machines, threads, files, symbols, edges, paths, slices, runs: all that is defined, n of each, used once. */
static void ptr_definitions(uint64_t n)
{
	begin_stream();
	for (uint64_t k = n; k > 0; k--) {
		uint32_t i = (uint32_t)k;
		struct ptr_machine m = {.pid = i, .name = "vm"};
		struct ptr_thread t = {.pid = (int32_t)i, .tid = (int32_t)i, .comm = "c"};
		struct ptr_dso d = {.name = "f", .build_id = ""};
		struct ptr_symbol s = {.start = 64 * k, .end = 64 * k + 64, .name = "s"};
		struct ptr_edge e = {.from = 64 * k + 8, .to = 64 * k, .kind = PTR_JMP};
		struct ptr_path p = {.start_ip = 64 * k, .count = 1, .insns[0] = 2};
		struct ptr_slice slice = {.vcpu = -1, .tsc = k};
		struct ptr_run run = {.tsc = k, .repeats = 1, .cyc_count = PTR_UNKNOWN};

		t.machine = (uint32_t)ok(ptr_put_machine(ptr, &m, &error));
		s.dso = (uint32_t)ok(ptr_put_dso(ptr, &d, &error));
		e.from_symbol = e.to_symbol = (uint32_t)ok(ptr_put_symbol(ptr, &s, &error));
		p.edge[0] = (uint32_t)ok(ptr_put_edge(ptr, &e, &error));
		run.path = (uint32_t)ok(ptr_put_path(ptr, &p, &error));
		slice.thread = (uint32_t)ok(ptr_put_thread(ptr, &t, &error));
		run.slice = (uint32_t)ok(ptr_put_slice(ptr, &slice, &error));
		ok(ptr_put_run(ptr, &run, 1, &error));
	}
	end_stream();
}

/* Slices that remain open together, and runs of each in turn. */
static void ptr_slices(uint64_t n)
{
	struct ptr_edge e = {.from = 8, .to = 64, .kind = PTR_JMP};
	struct ptr_path p = {.start_ip = 64, .count = 1, .edge[0] = 1, .insns[0] = 2};

	begin_stream();
	ok(ptr_put_edge(ptr, &e, &error));
	ok(ptr_put_path(ptr, &p, &error));
	for (uint64_t i = 0; i < n; i++)
		ok(ptr_put_slice(
		    ptr,
		    &(struct ptr_slice){
			.thread = 1, .cpu = (int32_t)i, .vcpu = -1, .stream = (uint32_t)i + 1, .tsc = i},
		    &error));
	for (uint64_t i = n; i > 0; i--)
		ok(ptr_put_run(ptr,
			       &(struct ptr_run){.slice = (uint32_t)i,
						 .path = 1,
						 .repeats = 1,
						 .tsc = 2 * n - i,
						 .cyc_count = PTR_UNKNOWN},
			       1, &error));
	end_stream();
}

/* Calls on different call paths, deeper and deeper. */
static void ptr_calls(uint64_t n)
{
	begin_stream();
	for (uint64_t i = 0; i < n; i++)
		ok(ptr_put_call_path(ptr, &(struct ptr_call_path){.parent = (uint32_t)i, .ip = 64 * i},
				     &error));
	for (uint64_t i = n; i > 0; i--)
		ok(ptr_put_call(ptr,
				&(struct ptr_call){.thread = 1,
						   .stack = 1,
						   .call_path = (uint32_t)i,
						   .call_tsc = i,
						   .return_tsc = 2 * n - i,
						   .cyc_count = PTR_UNKNOWN,
						   .depth = (uint32_t)i - 1},
				&error));
	end_stream();
}

static void ptr_vm_rows(uint64_t n)
{
	begin_stream();
	for (uint64_t i = 0; i < n; i++) {
		ok(ptr_put_guest_run(ptr,
				     &(struct ptr_guest_run){.machine = 1,
							     .thread = 1,
							     .vcpu = (int32_t)i,
							     .entry_tsc = 2 * i,
							     .exit_tsc = 2 * i + 1},
				     &error));
		ok(ptr_put_vm_clock(
		    ptr,
		    &(struct ptr_vm_clock){
			.machine = 1, .vcpu = (int32_t)i, .from_tsc = i, .ratio = PTR_UNKNOWN},
		    &error));
		ok(ptr_put_vmexit(ptr,
				  &(struct ptr_vmexit){.machine = 1,
						       .thread = 1,
						       .vcpu = (int32_t)i,
						       .before = (uint32_t)i + 1,
						       .exit_tsc = 2 * i + 1,
						       .entry_tsc = 2 * i + 2,
						       .reason = i % 60,
						       .stolen_by = 1},
				  &error));
		ok(ptr_put_event(
		    ptr, &(struct ptr_event){.machine = 1, .tsc = i, .name = "n", .fields = "{}"}, &error));
		ok(ptr_put_error(ptr,
				 &(struct ptr_error){.tsc = i, .tsc_end = i, .kind = "lost", .message = "m"},
				 &error));
	}
	end_stream();
}

#endif
