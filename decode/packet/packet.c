/* packet.c - see packet.h. */
#include "decode/packet/packet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t le(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

static int put(struct pt_packet *ret, enum pt_type type, unsigned size, unsigned n, uint64_t a)
{
	ret->type = (uint8_t)type;
	ret->size = (uint8_t)size;
	ret->n = (uint8_t)n;
	ret->ip = 0;
	ret->b = 0;
	ret->a = a;
	return (int)size;
}

static unsigned top_bit(uint64_t v)
{
	return 63 - (unsigned)__builtin_clzll(v);
}

static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};

/* Packets that begin with 02. `have` bytes are there. */
static int extended(const uint8_t *p, size_t have, struct pt_packet *ret)
{
	unsigned op;

	if (have < 2)
		return PT_NEED_MORE_BYTES;
	op = p[1];
#define NEED(bytes)                                                                                          \
	do {                                                                                                 \
		if (have < (bytes))                                                                          \
			return PT_NEED_MORE_BYTES;                                                           \
	} while (0)

	switch (op) {
	case 0x82:
		if (memcmp(p, psb, have < 16 ? have : 16) != 0)
			return PT_BAD_PACKET;
		NEED(16);
		return put(ret, PT_PSB, 16, 0, 0);
	case 0x23: return put(ret, PT_PSBEND, 2, 0, 0);
	case 0xf3: return put(ret, PT_OVF, 2, 0, 0);
	case 0x83: return put(ret, PT_STOP, 2, 0, 0);
	case 0xa3: {
		uint64_t v;
		unsigned n;

		NEED(8);
		v = le(p + 2, 6);
		if (v == 0) /* no stop bit */
			return PT_BAD_PACKET;
		n = top_bit(v);
		if (n == 0)
			return PT_BAD_PACKET;
		return put(ret, PT_TNT_64, 8, n, v & (((uint64_t)1 << n) - 1));
	}
	case 0x43: {
		uint64_t v;

		NEED(8);
		v = le(p + 2, 6);
		put(ret, PT_PIP, 8, 0, v >> 1 << 5);
		ret->b = v & 1;
		return 8;
	}
	case 0x03: NEED(4); return put(ret, PT_CBR, 4, 0, p[2]);
	case 0x73:
		NEED(7);
		if (p[4] || p[6] & 0xfe)
			return PT_BAD_PACKET;
		put(ret, PT_TMA, 7, 0, le(p + 2, 2));
		ret->b = (uint32_t)le(p + 5, 2);
		return 7;
	case 0xc8: NEED(7); return put(ret, PT_VMCS, 7, 0, le(p + 2, 5) << 12);
	case 0xc3:
		NEED(3);
		if (p[2] != 0x88)
			return PT_BAD_PACKET;
		NEED(11);
		return put(ret, PT_MNT, 11, 0, le(p + 3, 8));
	case 0x62:
	case 0xe2:
		put(ret, PT_EXSTOP, 2, 0, 0);
		ret->ip = op >> 7;
		return 2;
	case 0xc2:
		NEED(10);
		put(ret, PT_MWAIT, 10, 0, p[2]);
		ret->b = p[6] & 3;
		return 10;
	case 0x22: NEED(4); return put(ret, PT_PWRE, 4, 0, le(p + 2, 2) & 0xff80);
	case 0xa2: NEED(7); return put(ret, PT_PWRX, 7, 0, le(p + 2, 2) & 0xfff);
	case 0x63:
		NEED(3);
		put(ret, PT_BBP, 3, p[2] & 0x80 ? 4 : 8, 0);
		ret->b = p[2] & 0x1f;
		return 3;
	case 0x33:
	case 0xb3:
		put(ret, PT_BEP, 2, 0, 0);
		ret->ip = op >> 7;
		return 2;
	case 0x13:
		NEED(4);
		put(ret, PT_CFE, 4, p[2] & 0x1f, p[2] & 0x1f);
		ret->ip = p[2] >> 7;
		ret->b = p[3];
		return 4;
	case 0x53:
		NEED(11);
		put(ret, PT_EVD, 11, p[2] & 0x3f, le(p + 3, 8));
		ret->b = p[2] & 0x3f;
		return 11;
	default: break;
	}
	if ((op & 0x1f) == 0x12) { /* PTW: IP in bit 7, PayloadBytes in bits 6:5 */
		unsigned bytes = op >> 5 & 3;

		if (bytes > 1)
			return PT_BAD_PACKET;
		bytes = bytes ? 8 : 4;
		NEED(2 + bytes);
		put(ret, PT_PTW, 2 + bytes, bytes, le(p + 2, bytes));
		ret->ip = op >> 7;
		return (int)(2 + bytes);
	}
	return PT_BAD_PACKET;
#undef NEED
}

static int cycles(const uint8_t *p, size_t have, struct pt_packet *ret)
{
	uint64_t v = p[0] >> 3;
	unsigned size = 1, shift = 5;

	if (p[0] & 4) {
		for (;;) {
			if (size == 15) /* more than 64 bits of cycles: no CPU sends that */
				return PT_BAD_PACKET;
			if (have <= size)
				return PT_NEED_MORE_BYTES;
			if (shift < 64)
				v |= (uint64_t)(p[size] >> 1) << shift;
			shift += 7;
			if (!(p[size++] & 1))
				break;
		}
	}
	return put(ret, PT_CYC, size, 0, v);
}

static int with_ip(const uint8_t *p, size_t have, enum pt_type type, struct pt_packet *ret)
{
	static const int8_t bytes[8] = {0, 2, 4, 6, 6, -1, 8, -1};
	int n = bytes[p[0] >> 5]; /* NOLINT(bugprone-signed-char-misuse): a number, not a character */

	if (n < 0)
		return PT_BAD_PACKET;
	if (have < 1 + (size_t)n)
		return PT_NEED_MORE_BYTES;
	return put(ret, type, 1 + (unsigned)n, p[0] >> 5, le(p + 1, (unsigned)n));
}

int pt_packet_decode(const uint8_t *p, const uint8_t *end, unsigned bip_bytes, struct pt_packet *ret)
{
	size_t have = (size_t)(end - p);
	unsigned b;

	if (have == 0)
		return PT_NEED_MORE_BYTES;
	b = p[0];
	if (b == 0)
		return put(ret, PT_PAD, 1, 0, 0);
	if (b == 2)
		return extended(p, have, ret);
	if (bip_bytes && (b & 7) == 4) {
		if (have < 1 + bip_bytes)
			return PT_NEED_MORE_BYTES;
		put(ret, PT_BIP, 1 + bip_bytes, bip_bytes, le(p + 1, bip_bytes));
		ret->b = b >> 3;
		return (int)(1 + bip_bytes);
	}
	if (!(b & 1)) {
		unsigned n = top_bit(b) - 1;

		return put(ret, PT_TNT_8, 1, n, b >> 1 & ((1u << n) - 1));
	}
	if ((b & 3) == 3)
		return cycles(p, have, ret);
	switch (b & 0x1f) {
	case 0x0d: return with_ip(p, have, PT_TIP, ret);
	case 0x11: return with_ip(p, have, PT_TIP_PGE, ret);
	case 0x01: return with_ip(p, have, PT_TIP_PGD, ret);
	case 0x1d: return with_ip(p, have, PT_FUP, ret);
	default: break;
	}
	switch (b) {
	case 0x19:
		if (have < 8)
			return PT_NEED_MORE_BYTES;
		return put(ret, PT_TSC, 8, 0, le(p + 1, 7));
	case 0x59:
		if (have < 2)
			return PT_NEED_MORE_BYTES;
		return put(ret, PT_MTC, 2, 0, p[1]);
	case 0x99:
		if (have < 2)
			return PT_NEED_MORE_BYTES;
		if (p[1] >> 5 == 0) {
			if ((p[1] & (PT_EXEC_CSL | PT_EXEC_CSD)) == (PT_EXEC_CSL | PT_EXEC_CSD))
				return PT_BAD_PACKET; /* no such mode */
			return put(ret, PT_MODE_EXEC, 2, p[1] & 7, 0);
		}
		if (p[1] >> 5 == 1)
			return put(ret, PT_MODE_TSX, 2, p[1] & 3, 0);
		return PT_BAD_PACKET;
	case 0xd9: { /* libipt's pt_pkt_read_trig() tells the bits */
		unsigned size;

		if (have < 2)
			return PT_NEED_MORE_BYTES;
		size = p[1] & 0x40 ? 5 : 3;
		if (have < size)
			return PT_NEED_MORE_BYTES;
		put(ret, PT_TRIG, size, (p[1] >> 6 & 1) * PT_TRIG_ICNTV + (p[1] >> 5 & 1) * PT_TRIG_MULT,
		    size == 5 ? le(p + 3, 2) : 0);
		ret->ip = p[1] >> 7;
		ret->b = p[2];
		return (int)size;
	}
	default: return PT_BAD_PACKET;
	}
}

const uint8_t *pt_find_psb(const uint8_t *p, const uint8_t *end)
{
	if (p >= end)
		return NULL;
	return memmem(p, (size_t)(end - p), psb, sizeof psb);
}

static const char *const names[PT_TYPES] = {
    [PT_PAD] = "pad",	    [PT_PSB] = "psb",	      [PT_PSBEND] = "psbend",	[PT_FUP] = "fup",
    [PT_TIP] = "tip",	    [PT_TIP_PGE] = "tip.pge", [PT_TIP_PGD] = "tip.pgd", [PT_TNT_8] = "tnt.8",
    [PT_TNT_64] = "tnt.64", [PT_MODE_EXEC] = "mode",  [PT_MODE_TSX] = "mode",	[PT_PIP] = "pip",
    [PT_VMCS] = "vmcs",	    [PT_CBR] = "cbr",	      [PT_TSC] = "tsc",		[PT_TMA] = "tma",
    [PT_MTC] = "mtc",	    [PT_CYC] = "cyc",	      [PT_STOP] = "stop",	[PT_OVF] = "ovf",
    [PT_MNT] = "mnt",	    [PT_EXSTOP] = "exstop",   [PT_MWAIT] = "mwait",	[PT_PWRE] = "pwre",
    [PT_PWRX] = "pwrx",	    [PT_PTW] = "ptw",	      [PT_BBP] = "bbp",		[PT_BIP] = "bip",
    [PT_BEP] = "bep",	    [PT_CFE] = "cfe",	      [PT_EVD] = "evd",		[PT_TRIG] = "trig",
};

const char *pt_type_name(enum pt_type type)
{
	return (unsigned)type < PT_TYPES ? names[type] : "?";
}

static int text(const struct pt_packet *k, char *s, size_t size)
{
	unsigned a = (unsigned)k->a;

	switch ((enum pt_type)k->type) {
	case PT_FUP:
	case PT_TIP:
	case PT_TIP_PGE:
	case PT_TIP_PGD: return snprintf(s, size, "%u:%" PRIx64, k->n, k->a);
	case PT_MODE_EXEC:
		return snprintf(s, size, "exec csl=%d csd=%d%s", !!(k->n & PT_EXEC_CSL),
				!!(k->n & PT_EXEC_CSD), k->n & PT_EXEC_IF ? " if=1" : "");
	case PT_MODE_TSX:
		return snprintf(s, size, "tsx intx=%d abrt=%d", !!(k->n & PT_TSX_INTX),
				!!(k->n & PT_TSX_ABORT));
	case PT_PIP: return snprintf(s, size, "cr3=%" PRIx64 " nr=%u", k->a, k->b);
	case PT_VMCS:
	case PT_TSC:
	case PT_MTC:
	case PT_CYC:
	case PT_MNT: return snprintf(s, size, "%" PRIx64, k->a);
	case PT_CBR: return snprintf(s, size, "%" PRIu64, k->a);
	case PT_TMA: return snprintf(s, size, "ctc=%" PRIx64 " fc=%x", k->a, k->b);
	case PT_EXSTOP:
	case PT_BEP: return snprintf(s, size, "ip=%d", k->ip);
	case PT_MWAIT: return snprintf(s, size, "hints=%" PRIx64 " ext=%x", k->a, k->b);
	case PT_PWRE: return snprintf(s, size, "c%u.%u hw=%u", a >> 12 & 15, a >> 8 & 15, a >> 7 & 1);
	case PT_PWRX:
		return snprintf(s, size, "last=%u deepest=%u int=%u st=%u aut=%u", a >> 4 & 15, a & 15,
				a >> 8 & 1, a >> 10 & 1, a >> 11 & 1);
	case PT_PTW: return snprintf(s, size, "plc=%d ip=%d %" PRIx64, k->n == 8, k->ip, k->a);
	case PT_BBP: return snprintf(s, size, "type=%x bytes=%u", k->b, k->n);
	case PT_BIP: return snprintf(s, size, "id=%x %" PRIx64, k->b, k->a);
	case PT_CFE: return snprintf(s, size, "type=%u vector=%u ip=%d", a, k->b, k->ip);
	case PT_EVD: return snprintf(s, size, "type=%u %" PRIx64, k->b, k->a);
	case PT_TRIG:
		if (k->n & PT_TRIG_ICNTV)
			return snprintf(s, size, "trbv=%x ip=%d mult=%d icnt=%u", k->b, k->ip,
					!!(k->n & PT_TRIG_MULT), a);
		return snprintf(s, size, "trbv=%x ip=%d mult=%d", k->b, k->ip, !!(k->n & PT_TRIG_MULT));
	default: s[0] = 0; return 0;
	}
}

size_t pt_packet_text(const struct pt_packet *k, char *s, size_t size)
{
	int n;

	if (k->type == PT_TNT_8 || k->type == PT_TNT_64) {
		size_t i;

		for (i = 0; i < k->n && i + 1 < size; i++)
			s[i] = k->a >> (k->n - 1 - i) & 1 ? 'T' : 'N';
		s[i] = 0;
		return i;
	}
	n = text(k, s, size);
	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}
