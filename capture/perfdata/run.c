/* run.c - see run.h. */
#include "capture/perfdata/run.h"
#include "capture/perfdata/aux_data.h"
#include "capture/perfdata/bpf.h"
#include "capture/perfdata/file.h"
#include "capture/perfdata/formats.h"
#include "capture/perfdata/guest.h"
#include "capture/perfdata/jit.h"
#include "capture/perfdata/machines.h"
#include "capture/perfdata/meta.h"
#include "capture/perfdata/order.h"
#include "capture/perfdata/perf_user.h"
#include "capture/perfdata/put_aux.h"
#include "capture/perfdata/put_records.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_TYPE_LAST 22 /* PERF_RECORD_CALLCHAIN_DEFERRED: later ones are not known here */

struct run {
	const struct import_perf_request *request;
	struct import_perf_notes *notes;
	struct perf_file file;
	struct aux_plan plan;
	struct ptc_writer *w;
	struct perf_put side;
	struct aux_put aux;
	struct perf_machines *machines;
	struct perf_jit *jit;	   /* NULL: not asked for */
	char *folder;		   /* that has the recording */
	struct perf_guest *guests; /* of the request */
	uint32_t next_attr;
	bool has_switches, user_only;
	uint32_t pt_event;     /* UINT32_MAX: none */
	uint64_t unknown[256]; /* records of types that are not known here; [255]: that one and all above */
	uint64_t last_round_ns;
};

/* ---- First pass ---- */

/* COMM begins with pid, tid; FORK with pid, ppid, tid. */
static int take_thread(struct run *r, const struct perf_record *rec, struct pt_error *e)
{
	int32_t pid, tid;

	if (rec->size < 24)
		return 0;
	memcpy(&pid, rec->bytes + 8, 4);
	memcpy(&tid, rec->bytes + (rec->type == PERF_RECORD_FORK ? 16 : 12), 4);
	return aux_plan_thread(&r->plan, pid, tid, e);
}

static bool is_known(uint32_t type)
{
	return type <= RECORD_TYPE_LAST || (type >= PERF_USER_FIRST && type <= PERF_USER_LAST);
}

/* What the plan, the machines and the notes need of a record. */
static int take_first(struct run *r, const struct perf_record *rec, struct pt_error *e)
{
	struct perf_description *d = &r->file.description;

	switch (rec->type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
	case PERF_RECORD_ITRACE_START: r->has_switches = true; return 0;
	case PERF_RECORD_AUX:
	case PERF_USER_AUXTRACE: return aux_plan_add(&r->plan, d, rec, e);
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK: return d->pt.per_cpu ? 0 : take_thread(r, rec, e);
	case PERF_USER_HEADER_ATTR:
	case PERF_USER_ID_INDEX: return 0;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		/* A guest's, in a file of perf inject, is not the host's. */
		return (rec->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_GUEST_KERNEL
			   ? 0
			   : perf_machines_kernel_map(r->machines, 0, rec, e);
	default:
		if (!is_known(rec->type))
			r->unknown[rec->type < 255 ? rec->type : 255]++;
		return 0;
	}
}

static int first_pass(struct run *r, struct pt_error *e)
{
	struct perf_description *d = &r->file.description;
	struct perf_record rec;
	int got;

	if (aux_plan_init(&r->plan, e) || perf_machines_add(r->machines, 0, d, r->file.directory, e))
		return -1;
	while ((got = perf_file_next(&r->file, &rec, e)) > 0)
		if (take_first(r, &rec, e))
			return -1;
	if (got < 0)
		return -1;
	perf_description_name_machines(d);
	perf_file_rewind(&r->file);
	if (d->aux_type && !d->pt.present)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "%s has AUX data of another kind than Intel PT (type %u)", r->file.path,
			       d->aux_type);
	return aux_plan_finish(&r->plan, &r->file, e);
}

/* ---- What is known of the recording ---- */

static void find_pt_event(struct run *r)
{
	const struct perf_description *d = &r->file.description;

	r->pt_event = UINT32_MAX;
	r->user_only = true;
	for (uint32_t i = 0; d->pt.present && i < d->event_count; i++) {
		if (d->events[i].attr.type != d->pt.pmu_type || d->events[i].machine_pid)
			continue;
		if (r->pt_event == UINT32_MAX)
			r->pt_event = i;
		if (!d->events[i].attr.exclude_kernel)
			r->user_only = false;
	}
	if (r->pt_event == UINT32_MAX)
		r->user_only = false;
}

static int put_streams(struct run *r, struct pt_error *e)
{
	for (uint32_t i = 0; i < r->plan.stream_count; i++) {
		struct aux_stream of = r->plan.streams[i];

		/* Switches say who runs on a CPU; the thread that perf names is only the first. */
		if (of.cpu >= 0 && r->has_switches)
			of.tid = -1;
		if (aux_put_stream(&r->aux, &of, e))
			return -1;
	}
	return 0;
}

/* ---- Second pass ---- */

/* The code of what a record maps. */
static int put_mapped(struct run *r, int32_t machine_pid, const struct ordered_record *rec,
		      struct pt_error *e)
{
	bool is_jitdump = false;
	char leaf[32];

	if (r->jit && !machine_pid && perf_jit_mapped(r->jit, rec, r->w, &is_jitdump, e))
		return -1;
	if (!r->jit && !machine_pid && perf_jit_is_dump(rec, leaf)) {
		import_perf_note(r->notes, "%s: the program wrote down the code that it made: --jit takes it",
				 leaf);
		is_jitdump = true;
	}
	return is_jitdump ? 0 : perf_machines_mapped(r->machines, machine_pid, rec, r->w, e);
}

static int put_record(struct run *r, const struct ordered_record *rec, struct pt_error *e)
{
	struct perf_event_header h;
	int32_t machine_pid =
	    rec->stamp.id && rec->stamp.id->machine_pid > 0 ? rec->stamp.id->machine_pid : 0;

	memcpy(&h, rec->bytes, sizeof h);
	if (h.type > RECORD_TYPE_LAST)
		return 0;
	if ((h.type == PERF_RECORD_MMAP || h.type == PERF_RECORD_MMAP2) && put_mapped(r, machine_pid, rec, e))
		return -1;
	if (h.type == PERF_RECORD_KSYMBOL && perf_bpf_begins(&r->file.description, machine_pid, rec, r->w, e))
		return -1;
	if (perf_put_record(&r->side, rec, e))
		return -1;
	if (rec->stamp.aux_bytes == 0)
		return 0;
	return perf_put_flush(&r->side, e) || aux_put_sample(&r->aux, rec, e) ? -1 : 0;
}

/* All records up to a time. 0, or -1. */
static int put_records_until(struct run *r, struct perf_order *order, uint64_t until_ns, struct pt_error *e)
{
	const struct ordered_record *next;
	int got;

	while ((got = perf_order_peek(order, &next, e)) > 0 && next->stamp.time_ns <= until_ns) {
		struct ordered_record *rec = perf_order_take(order);
		int ret = put_record(r, rec, e);

		free(rec);
		if (ret)
			return -1;
	}
	return got < 0 || perf_put_flush(&r->side, e) ? -1 : 0;
}

static int put_round(struct run *r, uint64_t time_ns, struct pt_error *e)
{
	if (time_ns <= r->last_round_ns)
		return 0;
	r->last_round_ns = time_ns;
	return ptc_put_round(r->w, time_ns, e);
}

/* Each piece of AUX data after the records that are older than its end. */
static int second_pass(struct run *r, struct perf_order *order, struct pt_error *e)
{
	uint64_t complete_ns = 0;

	for (size_t i = 0; i < r->plan.count; i++) {
		const struct aux_piece *piece = &r->plan.pieces[i];
		uint64_t end_ns = piece->end_ns ? piece->end_ns : UINT64_MAX;

		if (end_ns > complete_ns) {
			complete_ns = end_ns;
			if (put_records_until(r, order, complete_ns, e))
				return -1;
		}
		if (aux_put_piece(&r->aux, piece, e))
			return -1;
		/* All that follows is younger than the next piece's start. */
		if (i + 1 < r->plan.count) {
			uint64_t next_ns = r->plan.pieces[i + 1].start_ns;

			if (put_round(r, next_ns < complete_ns ? next_ns : complete_ns, e))
				return -1;
		}
	}
	return put_records_until(r, order, UINT64_MAX, e) || ptc_put_round(r->w, UINT64_MAX, e) ? -1 : 0;
}

/* ---- What people should know ---- */

static void note_rest(struct run *r, const struct perf_order *order)
{
	const char *path = r->file.path;

	if (!r->file.description.pt.present)
		import_perf_note(r->notes, "%s has no Intel PT data", path);
	else if (r->plan.bytes == 0 && r->aux.count == 0)
		import_perf_note(r->notes, "%s was recorded with Intel PT, but has no AUX data", path);
	if (r->file.unfinished) {
		import_perf_note(r->notes,
				 "%s was not finished (perf was killed?): what there is was imported", path);
		r->notes->gaps = true;
	}
	for (unsigned type = 0; type < 256; type++)
		if (r->unknown[type])
			import_perf_note(r->notes,
					 "%s: %" PRIu64 " records of type %u%s were skipped: not known here",
					 path, r->unknown[type], type, type == 255 ? " and above" : "");
	if (perf_order_late(order)) {
		import_perf_note(
		    r->notes, "%s: %" PRIu64 " records are too far out of order to be put where they belong",
		    path, perf_order_late(order));
		r->notes->gaps = true;
	}
	perf_machines_note_missing(r->machines);
}

/* ---- All of it ---- */

/* Whether an event before event i is of the same machine. */
static bool is_known_machine(const struct perf_description *d, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (d->events[k].machine_pid == d->events[i].machine_pid)
			return true;
	return false;
}

/* The kernels of the host, and of guests of which perf inject has put the records into the file. */
static int put_kernels(struct run *r, struct pt_error *e)
{
	const struct perf_description *d = &r->file.description;
	/* Without PT it may be a guest's sideband, which pt-capture merge puts beside the host's trace. */
	bool wanted = d->pt.present ? !r->user_only : perf_machines_has_kernel(r->machines, 0);

	if (wanted && perf_machines_kernel(r->machines, 0, r->w, e))
		return -1;
	for (size_t i = 0; i < d->event_count; i++) {
		int32_t pid = d->events[i].machine_pid;

		if (pid > 0 && !is_known_machine(d, i) &&
		    (perf_machines_add(r->machines, pid, d, r->file.directory, e) ||
		     perf_machines_kernel(r->machines, pid, r->w, e)))
			return -1;
	}
	return 0;
}

static int open_guests(struct run *r, struct pt_error *e)
{
	r->guests = calloc(r->request->guest_count + 1, sizeof *r->guests);
	if (!r->guests)
		return pt_fail_no_memory(e, "the import");
	for (size_t i = 0; i < r->request->guest_count; i++)
		if (perf_guest_open(&r->guests[i], &r->request->guests[i], r->machines, e))
			return -1;
	return 0;
}

static int put_guests(struct run *r, struct pt_error *e)
{
	for (size_t i = 0; i < r->request->guest_count; i++)
		if (perf_guest_put(&r->guests[i], r->w, r->machines, r->notes, &r->next_attr, e))
			return -1;
	return 0;
}

static int put_all_meta(struct run *r, struct pt_error *e)
{
	const struct perf_description *d = &r->file.description;

	if (perf_meta_put(r->w, d, r->pt_event, r->user_only, r->request->command, e) ||
	    perf_meta_put_injected(r->w, d, e))
		return -1;
	for (size_t i = 0; i < r->request->guest_count; i++)
		if (perf_guest_put_meta(&r->guests[i], r->w, e))
			return -1;
	return 0;
}

static int put_formats(struct run *r, struct pt_error *e)
{
	bool whole;

	if (import_perf_formats(&r->file.description, r->w, 0, &whole, e))
		return -1;
	if (!whole)
		import_perf_note(r->notes, "%s: the tracepoints' formats are malformed", r->file.path);
	return 0;
}

static int write_container(struct run *r, int fd, struct pt_error *e)
{
	struct perf_order *order = perf_order_create(&r->file);
	int ret = -1;

	if (!order)
		return pt_fail_no_memory(e, "the import");
	r->w = ptc_writer_create(fd, r->request->output, r->request->level, e);
	if (!r->w)
		goto out;
	if (put_all_meta(r, e) || perf_put_init(&r->side, r->w, &r->file.description, 0, &r->next_attr, e) ||
	    put_formats(r, e) || aux_put_init(&r->aux, r->w, &r->file, r->pt_event, e) || put_streams(r, e) ||
	    put_kernels(r, e) || put_guests(r, e) || second_pass(r, order, e) || ptc_writer_finish(r->w, e))
		goto out;
	note_rest(r, order);
	ret = 0;
out:
	perf_order_destroy(order);
	return ret;
}

/* What --jit asks for. */
static int create_jit(struct run *r, struct pt_error *e)
{
	const char *input = r->request->input, *slash = strrchr(input, '/');

	if (!r->request->jit)
		return 0;
	r->folder = slash ? strndup(input, (size_t)(slash - input)) : strdup(".");
	if (r->folder)
		r->jit = perf_jit_create(&r->file.description, r->request->symfs, r->folder, r->notes);
	return r->jit ? 0 : pt_fail_no_memory(e, "the import");
}

int import_perf_run(const struct import_perf_request *request, int fd, struct import_perf_notes *notes,
		    struct pt_error *e)
{
	struct run r = {.request = request, .notes = notes};
	int ret;

	*notes = (struct import_perf_notes){0};
	ret = perf_file_open(&r.file, request->input, e);
	if (ret == 0 && !(r.machines = perf_machines_create(request, notes)))
		ret = pt_fail_no_memory(e, "the import");
	if (ret == 0)
		ret = create_jit(&r, e);
	if (ret == 0)
		ret = first_pass(&r, e);
	if (ret == 0)
		ret = open_guests(&r, e);
	if (ret == 0) {
		find_pt_event(&r);
		ret = write_container(&r, fd, e);
	}
	perf_put_deinit(&r.side);
	aux_put_deinit(&r.aux);
	aux_plan_deinit(&r.plan);
	perf_machines_destroy(r.machines);
	perf_jit_destroy(r.jit);
	free(r.folder);
	for (size_t i = 0; r.guests && i < request->guest_count; i++)
		perf_guest_close(&r.guests[i]);
	free(r.guests);
	ptc_writer_destroy(r.w);
	perf_file_close(&r.file);
	return ret;
}
