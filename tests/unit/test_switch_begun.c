/*
 * test_switch_begun.c - a trace begins, or goes on after lost bytes, while the kernel switches threads:
 * between the record that says so and the switch itself. The next switch is not taken for this one.
 */
#include "tests/unit/user_container.h"

enum { FIRST = 1000, SECOND = 1001 };
#define KERNEL	UINT64_C(0xffffffff81000000)
#define PROGRAM UINT64_C(0x400000)
/* call __switch_to; sysret; and __switch_to: ret */
#define KERNEL_CODE    "\xe8\x03\x01\x01\x01\x48\x0f\x07"
#define SWITCH_TO      (KERNEL + 0x1010108)
#define SWITCH_TO_CODE "\xc3"
/* What both have at the same address: a branch, after one instruction and after four. */
#define FIRST_CODE  "\x74\x10"
#define SECOND_CODE "\x90\x90\x90\x74\x0d"
enum { KERNEL_INSNS = 3, SECOND_INSNS = 4 };
/* PSB, TSC 1000, PIP, FUP to the kernel, PSBEND; TNT of the return; TIP to the program, TNT, FUP, TIP.PGD */
static const uint8_t aux[] =
    "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
    "\x19\xe8\x03\x00\x00\x00\x00\x00\x02\x43\x00\x12\x34\x00\x00\x00\x99\x01"
    "\x7d\x00\x00\x00\x81\xff\xff\x02\x23"
    "\x06\xcd\x00\x00\x40\x00\x00\x00\x00\x00\x06\xdd\x12\x00\x40\x00\x00\x00\x00\x00\x01";

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
	       put_image(w, PTC_ANY_PID, KERNEL, KERNEL_CODE, e) == 0 &&
	       put_image(w, PTC_ANY_PID, SWITCH_TO, SWITCH_TO_CODE, e) == 0 &&
	       put_image(w, FIRST, PROGRAM, FIRST_CODE, e) == 0 &&
	       put_image(w, SECOND, PROGRAM, SECOND_CODE, e) == 0 &&
	       put_slow_switch(w, FIRST, SECOND, 990, 1100, e) == 0 &&
	       put_slow_switch(w, SECOND, FIRST, 1500, 1600, e) == 0 && ptc_put_aux(w, 1, &all, e) >= 0;
}

int main(void)
{
	const struct pt_session_result got = decoded(put_all);

	check_same(got.errors, 0, "errors");
	check_same(got.insns, KERNEL_INSNS + SECOND_INSNS, "instructions: the kernel's and the second's");
	return sum_up();
}
