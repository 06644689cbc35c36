/* test_session_meta.c - META that contradicts itself: what it says is reported and not used. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/session/session.h"
#include "tests/unit/check.h"

/* PSB, a PIP and a VMCS packet of a guest, its TSC, PSBEND. */
static const uint8_t in_guest[] = "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
				  "\x19\x00\x00\x10\x00\x00\x00\x00\x02\x43\x03\x00\x00\x00\x00\x00"
				  "\x02\xc8\x00\x10\x00\x00\x00\x02\x23";

/* Decodes with the vCPU's tsc_ratio and tsc_frac_bits. The number of errors, or -1. */
static int64_t errors_with(const char *ratio, const char *frac_bits)
{
	const struct ptc_stream stream = {.cpu = 0, .pid = -1, .tid = -1, .attr = UINT32_MAX};
	const struct pt_session_options options = {.quick = 1};
	struct pt_session_result result = {0};
	struct pt_error e = {0};
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	struct ptr_writer *out = ptr_writer_create(PTR_COUNT_ONLY, NULL, &e);
	struct ptc_aux aux = {.bytes = in_guest, .size = sizeof in_guest - 1};
	struct ptc_reader *r;
	bool ok = w && out;

	ok = ok && ptc_put_meta(w, "time_mult", "1", &e) == 0 &&
	     ptc_put_meta(w, "time_shift", "0", &e) == 0 &&
	     ptc_put_meta(w, "kvm.7.0.tsc_offset", "-1000", &e) == 0 &&
	     ptc_put_meta(w, "kvm.7.0.tsc_ratio", ratio, &e) == 0 &&
	     ptc_put_meta(w, "kvm.7.0.tsc_frac_bits", frac_bits, &e) == 0;
	ok = ok && ptc_put_stream(w, &stream, &e) >= 0 && ptc_put_aux(w, 1, &aux, &e) >= 0 &&
	     ptc_writer_finish(w, &e) == 0;
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	r = ok ? ptc_reader_create(fd, &e) : NULL;
	ok = r && pt_session_run(r, out, &options, &result, &e) == 0;
	ptc_reader_destroy(r);
	ptr_writer_destroy(out);
	close(fd);
	return ok ? (int64_t)result.errors : -1;
}

int main(void)
{
	check(errors_with("281474976710656", "48") == 0, "a ratio of 1");
	check(errors_with("0", "48") == 0, "no scaling");
	check(errors_with("1", "63") == 1, "a ratio of nearly nothing is an error");
	check(errors_with("9223372036854775808", "0") == 1, "one of too much is an error");
	check(errors_with("5", "64") == 1, "more bits of fraction than there are");
	return sum_up();
}
