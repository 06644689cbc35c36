/* clock.c - see clock.h. */
#include "decode/packet/clock.h"

#include <string.h>

void pt_clock_init(struct pt_clock *c, const struct pt_clock_config *config)
{
	memset(c, 0, sizeof *c);
	c->config = *config;
	c->tsc = PT_CLOCK_UNKNOWN;
	c->limit_tsc = UINT64_MAX;
}

void pt_clock_lost(struct pt_clock *c)
{
	c->have_ctc = false;
	c->limit_tsc = UINT64_MAX;
	c->anchor_cyc = c->cyc;
	c->anchor_tsc = c->tsc;
}

static void anchor(struct pt_clock *c, uint64_t tsc)
{
	c->anchor_tsc = tsc;
	c->anchor_cyc = c->cyc;
	c->loose = false;
	if (c->tsc == PT_CLOCK_UNKNOWN || tsc > c->tsc)
		c->tsc = tsc;
}

void pt_clock_tsc(struct pt_clock *c, uint64_t tsc)
{
	const uint64_t low = ((uint64_t)1 << 56) - 1;

	/* The upper bits are the clock's, or one more where the packet's 56 bits have wrapped. */
	if (c->tsc != PT_CLOCK_UNKNOWN) {
		uint64_t t = (c->tsc & ~low) | (tsc & low);

		if (t + (low >> 1) < c->tsc)
			t += low + 1;
		tsc = t;
	}
	c->have_ctc = false;
	c->limit_tsc = UINT64_MAX;
	anchor(c, tsc);
}

static uint64_t ctc_to_tsc(const struct pt_clock *c, uint64_t ticks)
{
	return c->ctc_tsc + (uint64_t)((unsigned __int128)ticks * c->config.ctc_num / c->config.ctc_den);
}

static void set_limit(struct pt_clock *c)
{
	uint64_t next = ((c->ctc >> c->config.mtc_shift) + 1) << c->config.mtc_shift;

	c->limit_tsc = c->config.mtc ? ctc_to_tsc(c, next - c->ctc_base) : UINT64_MAX;
}

void pt_clock_tma(struct pt_clock *c, uint32_t ctc, uint32_t fast)
{
	if (!c->config.ctc_num || !c->config.ctc_den || c->tsc == PT_CLOCK_UNKNOWN)
		return;
	/* TMA follows its TSC: that was `fast` TSC ticks after the CTC ticked to `ctc`. */
	c->ctc_tsc = c->anchor_tsc - fast;
	/* High, so that an MTC's bits are always found at or above it. */
	c->ctc_base = c->ctc = ((uint64_t)1 << 32) | ctc;
	c->have_ctc = true;
	set_limit(c);
}

/* Ticks since ctc_base to where the CTC has come to `ctc`, at the tick nearest to the last one. */
static int64_t ticks_to(const struct pt_clock *c, uint32_t ctc)
{
	return (int64_t)(c->ctc - c->ctc_base) + (int16_t)(ctc - (uint32_t)c->ctc);
}

static uint64_t at_ticks(const struct pt_clock *c, int64_t ticks)
{
	return ticks < 0 ? c->ctc_tsc - (ctc_to_tsc(c, 0 - (uint64_t)ticks) - c->ctc_tsc)
			 : ctc_to_tsc(c, (uint64_t)ticks);
}

bool pt_clock_at(const struct pt_clock *c, uint32_t ctc, uint32_t fast, uint64_t *ret)
{
	if (!c->have_ctc)
		return false;
	*ret = at_ticks(c, ticks_to(c, ctc)) + fast;
	return true;
}

bool pt_clock_near(const struct pt_clock *c, uint32_t ctc, uint32_t fast, uint64_t about_tsc, uint64_t *ret)
{
	int64_t round = (int64_t)pt_clock_ctc_round(c), ticks;
	__int128 missing, there;

	if (!c->have_ctc || !round)
		return false;
	ticks = ticks_to(c, ctc);
	missing = (int64_t)(about_tsc - at_ticks(c, ticks));
	there = ticks + (missing + (missing < 0 ? -round : round) / 2) / round * (1 << 16);
	if (there != (int64_t)there) /* a time that no clock can have */
		return false;
	*ret = at_ticks(c, (int64_t)there) + fast;
	return true;
}

uint64_t pt_clock_ctc_round(const struct pt_clock *c)
{
	return c->config.ctc_den ? ((uint64_t)c->config.ctc_num << 16) / c->config.ctc_den : 0;
}

void pt_clock_mtc(struct pt_clock *c, uint32_t ctc, bool cyc_before)
{
	uint64_t before = c->tsc, t, cycles = c->cyc - c->anchor_cyc;
	uint32_t shift = c->config.mtc_shift, step;

	if (!c->have_ctc)
		return;
	/* With mtc_shift > 8 the MTC has bits that TMA has not: those that both have decide. */
	step = shift > 8
		   ? (ctc - (uint32_t)(c->ctc >> shift)) & ((1u << (16 - (shift < 16 ? shift : 15))) - 1)
		   : (ctc - (uint32_t)(c->ctc >> shift)) & 0xff;
	if (step == 0)
		return; /* the tick at which the TMA was */
	c->ctc = ((c->ctc >> shift) + step) << shift;
	t = ctc_to_tsc(c, c->ctc - c->ctc_base);
	set_limit(c);
	if (c->has_cyc && !cyc_before && before != PT_CLOCK_UNKNOWN) {
		/* The MTC came in the cycle of the last CYC, or shortly after it. When its tick was before
		 * that cycle, it was sent late (after a VM entry, say), and the CYC's time stands; unless the
		 * two are so far apart that the ratio must be wrong. */
		uint64_t by_cyc = pt_clock_by_cyc(c);

		if (by_cyc >= t && by_cyc - t <= 2 * (c->limit_tsc - t)) {
			c->tsc = before > t ? before : t;
			if (by_cyc > c->tsc)
				c->tsc = by_cyc < c->limit_tsc ? by_cyc : c->limit_tsc;
			return;
		}
	}
	if (!c->tsc_per_cyc || !c->config.nominal_ratio) {
		/* The ratio is not known: it is measured, by the cycles between two MTCs. */
		if (cycles && t > c->anchor_tsc)
			c->tsc_per_cyc = ((t - c->anchor_tsc) << 32) / cycles;
	}
	anchor(c, t);
	if (before != PT_CLOCK_UNKNOWN && c->tsc < before)
		c->tsc = before;
	c->loose = c->has_cyc && !cyc_before;
}

void pt_clock_cbr(struct pt_clock *c, uint32_t ratio)
{
	if (ratio == c->cbr)
		return;
	c->cbr = ratio;
	if (!ratio || !c->config.nominal_ratio)
		return;
	/* The cycles so far were at the old ratio. */
	if (c->tsc != PT_CLOCK_UNKNOWN) {
		c->anchor_tsc = c->tsc;
		c->anchor_cyc = c->cyc;
	}
	c->tsc_per_cyc = ((uint64_t)c->config.nominal_ratio << 32) / ratio;
}
