/* record.c - see record.h. */
#include "decode/sideband/record.h"
#include "schema/bytes.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PADDING	 80    /* zeros after a record: more than the fields that are read of one */
#define ATTR_MAX 65536 /* a container's attrs */

struct pt_sideband_shape {
	uint64_t sample_type;
	bool sample_id_all;
};

struct pt_sideband_record *pt_sideband_record_create(const uint8_t *record, uint32_t size)
{
	struct pt_sideband_record *s = calloc(1, sizeof *s + size + PADDING);

	if (!s)
		return NULL;
	s->pid = s->tid = s->cpu = -1;
	s->size = size;
	if (size)
		memcpy(s->record, record, size);
	return s;
}

void pt_sideband_attrs_deinit(struct pt_sideband_attrs *a)
{
	free(a->shapes);
	*a = (struct pt_sideband_attrs){0};
}

int pt_sideband_attr(struct pt_sideband_attrs *a, const struct ptc_attr *attr, struct pt_error *e)
{
	struct perf_event_attr perf = {0};

	if (attr->attr_bytes < PERF_ATTR_SIZE_VER0)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "a perf_event_attr of %u bytes",
			       attr->attr_bytes);
	if (attr->index >= ATTR_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "attr index %u", attr->index);
	memcpy(&perf, attr->attr, attr->attr_bytes < sizeof perf ? attr->attr_bytes : sizeof perf);
	if (attr->index >= a->count) {
		struct pt_sideband_shape *shapes = realloc(a->shapes, (attr->index + 1) * sizeof *shapes);

		if (!shapes)
			return pt_fail_no_memory(e, "the sideband");
		memset(shapes + a->count, 0, (attr->index + 1 - a->count) * sizeof *shapes);
		a->shapes = shapes;
		a->count = attr->index + 1;
	}
	a->shapes[attr->index] =
	    (struct pt_sideband_shape){.sample_type = perf.sample_type, .sample_id_all = perf.sample_id_all};
	return 0;
}

/* The trailer (struct sample_id), read from the record's end: PERF_SAMPLE_* order TID TIME ID STREAM_ID CPU
 * IDENTIFIER. */
static void read_trailer(struct pt_sideband_record *s, const struct pt_sideband_shape *shape)
{
	uint64_t type = shape->sample_type;
	const uint8_t *p = s->record + s->size;
	const uint8_t *begin = s->record + sizeof(struct perf_event_header);

#define BACK(flag) ((type & (flag)) && (size_t)(p - begin) >= 8 && (p -= 8))
	if (!shape->sample_id_all)
		return;
	(void)BACK(PERF_SAMPLE_IDENTIFIER);
	if (BACK(PERF_SAMPLE_CPU))
		s->cpu = (int32_t)u32(p);
	(void)BACK(PERF_SAMPLE_STREAM_ID);
	(void)BACK(PERF_SAMPLE_ID);
	if (BACK(PERF_SAMPLE_TIME))
		s->time_ns = u64(p);
	if (BACK(PERF_SAMPLE_TID)) {
		s->pid = (int32_t)u32(p);
		s->tid = (int32_t)u32(p + 4);
	}
#undef BACK
}

struct pt_sideband_record *pt_sideband_parse(const struct pt_sideband_attrs *a, uint32_t attr,
					     const uint8_t *p, uint64_t have, struct pt_error *e)
{
	struct perf_event_header h;
	struct pt_sideband_record *s;

	if (have < sizeof h) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "a sideband record is cut");
		return NULL;
	}
	memcpy(&h, p, sizeof h);
	if (h.size < sizeof h || h.size > have) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			"a sideband record of type %u has size %u, %llu are there", h.type, h.size,
			(unsigned long long)have);
		return NULL;
	}
	s = pt_sideband_record_create(p, h.size);
	if (!s)
		pt_fail_no_memory(e, "the sideband");
	else if (attr < a->count)
		read_trailer(s, &a->shapes[attr]);
	return s;
}

static const struct perf_event_header *header(const struct pt_sideband_record *s)
{
	return (const void *)s->record;
}

bool pt_sideband_is_mmap(const struct pt_sideband_record *s)
{
	return !s->memory && (header(s)->type == PERF_RECORD_MMAP || header(s)->type == PERF_RECORD_MMAP2);
}

bool pt_sideband_executable(const struct pt_sideband_record *s)
{
	const uint8_t *p = s->record + 8;

	if (header(s)->type == PERF_RECORD_MMAP2)
		return u32(p + 32 + 24) & PROT_EXEC;
	return !(header(s)->misc & PERF_RECORD_MISC_MMAP_DATA);
}

bool pt_sideband_is_sample(const struct pt_sideband_record *s)
{
	return !s->memory && header(s)->type == PERF_RECORD_SAMPLE;
}

unsigned pt_sideband_effect(const struct pt_sideband_record *s)
{
	if (s->memory)
		return PT_SIDEBAND_CODE;
	if (s->mark)
		return PT_SIDEBAND_MARK;
	if (s->event)
		return PT_SIDEBAND_EVENT;
	switch (header(s)->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2: return pt_sideband_executable(s) ? PT_SIDEBAND_CODE : 0;
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_TEXT_POKE: return PT_SIDEBAND_CODE;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
	case PERF_RECORD_ITRACE_START: return PT_SIDEBAND_SWITCH | PT_SIDEBAND_EVENT;
	case PERF_RECORD_AUX: return PT_SIDEBAND_SWITCH; /* pt_sideband_ends_aux() */
	case PERF_RECORD_CGROUP: return PT_SIDEBAND_EVENT;
	case PERF_RECORD_LOST: return PT_SIDEBAND_LOST;
	case PERF_RECORD_EXIT: return PT_SIDEBAND_EXIT;
	default: return 0;
	}
}

int32_t pt_sideband_pid(const struct pt_sideband_record *s)
{
	if (s->memory)
		return s->pid;
	switch (header(s)->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT: return (int32_t)u32(s->record + 8);
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_TEXT_POKE: return PTC_ANY_PID;
	default: return s->pid;
	}
}

bool pt_sideband_maps(const struct pt_sideband_record *s, int32_t pid, uint64_t ip)
{
	if (pt_sideband_pid(s) != pid)
		return false;
	if (s->memory)
		return ip >= s->start && ip < s->end;
	return pt_sideband_is_mmap(s) && pt_sideband_executable(s) &&
	       ip - u64(s->record + 16) < u64(s->record + 24);
}

bool pt_sideband_execs(const struct pt_sideband_record *s, int32_t pid)
{
	return !s->memory && header(s)->type == PERF_RECORD_COMM &&
	       header(s)->misc & PERF_RECORD_MISC_COMM_EXEC && pt_sideband_pid(s) == pid;
}

bool pt_sideband_switched(const struct pt_sideband_record *s, int32_t *ret_pid, int32_t *ret_tid)
{
	const struct perf_event_header *h = header(s);
	bool out = h->misc & PERF_RECORD_MISC_SWITCH_OUT;

	if (s->memory)
		return false;
	if (h->type == PERF_RECORD_ITRACE_START) {
		*ret_pid = (int32_t)u32(s->record + 8);
		*ret_tid = (int32_t)u32(s->record + 12);
		return true;
	}
	if (h->type == PERF_RECORD_SWITCH_CPU_WIDE && out) {
		*ret_pid = (int32_t)u32(s->record + 8);
		*ret_tid = (int32_t)u32(s->record + 12);
		return true;
	}
	if ((h->type == PERF_RECORD_SWITCH || h->type == PERF_RECORD_SWITCH_CPU_WIDE) && !out) {
		*ret_pid = s->pid;
		*ret_tid = s->tid;
		return s->tid >= 0;
	}
	return false;
}

bool pt_sideband_ran_before(const struct pt_sideband_record *s, int32_t *ret_pid, int32_t *ret_tid)
{
	const struct perf_event_header *h = header(s);
	bool out = h->misc & PERF_RECORD_MISC_SWITCH_OUT;

	if (s->memory || (h->type != PERF_RECORD_SWITCH && h->type != PERF_RECORD_SWITCH_CPU_WIDE))
		return false;
	if (!out && h->type != PERF_RECORD_SWITCH_CPU_WIDE)
		return false;
	*ret_pid = out ? s->pid : (int32_t)u32(s->record + 8);
	*ret_tid = out ? s->tid : (int32_t)u32(s->record + 12);
	return *ret_tid >= 0;
}

bool pt_sideband_begins_switch(const struct pt_sideband_record *s)
{
	const struct perf_event_header *h = header(s);

	return !s->memory && h->type == PERF_RECORD_SWITCH_CPU_WIDE && h->misc & PERF_RECORD_MISC_SWITCH_OUT;
}

bool pt_sideband_ends_aux(const struct pt_sideband_record *s)
{
	return !s->memory && header(s)->type == PERF_RECORD_AUX;
}

bool pt_sideband_moved(const struct pt_sideband_record *s, bool *ret_left)
{
	*ret_left = !s->memory && header(s)->misc & PERF_RECORD_MISC_SWITCH_OUT;
	return !s->memory && header(s)->type == PERF_RECORD_SWITCH && s->tid >= 0;
}
