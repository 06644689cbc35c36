/* text_runs.c - see text_runs.h. */
#include "decode/output/text_runs.h"

#include <stdlib.h>
#include <string.h>

#include "schema/derived/run_times.h"

struct pt_text_runs {
	const struct pt_graph *graph;
	const struct pt_text *text;
	struct ptr_times *times;
};

/* In own.u64 of a held run: what its lines say. */
enum { PATH, WHO, CPU, COMM, ERROR_KIND = COMM + 2, ERROR_IP, ERROR_OFFSET, ERROR_MESSAGE };
/* ERROR_KIND is "KIND\0MESSAGE", which is the held run's, and ERROR_MESSAGE points into it. */

struct pt_text_runs *pt_text_runs_create(const struct pt_graph *graph, const struct pt_text *text)
{
	struct pt_text_runs *t = calloc(1, sizeof *t);

	if (t)
		t->times = ptr_times_create();
	if (!t || !t->times) {
		free(t);
		return NULL;
	}
	t->graph = graph;
	t->text = text;
	return t;
}

void pt_text_runs_destroy(struct pt_text_runs *t)
{
	const struct ptr_timed_run *r;

	if (!t)
		return;
	ptr_times_settle(t->times);
	while ((r = ptr_times_next(t->times)))
		free(r->own.p[ERROR_KIND]);
	ptr_times_destroy(t->times);
	free(t);
}

static void set_who(struct ptr_timed_run *r, const struct pt_task *task, int32_t cpu)
{
	r->own.u64[WHO] = task ? (uint32_t)task->pid | (uint64_t)(uint32_t)task->tid << 32 : UINT64_MAX;
	r->own.u64[CPU] = (uint32_t)cpu;
	if (task)
		memcpy(&r->own.u64[COMM], task->comm, sizeof task->comm);
}

static void print_error(struct pt_text_runs *t, const struct ptr_timed_run *r, const struct pt_task *task)
{
	struct pt_error_line line = {.task = task,
				     .cpu = (int32_t)r->own.u64[CPU],
				     .ip = r->own.u64[ERROR_IP],
				     .aux_offset = r->own.u64[ERROR_OFFSET],
				     .kind = r->own.p[ERROR_KIND],
				     .message = r->own.p[ERROR_MESSAGE]};

	if (t->text->error)
		t->text->error(t->text->arg, &line);
	free(r->own.p[ERROR_KIND]);
}

/* The branches of a path, so often in a row. */
static void print_run(struct pt_text_runs *t, const struct ptr_timed_run *r, const struct pt_task *task)
{
	const struct pt_path *path = &t->graph->paths[(uint32_t)r->own.u64[PATH]];
	uint32_t repeats = r->own.u64[PATH] >> 32;
	bool exact = r->timing == PTR_TIME_EXACT;
	struct pt_branch_line line = {.task = task,
				      .cpu = (int32_t)r->own.u64[CPU],
				      .tsc = r->tsc_est,
				      .tsc_lo = r->tsc,
				      .tsc_hi = exact ? r->tsc : r->tsc_end,
				      .exact = exact};
	double per_insn = r->insns_next ? (double)(r->tsc_next - r->tsc_est) / (double)r->insns_next : 0;
	uint64_t x = 0;

	for (uint32_t n = 0; n < repeats; n++) {
		for (uint32_t i = 0; i < path->count; i++) {
			line.edge = &t->graph->edges[t->graph->path_edges[path->first + i]];
			line.insns = t->graph->path_insns[path->first + i];
			if (n || i) {
				x += line.insns;
				line.tsc = r->tsc_est + (uint64_t)((double)x * per_insn);
				line.tsc_hi = r->tsc_end;
				line.exact = false;
			}
			t->text->branch(t->text->arg, &line);
		}
		x += path->tail_insns;
	}
}

static void print(struct pt_text_runs *t)
{
	const struct ptr_timed_run *r;

	while ((r = ptr_times_next(t->times))) {
		struct pt_task who = {.pid = (int32_t)r->own.u64[WHO],
				      .tid = (int32_t)(r->own.u64[WHO] >> 32)};
		const struct pt_task *task = r->own.u64[WHO] == UINT64_MAX ? NULL : &who;

		memcpy(who.comm, &r->own.u64[COMM], sizeof who.comm);
		if (r->own.p[ERROR_MESSAGE])
			print_error(t, r, task);
		else
			print_run(t, r, task);
	}
}

bool pt_text_runs_put(struct pt_text_runs *t, const struct pt_emit_stream *s, const struct pt_path *path,
		      const struct pt_flow_run *run)
{
	struct ptr_timed_run r = {.stream = s->stream,
				  .slice = s->slice,
				  .timing = run->timing,
				  .insns = (uint64_t)path->insns * run->repeats,
				  .tsc = run->tsc};
	enum ptr_kind first = PTR_KIND_NONE, last;

	if (path->count) {
		first = t->graph->edges[t->graph->path_edges[path->first]].kind;
		last = t->graph->edges[t->graph->path_edges[path->first + path->count - 1]].kind;
		r.first_insns = t->graph->path_insns[path->first];
		r.direct_last = last == PTR_JMP || last == PTR_CALL_DIR;
	}
	r.begins = first == PTR_TRACE_BEGIN;
	r.crosses = first == PTR_VMENTRY || first == PTR_VMEXIT;
	r.own.u64[PATH] = run->path | (uint64_t)run->repeats << 32;
	set_who(&r, s->task, s->cpu);
	if (!ptr_times_put(t->times, &r))
		return false;
	print(t);
	return true;
}

bool pt_text_runs_error(struct pt_text_runs *t, const struct pt_error_line *line)
{
	struct ptr_timed_run r = {.tsc = PTR_NO_TSC};
	size_t kind_bytes = strlen(line->kind) + 1, message_bytes = strlen(line->message) + 1;
	char *text = malloc(kind_bytes + message_bytes);

	if (!text)
		return false;
	memcpy(text, line->kind, kind_bytes);
	memcpy(text + kind_bytes, line->message, message_bytes);
	set_who(&r, line->task, line->cpu);
	r.own.p[ERROR_KIND] = text;
	r.own.u64[ERROR_IP] = line->ip;
	r.own.u64[ERROR_OFFSET] = line->aux_offset;
	r.own.p[ERROR_MESSAGE] = text + kind_bytes;
	if (!ptr_times_put(t->times, &r)) {
		free(text);
		return false;
	}
	print(t);
	return true;
}

void pt_text_runs_settle(struct pt_text_runs *t)
{
	ptr_times_settle(t->times);
	print(t);
}
