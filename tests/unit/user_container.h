/*
 * user_container.h - a container of user space, for tests of which thread's code runs: images, switches,
 * one stream of CPU 0, whose time is the TSC. Of the tests that include it.
 */
#ifndef TESTS_USER_CONTAINER_H
#define TESTS_USER_CONTAINER_H

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/session/selection.h"
#include "decode/session/session.h"
#include "tests/unit/check.h"

/* PERF_SAMPLE_TID, TIME and CPU, at the end of each record. */
struct trailer {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

static inline int put_image(struct ptc_writer *w, int32_t pid, uint64_t vaddr, const char *code,
			    struct pt_error *e)
{
	const struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
					.pid = pid,
					.vaddr = vaddr,
					.name = "program",
					.name_bytes = 7,
					.bytes = (const uint8_t *)code,
					.size = strlen(code)};

	return ptc_put_image(w, &image, e) < 0 ? -1 : 0;
}

/* From a thread to another: when the kernel begins, and when it has done it. */
static int put_slow_switch(struct ptc_writer *w, uint32_t from, uint32_t to, uint64_t time, uint64_t end,
			   struct pt_error *e)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid, tid; /* that ran before, or runs next */
		struct trailer trailer;
	} r[] = {
	    {{PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, sizeof *r},
	     to,
	     to,
	     {from, from, time, 0, 0}},
	    {{PERF_RECORD_SWITCH_CPU_WIDE, 0, sizeof *r}, from, from, {to, to, end, 0, 0}},
	};

	return ptc_put_sideband(w, 0, r, sizeof r, e) < 0 ? -1 : 0;
}

static inline int put_switch(struct ptc_writer *w, uint32_t from, uint32_t to, uint64_t time,
			     struct pt_error *e)
{
	return put_slow_switch(w, from, to, time, time + 1, e);
}

/* What comes first. pt_config: META's; NULL: not known. user_only: "0": the kernel is traced, too. */
static int put_head_of(struct ptc_writer *w, const char *pt_config, const char *user_only, struct pt_error *e)
{
	const char *const meta[][2] = {{"engine", "perf"},
				       {"pt_user_only", user_only},
				       {"time_mult", "1"},
				       {"time_shift", "0"},
				       {"time_zero", "0"}};
	const struct perf_event_attr attr = {.type = 8,
					     .size = sizeof attr,
					     .config = 0x2001,
					     .sample_type =
						 PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
					     .sample_id_all = 1,
					     .exclude_kernel = 1,
					     .context_switch = 1};
	const struct ptc_attr a = ptc_host_attr("intel_pt", &attr, sizeof attr, &(uint64_t){1}, 1);
	const struct ptc_stream stream = {.cpu = 0, .pid = -1, .tid = -1, .attr = 0};

	for (size_t i = 0; i < sizeof meta / sizeof *meta; i++)
		if (ptc_put_meta(w, meta[i][0], meta[i][1], e) < 0)
			return -1;
	if (pt_config && ptc_put_meta(w, "pt_config", pt_config, e) < 0)
		return -1;
	return ptc_put_attr(w, &a, e) < 0 || ptc_put_stream(w, &stream, e) < 0 ? -1 : 0;
}

static inline int put_head(struct ptc_writer *w, const char *pt_config, struct pt_error *e)
{
	return put_head_of(w, pt_config, "1", e);
}

/* What pt_session_run() says of what fill() has written, and of that is selected (NULL: all). */
static struct pt_session_result decoded_of(bool (*fill)(struct ptc_writer *w, struct pt_error *e),
					   const struct pt_selection *selection)
{
	const struct pt_session_options options = {.threads = 1, .guest_code = true, .selection = selection};
	struct pt_session_result got = {0};
	struct pt_error e = {0};
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	struct ptr_writer *out = ptr_writer_create(PTR_COUNT_ONLY, NULL, &e);
	struct ptc_reader *r;

	check(w && out && fill(w, &e) && ptc_writer_finish(w, &e) == 0, "a container");
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	check(r && pt_session_run(r, out, &options, &got, &e) == 0, "it is decoded");
	ptc_reader_destroy(r);
	ptr_writer_destroy(out);
	close(fd);
	return got;
}

static inline struct pt_session_result decoded(bool (*fill)(struct ptc_writer *w, struct pt_error *e))
{
	return decoded_of(fill, NULL);
}

#endif
