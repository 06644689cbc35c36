/*
 * test_fork_code.c - a process with the number of one that is gone is forked while no CPU runs it: what it runs
 * later is its parent's code, and none that was decoded of the process before it.
 */
#include "tests/unit/user_container.h"

enum { PARENT = 1000, CHILD = 1001 };
#define PROGRAM UINT64_C(0x400000)
/* The old program and the parent's: both jump to the same place when the branch is taken, with one
 * instruction, and with four. */
#define OLD_CODE    "\x74\x10"
#define PARENT_CODE "\x90\x90\x90\x74\x0d"
enum { OLD_INSNS = 1, PARENT_INSNS = 4 };
/* PSB, TSC 1000, PSBEND; TIP.PGE to the program, TNT, FUP, TIP.PGD; the same from TSC 3000 on */
static const uint8_t aux[] =
    "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
    "\x19\xe8\x03\x00\x00\x00\x00\x00\x99\x01\x02\x23"
    "\xd1\x00\x00\x40\x00\x00\x00\x00\x00\x06\xdd\x12\x00\x40\x00\x00\x00\x00\x00\x01"
    "\x19\xb8\x0b\x00\x00\x00\x00\x00"
    "\xd1\x00\x00\x40\x00\x00\x00\x00\x00\x06\xdd\x12\x00\x40\x00\x00\x00\x00\x00\x01";

struct forked {
	struct perf_event_header header;
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time;
	struct trailer trailer;
};

static int put_fork(struct ptc_writer *w, uint64_t time, struct pt_error *e)
{
	const struct forked r = {{PERF_RECORD_FORK, 0, sizeof r}, CHILD, PARENT, CHILD, PARENT, time,
				 {PARENT, PARENT, time, 0, 0}};

	return ptc_put_sideband(w, 0, &r, sizeof r, e) < 0 ? -1 : 0;
}

static bool put(struct ptc_writer *w, struct pt_error *e)
{
	const struct ptc_aux all = {.bytes = aux, .size = sizeof aux - 1};

	return put_head(w, NULL, e) == 0 && put_image(w, CHILD, PROGRAM, OLD_CODE, e) == 0 &&
	       put_image(w, PARENT, PROGRAM, PARENT_CODE, e) == 0 &&
	       put_switch(w, PARENT, CHILD, 500, e) == 0 && put_switch(w, CHILD, PARENT, 1500, e) == 0 &&
	       put_fork(w, 2000, e) == 0 && put_switch(w, PARENT, CHILD, 2500, e) == 0 &&
	       ptc_put_aux(w, 1, &all, e) >= 0;
}

int main(void)
{
	const struct pt_session_result got = decoded(put);

	check_same(got.errors, 0, "errors");
	check_same(got.branches, 6, "branches, with where tracing begins and ends");
	check_same(got.insns, OLD_INSNS + PARENT_INSNS,
		   "instructions of the old program, and of the parent's");
	return sum_up();
}
