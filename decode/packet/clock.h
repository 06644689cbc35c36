/*
 * clock.h - timing packets to one TSC clock.
 *
 * TSC and TMA packets anchor the clock, MTC packets advance it by whole CTC ticks, CYC packets by core cycles
 * (SDM vol. 3, "Tracing post-processing", "Estimating TSC within Intel PT"; CPUID.15H for the ratio). What
 * comes out never goes back within a stream, and never past the next MTC that is still to come.
 */
#ifndef DECODE_PACKET_CLOCK_H
#define DECODE_PACKET_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define PT_CLOCK_UNKNOWN UINT64_MAX

struct pt_clock_config {
	uint32_t ctc_num, ctc_den; /* TSC ticks per CTC tick = num / den (CPUID 15H EBX / EAX); 0: unknown */
	uint32_t mtc_shift;	   /* MTC carries CTC bits mtc_shift..mtc_shift+7 (perf's mtc_period) */
	uint32_t nominal_ratio;	   /* TSC per core cycle = nominal_ratio / CBR; 0: unknown */
	bool mtc;		   /* MTC packets are expected */
};

struct pt_clock {
	struct pt_clock_config config;
	uint64_t tsc;		/* now: the best estimate; PT_CLOCK_UNKNOWN before the first TSC packet */
	uint64_t anchor_tsc;	/* at the last TSC or MTC packet */
	uint64_t anchor_cyc;	/* `cyc` then */
	uint64_t cyc;		/* sum of all CYC payloads of the stream */
	uint64_t limit_tsc;	/* the next MTC's time, or UINT64_MAX */
	uint64_t ctc_tsc;	/* TSC at CTC tick `ctc_base` */
	uint64_t ctc_base, ctc; /* extended beyond the 16 bits of TMA */
	uint64_t tsc_per_cyc;	/* 32.32 fixed point; 0 unknown */
	uint32_t cbr;
	uint64_t by_cyc; /* what the last CYC made it, were it not held back */
	bool have_ctc, calibrated;
	bool loose; /* how many cycles passed between the last CYC and the anchor is not known */
};

/* A TSC packet, with the TMA packet after it when has_tma. */
struct pt_tsc_packet {
	uint64_t tsc;
	bool has_tma;
	uint32_t ctc, fast;
};

void pt_clock_init(struct pt_clock *c, const struct pt_clock_config *config);
/* After lost packets: what was known of CTC and cycles is gone, until the next TSC; time itself stays. */
void pt_clock_lost(struct pt_clock *c);
void pt_clock_tsc(struct pt_clock *c, uint64_t tsc); /* 56 bits; the upper 8 are kept */
void pt_clock_tma(struct pt_clock *c, uint32_t ctc, uint32_t fast);
/* The TSC `fast` ticks after the CTC ticked to `ctc` (16 bits), by what is known of the CTC: the tick nearest to the last
 * one. False when nothing is. The clock stays as it is. */
bool pt_clock_at(const struct pt_clock *c, uint32_t ctc, uint32_t fast, uint64_t *ret);
/* TSC ticks in which the 16 bits of a TMA's CTC come round; 0 unknown. */
uint64_t pt_clock_ctc_round(const struct pt_clock *c);
/* cyc_before: the packet before was a CYC, which says when the MTC was (MTC is CYC-eligible). */
void pt_clock_mtc(struct pt_clock *c, uint32_t ctc, bool cyc_before);
void pt_clock_cbr(struct pt_clock *c, uint32_t ratio);

/* What the anchor and the cycles since say. */
static inline uint64_t pt_clock_by_cyc(const struct pt_clock *c)
{
	return c->anchor_tsc +
	       (uint64_t)(((unsigned __int128)(c->cyc - c->anchor_cyc) * c->tsc_per_cyc) >> 32);
}

/* Whether the CYC packet that has just come says what the time is: the ratio of core cycles to TSC is known and not
 * measured, the cycles are since an anchor, and the time not held back by what was told before or by the next MTC. */
static inline bool pt_clock_cyc_exact(const struct pt_clock *c)
{
	/* All at once: a guess at which of them says no costs more. */
	return (c->tsc == c->by_cyc) & (c->tsc < c->limit_tsc) & !c->loose & (c->tsc_per_cyc != 0) &
	       (c->config.nominal_ratio != 0);
}

static inline void pt_clock_cyc(struct pt_clock *c, uint64_t cycles)
{
	uint64_t t;

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
