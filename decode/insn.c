/*
 * insn.c - x86 instruction lengths and branch classes from tables.
 *
 * A table entry says everything about an opcode that its ModRM byte cannot change: whether there is one,
 * the immediate's size, the mandatory prefixes it accepts, its class. What ModRM does change is in group().
 *
 * An opcode is judged by its number, mandatory prefix, group digit (/r), and memory or register form. Fields
 * that can only raise #UD without changing the length (VEX.L, W, vvvv, reserved registers, CPUID features)
 * are not looked at. Beside the SDM's opcodes the tables hold those that only AMD or VIA execute: 3DNow!,
 * XOP, FMA4, SSE4a, SVM, PadLock; a decoder that rejected them would be wrong on those CPUs. Not known: APX
 * (REX2, EVEX map 4).
 */
#include <stdbool.h>

#include "decode/insn.h"

enum { MAX_LEN = 15 };

/* A mandatory prefix, numbered as in VEX.pp. F2 and F3 win over 66, the last of them over the first. */
enum { PP_NONE, PP_66, PP_F3, PP_F2 };

enum imm {
	IMM_NONE,
	IMM_8,
	IMM_16,
	IMM_16_8, /* ENTER */
	IMM_8_8,  /* EXTRQ, INSERTQ */
	IMM_32,
	IMM_Z,	 /* by operand size, 4 bytes at most */
	IMM_V,	 /* by operand size */
	IMM_FAR, /* by operand size, and a selector */
	IMM_REL8,
	IMM_RELZ,  /* as IMM_Z, but 66 is ignored in 64-bit mode */
	IMM_MOFFS, /* by address size */
	IMM_3DNOW  /* the real opcode, after the operands */
};

/* Bytes by operand (IMM_MOFFS: address) size: 16, 32, 64 bits. */
static const uint8_t imm_bytes[][3] = {
    [IMM_NONE] = {0, 0, 0},  [IMM_8] = {1, 1, 1},    [IMM_16] = {2, 2, 2},   [IMM_16_8] = {3, 3, 3},
    [IMM_8_8] = {2, 2, 2},   [IMM_32] = {4, 4, 4},   [IMM_Z] = {2, 4, 4},    [IMM_V] = {2, 4, 8},
    [IMM_FAR] = {4, 6, 6},   [IMM_REL8] = {1, 1, 1}, [IMM_RELZ] = {2, 4, 4}, [IMM_MOFFS] = {2, 4, 8},
    [IMM_3DNOW] = {1, 1, 1},
};

/*
 * A table entry; 0 is an undefined opcode. Bits 0-3: enum imm; 4-8: enum insn_class; 9-12: accepted
 * mandatory prefixes, a bit for each PP_; then flags.
 */
#define CLS(c)	     ((uint32_t)(c) << 4)
#define PP(mask)     ((uint32_t)(mask) << 9)
#define MODRM	     (1u << 13)
#define MEM	     (1u << 14) /* memory form only */
#define REG	     (1u << 15) /* register form only */
#define GROUP	     (1u << 16) /* ask group() */
#define LOCKABLE     (1u << 17) /* the memory form takes a LOCK */
#define NOT64	     (1u << 18) /* undefined in 64-bit mode */
#define PREFIX	     (1u << 19)
#define ALWAYSREG    (1u << 20) /* ModRM.mod is ignored: register form */

#define ENTRY_IMM(e) ((e)&0xf)
#define ENTRY_CLS(e) ((e) >> 4 & 0x1f)
#define ENTRY_PP(e)  ((e) >> 9 & 0xf)

/* The tables' alphabet. s(mask): an SSE or MMX opcode. */
/* clang-format off */
#define N	PP(15)
#define M	(N | MODRM)
#define G	(M | GROUP)
#define L	(M | LOCKABLE)
#define m	(M | MEM)
#define B	(N | IMM_8)
#define Z	(N | IMM_Z)
#define V	(N | IMM_V)
#define O	(N | IMM_MOFFS)
#define MB	(M | IMM_8)
#define MZ	(M | IMM_Z)
#define GB	(G | IMM_8)
#define GZ	(G | IMM_Z)
#define LB	(L | IMM_8)
#define LZ	(L | IMM_Z)
#define n	(N | NOT64)
#define nB	(B | NOT64)
#define nm	(m | NOT64)
#define P	PREFIX
#define J	(N | IMM_REL8 | CLS(INSN_JCC))
#define JZ	(N | IMM_RELZ | CLS(INSN_JCC))
#define T(c)	(N | CLS(INSN_##c))
#define s(mask)	(PP(mask) | MODRM)
#define X	0

static const uint32_t map0[256] = {
	/* 00 */ L, L, M, M, B, Z, n, n,  L, L, M, M, B, Z, n, X,
	/* 10 */ L, L, M, M, B, Z, n, n,  L, L, M, M, B, Z, n, n,
	/* 20 */ L, L, M, M, B, Z, P, n,  L, L, M, M, B, Z, P, n,
	/* 30 */ L, L, M, M, B, Z, P, n,  M, M, M, M, B, Z, P, n,
	/* 40 */ N, N, N, N, N, N, N, N,  N, N, N, N, N, N, N, N, /* REX in 64-bit mode */
	/* 50 */ N, N, N, N, N, N, N, N,  N, N, N, N, N, N, N, N,
	/* 60 */ n, n, nm, M, P, P, P, P, Z, MZ, B, MB, N, N, N, N,
	/* 70 */ J, J, J, J, J, J, J, J,  J, J, J, J, J, J, J, J,
	/* 80 */ LB, LZ, LB | NOT64, LB, M, M, L, L,  M, M, M, M, G, m, G, G,
	/* 90 */ N, N, N, N, N, N, N, N,
	/* 98 */ N, N, T(CALL_FAR) | IMM_FAR | NOT64, N, N, N, N, N,
	/* a0 */ O, O, O, O, N, N, N, N,  B, Z, N, N, N, N, N, N,
	/* b0 */ B, B, B, B, B, B, B, B,  V, V, V, V, V, V, V, V,
	/* c0 */ MB, MB, T(RET) | IMM_16, T(RET), nm, nm, GB, GZ,
	/* c8 */ N | IMM_16_8, N, T(RET_FAR) | IMM_16, T(RET_FAR), T(INT), T(INT) | IMM_8, T(INT) | NOT64, T(IRET),
	/* d0 */ M, M, M, M, nB, nB, n, N,  G, G, G, G, G, G, G, G,
	/* e0 */ J, J, J, J, B, B, B, B,
	/* e8 */ T(CALL) | IMM_RELZ, T(JMP) | IMM_RELZ, T(JMP_FAR) | IMM_FAR | NOT64, T(JMP) | IMM_REL8, N, N, N, N,
	/* f0 */ P, T(INT), P, P, T(HLT), N, G, G,  N, N, N, N, N, N, G, G,
};

static const uint32_t map1[256] = {
	/* 00 */ G, G, M, M, X, T(SYSCALL), N, T(SYSRET),  N, N, X, N, X, M, N, M | IMM_3DNOW,
	/* 10 */ s(15), s(15), G, s(3) | MEM, s(3), s(3), G, s(3) | MEM,  M, M, M, M, M, M, M, M,
	/* 20 */ G | ALWAYSREG, G | ALWAYSREG, G | ALWAYSREG, G | ALWAYSREG, X, X, X, X,
	/* 28 */ s(3), s(3), s(15), s(15) | MEM, s(15), s(15), s(3), s(3),
	/* 30 */ N, N, N, N, T(SYSCALL), T(SYSRET), X, PP(1),  X, X, X, X, X, X, X, X,
	/* 40 */ M, M, M, M, M, M, M, M,  M, M, M, M, M, M, M, M,
	/* 50 */ s(3) | REG, s(15), s(5), s(5), s(3), s(3), s(3), s(3),
	/* 58 */ s(15), s(15), s(15), s(7), s(15), s(15), s(15), s(15),
	/* 60 */ s(3), s(3), s(3), s(3), s(3), s(3), s(3), s(3),
	/* 68 */ s(3), s(3), s(3), s(3), s(2), s(2), s(3), s(7),
	/* 70 */ s(15) | IMM_8, s(3) | REG | GROUP | IMM_8, s(3) | REG | GROUP | IMM_8, s(3) | REG | GROUP | IMM_8,
	/* 74 */ s(3), s(3), s(3), PP(1), s(11) | GROUP, s(11) | GROUP, X, X, s(10), s(10), s(7), s(7),
	/* 80 */ JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ,  JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ,
	/* 90 */ M, M, M, M, M, M, M, M,  M, M, M, M, M, M, M, M,
	/* a0 */ N, N, N, M, MB, M, G | REG, G | REG,  N, N, T(RSM), L, MB, M, G, M,
	/* b0 */ L, L, m, L, m, m, M, M,  s(4), M, GB, L, M, M, M, M,
	/* c0 */ L, L, s(15) | IMM_8, s(1) | MEM, s(3) | IMM_8, s(3) | REG | IMM_8, s(3) | IMM_8, G,
	/* c8 */ N, N, N, N, N, N, N, N,
	/* d0 */ s(10), s(3), s(3), s(3), s(3), s(3), G, s(3) | REG,  s(3), s(3), s(3), s(3), s(3), s(3), s(3), s(3),
	/* e0 */ s(3), s(3), s(3), s(3), s(3), s(3), s(14), s(3) | MEM,  s(3), s(3), s(3), s(3), s(3), s(3), s(3), s(3),
	/* f0 */ s(8) | MEM, s(3), s(3), s(3), s(3), s(3), s(3), s(3) | REG,  s(3), s(3), s(3), s(3), s(3), s(3), s(3), M,
};
#undef N
#undef M
#undef G
#undef L
#undef m
#undef B
#undef Z
#undef V
#undef O
#undef MB
#undef MZ
#undef GB
#undef GZ
#undef LB
#undef LZ
#undef n
#undef nB
#undef nm
#undef P
#undef J
#undef JZ
#undef T
#undef s
#undef X

/*
 * The three maps that VEX and EVEX share with legacy opcodes: 0F (map1 above has its legacy half), 0F 38,
 * 0F 3A. Hexadecimal digits of an entry, low to high: the mandatory prefixes (a bit for each PP_) that the
 * opcode accepts as legacy, as VEX, as EVEX; then 1: memory only as legacy, 2: as VEX, 4: as EVEX, 8: register
 * only in all three.
 */
static const uint16_t vec1[256] = {
	/* 00 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 08 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 10 */ 0x0ff0, 0x0ff0, 0x0ff0, 0x6330, 0x0330, 0x0330, 0x0770, 0x6330,
	/* 18 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 20 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 28 */ 0x0330, 0x0330, 0x0cc0, 0x6330, 0x0cc0, 0x0cc0, 0x0f30, 0x0f30,
	/* 30 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 38 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 40 */ 0x0000, 0x8030, 0x8030, 0x8000, 0x8030, 0x8030, 0x8030, 0x8030,
	/* 48 */ 0x8000, 0x8000, 0x8030, 0x8030, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 50 */ 0x8030, 0x0ff0, 0x0050, 0x0050, 0x0330, 0x0330, 0x0330, 0x0330,
	/* 58 */ 0x0ff0, 0x0ff0, 0x0ff0, 0x0770, 0x0ff0, 0x0ff0, 0x0ff0, 0x0ff0,
	/* 60 */ 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220,
	/* 68 */ 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0e60,
	/* 70 */ 0x0ee0, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0010,
	/* 78 */ 0x0f00, 0x0f00, 0x0e00, 0x0e00, 0x00a0, 0x00a0, 0x0660, 0x0e60,
	/* 80 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 88 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 90 */ 0x0030, 0x2030, 0x80b0, 0x80b0, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 98 */ 0x8030, 0x8030, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* a0 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* a8 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x2010, 0x0000,
	/* b0 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* b8 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* c0 */ 0x0000, 0x0000, 0x0ff0, 0x0000, 0x0220, 0x8220, 0x0330, 0x0000,
	/* c8 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* d0 */ 0x00a0, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x8020,
	/* d8 */ 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220,
	/* e0 */ 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0ee0, 0x6220,
	/* e8 */ 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220,
	/* f0 */ 0x2080, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x8020,
	/* f8 */ 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0000,
};
static const uint16_t vec2[256] = {
	/* 00 */ 0x0223, 0x0023, 0x0023, 0x0023, 0x0223, 0x0023, 0x0023, 0x0023,
	/* 08 */ 0x0023, 0x0023, 0x0023, 0x0223, 0x0220, 0x0220, 0x0020, 0x0020,
	/* 10 */ 0x0602, 0x0600, 0x0600, 0x0620, 0x0602, 0x0602, 0x0220, 0x0022,
	/* 18 */ 0x0220, 0x0220, 0x6220, 0x4200, 0x0223, 0x0223, 0x0223, 0x0200,
	/* 20 */ 0x0622, 0x0622, 0x0622, 0x0622, 0x0622, 0x0622, 0x0600, 0x0600,
	/* 28 */ 0x0622, 0x0622, 0x3622, 0x0222, 0x2220, 0x2220, 0x2020, 0x2020,
	/* 30 */ 0x0622, 0x0622, 0x0622, 0x0622, 0x0622, 0x0622, 0x0220, 0x0222,
	/* 38 */ 0x0622, 0x0622, 0x0622, 0x0222, 0x0222, 0x0222, 0x0222, 0x0222,
	/* 40 */ 0x0222, 0x0022, 0x0200, 0x0200, 0x0200, 0x0220, 0x0220, 0x0220,
	/* 48 */ 0x8030, 0x00b0, 0x26a0, 0x20e0, 0x0200, 0x0200, 0x0200, 0x0200,
	/* 50 */ 0x0ff0, 0x0ff0, 0x0f20, 0x0a20, 0x0200, 0x0200, 0x0000, 0x0000,
	/* 58 */ 0x0220, 0x0220, 0x6220, 0x4200, 0x80c0, 0x0000, 0x80f0, 0x0000,
	/* 60 */ 0x0000, 0x0000, 0x0200, 0x0200, 0x0200, 0x0200, 0x0200, 0x0200,
	/* 68 */ 0x0800, 0x0000, 0x0000, 0x0000, 0x8030, 0x0f00, 0x0000, 0x0000,
	/* 70 */ 0x0200, 0x0200, 0x0e40, 0x0200, 0x0d00, 0x0200, 0x0200, 0x0200,
	/* 78 */ 0x0220, 0x0220, 0x8200, 0x8200, 0x8200, 0x0200, 0x0200, 0x0200,
	/* 80 */ 0x1002, 0x1002, 0x1002, 0x0200, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 88 */ 0x0200, 0x0200, 0x1201, 0x1201, 0x2020, 0x0200, 0x2020, 0x0200,
	/* 90 */ 0x6220, 0x6220, 0x6220, 0x6220, 0x0000, 0x0000, 0x0220, 0x0220,
	/* 98 */ 0x0220, 0x0220, 0x0a20, 0x0a20, 0x0220, 0x0220, 0x0220, 0x0220,
	/* a0 */ 0x4200, 0x4200, 0x4200, 0x4200, 0x0000, 0x0000, 0x0220, 0x0220,
	/* a8 */ 0x0220, 0x0220, 0x0a20, 0x0a20, 0x0220, 0x0220, 0x0220, 0x0220,
	/* b0 */ 0x20f0, 0x2060, 0x0000, 0x0000, 0x0220, 0x0220, 0x0220, 0x0220,
	/* b8 */ 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220, 0x0220,
	/* c0 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0200, 0x0000, 0x4200, 0x4200,
	/* c8 */ 0x0201, 0x0001, 0x0201, 0x0281, 0x0281, 0x0281, 0x0000, 0x0222,
	/* d0 */ 0x0000, 0x0000, 0x0770, 0x0770, 0x0000, 0x0000, 0x0000, 0x0000,
	/* d8 */ 0x1004, 0x0000, 0x0cf0, 0x0022, 0x0226, 0x0226, 0x0226, 0x0226,
	/* e0 */ 0x2020, 0x2020, 0x2020, 0x2020, 0x2020, 0x2020, 0x2020, 0x2020,
	/* e8 */ 0x2020, 0x2020, 0x2020, 0x2020, 0x2020, 0x2020, 0x2020, 0x2020,
	/* f0 */ 0x000b, 0x000b, 0x0010, 0x0010, 0x0000, 0x10d2, 0x0087, 0x00f0,
	/* f8 */ 0x000e, 0x1001, 0x8004, 0x8004, 0x100f, 0x0000, 0x0000, 0x0000,
};
static const uint16_t vec3[256] = {
	/* 00 */ 0x0220, 0x0220, 0x0020, 0x0200, 0x0220, 0x0220, 0x0020, 0x0f00,
	/* 08 */ 0x0b22, 0x0222, 0x0322, 0x0222, 0x0022, 0x0022, 0x0022, 0x0223,
	/* 10 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0222, 0x0222, 0x0222, 0x0222,
	/* 18 */ 0x0220, 0x0220, 0x0200, 0x0200, 0x0000, 0x0220, 0x0200, 0x0200,
	/* 20 */ 0x0222, 0x0222, 0x0222, 0x0200, 0x0000, 0x0200, 0x0b00, 0x0300,
	/* 28 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 30 */ 0x8020, 0x8020, 0x8020, 0x8020, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 38 */ 0x0220, 0x0220, 0x0200, 0x0200, 0x0000, 0x0000, 0x0200, 0x0200,
	/* 40 */ 0x0022, 0x0022, 0x0622, 0x0200, 0x0222, 0x0000, 0x0020, 0x0000,
	/* 48 */ 0x0020, 0x0020, 0x0020, 0x0020, 0x0020, 0x0000, 0x0000, 0x0000,
	/* 50 */ 0x0200, 0x0200, 0x0b00, 0x0300, 0x0200, 0x0200, 0x0b00, 0x0300,
	/* 58 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0020, 0x0020, 0x0020, 0x0020,
	/* 60 */ 0x0022, 0x0022, 0x0022, 0x0022, 0x0000, 0x0000, 0x0b00, 0x0300,
	/* 68 */ 0x0020, 0x0020, 0x0020, 0x0020, 0x0020, 0x0020, 0x0020, 0x0020,
	/* 70 */ 0x0200, 0x0200, 0x0200, 0x0200, 0x0000, 0x0000, 0x0000, 0x0f00,
	/* 78 */ 0x0020, 0x0020, 0x0020, 0x0020, 0x0020, 0x0020, 0x0020, 0x0020,
	/* 80 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 88 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 90 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* 98 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* a0 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* a8 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* b0 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* b8 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* c0 */ 0x0000, 0x0000, 0x0d00, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* c8 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0001, 0x0000, 0x0222, 0x0222,
	/* d0 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* d8 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0020, 0x0022,
	/* e0 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* e8 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* f0 */ 0x0084, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
	/* f8 */ 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
};

/* EVEX only: low digit map 5, high digit map 6. */
static const uint8_t evex56[256] = {
	/* 00 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* 10 */ 0x04, 0x04, 0x00, 0x30, 0x00, 0x00, 0x00, 0x00, 0x0d, 0x00, 0x00, 0x0d, 0x00, 0x03, 0x08, 0x00,
	/* 20 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x34, 0x24, 0x05, 0x07,
	/* 30 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* 40 */ 0x00, 0x00, 0x30, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0x20, 0x30, 0x20,
	/* 50 */ 0x00, 0x07, 0x00, 0x00, 0x00, 0x00, 0xc0, 0xc0, 0x07, 0x07, 0x0f, 0x07, 0x07, 0x07, 0x07, 0x07,
	/* 60 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0b, 0x0b, 0x0b, 0x0b, 0x0f, 0x0f, 0x06, 0x0e,
	/* 70 */ 0x00, 0x00, 0x00, 0x00, 0x0d, 0x00, 0x00, 0x00, 0x07, 0x07, 0x0a, 0x06, 0x03, 0x0f, 0x06, 0x00,
	/* 80 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* 90 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x20, 0x30, 0x20, 0x30, 0x20, 0x30, 0x20, 0x30, 0x20,
	/* a0 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x20, 0x30, 0x20, 0x30, 0x20, 0x30, 0x20, 0x30, 0x20,
	/* b0 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x20, 0x30, 0x20, 0x30, 0x20, 0x30, 0x20, 0x30, 0x20,
	/* c0 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* d0 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* e0 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* f0 */ 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
/* clang-format on */

/* Sets of byte values: value v is bit v % 64 of word v / 64. */
static const uint64_t xop_maps[3][4] = {
    {0, 0, 0x40004cc0e0c0e0, 0xf0000000f00f}, /* map 8: imm8 */
    {0x40006, 0, 0xfff000f, 0xe08ce08ce},     /* map 9 */
    {0x50000, 0, 0, 0},			      /* map a: imm32 */
};
static const uint64_t amd_3dnow[4] = {0x30003000, 0, 0x88d144d144d14400, 0};

/* x87, by opcode - d8: the defined /r of the memory forms, the defined ModRM - c0 of the register forms. */
static const uint8_t x87_mem[8] = {0xff, 0xfd, 0xff, 0xaf, 0xff, 0xdf, 0xff, 0xff};
static const uint64_t x87_reg[8] = {
    0xffffffffffffffff, 0xffff7f33ff01ffff, 0x00000200ffffffff, 0x00ffff1fffffffff,
    0xffffffffffffffff, 0x0000ffffffffffff, 0xffffffff02ffffff, 0x00ffff01ffffffff,
};

/* 0F 01, register forms but SMSW and LMSW: the mandatory prefixes that each accepts, by ModRM - c0. */
static const uint8_t grp7_pp[64] = {
    15, 15, 15, 15, 15, 1,  13, 1,  15, 15, 13, 1,  2,	2,  2,	3,  /* c0: VMX, MONITOR, FRED, TDX, ENCLS */
    1,	1,  0,	0,  1,	1,  1,	1,  15, 15, 15, 15, 15, 15, 15, 15, /* d0: XGETBV, VMFUNC, TSX; SVM */
    15, 15, 15, 15, 15, 15, 15, 15, 13, 8,  4,	0,  4,	4,  5,	5, /* e0: SMSW; SERIALIZE, CET, UINTR, PKRU */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 5,	1,  15, 15, 13, 13, /* f0: LMSW; SWAPGS, RDTSCP; AMD */
};

static bool has(const uint64_t set[4], unsigned v)
{
	return set[v >> 6] >> (v & 63) & 1;
}

/* Where the n bytes have ended before the instruction has. */
static int past_end(size_t n)
{
	return n < MAX_LEN ? INSN_TRUNCATED : INSN_INVALID;
}

/* What group() needs to know. */
struct op {
	unsigned map; /* 0 one byte, 1 0F; VEX_MAP + n, EVEX_MAP + n */
	unsigned opcode;
	unsigned modrm;
	unsigned pp;
	bool m64;
	bool rex_r;
	bool p66;
};

enum { VEX_MAP = 0x10, EVEX_MAP = 0x20, XOP_MAP = 0x30 };

#define KEY(map, opcode) ((map) << 8 | (opcode))

static uint32_t grp7(const struct op *o, uint32_t e)
{
	unsigned reg = o->modrm >> 3 & 7;

	if (o->modrm < 0xc0)
		return reg == 5 && o->pp != PP_F3 ? 0 : e; /* RSTORSSP */
	if (!(grp7_pp[o->modrm - 0xc0] >> o->pp & 1))
		return 0;
	switch (o->modrm) {
	case 0xc1: return e | CLS(INSN_VMCALL);
	case 0xc2:
	case 0xc3: return e | CLS(INSN_VMENTRY);
	case 0xc9: return e | CLS(INSN_MWAIT);
	case 0xca:
		if (o->pp == PP_NONE)
			return e; /* CLAC */
		return o->m64 ? e | CLS(INSN_ERET) : 0;
	case 0xd4: return e | CLS(INSN_VMCALL); /* VMFUNC */
	case 0xec: return o->m64 ? e | CLS(INSN_IRET) : 0;
	case 0xed: /* TESTUI */
	case 0xf8: /* SWAPGS */ return o->m64 ? e : 0;
	case 0xee:
	case 0xef: return o->m64 || o->pp == PP_NONE ? e : 0; /* CLUI, STUI */
	}
	return e;
}

static uint32_t grp15(const struct op *o, uint32_t e)
{
	unsigned reg = o->modrm >> 3 & 7;

	if (o->modrm < 0xc0) {
		switch (o->pp) {
		case PP_NONE: return e;
		case PP_66: return reg == 6 || reg == 7 ? e : 0; /* CLWB, CLFLUSHOPT */
		case PP_F3:
			if (reg == 4)
				return o->p66 ? 0 : e | CLS(INSN_PTWRITE);
			return reg == 6 ? e : 0; /* CLRSSBSY */
		}
		return 0;
	}
	switch (o->pp) {
	case PP_NONE: return reg >= 5 ? e : 0;		       /* fences */
	case PP_66: return reg == 6 ? e | CLS(INSN_MWAIT) : 0; /* TPAUSE */
	case PP_F3:
		if (reg == 4)
			return o->p66 ? 0 : e | CLS(INSN_PTWRITE);
		return reg == 5 || reg == 6 || (reg < 4 && o->m64) ? e : 0; /* INCSSP, UMONITOR; FSGSBASE */
	}
	return reg == 6 ? e | CLS(INSN_MWAIT) : 0; /* UMWAIT */
}

static uint32_t grp9(const struct op *o, uint32_t e)
{
	unsigned reg = o->modrm >> 3 & 7;

	if (o->modrm >= 0xc0) {
		if (o->pp == PP_F3)
			return reg == 7 || (reg == 6 && o->m64) ? e : 0; /* RDPID, SENDUIPI */
		return reg >= 6 && o->pp != PP_F2 ? e : 0;		 /* RDRAND, RDSEED */
	}
	switch (reg) {
	case 1: return e | LOCKABLE;
	case 3:
	case 4:
	case 5: return o->pp == PP_NONE ? e : 0;
	case 6:
		if (o->pp == PP_NONE)
			return e | CLS(INSN_VMPTRLD);
		return o->pp == PP_F2 ? 0 : e; /* VMCLEAR, VMXON */
	case 7: return o->pp == PP_NONE ? e : 0;
	}
	return 0;
}

/* What an entry becomes once ModRM is known; 0 where that makes it undefined. */
static uint32_t group(const struct op *o, uint32_t e)
{
	unsigned reg = o->modrm >> 3 & 7;
	bool mem = o->modrm < 0xc0;

	switch (KEY(o->map, o->opcode)) {
	case 0x8c: return reg < 6 ? e : 0;
	case 0x8e: return reg < 6 && reg != 1 ? e : 0;
	case 0x8f: return reg == 0 ? e : 0;
	case 0xc6: return reg == 0 || o->modrm == 0xf8 /* XABORT */ ? e : 0;
	case 0xc7:
		if (o->modrm == 0xf8)
			return e | CLS(INSN_XBEGIN);
		return reg == 0 ? e : 0;
	case 0xd8:
	case 0xd9:
	case 0xda:
	case 0xdb:
	case 0xdc:
	case 0xdd:
	case 0xde:
	case 0xdf:
		if (mem)
			return x87_mem[o->opcode & 7] >> reg & 1 ? e : 0;
		return x87_reg[o->opcode & 7] >> (o->modrm & 63) & 1 ? e : 0;
	case 0xf6: return reg < 2 ? e | IMM_8 : reg < 4 ? e | LOCKABLE : e;
	case 0xf7: return reg < 2 ? e | IMM_Z : reg < 4 ? e | LOCKABLE : e;
	case 0xfe: return reg < 2 ? e | LOCKABLE : 0;
	case 0xff:
		switch (reg) {
		case 0:
		case 1: return e | LOCKABLE;
		case 2: return e | CLS(INSN_CALL_IND);
		case 3: return mem ? e | CLS(INSN_CALL_FAR) : 0;
		case 4: return e | CLS(INSN_JMP_IND);
		case 5: return mem ? e | CLS(INSN_JMP_FAR) : 0;
		case 6: return e;
		}
		return 0;
	case 0x100: return reg < 6 || (reg == 6 && o->pp == PP_F2 && o->m64) ? e : 0; /* LKGS */
	case 0x101: return grp7(o, e);
	case 0x112: return mem || o->pp != PP_66 ? e : 0;
	case 0x116: return o->pp != PP_F2 && (mem || o->pp != PP_66) ? e : 0;
	case 0x120:
	case 0x122:
		if (o->rex_r)
			return reg == 0 ? e : 0; /* CR8 */
		if (reg == 3 && o->opcode == 0x22)
			return e | CLS(INSN_MOV_CR3);
		return reg == 0 || (reg >= 2 && reg <= 4) ? e : 0;
	case 0x121:
	case 0x123: return o->rex_r ? 0 : e;
	case 0x171:
	case 0x172: return reg == 2 || reg == 4 || reg == 6 ? e : 0;
	case 0x173:
		if (reg == 3 || reg == 7)
			return o->pp == PP_66 ? e : 0;
		return reg == 2 || reg == 6 ? e : 0;
	case 0x178: /* VMREAD; AMD's EXTRQ and INSERTQ, registers only, with two immediates */
	case 0x179:
		if (o->pp == PP_NONE)
			return e;
		if (mem || (o->opcode == 0x78 && o->pp == PP_66 && reg != 0))
			return 0;
		return o->opcode == 0x78 ? e | IMM_8_8 : e;
	case 0x1a6: /* PadLock */ return o->pp == PP_F3 && (o->modrm & 7) == 0 && reg < 3 ? e : 0;
	case 0x1a7: /* XSTORE needs no F3 */
		return (o->pp == PP_F3 || reg == 0) && (o->modrm & 7) == 0 && reg < 6 ? e : 0;
	case 0x1ae: return grp15(o, e);
	case 0x1ba: return reg < 4 ? 0 : reg > 4 ? e | LOCKABLE : e;
	case 0x1c7: return grp9(o, e);
	case 0x1d6: return o->pp != PP_NONE && (o->pp == PP_66 || !mem) ? e : 0;
	case 0x2d8: return reg < 4 ? e : 0;
	case 0x2dd:
	case 0x2de:
	case 0x2df: return mem || o->pp == PP_66 ? e : 0; /* with F3 Key Locker */
	case 0x2f0:
	case 0x2f1: return mem || o->pp == PP_F2 ? e : 0;   /* MOVBE, CRC32 */
	case 0x2f6: return mem || o->pp != PP_NONE ? e : 0; /* WRSS */
	case 0x2f8: return mem || o->pp != PP_66 ? e : 0;   /* MOVDIR64B */
	case 0x3f0: return o->modrm == 0xc0 ? e : 0;	    /* HRESET */
	case KEY(VEX_MAP + 1, 0x12):
	case KEY(VEX_MAP + 1, 0x16):
	case KEY(EVEX_MAP + 1, 0x12):
	case KEY(EVEX_MAP + 1, 0x16): return mem || o->pp != PP_66 ? e : 0;
	case KEY(VEX_MAP + 1, 0x71):
	case KEY(VEX_MAP + 1, 0x72): return !mem && (reg == 2 || reg == 4 || reg == 6) ? e : 0;
	case KEY(VEX_MAP + 1, 0x73): return !mem && (reg & 2) ? e : 0;
	case KEY(VEX_MAP + 1, 0xae): return reg == 2 || reg == 3 ? e : 0; /* VLDMXCSR, VSTMXCSR */
	case KEY(VEX_MAP + 2, 0x49): /* LDTILECFG, TILERELEASE; STTILECFG; TILEZERO */
		if (mem)
			return reg == 0 && o->pp != PP_F2 ? e : 0;
		if (o->pp == PP_NONE)
			return o->modrm == 0xc0 ? e : 0;
		return o->pp == PP_F2 && (o->modrm & 7) == 0 ? e : 0;
	case KEY(VEX_MAP + 2, 0xf3): return reg >= 1 && reg <= 3 ? e : 0;
	case KEY(EVEX_MAP + 1, 0x71): return reg == 2 || reg == 4 || reg == 6 ? e : 0;
	case KEY(EVEX_MAP + 1, 0x72): return reg == 0 || reg == 1 || reg == 2 || reg == 4 || reg == 6 ? e : 0;
	case KEY(EVEX_MAP + 1, 0x73): return reg & 2 ? e : 0;
	case KEY(EVEX_MAP + 2, 0x28): /* with F3 mask moves, registers only */
	case KEY(EVEX_MAP + 2, 0x29):
	case KEY(EVEX_MAP + 2, 0x38):
	case KEY(EVEX_MAP + 2, 0x39):
	case KEY(EVEX_MAP + 2, 0x3a): return mem && o->pp == PP_F3 ? 0 : e;
	case KEY(EVEX_MAP + 2, 0x2a): return mem == (o->pp == PP_66) ? e : 0;
	case KEY(EVEX_MAP + 2, 0x52): /* with F2 four-operand forms, memory only */
	case KEY(EVEX_MAP + 2, 0x53):
	case KEY(EVEX_MAP + 2, 0x9a):
	case KEY(EVEX_MAP + 2, 0x9b):
	case KEY(EVEX_MAP + 2, 0xaa):
	case KEY(EVEX_MAP + 2, 0xab): return !mem && o->pp == PP_F2 ? 0 : e;
	case KEY(EVEX_MAP + 2, 0xc6):
	case KEY(EVEX_MAP + 2, 0xc7): return reg == 1 || reg == 2 || reg == 5 || reg == 6 ? e : 0;
	case KEY(XOP_MAP + 9, 0x01): return reg != 0 ? e : 0;
	case KEY(XOP_MAP + 9, 0x02): return reg == 1 || reg == 6 ? e : 0;
	case KEY(XOP_MAP + 9, 0x12): return !mem && reg < 2 ? e : 0;
	case KEY(XOP_MAP + 10, 0x12): return reg < 2 ? e : 0;
	}
	return e;
}

/* An entry from one of vec1, vec2, vec3. `kind` 0: legacy, 1: VEX, 2: EVEX. */
static uint32_t shared_entry(unsigned v, unsigned kind)
{
	uint32_t e = PP(v >> 4 * kind & 0xf) | MODRM;

	if (v >> 12 & 1u << kind)
		e |= MEM;
	if (v >> 15)
		e |= REG;
	return e;
}

/*
 * The VEX, EVEX or XOP prefix that starts with `first`; q are the bytes behind it, up to and with the opcode.
 * Fills o's map, opcode, pp; returns the entry, 0 when undefined.
 */
static uint32_t vector_entry(unsigned first, const uint8_t *q, struct op *o)
{
	unsigned map = first == 0xc5 ? 1 : q[0] & 0x1f;
	bool imm8;

	switch (first) {
	case 0xc5:
		o->opcode = q[1];
		o->pp = q[0] & 3;
		break;
	case 0x62:
		/* P0 bit 3 must be 0, P1 bit 2 must be 1. */
		if ((q[0] & 8) || !(q[1] & 4))
			return 0;
		map = q[0] & 7;
		o->opcode = q[3];
		o->pp = q[1] & 3;
		break;
	default: o->opcode = q[2]; o->pp = q[1] & 3;
	}

	if (first == 0x8f) {
		o->map = XOP_MAP + map;
		if (map > 10 || o->pp != 0 || !has(xop_maps[map - 8], o->opcode))
			return 0;
		return PP(1) | MODRM | GROUP | (map == 8 ? IMM_8 : map == 10 ? IMM_32 : IMM_NONE);
	}

	o->map = (first == 0x62 ? EVEX_MAP : VEX_MAP) + map;
	switch (map) {
	case 1:
		if (o->map == VEX_MAP + 1 && o->opcode == 0x77)
			return PP(1); /* VZEROUPPER, VZEROALL */
		imm8 = (o->opcode >= 0x70 && o->opcode <= 0x73) || o->opcode == 0xc2 ||
		       (o->opcode >= 0xc4 && o->opcode <= 0xc6);
		return shared_entry(vec1[o->opcode], first == 0x62 ? 2 : 1) | GROUP | (imm8 ? IMM_8 : 0);
	case 2: return shared_entry(vec2[o->opcode], first == 0x62 ? 2 : 1) | GROUP;
	case 3: return shared_entry(vec3[o->opcode], first == 0x62 ? 2 : 1) | IMM_8;
	case 5:
		if (first == 0x62)
			return PP(evex56[o->opcode] & 0xf) | MODRM;
		return o->opcode == 0xfd ? PP(15) | MODRM | REG : 0; /* AMX-FP8 */
	case 6: return first == 0x62 ? PP(evex56[o->opcode] >> 4) | MODRM : 0;
	case 7: /* RDMSR, WRMSRNS, URDMSR, UWRMSR with an immediate MSR number */
		if (first == 0xc4 && (o->opcode == 0xf6 || o->opcode == 0xf8))
			return PP(12) | MODRM | REG | IMM_32;
	}
	return 0;
}

static int32_t read_rel(const uint8_t *p, unsigned bytes)
{
	if (bytes == 1)
		return (int8_t)p[0];
	if (bytes == 2)
		return (int16_t)(p[0] | p[1] << 8);
	return (int32_t)(p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

int insn_decode(const uint8_t *p, size_t n, enum insn_mode mode, struct insn *ret)
{
	const size_t max = n < MAX_LEN ? n : MAX_LEN;
	struct op o = {.m64 = mode == INSN_64};
	unsigned rex = 0, rep = 0, kind, cls, bytes, opsize;
	bool p67 = false, lock = false;
	size_t i = 0, imm_at;
	uint32_t e;

	/* Prefixes, in any order and number; a REX counts only directly before the opcode. */
	for (;;) {
		if (i == max)
			return past_end(n);
		o.opcode = p[i++];
		if (o.m64 && (o.opcode & 0xf0) == 0x40) {
			rex = o.opcode;
			continue;
		}
		e = map0[o.opcode];
		if (!(e & PREFIX))
			break;
		rex = 0;
		switch (o.opcode) {
		case 0x66: o.p66 = true; break;
		case 0x67: p67 = true; break;
		case 0xf0: lock = true; break;
		case 0xf2: rep = PP_F2; break;
		case 0xf3: rep = PP_F3; break;
		}
	}
	o.rex_r = rex & 4;
	o.pp = rep ? rep : o.p66 ? PP_66 : PP_NONE;

	/* The opcode's entry. */
	switch (o.opcode) {
	case 0x0f:
		if (i == max)
			return past_end(n);
		o.map = 1;
		o.opcode = p[i++];
		e = map1[o.opcode];
		if (o.opcode == 0x38 || o.opcode == 0x3a) {
			bool map3 = o.opcode == 0x3a;

			if (i == max)
				return past_end(n);
			o.map = map3 ? 3 : 2;
			o.opcode = p[i++];
			e = GROUP | (map3 ? shared_entry(vec3[o.opcode], 0) | IMM_8
					  : shared_entry(vec2[o.opcode], 0));
		}
		break;
	case 0x62:
	case 0x8f:
	case 0xc4:
	case 0xc5:
		/* In the older modes BOUND, LES and LDS, which take memory only; everywhere POP, whose /r is 0. */
		if (i == max)
			return past_end(n);
		if (o.opcode == 0x8f ? (p[i] & 0x1f) >= 8 : o.m64 || p[i] >= 0xc0) {
			unsigned first = o.opcode;
			size_t more = first == 0xc5 ? 2 : first == 0x62 ? 4 : 3;

			if (rex || lock || o.pp != PP_NONE)
				return INSN_INVALID;
			if (max - i < more)
				return past_end(n);
			e = vector_entry(first, p + i, &o);
			i += more;
		}
		break;
	}
	if (!(ENTRY_PP(e) >> o.pp & 1) || (o.m64 && (e & NOT64)))
		return INSN_INVALID;

	/* Operands. */
	if (e & MODRM) {
		unsigned mod, rm;

		if (i == max)
			return past_end(n);
		o.modrm = p[i++];
		if (e & ALWAYSREG)
			o.modrm |= 0xc0;
		if (e & GROUP) {
			e = group(&o, e);
			if (e == 0)
				return INSN_INVALID;
		}
		mod = o.modrm >> 6;
		rm = o.modrm & 7;
		if (e & (mod == 3 ? MEM : REG))
			return INSN_INVALID;
		if (mod == 3) {
			/* no more bytes */
		} else if (!o.m64 && (mode == INSN_16) != p67) {
			i += mod == 0 ? (rm == 6 ? 2 : 0) : mod;
		} else {
			if (rm == 4) {
				if (i == max)
					return past_end(n);
				rm = p[i++] & 7; /* SIB.base, which has the same special case */
			}
			i += mod == 1 ? 1 : mod == 2 || rm == 5 ? 4 : 0;
		}
	}
	if (lock) {
		bool cmp = o.map == 0 && (o.opcode & 0xfc) == 0x80 && (o.modrm >> 3 & 7) == 7;

		if (!(e & LOCKABLE) || o.modrm >= 0xc0 || cmp)
			return INSN_INVALID;
	}

	/* The immediate. `opsize` 0: 16 bits, 1: 32, 2: 64. */
	kind = ENTRY_IMM(e);
	cls = ENTRY_CLS(e);
	opsize = rex & 8 ? 2 : (mode == INSN_16) == o.p66;
	if (kind == IMM_RELZ && o.m64)
		opsize = 1;
	if (kind == IMM_MOFFS)
		bytes = imm_bytes[kind][o.m64 ? 2 - p67 : (mode == INSN_16) == p67];
	else
		bytes = imm_bytes[kind][opsize];
	imm_at = i;
	i += bytes;
	if (i > MAX_LEN)
		return INSN_INVALID;
	if (i > n)
		return INSN_TRUNCATED;
	if (kind == IMM_3DNOW && !has(amd_3dnow, p[imm_at]))
		return INSN_INVALID;

	ret->len = (uint8_t)i;
	ret->cls = (uint8_t)cls;
	ret->ptw_bytes = cls != INSN_PTWRITE ? 0 : rex & 8 ? 8 : 4;
	/* The abort address of an XBEGIN is never cut to 16 bits (SDM vol. 2). */
	ret->opsize16 = !o.m64 && opsize == 0 && cls != INSN_XBEGIN;
	ret->rel = 0;
	if (cls == INSN_JCC || cls == INSN_JMP || cls == INSN_CALL || cls == INSN_XBEGIN)
		ret->rel = read_rel(p + imm_at, bytes);
	return (int)i;
}

const char *insn_class_name(enum insn_class cls)
{
	static const char *const names[] = {
	    [INSN_OTHER] = "other",
	    [INSN_JCC] = "jcc",
	    [INSN_JMP] = "jmp",
	    [INSN_CALL] = "call",
	    [INSN_JMP_IND] = "jmp indirect",
	    [INSN_CALL_IND] = "call indirect",
	    [INSN_RET] = "ret",
	    [INSN_SYSCALL] = "syscall",
	    [INSN_SYSRET] = "sysret",
	    [INSN_INT] = "int",
	    [INSN_IRET] = "iret",
	    [INSN_JMP_FAR] = "jmp far",
	    [INSN_CALL_FAR] = "call far",
	    [INSN_RET_FAR] = "ret far",
	    [INSN_ERET] = "eret",
	    [INSN_VMENTRY] = "vm entry",
	    [INSN_RSM] = "rsm",
	    [INSN_VMCALL] = "vmcall",
	    [INSN_MOV_CR3] = "mov cr3",
	    [INSN_VMPTRLD] = "vmptrld",
	    [INSN_PTWRITE] = "ptwrite",
	    [INSN_XBEGIN] = "xbegin",
	    [INSN_MWAIT] = "mwait",
	    [INSN_HLT] = "hlt",
	};

	if ((unsigned)cls >= sizeof names / sizeof *names)
		return "unknown";
	return names[cls];
}
