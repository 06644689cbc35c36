/* trace_dat.c - see trace_dat.h. */
#include "capture/trace_dat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trace-cmd.h>

/* In libtracecmd.so of Debian 12, as in trace-cmd's own private header, but in no public one. */
const char *tracecmd_get_trace_clock(struct tracecmd_input *handle);
const char *tracecmd_get_uname(struct tracecmd_input *handle);
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
#pragma weak tracecmd_get_guest_cpumap
#pragma weak tracecmd_get_tep
#pragma weak tracecmd_get_trace_clock
#pragma weak tracecmd_get_traceid
#pragma weak tracecmd_get_uname
#pragma weak tracecmd_iterate_events
#pragma weak tracecmd_open
#pragma weak tracecmd_set_flag
#pragma weak tracecmd_set_loglevel

#define MAGIC "\x17\x08\x44tracing"

struct trace_dat {
	struct tracecmd_input *handle;
	struct tep_handle *tep;
	char *clock, host[128], kernel[128];
	bool tsc2nsec;
	uint32_t mult, shift;
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

/* ---- Options that the library does not tell ---------------------------------------------------------- */

/*
 * TSC2NSEC of a version 7 file (trace-cmd.dat.v7(5)): head = magic 10, version string, endian 1, long size 1, page size 4,
 * compression's name and version (strings), u64 offset of the first options section. A section: u16 id, u16 flags (1: compressed),
 * u32 name, u64 size. An option: u16 id, u32 size, data; id 0 ends, its data is the offset of the next section or 0.
 */
static void find_tsc2nsec(struct trace_dat *t, FILE *f)
{
	enum { DONE = 0, TSC2NSEC = 14, SECTIONS_MOST = 64, OPTIONS_MOST = 4096 };
	char c, version[8] = "";
	uint64_t at;
	size_t n = 0;

	if (fseek(f, 10, SEEK_SET))
		return;
	while (n < sizeof version - 1 && fread(&c, 1, 1, f) == 1 && c)
		version[n++] = c;
	if (strcmp(version, "7") || fread(&c, 1, 1, f) != 1 || c != 0 || fseek(f, 5, SEEK_CUR))
		return;
	for (int strings = 0; strings < 2;) {
		if (fread(&c, 1, 1, f) != 1)
			return;
		strings += !c;
	}
	if (fread(&at, sizeof at, 1, f) != 1)
		return;
	for (int section = 0; at && section < SECTIONS_MOST; section++) {
		uint16_t head[2], id;
		uint32_t size;

		if (at > INT64_MAX || fseeko(f, (off_t)at, SEEK_SET) || fread(head, sizeof head, 1, f) != 1 ||
		    head[1] & 1 || fseek(f, 12, SEEK_CUR))
			return;
		at = 0;
		for (int option = 0; option < OPTIONS_MOST; option++) {
			if (fread(&id, sizeof id, 1, f) != 1 || fread(&size, sizeof size, 1, f) != 1)
				return;
			if (id == DONE) {
				if (size < sizeof at || fread(&at, sizeof at, 1, f) != 1)
					return;
				break;
			}
			if (id == TSC2NSEC && size >= 8) {
				t->tsc2nsec = fread(&t->mult, 4, 1, f) == 1 &&
					      fread(&t->shift, 4, 1, f) == 1 && t->mult && t->shift < 64;
				return;
			}
			if (fseeko(f, size, SEEK_CUR))
				return;
		}
	}
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
	FILE *f;

	if (!t) {
		pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
		return NULL;
	}
	if (!tracecmd_open) {
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			"this pt-capture was built without libtracecmd: it reads no trace.dat");
		free(t);
		return NULL;
	}
	f = fopen(path, "re");
	if (!f) {
		pt_fail_errno(e, "cannot open %s", path);
		free(t);
		return NULL;
	}
	find_tsc2nsec(t, f);
	fclose(f);
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

void trace_dat_close(struct trace_dat *t)
{
	if (!t)
		return;
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
	*ret_mult = t->mult;
	*ret_shift = t->shift;
	return t->tsc2nsec;
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
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
	fprintf(to, "name: %s\nID: %u\nformat:\n", event->name, id);
	print_fields(to, event->format.common_fields);
	fputc('\n', to);
	print_fields(to, event->format.fields);
	fprintf(to, "\nprint fmt: \"%s\"\n", event->print_fmt.format ? event->print_fmt.format : "");
	if (fclose(to) != 0 || !ret->text)
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
	return 0;
}

bool trace_dat_number(const struct trace_dat *t, const struct trace_dat_event *event, const char *field,
		      uint64_t *ret)
{
	struct tep_event *described = tep_find_event(t->tep, (int)event->id);
	struct tep_format_field *f = described ? tep_find_any_field(described, field) : NULL;
	unsigned long long value;

	if (!f || f->offset + f->size > (int)event->raw_bytes ||
	    tep_read_number_field(f, event->raw, &value) < 0)
		return false;
	*ret = value;
	return true;
}

struct each {
	struct trace_dat *t;
	int (*take)(void *arg, const struct trace_dat_event *event, struct pt_error *e);
	void *arg;
	struct pt_error *e;
	int result;
};

static int take_record(struct tracecmd_input *handle, struct tep_record *record, int cpu, void *arg)
{
	struct each *x = arg;
	struct trace_dat_event event = {
	    .time = record->ts,
	    .cpu = cpu,
	    .tid = tep_data_pid(x->t->tep, record),
	    .id = (uint32_t)tep_data_type(x->t->tep, record),
	    .missed = record->missed_events < 0 ? UINT64_MAX : (uint64_t)record->missed_events,
	    .raw = record->data,
	    .raw_bytes = (uint32_t)record->size,
	};

	(void)handle;
	x->result = x->take(x->arg, &event, x->e);
	return x->result;
}

int trace_dat_buffers(const struct trace_dat *t)
{
	return 1 + tracecmd_buffer_instances(t->handle);
}

int trace_dat_each(struct trace_dat *t,
		   int (*take)(void *arg, const struct trace_dat_event *event, struct pt_error *e), void *arg,
		   struct pt_error *e)
{
	struct each x = {t, take, arg, e, 0};
	int buffers = tracecmd_buffer_instances(t->handle);

	if (tracecmd_iterate_events(t->handle, NULL, 0, take_record, &x) < 0 && !x.result)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "the events of the trace.dat cannot be read");
	for (int i = 0; i < buffers && !x.result; i++) {
		struct tracecmd_input *h = tracecmd_buffer_instance_handle(t->handle, i);

		if (!h)
			continue;
		tracecmd_set_flag(h, TRACECMD_FL_RAW_TS);
		if (tracecmd_iterate_events(h, NULL, 0, take_record, &x) < 0 && !x.result)
			x.result = pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
					   "the events of a buffer of the trace.dat cannot be read");
		tracecmd_close(h);
	}
	return x.result;
}
