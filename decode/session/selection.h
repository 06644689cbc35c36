/*
 * selection.h - what of a trace is decoded: --time, --cpu, --pid, --tid, --vm, --host-only, --guest-only.
 *
 * What is not selected costs little. The bytes of other CPUs are not kept. Before the time, bytes are
 * skipped up to the last PSB that is not later than its beginning; after its end, all are. While an
 * unselected thread runs, or the unselected one of host and guest, packets are read for their time and for
 * who runs, and no code is followed. So the selected part begins at its first packet with an address, and
 * no record lies outside of what was asked for.
 *
 * pids and tids are the host's; a guest belongs to its vCPU thread. Pure: no I/O.
 */
#ifndef DECODE_SESSION_SELECTION_H
#define DECODE_SESSION_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/packet/perf_clock.h"
#include "schema/container.h"

#define PT_NUMBER_RANGES_MAX	  64
#define PT_SELECTION_VM_NAMES_MAX 16

struct pt_number_list { /* empty: all numbers */
	size_t count;
	struct {
		int32_t first, last; /* inclusive */
	} ranges[PT_NUMBER_RANGES_MAX];
};

/* One end of --time: none, or a time of perf's clock or of the TSC, absolute or relative to the trace's
 * beginning. */
struct pt_time_bound {
	bool given, relative, is_tsc;
	uint64_t value; /* ns, or TSC ticks (is_tsc) */
};

/* Zeroed, it selects all. */
struct pt_selection {
	struct pt_number_list cpus, pids, tids;
	struct pt_number_list vms;			 /* pids of VM processes */
	const char *vm_names[PT_SELECTION_VM_NAMES_MAX]; /* until pt_selection_resolve_vms(); the caller's */
	size_t vm_name_count;
	struct pt_time_bound from, to;
	bool host_only, guest_only;
};

/* ---- From the command line. False: the text is not that, or there is no room for more. ---------------- */

/* "3", "0-3,7": adds to the list. */
bool pt_number_list_add(struct pt_number_list *list, const char *text);
/*
 * "A..B", of which one may be missing. Each is [+]NUMBER[UNIT]; with + it counts from the trace's
 * beginning. UNIT: s (as with none: perf's "6763.123456"), ms, us, ns, or tsc, which takes no fraction.
 */
bool pt_selection_set_time(struct pt_selection *s, const char *text);
/* Pids, as pt_number_list_add(), or the name of one VM. The text is kept, not copied. */
bool pt_selection_add_vm(struct pt_selection *s, const char *text);

/*
 * Adds to vms the pids of the VMs in META (machine.PID.name, machine.PID.host) that have one of vm_names.
 * Returns NULL, or the first name that no VM has.
 */
const char *pt_selection_resolve_vms(struct pt_selection *s, const struct ptc_meta *meta);

/* ---- Questions --------------------------------------------------------------------------------------- */

bool pt_selection_is_all(const struct pt_selection *s);
/* An empty list has all. */
bool pt_number_list_has(const struct pt_number_list *list, int32_t number);
/* cpu -1, unknown, is selected. */
bool pt_selection_has_cpu(const struct pt_selection *s, int32_t cpu);
/* A host's thread (-1: unknown), with what runs in its guest. */
bool pt_selection_has_thread(const struct pt_selection *s, int32_t pid, int32_t tid);
/* Guests' code, or the host's. */
bool pt_selection_has_side(const struct pt_selection *s, bool guest);

/*
 * The host TSC of a bound that is given. begin_tsc: of the trace's beginning, needed by relative bounds.
 * UINT64_MAX: unknown, for the recording has no conversion between perf's clock and the TSC.
 */
uint64_t pt_time_bound_tsc(const struct pt_time_bound *b, const struct pt_perf_clock *c, uint64_t begin_tsc);

#endif
