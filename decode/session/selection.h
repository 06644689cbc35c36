/*
 * selection.h - what of a trace is wanted: --time, --cpu, --pid, --tid, --vm, --host-only, --guest-only.
 *
 * What is not wanted is not decoded: other CPUs' bytes are not kept; before the time, the bytes up to the last PSB that
 * is not behind it are not looked at, and behind it none are; while an unwanted thread, or side, runs, packets are read
 * for their time and for who runs, and no code is followed. So what is wanted begins at the first packet with an
 * address that follows; records lie within what was asked for.
 *
 * pids and tids are the host's; a guest is its vCPU thread's. Pure: no I/O.
 */
#ifndef DECODE_SESSION_SELECTION_H
#define DECODE_SESSION_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/packet/perf_clock.h"
#include "decode/sideband/tasks.h"
#include "schema/container.h"

#define PT_ONLY_MAX   64 /* ranges in a list */
#define PT_ONLY_NAMES 16

struct pt_only_list { /* of numbers; empty: all */
	size_t count;
	struct {
		int32_t first, last; /* inclusive */
	} ranges[PT_ONLY_MAX];
};

/* An end of --time: absent, or a time of perf's clock or of the TSC, absolute or from the trace's beginning on. */
struct pt_only_time {
	bool given, relative, is_tsc;
	uint64_t value; /* ns, or TSC ticks */
};

struct pt_only {
	struct pt_only_list cpus, pids, tids, vms; /* vms: pids of VM processes */
	const char *vm_names[PT_ONLY_NAMES];	   /* to be made vms (pt_only_name_vms()) */
	size_t vm_name_count;
	struct pt_only_time from, to;
	bool host_only, guest_only;
};

/* "3", "0-3,7": adds to the list. False when it is not that, or too long. */
bool pt_only_add(struct pt_only_list *list, const char *text);
/* "A..B", either may be missing: [+]NUMBER[UNIT], with + from the trace's beginning on; UNIT s (also when there is none: perf's
 * "6763.123456"), ms, us, ns, or tsc. False when it is not that. */
bool pt_only_add_time(struct pt_only *only, const char *text);
/* "3", "0-3,7", or the name of one VM. False when it is empty, or one too many. The text stays the caller's. */
bool pt_only_add_vm(struct pt_only *only, const char *text);
/* Adds the pids of the VMs that are named so in META (machine.PID.name, or .host), or returns the name that is not there. NULL: all
 * were. */
const char *pt_only_name_vms(struct pt_only *only, const struct ptc_meta *meta);
/* True when nothing was asked for. */
bool pt_only_all(const struct pt_only *only);

bool pt_only_cpu(const struct pt_only *only, int32_t cpu); /* -1, unknown, is wanted */
/* A host's thread (-1: unknown), with what runs in its guest. */
bool pt_only_thread(const struct pt_only *only, int32_t pid, int32_t tid);
bool pt_only_side(const struct pt_only *only, bool guest);

/* The TSC of an end: UINT64_MAX when it cannot be known (no conversion). begin_tsc: of the trace. */
uint64_t pt_only_tsc(const struct pt_only_time *t, const struct pt_perf_clock *c, uint64_t begin_tsc);

/* The offset of the last PSB in the bytes whose TSC packet, the host's, is not behind tsc; 0 when there is none. *ret_past: there
 * is one behind it. A PSB+ in a guest is passed over. */
size_t pt_only_psb(const uint8_t *bytes, size_t size, uint64_t tsc, bool *ret_past);
/* The first host TSC packet in a PSB+ of the bytes; UINT64_MAX: none. */
uint64_t pt_only_first_tsc(const uint8_t *bytes, size_t size);

#endif
