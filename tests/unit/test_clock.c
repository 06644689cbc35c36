/* Timing packets to one clock: anchors, wraps, losses, ratios; and that no order of packets takes it back. */
#include <inttypes.h>
#include <stdio.h>

#include "decode/packet/clock.h"
#include "tests/unit/check.h"

/* A CTC tick is 80 TSC; an MTC every 2^shift ticks; 20 / CBR TSC per core cycle. */
static struct pt_clock clock_of(uint32_t shift, uint32_t nominal, bool mtc)
{
	struct pt_clock_config config = {
	    .ctc_num = 160, .ctc_den = 2, .mtc_shift = shift, .nominal_ratio = nominal, .mtc = mtc};
	struct pt_clock c;

	pt_clock_init(&c, &config);
	return c;
}

static void anchors(void)
{
	struct pt_clock c = clock_of(0, 20, true);

	check_same(c.tsc, PT_CLOCK_UNKNOWN, "nothing known");
	pt_clock_mtc(&c, 5, false);
	pt_clock_cyc(&c, 5);
	pt_clock_tma(&c, 5, 0);
	check_same(c.tsc, PT_CLOCK_UNKNOWN, "nothing before a TSC");
	pt_clock_tsc(&c, 0x1000);
	check_same(c.tsc, 0x1000, "TSC");
	pt_clock_mtc(&c, 6, false);
	check_same(c.tsc, 0x1000, "MTC without TMA");
	pt_clock_tma(&c, 5, 0x10);
	check_same(c.tsc, 0x1000, "TMA is of the TSC before");
	pt_clock_mtc(&c, 6, false);
	check_same(c.tsc, 0x1000 - 0x10 + 80, "MTC");
}

static void wraps(void)
{
	const uint64_t top = (uint64_t)1 << 56;
	struct pt_clock c = clock_of(0, 20, true);

	pt_clock_tsc(&c, top - 0x10);
	pt_clock_tsc(&c, 0x20);
	check_same(c.tsc, top + 0x20, "a TSC packet has 56 bits");
	pt_clock_tma(&c, 0xfffe, 0);
	for (uint32_t i = 0xff; i < 0xff + 1000; i++)
		pt_clock_mtc(&c, i & 0xff, false);
	check_same(c.tsc, top + 0x20 + 1000 * 80, "MTC's 8 bits wrap");

	/* With a period above 2^8 TMA's 16 bits do not reach MTC's uppermost. */
	c = clock_of(10, 20, true);
	pt_clock_tsc(&c, 0x10000);
	pt_clock_tma(&c, 0xfc00, 0);
	pt_clock_mtc(&c, 0x80, false);
	check_same(c.tsc, 0x10000 + 1024 * 80, "MTC with its upper bits unknown");
	pt_clock_mtc(&c, 0x81, false);
	check_same(c.tsc, 0x10000 + 2048 * 80, "and the next");
}

static void losses(void)
{
	struct pt_clock c = clock_of(3, 20, true);

	pt_clock_tsc(&c, 0x1000);
	pt_clock_tma(&c, 0, 0);
	pt_clock_mtc(&c, 4, false);
	check_same(c.tsc, 0x1000 + 4 * 8 * 80, "three MTCs are missing");
	pt_clock_lost(&c);
	pt_clock_mtc(&c, 9, false);
	check_same(c.tsc, 0x1000 + 4 * 8 * 80, "after a loss MTC means nothing");
	pt_clock_tsc(&c, 0x9000);
	pt_clock_tma(&c, 16, 0);
	pt_clock_mtc(&c, 3, false);
	check_same(c.tsc, 0x9000 + 8 * 80, "until TSC and TMA");
}

static void cycles(void)
{
	struct pt_clock c = clock_of(3, 20, true);

	pt_clock_tsc(&c, 0x1000);
	pt_clock_cyc(&c, 100);
	check_same(c.tsc, 0x1000, "CYC without CBR");
	pt_clock_cbr(&c, 10);
	pt_clock_cyc(&c, 100);
	check_same(c.tsc, 0x1000 + 200, "CYC at half the nominal ratio");
	pt_clock_cbr(&c, 40);
	pt_clock_cyc(&c, 100);
	check_same(c.tsc, 0x1000 + 250, "at twice, from here on");
	pt_clock_tsc(&c, 0x2000);
	pt_clock_tma(&c, 0, 0);
	pt_clock_cyc(&c, 1000000);
	check_same(c.tsc, 0x2000 + 8 * 80, "not past the MTC that is to come");
	pt_clock_mtc(&c, 1, false);
	pt_clock_cyc(&c, 20);
	check_same(c.tsc, 0x2000 + 8 * 80 + 10, "and on from it");

	/* The ratio is not known: it is measured between two MTCs. */
	c = clock_of(3, 0, true);
	pt_clock_tsc(&c, 0x1000);
	pt_clock_tma(&c, 0, 0);
	pt_clock_mtc(&c, 1, false);
	pt_clock_cyc(&c, 320);
	pt_clock_mtc(&c, 2, true);
	pt_clock_cyc(&c, 100);
	check_same(c.tsc, 0x1000 + 16 * 80 + 200, "calibrated");
}

static void never_back(void)
{
	uint64_t state = 1;

	for (unsigned run = 0; run < 2000; run++) {
		struct pt_clock c = clock_of(run % 12, run & 1 ? 20 : 0, run & 2);
		uint64_t last = 0;
		bool good = true;

		for (unsigned i = 0; i < 200; i++) {
			uint64_t r;

			state = state * 6364136223846793005u + 1442695040888963407u;
			r = state >> 20;
			switch (r % 8) {
			case 0: pt_clock_tsc(&c, r >> 4 & 0xfffff); break;
			case 1: pt_clock_tma(&c, r >> 4 & 0xffff, r >> 24 & 0x1ff); break;
			case 2:
			case 3: pt_clock_mtc(&c, r >> 4 & 0xff, r % 8 == 3); break;
			case 4: pt_clock_cbr(&c, r >> 4 & 0x3f); break;
			case 5: pt_clock_cyc(&c, r >> 4); break;
			case 6: pt_clock_cyc(&c, r >> 4 & 0xfff); break;
			default:
				if ((r >> 4) % 16 == 0)
					pt_clock_lost(&c);
			}
			if (c.tsc == PT_CLOCK_UNKNOWN)
				continue;
			good = good && c.tsc >= last;
			last = c.tsc;
		}
		check(good, "never back");
	}
}

/* Where TMA's 16 bits of the CTC have come by several times, a time that is about right says which it was. */
static void rounds(void)
{
	const uint64_t round = (uint64_t)80 << 16, tick_tsc = 0x100000 - 3 + 0x20 * 80;
	struct pt_clock c = clock_of(0, 20, true);
	uint64_t tsc = 0;

	check(!pt_clock_near(&c, 0x10, 5, 0x100000, &tsc), "nothing is known of the CTC");
	pt_clock_tsc(&c, 0x100000);
	check(!pt_clock_near(&c, 0x10, 5, 0x100000, &tsc), "nor without TMA");
	pt_clock_tma(&c, 0xfff0, 3);
	check(pt_clock_at(&c, 0x10, 5, &tsc), "at the tick nearest to the last one");
	check_same(tsc, tick_tsc + 5, "... that is in the same round");
	for (uint64_t n = 0; n < 100; n += 33) {
		uint64_t there = tick_tsc + n * round;

		check(pt_clock_near(&c, 0x10, 5, there, &tsc), "there");
		check_same(tsc, there + 5, "... exactly");
		check(pt_clock_near(&c, 0x10, 5, there + round / 2 - 80, &tsc),
		      "nearly half a round earlier");
		check_same(tsc, there + 5, "... the same");
		check(pt_clock_near(&c, 0x10, 5, there - round / 2 + 80, &tsc), "nearly half a round later");
		check_same(tsc, there + 5, "... the same");
	}
	check(pt_clock_near(&c, 0xffd0, 0, 0x100000, &tsc), "before the last one");
	check_same(tsc, 0x100000 - 3 - 0x20 * 80, "... by its ticks");
}

int main(void)
{
	anchors();
	wraps();
	rounds();
	losses();
	cycles();
	never_back();
	return sum_up();
}
