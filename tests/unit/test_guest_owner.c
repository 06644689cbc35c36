/*
 * test_guest_owner.c - AUX data goes on in a guest after lost bytes: the guest is that of the thread that
 * runs then, though another one ran when the bytes were lost, and another one will soon after.
 */
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

/* The guest is entered, and left for a kernel whose code is not known; the other thread comes; bytes are
 * lost. */
static void put_first(void)
{
	put_psb(FIRST_PSB, false);
	PUT("\x02\xc8\x34\x12\x00\x00\x00\x02\x43\x01\x34\x12\x00\x00\x00\x6d\x00\x10\x40\x00\x00\x00\x06");
	put_psb(SECOND_PSB, false);
}

static void put_second(void)
{
	put_psb(BEGIN, true);
	PUT("\x06");
	put_mtcs(BEGIN, LAST_PSB);
	put_psb(LAST_PSB, false);
}

static bool put_all(struct ptc_writer *w, struct pt_error *e)
{
	if (put_times(w, e) || put_head(w, "0x2601", e) || put_image(w, VM, GUEST_PROGRAM, VM_CODE, e) ||
	    put_image(w, OTHER, GUEST_PROGRAM, OTHER_CODE, e) || put_switch(w, OTHER, VM, 500, e) ||
	    put_switch(w, VM, OTHER, OTHER_RUNS, e) || put_switch(w, OTHER, VM, VM_RUNS, e) ||
	    put_switch(w, VM, OTHER, BEGIN + 100000, e))
		return false;
	put_first();
	if (put_aux(w, 0, e))
		return false;
	put_second();
	return put_aux(w, sizeof bytes, e) == 0;
}

int main(void)
{
	const struct pt_session_result got = decoded(put_all);

	check_same(got.insns, 2 * VM_INSNS, "instructions: the VM's program, twice");
	return sum_up();
}
