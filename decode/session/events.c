/* events.c - see events.h. */
#include "decode/session/events.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "decode/sideband/cgroups.h"
#include "decode/sideband/sample.h"
#include "decode/sideband/tracepoint.h"
#include "schema/array.h"
#include "schema/hash.h"

struct format;

/* A sample of one of KVM's tracepoints, in the host. */
struct kvm_sample {
	const struct format *format;
	const struct pt_sample *sample;
	uint64_t tsc; /* the host's */
};
typedef void kvm_report_fn(struct pt_vm *vm, const struct kvm_sample *k);

/* A tracepoint's fields, of a machine. */
struct format {
	struct format *next;
	int32_t machine_pid;
	uint32_t id;
	char *name; /* "system:name" */
	struct pt_tracepoint *tracepoint;
	kvm_report_fn *report; /* NULL: its samples say nothing about VMs */
};

/* A perf event: what an attr says. */
struct pt_event {
	char *name;
	int32_t machine_pid;
	bool is_tracepoint;
	uint64_t config; /* a tracepoint's id */
	struct pt_sample_shape shape;
	const struct format *format; /* of a tracepoint; NULL until its first sample */
};

/* An event's id, by which samples name it. */
struct event_id {
	int32_t machine_pid;
	uint32_t attr; /* if several attrs have the id, the lowest */
	uint64_t id;
};

struct pt_session_events {
	struct pt_event *
	    *attrs; /* by index, NULL where there is none; pt_sideband_record.event points at them */
	size_t attr_count, attr_room;
	struct event_id *ids; /* number n of the hash is ids[n - 1] */
	size_t id_count, id_room;
	struct pt_hash id_hash;
	struct format *formats;
	struct pt_cgroups *cgroups;
	struct pt_text_buffer text; /* the fields of the event at hand */
};

struct pt_session_events *pt_session_events_create(void)
{
	struct pt_session_events *ev = calloc(1, sizeof *ev);

	if (ev)
		ev->cgroups = pt_cgroups_create();
	if (ev && (!ev->cgroups || pt_hash_init(&ev->id_hash, 6, NULL) < 0)) {
		pt_session_events_destroy(ev);
		return NULL;
	}
	return ev;
}

static void event_destroy(struct pt_event *event)
{
	if (!event)
		return;
	free(event->name);
	free(event);
}

static void format_destroy(struct format *f)
{
	pt_tracepoint_destroy(f->tracepoint);
	free(f->name);
	free(f);
}

void pt_session_events_destroy(struct pt_session_events *ev)
{
	if (!ev)
		return;
	for (size_t i = 0; i < ev->attr_count; i++)
		event_destroy(ev->attrs[i]);
	free(ev->attrs);
	free(ev->ids);
	pt_hash_deinit(&ev->id_hash);
	while (ev->formats) {
		struct format *f = ev->formats;

		ev->formats = f->next;
		format_destroy(f);
	}
	pt_cgroups_destroy(ev->cgroups);
	free(ev->text.text);
	free(ev);
}

/* ---- KVM's tracepoints ------------------------------------------------------------------------------ */

/* The number in a field; PTR_UNKNOWN when the tracepoint has no such field. */
static uint64_t number(const struct kvm_sample *k, const char *field)
{
	uint64_t v;

	return pt_tracepoint_number(k->format->tracepoint, k->sample->raw, k->sample->raw_bytes, field, &v)
		   ? v
		   : PTR_UNKNOWN;
}

static void report_exit(struct pt_vm *vm, const struct kvm_sample *k)
{
	struct pt_vm_exit_sample x = {.tid = k->sample->tid,
				      .tsc = k->tsc,
				      .reason = number(k, "exit_reason"),
				      .qualification = number(k, "info1"),
				      .intr_info = number(k, "intr_info"),
				      .guest_rip = number(k, "guest_rip"),
				      .operand = PTR_UNKNOWN};

	if (x.guest_rip == PTR_UNKNOWN)
		x.guest_rip = 0;
	pt_vm_sample_exit(vm, &x);
}

/* vector: may be PTR_UNKNOWN. type: PT_VM_INFO_*. */
static void report_injection(struct pt_vm *vm, const struct kvm_sample *k, uint64_t vector, uint64_t type)
{
	pt_vm_sample_inject(vm, k->sample->tid, k->tsc,
			    vector == PTR_UNKNOWN ? vector : PT_VM_INFO_VALID | type | (vector & 0xff));
}

static void report_interrupt(struct pt_vm *vm, const struct kvm_sample *k)
{
	uint64_t vector = number(k, "irq");

	if (vector == PTR_UNKNOWN)
		vector = number(k, "vector"); /* since Linux 6.0 */
	report_injection(vm, k, vector, number(k, "soft") == 1 ? PT_VM_INFO_SOFTWARE : 0);
}

static void report_exception(struct pt_vm *vm, const struct kvm_sample *k)
{
	report_injection(vm, k, number(k, "exception"), PT_VM_INFO_EXCEPTION);
}

static void report_entry(struct pt_vm *vm, const struct kvm_sample *k)
{
	uint64_t info = number(k, "intr_info"); /* since Linux 6.14 */

	if (info != PTR_UNKNOWN && (info & PT_VM_INFO_VALID))
		pt_vm_sample_inject(vm, k->sample->tid, k->tsc, info);
}

static void report_tsc_offset(struct pt_vm *vm, const struct kvm_sample *k)
{
	uint64_t previous = number(k, "previous_tsc_offset"), next = number(k, "next_tsc_offset");
	struct pt_vm_offset_sample x = {.pid = k->sample->pid,
					.vcpu = (int32_t)number(k, "vcpu_id"),
					.tsc = k->tsc,
					.previous = (int64_t)previous,
					.next = (int64_t)next};

	if (previous != PTR_UNKNOWN && next != PTR_UNKNOWN)
		pt_vm_sample_tsc_offset(vm, &x);
}

/* What the VM exit was about, of the reasons given. */
static void report_operand(struct pt_vm *vm, const struct kvm_sample *k, const char *field, uint64_t reason,
			   uint64_t other_reason)
{
	struct pt_vm_operand_sample x = {.tid = k->sample->tid,
					 .tsc = k->tsc,
					 .reasons = {reason, other_reason},
					 .operand = number(k, field)};

	if (x.operand != PTR_UNKNOWN)
		pt_vm_sample_operand(vm, &x);
}

static void report_msr(struct pt_vm *vm, const struct kvm_sample *k)
{
	if (number(k, "write") == 1)
		report_operand(vm, k, "ecx", PT_VM_EXIT_WRMSR, PT_VM_EXIT_WRMSR_IMM);
	else
		report_operand(vm, k, "ecx", PT_VM_EXIT_RDMSR, PT_VM_EXIT_RDMSR_IMM);
}

static void report_page_fault(struct pt_vm *vm, const struct kvm_sample *k)
{
	report_operand(vm, k, "fault_address", PT_VM_EXIT_EPT_VIOLATION, PT_VM_EXIT_EPT_VIOLATION);
}

static void report_fast_mmio(struct pt_vm *vm, const struct kvm_sample *k)
{
	report_operand(vm, k, "gpa", PT_VM_EXIT_EPT_MISCONFIG, PT_VM_EXIT_EPT_MISCONFIG);
}

static void report_cpuid(struct pt_vm *vm, const struct kvm_sample *k)
{
	report_operand(vm, k, "function", PT_VM_EXIT_CPUID, PT_VM_EXIT_CPUID);
}

static void report_hypercall(struct pt_vm *vm, const struct kvm_sample *k)
{
	report_operand(vm, k, "nr", PT_VM_EXIT_VMCALL, PT_VM_EXIT_VMCALL);
}

static kvm_report_fn *kvm_report_of(const char *name)
{
	static const struct {
		const char *name;
		kvm_report_fn *report;
	} tracepoints[] = {
	    {"kvm:kvm_exit", report_exit},
	    {"kvm:kvm_entry", report_entry},
	    {"kvm:kvm_inj_virq", report_interrupt},
	    {"kvm:kvm_inj_exception", report_exception},
	    {"kvm:kvm_write_tsc_offset", report_tsc_offset},
	    {"kvm:kvm_msr", report_msr},
	    {"kvm:kvm_page_fault", report_page_fault},
	    {"kvm:kvm_fast_mmio", report_fast_mmio},
	    {"kvm:kvm_cpuid", report_cpuid},
	    {"kvm:kvm_hypercall", report_hypercall},
	};

	for (size_t i = 0; i < sizeof tracepoints / sizeof *tracepoints; i++)
		if (!strcmp(name, tracepoints[i].name))
			return tracepoints[i].report;
	return NULL;
}

/* ---- What the container says of events ---------------------------------------------------------------- */

static uint64_t id_key(int32_t machine_pid, uint64_t id)
{
	return pt_hash_mix(id) + (uint32_t)machine_pid;
}

static uint64_t id_key_of(const void *entries, uint32_t n)
{
	const struct event_id *id = (const struct event_id *)entries + n - 1;

	return id_key(id->machine_pid, id->id);
}

static struct event_id *find_id(const struct pt_session_events *ev, int32_t machine_pid, uint64_t id)
{
	const struct pt_hash *h = &ev->id_hash;
	uint32_t n;

	for (uint32_t i = pt_hash_first(h, id_key(machine_pid, id)); (n = h->slots[i]);
	     i = pt_hash_next(h, i))
		if (ev->ids[n - 1].machine_pid == machine_pid && ev->ids[n - 1].id == id)
			return &ev->ids[n - 1];
	return NULL;
}

static int add_ids(struct pt_session_events *ev, const struct ptc_attr *a, struct pt_error *e)
{
	for (uint32_t i = 0; i < a->count; i++) {
		struct event_id id = {.machine_pid = a->machine_pid, .attr = a->index}, *known;

		memcpy(&id.id, a->ids + (size_t)i * sizeof id.id, sizeof id.id);
		known = find_id(ev, id.machine_pid, id.id);
		if (known) {
			if (known->attr > id.attr)
				known->attr = id.attr;
			continue;
		}
		if (pt_array_grow(&ev->ids, ev->id_count, &ev->id_room, e) < 0)
			return -1;
		ev->ids[ev->id_count++] = id;
		if (pt_hash_insert(&ev->id_hash, id_key(id.machine_pid, id.id), (uint32_t)ev->id_count,
				   id_key_of, ev->ids, e) < 0)
			return -1;
	}
	return 0;
}

/* NULL: no memory. */
static struct pt_event *event_create(const struct ptc_attr *a)
{
	struct perf_event_attr attr = {0};
	struct pt_event *event = calloc(1, sizeof *event);

	if (!event)
		return NULL;
	memcpy(&attr, a->attr, a->attr_bytes < sizeof attr ? a->attr_bytes : sizeof attr);
	event->is_tracepoint = attr.type == PERF_TYPE_TRACEPOINT;
	event->machine_pid = a->machine_pid;
	event->config = attr.config;
	event->shape = pt_sample_shape_of(&attr);
	event->name = strndup(a->name, a->name_bytes);
	if (event->name)
		return event;
	event_destroy(event);
	return NULL;
}

int pt_session_events_attr(struct pt_session_events *ev, const struct ptc_attr *a, struct pt_error *e)
{
	while (a->index >= ev->attr_count) {
		if (pt_array_grow(&ev->attrs, ev->attr_count, &ev->attr_room, e) < 0)
			return -1;
		ev->attrs[ev->attr_count++] = NULL;
	}
	if (ev->attrs[a->index])
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "attr %u is declared twice", a->index);
	ev->attrs[a->index] = event_create(a);
	if (!ev->attrs[a->index])
		return pt_fail_no_memory(e, "events");
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
		format_destroy(f);
		return pt_fail_no_memory(e, "events");
	}
	memcpy(f->name, t->system, t->system_bytes);
	f->name[t->system_bytes] = ':';
	memcpy(f->name + t->system_bytes + 1, t->name, t->name_bytes);
	f->report = kvm_report_of(f->name);
	f->next = ev->formats;
	ev->formats = f;
	return 0;
}

/* ---- Samples ---------------------------------------------------------------------------------------- */

/* The event of a sample in a chunk of that attr: by the id in the sample, else the attr's. NULL: not
 * known. */
static struct pt_event *event_of(const struct pt_session_events *ev, uint32_t attr, const uint8_t *record,
				 uint32_t size)
{
	struct pt_event *own = attr < ev->attr_count ? ev->attrs[attr] : NULL;
	const struct event_id *known;
	struct pt_sample sample;
	uint64_t id;

	if (!own)
		return NULL;
	if (own->shape.sample_type & PERF_SAMPLE_IDENTIFIER) {
		if (!pt_sample_identifier(record, size, &id))
			return NULL;
	} else if (own->shape.sample_type & PERF_SAMPLE_ID) {
		if (!pt_sample_parse(record, size, &own->shape, &sample))
			return NULL;
		id = sample.id;
	} else {
		return own;
	}
	known = find_id(ev, own->machine_pid, id);
	return known ? ev->attrs[known->attr] : own;
}

int pt_session_events_sample(struct pt_session_events *ev, uint32_t attr, const uint8_t *sample,
			     uint32_t sample_bytes, struct pt_sideband_record **ret, struct pt_error *e)
{
	struct pt_event *event = event_of(ev, attr, sample, sample_bytes);
	struct pt_sample s;
	struct pt_sideband_record *record;

	*ret = NULL;
	if (!event || !pt_sample_parse(sample, sample_bytes, &event->shape, &s))
		return 0;
	record = pt_sideband_record_create(sample, sample_bytes);
	if (!record)
		return pt_fail_no_memory(e, "events");
	record->time_ns = s.time_ns;
	record->pid = s.pid;
	record->tid = s.tid;
	record->cpu = s.cpu;
	record->event = event;
	*ret = record;
	return 0;
}

/* A tracepoint's format, NULL of other events. Formats may come after attrs. */
static const struct format *format_of(const struct pt_session_events *ev, struct pt_event *event)
{
	if (!event->is_tracepoint || event->format)
		return event->format;
	for (const struct format *f = ev->formats; f && !event->format; f = f->next)
		if (f->id == event->config && f->machine_pid == event->machine_pid)
			event->format = f;
	return event->format;
}

/* ---- EVENT records ---------------------------------------------------------------------------------- */

/* The fields in text are complete. False: no memory, which is emit's failure. */
static bool end_fields(struct pt_text_buffer *text, struct pt_emit *emit)
{
	pt_text_add(text, "}");
	if (text->failed) {
		emit->failed = true;
		pt_fail_no_memory(&emit->error, "events");
	}
	return !text->failed;
}

/* Of machine, thread, CPU and time of the record; the rest is the caller's. No memory is emit's failure. */
static struct ptr_event event_record(struct pt_emit *emit, const struct pt_sideband_record *record)
{
	struct pt_task *task =
	    record->tid >= 0 ? pt_tasks_get(record->machine->tasks, record->pid, record->tid) : NULL;
	bool guest = record->machine->pid != 0;

	if (record->tid >= 0 && !task && !emit->failed) {
		emit->failed = true;
		pt_fail_no_memory(&emit->error, "events");
	}
	return (struct ptr_event){.machine = pt_emit_machine(emit, record->machine),
				  .thread = pt_emit_thread(emit, task),
				  .cpu = guest ? -1 : record->cpu,
				  .vcpu = guest ? record->cpu : -1,
				  .tsc = record->tsc ? record->tsc : PTR_NO_TSC};
}

static void put(struct pt_emit *emit, const struct ptr_event *r)
{
	if (!emit->failed && ptr_put_event(emit->writer, r, &emit->error) < 0)
		emit->failed = true;
}

static void add_comma(struct pt_text_buffer *b)
{
	if (b->length && b->text[b->length - 1] != '{')
		pt_text_add(b, ",");
}

/* "cgroup", or its number where no record says its path. */
static void add_cgroup(struct pt_session_events *ev, int32_t machine_pid, uint64_t id)
{
	const char *path = pt_cgroups_path(ev->cgroups, machine_pid, id);

	add_comma(&ev->text);
	if (!path) {
		pt_text_add(&ev->text, "\"cgroup_id\":%" PRIu64, id);
		return;
	}
	pt_text_add(&ev->text, "\"cgroup\":");
	pt_text_add_json(&ev->text, (const uint8_t *)path, strlen(path));
}

static void put_sample(struct pt_session_events *ev, const struct pt_sideband_record *record,
		       struct pt_emit *emit, struct pt_vm *vm, uint32_t slice)
{
	struct pt_event *event = record->event;
	const struct format *f = format_of(ev, event);
	struct pt_text_buffer *b = &ev->text;
	struct pt_sample s;
	struct ptr_event r;

	if (!pt_sample_parse(record->record, record->size, &event->shape, &s))
		return;
	b->length = 0;
	pt_text_add(b, "{");
	if (f && s.raw)
		pt_tracepoint_json(f->tracepoint, s.raw, s.raw_bytes, b);
	if (!event->is_tracepoint && s.has_period)
		pt_text_add(b, "\"period\":%" PRIu64, s.period);
	if (!event->is_tracepoint && s.has_addr)
		pt_text_add(b, "%s\"addr\":%" PRId64, s.has_period ? "," : "", (int64_t)s.addr);
	if (s.has_cgroup)
		add_cgroup(ev, record->machine->pid, s.cgroup);
	if (!end_fields(b, emit))
		return;
	if (f && f->report && s.raw && !record->machine->pid && vm)
		f->report(vm, &(struct kvm_sample){.format = f, .sample = &s, .tsc = record->tsc});
	r = event_record(emit, record);
	r.slice = slice;
	r.ip = s.has_ip ? s.ip : 0;
	r.name = f ? f->name : event->name;
	r.fields = b->text;
	put(emit, &r);
}

static void put_switch(struct pt_session_events *ev, const struct pt_sideband_record *record,
		       struct pt_emit *emit, uint32_t slice)
{
	struct pt_text_buffer *b = &ev->text;
	struct perf_event_header h;
	struct ptr_event r;
	int32_t other[2]; /* pid, tid */

	memcpy(&h, record->record, sizeof h);
	if (h.type != PERF_RECORD_SWITCH && h.type != PERF_RECORD_SWITCH_CPU_WIDE)
		return;
	b->length = 0;
	pt_text_add(b, "{\"out\":%s", h.misc & PERF_RECORD_MISC_SWITCH_OUT ? "true" : "false");
	if (h.misc & PERF_RECORD_MISC_SWITCH_OUT)
		pt_text_add(b, ",\"preempt\":%s",
			    h.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? "true" : "false");
	if (h.type == PERF_RECORD_SWITCH_CPU_WIDE && h.size >= sizeof h + sizeof other) {
		memcpy(other, record->record + sizeof h, sizeof other);
		pt_text_add(b, ",\"pid\":%" PRId32 ",\"tid\":%" PRId32, other[0], other[1]);
	}
	if (!end_fields(b, emit))
		return;
	r = event_record(emit, record);
	r.slice = slice;
	r.name = "context_switch";
	r.fields = b->text;
	put(emit, &r);
}

static bool is_cgroup(const struct pt_sideband_record *record)
{
	struct perf_event_header h;

	memcpy(&h, record->record, sizeof h);
	return h.type == PERF_RECORD_CGROUP;
}

/* {u64 id; path} after the header: a control group that was made, or that is there. *ret_path: with its NUL.
 * Returns its bytes; 0: there is none. */
static size_t parse_cgroup(const struct pt_sideband_record *record, uint64_t *ret_id,
			   const uint8_t **ret_path)
{
	struct perf_event_header h;

	memcpy(&h, record->record, sizeof h);
	if (h.size <= sizeof h + sizeof *ret_id)
		return 0;
	memcpy(ret_id, record->record + sizeof h, sizeof *ret_id);
	*ret_path = record->record + sizeof h + sizeof *ret_id;
	return h.size - sizeof h - sizeof *ret_id;
}

int pt_session_events_learn(struct pt_session_events *ev, const struct pt_sideband_record *record,
			    struct pt_error *e)
{
	const uint8_t *path;
	uint64_t id;
	size_t bytes = is_cgroup(record) ? parse_cgroup(record, &id, &path) : 0;

	return bytes ? pt_cgroups_add(ev->cgroups, record->machine->pid, id, path, bytes, e) : 0;
}

static void put_cgroup(struct pt_session_events *ev, const struct pt_sideband_record *record,
		       struct pt_emit *emit)
{
	struct pt_text_buffer *b = &ev->text;
	const uint8_t *path;
	struct ptr_event r;
	uint64_t id;
	size_t bytes = parse_cgroup(record, &id, &path);

	if (!bytes)
		return;
	b->length = 0;
	pt_text_add(b, "{\"id\":%" PRIu64 ",\"path\":", id);
	pt_text_add_json(b, path, bytes);
	if (!end_fields(b, emit))
		return;
	r = event_record(emit, record);
	r.name = "cgroup";
	r.fields = b->text;
	put(emit, &r);
}

void pt_session_events_put(struct pt_session_events *ev, const struct pt_sideband_record *record,
			   struct pt_emit *emit, struct pt_vm *vm, uint32_t slice)
{
	if (emit->failed)
		return;
	if (record->event)
		put_sample(ev, record, emit, vm, slice);
	else if (!record->memory && is_cgroup(record))
		put_cgroup(ev, record, emit);
	else if (!record->memory)
		put_switch(ev, record, emit, slice);
}
