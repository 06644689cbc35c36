/* Timing packets to one clock: anchors, wraps, losses, ratios; and that no order of packets takes it back. */
#include <inttypes.h>
#include <stdio.h>

#include "decode/packet/clock.h"

static int passed, failed;

static void check(const char *what, uint64_t got, uint64_t want)
{
	if (got == want) {
		passed++;
		return;
	}
	failed++;
	printf("FAILED: %s: %" PRIx64 ", expected %" PRIx64 "\n", what, got, want);
}

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

	check("nothing known", c.tsc, PT_CLOCK_UNKNOWN);
	pt_clock_mtc(&c, 5, false);
	pt_clock_cyc(&c, 5);
	pt_clock_tma(&c, 5, 0);
	check("nothing before a TSC", c.tsc, PT_CLOCK_UNKNOWN);
	pt_clock_tsc(&c, 0x1000);
	check("TSC", c.tsc, 0x1000);
	pt_clock_mtc(&c, 6, false);
	check("MTC without TMA", c.tsc, 0x1000);
	pt_clock_tma(&c, 5, 0x10);
	check("TMA is of the TSC before", c.tsc, 0x1000);
	pt_clock_mtc(&c, 6, false);
	check("MTC", c.tsc, 0x1000 - 0x10 + 80);
}

static void wraps(void)
{
	const uint64_t top = (uint64_t)1 << 56;
	struct pt_clock c = clock_of(0, 20, true);

	pt_clock_tsc(&c, top - 0x10);
	pt_clock_tsc(&c, 0x20);
	check("a TSC packet has 56 bits", c.tsc, top + 0x20);
	pt_clock_tma(&c, 0xfffe, 0);
	for (uint32_t i = 0xff; i < 0xff + 1000; i++)
		pt_clock_mtc(&c, i & 0xff, false);
	check("MTC's 8 bits wrap", c.tsc, top + 0x20 + 1000 * 80);

	/* With a period above 2^8 TMA's 16 bits do not reach MTC's uppermost. */
	c = clock_of(10, 20, true);
	pt_clock_tsc(&c, 0x10000);
	pt_clock_tma(&c, 0xfc00, 0);
	pt_clock_mtc(&c, 0x80, false);
	check("MTC with its upper bits unknown", c.tsc, 0x10000 + 1024 * 80);
	pt_clock_mtc(&c, 0x81, false);
	check("and the next", c.tsc, 0x10000 + 2048 * 80);
}

static void losses(void)
{
	struct pt_clock c = clock_of(3, 20, true);

	pt_clock_tsc(&c, 0x1000);
	pt_clock_tma(&c, 0, 0);
	pt_clock_mtc(&c, 4, false);
	check("three MTCs are missing", c.tsc, 0x1000 + 4 * 8 * 80);
	pt_clock_lost(&c);
	pt_clock_mtc(&c, 9, false);
	check("after a loss MTC means nothing", c.tsc, 0x1000 + 4 * 8 * 80);
	pt_clock_tsc(&c, 0x9000);
	pt_clock_tma(&c, 16, 0);
	pt_clock_mtc(&c, 3, false);
	check("until TSC and TMA", c.tsc, 0x9000 + 8 * 80);
}

static void cycles(void)
{
	struct pt_clock c = clock_of(3, 20, true);

	pt_clock_tsc(&c, 0x1000);
	pt_clock_cyc(&c, 100);
	check("CYC without CBR", c.tsc, 0x1000);
	pt_clock_cbr(&c, 10);
	pt_clock_cyc(&c, 100);
	check("CYC at half the nominal ratio", c.tsc, 0x1000 + 200);
	pt_clock_cbr(&c, 40);
	pt_clock_cyc(&c, 100);
	check("at twice, from here on", c.tsc, 0x1000 + 250);
	pt_clock_tsc(&c, 0x2000);
	pt_clock_tma(&c, 0, 0);
	pt_clock_cyc(&c, 1000000);
	check("not past the MTC that is to come", c.tsc, 0x2000 + 8 * 80);
	pt_clock_mtc(&c, 1, false);
	pt_clock_cyc(&c, 20);
	check("and on from it", c.tsc, 0x2000 + 8 * 80 + 10);

	/* The ratio is not known: it is measured between two MTCs. */
	c = clock_of(3, 0, true);
	pt_clock_tsc(&c, 0x1000);
	pt_clock_tma(&c, 0, 0);
	pt_clock_mtc(&c, 1, false);
	pt_clock_cyc(&c, 320);
	pt_clock_mtc(&c, 2, true);
	pt_clock_cyc(&c, 100);
	check("calibrated", c.tsc, 0x1000 + 16 * 80 + 200);
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
		check("never back", good, true);
	}
}

int main(void)
{
	anchors();
	wraps();
	losses();
	cycles();
	never_back();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
