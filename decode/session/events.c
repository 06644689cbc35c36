/* events.c - see events.h. */
#include "decode/session/events.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "decode/sideband/tracepoint.h"
#include "decode/sideband/sample.h"

struct format {
	struct format *next;
	int32_t machine_pid;
	uint32_t id;
	char *name; /* "system:name" */
	struct pt_tracepoint *tracepoint;
};

struct pt_event { /* of an attr */
	bool known, is_tracepoint;
	char *name;
	int32_t machine_pid;
	uint64_t config, sample_type, read_format;
	const struct format *format; /* found with its first sample */
};

struct known_id {
	int32_t machine_pid;
	uint32_t attr; /* of several that have it, the first */
	uint64_t id;
};

struct pt_session_events {
	struct pt_event **attrs; /* pt_sideband_record.event points at them */
	uint32_t count;
	void *ids; /* tsearch()'s, of struct known_id */
	struct format *formats;
	struct pt_text_buffer text;
};

struct pt_session_events *pt_session_events_create(void)
{
	return calloc(1, sizeof(struct pt_session_events));
}

static void event_destroy(struct pt_event *a)
{
	if (!a)
		return;
	free(a->name);
	free(a);
}

void pt_session_events_destroy(struct pt_session_events *ev)
{
	if (!ev)
		return;
	for (uint32_t i = 0; i < ev->count; i++)
		event_destroy(ev->attrs[i]);
	free(ev->attrs);
	tdestroy(ev->ids, free);
	while (ev->formats) {
		struct format *f = ev->formats;

		ev->formats = f->next;
		pt_tracepoint_destroy(f->tracepoint);
		free(f->name);
		free(f);
	}
	free(ev->text.text);
	free(ev);
}

static int by_id(const void *a, const void *b)
{
	const struct known_id *x = a, *y = b;

	if (x->machine_pid != y->machine_pid)
		return x->machine_pid < y->machine_pid ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static int add_ids(struct pt_session_events *ev, const struct ptc_attr *a, struct pt_error *e)
{
	for (uint32_t i = 0; i < a->count; i++) {
		struct known_id *id = malloc(sizeof *id), **node;

		if (!id)
			return pt_fail_no_memory(e, "events");
		*id = (struct known_id){.machine_pid = a->machine_pid, .attr = a->index};
		memcpy(&id->id, a->ids + (size_t)i * sizeof id->id, sizeof id->id);
		node = tsearch(id, &ev->ids, by_id);
		if (node && *node != id && (*node)->attr > id->attr)
			(*node)->attr = id->attr;
		if (!node || *node != id)
			free(id);
		if (!node)
			return pt_fail_no_memory(e, "events");
	}
	return 0;
}

int pt_session_events_attr(struct pt_session_events *ev, const struct ptc_attr *a, struct pt_error *e)
{
	struct perf_event_attr attr = {0};
	struct pt_event *event = calloc(1, sizeof *event);

	if (!event)
		return pt_fail_no_memory(e, "events");
	memcpy(&attr, a->attr, a->attr_bytes < sizeof attr ? a->attr_bytes : sizeof attr);
	event->known = true;
	event->is_tracepoint = attr.type == PERF_TYPE_TRACEPOINT;
	event->machine_pid = a->machine_pid;
	event->config = attr.config;
	event->sample_type = attr.sample_type;
	event->read_format = attr.read_format;
	event->name = strndup(a->name, a->name_bytes);
	if (!event->name) {
		event_destroy(event);
		return pt_fail_no_memory(e, "events");
	}
	if (a->index >= ev->count) {
		struct pt_event **attrs = realloc(ev->attrs, (a->index + 1) * sizeof(struct pt_event *));

		if (!attrs) {
			event_destroy(event);
			return pt_fail_no_memory(e, "events");
		}
		for (uint32_t i = ev->count; i <= a->index; i++)
			attrs[i] = NULL;
		ev->attrs = attrs;
		ev->count = a->index + 1;
	}
	if (ev->attrs[a->index]) {
		event_destroy(event);
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "attr %u is declared twice", a->index);
	}
	ev->attrs[a->index] = event;
	return add_ids(ev, a, e);
}

int pt_session_events_format(struct pt_session_events *ev, const struct ptc_tracepoint *t, struct pt_error *e)
{
	struct format *f = calloc(1, sizeof *f);
	size_t bytes = (size_t)t->system_bytes + t->name_bytes + 2;

	if (!f)
		return pt_fail_no_memory(e, "events");
	f->machine_pid = t->machine_pid;
	f->id = t->id;
	f->name = calloc(1, bytes);
	f->tracepoint = pt_tracepoint_create(t->format, t->format_bytes);
	if (!f->name || !f->tracepoint) {
		pt_tracepoint_destroy(f->tracepoint);
		free(f->name);
		free(f);
		return pt_fail_no_memory(e, "events");
	}
	memcpy(f->name, t->system, t->system_bytes);
	f->name[t->system_bytes] = ':';
	memcpy(f->name + t->system_bytes + 1, t->name, t->name_bytes);
	f->next = ev->formats;
	ev->formats = f;
	return 0;
}

/* Whose sample it is: by its identifier, else the chunk's. */
static struct pt_event *event_of(struct pt_session_events *ev, uint32_t attr, const uint8_t *record,
				 uint32_t size)
{
	struct pt_event *own = attr < ev->count ? ev->attrs[attr] : NULL;
	struct known_id *const *known;
	struct known_id key;
	struct pt_sample sample;
	uint64_t id;

	if (!own)
		return NULL;
	if (own->sample_type & PERF_SAMPLE_IDENTIFIER) {
		if (!pt_sample_identifier(record, size, &id))
			return NULL;
	} else if (own->sample_type & PERF_SAMPLE_ID) {
		if (!pt_sample_parse(record, size, own->sample_type, own->read_format, &sample))
			return NULL;
		id = sample.id;
	} else {
		return own;
	}
	key = (struct known_id){.machine_pid = own->machine_pid, .id = id};
	known = tfind(&key, &ev->ids, by_id);
	return known ? ev->attrs[(*known)->attr] : own;
}

int pt_session_events_sample(struct pt_session_events *ev, uint32_t attr, const uint8_t *record,
			     uint32_t size, struct pt_sideband_record **ret_side, struct pt_error *e)
{
	struct pt_event *event = event_of(ev, attr, record, size);
	struct pt_sample sample;
	struct pt_sideband_record *side;

	*ret_side = NULL;
	if (!event || !pt_sample_parse(record, size, event->sample_type, event->read_format, &sample))
		return 0;
	side = pt_sideband_record_create(record, size);
	if (!side)
		return pt_fail_no_memory(e, "events");
	side->time_ns = sample.time_ns;
	side->pid = sample.pid;
	side->tid = sample.tid;
	side->cpu = sample.cpu;
	side->event = event;
	*ret_side = side;
	return 0;
}

/* ---- KVM's ------------------------------------------------------------------------------------------ */

static uint64_t field(const struct format *f, const struct pt_sample *s, const char *name)
{
	uint64_t v;

	return pt_tracepoint_number(f->tracepoint, s->raw, s->raw_bytes, name, &v) ? v : PTR_UNKNOWN;
}

static void report_to_vm(struct pt_vm *vm, const struct format *f, const struct pt_sample *s, uint64_t tsc)
{
	uint64_t v, previous;

	if (!strcmp(f->name, "kvm:kvm_exit")) {
		struct pt_vm_exit_sample x = {.tid = s->tid,
					      .tsc = tsc,
					      .reason = field(f, s, "exit_reason"),
					      .qualification = field(f, s, "info1"),
					      .intr_info = field(f, s, "intr_info"),
					      .guest_rip = field(f, s, "guest_rip")};

		x.guest_rip = x.guest_rip == PTR_UNKNOWN ? 0 : x.guest_rip;
		pt_vm_sample_exit(vm, &x);
	} else if (!strcmp(f->name, "kvm:kvm_inj_virq")) {
		v = field(f, s, "irq");
		if (v == PTR_UNKNOWN)
			v = field(f, s, "vector"); /* since Linux 6.0 */
		pt_vm_sample_inject(vm, s->tid, tsc,
				    v == PTR_UNKNOWN ? v
				    : field(f, s, "soft") == 1
					? PT_VM_INFO_VALID | PT_VM_INFO_SOFTWARE | (v & 0xff)
					: PT_VM_INFO_VALID | (v & 0xff));
	} else if (!strcmp(f->name, "kvm:kvm_inj_exception")) {
		v = field(f, s, "exception");
		pt_vm_sample_inject(vm, s->tid, tsc,
				    v == PTR_UNKNOWN ? v
						     : PT_VM_INFO_VALID | PT_VM_INFO_EXCEPTION | (v & 0xff));
	} else if (!strcmp(f->name, "kvm:kvm_entry")) {
		v = field(f, s, "intr_info"); /* since Linux 6.14 */
		if (v != PTR_UNKNOWN && (v & PT_VM_INFO_VALID))
			pt_vm_sample_inject(vm, s->tid, tsc, v);
	} else if (!strcmp(f->name, "kvm:kvm_write_tsc_offset")) {
		v = field(f, s, "next_tsc_offset");
		previous = field(f, s, "previous_tsc_offset");
		if (v != PTR_UNKNOWN && previous != PTR_UNKNOWN)
			pt_vm_sample_tsc_offset(vm, s->pid, (int32_t)field(f, s, "vcpu_id"), tsc,
						(int64_t)previous, (int64_t)v);
	}
}

/* ---- Records ---------------------------------------------------------------------------------------- */

static const struct format *format_of(struct pt_session_events *ev, struct pt_event *a)
{
	if (!a->is_tracepoint || a->format)
		return a->format;
	for (const struct format *f = ev->formats; f && !a->format; f = f->next)
		if (f->id == a->config && f->machine_pid == a->machine_pid)
			a->format = f;
	return a->format;
}

static void put(struct pt_emit *emit, const struct pt_sideband_record *side, uint32_t slice, uint64_t ip,
		const char *name, const char *fields)
{
	struct pt_task *task =
	    side->tid >= 0 ? pt_tasks_get(side->machine->tasks, side->pid, side->tid) : NULL;
	bool guest = side->machine->pid != 0;
	struct ptr_event r = {.slice = slice,
			      .machine = pt_emit_machine(emit, side->machine),
			      .thread = pt_emit_thread(emit, task),
			      .cpu = guest ? -1 : side->cpu,
			      .vcpu = guest ? side->cpu : -1,
			      .tsc = side->tsc ? side->tsc : PTR_NO_TSC,
			      .ip = ip,
			      .name = name,
			      .fields = fields};

	if (!emit->failed && ptr_put_event(emit->writer, &r, &emit->error) < 0)
		emit->failed = true;
}

static void put_sample(struct pt_session_events *ev, const struct pt_sideband_record *side,
		       struct pt_emit *emit, struct pt_vm *vm, uint32_t slice)
{
	struct pt_event *a = side->event;
	const struct format *f = format_of(ev, a);
	struct pt_text_buffer *b = &ev->text;
	struct pt_sample s;

	if (!pt_sample_parse(side->record, side->size, a->sample_type, a->read_format, &s))
		return;
	b->length = 0;
	pt_text_add(b, "{");
	if (f && s.raw)
		pt_tracepoint_json(f->tracepoint, s.raw, s.raw_bytes, b);
	if (!a->is_tracepoint && s.has_period)
		pt_text_add(b, "\"period\":%" PRIu64, s.period);
	if (!a->is_tracepoint && s.has_addr)
		pt_text_add(b, "%s\"addr\":%" PRId64, s.has_period ? "," : "", (int64_t)s.addr);
	pt_text_add(b, "}");
	if (b->failed) {
		emit->failed = true;
		pt_fail_no_memory(&emit->error, "events");
		return;
	}
	if (f && s.raw && !side->machine->pid && vm)
		report_to_vm(vm, f, &s, side->tsc);
	put(emit, side, slice, s.has_ip ? s.ip : 0, f ? f->name : a->name, b->text);
}

static void put_switch(struct pt_session_events *ev, const struct pt_sideband_record *side,
		       struct pt_emit *emit, uint32_t slice)
{
	struct pt_text_buffer *b = &ev->text;
	struct perf_event_header h;
	int32_t other[2];

	memcpy(&h, side->record, sizeof h);
	if (h.type != PERF_RECORD_SWITCH && h.type != PERF_RECORD_SWITCH_CPU_WIDE)
		return;
	b->length = 0;
	pt_text_add(b, "{\"out\":%s", h.misc & PERF_RECORD_MISC_SWITCH_OUT ? "true" : "false");
	if (h.misc & PERF_RECORD_MISC_SWITCH_OUT)
		pt_text_add(b, ",\"preempt\":%s",
			    h.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? "true" : "false");
	if (h.type == PERF_RECORD_SWITCH_CPU_WIDE && h.size >= sizeof h + sizeof other) {
		memcpy(other, side->record + sizeof h, sizeof other);
		pt_text_add(b, ",\"pid\":%" PRId32 ",\"tid\":%" PRId32, other[0], other[1]);
	}
	pt_text_add(b, "}");
	if (b->failed) {
		emit->failed = true;
		pt_fail_no_memory(&emit->error, "events");
		return;
	}
	put(emit, side, slice, 0, "context_switch", b->text);
}

void pt_session_events_put(struct pt_session_events *ev, const struct pt_sideband_record *side,
			   struct pt_emit *emit, struct pt_vm *vm, uint32_t slice)
{
	if (emit->failed)
		return;
	if (side->event)
		put_sample(ev, side, emit, vm, slice);
	else if (!side->memory)
		put_switch(ev, side, emit, slice);
}
