/*
 * test_first_switch.c - no record has said yet who runs, and soon a switch is recorded: the thread that it is
 * from runs until then, though the one that it is to has code at the same place. (Of a guest, whose recording
 * may begin later than the trace: ptbox/vm_late.sh.)
 */
#include "tests/unit/user_container.h"

enum { FIRST = 1000, SECOND = 1001 };
#define PROGRAM	    UINT64_C(0x401000)
#define FIRST_CODE  "\x74\x10"
#define SECOND_CODE "\x90\x90\x90\x74\x0d"
enum { FIRST_INSNS = 1 };
#define BEGIN UINT64_C(39000) /* the PSB's TSC */

static bool put_host(struct ptc_writer *w, struct pt_error *e)
{
	/* PSB, TSC, PIP, MODE.Exec, PSBEND; TIP.PGE, TNT, FUP, TIP.PGD */
	static const uint8_t aux[] =
	    "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
	    "\x19\x58\x98\x00\x00\x00\x00\x00\x02\x43\x00\x12\x34\x00\x00\x00"
	    "\x99\x01\x02\x23"
	    "\xd1\x00\x10\x40\x00\x00\x00\x00\x00\x06\xdd\x12\x10\x40\x00\x00\x00\x00\x00\x01";
	const struct ptc_aux all = {.bytes = aux, .size = sizeof aux - 1};

	return put_head_of(w, "0x2601", "0", e) == 0 && put_image(w, FIRST, PROGRAM, FIRST_CODE, e) == 0 &&
	       put_image(w, SECOND, PROGRAM, SECOND_CODE, e) == 0 &&
	       put_switch(w, FIRST, SECOND, BEGIN + 500, e) == 0 && ptc_put_aux(w, 1, &all, e) >= 0;
}

int main(void)
{
	struct pt_session_result got = decoded(put_host);

	check_same(got.errors, 0, "errors");
	check_same(got.insns, FIRST_INSNS, "instructions of the thread that the switch is from");
	return sum_up();
}
