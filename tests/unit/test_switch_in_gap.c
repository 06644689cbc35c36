/*
 * test_switch_in_gap.c - the place where the kernel switches threads lies in a gap of the trace: the switch
 * is over when its second record says so, and what runs from then on is the next thread's.
 */
#include "tests/unit/user_container.h"

enum { FIRST = 1000, SECOND = 1001 };
#define KERNEL	  UINT64_C(0xffffffff81000000)
#define SWITCH_TO (KERNEL + 0x10000)
/* A return, of which the call was not seen; after the gap two instructions and a branch. */
#define RETURN_CODE "\xc3"
#define AFTER	    (KERNEL + 0x20)
#define AFTER_CODE  "\x90\x90\x74\x10\x90"
enum { AFTER_INSNS = 3 };
#define PSB "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
/* PSB, TSC 1000, FUP, PSBEND; TSC 1150, TNT of the return, TSC 1300; PSB, TSC 1400, FUP, PSBEND; TNT, FUP,
 * TIP.PGD */
static const uint8_t aux[] =
    PSB "\x19\xe8\x03\x00\x00\x00\x00\x00\x99\x01\x7d\x00\x00\x00\x81\xff\xff\x02\x23"
	"\x19\x7e\x04\x00\x00\x00\x00\x00\x06\x19\x14\x05\x00\x00\x00\x00\x00" PSB
	"\x19\x78\x05\x00\x00\x00\x00\x00\x99\x01\x7d\x20\x00\x00\x81\xff\xff\x02\x23"
	"\x04\x7d\x24\x00\x00\x81\xff\xff\x01";

static int put_symbol(struct ptc_writer *w, struct pt_error *e)
{
	static const char name[] = "__switch_to";
	const struct ptc_symbol symbol = {.value = SWITCH_TO, .type = 'T'};
	const struct ptc_symbols symbols = {.pid = PTC_ANY_PID,
					    .absolute = 1,
					    .count = 1,
					    .name = "[kernel]",
					    .name_bytes = 8,
					    .symbols = &symbol,
					    .strings = name,
					    .strings_bytes = sizeof name};

	return ptc_put_symbols(w, &symbols, e) < 0 ? -1 : 0;
}

static bool put_all(struct ptc_writer *w, struct pt_error *e)
{
	const struct ptc_aux all = {.bytes = aux, .size = sizeof aux - 1};

	return put_head_of(w, "0x2601", "0", e) == 0 && put_symbol(w, e) == 0 &&
	       put_image(w, PTC_ANY_PID, KERNEL, RETURN_CODE, e) == 0 &&
	       put_image(w, PTC_ANY_PID, AFTER, AFTER_CODE, e) == 0 &&
	       put_slow_switch(w, SECOND, FIRST, 500, 501, e) == 0 &&
	       put_slow_switch(w, FIRST, SECOND, 1100, 1200, e) == 0 && ptc_put_aux(w, 1, &all, e) >= 0;
}

int main(void)
{
	struct pt_selection first = {0};
	const struct pt_session_result all = decoded(put_all);

	check(pt_number_list_add(&first.tids, "1000"), "a list of threads");
	check_same(all.errors, 1, "errors: the return");
	check_same(decoded_of(put_all, &first).insns, all.insns - AFTER_INSNS, "instructions of the first");
	return sum_up();
}
