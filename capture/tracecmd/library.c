/* library.c - see library.h. */
#ifdef HAVE_TRACECMD

#include "capture/tracecmd/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbuffer.h>
#include <trace-cmd.h>

/* A static pt-capture is linked without them, and then they are NULL. */
#pragma weak kbuffer_alloc
#pragma weak kbuffer_event_size
#pragma weak kbuffer_free
#pragma weak kbuffer_load_subbuffer
#pragma weak kbuffer_missed_events
#pragma weak kbuffer_next_event
#pragma weak kbuffer_read_event
#pragma weak kbuffer_set_old_format
#pragma weak kbuffer_subbuffer_size
#pragma weak tep_data_comm_from_pid
#pragma weak tep_data_pid
#pragma weak tep_data_type
#pragma weak tep_find_any_field
#pragma weak tep_find_event
#pragma weak tep_get_header_timestamp_size
#pragma weak tep_is_old_format
#pragma weak tep_read_number_field
#pragma weak tep_set_loglevel
#pragma weak tracecmd_close
#pragma weak tracecmd_get_guest_cpumap
#pragma weak tracecmd_get_tep
#pragma weak tracecmd_get_traceid
#pragma weak tracecmd_open_head
#pragma weak tracecmd_set_loglevel

struct dat_library {
	struct tracecmd_input *handle;
	struct tep_handle *tep;
};

struct dat_page {
	struct kbuffer *kbuffer;
	const uint8_t *bytes, *end;
};

struct dat_library *dat_library_open(const char *path, struct pt_error *e)
{
	struct dat_library *l;

	if (!tracecmd_open_head) {
		dat_library_missing(e);
		return NULL;
	}
	l = calloc(1, sizeof *l);
	if (!l) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	/* The library prints its warnings; ours is the word on it. */
	tracecmd_set_loglevel(TEP_LOG_NONE);
	tep_set_loglevel(TEP_LOG_NONE);
	/* Without memory, it leaves out names and fields, and goes on. */
	errno = 0;
	l->handle = tracecmd_open_head(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	if (errno == ENOMEM) {
		pt_fail_no_memory(e, "the trace.dat");
		dat_library_close(l);
		return NULL;
	}
	l->tep = l->handle ? tracecmd_get_tep(l->handle) : NULL;
	if (l->tep && tep_get_header_timestamp_size(l->tep) == 8)
		return l;
	pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s is no trace.dat that libtracecmd can read", path);
	dat_library_close(l);
	return NULL;
}

void dat_library_close(struct dat_library *l)
{
	if (!l)
		return;
	if (l->handle)
		tracecmd_close(l->handle);
	free(l);
}

const char *dat_library_comm(const struct dat_library *l, int32_t tid)
{
	const char *comm;

	errno = 0;
	comm = tep_data_comm_from_pid(l->tep, tid);
	if (errno == ENOMEM)
		return NULL;
	return comm && strcmp(comm, "<...>") != 0 ? comm : "";
}

int dat_library_guest_cpus(const struct dat_library *host, const struct dat_library *guest,
			   const char **ret_name, const int **ret_tids)
{
	unsigned long long id = tracecmd_get_traceid(guest->handle);
	int count = 0;

	if (!id || tracecmd_get_guest_cpumap(host->handle, id, ret_name, &count, ret_tids) < 0)
		return 0;
	return count;
}

/* ---- Events ---- */

static void print_fields(FILE *to, const struct tep_format_field *f)
{
	for (; f; f = f->next) {
		/* An array's size follows the name, but for a place of dynamic data. */
		const char *bracket = f->flags & TEP_FIELD_IS_DYNAMIC ? NULL : strchr(f->type, '[');
		int type = bracket ? (int)(bracket - f->type) : (int)strlen(f->type);

		fprintf(to, "\tfield:%.*s %s%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n", type, f->type, f->name,
			bracket ? bracket : "", f->offset, f->size, f->flags & TEP_FIELD_IS_SIGNED ? 1 : 0);
	}
}

int dat_library_format(const struct dat_library *l, uint32_t id, struct dat_format *ret, struct pt_error *e)
{
	struct tep_event *event = tep_find_event(l->tep, (int)id);
	size_t bytes;
	FILE *to;

	if (!event)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "the trace.dat has an event %u that it does not describe", id);
	*ret = (struct dat_format){.system = event->system, .name = event->name};
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

/* The event as the library takes it. */
static struct tep_record record_of(const struct dat_raw *raw)
{
	return (struct tep_record){.ts = raw->time, .size = (int)raw->bytes, .data = (void *)raw->data};
}

void dat_library_ids(const struct dat_library *l, const struct dat_raw *raw, uint32_t *ret_id,
		     int32_t *ret_tid)
{
	struct tep_record record = record_of(raw);

	*ret_id = (uint32_t)tep_data_type(l->tep, &record);
	*ret_tid = tep_data_pid(l->tep, &record);
}

bool dat_library_number(const struct dat_library *l, uint32_t id, const struct dat_raw *raw,
			const char *field, uint64_t *ret)
{
	struct tep_event *event = tep_find_event(l->tep, (int)id);
	struct tep_format_field *f = event ? tep_find_any_field(event, field) : NULL;
	unsigned long long value;

	if (!f || f->offset < 0 || f->size < 0 || (uint32_t)f->size > raw->bytes ||
	    (uint32_t)f->offset > raw->bytes - (uint32_t)f->size ||
	    tep_read_number_field(f, raw->data, &value) < 0)
		return false;
	*ret = value;
	return true;
}

/* ---- Pages ---- */

struct dat_page *dat_page_create(const struct dat_library *l, unsigned long_bytes, struct pt_error *e)
{
	struct dat_page *p = calloc(1, sizeof *p);

	if (p)
		p->kbuffer =
		    kbuffer_alloc(long_bytes == 8 ? KBUFFER_LSIZE_8 : KBUFFER_LSIZE_4, KBUFFER_ENDIAN_LITTLE);
	if (!p || !p->kbuffer) {
		free(p);
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	if (tep_is_old_format(l->tep))
		kbuffer_set_old_format(p->kbuffer);
	return p;
}

void dat_page_destroy(struct dat_page *p)
{
	if (!p)
		return;
	kbuffer_free(p->kbuffer);
	free(p);
}

bool dat_page_load(struct dat_page *p, void *page, size_t bytes)
{
	int size;

	p->bytes = page;
	p->end = p->bytes + bytes;
	kbuffer_load_subbuffer(p->kbuffer, page);
	size = kbuffer_subbuffer_size(p->kbuffer);
	return size >= 0 && (size_t)size <= bytes;
}

int dat_page_event(struct dat_page *p, struct dat_raw *ret)
{
	unsigned long long time;
	const uint8_t *data = kbuffer_read_event(p->kbuffer, &time);
	int size, missed;

	if (!data)
		return 0;
	size = kbuffer_event_size(p->kbuffer);
	if (data < p->bytes || data > p->end || size < 0 || size > p->end - data)
		return -1;
	missed = kbuffer_missed_events(p->kbuffer);
	*ret = (struct dat_raw){.time = time,
				.missed = missed < 0 ? UINT64_MAX : (uint64_t)missed,
				.data = data,
				.bytes = (uint32_t)size};
	return 1;
}

void dat_page_next(struct dat_page *p)
{
	kbuffer_next_event(p->kbuffer, NULL);
}

#endif
