/*
 * vm_clocks.h - the clocks of guests, as KVM's debugfs shows them: kvm/PID-FD/vcpuN/tsc-offset,
 * tsc-scaling-ratio, tsc-scaling-ratio-frac-bits.
 */
#ifndef CAPTURE_RECORD_VM_CLOCKS_H
#define CAPTURE_RECORD_VM_CLOCKS_H

#include "capture/record/vm_find.h"
#include "schema/container.h"

struct vm_clocks;

/* Opens the files of these VMs, which must outlive it; before capabilities are dropped. NULL: no memory. */
struct vm_clocks *vm_clocks_open(const struct vms *v);
void vm_clocks_close(struct vm_clocks *c); /* NULL is fine */

/*
 * Writes META PREFIX.PID.VCPU.tid, .tsc_offset, .tsc_ratio, .tsc_frac_bits as they are now; for two times
 * ("kvm" at a capture's beginning, "kvm_end" at its end), after which it writes nothing. *ret_seen: offsets
 * that could be read. 0, or -1: the writer's errors.
 */
int vm_clocks_put(struct vm_clocks *c, struct ptc_writer *w, const char *prefix, size_t *ret_seen,
		  struct pt_error *e);

#endif
