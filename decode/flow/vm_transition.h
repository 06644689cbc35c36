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

#define PT_VMCS_UNKNOWN UINT64_MAX

struct pt_vm_transition {
	bool entry; /* false: a VM exit */
	/* An exit: there is no code where the guest was left. So it is not known how it came there: it may
	 * have executed more than `insns` says. */
	bool no_code;
	/* VMX controls keep the guest out of the trace. The flow remains in the host; the host_ip of
	 * an exit is where tracing began again. */
	bool concealed;
	bool has_cyc;
	uint64_t tsc;	   /* the host's, at the last timing packet before; PT_CLOCK_UNKNOWN */
	uint64_t guest_ip; /* where the guest begins (entry) or was left (exit); 0: not traced or not known */
	uint64_t host_ip; /* the VMLAUNCH or VMRESUME (entry), where the host goes on (exit); 0: not traced */
	uint64_t vmcs;	  /* the VMCS's address; PT_VMCS_UNKNOWN before the first VMCS packet */
	uint64_t cr3;	  /* the guest's, as PIP has it; 0 unknown */
	uint64_t insns;	  /* executed by the stream so far, in host and guests */
	uint64_t cycles;  /* core cycles so far (the sum of CYC packets); meaningless unless has_cyc */
};

#endif
