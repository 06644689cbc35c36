/*
 * vm_transition.h - a VM entry or VM exit, as a flow reports it.
 *
 * A flow is in the host or in a guest. It enters a guest with the TIP of a VMLAUNCH or VMRESUME, and leaves
 * it with FUP, PIP (NR = 0), TIP (SDM, "Packet generation scenarios", VM entry and VM exit). Each is reported
 * once, in order. Where the transition itself was not seen (an overflow, lost data, a PSB+ that shows the
 * other side) there is none.
 */
#ifndef DECODE_FLOW_VM_TRANSITION_H
#define DECODE_FLOW_VM_TRANSITION_H

#include <stdbool.h>
#include <stdint.h>

struct pt_vm_transition {
	bool entry;   /* false: an exit */
	bool no_code; /* an exit: there is no code where it was left, so it may have gone round to there */
	/* VMX controls keep the guest out of the trace: s->machine stays the host. An exit: host_ip is where
	 * tracing began again */
	bool concealed;
	uint64_t tsc;	   /* host TSC at the last timing packet before: it is not older. PT_CLOCK_UNKNOWN */
	uint64_t guest_ip; /* where the guest begins (entry) or was left (exit); 0: not traced or not known */
	uint64_t host_ip; /* the VMLAUNCH or VMRESUME (entry); where the host goes on (exit); 0: not traced */
	uint64_t vmcs;	  /* address of the VMCS, PT_VMCS_UNKNOWN before the first VMCS packet */
	uint64_t cr3;	  /* the guest's, as PIP has it; 0 unknown */
	uint64_t insns;	  /* executed by the stream so far, host and guest */
	uint64_t cycles;  /* core cycles so far (sum of CYC packets); meaningless unless has_cyc */
	bool has_cyc;
};

#define PT_VMCS_UNKNOWN UINT64_MAX

#endif
