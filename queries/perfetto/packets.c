/* packets.c - see packets.h. */
#include "queries/perfetto/packets.h"

#ifdef HAVE_PROTOBUF_C

#include <perfetto.pb-c.h>
#include <stdlib.h>
#include <string.h>

#include "schema/array.h"
#include "schema/hash.h"
#include "schema/utf8.h"

#define ARGUMENTS_MAX 16
#define SEQUENCE      1 /* one writer, whose interned names hold from the first packet on */

enum { CLEARED = 1, NEEDS_STATE = 2 }; /* TracePacket.SequenceFlags */

struct packets {
	FILE *out;
	uint8_t *bytes; /* of a packet */
	size_t room;
	char **names; /* interned: number n is names[n - 1] */
	size_t name_count, name_room;
	struct pt_hash by_name;
	bool *said; /* of each name: readers know it */
	size_t said_room;
	bool begun, no_memory;
};

struct packets *packets_create(FILE *out, struct pt_error *e)
{
	struct packets *p = calloc(1, sizeof *p);

	if (!p || pt_hash_init(&p->by_name, 10, NULL) < 0) {
		free(p);
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	p->out = out;
	return p;
}

void packets_destroy(struct packets *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->name_count; i++)
		free(p->names[i]);
	free(p->names);
	free(p->said);
	pt_hash_deinit(&p->by_name);
	free(p->bytes);
	free(p);
}

int packets_finish(const struct packets *p, struct pt_error *e)
{
	return p->no_memory ? pt_fail_no_memory(e, "the trace's packets") : 0;
}

/* ---- Bytes -------------------------------------------------------------------------------------------- */

/* A field of a Trace: number 1, and its bytes. */
static void put_packet(struct packets *p, Perfetto__Protos__TracePacket *packet)
{
	size_t n;

	packet->has_trusted_packet_sequence_id = 1;
	packet->trusted_packet_sequence_id = SEQUENCE;
	packet->has_sequence_flags = 1;
	packet->sequence_flags = p->begun ? NEEDS_STATE : CLEARED;
	p->begun = true;
	n = perfetto__protos__trace_packet__get_packed_size(packet);
	if (n > p->room) {
		uint8_t *grown = realloc(p->bytes, 2 * n);

		if (!grown) {
			p->no_memory = true;
			return;
		}
		p->bytes = grown;
		p->room = 2 * n;
	}
	putc_unlocked(1 << 3 | 2, p->out);
	for (size_t left = n;; left >>= 7) {
		putc_unlocked((int)(left & 0x7f) | (left >> 7 ? 0x80 : 0), p->out);
		if (!(left >> 7))
			break;
	}
	perfetto__protos__trace_packet__pack(packet, p->bytes);
	fwrite_unlocked(p->bytes, 1, n, p->out);
}

/* A copy that is valid UTF-8; NULL: no memory. */
static char *utf8(struct packets *p, const char *s)
{
	char *ret = NULL;
	size_t n;
	FILE *to = open_memstream(&ret, &n);

	while (to && *s) {
		size_t bytes = pt_utf8_bytes((const uint8_t *)s, strnlen(s, 4));

		if (bytes)
			fwrite(s, 1, bytes, to);
		else
			fputs("\xef\xbf\xbd", to);
		s += bytes ? bytes : 1;
	}
	if (to && fclose(to) == 0 && ret)
		return ret;
	free(ret);
	p->no_memory = true;
	return NULL;
}

static bool is_ascii(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

/* ---- Names -------------------------------------------------------------------------------------------- */

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t key_of_text(const char *s)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3;
	return pt_hash_mix(h);
}

static uint64_t key_of_name(const void *names, uint32_t n)
{
	return key_of_text(((char *const *)names)[n - 1]);
}

/* The name's number. 0: no memory. */
static uint32_t intern(struct packets *p, const char *name)
{
	uint64_t key = key_of_text(name);
	uint32_t n;

	for (uint32_t i = pt_hash_first(&p->by_name, key); (n = p->by_name.slots[i]);
	     i = pt_hash_next(&p->by_name, i))
		if (!strcmp(p->names[n - 1], name))
			return n;
	if (pt_array_grow(&p->names, p->name_count, &p->name_room, NULL) == 0 &&
	    pt_array_grow(&p->said, p->name_count, &p->said_room, NULL) == 0 &&
	    (p->names[p->name_count] = strdup(name))) {
		p->said[p->name_count] = false;
		if (pt_hash_insert(&p->by_name, key, (uint32_t)++p->name_count, key_of_name, p->names,
				   NULL) == 0)
			return (uint32_t)p->name_count;
	}
	p->no_memory = true;
	return 0;
}

uint32_t packets_name(struct packets *p, const char *text)
{
	char *name = is_ascii(text) ? NULL : utf8(p, text);
	uint32_t ret = intern(p, name ? name : text);

	free(name);
	return ret;
}

/* ---- Events ------------------------------------------------------------------------------------------- */

void packets_track(struct packets *p, const struct packet_track *t)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__ProcessDescriptor process = PERFETTO__PROTOS__PROCESS_DESCRIPTOR__INIT;
	Perfetto__Protos__ThreadDescriptor thread = PERFETTO__PROTOS__THREAD_DESCRIPTOR__INIT;
	Perfetto__Protos__CounterDescriptor counter = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__INIT;
	char *name = t->name ? utf8(p, t->name) : NULL;

	track.has_uuid = 1;
	track.uuid = t->uuid;
	track.has_parent_uuid = t->parent != 0;
	track.parent_uuid = t->parent;
	if (t->tid) {
		thread.has_pid = thread.has_tid = 1;
		thread.pid = (int32_t)t->pid;
		thread.tid = (int32_t)t->tid;
		thread.thread_name = name;
		track.thread = &thread;
	} else if (t->pid) {
		process.has_pid = 1;
		process.pid = (int32_t)t->pid;
		process.process_name = name;
		track.process = &process;
	} else {
		track.name = name;
		track.has_sibling_merge_behavior = 1;
		track.sibling_merge_behavior =
		    PERFETTO__PROTOS__TRACK_DESCRIPTOR__SIBLING_MERGE_BEHAVIOR__SIBLING_MERGE_BEHAVIOR_NONE;
	}
	if (t->unit) {
		counter.unit_name = (char *)t->unit;
		track.counter = &counter;
	}
	packet.track_descriptor = &track;
	put_packet(p, &packet);
	free(name);
}

static void init_event(Perfetto__Protos__TracePacket *packet, Perfetto__Protos__TrackEvent *event,
		       uint64_t track, int64_t time_ns)
{
	packet->has_timestamp = 1;
	packet->timestamp = (uint64_t)time_ns;
	packet->track_event = event;
	event->has_type = 1;
	event->has_track_uuid = 1;
	event->track_uuid = track;
}

/* The arguments, in places that the caller has; copies: their texts, for free(). */
static void set_arguments(struct packets *p, Perfetto__Protos__TrackEvent *event,
			  const struct packet_event *e, Perfetto__Protos__DebugAnnotation *places,
			  Perfetto__Protos__DebugAnnotation **list, char **copies)
{
	for (size_t i = 0; i < e->argument_count && i < ARGUMENTS_MAX; i++) {
		const struct packet_argument *a = &e->arguments[i];
		Perfetto__Protos__DebugAnnotation *to = &places[i];

		perfetto__protos__debug_annotation__init(to);
		to->name = (char *)a->name;
		copies[i] = a->text ? utf8(p, a->text) : NULL;
		to->string_value = copies[i];
		to->has_pointer_value = !a->text && a->address;
		to->pointer_value = (uint64_t)a->number;
		to->has_int_value = !a->text && !a->address;
		to->int_value = a->number;
		list[event->n_debug_annotations++] = to;
	}
	event->debug_annotations = list;
}

static void put_event(struct packets *p, Perfetto__Protos__TrackEvent__Type type,
		      const struct packet_event *e)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__EventName new = PERFETTO__PROTOS__EVENT_NAME__INIT, *news = &new;
	Perfetto__Protos__DebugAnnotation places[ARGUMENTS_MAX], *list[ARGUMENTS_MAX];
	char *copies[ARGUMENTS_MAX] = {NULL}, *category = (char *)e->category;
	uint64_t flow = e->flow, flow_end = e->flow_end;

	init_event(&packet, &event, e->track, e->time_ns);
	event.type = type;
	event.has_name_iid = 1;
	event.name_iid = e->name_number ? e->name_number : packets_name(p, e->name);
	if (event.name_iid && !p->said[event.name_iid - 1]) {
		p->said[event.name_iid - 1] = true;
		new.has_iid = 1;
		new.iid = event.name_iid;
		new.name = p->names[event.name_iid - 1];
		data.n_event_names = 1;
		data.event_names = &news;
		packet.interned_data = &data;
	}
	event.n_categories = 1;
	event.categories = &category;
	event.n_flow_ids = flow != 0;
	event.flow_ids = &flow;
	event.n_terminating_flow_ids = flow_end != 0;
	event.terminating_flow_ids = &flow_end;
	set_arguments(p, &event, e, places, list, copies);
	put_packet(p, &packet);
	for (size_t i = 0; i < ARGUMENTS_MAX; i++)
		free(copies[i]);
}

void packets_begin(struct packets *p, const struct packet_event *e)
{
	put_event(p, PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, e);
}

void packets_mark(struct packets *p, const struct packet_event *e)
{
	put_event(p, PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT, e);
}

void packets_end(struct packets *p, uint64_t track, int64_t time_ns)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;

	init_event(&packet, &event, track, time_ns);
	event.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END;
	put_packet(p, &packet);
}

void packets_count(struct packets *p, uint64_t track, int64_t time_ns, double value)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;

	init_event(&packet, &event, track, time_ns);
	event.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_COUNTER;
	event.has_double_counter_value = 1;
	event.double_counter_value = value;
	put_packet(p, &packet);
}

#else

struct packets *packets_create(FILE *out, struct pt_error *e)
{
	(void)out;
	pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		"this pt-query was built without protobuf-c: install libprotobuf-c-dev and "
		"protobuf-c-compiler, and build again");
	return NULL;
}

void packets_destroy(struct packets *p)
{
	(void)p;
}

int packets_finish(const struct packets *p, struct pt_error *e)
{
	(void)p, (void)e;
	return 0;
}

uint32_t packets_name(struct packets *p, const char *name)
{
	(void)p, (void)name;
	return 0;
}

void packets_track(struct packets *p, const struct packet_track *t)
{
	(void)p, (void)t;
}

void packets_begin(struct packets *p, const struct packet_event *e)
{
	(void)p, (void)e;
}

void packets_mark(struct packets *p, const struct packet_event *e)
{
	(void)p, (void)e;
}

void packets_end(struct packets *p, uint64_t track, int64_t time_ns)
{
	(void)p, (void)track, (void)time_ns;
}

void packets_count(struct packets *p, uint64_t track, int64_t time_ns, double value)
{
	(void)p, (void)track, (void)time_ns, (void)value;
}

#endif
