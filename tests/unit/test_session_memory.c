/* test_session_memory.c - what a session holds of a container is bounded: a small one that unpacks to
 * more is refused. */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/session/session.h"
#include "tests/unit/check.h"

enum { SIDEBAND, AUX, SYMBOLS };

/* A container with 4 MB of one thing, all of which has to wait, or to be kept. */
static int container(int what)
{
	static const char psb[] =
	    "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82" /* PSB, TSC, PSBEND */
	    "\x19\x07\0\0\0\0\0\0\x02\x23";
	static uint8_t bytes[65536];
	const struct ptc_stream stream = {.cpu = 0, .pid = -1, .tid = -1, .attr = UINT32_MAX};
	const struct perf_event_header h = {PERF_RECORD_EXIT, 0, sizeof h};
	struct pt_error e = {0};
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	int r = w ? 0 : -1;

	memset(bytes, 0, sizeof bytes);
	if (what == SYMBOLS)
		memset(bytes, 'n', sizeof bytes - 1);
	for (size_t i = 0; what == SIDEBAND && i < sizeof bytes; i += sizeof h)
		memcpy(bytes + i, &h, sizeof h);
	if (what == AUX)
		memcpy(bytes, psb, sizeof psb - 1);
	/* It has a clock, and no PTC_ROUND says how far it is complete. */
	r |= ptc_put_meta(w, "time_mult", "1", &e) | ptc_put_meta(w, "time_shift", "0", &e);
	r |= ptc_put_stream(w, &stream, &e) < 0 ? -1 : 0;
	for (int i = 0; i < 64 && r == 0; i++) {
		const struct ptc_symbol one = {.value = 1, .type = 'T'};
		const struct ptc_symbols symbols = {.pid = PTC_ANY_PID,
						    .absolute = 1,
						    .count = 1,
						    .name = "[x]",
						    .name_bytes = 3,
						    .symbols = &one,
						    .strings = (const char *)bytes,
						    .strings_bytes = sizeof bytes};

		r = what == SIDEBAND ? ptc_put_sideband(w, 0, bytes, sizeof bytes, &e)
		    : what == AUX    ? ptc_put_aux(w, 1,
						   &(struct ptc_aux){.aux_offset = (uint64_t)i * sizeof bytes,
								     .bytes = bytes,
								     .size = sizeof bytes},
						   &e)
				     : ptc_put_symbols(w, &symbols, &e);
	}
	check(r == 0 && ptc_writer_finish(w, &e) == 0, "the container is written");
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static int decode(int fd, uint64_t held_bytes, struct pt_error *e)
{
	const struct pt_session_options options = {.held_bytes = held_bytes};
	struct ptc_reader *r = ptc_reader_create(fd, e);
	struct ptr_writer *w = ptr_writer_create(PTR_COUNT_ONLY, NULL, e);
	struct pt_session_result result;
	int ret = pt_session_run(r, w, &options, &result, e);

	ptr_writer_destroy(w);
	ptc_reader_destroy(r);
	lseek(fd, 0, SEEK_SET);
	return ret;
}

int main(void)
{
	static const char *const names[] = {"sideband", "AUX data", "symbols"};

	for (int what = SIDEBAND; what <= SYMBOLS; what++) {
		struct pt_error e = {0};
		int fd = container(what);
		char text[64];

		snprintf(text, sizeof text, "%s: 4 MB are more than 3", names[what]);
		check(decode(fd, 3 << 20, &e) == -1 && e.kind == PT_ERR_NO_MEMORY &&
			  strstr(e.message, "out of memory"),
		      text);
		snprintf(text, sizeof text, "%s: and less than 1 GB", names[what]);
		check(decode(fd, (uint64_t)1 << 30, &e) == 0, text);
		close(fd);
	}
	return sum_up();
}
