/* emit.c - see emit.h. */
#include "decode/output/emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/output/calls.h"
#include "decode/output/text_runs.h"

struct named { /* a symbol or (name NULL) file with its record number */
	const void *file;
	uint64_t start;
	uint32_t index, number;
};

struct pt_names {
	struct named *slots;
	uint32_t mask, count;
};

int pt_emit_init(struct pt_emit *m, struct ptr_writer *w, struct pt_graph *graph, struct pt_error *e)
{
	memset(m, 0, sizeof *m);
	m->writer = w;
	m->graph = graph;
	m->call_paths = PT_CALL_PATHS;
	m->names = calloc(1, sizeof *m->names);
	m->stacks = pt_calls_create(m);
	if (m->names) {
		m->names->mask = (1u << 10) - 1;
		m->names->slots = calloc(m->names->mask + 1, sizeof *m->names->slots);
	}
	if (!m->names || !m->names->slots || !m->stacks) {
		pt_emit_deinit(m);
		return pt_fail_no_memory(e, "the records");
	}
	return 0;
}

void pt_emit_deinit(struct pt_emit *m)
{
	if (m->names)
		free(m->names->slots);
	free(m->names);
	pt_calls_destroy(m->stacks);
	pt_text_runs_destroy(m->text_runs);
	m->names = NULL;
	m->stacks = NULL;
	m->text_runs = NULL;
}

/* The record's number, or 0 after a failure, which is kept. */
static uint32_t put(struct pt_emit *m, int64_t number)
{
	if (number >= 0)
		return (uint32_t)number;
	m->failed = true;
	return 0;
}

static uint32_t slot(const struct pt_names *n, const void *file, uint64_t start, uint32_t index)
{
	uint64_t x = ((uintptr_t)file + start) * 0x9e3779b97f4a7c15u + index;
	uint32_t i = (uint32_t)(x >> 32) & n->mask;

	while (n->slots[i].number &&
	       (n->slots[i].file != file || n->slots[i].start != start || n->slots[i].index != index))
		i = (i + 1) & n->mask;
	return i;
}

static void name_add(struct pt_emit *m, const void *file, uint64_t start, uint32_t index, uint32_t number)
{
	struct pt_names *n = m->names;

	if (!number)
		return;
	if (n->count++ > n->mask / 2) {
		struct pt_names bigger = {.mask = n->mask * 4 + 3};

		bigger.slots = calloc((size_t)bigger.mask + 1, sizeof *bigger.slots);
		if (!bigger.slots) {
			m->failed = true;
			pt_fail_no_memory(&m->error, "the symbols");
			return;
		}
		for (uint32_t i = 0; i <= n->mask; i++) {
			const struct named *s = &n->slots[i];

			if (s->number)
				bigger.slots[slot(&bigger, s->file, s->start, s->index)] = *s;
		}
		bigger.count = n->count;
		free(n->slots);
		*n = bigger;
	}
	n->slots[slot(n, file, start, index)] =
	    (struct named){.file = file, .start = start, .index = index, .number = number};
}

static uint32_t dso(struct pt_emit *m, const struct img_file *file)
{
	struct ptr_dso r = {.name = img_file_name(file), .build_id = img_file_build_id(file)};
	uint32_t i = slot(m->names, file, 0, UINT32_MAX), number = m->names->slots[i].number;

	if (number)
		return number;
	number = put(m, ptr_put_dso(m->writer, &r, &m->error));
	name_add(m, file, 0, UINT32_MAX, number);
	return number;
}

uint32_t pt_emit_symbol(struct pt_emit *m, struct img_space *space, uint64_t ip)
{
	struct img_symbol sym;
	struct ptr_symbol r;
	uint32_t i, number;

	if (m->failed || img_space_symbol(space, ip, &sym) < 0)
		return 0;
	i = slot(m->names, sym.file, sym.start, sym.index);
	if (m->names->slots[i].number)
		return m->names->slots[i].number;
	r = (struct ptr_symbol){
	    .dso = dso(m, sym.file), .start = sym.start, .end = sym.end, .name = sym.name};
	if (m->failed)
		return 0;
	number = put(m, ptr_put_symbol(m->writer, &r, &m->error));
	name_add(m, sym.file, sym.start, sym.index, number);
	return number;
}

uint32_t pt_emit_machine(struct pt_emit *m, struct pt_machine *machine)
{
	struct ptr_machine r = {.pid = (uint32_t)machine->pid, .name = machine->name};

	if (!machine->number && !m->failed)
		machine->number = put(m, ptr_put_machine(m->writer, &r, &m->error));
	return machine->number;
}

uint32_t pt_emit_thread(struct pt_emit *m, struct pt_task *task)
{
	struct ptr_thread r;

	if (!task || m->failed)
		return 0;
	if (task->number && task->number_version == task->version)
		return task->number;
	r = (struct ptr_thread){.machine = pt_emit_machine(m, task->machine),
				.pid = task->pid,
				.tid = task->tid,
				.comm = task->comm};
	if (m->failed)
		return 0;
	task->number_version = task->version;
	task->number = put(m, ptr_put_thread(m->writer, &r, &m->error));
	return task->number;
}

/* ---- Dictionary ------------------------------------------------------------------------------------- */

static uint32_t edge_number(struct pt_emit *m, struct pt_edge *edge)
{
	struct img_space *space =
	    m->graph->codes[edge->code]->space; /* not the path's: an edge may lead to user space */
	struct ptr_edge r;

	if (edge->number || m->failed)
		return edge->number;
	r = (struct ptr_edge){.from = edge->from, .to = edge->to, .kind = edge->kind};
	if (edge->from)
		r.from_symbol = pt_emit_symbol(m, space, edge->from);
	if (edge->to)
		r.to_symbol = pt_emit_symbol(m, space, edge->to);
	if (m->failed)
		return 0;
	edge->number = put(m, ptr_put_edge(m->writer, &r, &m->error));
	return edge->number;
}

static uint32_t path_number(struct pt_emit *m, struct pt_path *path)
{
	struct pt_graph *g = m->graph;
	struct ptr_path r;

	if (path->number)
		return path->number;
	r.start_ip = path->start_ip;
	r.end_ip = path->end_ip;
	r.count = path->count;
	r.not_taken = path->not_taken;
	r.tail_insns = path->tail_insns;
	for (uint32_t i = 0; i < path->count; i++) {
		r.edge[i] = edge_number(m, &g->edges[g->path_edges[path->first + i]]);
		r.insns[i] = g->path_insns[path->first + i];
	}
	if (m->failed)
		return 0;
	path->number = put(m, ptr_put_path(m->writer, &r, &m->error));
	return path->number;
}

/* ---- What flows report ------------------------------------------------------------------------------ */

static void put_pending(struct pt_emit_stream *s, uint64_t tsc_end)
{
	struct pt_emit *m = s->emit;

	if (!s->has_pending)
		return;
	s->has_pending = false;
	s->pending.tsc_end = tsc_end;
	if (!m->failed)
		put(m, ptr_put_error(m->writer, &s->pending, &m->error));
}

void pt_emit_stream_end(struct pt_emit_stream *s)
{
	put_pending(s, PTR_NO_TSC);
}

static void on_begin(void *arg, const struct pt_flow *f, uint64_t tsc, struct pt_code *code, uint64_t ip)
{
	struct pt_emit_stream *s = arg;
	struct pt_emit *m = s->emit;
	struct ptr_slice r;

	(void)f;
	put_pending(s, tsc);
	if (m->failed)
		return;
	s->thread = pt_emit_thread(m, s->task);
	r = (struct ptr_slice){
	    .thread = s->thread, .cpu = s->cpu, .vcpu = s->vcpu, .stream = s->stream, .tsc = tsc};
	if (m->failed)
		return;
	s->slice = put(m, ptr_put_slice(m->writer, &r, &m->error));
	s->not_taken = 0;
	s->missed = PT_SEEN;
	if (m->calls)
		pt_calls_begin(m->stacks, s, code, ip, tsc);
}

/* Text takes runs and errors by way of text_runs.h. False: there is none. */
static bool text_runs(struct pt_emit *m)
{
	if (!m->text || m->failed)
		return false;
	if (!m->text_runs)
		m->text_runs = pt_text_runs_create(m->graph, m->text);
	if (!m->text_runs) {
		m->failed = true;
		pt_fail_no_memory(&m->error, NULL);
	}
	return !m->failed;
}

static void text_done(struct pt_emit *m, bool ok)
{
	if (ok)
		return;
	m->failed = true;
	pt_fail_no_memory(&m->error, NULL);
}

static void text_error(struct pt_emit *m, const struct pt_error_line *line)
{
	if (m->text && text_runs(m))
		text_done(m, pt_text_runs_error(m->text_runs, line));
}

static void put_event(struct pt_emit_stream *s, uint64_t tsc, const char *name, uint64_t ip,
		      const char *fields)
{
	struct pt_emit *m = s->emit;
	char json[512];
	struct ptr_event r = {.slice = s->slice,
			      .machine = s->machine ? pt_emit_machine(m, s->machine) : 0,
			      .thread = pt_emit_thread(m, s->task),
			      .cpu = s->cpu,
			      .vcpu = s->vcpu,
			      .tsc = tsc,
			      .ip = ip,
			      .name = name,
			      .fields = json};

	snprintf(json, sizeof json, "{%s}", fields);
	if (!m->failed)
		put(m, ptr_put_event(m->writer, &r, &m->error));
}

/* A run that may be part of emulated PTWRITEs. */
struct emulated_run {
	struct pt_emit_stream *s;
	uint64_t tsc;
};

static void on_emulated(void *arg, uint64_t ip, uint64_t value)
{
	struct emulated_run *r = arg;
	char fields[64];

	snprintf(fields, sizeof fields, "\"payload\":%" PRId64 ",\"bytes\":8,\"emulated\":true",
		 (int64_t)value);
	put_event(r->s, r->tsc, "ptwrite", ip, fields);
}

static void emulated(struct pt_emit_stream *s, const struct pt_path *path, const struct pt_flow_run *run)
{
	struct emulated_run r = {.s = s, .tsc = run->tsc};

	for (uint32_t n = 0; n < run->repeats && (s->emulated.reading || path->emulated); n++)
		pt_emulated_path(&s->emulated, s->emit->graph, path, s->task, on_emulated, &r);
}

static void put_run(struct pt_emit_stream *s, const struct pt_flow_run *run)
{
	struct pt_emit *m = s->emit;
	struct pt_path *path = &m->graph->paths[run->path];
	struct ptr_run r;
	int64_t number;

	if (m->failed)
		return;
	m->branches += (uint64_t)path->count * run->repeats;
	s->not_taken += (uint64_t)path->not_taken * run->repeats;
	if (m->text && text_runs(m))
		text_done(m, pt_text_runs_put(m->text_runs, s, path, run));
	r.slice = s->slice;
	r.tsc = run->tsc;
	r.timing = run->timing;
	r.path = m->definitions ? path_number(m, path) : run->path;
	r.repeats = run->repeats;
	r.cyc_count = run->cyc_count;
	r.insn_count = run->insn_count;
	if (m->failed)
		return;
	number = ptr_put_run(m->writer, &r, path->count, &m->error);
	if (number < 0) {
		m->failed = true;
		return;
	}
	if (m->vm && m->vm->runs)
		m->vm->runs(m->vm_arg, s, run, 1, (uint64_t)number);
	for (uint32_t n = 0; n < (m->calls ? run->repeats : 1); n++) {
		if (m->calls)
			pt_calls_path(m->stacks, s, path, run->tsc, (uint64_t)number, n * path->count);
		s->insns += path->insns;
		s->branches += path->count;
	}
	if (run->cyc_count != PTR_UNKNOWN) {
		s->cycles += run->cyc_count;
		s->has_cyc = true;
	}
	if (path->emulated | s->emulated.reading)
		emulated(s, path, run);
}

/* Of runs that nobody takes but their number. False, with nothing done, when values are in them. */
static bool count_runs(struct pt_emit_stream *s, const struct pt_flow_run *runs, uint32_t n)
{
	struct pt_emit *m = s->emit;
	const struct pt_path *paths = m->graph->paths;
	const uint8_t *counts = m->graph->path_counts;
	uint64_t branches = 0, not_taken = 0, last;
	bool values = s->emulated.reading;

	for (uint32_t i = 0; i < n; i++)
		branches += (uint64_t)counts[runs[i].path] * runs[i].repeats;
	/* A bare graph's paths hold nothing else, and need not be fetched. */
	for (uint32_t i = 0; i < n && !m->graph->bare; i++) {
		not_taken += (uint64_t)paths[runs[i].path].not_taken * runs[i].repeats;
		values |= paths[runs[i].path].emulated;
	}
	if (values)
		return false;
	m->branches += branches;
	s->not_taken += not_taken;
	last = ptr_count_runs(m->writer, n, branches);
	if (m->vm && m->vm->runs)
		m->vm->runs(m->vm_arg, s, runs, n, last - n + 1);
	return true;
}

static void on_runs(void *arg, const struct pt_flow *f, const struct pt_flow_run *runs, uint32_t n)
{
	struct pt_emit_stream *s = arg;
	const struct pt_emit *m = s->emit;

	(void)f;
	if (!m->definitions && !m->text && !m->calls && !m->failed && count_runs(s, runs, n))
		return;
	for (uint32_t i = 0; i < n; i++)
		put_run(s, &runs[i]);
}

void pt_emit_who(struct pt_emit_stream *s)
{
	const struct pt_emit *m = s->emit;

	if (!m->calls || s->missed == PT_SEEN ||
	    (s->missed == PT_MISSED_CODE && s->machine != s->missed_machine))
		return;
	pt_calls_gap(m->stacks, s, PTR_NO_TSC, s->missed == PT_MISSED_CODE);
}

static void on_end(void *arg, const struct pt_flow *f, uint64_t tsc, uint64_t insn_count, uint64_t cyc_count)
{
	struct pt_emit_stream *s = arg;
	struct pt_emit *m = s->emit;
	struct ptr_slice_end r = {.slice = s->slice,
				  .tsc = tsc,
				  .insn_count = insn_count,
				  .cyc_count = cyc_count,
				  .not_taken = s->not_taken};

	(void)f;
	if (m->calls)
		pt_calls_end(m->stacks, s);
	if (!m->failed)
		put(m, ptr_put_slice_end(m->writer, &r, &m->error));
}

static void on_error(void *arg, const struct pt_flow *f, const struct pt_flow_error *err)
{
	struct pt_emit_stream *s = arg;
	struct pt_emit *m = s->emit;

	if (!pt_flow_follows(f)) { /* what is wrong with what is not wanted is not wanted, too */
		if (m->vm && !err->no_image)
			m->vm->gap(m->vm_arg, s, f);
		return;
	}
	put_pending(s, err->tsc);
	s->has_pending = true;
	s->pending = (struct ptr_error){.slice = s->slice,
					.stream = s->stream,
					.cpu = s->cpu,
					.tsc = err->tsc,
					.tsc_end = PTR_NO_TSC,
					.ip = err->ip,
					.aux_offset = err->aux_offset,
					.kind = pt_flow_error_name(err->kind),
					.message = err->message};
	m->errors++;
	s->emulated.reading = false;
	text_error(m, &(struct pt_error_line){.task = s->task,
					      .cpu = s->cpu,
					      .ip = err->ip,
					      .aux_offset = err->aux_offset,
					      .kind = s->pending.kind,
					      .message = err->message});
	s->missed = err->no_image && s->missed != PT_MISSED ? PT_MISSED_CODE : PT_MISSED;
	s->missed_machine = s->machine;
	if (m->calls)
		pt_calls_gap(m->stacks, s, err->tsc, err->no_image);
	if (m->vm && err->no_image && m->vm->no_image)
		m->vm->no_image(m->vm_arg, s, f);
	if (m->vm && !err->no_image && m->vm->gap)
		m->vm->gap(m->vm_arg, s, f);
}

static void on_transition(void *arg, const struct pt_flow *f, const struct pt_vm_transition *t)
{
	struct pt_emit_stream *s = arg;
	struct pt_emit *m = s->emit;

	if (!s->unwanted && m->vm && m->vm->transition)
		m->vm->transition(m->vm_arg, s, f, t);
}

static void on_event(void *arg, const struct pt_flow *f, const char *name, uint64_t ip, const char *fields)
{
	put_event(arg, pt_flow_tsc(f), name, ip, fields);
}

static void on_event_trace(void *arg, const struct pt_flow *f, bool is_cfe, uint32_t type, uint64_t value)
{
	struct pt_emit_stream *s = arg;
	struct pt_emit *m = s->emit;

	(void)f;
	if (m->vm && m->vm->event_trace)
		m->vm->event_trace(m->vm_arg, s, is_cfe, type, value);
}

const struct pt_flow_output pt_emit_output = {.begin = on_begin,
					      .runs = on_runs,
					      .end = on_end,
					      .error = on_error,
					      .event = on_event,
					      .event_trace = on_event_trace,
					      .transition = on_transition};

void pt_emit_error(struct pt_emit *m, uint32_t stream, int32_t cpu, uint64_t tsc, const char *kind,
		   const char *message)
{
	struct ptr_error r = {.stream = stream,
			      .cpu = cpu,
			      .tsc = tsc,
			      .tsc_end = PTR_NO_TSC,
			      .aux_offset = PTR_UNKNOWN,
			      .kind = kind,
			      .message = message};

	m->errors++;
	text_error(m, &(struct pt_error_line){
			  .cpu = cpu, .aux_offset = PTR_UNKNOWN, .kind = kind, .message = message});
	if (!m->failed)
		put(m, ptr_put_error(m->writer, &r, &m->error));
}

void pt_emit_recycle(struct pt_emit *m)
{
	if (m->text_runs)
		pt_text_runs_settle(m->text_runs);
}

void pt_emit_finish(struct pt_emit *m)
{
	if (m->text_runs)
		pt_text_runs_settle(m->text_runs);
	if (m->calls)
		pt_calls_finish(m->stacks);
}
