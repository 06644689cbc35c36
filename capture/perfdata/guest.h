/*
 * guest.h - pt-capture import --guest: what perf recorded inside a guest, into the host's container.
 *
 * The guest's records keep the guest's clock: their attrs have the guest's machine_pid, and META says how its
 * clock relates to its TSC. They are in the container before all AUX data, since only a decoder can find
 * their place in the host's time.
 */
#ifndef CAPTURE_PERFDATA_GUEST_H
#define CAPTURE_PERFDATA_GUEST_H

#include "capture/perfdata/machines.h"
#include "capture/perfdata/request.h"

/* A guest's recording, opened and read through once. */
struct perf_guest {
	const struct import_guest *of;
	struct perf_file file;
};

/*
 * Adds the guest to machines. g is to be closed in any case. 0, or -1: as perf_file_open() and
 * perf_file_next(); PT_ERR_BAD_INPUT: it has AUX data itself.
 */
int perf_guest_open(struct perf_guest *g, const struct import_guest *of, struct perf_machines *machines,
		    struct pt_error *e);
void perf_guest_close(struct perf_guest *g);
/*
 * Writes META machine.PID.*, and kvm.PID.VCPU.tsc_offset if the command line has it. 0, or -1: the writer's
 * errors.
 */
int perf_guest_put_meta(const struct perf_guest *g, struct ptc_writer *w, struct pt_error *e);
/*
 * Writes kernel, attrs, records, and the images of what they map. next_attr as in perf_put_init(). 0, or -1:
 * the writer's errors, and those of perf_guest_open() and perf_machines_kernel().
 */
int perf_guest_put(struct perf_guest *g, struct ptc_writer *w, struct perf_machines *machines,
		   struct import_perf_notes *notes, uint32_t *next_attr, struct pt_error *e);

#endif
