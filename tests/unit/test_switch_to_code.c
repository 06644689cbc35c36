/*
 * test_switch_to_code.c - user space alone is traced, and one thread comes after another without a packet
 * that says time: the code where the trace goes on is the other one's, whose switch is recorded a little
 * later.
 */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/session/session.h"
#include "tests/unit/check.h"

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

struct trailer {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

struct switched {
	struct perf_event_header header;
	uint32_t pid, tid; /* that ran before, or runs next */
	struct trailer trailer;
};

static int put_image(struct ptc_writer *w, int32_t pid, uint64_t vaddr, const char *code, size_t size,
		     struct pt_error *e)
{
	const struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
					.pid = pid,
					.vaddr = vaddr,
					.name = "program",
					.name_bytes = 7,
					.bytes = (const uint8_t *)code,
					.size = size};

	return ptc_put_image(w, &image, e) < 0 ? -1 : 0;
}

/* From a thread to another. */
static int put_switch(struct ptc_writer *w, uint32_t from, uint32_t to, uint64_t time, struct pt_error *e)
{
	const struct switched r[] = {
	    {{PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, sizeof *r},
	     to,
	     to,
	     {from, from, time, 0, 0}},
	    {{PERF_RECORD_SWITCH_CPU_WIDE, 0, sizeof *r}, from, from, {to, to, time + 1, 0, 0}},
	};

	return ptc_put_sideband(w, 0, r, sizeof r, e) < 0 ? -1 : 0;
}

static int put_meta(struct ptc_writer *w, struct pt_error *e)
{
	static const char *const meta[][2] = {
	    {"engine", "perf"},	     {"pt_user_only", "1"},
	    {"pt_config", "0x2601"}, /* with MTC: time is not known at each packet */
	    {"time_mult", "1"},	     {"time_shift", "0"},
	    {"time_zero", "0"}};

	for (size_t i = 0; i < sizeof meta / sizeof *meta; i++)
		if (ptc_put_meta(w, meta[i][0], meta[i][1], e) < 0)
			return -1;
	return 0;
}

static bool put(struct ptc_writer *w, bool first_is_known, struct pt_error *e)
{
	struct perf_event_attr attr = {.type = 8,
				       .size = sizeof attr,
				       .config = 0x2001,
				       .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
				       .sample_id_all = 1,
				       .exclude_kernel = 1,
				       .context_switch = 1};
	const struct ptc_attr a = ptc_host_attr("intel_pt", &attr, sizeof attr, &(uint64_t){1}, 1);
	const struct ptc_stream stream = {.cpu = 0, .pid = -1, .tid = -1, .attr = 0};
	const struct ptc_aux all = {.bytes = aux, .size = sizeof aux - 1};

	return put_meta(w, e) == 0 && ptc_put_attr(w, &a, e) >= 0 &&
	       (!first_is_known ||
		put_image(w, FIRST, FIRST_PROGRAM, FIRST_CODE, sizeof FIRST_CODE - 1, e) == 0) &&
	       put_image(w, SECOND, SECOND_PROGRAM, SECOND_CODE, sizeof SECOND_CODE - 1, e) == 0 &&
	       ptc_put_stream(w, &stream, e) >= 0 && put_switch(w, SECOND, FIRST, 500, e) == 0 &&
	       put_switch(w, FIRST, SECOND, 1500, e) == 0 && ptc_put_aux(w, 1, &all, e) >= 0 &&
	       ptc_writer_finish(w, e) == 0;
}

static struct pt_session_result decode(bool first_is_known)
{
	const struct pt_session_options options = {.threads = 1};
	struct pt_session_result got = {0};
	struct pt_error e = {0};
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct ptc_writer *w = ptc_writer_create(fd, 1, &e);
	struct ptr_writer *out = ptr_writer_create(PTR_COUNT_ONLY, &e);
	struct ptc_reader *r;

	check(w && out && put(w, first_is_known, &e), "a container");
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	check(r && pt_session_run(r, out, &options, &got, &e) == 0, "it is decoded");
	ptc_reader_destroy(r);
	ptr_writer_destroy(out);
	close(fd);
	return got;
}

int main(void)
{
	struct pt_session_result got = decode(true);

	check_same(got.errors, 0, "errors");
	check_same(got.branches, 6, "branches, with where tracing begins and ends");
	check_same(got.insns, FIRST_INSNS + SECOND_INSNS, "instructions of both");
	/* A thread whose code is not known may have any there. */
	got = decode(false);
	check(got.errors > 0, "where what runs is not known, nothing follows from the place");
	check_same(got.insns, 0, "instructions then");
	return sum_up();
}
