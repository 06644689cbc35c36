/*
 * guests.h - guests' recordings by trace-cmd beside their host's: which VM's they are, which threads are its
 * vCPUs, and how its TSC relates to the host's.
 */
#ifndef CAPTURE_TRACECMD_GUESTS_H
#define CAPTURE_TRACECMD_GUESTS_H

#include "capture/tracecmd/put.h"
#include "capture/tracecmd/request.h"
#include "capture/tracecmd/trace_dat.h"
#include "schema/container.h"

#define DAT_VCPUS_MAX 1024

/* What guests need to know of their host. */
struct dat_host {
	const char *path;
	struct trace_dat *dat;
	struct dat_clock clock;
	const struct ptc_meta *meta;	  /* of the container that the events are added to; else empty */
	bool into;			  /* there is such a container */
	int32_t vcpu_tids[DAT_VCPUS_MAX]; /* of the only guest, as the host's kvm_entry says; 0 unknown */
	unsigned vcpus;
	void (*progress)(void); /* as in struct dat_put */
};

struct dat_guest {
	const struct dat_guest_request *of;
	struct trace_dat *dat;
	int32_t pid;
	bool has_offset;
	int64_t offset; /* guest TSC = host TSC + it, when the recording began */
};

/*
 * Sets the guest's pid: that of the request, else the one that the host's file and the container in fd `in`
 * (-1: none) know. 0, or -1: PT_ERR_REFUSED: they do not know the guest.
 */
int dat_guest_find_pid(struct dat_guest *g, const struct dat_host *h, int in, struct pt_error *e);

/*
 * Looks in the host's first events for which thread is which vCPU's of the only guest. 0, or -1: as
 * trace_dat_open().
 */
int dat_host_find_vcpus(struct dat_host *h, struct pt_error *e);

/*
 * Writes META of what is known of the guest, and says in *ret how its file is to be read. 0, or -1: the
 * writer's errors.
 */
int dat_guest_begin(struct dat_guest *g, const struct dat_host *h, struct ptc_writer *w,
		    struct dat_source *ret, struct pt_error *e);

#endif
