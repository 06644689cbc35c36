/* guest.c - see guest.h. */
#include "capture/perfdata/guest.h"
#include "capture/perfdata/bpf.h"
#include "capture/perfdata/formats.h"
#include "capture/perfdata/meta.h"
#include "capture/perfdata/perf_user.h"
#include "capture/perfdata/put_records.h"

#include <stdlib.h>
#include <string.h>

int perf_guest_open(struct perf_guest *g, const struct import_guest *of, struct perf_machines *machines,
		    struct pt_error *e)
{
	struct perf_record rec;
	int got;

	*g = (struct perf_guest){.of = of};
	if (perf_file_open(&g->file, of->path, e) ||
	    perf_machines_add(machines, of->pid, &g->file.description, g->file.directory, e))
		return -1;
	while ((got = perf_file_next(&g->file, &rec, e)) > 0) {
		if (perf_machines_kernel_map(machines, of->pid, &rec, e))
			return -1;
		if (rec.type == PERF_USER_AUXTRACE)
			return pt_fail(e, PT_ERR_BAD_INPUT, rec.offset,
				       "%s has AUX data: --guest takes a guest's sideband alone",
				       g->file.path);
	}
	perf_description_name_machines(&g->file.description);
	perf_file_rewind(&g->file);
	return got;
}

void perf_guest_close(struct perf_guest *g)
{
	perf_file_close(&g->file);
}

int perf_guest_put_meta(const struct perf_guest *g, struct ptc_writer *w, struct pt_error *e)
{
	const struct perf_description *d = &g->file.description;
	uint32_t vcpus = d->cpus_online ? d->cpus_online : 1;
	int32_t pid = g->of->pid;

	if (perf_meta_put_guest(w, pid, d, e) || perf_meta_put_clock(w, pid, &d->clock, e))
		return -1;
	for (uint32_t vcpu = 0; g->of->has_offset && vcpu < vcpus; vcpu++)
		if (perf_meta_put_tsc_offset(w, pid, vcpu, g->of->tsc_offset, e))
			return -1;
	return 0;
}

static int put_records(struct perf_guest *g, struct ptc_writer *w, struct perf_machines *machines,
		       struct perf_put *side, struct perf_order *order, struct pt_error *e)
{
	const struct ordered_record *next;
	int got;

	while ((got = perf_order_peek(order, &next, e)) > 0) {
		struct ordered_record *rec = perf_order_take(order);
		struct perf_event_header h;
		int ret = 0;

		memcpy(&h, rec->bytes, sizeof h);
		if (h.type == PERF_RECORD_MMAP || h.type == PERF_RECORD_MMAP2)
			ret = perf_machines_mapped(machines, g->of->pid, rec, w, e);
		else if (h.type == PERF_RECORD_KSYMBOL)
			ret = perf_bpf_begins(&g->file.description, g->of->pid, rec, w, e);
		if (ret == 0)
			ret = perf_put_record(side, rec, e);
		free(rec);
		if (ret)
			return -1;
	}
	return got < 0 ? -1 : perf_put_flush(side, e);
}

int perf_guest_put(struct perf_guest *g, struct ptc_writer *w, struct perf_machines *machines,
		   struct import_perf_notes *notes, uint32_t *next_attr, struct pt_error *e)
{
	struct perf_put side = {0};
	bool whole = true;
	struct perf_order *order = perf_order_create(&g->file);
	int ret = -1;

	if (!order)
		return pt_fail_no_memory(e, "the guest's records");
	if (perf_machines_kernel(machines, g->of->pid, w, e) ||
	    perf_put_init(&side, w, &g->file.description, g->of->pid, next_attr, e) ||
	    import_perf_formats(&g->file.description, w, g->of->pid, &whole, e) ||
	    put_records(g, w, machines, &side, order, e))
		goto out;
	if (!whole)
		import_perf_note(notes, "%s: the tracepoints' formats are malformed", g->file.path);
	if (!g->file.description.clock.mult)
		import_perf_note(notes, "%s does not say how the guest's clock relates to its TSC",
				 g->file.path);
	if (g->file.unfinished || perf_order_late(order)) {
		import_perf_note(notes,
				 g->file.unfinished ? "%s was not finished: what there is was imported"
						    : "%s has records that are too far out of order",
				 g->file.path);
		notes->gaps = true;
	}
	ret = 0;
out:
	perf_put_deinit(&side);
	perf_order_destroy(order);
	return ret;
}
