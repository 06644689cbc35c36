/* capture_records.c - what a record needs is written to the container before it: tasks, images. */
#include "capture/record/capture_internal.h"
#include "schema/bytes.h"

#include <string.h>
#include <sys/mman.h>

/* Puts what was read of a process at the start, when it is seen the first time. */
static int seen(struct capture *c, int32_t pid, struct pt_error *e)
{
	return pid > 0 ? hw_tasks_put(&c->tasks, pid, c->drain.round_ns, e) : 0;
}

static int on_mmap2(struct capture *c, const struct hw_record *r, struct pt_error *e)
{
	const uint8_t *p = r->bytes;
	struct hw_mapping m;

	if (r->header.size < 80 || !(u32(p + 64) & PROT_EXEC) || (int32_t)u32(p + 8) == -1)
		return 0;
	m = hw_mapping_of(p);
	return hw_images_mapping(c->images, &m, e);
}

static int on_ksymbol(struct capture *c, const struct hw_record *r, struct pt_error *e)
{
	const uint8_t *p = r->bytes; /* {u64 address; u32 bytes; u16 type, flags} after the header */

	if (r->header.size < 24 || p[23] || p[22] & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		return 0;
	return hw_images_put_kernel_code(c->images, u64(p + 8), u32(p + 16), r->time_ns, e);
}

static int on_sample(struct capture *c, const struct hw_record *r, struct pt_error *e)
{
	struct hw_trigger *trigger = c->o->steering.trigger;
	const char *name;

	if (r->attr >= c->ev.attr_count)
		return 0;
	name = c->ev.attrs[r->attr].name;
	if (trigger && hw_trigger_sample(trigger, name, r->tid, r->time_ns))
		c->fire = true;
	return strcmp(name, "module:module_load") == 0 ? hw_images_rescan_modules(c->images, r->time_ns, e)
						       : 0;
}

int capture_on_record(void *arg, const struct hw_record *r, struct pt_error *e)
{
	struct capture *c = arg;

	if (seen(c, r->pid, e))
		return -1;
	switch (r->header.type) {
	case PERF_RECORD_ITRACE_START:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return r->header.size >= 16 ? seen(c, (int32_t)u32(r->bytes + 8), e) : 0;
	case PERF_RECORD_MMAP2: return on_mmap2(c, r, e);
	case PERF_RECORD_KSYMBOL: return on_ksymbol(c, r, e);
	case PERF_RECORD_SAMPLE: return on_sample(c, r, e);
	default: return 0;
	}
}
