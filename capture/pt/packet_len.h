/*
 * packet_len.h - the length of an Intel PT packet, from its first bytes: just enough to cut AUX data between
 * two packets. From the Intel SDM, volume 3, "Intel Processor Trace", packet definitions. (The decoder has a
 * reader of its own, as the stages share schema/ only.)
 */
#ifndef CAPTURE_PT_PACKET_LEN_H
#define CAPTURE_PT_PACKET_LEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PT_PSB_BYTES	16
#define PT_PSB_PLUS_MAX 512 /* bytes that a PSB+ may have; the PSB of a longer one counts as without a time */

enum { PT_PACKET_CUT = 0, PT_PACKET_BAD = -1 };

/* Whether what is there of a PSB agrees with one: n bytes at p, of which only PT_PSB_BYTES matter. */
static inline bool pt_may_be_psb(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n && i < PT_PSB_BYTES; i++)
		if (p[i] != (i % 2 ? 0x82 : 0x02))
			return false;
	return true;
}

/* Whether a PSB begins at p, of n bytes. Its pattern is in no other packet and across no two. */
static inline bool pt_is_psb(const uint8_t *p, size_t n)
{
	return n >= PT_PSB_BYTES && pt_may_be_psb(p, n);
}

/* pt_packet_len() of packets that begin with 02. */
static inline int pt_extended_len(const uint8_t *p, size_t n)
{
	if (n < 2)
		return PT_PACKET_CUT;
	if ((p[1] & 0x1f) == 0x12) /* PTW */
		return (p[1] >> 5 & 3) == 0 ? 6 : (p[1] >> 5 & 3) == 1 ? 10 : PT_PACKET_BAD;
	switch (p[1]) {
	case 0x82: return pt_may_be_psb(p, n) ? PT_PSB_BYTES : PT_PACKET_BAD;
	case 0x23: return 2;					       /* PSBEND */
	case 0x83: return 2;					       /* TraceStop */
	case 0xf3: return 2;					       /* OVF */
	case 0xa3: return 8;					       /* long TNT */
	case 0x43: return 8;					       /* PIP */
	case 0x03: return 4;					       /* CBR */
	case 0x73: return 7;					       /* TMA */
	case 0xc8: return 7;					       /* VMCS */
	case 0xc3: return n >= 3 && p[2] != 0x88 ? PT_PACKET_BAD : 11; /* MNT */
	case 0x62:
	case 0xe2: return 2;  /* EXSTOP */
	case 0xc2: return 10; /* MWAIT */
	case 0x22: return 4;  /* PWRE */
	case 0xa2: return 7;  /* PWRX */
	case 0x63: return 3;  /* BBP */
	case 0x33:
	case 0xb3: return 2;  /* BEP */
	case 0x13: return 4;  /* CFE */
	case 0x53: return 11; /* EVD */
	default: return PT_PACKET_BAD;
	}
}

/* pt_packet_len() of CYC: bit 2 of the first byte, bit 0 of the others: one more follows. */
static inline int pt_cyc_len(const uint8_t *p, size_t n)
{
	bool more = p[0] & 4;
	size_t len = 1;

	for (; more; len++) {
		if (len == 15)
			return PT_PACKET_BAD;
		if (len == n)
			return PT_PACKET_CUT;
		more = p[len] & 1;
	}
	return (int)len;
}

/*
 * The length of the packet at p, of which n >= 1 bytes are there. PT_PACKET_CUT: it continues beyond them;
 * PT_PACKET_BAD: no packet begins like that. *block: the payload bytes of a block item (4, 8) while between
 * BBP and BEP, else 0; 0 at the start.
 */
static inline int pt_packet_len(const uint8_t *p, size_t n, int *block)
{
	static const signed char ip_bytes[8] = {0, 2, 4, 6, 6, -2, 8, -2};
	int len;

	if (p[0] == 0x02) {
		len = pt_extended_len(p, n);
		if (len == 3 && n >= 3)
			*block = p[2] & 0x80 ? 4 : 8;
		else if (n >= 2 &&
			 ((p[1] & 0x7f) == 0x33 || p[1] == 0xf3 || p[1] == 0x82)) /* BEP, OVF, PSB */
			*block = 0;
	} else if (p[0] == 0x00) {
		len = 1;
	} else if (*block && (p[0] & 7) == 4) {
		len = 1 + *block; /* BIP */
	} else if (!(p[0] & 1)) {
		len = 1; /* TNT */
	} else if ((p[0] & 3) == 3) {
		len = pt_cyc_len(p, n);
	} else {
		switch (p[0] & 0x1f) {
		case 0x01:
		case 0x0d:
		case 0x11:
		case 0x1d: len = 1 + ip_bytes[p[0] >> 5]; break;
		case 0x19: /* TSC, MTC, MODE, TRIG */
			if (p[0] == 0xd9)
				len = n < 2 ? PT_PACKET_CUT : p[1] & 0x40 ? 5 : 3;
			else
				len = p[0] == 0x19 ? 8 : p[0] == 0x59 || p[0] == 0x99 ? 2 : PT_PACKET_BAD;
			break;
		default: len = PT_PACKET_BAD;
		}
	}
	return len > 0 && (size_t)len > n ? PT_PACKET_CUT : len;
}

/* How many of the n bytes at p, where a packet begins, are whole packets. Stops before what is no packet. */
static inline size_t pt_whole_packets(const uint8_t *p, size_t n)
{
	size_t at = 0;
	int block = 0;

	while (at < n) {
		int len = pt_packet_len(p + at, n - at, &block);

		if (len <= 0)
			break;
		at += (size_t)len;
	}
	return at;
}

/*
 * The TSC in the PSB+ that begins at p, of n bytes: how many bytes there are up to the end of it, and *ret;
 * 0: it is not all there, or has none. No more than PT_PSB_PLUS_MAX bytes are looked at.
 */
static inline size_t pt_psb_tsc(const uint8_t *p, size_t n, uint64_t *ret)
{
	int block = 0;

	if (n > PT_PSB_PLUS_MAX)
		n = PT_PSB_PLUS_MAX;
	for (size_t at = 0; at < n;) {
		int len = pt_packet_len(p + at, n - at, &block);

		if (len <= 0 || (size_t)len > n - at ||
		    (p[at] == 0x02 && len == 2 && p[at + 1] == 0x23 /* PSBEND */))
			return 0;
		if (p[at] == 0x19 /* TSC */) {
			*ret = 0;
			memcpy(ret, p + at + 1, 7);
			return at + (size_t)len;
		}
		at += (size_t)len;
	}
	return 0;
}

/*
 * The PSB+ at p, of n bytes: its length and its TSC when it has one and lies in the host, 0 when not, -1 when
 * more bytes are needed. No more than PT_PSB_PLUS_MAX bytes are looked at.
 */
static inline int pt_psb_plus(const uint8_t *p, size_t n, uint64_t *tsc)
{
	bool timed = false;
	size_t at = 0;
	int block = 0;

	if (n > PT_PSB_PLUS_MAX)
		n = PT_PSB_PLUS_MAX;
	while (at < n) {
		int len = pt_packet_len(p + at, n - at, &block);

		if (len == PT_PACKET_CUT)
			return n < PT_PSB_PLUS_MAX ? -1 : 0;
		if (len <= 0)
			return 0;
		if (p[at] == 0x19) {
			*tsc = 0;
			memcpy(tsc, p + at + 1, 7);
			timed = true;
		} else if (p[at] == 0x02 && p[at + 1] == 0x43 && p[at + 2] & 1) {
			return 0; /* PIP.NR: in a guest */
		} else if (p[at] == 0x02 && p[at + 1] == 0x23) {
			return timed ? (int)(at + (size_t)len) : 0; /* PSBEND */
		} else if (p[at] == 0x02 && p[at + 1] == 0xf3) {
			return 0; /* OVF ends it, too */
		}
		at += (size_t)len;
	}
	return n < PT_PSB_PLUS_MAX ? -1 : 0;
}

#endif
