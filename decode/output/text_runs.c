/* text_runs.c - see text_runs.h. */
#include "decode/output/text_runs.h"

#include <stdlib.h>
#include <string.h>

#include "decode/output/insn_texts.h"
#include "decode/output/kept_paths.h"
#include "schema/array.h"
#include "schema/derived/run_times.h"

/* How the instructions of a stream go on from the last run's first branch. */
struct pace {
	uint64_t next;	 /* the estimate that its times lead to: that of the next run, mostly */
	double per_insn; /* TSC ticks */
	uint64_t last;	 /* of its last instruction */
};

struct pt_text_runs {
	const struct pt_graph *graph;
	const struct pt_text *text;
	struct ptr_times *times;
	/* Of lines of instructions, else NULL. */
	struct pt_insn_texts *insns;
	struct pt_kept_paths kept; /* of runs that are held, of graphs before */
	struct pace *paces;	   /* by stream */
	size_t pace_count, pace_room;
};

/* What the lines of a run, or the line of an error, say: kept in the held run's own. */
struct held_text {
	bool has_task, kept; /* path: the item of kept */
	int32_t pid, tid, cpu;
	char comm[sizeof((struct pt_task *)0)->comm];
	uint32_t path, repeats; /* of a run */
	struct {
		char *kind; /* NULL: it is a run. Allocated; the message follows in the same memory */
		const char *message; /* NULL: it is a run */
		uint64_t ip, aux_offset;
	} error;
};
_Static_assert(sizeof(struct held_text) <= sizeof(((struct ptr_timed_run *)0)->own), "it fits");

static struct held_text text_of(const struct ptr_timed_run *r)
{
	struct held_text x;

	memcpy(&x, &r->own, sizeof x);
	return x;
}

static struct held_text text_by(const struct pt_task *task, int32_t cpu)
{
	struct held_text x = {.cpu = cpu};

	if (task) {
		x.has_task = true;
		x.pid = task->pid;
		x.tid = task->tid;
		memcpy(x.comm, task->comm, sizeof x.comm);
	}
	return x;
}

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
	if (text->branch)
		return t;
	t->insns = pt_insn_texts_create(graph, text);
	if (t->insns)
		return t;
	pt_text_runs_destroy(t);
	return NULL;
}

void pt_text_runs_destroy(struct pt_text_runs *t)
{
	const struct ptr_timed_run *r;

	if (!t)
		return;
	ptr_times_settle(t->times);
	while ((r = ptr_times_next(t->times)))
		free(text_of(r).error.kind);
	ptr_times_destroy(t->times);
	pt_insn_texts_destroy(t->insns);
	pt_kept_paths_deinit(&t->kept);
	free(t->paces);
	free(t);
}

static void print_error(struct pt_text_runs *t, const struct held_text *x, const struct pt_task *task)
{
	struct pt_error_line line = {.task = task,
				     .cpu = x->cpu,
				     .ip = x->error.ip,
				     .aux_offset = x->error.aux_offset,
				     .kind = x->error.kind,
				     .message = x->error.message};

	if (t->text->error)
		t->text->error(t->text->arg, &line);
	free(x->error.kind);
}

/* A run's path, the graph's or one that was kept. */
struct lines_path {
	const struct pt_graph *graph;
	const struct pt_path *path;	 /* NULL: it was kept */
	const struct pt_kept_path *kept; /* NULL: it is the graph's */
	uint32_t count, tail_insns;
};

static struct lines_path path_of(const struct pt_text_runs *t, const struct held_text *x)
{
	const struct pt_kept_path *kept = x->kept ? &t->kept.items[x->path] : NULL;
	const struct pt_path *path = kept ? NULL : &t->graph->paths[x->path];

	return (struct lines_path){.graph = t->graph,
				   .path = path,
				   .kept = kept,
				   .count = kept ? kept->count : path->count,
				   .tail_insns = kept ? kept->tail_insns : path->tail_insns};
}

static const struct pt_edge *edge_at(const struct lines_path *p, uint32_t i)
{
	return p->kept ? &p->kept->edges[i] : &p->graph->edges[p->graph->path_edges[p->path->first + i]];
}

static uint32_t insns_before(const struct lines_path *p, uint32_t i)
{
	return p->kept ? p->kept->insns[i] : pt_path_insns_before(p->graph, p->path, i);
}

/* The branches of a path, as often as it was repeated. */
static void print_run(struct pt_text_runs *t, const struct ptr_timed_run *r, const struct held_text *x,
		      const struct pt_task *task)
{
	const struct lines_path path = path_of(t, x);
	bool exact = r->timing == PTR_TIME_EXACT;
	struct pt_branch_line line = {.task = task,
				      .cpu = x->cpu,
				      .tsc = r->tsc_est,
				      .tsc_lo = r->tsc,
				      .tsc_hi = exact ? r->tsc : r->tsc_end,
				      .exact = exact};
	double per_insn = r->insns_next ? (double)(r->tsc_next - r->tsc_est) / (double)r->insns_next : 0;
	uint64_t insns = 0; /* since the first branch */

	for (uint32_t n = 0; n < x->repeats; n++) {
		for (uint32_t i = 0; i < path.count; i++) {
			line.edge = edge_at(&path, i);
			line.insns = insns_before(&path, i);
			if (n || i) {
				insns += line.insns;
				line.tsc = r->tsc_est + (uint64_t)((double)insns * per_insn);
				line.tsc_hi = r->tsc_end;
				line.exact = false;
			}
			t->text->branch(t->text->arg, &line);
		}
		insns += path.tail_insns;
	}
}

/* ---- Instructions ----------------------------------------------------------------------------------- */

static struct pace *pace_of(struct pt_text_runs *t, uint32_t stream)
{
	while (stream >= t->pace_count) {
		if (pt_array_grow(&t->paces, t->pace_count, &t->pace_room, NULL) < 0)
			return NULL;
		t->paces[t->pace_count++] = (struct pace){.next = PTR_NO_TSC};
	}
	return &t->paces[stream];
}

/*
 * The times of instructions: those of the branches lie on the same line, so instructions from a run's first
 * branch on have its pace; those before it that of the run before. None is before another one of its stream.
 */
static void print_insns(struct pt_text_runs *t, const struct ptr_timed_run *r, const struct held_text *x,
			const struct pt_task *task)
{
	struct pt_insn_line line = {.task = task, .cpu = x->cpu, .tsc = r->tsc_est};
	double per_insn = r->insns_next ? (double)(r->tsc_next - r->tsc_est) / (double)r->insns_next : 0;
	struct pace *pace = pace_of(t, r->stream);
	bool timed = r->tsc_est != PTR_NO_TSC && pace;
	bool goes_on = timed && pace->next == r->tsc_est && !r->begins;
	double before = goes_on ? pace->per_insn : per_insn;
	double at = 1.0 - r->first_insns; /* the first branch's is 0, also where no instruction led to it */
	uint64_t floor = timed ? goes_on || pace->last > r->tsc ? pace->last : r->tsc : 0;
	const struct pt_kept_path *kept = x->kept ? &t->kept.items[x->path] : NULL;
	uint32_t count = kept ? kept->count : 0;
	const uint32_t *insns = kept ? NULL : pt_insn_texts_of(t->insns, x->path, &count);

	for (uint32_t n = 0; n < x->repeats; n++) {
		const char *text = kept ? kept->texts : NULL;

		for (uint32_t i = 0; i < count; i++, at++) {
			double ahead = at * (at < 0 ? before : per_insn);

			if (timed) {
				line.tsc = r->tsc_est + (uint64_t)(int64_t)ahead;
				if (line.tsc < floor)
					line.tsc = floor;
			}
			if (kept) {
				line.text = text;
				line.bytes = kept->text_bytes[i];
				text += line.bytes;
			} else {
				line.text = pt_insn_text(t->insns, insns[i], &line.bytes);
			}
			t->text->insn(t->text->arg, &line);
		}
	}
	if (timed)
		*pace = (struct pace){.next = r->tsc_next, .per_insn = per_insn, .last = line.tsc};
}

static void print(struct pt_text_runs *t)
{
	const struct ptr_timed_run *r;

	while ((r = ptr_times_next(t->times))) {
		struct held_text x = text_of(r);
		struct pt_task task = {.pid = x.pid, .tid = x.tid};

		memcpy(task.comm, x.comm, sizeof task.comm);
		if (x.error.message)
			print_error(t, &x, x.has_task ? &task : NULL);
		else if (t->insns)
			print_insns(t, r, &x, x.has_task ? &task : NULL);
		else
			print_run(t, r, &x, x.has_task ? &task : NULL);
		if (x.kept)
			pt_kept_path_release(&t->kept, x.path);
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
	struct held_text x = text_by(s->task, s->cpu);
	enum ptr_kind first = PTR_KIND_NONE, last;

	if (path->count) {
		first = t->graph->edges[t->graph->path_edges[path->first]].kind;
		last = t->graph->edges[t->graph->path_edges[path->first + path->count - 1]].kind;
		r.first_insns = pt_path_insns_before(t->graph, path, 0);
		r.direct_last = last == PTR_JMP || last == PTR_CALL_DIR;
	}
	if (t->insns && !pt_insn_texts_add(t->insns, path))
		return false;
	r.begins = first == PTR_TRACE_BEGIN;
	r.crosses = first == PTR_VMENTRY || first == PTR_VMEXIT;
	x.path = run->path;
	x.repeats = run->repeats;
	memcpy(&r.own, &x, sizeof x);
	if (!ptr_times_put(t->times, &r))
		return false;
	print(t);
	return true;
}

bool pt_text_runs_error(struct pt_text_runs *t, const struct pt_error_line *line)
{
	struct ptr_timed_run r = {.tsc = PTR_NO_TSC};
	struct held_text x = text_by(line->task, line->cpu);
	size_t kind_bytes = strlen(line->kind) + 1, message_bytes = strlen(line->message) + 1;
	char *text = malloc(kind_bytes + message_bytes);

	if (!text)
		return false;
	memcpy(text, line->kind, kind_bytes);
	memcpy(text + kind_bytes, line->message, message_bytes);
	x.error.kind = text;
	x.error.message = text + kind_bytes;
	x.error.ip = line->ip;
	x.error.aux_offset = line->aux_offset;
	memcpy(&r.own, &x, sizeof x);
	if (!ptr_times_put(t->times, &r)) {
		free(text);
		return false;
	}
	print(t);
	return true;
}

/* The run's path is a copy from now on. of: by the graph's paths, the copy and 1; 0: there is none yet. */
static bool keep_path(struct pt_text_runs *t, struct held_text *x, size_t *of)
{
	size_t item = of[x->path];

	if (item)
		pt_kept_path_share(&t->kept, item - 1);
	else if ((item = pt_keep_path(&t->kept, t->graph, x->path, t->insns) + 1) == 0)
		return false;
	of[x->path] = item;
	x->path = (uint32_t)(item - 1);
	x->kept = true;
	return true;
}

bool pt_text_runs_recycle(struct pt_text_runs *t)
{
	size_t *of = calloc(t->graph->path_count, sizeof *of);
	struct ptr_timed_run *r;
	bool ok = of;

	for (uint32_t i = 0; ok && (r = ptr_times_held(t->times, i)); i++) {
		struct held_text x = text_of(r);

		if (x.error.message || x.kept)
			continue;
		ok = keep_path(t, &x, of);
		memcpy(&r->own, &x, sizeof x);
	}
	free(of);
	if (t->insns)
		pt_insn_texts_clear(t->insns);
	return ok;
}

void pt_text_runs_settle(struct pt_text_runs *t)
{
	ptr_times_settle(t->times);
	print(t);
}
