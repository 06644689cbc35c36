/*
 * test_switch_to_code.c - user space alone is traced, and one thread comes after another without a packet
 * that says time: the code where the trace goes on is the other one's, whose switch is recorded a little
 * later.
 */
#include "tests/unit/user_container.h"

enum { FIRST = 1000, SECOND = 1001 };
#define FIRST_PROGRAM  UINT64_C(0x400000)
#define SECOND_PROGRAM UINT64_C(0x500000)
/* Both jump to the same place when the branch is taken, with one instruction, and with four. */
#define FIRST_CODE  "\x74\x10"
#define SECOND_CODE "\x90\x90\x90\x74\x0d"
enum { FIRST_INSNS = 1, SECOND_INSNS = 4 };
/* PSB, TSC 1000, PSBEND; TIP.PGE to the first program, TNT, FUP, TIP.PGD; the same of the second */
static const uint8_t aux[] =
    "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
    "\x19\xe8\x03\x00\x00\x00\x00\x00\x99\x01\x02\x23"
    "\xd1\x00\x00\x40\x00\x00\x00\x00\x00\x06\xdd\x12\x00\x40\x00\x00\x00\x00\x00\x01"
    "\xd1\x00\x00\x50\x00\x00\x00\x00\x00\x06\xdd\x12\x00\x50\x00\x00\x00\x00\x00\x01";

/* After the head: the second program, the switches, the trace. */
static bool put_rest(struct ptc_writer *w, struct pt_error *e)
{
	const struct ptc_aux all = {.bytes = aux, .size = sizeof aux - 1};

	return put_image(w, SECOND, SECOND_PROGRAM, SECOND_CODE, e) == 0 &&
	       put_switch(w, SECOND, FIRST, 500, e) == 0 && put_switch(w, FIRST, SECOND, 1500, e) == 0 &&
	       ptc_put_aux(w, 1, &all, e) >= 0;
}

/* 0x2601: with MTC, time is not known at each packet. */
static bool put_both(struct ptc_writer *w, struct pt_error *e)
{
	return put_head(w, "0x2601", e) == 0 && put_image(w, FIRST, FIRST_PROGRAM, FIRST_CODE, e) == 0 &&
	       put_rest(w, e);
}

static bool put_second(struct ptc_writer *w, struct pt_error *e)
{
	return put_head(w, "0x2601", e) == 0 && put_rest(w, e);
}

int main(void)
{
	struct pt_session_result got = decoded(put_both);

	check_same(got.errors, 0, "errors");
	check_same(got.branches, 6, "branches, with where tracing begins and ends");
	check_same(got.insns, FIRST_INSNS + SECOND_INSNS, "instructions of both");
	/* A thread whose code is not known may have any there. */
	got = decoded(put_second);
	check(got.errors > 0, "where what runs is not known, nothing follows from the place");
	check_same(got.insns, 0, "instructions then");
	return sum_up();
}
