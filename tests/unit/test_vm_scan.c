/* test_vm_scan.c - a stream that begins in a guest: when that was, by the packets up to the first
 * PSB+ of the host; and what is decoded where it cannot be known. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/output/text.h"
#include "decode/session/session.h"
#include "decode/vm/scan.h"
#include "tests/unit/check.h"
#include "tests/unit/guest_packets.h"

/* The host TSC that the stream is found to begin at; 0: none. */
static uint64_t begin(bool *ret_waits)
{
	const struct pt_clock_config config = {
	    .ctc_num = RATIO, .ctc_den = 1, .mtc_shift = SHIFT, .mtc = true};
	struct pt_vm_clocks *clocks = pt_vm_clocks_create(RATIO + 1, 0);
	struct pt_vm_scan *scan = pt_vm_scan_create(&config, clocks);
	struct pt_vm_begin found;
	uint64_t host = 0;

	check(pt_vm_scan_feed(scan, 1, &(struct ptc_aux){.bytes = bytes, .size = size}) == 0 &&
		  pt_vm_scan_flush(scan) == 0,
	      "scanned");
	if (pt_vm_scan_begin(scan, 0, &found))
		host = found.host_tsc;
	*ret_waits = pt_vm_scan_waits(scan);
	pt_vm_scan_destroy(scan);
	pt_vm_clocks_destroy(clocks);
	return host;
}

static bool near(uint64_t a, uint64_t b)
{
	return a - b + RATIO <= 2 * RATIO;
}

static void begins(void)
{
	const uint64_t later = HOST0 + 10000000; /* the CTC's 16 bits have wrapped around */
	bool waits;

	size = 0;
	put_psb(HOST0, true);
	put_mtcs(HOST0, later);
	check(!begin(&waits) && waits, "up to the host's PSB+ it waits");
	put_psb(later, false);
	check(near(begin(&waits), HOST0) && !waits, "with that it is known");

	size = 0;
	put_psb(HOST0, true);
	put_mtcs(HOST0, HOST0 + 500000);
	put_psb(HOST0 + 500000, true);
	put_mtcs(HOST0 + 500000, later);
	put_psb(later, false);
	check(near(begin(&waits), HOST0) && !waits, "more PSB+ in the guest");

	size = 0;
	put_psb(HOST0, true);
	put_mtcs(HOST0, HOST0 + 500000);
	put_mtcs(later - 500000, later);
	put_psb(later, false);
	check(!begin(&waits) && waits, "MTC packets are missing: unknown");

	size = 0;
	put_psb(HOST0, true);
	put_mtcs(HOST0, HOST0 + 500000);
	put_psb(later, false);
	check(!begin(&waits) && waits, "they are missing before the host's TMA: unknown");

	size = 0;
	put_psb(HOST0, true);
	put_mtcs(HOST0, later);
	PUT("\x02\x43\x00\x12\x34\x00\x00\x00");
	put_tsc(later, later);
	check(!begin(&waits) && waits, "the TSC of a CPU that woke up, or was switched on: unknown");

	size = 0;
	put_psb(HOST0, true);
	put_mtcs(HOST0, HOST0 + 1000);
	PUT("\x02\xf3");
	put_mtcs(HOST0 + 1000, later);
	put_psb(later, false);
	check(!begin(&waits) && waits, "an overflow between: unknown");
}

/* ---- What is decoded -------------------------------------------------------------------------------- */

/* Bytes from `from` on. */
static bool put_aux(struct ptc_writer *w, size_t from, size_t until)
{
	const struct ptc_aux aux = {.aux_offset = from, .bytes = bytes + from, .size = until - from};
	struct pt_error e;

	return ptc_put_aux(w, 1, &aux, &e) >= 0;
}

/* What is decoded, as --text has it, of AUX data in two pieces, of which the first one has `cut` bytes. */
static const char *decode_cut(size_t cut)
{
	static char text[65536];
	const struct ptc_stream stream = {.cpu = 0, .pid = -1, .tid = -1, .attr = UINT32_MAX};
	static const char *const meta[][2] = {{"time_mult", "1"},	   {"time_shift", "0"},
					      {"tsc_ctc_numerator", "39"}, {"tsc_ctc_denominator", "1"},
					      {"mtc_freq", "3"},	   {"pt_user_only", "0"},
					      {"pt_config", "1536"}};
	struct pt_session_result result = {0};
	struct pt_error e = {0};
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	struct ptr_writer *out = ptr_writer_create(PTR_COUNT_ONLY, NULL, &e);
	FILE *to = fmemopen(text, sizeof text, "w");
	struct pt_lines *lines = to ? pt_lines_create(to, NULL, &e) : NULL;
	const struct pt_session_options options = {.text = lines ? pt_lines_text(lines) : NULL};
	struct ptc_reader *r;
	bool ok = w && out && lines;

	for (size_t i = 0; i < sizeof meta / sizeof *meta; i++)
		ok = ok && ptc_put_meta(w, meta[i][0], meta[i][1], &e) == 0;
	ok = ok && ptc_put_stream(w, &stream, &e) >= 0 && put_aux(w, 0, cut) && put_aux(w, cut, size) &&
	     ptc_writer_finish(w, &e) == 0;
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	r = ok ? ptc_reader_create(fd, &e) : NULL;
	check(r && pt_session_run(r, out, &options, &result, &e) == 0, "decoded");
	ptc_reader_destroy(r);
	ptr_writer_destroy(out);
	pt_lines_destroy(lines);
	if (to)
		fclose(to);
	close(fd);
	return text;
}

static const char *decode(void)
{
	return decode_cut(size);
}

/* The first PSB+ may be in the second piece of AUX data, as where a buffer has wrapped around, or be cut. */
static void in_pieces(void)
{
	enum { BEFORE = 300 };
	char whole[4096] = "";
	size_t psb_end, different = 0;

	size = BEFORE;
	memset(bytes, 0, BEFORE); /* PAD packets */
	put_psb(HOST0, true);
	psb_end = size;
	put_mtcs(HOST0, HOST0 + 1000000);
	put_psb(HOST0 + 1000000, false);
	PUT("\x06"); /* a branch */
	strncpy(whole, decode(), sizeof whole - 1);
	check(strstr(whole, "ip 401000") && !strstr(whole, "clock:"), "in one piece its time is known");
	for (size_t cut = 1; cut < psb_end + 2; cut++)
		different += strcmp(decode_cut(cut), whole) != 0;
	check_same(different, 0, "different texts of it in two pieces");
}

static void decoded(void)
{
	const uint64_t later = HOST0 + 1000000;
	const char *text;

	size = 0;
	put_psb(HOST0, true);
	put_mtcs(HOST0, later);
	put_psb(later, false);
	text = decode();
	check(!strstr(text, "clock:") && strstr(text, "ip 401000"),
	      "a stream that begins in a guest, and its time is known");
	size = 0;
	put_psb(HOST0, true);
	put_psb(HOST0 + 400000, true);
	put_mtcs(HOST0 + 900000, later);
	put_psb(later, false);
	PUT("\x06"); /* a branch */
	text = decode();
	check(strstr(text, "ip 401000 clock: the trace begins in a guest"),
	      "its time is not known: an error");
	text = strstr(text, "clock:");
	check(text && !strstr(text + 1, "clock:") && strstr(text, "ip ffffffff81001000"),
	      "one, and from the host's PSB+ on it is decoded");

	size = 0;
	put_psb(HOST0, true);
	PUT("\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82");
	PUT("\x02\xf3\x7d\x00\x10\x40\x00\x00\x00\x06"); /* OVF, FUP, a branch */
	put_psb(later, false);
	PUT("\x06");
	text = strstr(decode(), "clock:");
	check(text && !strstr(text, "ip 401000") && strstr(text, "ip ffffffff81001000"),
	      "nor is it known after an overflow in a PSB+");
}

int main(void)
{
	begins();
	decoded();
	in_pieces();
	return sum_up();
}
