/* run.c - see run.h. */
#include "capture/raw/run.h"
#include "capture/perfdata/meta.h"
#include "capture/raw/sideband.h"
#include "schema/container.h"
#include "schema/version.h"

#include <inttypes.h>
#include <sys/random.h>

#include <linux/perf_event.h>

/*
 * The threads of the buffers: what is said after a --raw, what is said of all, what the sideband
 * says, thread 1.
 */
static void set_threads(struct raw_request *r, const struct raw_records *side)
{
	if (r->pid < 0 && r->tid < 0 && (!side || !raw_records_thread(side, &r->pid, &r->tid)))
		r->pid = r->tid = 1;
	for (size_t i = 0; i < r->raw_count; i++) {
		struct raw_aux *raw = &r->raws[i];
		bool other = raw->pid >= 0 && raw->pid != r->pid;

		raw->pid = raw->pid >= 0 ? raw->pid : r->pid >= 0 ? r->pid : 1;
		raw->tid = raw->tid >= 0 ? raw->tid : r->tid >= 0 && !other ? r->tid : raw->pid;
	}
}

/* Each CPU and each thread has one buffer. */
static int check_threads(const struct raw_request *r, struct pt_error *e)
{
	for (size_t i = 0; i < r->raw_count; i++)
		for (size_t k = 0; k < i; k++) {
			const struct raw_aux *a = &r->raws[k], *b = &r->raws[i];

			if (a->cpu != b->cpu || (b->cpu < 0 && a->tid != b->tid))
				continue;
			return pt_fail(
			    e, PT_ERR_USAGE, PT_NO_OFFSET,
			    "%s and %s are both of %s %d: say which CPU or thread each is of, by --on-cpu or "
			    "--tid after each",
			    a->path, b->path, b->cpu >= 0 ? "CPU" : "thread", b->cpu >= 0 ? b->cpu : b->tid);
		}
	return 0;
}

static int put_number(struct ptc_writer *w, const char *key, uint64_t value, struct pt_error *e)
{
	return ptc_put_metaf(w, e, key, "%" PRIu64, value);
}

static int put_meta(const struct raw_request *r, const struct perf_file_clock *clock, struct ptc_writer *w,
		    struct pt_error *e)
{
	const struct {
		const char *key, *value;
	} plain[] = {
	    {"tool", "pt-capture"},	 {"tool_version", PT_VERSION},
	    {"engine", "import-raw"},	 {"arch", "x86_64"},
	    {"command", r->command},	 {"cpu_vendor", r->has_cpu ? "GenuineIntel" : NULL},
	    {"mtc_freq", r->mtc_freq},	 {"nominal_ratio", r->nom_freq},
	    {"pt_config", r->pt_config}, {"pt_user_only", r->kernel ? NULL : "1"},
	    {"addr_filter", r->filter},
	};
	uint64_t uuid[2];

	if (getrandom(uuid, sizeof uuid, 0) != sizeof uuid)
		return pt_fail_errno(e, "no random numbers for the uuid");
	if (ptc_put_metaf(w, e, "uuid", "%016" PRIx64 "%016" PRIx64, uuid[0], uuid[1]))
		return -1;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (plain[i].value && ptc_put_meta(w, plain[i].key, plain[i].value, e))
			return -1;
	if (perf_meta_put_clock(w, 0, clock, e))
		return -1;
	if (r->has_cpu &&
	    (put_number(w, "cpu_family", r->family, e) || put_number(w, "cpu_model", r->model, e) ||
	     put_number(w, "cpu_stepping", r->stepping, e)))
		return -1;
	if (r->has_ratio && (put_number(w, "tsc_ctc_numerator", r->ctc_numerator, e) ||
			     put_number(w, "tsc_ctc_denominator", r->ctc_denominator, e)))
		return -1;
	return 0;
}

/*
 * Makes the records of one thread: its name, the mappings of its code if it is its process's first, and that
 * it runs.
 */
static int make_records(const struct raw_request *r, const struct raw_aux *raw, bool is_first,
			struct sideband *sb, struct pt_error *e)
{
	if (sideband_comm(sb, r->comm ? r->comm : import_code_comm(r->code), is_first, e))
		return -1;
	for (size_t i = 0; is_first && i < r->code->count; i++) {
		const struct import_mapping *m = &r->code->mappings[i];

		if (!import_mapping_is_kernel(m) &&
		    sideband_mmap2(sb, m->addr, m->bytes, m->offset, m->name, e))
			return -1;
	}
	/* The records of --sideband, if there are any, say who runs on a CPU. */
	return raw->cpu < 0 || !r->side_count ? sideband_itrace_start(sb, e) : 0;
}

/* What no file of records says: that the code of the command line is the threads', and that these run. */
static int put_thread(const struct raw_request *r, size_t index, struct ptc_writer *w, struct pt_error *e)
{
	const struct raw_aux *raw = &r->raws[index];
	bool is_first = true;
	struct sideband sb;
	int ret;

	for (size_t i = 0; i < index; i++)
		is_first = is_first && r->raws[i].pid != raw->pid;
	sideband_init(&sb, raw->cpu, (uint32_t)raw->pid, (uint32_t)raw->tid);
	ret = make_records(r, raw, is_first, &sb, e);
	if (ret == 0)
		ret = ptc_put_sideband(w, 0, sb.bytes, sb.count, e);
	sideband_deinit(&sb);
	return ret;
}

static int put_sideband(const struct raw_request *r, struct raw_records *side,
			struct import_perf_notes *notes, struct ptc_writer *w, struct pt_error *e)
{
	const struct raw_records_code code = {.request = &r->files, .kernel = r->kernel, .notes = notes};
	uint32_t next_attr = 1;

	if (sideband_put_attr(w, e))
		return -1;
	for (size_t i = 0; i < r->raw_count; i++)
		if ((r->code->count || !r->side_count) && put_thread(r, i, w, e))
			return -1;
	return side ? raw_records_put(side, w, &code, &next_attr, e) : 0;
}

/* perf's clock: what the command line says, else what the records say. */
static struct perf_file_clock clock_of(const struct raw_request *r, const struct raw_records *side)
{
	if (r->has_clock)
		return r->clock;
	return side ? raw_records_clock(side) : (struct perf_file_clock){0};
}

static int write_container(struct raw_request *r, struct raw_records *side, struct ptc_writer *w,
			   struct import_perf_notes *notes, struct pt_error *e)
{
	struct perf_file_clock clock = clock_of(r, side);

	set_threads(r, side);
	if (check_threads(r, e))
		return -1;
	if (side && r->sample_type & PERF_SAMPLE_TIME && !clock.mult)
		import_perf_note(notes,
				 "the sideband has times, but perf's clock is not known (--time-mult): "
				 "all of it counts from the beginning on");
	return put_meta(r, &clock, w, e) || raw_aux_streams(r->raws, r->raw_count, w, e) ||
		       import_code_write(r->code, w, e) || put_sideband(r, side, notes, w, e) ||
		       raw_aux_put(r->raws, r->raw_count, &clock, w, e) || ptc_writer_finish(w, e)
		   ? -1
		   : 0;
}

int raw_import_run(struct raw_request *r, int fd, struct import_perf_notes *notes, struct pt_error *e)
{
	struct ptc_writer *w = ptc_writer_create(fd, r->output, r->level, e);
	struct raw_records *side = NULL;
	int ret = w ? 0 : -1;

	*notes = (struct import_perf_notes){0};
	if (ret == 0 && (r->side_count || r->kernel))
		ret = raw_records_read(r->sides, r->side_count, r->sample_type, &side, e);
	if (ret == 0)
		ret = write_container(r, side, w, notes, e);
	raw_records_destroy(side);
	ptc_writer_destroy(w);
	return ret;
}
