/* import_perf_run.c - see import_perf_run.h. */
#include "capture/import_perf_run.h"
#include "capture/import_kernel.h"
#include "capture/import_perf_aux.h"
#include "capture/import_perf_file.h"
#include "capture/import_perf_images.h"
#include "capture/import_perf_order.h"
#include "capture/import_perf_put.h"
#include "schema/version.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#define RECORD_TYPE_LAST 22 /* PERF_RECORD_CALLCHAIN_DEFERRED: what is beyond is not known here */
#define MACHINES_MOST	 1024
#define MISSING_LISTED	 20
#define LINE_MOST	 2000
#define NOTES_MOST	 4096

#define PT_BIT_CYC	 ((uint64_t)1 << 1)
#define PT_BIT_MTC	 ((uint64_t)1 << 9)
#define PT_BIT_TSC	 ((uint64_t)1 << 10)
#define PT_BIT_NORETCOMP ((uint64_t)1 << 11)
#define PT_MTC_SHIFT	 14
#define PT_MTC_BITS	 ((uint64_t)15 << PT_MTC_SHIFT)

/* One machine's files: the host's, or a guest's. */
struct machine {
	int32_t pid; /* 0 host */
	struct perf_images *images;
};

struct run {
	const struct import_perf_request *request;
	struct import_perf_notes *notes;
	struct perf_file file;
	struct aux_plan plan;
	struct ptc_writer *w;
	struct side_put side;
	struct aux_put aux;
	struct machine *machines;
	size_t machine_count;
	uint32_t next_attr;
	bool own_kernel, has_switches, user_only, timeless;
	uint32_t pt_event;     /* UINT32_MAX: none */
	uint64_t unknown[256]; /* records by type (the last: all further ones) */
	uint64_t last_round_ns;
};

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for the import");
}

static void note(struct run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct run *r, const char *format, ...)
{
	char **grown, *line;
	va_list ap;
	int bytes;

	if (r->notes->count == NOTES_MOST)
		return;
	va_start(ap, format);
	bytes = vasprintf(&line, format, ap);
	va_end(ap);
	grown = bytes < 0 ? NULL : realloc(r->notes->lines, (r->notes->count + 1) * sizeof(char *));
	if (!grown) {
		if (bytes >= 0)
			free(line);
		return;
	}
	r->notes->lines = grown;
	grown[r->notes->count++] = line;
}

void import_perf_notes_free(struct import_perf_notes *notes)
{
	for (size_t i = 0; i < notes->count; i++)
		free(notes->lines[i]);
	free(notes->lines);
	*notes = (struct import_perf_notes){0};
}

/* ---- First pass ---- */

static int first_pass(struct run *r, struct pt_error *e)
{
	struct perf_record rec;
	int got;

	if (aux_plan_init(&r->plan, e))
		return -1;
	while ((got = perf_file_next(&r->file, &rec, e)) > 0) {
		switch (rec.type) {
		case PERF_RECORD_SWITCH:
		case PERF_RECORD_SWITCH_CPU_WIDE:
		case PERF_RECORD_ITRACE_START: r->has_switches = true; break;
		case PERF_RECORD_AUX:
		case PERF_USER_AUXTRACE:
			if (aux_plan_add(&r->plan, &r->file, &rec, e))
				return -1;
			break;
		default:
			if (rec.type > RECORD_TYPE_LAST &&
			    (rec.type < PERF_USER_FIRST || rec.type > PERF_USER_COMPRESSED2))
				r->unknown[rec.type < 255 ? rec.type : 255]++;
		}
	}
	if (got < 0)
		return -1;
	perf_file_sort_ids(&r->file);
	perf_file_rewind(&r->file);
	if (r->file.aux_type && !r->file.pt.present)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "%s has AUX data of another kind than Intel PT (type %u)", r->file.path,
			       r->file.aux_type);
	return aux_plan_finish(&r->plan, &r->file, e);
}

/* ---- What is known of the recording ---- */

/* The event of intel_pt: its config's bits where sysfs has them on every kernel so far. */
static uint64_t pt_config(const struct perf_file_pt *pt, uint64_t config)
{
	const struct {
		uint64_t there, here;
	} bits[] = {{pt->tsc_bit, PT_BIT_TSC},
		    {pt->noretcomp_bit, PT_BIT_NORETCOMP},
		    {pt->mtc_bit, PT_BIT_MTC},
		    {pt->cyc_bit, PT_BIT_CYC}};
	uint64_t ret = config;

	for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
		if (bits[i].there && bits[i].there != bits[i].here)
			ret = (ret & ~bits[i].here) | (config & bits[i].there ? bits[i].here : 0);
	if (pt->mtc_freq_bits && pt->mtc_freq_bits != PT_MTC_BITS)
		ret = (ret & ~PT_MTC_BITS) |
		      (((config & pt->mtc_freq_bits) >> __builtin_ctzll(pt->mtc_freq_bits)) << PT_MTC_SHIFT &
		       PT_MTC_BITS);
	return ret;
}

static void find_pt_event(struct run *r)
{
	const struct perf_file *f = &r->file;

	r->pt_event = UINT32_MAX;
	r->user_only = true;
	for (uint32_t i = 0; f->pt.present && i < f->event_count; i++) {
		if (f->events[i].attr.type != f->pt.pmu_type || f->events[i].machine_pid)
			continue;
		if (r->pt_event == UINT32_MAX)
			r->pt_event = i;
		if (!f->events[i].attr.exclude_kernel)
			r->user_only = false;
	}
	if (r->pt_event == UINT32_MAX)
		r->user_only = false;
}

static int put_cpuid(struct run *r, struct pt_error *e)
{
	const char *text = r->file.text[PERF_TEXT_CPUID];
	char vendor[32];
	unsigned family, model, stepping;

	if (!text || sscanf(text, "%31[^,],%u,%u,%u", vendor, &family, &model, &stepping) != 4)
		return 0;
	return ptc_put_meta(r->w, "cpu_vendor", vendor, e) ||
		       ptc_put_metaf(r->w, e, "cpu_family", "%u", family) ||
		       ptc_put_metaf(r->w, e, "cpu_model", "%u", model) ||
		       ptc_put_metaf(r->w, e, "cpu_stepping", "%u", stepping)
		   ? -1
		   : 0;
}

static int put_number(struct run *r, const char *key, uint64_t value, struct pt_error *e)
{
	return ptc_put_metaf(r->w, e, key, "%" PRIu64, value);
}

static int put_pt_meta(struct run *r, struct pt_error *e)
{
	const struct perf_file_pt *pt = &r->file.pt;

	if (!pt->present)
		return 0;
	if (pt->time_mult &&
	    (put_number(r, "time_zero", pt->time_zero, e) || put_number(r, "time_mult", pt->time_mult, e) ||
	     put_number(r, "time_shift", pt->time_shift, e)))
		return -1;
	if (pt->tsc_ctc_numerator && pt->tsc_ctc_denominator &&
	    (put_number(r, "tsc_ctc_numerator", pt->tsc_ctc_numerator, e) ||
	     put_number(r, "tsc_ctc_denominator", pt->tsc_ctc_denominator, e)))
		return -1;
	if (pt->max_nonturbo_ratio && put_number(r, "nominal_ratio", pt->max_nonturbo_ratio, e))
		return -1;
	if (r->pt_event != UINT32_MAX) {
		uint64_t config = pt_config(pt, r->file.events[r->pt_event].attr.config);

		r->timeless = !(config & PT_BIT_TSC) || !pt->time_mult;
		if (ptc_put_metaf(r->w, e, "pt_config", "0x%" PRIx64, config) ||
		    put_number(r, "mtc_freq", (config & PT_MTC_BITS) >> PT_MTC_SHIFT, e))
			return -1;
	}
	return r->user_only ? ptc_put_meta(r->w, "pt_user_only", "1", e) : 0;
}

static int put_meta(struct run *r, struct pt_error *e)
{
	char *const *text = r->file.text;
	const struct {
		const char *key, *value;
	} plain[] = {
	    {"tool", "pt-capture"},
	    {"tool_version", PT_VERSION},
	    {"engine", "import-perf"},
	    {"host", text[PERF_TEXT_HOST]},
	    {"kernel", text[PERF_TEXT_RELEASE]},
	    {"arch", text[PERF_TEXT_ARCH] ? text[PERF_TEXT_ARCH] : "x86_64"},
	    {"cpu_name", text[PERF_TEXT_CPU]},
	    {"command", text[PERF_TEXT_COMMAND] ? text[PERF_TEXT_COMMAND] : r->request->command},
	};
	uint64_t uuid[2];

	if (getrandom(uuid, sizeof uuid, 0) != sizeof uuid)
		return pt_fail_errno(e, "no random numbers for the uuid");
	if (ptc_put_metaf(r->w, e, "uuid", "%016" PRIx64 "%016" PRIx64, uuid[0], uuid[1]))
		return -1;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (plain[i].value && ptc_put_meta(r->w, plain[i].key, plain[i].value, e))
			return -1;
	return put_cpuid(r, e) || put_pt_meta(r, e) ? -1 : 0;
}

static int put_streams(struct run *r, struct pt_error *e)
{
	for (uint32_t i = 0; i < r->plan.stream_count; i++) {
		struct aux_stream of = r->plan.streams[i];
		uint32_t index;

		/* Who runs on a CPU is told by switches; the thread in the file is but the first. */
		if (of.cpu >= 0 && r->has_switches)
			of.tid = -1;
		if (aux_put_stream(&r->aux, &of, &index, e))
			return -1;
	}
	return 0;
}

/* ---- Code ---- */

static bool exists(const char *path)
{
	return path && access(path, R_OK) == 0;
}

/* FOLDER/NAME when it can be read, to be freed; NULL when not. */
static char *in_folder(const char *folder, const char *name)
{
	char *path;

	if (!folder || asprintf(&path, "%s/%s", folder, name) < 0)
		return NULL;
	if (exists(path))
		return path;
	free(path);
	return NULL;
}

/* kcore and kallsyms of a machine. What cannot be read is a note. */
static int put_kernel(struct run *r, int32_t pid, const char *folder, const char *kcore, const char *kallsyms,
		      struct pt_error *e)
{
	char *found_kcore = kcore ? strdup(kcore) : in_folder(folder, "kcore");
	char *found_symbols = kallsyms ? strdup(kallsyms) : in_folder(folder, "kallsyms");
	struct pt_error why = {.offset = PT_NO_OFFSET};
	struct kernel_symbols *symbols = NULL;
	uint64_t bytes = 0;
	int ret = 0;

	if (found_kcore)
		ret = kernel_put_kcore(found_kcore, r->w, pid, &bytes, e);
	if (ret == 0 && found_symbols) {
		symbols = kernel_symbols_read(found_symbols, &why);
		if (!symbols)
			note(r, "the kernel's functions have no names: %s", why.message);
		else
			ret = kernel_symbols_put(symbols, r->w, pid, e);
	}
	if (ret == 0 && bytes == 0) {
		if (pid)
			note(r, "there is no code of the kernel of guest %" PRId32, pid);
		else
			note(r, "there is no code of the kernel: record with `perf record --kcore`, or give "
				"--kcore");
	}
	kernel_symbols_destroy(symbols);
	free(found_kcore);
	free(found_symbols);
	return ret;
}

static int put_host_kernel(struct run *r, struct pt_error *e)
{
	char *folder;
	int ret;

	if (r->user_only || !r->file.pt.present)
		return 0;
	if (asprintf(&folder, "%s/kcore_dir", r->file.directory ? r->file.directory : "") < 0)
		return no_memory(e);
	ret = put_kernel(r, 0, r->file.directory ? folder : NULL, r->request->kcore, r->request->kallsyms, e);
	free(folder);
	return ret;
}

static struct machine *machine_of(struct run *r, int32_t pid, struct pt_error *e)
{
	const struct import_perf_request *q = r->request;
	const char *root = pid ? "" : q->symfs ? q->symfs : "";
	char *cache = NULL, *mounted = NULL;
	struct machine *m;

	for (size_t i = 0; i < r->machine_count; i++)
		if (r->machines[i].pid == pid)
			return &r->machines[i];
	if (r->machine_count == MACHINES_MOST) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "records of more than %d guests", MACHINES_MOST);
		return NULL;
	}
	m = realloc(r->machines, (r->machine_count + 1) * sizeof *m);
	if (!m) {
		no_memory(e);
		return NULL;
	}
	r->machines = m;
	m += r->machine_count;
	if (q->cache)
		cache = strdup(q->cache);
	else if (q->symfs ? asprintf(&cache, "%s/.debug", q->symfs) < 0
			  : getenv("HOME") && asprintf(&cache, "%s/.debug", getenv("HOME")) < 0)
		cache = NULL;
	/* perf: DIR/PID is the root of guest PID. Without it, its files may be those of the host's root. */
	if (pid && q->guest_mount && asprintf(&mounted, "%s/%" PRId32, q->guest_mount, pid) < 0)
		mounted = NULL;
	if (mounted)
		root = mounted;
	else if (pid && q->symfs)
		root = q->symfs;
	*m = (struct machine){
	    .pid = pid,
	    .images = perf_images_create(pid, root, cache, q->symfs && !q->cache, r->own_kernel && !pid)};
	free(cache);
	free(mounted);
	if (!m->images) {
		no_memory(e);
		return NULL;
	}
	perf_images_build_ids(m->images, &r->file);
	r->machine_count++;
	return m;
}

/* A mapping's code goes before the record of the mapping. */
static int put_mapped(struct run *r, int32_t machine_pid, const struct ordered_record *rec,
		      struct pt_error *e)
{
	size_t fixed = 8 + 32;
	struct perf_event_header h;
	const uint8_t *p = rec->bytes + 8, *build_id = NULL;
	uint32_t prot = PROT_EXEC, build_id_bytes = 0;
	struct machine *m;
	uint64_t length;
	int32_t pid;
	char *name;
	int ret;

	memcpy(&h, rec->bytes, sizeof h);
	if (h.type == PERF_RECORD_MMAP2)
		fixed = 8 + 64;
	if (rec->size <= fixed)
		return 0;
	memcpy(&pid, p, 4);
	memcpy(&length, p + 16, 8);
	if (h.type == PERF_RECORD_MMAP2) {
		memcpy(&prot, p + 56, 4);
		if (h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			build_id_bytes = p[32] <= 20 ? p[32] : 20;
			build_id = p + 36;
		}
	} else if (h.misc & PERF_RECORD_MISC_MMAP_DATA) {
		return 0;
	}
	/* A kernel's mappings are told by its kcore. */
	if (!(prot & PROT_EXEC) || pid == -1)
		return 0;
	name = strndup((const char *)rec->bytes + fixed, rec->size - fixed);
	m = name ? machine_of(r, machine_pid, e) : NULL;
	if (!m) {
		free(name);
		return name ? -1 : no_memory(e);
	}
	ret = perf_images_map(m->images, r->w, name, build_id, build_id_bytes, length, e);
	free(name);
	return ret;
}

/* ---- Second pass ---- */

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
	if (side_put_record(&r->side, rec, e))
		return -1;
	if (rec->stamp.aux_bytes == 0)
		return 0;
	return side_put_flush(&r->side, e) || aux_put_sample(&r->aux, rec, e) ? -1 : 0;
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
	return got < 0 || side_put_flush(&r->side, e) ? -1 : 0;
}

static int put_round(struct run *r, uint64_t time_ns, struct pt_error *e)
{
	if (time_ns <= r->last_round_ns)
		return 0;
	r->last_round_ns = time_ns;
	return ptc_put_round(r->w, time_ns, e);
}

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
		if (aux_put_piece(&r->aux, piece->stream, piece, e))
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

static void note_missing(struct run *r)
{
	for (size_t m = 0; m < r->machine_count; m++) {
		const struct perf_images *images = r->machines[m].images;
		uint64_t all = perf_images_mapped_bytes(images), rest = 0;
		const struct perf_image_missing *missing;
		char guest[64] = "";
		size_t n;

		if (r->machines[m].pid)
			snprintf(guest, sizeof guest, " of guest %" PRId32, r->machines[m].pid);
		for (n = 0; (missing = perf_images_missing(images, n)); n++) {
			if (n >= MISSING_LISTED) {
				rest += missing->mapped_bytes;
				continue;
			}
			note(r, "no code for %.500s%s, %.0f %% of the mapped code: %.500s", missing->name,
			     guest, all ? 100.0 * (double)missing->mapped_bytes / (double)all : 0.0,
			     missing->why ? missing->why : "out of memory");
		}
		if (n > MISSING_LISTED)
			note(r, "no code for %zu further files%s, %.0f %% of the mapped code",
			     n - MISSING_LISTED, guest, all ? 100.0 * (double)rest / (double)all : 0.0);
	}
}

static void note_rest(struct run *r, const struct perf_order *order)
{
	const char *path = r->file.path;

	if (!r->file.pt.present)
		note(r, "%s has no Intel PT data", path);
	else if (r->plan.bytes == 0 && r->aux.count == 0)
		note(r, "%s was recorded with Intel PT, but has no AUX data", path);
	if (r->file.unfinished) {
		note(r, "%s was not finished (perf was killed?): what there is was imported", path);
		r->notes->gaps = true;
	}
	for (unsigned type = 0; type < 256; type++)
		if (r->unknown[type])
			note(r, "%s: %" PRIu64 " records of type %u%s were skipped: not known here", path,
			     r->unknown[type], type, type == 255 ? " and above" : "");
	if (perf_order_late(order)) {
		note(r, "%s: %" PRIu64 " records are too far out of order to be put where they belong", path,
		     perf_order_late(order));
		r->notes->gaps = true;
	}
	note_missing(r);
}

/* ---- All of it ---- */

/* Whether the recording is of the kernel that runs here. */
static bool is_own_kernel(const struct perf_file *f)
{
	struct utsname u;

	return uname(&u) == 0 && f->text[PERF_TEXT_HOST] && f->text[PERF_TEXT_RELEASE] &&
	       strcmp(u.nodename, f->text[PERF_TEXT_HOST]) == 0 &&
	       strcmp(u.release, f->text[PERF_TEXT_RELEASE]) == 0;
}

static int write_container(struct run *r, int fd, struct pt_error *e)
{
	struct perf_order *order;
	int ret = -1;

	r->w = ptc_writer_create(fd, r->request->level, e);
	order = perf_order_create(&r->file);
	if (!r->w || !order) {
		if (r->w)
			no_memory(e);
		goto out;
	}
	if (put_meta(r, e) || side_put_init(&r->side, r->w, &r->file, 0, &r->next_attr, e) ||
	    aux_put_init(&r->aux, r->w, &r->file, r->pt_event, e) || put_streams(r, e) ||
	    put_host_kernel(r, e) || second_pass(r, order, e) || ptc_writer_finish(r->w, e))
		goto out;
	note_rest(r, order);
	ret = 0;
out:
	perf_order_destroy(order);
	return ret;
}

int import_perf_run(const struct import_perf_request *request, int fd, struct import_perf_notes *notes,
		    struct pt_error *e)
{
	struct run r = {.request = request, .notes = notes};
	int ret;

	*notes = (struct import_perf_notes){0};
	ret = perf_file_open(&r.file, request->input, e);
	if (ret == 0)
		ret = first_pass(&r, e);
	if (ret == 0) {
		find_pt_event(&r);
		r.own_kernel = is_own_kernel(&r.file);
		ret = write_container(&r, fd, e);
	}
	side_put_deinit(&r.side);
	aux_put_deinit(&r.aux);
	aux_plan_deinit(&r.plan);
	for (size_t i = 0; i < r.machine_count; i++)
		perf_images_destroy(r.machines[i].images);
	free(r.machines);
	ptc_writer_destroy(r.w);
	perf_file_close(&r.file);
	return ret;
}
