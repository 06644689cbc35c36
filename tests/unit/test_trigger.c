/*
 * test_trigger.c - triggers by breakpoints: what the options say, where functions are (this very file's,
 * which the compiler knows, and by a mapping of this process), which instructions leave one, and which
 * samples fire.
 */
#include "capture/record/event_name.h"
#include "capture/record/trigger_place.h"
#include "tests/unit/check.h"

#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct hw_trigger t;
static struct pt_error e;

/* What the tests look for: one return, and a jump within it. */
unsigned trigger_of_this_test(unsigned n);
__attribute__((noinline, used)) unsigned trigger_of_this_test(unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += (unsigned)rand() % (i + 1);
	return sum;
}

static void test_parse(void)
{
	static const char *const bad[] = {
	    "call:",	 "call:@x",   "call:f@",     "call:f>2ms", "ret:f>2",
	    "ret:f>-2s", "addr:main", "addr:0x12zz", "addr:",	   "addr:0",
	};
	char what[100];

	check(hw_trigger_parse(&t, "call:f@libx.so", &e) == 0 && t.kind == HW_TRIGGER_CALL &&
		  !strcmp(t.function, "f") && !strcmp(t.file, "libx.so") && t.max == 1,
	      "call:");
	check(hw_trigger_parse(&t, "ret:f>2ms", &e) == 0 && t.kind == HW_TRIGGER_RETURN &&
		  !strcmp(t.function, "f") && !t.file[0] && t.longer_than_ns == 2000000,
	      "ret:");
	check(hw_trigger_parse(&t, "addr:0x401136", &e) == 0 && t.address == 0x401136, "addr:");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(what, sizeof what, "'%s' is refused", bad[i]);
		check(hw_trigger_parse(&t, bad[i], &e) == -1 && e.kind == PT_ERR_USAGE, what);
	}
}

static void test_place(void)
{
	uint64_t here = (uint64_t)(uintptr_t)trigger_of_this_test;
	struct perf_event_attr a = {0};

	hw_trigger_parse(&t, "call:trigger_of_this_test", &e);
	check(hw_trigger_place(&t, getpid(), &e) == 0 && t.count == 1 && t.at[0].address == here,
	      "where the compiler has put it");
	check(strncmp(t.stop, "stop 0x", 7) == 0 && strstr(t.stop, "/0x1@/"), "and as a filter of the file");
	check(hw_event_named(&a, t.at[0].name, &e) == 0 && a.type == PERF_TYPE_BREAKPOINT &&
		  a.bp_addr == here && a.bp_type == HW_BREAKPOINT_X && a.bp_len == sizeof(long),
	      "perf's name of it");
	hw_trigger_parse(&t, "ret:trigger_of_this_test>1ms", &e);
	check(hw_trigger_place(&t, getpid(), &e) == 0 && t.count >= 2 && !t.at[0].leaves && t.at[1].leaves &&
		  t.at[0].address == here && *(const uint8_t *)(uintptr_t)t.at[1].address == 0xc3,
	      "where it returns");
	hw_trigger_parse(&t, "call:trigger_of_this_test@libc.so.6", &e);
	check(hw_trigger_place(&t, getpid(), &e) == -1 && e.kind == PT_ERR_REFUSED, "not another file's");
	hw_trigger_parse(&t, "addr:0x1234", &e);
	check(hw_trigger_place(&t, 0, &e) == 0 && t.count == 1 && t.at[0].address == 0x1234, "an address");
}

static void leaves(const char *what, const char *code, size_t n, const char *wanted)
{
	char got[200] = "", text[300];
	int r;

	memset(&t, 0, sizeof t);
	r = hw_trigger_leaves(&t, (const uint8_t *)code, n, 0x1000, &e);
	for (size_t i = 0; r == 0 && i < t.count; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%" PRIx64 " ", t.at[i].address);
	snprintf(text, sizeof text, "%s: '%s', not '%s'", what, got, wanted);
	check(r == (*wanted ? 0 : -1) && !strcmp(got, wanted), text);
}

static void test_leaves(void)
{
	leaves("nop; ret", "\x90\xc3", 2, "1001 ");
	leaves("jz to the second ret", "\x74\x01\xc3\xc3", 4, "1002 1003 ");
	leaves("jmp to what is outside", "\x90\xe9\x00\x01\x00\x00", 6, "1001 ");
	leaves("jz to what is outside, ret", "\x74\x10\xc3", 3, "1000 1002 ");
	leaves("jmp to before it, ret", "\xeb\xf0\xc3", 3, "1000 1002 ");
	leaves("an indirect jump", "\xff\xe0\xc3", 3, "");
	leaves("five returns", "\xc3\xc3\xc3\xc3\xc3", 5, "");
	leaves("none", "\x90\x90", 2, "");
	leaves("no instruction", "\x06\xc3", 2, "");
}

static bool sample(unsigned which, int32_t tid, uint64_t time_ns)
{
	return hw_trigger_sample(&t, t.at[which].name, tid, time_ns);
}

static void test_samples(void)
{
	hw_trigger_parse(&t, "ret:f>1us", &e);
	t.count = 2;
	strcpy(t.at[0].name, "mem:0x1:x");
	strcpy(t.at[1].name, "mem:0x2:x");
	t.at[1].leaves = true;
	check(!sample(0, 5, 1000) && !sample(1, 5, 2000), "not longer");
	check(!sample(0, 5, 3000) && !sample(0, 6, 3000) && sample(1, 6, 4001), "of another thread, longer");
	check(!sample(0, 5, 4000) && !sample(1, 5, 4100) && sample(1, 5, 4200),
	      "it calls itself: the outer one is longer");
	check(!sample(1, 5, 9000) && sample(0, 5, 7000), "a return that is read before its call");
	check(!sample(1, 5, 9500) && !sample(0, 5, 9400), "the same, not longer");
	for (unsigned i = 0; i < 20; i++)
		check(!sample(0, 5, 10000 + i * 10), "calls that are never left");
	check(!sample(1, 5, 10300), "the newest one returns");
	t.armed_ns = 20000;
	check(!sample(0, 7, 15000) && !sample(1, 7, 30000), "it began before the last snapshot");
	check(!hw_trigger_sample(&t, "sched:sched_switch", 7, 40000), "another event");
	hw_trigger_parse(&t, "call:f", &e);
	t.count = 1;
	strcpy(t.at[0].name, "mem:0x1:x");
	check(sample(0, 5, 1), "a call");
	t.armed_ns = 10;
	t.ready_ns = 100;
	check(!sample(0, 5, 9) && t.missed == 0, "a call that the last snapshot has");
	check(!sample(0, 5, 99) && t.missed == 1, "a call while a container is being completed");
	check(sample(0, 5, 100) && t.missed == 1, "and after it");
	hw_trigger_parse(&t, "ret:f>1us", &e);
	t.count = 2;
	strcpy(t.at[0].name, "mem:0x1:x");
	strcpy(t.at[1].name, "mem:0x2:x");
	t.at[1].leaves = true;
	t.ready_ns = 5000;
	check(!sample(0, 5, 1000) && sample(1, 5, 6000) && t.missed == 0,
	      "a call that began meanwhile and is over later");
}

int main(void)
{
	trigger_of_this_test(3);
	test_parse();
	test_place();
	test_leaves();
	test_samples();
	return sum_up();
}
