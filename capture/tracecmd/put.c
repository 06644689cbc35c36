/* put.c - see put.h. */
#include "capture/tracecmd/put.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_BYTES ((size_t)1 << 20)
#define SAMPLE_TYPE                                                                                          \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW)
#define ID_MAX	65535		    /* a ring buffer has 16 bits for it */
#define ID_BASE 0x7472616365000000u /* of the events' sample ids: far from a kernel's, which are small */

static int flush(struct dat_put *p, struct dat_source *s, struct pt_error *e)
{
	int r = s->side_bytes ? ptc_put_sideband(p->w, s->first_attr - 1, s->side, s->side_bytes, e) : 0;

	p->side_bytes -= s->side_bytes;
	s->side_bytes = 0;
	return r;
}

/* A zeroed record of that many bytes after its header. Its body, or NULL. */
static uint8_t *record(struct dat_put *p, struct dat_source *s, uint32_t type, size_t bytes,
		       struct pt_error *e)
{
	struct perf_event_header h = {type, 0, (uint16_t)(sizeof h + bytes)};
	uint8_t *at;

	if (sizeof h + bytes > UINT16_MAX) {
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "an event of %zu bytes: too long", bytes);
		return NULL;
	}
	/* dat_put_until() flushes at FLUSH_BYTES; an event is three records at most. */
	if (!s->side && !(s->side = malloc(FLUSH_BYTES + 4 * (size_t)UINT16_MAX))) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	at = s->side + s->side_bytes;
	memset(at, 0, h.size);
	memcpy(at, &h, sizeof h);
	s->side_bytes += h.size;
	p->side_bytes += h.size;
	return at + sizeof h;
}

struct sample_id { /* what ends a record, by SAMPLE_TYPE */
	int32_t pid, tid;
	uint64_t time;
	uint32_t cpu, zero;
	uint64_t id;
};

static uint64_t ns_of(const struct dat_source *s, const struct dat_clock *clock, uint64_t time)
{
	if (trace_dat_clock(s->dat) != TRACE_DAT_TSC)
		return time;
	return clock->zero + (uint64_t)((unsigned __int128)time * clock->mult >> clock->shift);
}

/* Room for the attr of an event. */
static int need_attr(struct dat_source *s, uint32_t id, struct pt_error *e)
{
	size_t room = (size_t)id + 256;
	uint32_t *grown;

	if (id > ID_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "the trace.dat has an event %u: there are none above %u", id, ID_MAX);
	if (id < s->attr_room)
		return 0;
	grown = realloc(s->attr_of, room * sizeof *grown);
	if (!grown)
		return pt_fail_no_memory(e, NULL);
	memset(grown + s->attr_room, 0, (room - s->attr_room) * sizeof *grown);
	s->attr_of = grown;
	s->attr_room = room;
	return 0;
}

/* Writes the event's attr, of which the records have that sample id, and format. */
static int put_attr(struct dat_put *p, const struct dat_source *s, uint32_t id, const struct dat_format *f,
		    uint64_t sample_id, struct pt_error *e)
{
	const struct perf_event_attr a = {.type = PERF_TYPE_TRACEPOINT,
					  .size = sizeof a,
					  .config = id,
					  .sample_period = 1,
					  .sample_type = SAMPLE_TYPE,
					  .sample_id_all = 1};
	const struct ptc_tracepoint t = {.machine_pid = s->machine_pid,
					 .id = id,
					 .system = f->system,
					 .system_bytes = (uint32_t)strlen(f->system),
					 .name = f->name,
					 .name_bytes = (uint32_t)strlen(f->name),
					 .format = f->text,
					 .format_bytes = (uint32_t)strlen(f->text)};
	char name[256];
	struct ptc_attr put;

	snprintf(name, sizeof name, "%s:%s", f->system, f->name);
	put = ptc_host_attr(name, &a, sizeof a, &sample_id, 1);
	put.machine_pid = s->machine_pid;
	return ptc_put_attr(p->w, &put, e) || ptc_put_format(p->w, &t, e) ? -1 : 0;
}

/* The event's sample id. Its attr and format are written when it is met first. */
static int event_id(struct dat_put *p, struct dat_source *s, uint32_t id, uint64_t *ret, struct pt_error *e)
{
	struct dat_format f;
	int r;

	if (need_attr(s, id, e))
		return -1;
	if (s->attr_of[id]) {
		*ret = ID_BASE + s->attr_of[id] - 1;
		return 0;
	}
	if (flush(p, s, e) || dat_library_format(trace_dat_library(s->dat), id, &f, e))
		return -1;
	*ret = ID_BASE + p->attr_count;
	r = put_attr(p, s, id, &f, *ret, e);
	free(f.text);
	if (r)
		return -1;
	s->attr_of[id] = ++p->attr_count;
	if (!s->first_attr)
		s->first_attr = p->attr_count;
	return 0;
}

/* A thread's name, once. (A container that events are added to has them.) */
static int name_thread(struct dat_put *p, struct dat_source *s, const struct sample_id *id,
		       struct pt_error *e)
{
	enum { THREADS = 1 << 22 };
	const char *comm;
	uint8_t *at;

	if (!s->names || id->tid <= 0 || id->tid >= THREADS)
		return 0;
	if (!s->named && !(s->named = calloc(1, THREADS / 8)))
		return pt_fail_no_memory(e, NULL);
	if (s->named[id->tid / 8] >> (id->tid % 8) & 1)
		return 0;
	s->named[id->tid / 8] |= (uint8_t)(1 << (id->tid % 8));
	comm = dat_library_comm(trace_dat_library(s->dat), id->tid);
	if (!comm)
		return pt_fail_no_memory(e, NULL);
	if (!*comm)
		return 0;
	at = record(p, s, PERF_RECORD_COMM, 8 + 16 + sizeof *id, e);
	if (!at)
		return -1;
	memcpy(at, &id->pid, 8);
	memcpy(at + 8, comm, strnlen(comm, 15));
	memcpy(at + 24, id, sizeof *id);
	return 0;
}

/* Writes the source's next event. */
static int take(struct dat_put *p, struct dat_source *s, struct pt_error *e)
{
	const struct trace_dat_event *event = &s->next;
	struct sample_id id = {.pid = -1,
			       .tid = event->tid,
			       .time = ns_of(s, &s->clock, event->raw.time),
			       .cpu = (uint32_t)event->cpu};
	uint32_t raw_bytes = (event->raw.bytes + 4 + 7) / 8 * 8 - 4;
	uint8_t *at;

	if (event->raw.bytes > UINT16_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "an event of %u bytes: too long",
			       event->raw.bytes);
	if (event_id(p, s, event->id, &id.id, e) < 0 || name_thread(p, s, &id, e) < 0)
		return -1;
	if (event->raw.missed) {
		uint64_t lost = event->raw.missed == UINT64_MAX ? 0 : event->raw.missed;

		p->lost += lost;
		p->some_lost = true;
		at = record(p, s, PERF_RECORD_LOST, 16 + sizeof id, e);
		if (!at)
			return -1;
		memcpy(at, &id.id, 8);
		memcpy(at + 8, &lost, 8);
		memcpy(at + 16, &id, sizeof id);
	}
	at = record(p, s, PERF_RECORD_SAMPLE, 32 + 4 + raw_bytes, e);
	if (!at)
		return -1;
	memcpy(at, &id.id, 8);
	memcpy(at + 8, &id, 24); /* pid, tid; time; cpu */
	memcpy(at + 32, &raw_bytes, 4);
	memcpy(at + 36, event->raw.data, event->raw.bytes);
	return 0;
}

/* The source's next event, and when it was by the host's clock. */
static int next(struct dat_source *s, struct pt_error *e)
{
	int got = trace_dat_next(s->dat, &s->next, e);

	if (got < 0)
		return -1;
	s->over = got == 0;
	if (!s->over)
		s->next_ns = s->related ? ns_of(s, &s->host, s->next.raw.time - (uint64_t)s->tsc_offset) : 0;
	return 0;
}

static int flush_all(struct dat_put *p, struct dat_source *sources, size_t count, struct pt_error *e)
{
	for (size_t i = 0; i < count; i++)
		if (flush(p, &sources[i], e) < 0)
			return -1;
	return 0;
}

int dat_put_begin(struct dat_source *sources, size_t count, struct pt_error *e)
{
	for (size_t i = 0; i < count; i++)
		if (next(&sources[i], e) < 0)
			return -1;
	return 0;
}

int dat_put_until(struct dat_put *p, struct dat_source *sources, size_t count, uint64_t until_ns, bool rounds,
		  struct pt_error *e)
{
	for (;;) {
		struct dat_source *first = NULL;

		for (size_t i = 0; i < count; i++)
			if (!sources[i].over && (!first || sources[i].next_ns < first->next_ns))
				first = &sources[i];
		if (!first || first->next_ns >= until_ns)
			break;
		if (p->side_bytes >= FLUSH_BYTES) {
			if (flush_all(p, sources, count, e) < 0 ||
			    (rounds && first->next_ns && ptc_put_round(p->w, first->next_ns, e) < 0))
				return -1;
			if (p->progress)
				p->progress();
		}
		if (take(p, first, e) < 0 || next(first, e) < 0)
			return -1;
	}
	return flush_all(p, sources, count, e);
}

void dat_source_deinit(struct dat_source *s)
{
	free(s->attr_of);
	free(s->side);
	free(s->named);
	*s = (struct dat_source){0};
}
