/*
 * guest.h - pt-capture import --guest: what perf recorded inside a guest goes into the host's container.
 *
 * The guest's records keep the guest's clock: their attrs say whose they are, and META how the guest's clock relates to
 * its TSC. They stand in the container before all AUX data, since their place in the host's time is for the decoder to
 * find.
 */
#ifndef CAPTURE_PERFDATA_GUEST_H
#define CAPTURE_PERFDATA_GUEST_H

#include "capture/perfdata/machines.h"
#include "capture/perfdata/request.h"

/* Opened and read through once. */
struct perf_guest {
	const struct import_guest *of;
	struct perf_file file;
};

/* machines learns of it. 0, or -1: as perf_file_open() and perf_file_next(); PT_ERR_BAD_INPUT when it has AUX data itself. */
int perf_guest_open(struct perf_guest *g, const struct import_guest *of, struct perf_machines *machines,
		    struct pt_error *e);
void perf_guest_close(struct perf_guest *g);
/* machine.PID.*, and kvm.PID.VCPU.tsc_offset if the command line tells it. -1: the writer's errors. */
int perf_guest_put_meta(const struct perf_guest *g, struct ptc_writer *w, struct pt_error *e);
/* Kernel, attrs, records, and the images of what they map. next_attr as in perf_put_init(). */
int perf_guest_put(struct perf_guest *g, struct ptc_writer *w, struct perf_machines *machines,
		   struct import_perf_notes *notes, uint32_t *next_attr, struct pt_error *e);

#endif
