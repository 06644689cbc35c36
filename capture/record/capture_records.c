/* capture_records.c - what a record needs is written to the container before it: tasks, images. */
#include "capture/record/capture_internal.h"
#include "schema/array.h"
#include "schema/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Puts what was read of a process at the start, when it is seen the first time. */
static int seen(struct capture *c, int32_t pid, struct pt_error *e)
{
	if (pid <= 0)
		return 0;
	/* What is put now is known of it then, and in this container already. */
	return capture_switch_process(c, pid, e) || hw_tasks_put(&c->tasks, pid, c->drain.round_ns, e) ? -1
												       : 0;
}

static int on_mmap2(struct capture *c, const struct hw_record *r, struct pt_error *e)
{
	const uint8_t *p = r->bytes;
	struct hw_mapping m;

	if (r->header.size < 80 || !(u32(p + 64) & PROT_EXEC) || (int32_t)u32(p + 8) == -1)
		return 0;
	m = hw_mapping_of(p);
	m.time_ns = r->time_ns;
	return hw_images_mapping(c->images, &m, e);
}

/* PERF_RECORD_KSYMBOL: {u64 address; u32 bytes; u16 type, flags; name} after the header. */
static int on_ksymbol(struct capture *c, const struct hw_record *r, struct pt_error *e)
{
	static const char program[] = "bpf_prog_";
	const uint8_t *p = r->bytes;
	uint64_t address;

	if (r->header.size < 24 + sizeof program || p[23] || p[22] & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		return 0;
	address = u64(p + 8);
	/* Of a program its BPF_EVENT follows, which says its number. Trampolines have no number. */
	if (p[20] != PERF_RECORD_KSYMBOL_TYPE_BPF || memcmp(p + 24, program, sizeof program - 1) != 0)
		return hw_images_put_kernel_code(c->images, address, u32(p + 16), r->time_ns, e);
	c->bpf_symbols[c->bpf_symbol_next++ % CAPTURE_BPF_SYMBOLS] =
	    (struct capture_bpf_symbol){address, r->time_ns};
	return 0;
}

/* When the function at that address was made known; fallback: its KSYMBOL has not been seen yet. */
static uint64_t bpf_symbol_time(const struct capture *c, uint64_t address, uint64_t fallback)
{
	uint64_t time_ns = 0;

	/* The newest: an address is used again. */
	for (unsigned i = 0; i < CAPTURE_BPF_SYMBOLS; i++)
		if (c->bpf_symbols[i].address == address && c->bpf_symbols[i].time_ns > time_ns)
			time_ns = c->bpf_symbols[i].time_ns;
	return time_ns && time_ns < fallback ? time_ns : fallback;
}

/* PERF_RECORD_BPF_EVENT: {u16 type, flags; u32 id; u8 tag[8]} after the header. */
static int on_bpf_event(struct capture *c, const struct hw_record *r, struct pt_error *e)
{
	const uint8_t *p = r->bytes;
	struct hw_bpf_program program;
	struct pt_error why = {0};
	char name[48];

	if (r->header.size < 24 || p[8] != PERF_BPF_EVENT_PROG_LOAD || p[9])
		return 0;
	snprintf(name, sizeof name, "BPF program %u", u32(p + 12));
	if (!c->bpf_code || hw_bpf_code_get(c->bpf_code, u32(p + 12), &program, &why) ||
	    memcmp(program.tag, p + 16, sizeof program.tag) != 0) {
		hw_images_count_missing(c->images, name,
					!c->bpf_code	 ? "it takes CAP_SYS_ADMIN to read it"
					: why.message[0] ? why.message
							 : "another one has its number by now");
		return 0;
	}
	for (uint32_t i = 0; i < program.count; i++) {
		const struct hw_bpf_function *f = &program.functions[i];

		if (hw_images_put_kernel_bytes(c->images, f->address, f->code, f->bytes,
					       bpf_symbol_time(c, f->address, r->time_ns), e))
			return -1;
	}
	return 0;
}

/* PERF_RECORD_FORK: {u32 pid, ppid, tid, ptid} after the header. */
static int on_fork(struct capture *c, const struct hw_record *r, struct pt_error *e)
{
	if (!c->drain.jit || r->header.size < 24)
		return 0;
	return hw_jit_forked(c->drain.jit, (int32_t)u32(r->bytes + 8), (int32_t)u32(r->bytes + 12),
			     r->time_ns, e);
}

/*
 * A sample of module:module_load: after its id, its IP if there is one, pid, tid, time and CPU the tracepoint's
 * own data: 8 bytes of all tracepoints, u32 taints, u32 the name's length and place (__data_loc).
 */
static int on_module_load(struct capture *c, const struct hw_record *r, struct pt_error *e)
{
	bool ip = c->drain.events.sample_types[r->attr] & PERF_SAMPLE_IP;
	const uint8_t *p = r->bytes + sizeof r->header + (ip ? 40 : 32), *end = r->bytes + r->header.size;
	struct hw_module_load load = {.time_ns = r->time_ns};

	if (end - p >= 20 && u32(p) <= (size_t)(end - p) - 4) {
		uint32_t at = u32(p + 16) & 0xffff, n = u32(p + 16) >> 16;

		if (at <= u32(p) && n <= u32(p) - at && n < sizeof load.name)
			memcpy(load.name, p + 4 + at, n);
	}
	if (pt_array_grow(&c->module_loads, c->module_load_count, &c->module_load_room, e))
		return -1;
	c->module_loads[c->module_load_count++] = load;
	return 0;
}

static int on_sample(struct capture *c, const struct hw_record *r, struct pt_error *e)
{
	struct hw_trigger *trigger = c->o->steering.trigger;
	const char *name;

	if (r->attr >= c->ev.attr_count)
		return 0;
	name = c->ev.attrs[r->attr].name;
	if (trigger && hw_trigger_sample(trigger, name, r->tid, r->time_ns))
		c->fire = true;
	return strcmp(name, "module:module_load") == 0 ? on_module_load(c, r, e) : 0;
}

static int by_time(const void *a, const void *b)
{
	const struct hw_module_load *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

int capture_on_records_end(void *arg, struct pt_error *e)
{
	struct capture *c = arg;
	size_t count = c->module_load_count;

	c->module_load_count = 0;
	if (count > 1)
		qsort(c->module_loads, count, sizeof *c->module_loads, by_time);
	return hw_images_modules_loaded(c->images, c->module_loads, count, e);
}

void capture_forked(void *arg, int32_t child, int32_t parent)
{
	const struct capture *c = arg;

	hw_images_forked(c->images, child, parent);
}

int capture_on_record(void *arg, const struct hw_record *r, struct pt_error *e)
{
	struct capture *c = arg;

	if (seen(c, r->pid, e) || capture_switch_record(c, r, e))
		return -1;
	switch (r->header.type) {
	case PERF_RECORD_ITRACE_START:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return r->header.size >= 16 ? seen(c, (int32_t)u32(r->bytes + 8), e) : 0;
	case PERF_RECORD_MMAP2: return on_mmap2(c, r, e);
	case PERF_RECORD_FORK: return on_fork(c, r, e);
	case PERF_RECORD_KSYMBOL: return on_ksymbol(c, r, e);
	case PERF_RECORD_BPF_EVENT: return on_bpf_event(c, r, e);
	case PERF_RECORD_SAMPLE: return on_sample(c, r, e);
	default: return 0;
	}
}
