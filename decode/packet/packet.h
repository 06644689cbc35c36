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
/* TRIG: an instruction count follows; more than one trigger of the kind fired. */
enum { PT_TRIG_ICNTV = 1, PT_TRIG_MULT = 2 };

struct pt_packet {
	uint8_t type; /* enum pt_type */
	uint8_t size; /* bytes, 1..16 */
	/* TIP*, FUP: IPBytes, 0 (suppressed), 1 (16 bit), 2 (32), 3 (48, sign-extended), 4 (48), 6 (64).
	 * TNT: number of bits. MODE: its bits. PTW: payload bytes. BBP, BIP: payload bytes of a BIP (4 or 8).
	 * TRIG: PT_TRIG_ bits. */
	uint8_t n;
	uint8_t ip; /* PTW, EXSTOP, BEP, CFE, TRIG: 1 when a FUP with the IP follows */
	/* TMA: fast counter. PIP: NR. MWAIT: extensions. CFE: vector. EVD, BBP, BIP: type or id. TRIG: TRBV. */
	uint32_t b;
	/* The payload: IP as sent, TNT bits (the oldest is bit n-1), TSC, CTC, cycles, CR3, ICNT, ... */
	uint64_t a;
};

#define PT_PACKET_MAX 16 /* bytes of the longest packet, PSB */

enum { PT_NEED_MORE_BYTES = 0, PT_BAD_PACKET = -1 };

/*
 * Decodes the packet at p; bytes up to end may be read. Returns its size (1..16) and fills *ret, or
 * PT_NEED_MORE_BYTES (the bytes are the beginning of a packet), or PT_BAD_PACKET: an unknown opcode, a reserved
 * encoding of a field (IPBytes, PayloadBytes, the leaf of MODE, CS.L with CS.D), or reserved bits of a TMA that are
 * set. Other reserved bits are left out of the payload.
 * bip_bytes: 4 or 8 between a BBP and its BEP (then xxxxx100b is a BIP, not a TNT; SDM, "BIP"), else 0.
 */
int pt_packet_decode(const uint8_t *p, const uint8_t *end, unsigned bip_bytes, struct pt_packet *ret);

/* The first PSB at or after p: its address, or NULL when [p, end) holds no complete one. */
const uint8_t *pt_find_psb(const uint8_t *p, const uint8_t *end);

/* The IP of a TIP* or FUP packet, given the last IP (SDM, "IP compression"). ipbytes as pt_packet.n, not 0. */
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

/* "tip.pge", "tnt.8", ... ; never NULL. */
const char *pt_type_name(enum pt_type type);

/* Writes what follows the name in a line of --packets ("3:7ffff7fe4540", "TTN", "ctc=1c fc=2"), NUL-terminated,
 * cut at size. Returns its length. */
size_t pt_packet_text(const struct pt_packet *packet, char *text, size_t size);

#endif
