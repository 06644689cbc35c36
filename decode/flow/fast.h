/*
 * fast.h - what the fast loops share: fast.c, fast_cyc.c. Private to them.
 *
 * They read packets' bytes without asking where the piece ends: PT_FAST_BYTES may be read from each packet's
 * first byte on.
 */
#ifndef DECODE_FLOW_FAST_H
#define DECODE_FLOW_FAST_H

#include "decode/flow/internal.h"

/* By memoized packets, where CYC packets time most branch packets. As pt_flow_fast(). */
const uint8_t *pt_flow_fast_cyc(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset);

/* ---- Packets ---------------------------------------------------------------------------------------- */

/* A TNT packet's first byte: neither PAD nor an extended opcode's. */
static inline bool is_short_tnt(unsigned byte)
{
	return !(byte & 1) && byte > 2;
}
static inline unsigned tnt_bits(unsigned byte)
{
	return 30u - (unsigned)__builtin_clz(byte);
}
static inline struct flow_tnt short_tnt(unsigned byte)
{
	unsigned n = tnt_bits(byte);

	return (struct flow_tnt){.bits = byte >> 1 & ((1u << n) - 1), .n = n};
}

/* A TIP's first byte: with 2, 4 or 6 bytes of IP. */
static inline bool is_short_tip(unsigned byte)
{
	return (byte & 0x1f) == 0x0d && byte != 0x0d && !(byte & 0x80);
}
/* Its IP becomes the last one. Returns the first byte after the packet. */
static inline const uint8_t *take_ip(struct pt_flow *f, const uint8_t *p)
{
	unsigned ipbytes = *p >> 5;
	uint64_t v;

	memcpy(&v, p + 1, sizeof v);
	v &= UINT64_MAX >> (64 - 16 * ipbytes);
	f->packet.last_ip = pt_ip(f->packet.last_ip, ipbytes, v);
	return p + 1 + 2 * ipbytes;
}

#define MTC_BYTE 0x59
/* The MTC packet at p. False when the clock has reached stop_tsc. */
static inline bool take_mtc(struct pt_flow *f, const uint8_t *p)
{
	pt_flow_on_mtc(f, p[1]);
	f->counts.packets++;
	return f->clock.tsc < f->stop_tsc;
}

static inline bool is_cyc(unsigned byte)
{
	return (byte & 3) == 3;
}
/* The CYC packet at *p, of one or two bytes; *p is after it then. False where the fast loop ends: after it
 * when the clock has reached stop_tsc, or before one of more bytes, for those are rare. */
static inline bool take_cyc(struct pt_flow *f, const uint8_t **p)
{
	unsigned b = **p;
	uint64_t cycles = b >> 3;

	if (b & 4) {
		if ((*p)[1] & 1 || f->errata & PT_SKD007)
			return false;
		cycles |= (uint64_t)(*++*p >> 1) << 5;
	}
	++*p;
	f->counts.packets++;
	pt_clock_cyc(&f->clock, cycles);
	f->timing.clock_moved = f->timing.cyc_fresh = true;
	return f->clock.tsc < f->stop_tsc;
}

#endif
