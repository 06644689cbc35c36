/*
 * test_rotation.c - what the next container of a capture begins with: the end of a stream from its last PSB
 * on (record/aux_tail.h), what sideband has said (record/sideband_state.h); and --switch-output's argument
 * (record/rotation.h).
 */
#include "capture/record/aux_tail.h"
#include "capture/record/rotation.h"
#include "capture/record/sample_id.h"
#include "capture/record/sideband_state.h"
#include "tests/unit/check.h"

#include <linux/perf_event.h>
#include <stddef.h>

#define PSB "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"

/* ---- AUX data ---- */

static void add(struct hw_aux_tail *t, const void *bytes, size_t n, uint64_t flags)
{
	hw_aux_tail_add(t, &(struct ptc_aux){.aux_offset = t->end, .bytes = bytes, .size = n, .flags = flags},
			7);
}

static bool has(const struct hw_aux_tail *t, const void *bytes, size_t n)
{
	return t->bytes.count == n && (!n || !memcmp(t->bytes.bytes, bytes, n));
}

static void test_tail(void)
{
	static uint8_t big[HW_AUX_TAIL_MAX];
	struct hw_aux_tail t = {0};

	add(&t, "abcd", 4, 0);
	check(has(&t, "", 0) && t.end == 4, "nothing before the first PSB");
	add(&t, "x" PSB "y" PSB "z", 35, 0);
	check(has(&t, PSB "z", 17) && t.end == 39 && t.since_ns == 7, "from the last PSB on");
	add(&t, "w", 1, 0);
	check(has(&t, PSB "zw", 18), "and what follows");
	add(&t, PSB, 16, 0);
	check(has(&t, PSB, 16), "up to the next PSB");
	hw_aux_tail_add(&t, &(struct ptc_aux){.aux_offset = t.end + 1, .bytes = (uint8_t *)"v", .size = 1},
			7);
	check(has(&t, "", 0), "nothing when bytes are missing");
	add(&t, PSB "u", 17, PTC_AUX_TRUNCATED);
	check(has(&t, "", 0) && t.end == 75, "nothing when data was lost after it");
	add(&t, PSB, 16, 0);
	add(&t, big, sizeof big, 0);
	check(has(&t, "", 0), "nothing when it is too long");
	hw_aux_tail_deinit(&t);
}

/* ---- Sideband ---- */

static uint8_t record[256];
static uint64_t now_ns;

/* A record with this body, at the next nanosecond, on CPU 3. */
static const uint8_t *made(uint32_t type, uint16_t misc, const void *body, size_t n)
{
	struct perf_event_header h = {type, misc, (uint16_t)(sizeof h + n + sizeof(struct hw_sample_id))};
	struct hw_sample_id id = {.pid = 0, .tid = 0, .time_ns = ++now_ns, .cpu = 3};

	memcpy(record, &h, sizeof h);
	memcpy(record + sizeof h, body, n);
	if (type == PERF_RECORD_SWITCH)
		id.pid = id.tid = *(const int32_t *)body;
	memcpy(record + sizeof h + n, &id, sizeof id);
	return record;
}

static struct pt_error error;

static void comm(struct hw_state *s, int32_t pid, int32_t tid, const char *name, bool exec)
{
	struct {
		int32_t pid, tid;
		char name[8];
	} b = {pid, tid, ""};

	snprintf(b.name, sizeof b.name, "%s", name);
	check(!hw_state_record(s, made(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0, &b, sizeof b),
			       &error),
	      "comm");
}

static void mapped(struct hw_state *s, int32_t pid, uint64_t start, uint64_t bytes)
{
	struct {
		int32_t pid, tid;
		uint64_t start, bytes, rest[5];
		char name[8];
	} b = {pid, pid, start, bytes, {0}, "/x"};

	check(!hw_state_record(s, made(PERF_RECORD_MMAP2, 0, &b, sizeof b), &error), "mmap");
}

static void forked(struct hw_state *s, uint32_t type, int32_t pid, int32_t parent, int32_t tid,
		   int32_t parent_tid)
{
	struct {
		int32_t pid, ppid, tid, ptid;
		uint64_t time;
	} b = {pid, parent, tid, parent_tid, now_ns + 1};

	check(!hw_state_record(s, made(type, 0, &b, sizeof b), &error), "fork, exit");
}

static void switched(struct hw_state *s, int32_t tid)
{
	/* It has no body: the numbers are the sample id's. */
	int64_t numbers = tid;

	made(PERF_RECORD_SWITCH, 0, &numbers, sizeof numbers);
	check(!hw_state_record(s, record, &error), "switch");
}

/* The records as a text: "time:C tid name", "time:M pid start", "time:S", "time:X tid", "time:P". */
static const char *text_of(struct hw_bytes *b)
{
	static char text[2000];
	struct perf_event_header h;
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; i < b->count; i += h.size) {
		const uint8_t *p = b->bytes + i;
		struct hw_sample_id id;
		int32_t pid, tid;
		uint64_t start;

		memcpy(&h, p, sizeof h);
		memcpy(&id, p + h.size - sizeof id, sizeof id);
		memcpy(&pid, p + 8, 4);
		memcpy(&tid, p + 12, 4);
		memcpy(&start, p + 16, 8);
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%d:", n ? " " : "", (int)id.time_ns);
		if (h.type == PERF_RECORD_COMM)
			n += (size_t)snprintf(text + n, sizeof text - n, "C%d,%s", tid, (const char *)p + 16);
		else if (h.type == PERF_RECORD_MMAP2)
			n += (size_t)snprintf(text + n, sizeof text - n, "M%d,%d", pid, (int)start);
		else
			n += (size_t)snprintf(text + n, sizeof text - n, "%s",
					      h.type == PERF_RECORD_SWITCH ? "S"
					      : h.type == PERF_RECORD_EXIT ? "X"
									   : "P");
	}
	b->count = 0;
	return text;
}

static const char *begun(struct hw_state *s, bool all)
{
	static struct hw_bytes b;

	check(!hw_state_begin(s, all, &b, &error), "a container begins");
	return text_of(&b);
}

static const char *seen(struct hw_state *s, int32_t pid, uint64_t not_before_ns)
{
	static struct hw_bytes b;

	check(!hw_state_put_process(s, pid, not_before_ns, &b, &error), "a process is seen");
	return text_of(&b);
}

static void is(const char *got, const char *want, const char *what)
{
	char text[4200];

	snprintf(text, sizeof text, "%s%s%s", what, strcmp(got, want) ? ": " : "",
		 strcmp(got, want) ? got : "");
	check(!strcmp(got, want), text);
}

static void test_tasks(void)
{
	struct hw_state *s = hw_state_create();

	now_ns = 0;
	comm(s, 10, 10, "sh", false); /* 1 */
	mapped(s, 10, 4096, 4096);    /* 2 */
	mapped(s, 10, 65536, 4096);   /* 3 */
	is(begun(s, true), "1:C10,sh 2:M10,4096 3:M10,65536", "what is mapped, each with its time");
	is(seen(s, 10, 0), "", "once");
	forked(s, PERF_RECORD_FORK, 11, 10, 11, 10); /* 4 */
	is(begun(s, true), "1:C10,sh 2:M10,4096 3:M10,65536 4:C11,sh 4:M11,4096 4:M11,65536",
	   "a child has its parent's, from the fork on");
	forked(s, PERF_RECORD_FORK, 11, 11, 12, 11); /* 5 */
	comm(s, 11, 11, "ls", true);		     /* 6 */
	mapped(s, 11, 4096, 8192);		     /* 7 */
	is(begun(s, true),
	   "1:C10,sh 2:M10,4096 3:M10,65536 4:C11,sh 4:M11,4096 4:M11,65536 5:C12,sh 6:C11,ls 7:M11,4096",
	   "an exec: what was before is kept for a while");
	hw_state_settle(s, 7);
	is(begun(s, true), "1:C10,sh 2:M10,4096 3:M10,65536 6:C11,ls 7:M11,4096", "and is forgotten then");
	mapped(s, 10, 0, 8192); /* 8 */
	hw_state_settle(s, 9);
	is(begun(s, true), "1:C10,sh 3:M10,65536 6:C11,ls 7:M11,4096 8:M10,0", "what is mapped over is gone");
	forked(s, PERF_RECORD_EXIT, 11, 10, 11, 10); /* 9 */
	is(begun(s, false), "", "of a machine only what is seen");
	is(seen(s, 11, 8), "8:C11,ls 8:M11,4096 9:X", "then, not earlier than that, and with its end");
	is(seen(s, 11, 8), "", "once");
	hw_state_settle(s, 10);
	is(begun(s, true), "1:C10,sh 3:M10,65536 8:M10,0", "one that has ended is forgotten");
	hw_state_destroy(s);
}

static void test_switches(void)
{
	struct hw_state *s = hw_state_create();

	now_ns = 0;
	comm(s, 20, 20, "a", false); /* 1 */
	comm(s, 21, 21, "b", false); /* 2 */
	comm(s, 22, 22, "c", false); /* 3 */
	for (int i = 0; i < 4; i++)
		switched(s, 20 + i % 2); /* 4 to 7 */
	hw_state_settle_cpu(s, 3, 6);
	is(begun(s, false), "1:C20,a 2:C21,b 5:S 6:S 7:S",
	   "the last switch before, those after, and who runs");
	hw_state_settle_cpu(s, 3, 100);
	hw_state_settle_cpu(s, 4, 100);
	is(begun(s, false), "2:C21,b 7:S", "who runs now");
	hw_state_destroy(s);
}

static void test_pokes(void)
{
	struct {
		uint64_t address;
		uint16_t old, fresh;
		uint8_t bytes[12];
	} b = {0xffffffff81000000, 5, 5, ""};
	struct hw_state *s = hw_state_create();

	now_ns = 0;
	for (int i = 0; i < 3; i++)
		check(!hw_state_record(s, made(PERF_RECORD_TEXT_POKE, 0, &b, sizeof b), &error), "text poke");
	check(hw_state_poked(s, b.address) && !hw_state_poked(s, b.address + 1),
	      "where the kernel was patched");
	hw_state_settle_pokes(s, 2);
	is(begun(s, false), "2:P 3:P", "patches from a time on");
	check(hw_state_pokes_since_ns(s) == 0, "all that came are known");
	for (int i = 0; i < 8192; i++)
		check(!hw_state_record(s, made(PERF_RECORD_TEXT_POKE, 0, &b, sizeof b), &error), "text poke");
	check(hw_state_pokes_since_ns(s) == 4, "too many: it says since when they are known");
	hw_state_destroy(s);
}

/* ---- The option ---- */

static void test_option(void)
{
	static const struct {
		const char *text;
		enum hw_rotate by;
		uint64_t bytes;
		double seconds;
	} good[] = {{NULL, HW_ROTATE_SIGNAL, 0, 0},	    {"signal", HW_ROTATE_SIGNAL, 0, 0},
		    {"100M", HW_ROTATE_SIZE, 100 << 20, 0}, {"4096B", HW_ROTATE_SIZE, 4096, 0},
		    {"2K", HW_ROTATE_SIZE, 2048, 0},	    {"1G", HW_ROTATE_SIZE, 1 << 30, 0},
		    {"30s", HW_ROTATE_TIME, 0, 30},	    {"2m", HW_ROTATE_TIME, 0, 120},
		    {"1h", HW_ROTATE_TIME, 0, 3600},	    {"1d", HW_ROTATE_TIME, 0, 86400}};
	static const char *const bad[] = {
	    "", "10", "0s", "10x", "-1s", "1.5s", "10MB", " 1s", "99999999999999999999s", "signals"};

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct hw_rotation r = {0};

		check(!hw_rotation_parse(&r, good[i].text, &error) && r.by == good[i].by &&
			  r.bytes == good[i].bytes && r.seconds == good[i].seconds && hw_rotation_names(&r),
		      good[i].text ? good[i].text : "nothing");
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		check(hw_rotation_parse(&(struct hw_rotation){0}, bad[i], &error) &&
			  error.kind == PT_ERR_USAGE,
		      bad[i]);
}

int main(void)
{
	test_tail();
	test_tasks();
	test_switches();
	test_pokes();
	test_option();
	return sum_up();
}
