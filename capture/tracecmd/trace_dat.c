/* trace_dat.c - see trace_dat.h. */
#include "capture/tracecmd/trace_dat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <trace-cmd.h>

/* In libtracecmd.so of Debian 12, as in trace-cmd's own private header, but in no public one. */
const char *tracecmd_get_trace_clock(struct tracecmd_input *handle);
const char *tracecmd_get_uname(struct tracecmd_input *handle);
int tracecmd_cpus(struct tracecmd_input *handle);
void tracecmd_set_flag(struct tracecmd_input *handle, int flag);
#define TRACECMD_FL_RAW_TS (1 << 3)

/* Debian has no static libtracecmd: `make static` links without it, and then they are NULL. */
#pragma weak tep_data_comm_from_pid
#pragma weak tep_data_pid
#pragma weak tep_data_type
#pragma weak tep_find_any_field
#pragma weak tep_find_event
#pragma weak tep_read_number_field
#pragma weak tep_set_loglevel
#pragma weak tracecmd_buffer_instance_handle
#pragma weak tracecmd_buffer_instances
#pragma weak tracecmd_close
#pragma weak tracecmd_cpus
#pragma weak tracecmd_free_record
#pragma weak tracecmd_get_guest_cpumap
#pragma weak tracecmd_get_tep
#pragma weak tracecmd_get_trace_clock
#pragma weak tracecmd_get_traceid
#pragma weak tracecmd_get_uname
#pragma weak tracecmd_open
#pragma weak tracecmd_read_data
#pragma weak tracecmd_set_flag
#pragma weak tracecmd_set_loglevel

#define PASSED_BYTES ((uintptr_t)4 << 20)
#define PASSED_GAP   ((uintptr_t)64 << 10) /* bytes farther on are of another mapping */

#define EVENT_LEAST  8 /* common_type, _flags, _preempt_count, _pid */
#define MAGIC	     "\x17\x08\x44tracing"

struct trace_dat {
	struct tracecmd_input *handle;
	struct tep_handle *tep;
	char *clock, host[128], kernel[128];
	struct trace_dat_options options;
	struct buffer *buffers; /* once events are read */
	int buffer_count;
	struct tep_record *now; /* the event that was delivered last */
};

/* The main buffer or an instance. */
struct buffer {
	struct tracecmd_input *handle;
	int cpus, oldest;
	bool known;		   /* oldest is */
	struct tep_record **heads; /* [cpu]: the oldest that is left, NULL: none */
	struct passed {
		uintptr_t from, to;
	} * passed; /* [cpu]: where its bytes lay that were read, of the mapped file */
};

bool trace_dat_is(const char *path)
{
	char head[10];
	FILE *f = fopen(path, "re");
	bool is = f && fread(head, 1, sizeof head, f) == sizeof head && !memcmp(head, MAGIC, sizeof head);

	if (f)
		fclose(f);
	return is;
}

/* "Linux HOST RELEASE ..." */
static void read_uname(struct trace_dat *t)
{
	const char *text = tracecmd_get_uname(t->handle);

	if (text && sscanf(text, "%*s %127s %127s", t->host, t->kernel) != 2)
		t->host[0] = t->kernel[0] = 0;
}

struct trace_dat *trace_dat_open(const char *path, struct pt_error *e)
{
	struct trace_dat *t = calloc(1, sizeof *t);
	const char *clock;

	if (!t) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	if (!tracecmd_open) {
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			"this pt-capture was built without libtracecmd: it reads no trace.dat");
		free(t);
		return NULL;
	}
	if (access(path, R_OK)) {
		pt_fail_errno(e, "cannot open %s", path);
		free(t);
		return NULL;
	}
	trace_dat_options_read(&t->options, path);
	/* The library prints its warnings; ours is the word on it. */
	tracecmd_set_loglevel(TEP_LOG_NONE);
	tep_set_loglevel(TEP_LOG_NONE);
	t->handle = tracecmd_open(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	if (!t->handle) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s is no trace.dat that libtracecmd can read",
			path);
		free(t);
		return NULL;
	}
	tracecmd_set_flag(t->handle, TRACECMD_FL_RAW_TS);
	t->tep = tracecmd_get_tep(t->handle);
	/* "local global [x86-tsc] ...", or the name alone */
	clock = tracecmd_get_trace_clock(t->handle);
	if (clock) {
		const char *bracket = strchr(clock, '[');

		clock = bracket ? bracket + 1 : clock;
		t->clock = strndup(clock, strcspn(clock, "] \n"));
	}
	read_uname(t);
	return t;
}

static void close_buffers(struct trace_dat *t)
{
	if (t->now)
		tracecmd_free_record(t->now);
	for (int i = 0; i < t->buffer_count; i++) {
		for (int cpu = 0; cpu < t->buffers[i].cpus; cpu++)
			if (t->buffers[i].heads[cpu])
				tracecmd_free_record(t->buffers[i].heads[cpu]);
		free(t->buffers[i].heads);
		free(t->buffers[i].passed);
		if (i > 0)
			tracecmd_close(t->buffers[i].handle);
	}
	free(t->buffers);
}

void trace_dat_close(struct trace_dat *t)
{
	if (!t)
		return;
	close_buffers(t);
	tracecmd_close(t->handle);
	free(t->clock);
	free(t);
}

enum trace_dat_clock trace_dat_clock(const struct trace_dat *t)
{
	const char *c = trace_dat_clock_name(t);

	if (!strcmp(c, "x86-tsc") || !strcmp(c, "tsc2nsec"))
		return TRACE_DAT_TSC;
	if (!strcmp(c, "local") || !strcmp(c, "global") || !strcmp(c, "perf"))
		return TRACE_DAT_PERF;
	return TRACE_DAT_OTHER;
}

const char *trace_dat_clock_name(const struct trace_dat *t)
{
	return t->clock && t->clock[0] ? t->clock : "local"; /* ftrace's own choice */
}

const char *trace_dat_host(const struct trace_dat *t)
{
	return t->host;
}

const char *trace_dat_kernel(const struct trace_dat *t)
{
	return t->kernel;
}

bool trace_dat_tsc2nsec(const struct trace_dat *t, uint32_t *ret_mult, uint32_t *ret_shift)
{
	*ret_mult = t->options.mult;
	*ret_shift = t->options.shift;
	return t->options.tsc2nsec;
}

const struct trace_dat_shift *trace_dat_shift(const struct trace_dat *t, uint32_t cpu)
{
	return cpu < t->options.shift_count && t->options.shifts[cpu].known ? &t->options.shifts[cpu] : NULL;
}

int trace_dat_guest_cpus(const struct trace_dat *t, const struct trace_dat *guest, const char **ret_name,
			 const int **ret_tids)
{
	unsigned long long id = tracecmd_get_traceid(guest->handle);
	int count = 0;

	if (!id || tracecmd_get_guest_cpumap(t->handle, id, ret_name, &count, ret_tids) < 0)
		return 0;
	return count;
}

const char *trace_dat_comm(const struct trace_dat *t, int32_t tid)
{
	const char *comm = tep_data_comm_from_pid(t->tep, tid);

	return comm && strcmp(comm, "<...>") ? comm : "";
}

/* ---- Events ----------------------------------------------------------------------------------------- */

static void print_fields(FILE *to, const struct tep_format_field *f)
{
	for (; f; f = f->next) {
		/* The array's size stands behind the name, but for a place of dynamic data. */
		const char *bracket = f->flags & TEP_FIELD_IS_DYNAMIC ? NULL : strchr(f->type, '[');
		int type = bracket ? (int)(bracket - f->type) : (int)strlen(f->type);

		fprintf(to, "\tfield:%.*s %s%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n", type, f->type, f->name,
			bracket ? bracket : "", f->offset, f->size, f->flags & TEP_FIELD_IS_SIGNED ? 1 : 0);
	}
}

int trace_dat_format(const struct trace_dat *t, uint32_t id, struct trace_dat_format *ret, struct pt_error *e)
{
	struct tep_event *event = tep_find_event(t->tep, (int)id);
	size_t bytes;
	FILE *to;

	if (!event)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "the trace.dat has an event %u that it does not describe", id);
	*ret = (struct trace_dat_format){.id = id, .system = event->system, .name = event->name};
	to = open_memstream(&ret->text, &bytes);
	if (!to)
		return pt_fail_no_memory(e, NULL);
	fprintf(to, "name: %s\nID: %u\nformat:\n", event->name, id);
	print_fields(to, event->format.common_fields);
	fputc('\n', to);
	print_fields(to, event->format.fields);
	fprintf(to, "\nprint fmt: \"%s\"\n", event->print_fmt.format ? event->print_fmt.format : "");
	if (fclose(to) != 0 || !ret->text)
		return pt_fail_no_memory(e, NULL);
	return 0;
}

bool trace_dat_number(const struct trace_dat *t, const struct trace_dat_event *event, const char *field,
		      uint64_t *ret)
{
	struct tep_event *described = tep_find_event(t->tep, (int)event->id);
	struct tep_format_field *f = described ? tep_find_any_field(described, field) : NULL;
	unsigned long long value;

	if (!f || f->offset < 0 || f->size < 0 || (uint32_t)f->size > event->raw_bytes ||
	    (uint32_t)f->offset > event->raw_bytes - (uint32_t)f->size ||
	    tep_read_number_field(f, event->raw, &value) < 0)
		return false;
	*ret = value;
	return true;
}

/* The oldest event that is left of each CPU. */
static int open_buffer(struct trace_dat *t, struct tracecmd_input *handle, struct pt_error *e)
{
	struct buffer *b = &t->buffers[t->buffer_count];

	*b = (struct buffer){.handle = handle, .cpus = tracecmd_cpus(handle)};
	tracecmd_set_flag(handle, TRACECMD_FL_RAW_TS);
	b->heads = calloc(b->cpus > 0 ? (size_t)b->cpus : 1, sizeof(struct tep_record *));
	b->passed = calloc(b->cpus > 0 ? (size_t)b->cpus : 1, sizeof *b->passed);
	if (!b->heads || !b->passed)
		return pt_fail_no_memory(e, NULL);
	t->buffer_count++;
	for (int i = 0; i < b->cpus; i++)
		b->heads[i] = tracecmd_read_data(handle, i);
	return 0;
}

static int open_buffers(struct trace_dat *t, struct pt_error *e)
{
	int instances = tracecmd_buffer_instances(t->handle);

	t->buffers = calloc((size_t)(instances > 0 ? instances : 0) + 1, sizeof *t->buffers);
	if (!t->buffers)
		return pt_fail_no_memory(e, NULL);
	if (open_buffer(t, t->handle, e))
		return -1;
	for (int i = 0; i < instances; i++) {
		struct tracecmd_input *h = tracecmd_buffer_instance_handle(t->handle, i);

		if (h && open_buffer(t, h, e))
			return -1;
	}
	return 0;
}

/* The CPU with the buffer's oldest event, -1: there is none. */
static int oldest_of(struct buffer *b)
{
	if (b->known)
		return b->oldest;
	b->known = true;
	b->oldest = -1;
	for (int i = 0; i < b->cpus; i++)
		if (b->heads[i] && (b->oldest < 0 || b->heads[i]->ts < b->heads[b->oldest]->ts))
			b->oldest = i;
	return b->oldest;
}

/* The library maps all of a CPU's data: what was read need not stay in memory. (Paged out, not thrown away: what is
 * compressed in the file lies in memory of the library's.) */
static void pass(struct passed *p, const struct tep_record *r)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)r->data;

	if (at < p->to || at - p->to > PASSED_GAP) {
		p->from = at + page - at % page;
	} else if (at > p->from && at - p->from > PASSED_BYTES) {
		madvise((void *)p->from, at - at % page - p->from, MADV_PAGEOUT);
		p->from = at - at % page;
	}
	p->to = at;
}

int trace_dat_next(struct trace_dat *t, struct trace_dat_event *ret, struct pt_error *e)
{
	struct buffer *first = NULL;
	int cpu;

	if (!t->buffers && open_buffers(t, e))
		return -1;
	for (int i = 0; i < t->buffer_count; i++) {
		struct buffer *b = &t->buffers[i];

		if (oldest_of(b) >= 0 &&
		    (!first || b->heads[b->oldest]->ts < first->heads[first->oldest]->ts))
			first = b;
	}
	if (!first)
		return 0;
	cpu = first->oldest;
	if (t->now)
		tracecmd_free_record(t->now);
	t->now = first->heads[cpu];
	pass(&first->passed[cpu], t->now);
	first->heads[cpu] = tracecmd_read_data(first->handle, cpu);
	first->known = false;
	if (t->now->size < EVENT_LEAST)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "the trace.dat has an event of %d bytes",
			       t->now->size);
	*ret = (struct trace_dat_event){
	    .time = t->now->ts,
	    .cpu = cpu,
	    .tid = tep_data_pid(t->tep, t->now),
	    .id = (uint32_t)tep_data_type(t->tep, t->now),
	    .missed = t->now->missed_events < 0 ? UINT64_MAX : (uint64_t)t->now->missed_events,
	    .raw = t->now->data,
	    .raw_bytes = (uint32_t)t->now->size,
	};
	return 1;
}
