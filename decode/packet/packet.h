/*
 * packet.h - Intel PT bytes to packets. Pure: no state but the caller's, no I/O, no allocation.
 *
 * Encodings: Intel SDM vol. 3, "Intel Processor Trace", "Packet definitions". Names are the SDM's, in the
 * spelling that `pt-decode --packets` prints.
 */
#ifndef DECODE_PACKET_PACKET_H
#define DECODE_PACKET_PACKET_H

#include <stddef.h>
#include <stdint.h>

enum pt_type {
	PT_PAD,
	PT_PSB,
	PT_PSBEND,
	PT_FUP,
	PT_TIP,
	PT_TIP_PGE,
	PT_TIP_PGD,
	PT_TNT_8,
	PT_TNT_64,
	PT_MODE_EXEC,
	PT_MODE_TSX,
	PT_PIP,
	PT_VMCS,
	PT_CBR,
	PT_TSC,
	PT_TMA,
	PT_MTC,
	PT_CYC,
	PT_STOP,
	PT_OVF,
	PT_MNT,
	PT_EXSTOP,
	PT_MWAIT,
	PT_PWRE,
	PT_PWRX,
	PT_PTW,
	PT_BBP,
	PT_BIP,
	PT_BEP,
	PT_CFE,
	PT_EVD,
	PT_TRIG,
	PT_TYPES
};

/* MODE.Exec bits as they stand in the packet. */
enum { PT_EXEC_CSL = 1, PT_EXEC_CSD = 2, PT_EXEC_IF = 4 };
/* MODE.TSX bits. */
enum { PT_TSX_INTX = 1, PT_TSX_ABORT = 2 };
/* TRIG bits: it has an instruction count; more than one trigger of the kind fired. */
enum { PT_TRIG_ICNTV = 1, PT_TRIG_MULT = 2 };

/*
 * A packet. Which fields it has, by type; all others are 0:
 *
 *     TNT_8, TNT_64                n: number of bits; a: the bits, the oldest is bit n-1
 *     TIP, TIP_PGE, TIP_PGD, FUP   n: IPBytes: 0 (no IP), 1 (16 bits), 2 (32), 3 (48, sign-extended), 4
 *                                  (48), 6 (64); a: IP as sent
 *     MODE_EXEC, MODE_TSX          n: PT_EXEC_, PT_TSX_ bits
 *     PIP                          a: CR3; b: NR
 *     VMCS                         a: the VMCS's address
 *     CBR, TSC, MTC, CYC           a: core:bus ratio, TSC, CTC, cycles
 *     TMA                          a: CTC; b: fast counter
 *     MNT                          a: payload
 *     EXSTOP, BEP                  ip
 *     MWAIT                        a: hints; b: extensions
 *     PWRE, PWRX                   a: the payload as it is
 *     PTW                          n: payload bytes; a: payload; ip
 *     BBP                          n: payload bytes of its BIPs, 4 or 8; b: type
 *     BIP                          n: payload bytes; b: id; a: payload
 *     CFE                          n and a: type; b: vector; ip
 *     EVD                          n and b: type; a: payload
 *     TRIG                         n: PT_TRIG_ bits; b: TRBV; a: ICNT; ip
 */
struct pt_packet {
	uint8_t type; /* enum pt_type */
	uint8_t size; /* bytes, 1..PT_PACKET_MAX */
	uint8_t n;
	uint8_t ip; /* 1: a FUP with the IP follows */
	uint32_t b;
	uint64_t a;
};

#define PT_PACKET_MAX 16 /* bytes of the longest packet, PSB */

enum { PT_NEED_MORE_BYTES = 0, PT_BAD_PACKET = -1 };

/*
 * Decodes the packet at p; bytes up to end may be read. bip_bytes: 4 or 8 between a BBP and its BEP (then
 * xxxxx100b is a BIP, not a TNT; SDM, "BIP"), else 0. Returns its size and fills *ret; or
 *
 *  - PT_NEED_MORE_BYTES: what is there is the beginning of a packet;
 *  - PT_BAD_PACKET: an unknown opcode, a reserved encoding of a field (IPBytes, PayloadBytes, the leaf of
 *    MODE, CS.L with CS.D), or a TMA with reserved bits set. Other reserved bits are left out of the payload.
 */
int pt_packet_decode(const uint8_t *p, const uint8_t *end, unsigned bip_bytes, struct pt_packet *ret);

/* The first PSB at or after p: its address, or NULL when [p, end) has no whole one. */
const uint8_t *pt_find_psb(const uint8_t *p, const uint8_t *end);

/* The IP of a TIP* or FUP packet, by the last one (SDM, "IP compression"). ipbytes: pt_packet.n, not 0. */
static inline uint64_t pt_ip(uint64_t last_ip, unsigned ipbytes, uint64_t payload)
{
	switch (ipbytes) {
	case 1: return (last_ip & ~(uint64_t)0xffff) | payload;
	case 2: return (last_ip & ~(uint64_t)0xffffffff) | payload;
	case 3: return (uint64_t)((int64_t)(payload << 16) >> 16);
	case 4: return (last_ip & ~(uint64_t)0xffffffffffff) | payload;
	default: return payload;
	}
}

/* "tip.pge", "tnt.8", ...; "?" for a number that is no type. */
const char *pt_type_name(enum pt_type type);

/* Writes what follows the name in a line of --packets ("3:7ffff7fe4540", "TTN", "ctc=1c fc=2"),
 * NUL-terminated, cut at size. Returns its length. */
size_t pt_packet_text(const struct pt_packet *packet, char *text, size_t size);

#endif
