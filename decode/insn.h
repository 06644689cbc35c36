/*
 * insn.h - what a PT decoder must know of an x86 instruction: its length, its class, its target.
 *
 * Pure: bytes in, struct out; no globals, no allocation, no I/O. Lengths are never wrong: an encoding that no
 * CPU decodes is INSN_INVALID, not a guess. What decides is the opcode with its mandatory prefix, its /r,
 * memory or register form, and LOCK. Where only another field raises #UD (VEX.W, L, vvvv, a mask), or the
 * instruction is there to raise it (UD0, UD1, UD2), the length is that of the encoding.
 *
 * The classes follow the Intel SDM, vol. 3, "Change of Flow Instruction (COFI) tracing": they say which
 * packet the instruction can cause. pt-capture's step engine uses this too (the one thing shared beside
 * schema/).
 */
#ifndef DECODE_INSN_H
#define DECODE_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_mode { INSN_64, INSN_32, INSN_16 }; /* CS.L=1; CS.D=1; CS.D=0 */

enum insn_class {
	INSN_OTHER,    /* falls through; no packet */
	INSN_JCC,      /* conditional near branch, LOOPcc and JrCXZ too: one TNT bit */
	INSN_JMP,      /* near direct, unconditional: no packet */
	INSN_CALL,     /* near direct: no packet */
	INSN_JMP_IND,  /* near indirect: TIP */
	INSN_CALL_IND, /* near indirect: TIP */
	INSN_RET,      /* near return: TIP, or a TNT bit when compressed */
	/* Far transfers: TIP, or TIP.PGD when tracing stops with them. */
	INSN_SYSCALL, /* SYSCALL, SYSENTER */
	INSN_SYSRET,  /* SYSRET, SYSEXIT */
	INSN_INT,     /* INT n, INT3, INT1, INTO */
	INSN_IRET,    /* IRET; also UIRET */
	INSN_JMP_FAR,
	INSN_CALL_FAR,
	INSN_RET_FAR,
	INSN_ERET,    /* FRED: ERETS, ERETU */
	INSN_VMENTRY, /* VMLAUNCH, VMRESUME: far when they succeed, fall through when they fail */
	INSN_RSM,
	/* Not branches, but packets bind to them. */
	INSN_VMCALL,  /* VMCALL, VMFUNC: may cause an exit; falls through otherwise */
	INSN_MOV_CR3, /* mov to cr3: PIP */
	INSN_VMPTRLD, /* VMCS packet */
	INSN_PTWRITE, /* PTW packet; operand size in `ptw_bytes` */
	INSN_XBEGIN,  /* falls through; an abort is asynchronous and leads to `rel` */
	INSN_MWAIT,   /* MWAIT, UMWAIT, TPAUSE: power packets */
	INSN_HLT
};

struct insn {
	uint8_t len;	   /* 1..15 bytes */
	uint8_t cls;	   /* enum insn_class */
	uint8_t ptw_bytes; /* INSN_PTWRITE: 4 or 8, else 0 */
	uint8_t opsize16;  /* a near branch cuts IP to 16 bits; 0 in 64-bit mode and for XBEGIN */
	int32_t rel; /* INSN_JCC, JMP, CALL, XBEGIN: signed displacement from the next instruction, else 0 */
};

enum {
	INSN_INVALID = -1,  /* no x86-64 CPU executes these bytes: undefined, or longer than 15 */
	INSN_TRUNCATED = -2 /* the n bytes are the beginning of a longer instruction */
};

/*
 * Decodes the instruction at p, of which n bytes (any number, 0 too) may be read.
 * Returns its length, 1..15, and fills *ret; or INSN_INVALID or INSN_TRUNCATED, and *ret is untouched.
 *
 * Direct near branches use Intel's rule in 64-bit mode: operand-size prefix 66 is ignored for them
 * (rel32 remains; SDM vol. 2, Jcc/JMP/CALL).
 */
int insn_decode(const uint8_t *p, size_t n, enum insn_mode mode, struct insn *ret);

/* The target of a direct branch at ip. */
static inline uint64_t insn_target(const struct insn *in, uint64_t ip, enum insn_mode mode)
{
	uint64_t to = ip + in->len + (uint64_t)(int64_t)in->rel;

	if (mode == INSN_64)
		return to;
	/* 16-bit code above 64 KB: the address holds its segment's base, which is not cut. */
	if (mode == INSN_16 && ip > 0xffff)
		return to & 0xffffffff;
	return in->opsize16 ? to & 0xffff : to & 0xffffffff;
}

/*
 * False when insn_target() may be wrong. On CPUs with linear IPs (CPUID.14H:ECX.LIP; SDM, "Packet Decoding of
 * RIP versus LIP") addresses hold the code segment's base, which cannot be separated from IP. In 16-bit code
 * IP is cut to 16 bits before the base is added. So for a branch across a multiple of 64 KB it is not known
 * whether IP was cut.
 */
static inline bool insn_target_sure(const struct insn *in, uint64_t ip, enum insn_mode mode)
{
	uint64_t next = (ip + in->len) & 0xffffffff;

	return mode != INSN_16 || !in->opsize16 || (next + (uint64_t)(int64_t)in->rel) >> 16 == next >> 16;
}

/* A short name for a class: "jcc", "call indirect"; never NULL. */
const char *insn_class_name(enum insn_class cls);

#endif
