/*
 * clock.h - a stream's timing packets to one TSC clock.
 *
 * TSC and TMA packets anchor the clock, MTC packets advance it by whole CTC ticks, CYC packets by core cycles
 * (SDM vol. 3, "Tracing post-processing", "Estimating TSC within Intel PT"; CPUID.15H for the ratio of TSC to
 * CTC):
 *
 *     packets     TSC TMA       CYC    CYC       MTC    CYC ...
 *     time         |-------------|------|---------|------|------>
 *                anchor        + cycles         anchor        limit: the next MTC
 *
 * What comes out never goes back within a stream, and never beyond the MTC that is still to come.
 */
#ifndef DECODE_PACKET_CLOCK_H
#define DECODE_PACKET_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define PT_CLOCK_UNKNOWN UINT64_MAX

struct pt_clock_config {
	uint32_t ctc_num, ctc_den; /* TSC ticks per CTC tick = num / den (CPUID.15H: EBX / EAX); 0: unknown */
	uint32_t mtc_shift;	   /* MTC has the CTC bits mtc_shift..mtc_shift+7 (perf's mtc_period) */
	uint32_t nominal_ratio;	   /* TSC ticks per core cycle = nominal_ratio / CBR; 0: unknown */
	bool mtc;		   /* MTC packets are expected */
};

/* To be read only. tsc is the result; the rest is for pt_clock_*(). */
struct pt_clock {
	struct pt_clock_config config;
	uint64_t tsc;	      /* now: the best estimate; PT_CLOCK_UNKNOWN before the first TSC packet */
	uint64_t anchor_tsc;  /* at the last TSC or MTC packet */
	uint64_t anchor_cyc;  /* `cyc` then */
	uint64_t cyc;	      /* the sum of all CYC packets of the stream */
	uint64_t limit_tsc;   /* the time of the next MTC, UINT64_MAX when it is not known */
	uint64_t ctc_tsc;     /* the TSC at CTC tick ctc_base */
	uint64_t ctc_base;    /* at the last TMA, and */
	uint64_t ctc;	      /* at the last TMA or MTC: CTC ticks, extended beyond the 16 bits of TMA */
	uint64_t tsc_per_cyc; /* 32.32 fixed point; 0 unknown */
	uint64_t by_cyc;      /* what the last CYC would have made tsc, had nothing held it back */
	uint32_t cbr;
	bool have_ctc;
	bool has_cyc; /* there have been CYC packets */
	bool loose;   /* how many cycles were between the last CYC and the anchor is not known */
};

void pt_clock_init(struct pt_clock *c, const struct pt_clock_config *config);
/* After lost packets: until the next TSC nothing is known of CTC and cycles. The time is kept. */
void pt_clock_lost(struct pt_clock *c);
/* tsc: the packet's 56 bits; the upper 8 are the clock's. */
void pt_clock_tsc(struct pt_clock *c, uint64_t tsc);
void pt_clock_tma(struct pt_clock *c, uint32_t ctc, uint32_t fast);
/* cyc_before: the packet before was a CYC, which says when the MTC was (MTC is CYC-eligible). */
void pt_clock_mtc(struct pt_clock *c, uint32_t ctc, bool cyc_before);
void pt_clock_cbr(struct pt_clock *c, uint32_t ratio);

/* A TSC packet, with the TMA packet after it when has_tma. */
struct pt_tsc_packet {
	uint64_t tsc;
	bool has_tma;
	uint32_t ctc, fast;
};
/* The TSC that is `fast` ticks after the CTC has come to `ctc` (16 bits): at the tick nearest to the last
 * one. False when nothing is known of the CTC. The clock is unchanged. */
bool pt_clock_at(const struct pt_clock *c, uint32_t ctc, uint32_t fast, uint64_t *ret);
/* The same, at the tick nearest to about_tsc. */
bool pt_clock_near(const struct pt_clock *c, uint32_t ctc, uint32_t fast, uint64_t about_tsc, uint64_t *ret);
/* TSC ticks after which the 16 bits of TMA's CTC repeat; 0 unknown. */
uint64_t pt_clock_ctc_round(const struct pt_clock *c);

/* The time by the anchor and the cycles since. */
static inline uint64_t pt_clock_by_cyc(const struct pt_clock *c)
{
	return c->anchor_tsc +
	       (uint64_t)(((unsigned __int128)(c->cyc - c->anchor_cyc) * c->tsc_per_cyc) >> 32);
}

/* The CYC packet that has just come says what the time is: the ratio of core cycles to TSC is known and not
 * measured, the cycles are since an anchor, and the time was not held back by an earlier one or by the next
 * MTC. */
static inline bool pt_clock_cyc_exact(const struct pt_clock *c)
{
	/* Without branches: a wrong guess at which of them is false would cost more. */
	return (c->tsc == c->by_cyc) & (c->tsc < c->limit_tsc) & !c->loose & (c->tsc_per_cyc != 0) &
	       (c->config.nominal_ratio != 0);
}

static inline void pt_clock_cyc(struct pt_clock *c, uint64_t cycles)
{
	uint64_t t;

	c->has_cyc = true;
	c->cyc += cycles;
	if (c->tsc == PT_CLOCK_UNKNOWN)
		return;
	t = c->by_cyc = pt_clock_by_cyc(c);
	if (t > c->limit_tsc)
		t = c->limit_tsc;
	if (t > c->tsc)
		c->tsc = t;
}

#endif
