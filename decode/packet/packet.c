/* packet.c - see packet.h. */
#include "decode/packet/packet.h"

#include <inttypes.h>
#include <stdbool.h>
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

/* ---- Packets that begin with 02 --------------------------------------------------------------------- */

/* By the second byte. size 0: no packet. Bit 7 of PTW, EXSTOP and BEP is IP; bit 5 of PTW is PayloadBytes. */
static const struct {
	uint8_t size, type;
} extended[256] = {
    [0x03] = {4, PT_CBR},    [0x12] = {6, PT_PTW},    [0x13] = {4, PT_CFE},    [0x22] = {4, PT_PWRE},
    [0x23] = {2, PT_PSBEND}, [0x32] = {10, PT_PTW},   [0x33] = {2, PT_BEP},    [0x43] = {8, PT_PIP},
    [0x53] = {11, PT_EVD},   [0x62] = {2, PT_EXSTOP}, [0x63] = {3, PT_BBP},    [0x73] = {7, PT_TMA},
    [0x82] = {16, PT_PSB},   [0x83] = {2, PT_STOP},   [0x92] = {6, PT_PTW},    [0xa2] = {7, PT_PWRX},
    [0xa3] = {8, PT_TNT_64}, [0xb2] = {10, PT_PTW},   [0xb3] = {2, PT_BEP},    [0xc2] = {10, PT_MWAIT},
    [0xc3] = {11, PT_MNT},   [0xc8] = {7, PT_VMCS},   [0xe2] = {2, PT_EXSTOP}, [0xf3] = {2, PT_OVF},
};

/* The packet is all there, and *ret has its type and size. False: it is none. */
static bool extended_fields(const uint8_t *p, struct pt_packet *ret)
{
	uint64_t v;

	switch ((enum pt_type)ret->type) {
	case PT_TNT_64:
		v = le(p + 2, 6);
		if (v <= 1) /* no stop bit, or no bit below it */
			return false;
		ret->n = (uint8_t)top_bit(v);
		ret->a = v & (((uint64_t)1 << ret->n) - 1);
		break;
	case PT_PIP:
		v = le(p + 2, 6);
		ret->a = v >> 1 << 5;
		ret->b = v & 1;
		break;
	case PT_TMA:
		ret->a = le(p + 2, 2);
		ret->b = (uint32_t)le(p + 5, 2);
		return !p[4] && !(p[6] & 0xfe);
	case PT_CBR: ret->a = p[2]; break;
	case PT_VMCS: ret->a = le(p + 2, 5) << 12; break;
	case PT_MNT: ret->a = le(p + 3, 8); break;
	case PT_EXSTOP:
	case PT_BEP: ret->ip = p[1] >> 7; break;
	case PT_MWAIT:
		ret->a = p[2];
		ret->b = p[6] & 3;
		break;
	case PT_PWRE: ret->a = le(p + 2, 2) & 0xff80; break;
	case PT_PWRX: ret->a = le(p + 2, 2) & 0xfff; break;
	case PT_BBP:
		ret->n = p[2] & 0x80 ? 4 : 8;
		ret->b = p[2] & 0x1f;
		break;
	case PT_CFE:
		ret->n = p[2] & 0x1f;
		ret->a = p[2] & 0x1f;
		ret->ip = p[2] >> 7;
		ret->b = p[3];
		break;
	case PT_EVD:
		ret->n = p[2] & 0x3f;
		ret->a = le(p + 3, 8);
		ret->b = p[2] & 0x3f;
		break;
	case PT_PTW:
		ret->n = ret->size - 2;
		ret->a = le(p + 2, ret->n);
		ret->ip = p[1] >> 7;
		break;
	default: break;
	}
	return true;
}

static int decode_extended(const uint8_t *p, size_t have, struct pt_packet *ret)
{
	unsigned size;
	enum pt_type type;

	if (have < 2)
		return PT_NEED_MORE_BYTES;
	size = extended[p[1]].size;
	type = (enum pt_type)extended[p[1]].type;
	if (!size || (type == PT_PSB && memcmp(p, psb, have < size ? have : size) != 0) ||
	    (type == PT_MNT && have > 2 && p[2] != 0x88))
		return PT_BAD_PACKET;
	if (have < size)
		return PT_NEED_MORE_BYTES;
	put(ret, type, size, 0, 0);
	return extended_fields(p, ret) ? (int)size : PT_BAD_PACKET;
}

/* ---- All others ------------------------------------------------------------------------------------- */

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

static int mode(const uint8_t *p, struct pt_packet *ret)
{
	switch (p[1] >> 5) {
	case 0:
		if ((p[1] & (PT_EXEC_CSL | PT_EXEC_CSD)) == (PT_EXEC_CSL | PT_EXEC_CSD))
			return PT_BAD_PACKET; /* no such mode */
		return put(ret, PT_MODE_EXEC, 2, p[1] & 7, 0);
	case 1: return put(ret, PT_MODE_TSX, 2, p[1] & 3, 0);
	default: return PT_BAD_PACKET;
	}
}

/* The bits are those of libipt's pt_pkt_read_trig(). */
static int trig(const uint8_t *p, size_t have, struct pt_packet *ret)
{
	bool icnt = p[1] & 0x40, mult = p[1] & 0x20;
	unsigned size = icnt ? 5 : 3;

	if (have < size)
		return PT_NEED_MORE_BYTES;
	put(ret, PT_TRIG, size, icnt * PT_TRIG_ICNTV + mult * PT_TRIG_MULT, icnt ? le(p + 3, 2) : 0);
	ret->ip = p[1] >> 7;
	ret->b = p[2];
	return (int)size;
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
		return decode_extended(p, have, ret);
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
	case 0x19: return have < 8 ? PT_NEED_MORE_BYTES : put(ret, PT_TSC, 8, 0, le(p + 1, 7));
	case 0x59: return have < 2 ? PT_NEED_MORE_BYTES : put(ret, PT_MTC, 2, 0, p[1]);
	case 0x99: return have < 2 ? PT_NEED_MORE_BYTES : mode(p, ret);
	case 0xd9: return have < 2 ? PT_NEED_MORE_BYTES : trig(p, have, ret);
	default: return PT_BAD_PACKET;
	}
}

const uint8_t *pt_find_psb(const uint8_t *p, const uint8_t *end)
{
	if (p >= end)
		return NULL;
	return memmem(p, (size_t)(end - p), psb, sizeof psb);
}

/* ---- Names and text --------------------------------------------------------------------------------- */

/* clang-format off */
static const char *const names[PT_TYPES] = {
	[PT_PAD] = "pad", [PT_PSB] = "psb", [PT_PSBEND] = "psbend", [PT_FUP] = "fup",
	[PT_TIP] = "tip", [PT_TIP_PGE] = "tip.pge", [PT_TIP_PGD] = "tip.pgd",
	[PT_TNT_8] = "tnt.8", [PT_TNT_64] = "tnt.64", [PT_MODE_EXEC] = "mode",
	[PT_MODE_TSX] = "mode", [PT_PIP] = "pip", [PT_VMCS] = "vmcs", [PT_CBR] = "cbr",
	[PT_TSC] = "tsc", [PT_TMA] = "tma", [PT_MTC] = "mtc", [PT_CYC] = "cyc",
	[PT_STOP] = "stop", [PT_OVF] = "ovf", [PT_MNT] = "mnt", [PT_EXSTOP] = "exstop",
	[PT_MWAIT] = "mwait", [PT_PWRE] = "pwre", [PT_PWRX] = "pwrx", [PT_PTW] = "ptw",
	[PT_BBP] = "bbp", [PT_BIP] = "bip", [PT_BEP] = "bep", [PT_CFE] = "cfe",
	[PT_EVD] = "evd", [PT_TRIG] = "trig",
};
/* clang-format on */

const char *pt_type_name(enum pt_type type)
{
	return (unsigned)type < PT_TYPES ? names[type] : "?";
}

/* All but TNT. */
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
