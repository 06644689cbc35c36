/* emit.c - see emit.h. */
#include "decode/output/emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decode/output/calls.h"
#include "decode/output/encoded_runs.h"
#include "decode/output/executed_code.h"
#include "decode/output/sums.h"
#include "decode/output/text_runs.h"

int pt_emit_init(struct pt_emit *m, struct ptr_writer *w, struct pt_graph *graph, struct pt_error *e)
{
	memset(m, 0, sizeof *m);
	m->writer = w;
	m->graph = graph;
	m->call_paths = PT_CALL_PATHS;
	m->defined_most = m->defined_first = (uint32_t)(graph->limit_bytes / PT_EMIT_GRAPH_BYTES_A_NUMBER);
	m->defined_limit = graph->most_bytes > graph->limit_bytes ? 4 * m->defined_first : m->defined_first;
	m->stacks = pt_calls_create(m);
	if (pt_emit_names_init(m, e) < 0 || !m->stacks) {
		pt_emit_deinit(m);
		return pt_fail_no_memory(e, "the records");
	}
	return 0;
}

int pt_emit_less(struct pt_emit *m, enum ptr_detail base, struct pt_error *e)
{
	m->detail.base = base;
	m->sums = pt_sums_create(m);
	return m->sums ? 0 : pt_fail_no_memory(e, "sums");
}

void pt_emit_deinit(struct pt_emit *m)
{
	pt_sums_destroy(m->sums);
	pt_emit_names_deinit(m);
	pt_kept_numbers_deinit(&m->kept);
	pt_calls_destroy(m->stacks);
	pt_executed_destroy(m->executed);
	pt_text_runs_destroy(m->text_runs);
	m->sums = NULL;
	m->stacks = NULL;
	m->executed = NULL;
	m->text_runs = NULL;
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
		pt_emit_put(m, ptr_put_error(m->writer, &s->pending, &m->error));
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
	s->skipped = s->left_out || s->muted;
	if (s->skipped)
		s->slice = 0;
	if (m->failed || s->skipped)
		return;
	s->thread = pt_emit_thread(m, s->task);
	r = (struct ptr_slice){
	    .thread = s->thread, .cpu = s->cpu, .vcpu = s->vcpu, .stream = s->stream, .tsc = tsc};
	if (m->failed)
		return;
	s->slice = m->detail.base == PTR_DETAIL_SUMS
		       ? pt_sums_slice(m->sums, &r)
		       : pt_emit_put(m, ptr_put_slice(m->writer, &r, &m->error));
	s->not_taken = 0;
	s->slice_branches = 0;
	if (m->sums)
		pt_sums_begin(m->sums, s);
	s->missed = PT_SEEN;
	if (m->calls)
		pt_calls_begin(m->stacks, s, code, ip, tsc);
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
		pt_emit_put(m, ptr_put_event(m->writer, &r, &m->error));
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

/* The run's number, or that of the record that stands for it. 0: it was summed up, or failed. recorded: as in
 * put_run(). */
static inline uint64_t write_run(struct pt_emit_stream *s, struct pt_path *path,
				 const struct pt_flow_run *run, bool recorded)
{
	struct pt_emit *m = s->emit;
	struct ptr_run r;
	int64_t number;

	if (!recorded && m->sums && !pt_emit_writes(m, PTR_DETAIL_BRANCHES, run->tsc)) {
		pt_sums_run(m->sums, s, run);
		return m->calls && m->detail.base == PTR_DETAIL_CALLS && pt_calls_changes(m->stacks, path)
			   ? pt_sums_moment(m->sums, s, run->tsc)
			   : 0;
	}
	r.slice = s->slice;
	r.tsc = run->tsc;
	r.timing = run->timing;
	if (recorded)
		r.path = path->number;
	else
		r.path = !m->definitions ? run->path : path->number ? path->number : pt_emit_path(m, path);
	r.repeats = run->repeats;
	r.cyc_count = run->cyc_count;
	r.insn_count = run->insn_count;
	if (m->failed)
		return 0;
	if (!recorded && m->sums && !pt_sums_written_run(m->sums, s, run))
		r.cyc_count = PTR_UNKNOWN;
	number = ptr_put_run(m->writer, &r, path->count, &m->error);
	if (number < 0)
		m->failed = true;
	return number < 0 ? 0 : (uint64_t)number;
}

/* recorded: only_recorded(), the path has a number and no emulated PTWRITE, and the run before was of the same
 * stream. Runs with CYC are so short that asking each costs 3 to 6 % of all time. */
static inline __attribute__((always_inline)) void put_run(struct pt_emit_stream *s,
							  const struct pt_flow_run *run, bool recorded)
{
	struct pt_emit *m = s->emit;
	struct pt_path *path = &m->graph->paths[run->path];
	uint64_t number;

	if (m->failed)
		return;
	m->runs++;
	m->branches += (uint64_t)path->count * run->repeats;
	s->slice_branches += (uint64_t)path->count * run->repeats;
	s->not_taken += (uint64_t)path->not_taken * run->repeats;
	if (!recorded && m->text && pt_emit_has_text(m) && !pt_text_runs_put(m->text_runs, s, path, run))
		pt_emit_no_memory(m, NULL);
	number = write_run(s, path, run, recorded);
	if (m->failed)
		return;
	if (path->count)
		s->last_branch = pt_emit_last_branch(number, path->count, run);
	if (!recorded && s->runs_wanted)
		m->vm->runs(m->vm_arg, s, run, 1);
	if (recorded)
		pt_calls_next_run(m->stacks, s, path, run, number);
	else if (m->calls)
		pt_calls_run(m->stacks, s, path, run, number);
	if (run->cyc_count != PTR_UNKNOWN) {
		s->cycles += run->cyc_count;
		s->has_cyc = true;
	}
	if (!recorded && path->emulated | s->emulated.reading)
		emulated(s, path, run);
}

void pt_emit_run(struct pt_emit_stream *s, const struct pt_flow_run *run)
{
	put_run(s, run, false);
}

/* Of runs of which only the number is wanted. False, with nothing done, when emulated PTWRITE values
 * are in them. */
static bool count_runs(struct pt_emit_stream *s, const struct pt_flow_run *runs, uint32_t n)
{
	struct pt_emit *m = s->emit;
	const struct pt_path *paths = m->graph->paths;
	const uint8_t *counts = m->graph->path_counts;
	uint64_t branches = 0, not_taken = 0, last;
	bool values = s->emulated.reading;

	for (uint32_t i = 0; i < n; i++)
		branches += (uint64_t)counts[runs[i].path] * runs[i].repeats;
	for (uint32_t i = 0; i < n; i++) {
		not_taken += (uint64_t)paths[runs[i].path].not_taken * runs[i].repeats;
		values |= paths[runs[i].path].emulated;
	}
	if (values)
		return false;
	m->runs += n;
	m->branches += branches;
	s->slice_branches += branches;
	s->not_taken += not_taken;
	last = ptr_count_runs(m->writer, n, branches);
	for (uint32_t i = n; i-- > 0;)
		if (counts[runs[i].path]) {
			s->last_branch =
			    pt_emit_last_branch(last - (n - 1 - i), counts[runs[i].path], &runs[i]);
			break;
		}
	if (s->runs_wanted)
		m->vm->runs(m->vm_arg, s, runs, n);
	return true;
}

static void count_left_out(struct pt_emit *m, const struct pt_flow_run *runs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		m->left_out_branches += (uint64_t)m->graph->path_counts[runs[i].path] * runs[i].repeats;
		m->left_out_insns += (uint64_t)m->graph->paths[runs[i].path].insns * runs[i].repeats;
	}
}

/* Runs are records, and nothing but records and steps of the call stacks. */
static bool only_recorded(const struct pt_emit_stream *s)
{
	const struct pt_emit *m = s->emit;

	return m->definitions && m->calls && !m->text && !m->sums && !s->runs_wanted && !s->emulated.reading;
}

static void on_runs(void *arg, const struct pt_flow *f, const struct pt_flow_run *runs, uint32_t n)
{
	struct pt_emit_stream *s = arg;
	const struct pt_emit *m = s->emit;
	bool recorded = false; /* after a run of the stream: as put_run() says */

	(void)f;
	if (s->skipped) {
		if (!s->muted)
			count_left_out(s->emit, runs, n);
		return;
	}
	if (!m->definitions && !m->text && !m->calls && !m->failed && count_runs(s, runs, n))
		return;
	if (m->sums)
		pt_sums_fetch(m->sums, runs, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct pt_path *path = &m->graph->paths[runs[i].path];

		if (recorded && path->number && !path->emulated) {
			put_run(s, &runs[i], true);
			continue;
		}
		put_run(s, &runs[i], false);
		recorded = only_recorded(s);
	}
}

static bool on_encoded_runs(void *arg, const struct pt_flow *f, const struct pt_flow_encoded_runs *runs)
{
	(void)f;
	return pt_emit_encoded_runs(arg, runs);
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
				  .not_taken = s->not_taken,
				  .branch_count = s->slice_branches};

	(void)f;
	if (s->skipped)
		return;
	if (m->calls)
		pt_calls_end(m->stacks, s);
	if (m->detail.base == PTR_DETAIL_SUMS)
		pt_sums_slice_end(m->sums, &r);
	else if (!m->failed)
		pt_emit_put(m, ptr_put_slice_end(m->writer, &r, &m->error));
}

static void on_error(void *arg, const struct pt_flow *f, const struct pt_flow_error *err)
{
	struct pt_emit_stream *s = arg;
	struct pt_emit *m = s->emit;

	/* Where user space's code is missing, the kernel's is followed from where it is entered. */
	s->kernel_gaps += !err->no_image || err->ip >> 63;
	/* What is wrong with what is not wanted is not wanted, too; but a gap reaches beyond it. */
	if (s->muted || !pt_flow_follows(f) || (s->skipped && err->no_image)) {
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
	pt_emit_text_error(m, &(struct pt_error_line){.task = s->task,
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

	if (!s->unwanted && !s->muted && m->vm && m->vm->transition)
		m->vm->transition(m->vm_arg, s, f, t);
}

static void on_event(void *arg, const struct pt_flow *f, const char *name, uint64_t ip, const char *fields)
{
	const struct pt_emit_stream *s = arg;

	if (!s->muted)
		put_event(arg, pt_flow_tsc(f), name, ip, fields);
}

static void on_event_trace(void *arg, const struct pt_flow *f, bool is_cfe, uint32_t type, uint64_t value)
{
	struct pt_emit_stream *s = arg;
	struct pt_emit *m = s->emit;

	(void)f;
	if (!s->muted && m->vm && m->vm->event_trace)
		m->vm->event_trace(m->vm_arg, s, is_cfe, type, value);
}

const struct pt_flow_output pt_emit_output = {.begin = on_begin,
					      .runs = on_runs,
					      .encoded_runs = on_encoded_runs,
					      .end = on_end,
					      .error = on_error,
					      .event = on_event,
					      .event_trace = on_event_trace,
					      .transition = on_transition};

void pt_emit_recycle(struct pt_emit *m)
{
	pt_emit_keep_numbers(m, pt_graph_forgets_edges(m->graph));
	if (m->sums)
		pt_sums_recycle(m->sums);
	if (m->text_runs && !pt_text_runs_recycle(m->text_runs))
		pt_emit_no_memory(m, "lines");
	if (m->vm && m->vm->recycled)
		m->vm->recycled(m->vm_arg);
	if (m->calls)
		pt_calls_recycle(m->stacks);
}

void pt_emit_finish(struct pt_emit *m)
{
	if (m->text_runs)
		pt_text_runs_settle(m->text_runs);
	if (m->calls)
		pt_calls_finish(m->stacks);
	if (m->sums)
		pt_sums_finish(m->sums);
	if (m->executed)
		pt_executed_finish(m->executed);
}
