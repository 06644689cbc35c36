/*
 * test_guest_owner.c - AUX data goes on in a guest after lost bytes: the guest is that of the thread that
 * runs then, though another one ran when the bytes were lost, and another one will soon after. Where it is
 * not known when it goes on, nothing is learnt from who ran before.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/unit/guest_packets.h"
#include "tests/unit/user_container.h"

enum { VM = 1000, OTHER = 1001 };
/* Times. */
#define FIRST_PSB  HOST0
#define SECOND_PSB (FIRST_PSB + 1000000)
#define OTHER_RUNS (FIRST_PSB + 500000)
#define BEGIN	   (FIRST_PSB + UINT64_C(60000000000))
#define VM_RUNS	   (BEGIN - 100000)
#define LAST_PSB   (BEGIN + 200000)
#define NEXT_PSB   (LAST_PSB + 200000)
/* What both have at the guest's address: a branch, after one instruction and after four. */
#define GUEST_PROGRAM UINT64_C(0x401000)
#define VM_CODE	      "\x74\x10"
#define OTHER_CODE    "\x90\x90\x90\x74\x0d"
enum { VM_INSNS = 1 };

static int put_aux(struct ptc_writer *w, uint64_t offset, struct pt_error *e)
{
	const struct ptc_aux aux = {.aux_offset = offset, .bytes = bytes, .size = size};

	size = 0;
	return ptc_put_aux(w, 1, &aux, e) < 0 ? -1 : 0;
}

static int put_times(struct ptc_writer *w, struct pt_error *e)
{
	return ptc_put_meta(w, "tsc_ctc_numerator", "39", e) ||
		       ptc_put_meta(w, "tsc_ctc_denominator", "1", e) || ptc_put_meta(w, "mtc_freq", "3", e)
		   ? -1
		   : 0;
}

/* A kernel whose code is not known runs, and enters the guest. */
static void put_entry(uint64_t psb)
{
	put_psb(psb, false);
	PUT("\x02\xc8\x34\x12\x00\x00\x00\x02\x43\x01\x34\x12\x00\x00\x00\x6d\x00\x10\x40\x00\x00\x00\x06");
}

static int put_threads(struct ptc_writer *w, struct pt_error *e)
{
	return put_head(w, "0x2601", e) || put_image(w, VM, GUEST_PROGRAM, VM_CODE, e) ||
		       put_image(w, OTHER, GUEST_PROGRAM, OTHER_CODE, e) ||
		       put_switch(w, OTHER, VM, 500, e) || put_switch(w, VM, OTHER, OTHER_RUNS, e) ||
		       put_switch(w, OTHER, VM, VM_RUNS, e) || put_switch(w, VM, OTHER, BEGIN + 100000, e)
		   ? -1
		   : 0;
}

/* The guest is entered, and left; the other thread comes; bytes are lost. */
static int put_first(struct ptc_writer *w, struct pt_error *e)
{
	put_entry(FIRST_PSB);
	put_psb(SECOND_PSB, false);
	return put_aux(w, 0, e);
}

/* The VM's thread runs in the guest. MTC packets say when. */
static bool put_known(struct ptc_writer *w, struct pt_error *e)
{
	if (put_times(w, e) || put_threads(w, e) || put_first(w, e))
		return false;
	put_psb(BEGIN, true);
	PUT("\x06");
	put_mtcs(BEGIN, LAST_PSB);
	put_psb(LAST_PSB, false);
	return put_aux(w, sizeof bytes, e) == 0;
}

/* Without MTC packets it is not known when. Later the VM's thread enters the guest again, shortly before
 * the other one comes. */
static bool put_unknown(struct ptc_writer *w, struct pt_error *e)
{
	if (put_times(w, e) || put_threads(w, e) || put_switch(w, OTHER, VM, LAST_PSB + 100000, e) ||
	    put_switch(w, VM, OTHER, NEXT_PSB + 100000, e) || put_first(w, e))
		return false;
	put_psb(BEGIN, true);
	PUT("\x06");
	put_psb(LAST_PSB, false);
	put_entry(NEXT_PSB);
	return put_aux(w, sizeof bytes, e) == 0;
}

static bool vm_known; /* the VM's offset is in the container, too */

/* The same, but the VMCS was not seen before; and the thread that ran then is the vCPU of another VM, whose
 * TSC offset is in the container, by which it would have been there at this time. */
static bool put_offset(struct ptc_writer *w, struct pt_error *e)
{
	char offset[24];

	snprintf(offset, sizeof offset, "%" PRId64, (int64_t)(OFFSET + (BEGIN - SECOND_PSB) - 1000));
	if (put_times(w, e) || ptc_put_meta(w, "kvm.1001.0.tsc_offset", offset, e) ||
	    ptc_put_meta(w, "kvm.1001.0.tid", "1001", e) ||
	    (vm_known && ptc_put_meta(w, "kvm.1000.0.tsc_offset", "7", e)) || put_threads(w, e))
		return false;
	put_psb(FIRST_PSB, false);
	put_psb(SECOND_PSB, false);
	if (put_aux(w, 0, e))
		return false;
	put_psb(BEGIN, true);
	PUT("\x06");
	put_psb(LAST_PSB, false);
	return put_aux(w, sizeof bytes, e) == 0;
}

int main(void)
{
	check_same(decoded(put_known).insns, 2 * VM_INSNS, "instructions: the VM's program, twice");
	check_same(decoded(put_unknown).insns, 2 * VM_INSNS,
		   "instructions where a time is not known: the VM's program before it and after it");
	check_same(decoded(put_offset).insns, 0,
		   "instructions: none where only another VM's TSC offset is known");
	vm_known = true;
	check_same(decoded(put_offset).insns, 0,
		   "instructions: none where it is not known which VM's TSC offset counts");
	return sum_up();
}
