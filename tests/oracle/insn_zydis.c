/*
 * insn_zydis [COUNT [SEED]] - decode/insn.c against Zydis over random bytes, COUNT strings in each mode.
 *
 * Half of the strings begin like an instruction of one of the opcode maps, with up to three prefixes;
 * half are plain random bytes. Where both find an instruction, length, class, displacement and
 * operand size must agree. Where one of them does not, a rule below must say why; each rule's cases
 * are counted. Every shorter beginning of an instruction must be INSN_TRUNCATED. Written for Zydis
 * 4.0 and 4.1.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <Zydis/Zydis.h>

#include "decode/insn.h"
#include "tests/unit/check.h"

enum { BYTES = 15, MAX_SHOWN = 20 };

enum rule {
	RULE_NONE,
	/* Zydis only: */
	RULE_KNC,     /* Knights Corner, a coprocessor whose VEX and MVEX opcodes are not in the SDM */
	RULE_PTWRITE, /* 66 PTWRITE: "#UD if prefix 66H is used" (SDM vol. 2, PTWRITE) */
	/* 66 0F AE F8..FF: Zydis 4.1 has PCOMMIT there, which no CPU ever had and the SDM has not */
	RULE_PCOMMIT,
	/* Ours only: */
	/*
	 * VEX, EVEX, XOP: the opcode exists, with another L, W, vvvv, mask, or register: #UD, length certain
	 */
	RULE_FIELD,
	RULE_NEWER, /* instructions that Zydis 4.0 does not know */
	RULE_MPX,   /* 0F 1A, 0F 1B with operands that MPX does not define: a NOP on CPUs without MPX */
	RULE_GRP7, /* 0F 01 register forms without NP in the SDM (VMCALL, MONITOR...): prefixes are ignored */
	RULE_COUNT
};
static const char *const rule_names[RULE_COUNT] = {
    [RULE_KNC] = "Zydis only: Knights Corner",	      [RULE_PTWRITE] = "Zydis only: 66 PTWRITE",
    [RULE_PCOMMIT] = "Zydis only: PCOMMIT",	      [RULE_FIELD] = "ours only: a field of VEX, EVEX, XOP",
    [RULE_NEWER] = "ours only: newer than Zydis 4.0", [RULE_MPX] = "ours only: NOP where MPX is off",
    [RULE_GRP7] = "ours only: prefix before 0F 01",
};

enum check {
	CHECK_LENGTH,
	CHECK_CLASS,
	CHECK_REL,
	CHECK_SIZE,
	CHECK_ZYDIS_ONLY,
	CHECK_OURS_ONLY,
	CHECK_CUT,
	CHECK_COUNT
};
static const char *const check_names[CHECK_COUNT] = {
    "lengths",	 "classes", "displacements", "operand sizes", "found by Zydis only", "found by ours only",
    "truncation"};

static const char *const mode_names[] = {[INSN_64] = "64-bit", [INSN_32] = "32-bit", [INSN_16] = "16-bit"};

enum encoding { LEGACY, VEX, EVEX, XOP };

/* What Zydis 4.0 does not know, by encoding, map and opcodes. */
static const struct {
	enum encoding encoding;
	unsigned map, first, last;
} newer[] = {
    {LEGACY, 1, 0x00, 0x00}, /* LKGS */
    {LEGACY, 1, 0x01, 0x01}, /* ERETS, ERETU, WRMSRNS, RDMSRLIST, WRMSRLIST, PBNDKB, RMPQUERY */
    {LEGACY, 1, 0xa7, 0xa7}, /* XSTORE with F2 */
    {LEGACY, 2, 0x8a, 0x8b}, /* MOVRS */
    {LEGACY, 2, 0xf8, 0xf8}, /* URDMSR, UWRMSR */
    {LEGACY, 2, 0xfc, 0xfc}, /* RAO-INT */
    {VEX, 2, 0x48, 0x48},    /* AMX-TF32 */
    {VEX, 2, 0x4a, 0x4a},    /* AMX-MOVRS */
    {VEX, 2, 0x50, 0x51},    /* AVX-VNNI-INT8 */
    {VEX, 2, 0x5c, 0x5c},    /* AMX-FP16 */
    {VEX, 2, 0x6c, 0x6c},    /* AMX-COMPLEX */
    {VEX, 2, 0x72, 0x72},    /* AVX-NE-CONVERT */
    {VEX, 2, 0xb0, 0xb1},    /* AVX-NE-CONVERT */
    {VEX, 2, 0xb4, 0xb5},    /* AVX-IFMA */
    {VEX, 2, 0xcb, 0xcd},    /* SHA512 */
    {VEX, 2, 0xd2, 0xd3},    /* AVX-VNNI-INT16 */
    {VEX, 2, 0xda, 0xda},    /* SM3, SM4 */
    {VEX, 2, 0xe0, 0xef},    /* CMPccXADD */
    {VEX, 3, 0xde, 0xde},    /* SM3 */
    {VEX, 5, 0xfd, 0xfd},    /* AMX-FP8 */
    {VEX, 7, 0xf6, 0xf8},    /* MSR-IMM, USER-MSR */
    {EVEX, 1, 0x2e, 0x2f},   /* AVX10.2, from here on, and AMX-AVX512 (2/4a, 2/6d, 3/07, 3/77) */
    {EVEX, 2, 0x4a, 0x4a},   {EVEX, 2, 0x50, 0x52}, {EVEX, 2, 0x67, 0x67}, {EVEX, 2, 0x6d, 0x6d},
    {EVEX, 2, 0x74, 0x74},   {EVEX, 2, 0xd2, 0xd3}, {EVEX, 2, 0xda, 0xda}, {EVEX, 3, 0x07, 0x08},
    {EVEX, 3, 0x26, 0x26},   {EVEX, 3, 0x42, 0x42}, {EVEX, 3, 0x52, 0x53}, {EVEX, 3, 0x56, 0x56},
    {EVEX, 3, 0x66, 0x66},   {EVEX, 3, 0x77, 0x77}, {EVEX, 3, 0xc2, 0xc2}, {EVEX, 5, 0x18, 0x1e},
    {EVEX, 5, 0x2e, 0x2f},   {EVEX, 5, 0x51, 0x5f}, {EVEX, 5, 0x68, 0x6f}, {EVEX, 5, 0x74, 0x74},
    {EVEX, 5, 0x7e, 0x7e},   {EVEX, 6, 0x2c, 0x2c}, {EVEX, 6, 0x42, 0x42}, {EVEX, 6, 0x4c, 0x4e},
    {EVEX, 6, 0x98, 0xbe},
};

static struct {
	uint64_t both, neither, rules[RULE_COUNT], failed[CHECK_COUNT];
} sum;

static ZydisDecoder decoders[3]; /* by enum insn_mode */

static uint64_t random_state;

static uint64_t rnd(void) /* xorshift64* */
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dull;
}

static void fill(uint8_t *b, enum insn_mode mode)
{
	static const uint8_t prefixes[] = {0x66, 0x66, 0xf2, 0xf2, 0xf3, 0xf3,
					   0x67, 0x2e, 0xf0, 0x48, 0x41, 0x40};
	uint64_t r = rnd(), r2 = rnd();
	unsigned i = 0, high = mode == INSN_64 ? 0 : 0xc0;

	for (int k = 0; k < 2; k++) {
		uint64_t v = rnd();

		memcpy(b + 8 * k, &v, 8);
	}
	if (r & 1)
		return;
	if (r & 2) {
		for (unsigned n = r >> 2 & 3; n > 0; n--, r2 >>= 8)
			b[i++] = prefixes[(r2 & 0xff) % sizeof prefixes];
	}
	r >>= 8;
	switch (r & 7) {
	case 0:
	case 1: b[i] = 0x0f; break;
	case 2:
		b[i++] = 0x0f;
		b[i] = 0x38;
		break;
	case 3:
		b[i++] = 0x0f;
		b[i] = 0x3a;
		break;
	case 4:
		b[i++] = 0xc4;
		b[i] = (uint8_t)((r >> 8 & 0xe0) | (r >> 16 & 7) | high);
		break;
	case 5:
		b[i++] = 0x62;
		b[i] = (uint8_t)((r >> 8 & 0xf0) | (r >> 16 & 7) | high);
		b[i + 1] |= 4;
		break;
	case 6:
		b[i++] = 0x8f;
		b[i] = (uint8_t)((r >> 8 & 0xe0) | (8 + (r >> 16 & 3)));
		break;
	}
}

/* Where an instruction's parts are. */
struct parts {
	enum encoding encoding;
	unsigned map, opcode, pp, modrm;
};

static void take_apart(const uint8_t *b, enum insn_mode mode, struct parts *ret)
{
	unsigned i = 0, next;

	ret->pp = 0;
	for (;; i++) {
		if (b[i] == 0x66)
			ret->pp = ret->pp ? ret->pp : 1;
		else if (b[i] == 0xf3)
			ret->pp = 2;
		else if (b[i] == 0xf2)
			ret->pp = 3;
		else if (b[i] != 0x67 && b[i] != 0xf0 && (b[i] & 0xe7) != 0x26 && (b[i] & 0xfe) != 0x64 &&
			 !(mode == INSN_64 && (b[i] & 0xf0) == 0x40))
			break;
	}
	next = b[i + 1];
	ret->encoding = LEGACY;
	ret->map = 0;
	if (b[i] == 0x0f) {
		ret->map = next == 0x38 ? 2 : next == 0x3a ? 3 : 1;
		i += ret->map > 1 ? 2 : 1;
	} else if ((b[i] == 0xc4 || b[i] == 0x62) && (mode == INSN_64 || next >= 0xc0)) {
		ret->encoding = b[i] == 0x62 ? EVEX : VEX;
		ret->map = next & (b[i] == 0x62 ? 7 : 31);
		ret->pp = b[i + 2] & 3;
		i += b[i] == 0x62 ? 4 : 3;
	} else if (b[i] == 0xc5 && (mode == INSN_64 || next >= 0xc0)) {
		ret->encoding = VEX;
		ret->map = 1;
		ret->pp = next & 3;
		i += 2;
	} else if (b[i] == 0x8f && (next & 31) >= 8) {
		ret->encoding = XOP;
		ret->map = next & 31;
		ret->pp = b[i + 2] & 3;
		i += 3;
	}
	ret->opcode = b[i];
	ret->modrm = b[i + 1];
}

/* Does Zydis know the opcode with this mandatory prefix, form and /r, whatever the other fields are? */
static bool zydis_knows(const struct parts *o)
{
	static uint8_t memo[4][32][256][4][2][8]; /* 0: not asked yet, 1: no, 2: yes */
	unsigned reg = o->modrm >> 3 & 7, is_reg = o->modrm >= 0xc0;
	uint8_t *m = &memo[o->encoding][o->map & 31][o->opcode][o->pp][is_reg][reg];
	ZydisDecodedInstruction z;

	if (*m != 0)
		return *m == 2;
	*m = 1;
	/* W, L, vvvv 0 or 2, and for EVEX z, b, mask; rm. */
	for (unsigned f = 0; f < 2 * 4 * 2 * 8 * 8; f++) {
		unsigned w = f & 1, l = f >> 1 & 3, vvvv = f & 8 ? 0xf : 0xd, zba = f >> 4 & 7,
			 rm = f >> 7 & 7;
		uint8_t b[BYTES] = {0};
		unsigned i = 0;

		if (o->encoding == EVEX) {
			b[i++] = 0x62;
			b[i++] = (uint8_t)(0xf0 | o->map);
			b[i++] = (uint8_t)(w << 7 | vvvv << 3 | 4 | o->pp);
			b[i++] = (uint8_t)(l << 5 | (zba & 1) << 4 | (zba & 2) << 6 | 8 | zba >> 2);
		} else {
			b[i++] = o->encoding == VEX ? 0xc4 : 0x8f;
			b[i++] = (uint8_t)(0xe0 | o->map);
			b[i++] = (uint8_t)(w << 7 | vvvv << 3 | (l & 1) << 2 | o->pp);
		}
		b[i++] = (uint8_t)o->opcode;
		b[i++] = (uint8_t)((is_reg ? 0xc0 : 0x40) | reg << 3 | rm);
		/* A SIB with a vector index that is neither the destination nor the mask. */
		b[i] = reg == 5 ? 0x70 : 0x68;
		if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoders[INSN_64], NULL, b, BYTES, &z))) {
			*m = 2;
			break;
		}
	}
	return *m == 2;
}

static enum rule zydis_only(const ZydisDecodedInstruction *z)
{
	if (z->encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
	    (z->meta.isa_set >= ZYDIS_ISA_SET_KNCE && z->meta.isa_set <= ZYDIS_ISA_SET_KNC_PF_HINT))
		return RULE_KNC;
	if (z->mnemonic == ZYDIS_MNEMONIC_PTWRITE && (z->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE))
		return RULE_PTWRITE;
	if (z->opcode_map == ZYDIS_OPCODE_MAP_0F && z->opcode == 0xae && z->raw.modrm.mod == 3 &&
	    z->raw.modrm.reg == 7)
		return RULE_PCOMMIT;
	return RULE_NONE;
}

/* APX's forms, which Zydis 4 does not know: insn_apx.sh compares them with objdump. */
static bool is_apx(const struct parts *o, enum insn_mode mode)
{
	static const struct {
		unsigned map, first, last;
	} of_vex[] = {{1, 0x90, 0x93}, {2, 0x49, 0x49}, {2, 0x4b, 0x4b}, {2, 0xe0, 0xef},
		      {2, 0xf2, 0xf3}, {2, 0xf5, 0xf7}, {3, 0xf0, 0xf0}, {4, 0x00, 0xff}};

	if (mode != INSN_64)
		return false;
	for (size_t i = 0; o->encoding == EVEX && i < sizeof of_vex / sizeof *of_vex; i++)
		if (of_vex[i].map == o->map && of_vex[i].first <= o->opcode && o->opcode <= of_vex[i].last)
			return true;
	return o->encoding == LEGACY && o->map == 0 && o->opcode == 0xd5;
}

static enum rule ours_only(const struct parts *o)
{
	if (o->encoding == LEGACY && o->map == 1) {
		if (o->opcode == 0x1a || o->opcode == 0x1b)
			return RULE_MPX;
		if (o->opcode == 0x01 && o->pp != 0 && o->modrm >= 0xc1 && o->modrm <= 0xc9 &&
		    (o->modrm & 7) <= 4)
			return RULE_GRP7;
	}
	if (o->encoding != LEGACY && zydis_knows(o))
		return RULE_FIELD;
	for (size_t i = 0; i < sizeof newer / sizeof *newer; i++) {
		if (newer[i].encoding == o->encoding && newer[i].map == o->map &&
		    newer[i].first <= o->opcode && o->opcode <= newer[i].last)
			return RULE_NEWER;
	}
	return RULE_NONE;
}

static enum insn_class class_of(const ZydisDecodedInstruction *z)
{
	bool far_branch = z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;

	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_XBEGIN: return INSN_XBEGIN;
	case ZYDIS_MNEMONIC_XEND: return INSN_OTHER; /* a conditional branch for Zydis */
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_UIRET: return INSN_IRET;
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER: return INSN_SYSCALL;
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT: return INSN_SYSRET;
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INTO: return INSN_INT;
	case ZYDIS_MNEMONIC_JMP:
		return far_branch ? INSN_JMP_FAR : z->raw.imm[0].size ? INSN_JMP : INSN_JMP_IND;
	case ZYDIS_MNEMONIC_CALL:
		return far_branch ? INSN_CALL_FAR : z->raw.imm[0].size ? INSN_CALL : INSN_CALL_IND;
	case ZYDIS_MNEMONIC_RET: return far_branch ? INSN_RET_FAR : INSN_RET;
	case ZYDIS_MNEMONIC_VMLAUNCH:
	case ZYDIS_MNEMONIC_VMRESUME: return INSN_VMENTRY;
	case ZYDIS_MNEMONIC_VMCALL:
	case ZYDIS_MNEMONIC_VMFUNC: return INSN_VMCALL;
	case ZYDIS_MNEMONIC_VMPTRLD: return INSN_VMPTRLD;
	case ZYDIS_MNEMONIC_RSM: return INSN_RSM;
	case ZYDIS_MNEMONIC_PTWRITE: return INSN_PTWRITE;
	case ZYDIS_MNEMONIC_MWAIT:
	case ZYDIS_MNEMONIC_UMWAIT:
	case ZYDIS_MNEMONIC_TPAUSE: return INSN_MWAIT;
	case ZYDIS_MNEMONIC_HLT: return INSN_HLT;
	case ZYDIS_MNEMONIC_MOV:
		if (z->opcode_map == ZYDIS_OPCODE_MAP_0F && z->opcode == 0x22 && z->raw.modrm.reg == 3 &&
		    !z->raw.rex.R)
			return INSN_MOV_CR3;
		return INSN_OTHER;
	default: return z->meta.category == ZYDIS_CATEGORY_COND_BR ? INSN_JCC : INSN_OTHER;
	}
}

static void fail(enum check kind, enum insn_mode mode, const uint8_t *b, int ours, int zydis)
{
	if (sum.failed[kind]++ >= MAX_SHOWN)
		return;
	printf("  %s, %s:", check_names[kind], mode_names[mode]);
	for (int i = 0; i < BYTES; i++)
		printf(" %02x", b[i]);
	printf(": ours %d, Zydis %d\n", ours, zydis);
}

static void compare(const uint8_t *b, enum insn_mode mode)
{
	ZydisDecodedInstruction z;
	struct insn in = {0}, cut;
	int ours = insn_decode(b, BYTES, mode, &in);
	int zydis =
	    ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoders[mode], NULL, b, BYTES, &z)) ? z.length : -1;
	struct parts parts;
	enum rule rule;
	bool direct;

	for (int n = ours - 1; n >= 0; n--) {
		if (insn_decode(b, (size_t)n, mode, &cut) != INSN_TRUNCATED)
			fail(CHECK_CUT, mode, b, n, ours);
	}
	if (ours < 0 && zydis < 0) {
		sum.neither++;
		return;
	}
	if (ours < 0) {
		rule = zydis_only(&z);
		sum.rules[rule]++;
		if (rule == RULE_NONE)
			fail(CHECK_ZYDIS_ONLY, mode, b, ours, zydis);
		return;
	}
	if (zydis < 0) {
		take_apart(b, mode, &parts);
		rule = is_apx(&parts, mode) ? RULE_NEWER : ours_only(&parts);
		sum.rules[rule]++;
		if (rule == RULE_NONE)
			fail(CHECK_OURS_ONLY, mode, b, ours, zydis);
		return;
	}
	sum.both++;
	if (ours != zydis) {
		fail(CHECK_LENGTH, mode, b, ours, zydis);
		return;
	}
	if (in.cls != class_of(&z))
		fail(CHECK_CLASS, mode, b, in.cls, (int)class_of(&z));
	direct = in.cls == INSN_JCC || in.cls == INSN_JMP || in.cls == INSN_CALL;
	if (direct || in.cls == INSN_XBEGIN) {
		if (in.rel != z.raw.imm[0].value.s)
			fail(CHECK_REL, mode, b, in.rel, (int)z.raw.imm[0].value.s);
	} else if (in.rel != 0) {
		fail(CHECK_REL, mode, b, in.rel, 0);
	}
	if (direct && mode != INSN_64 && in.opsize16 != (z.operand_width == 16))
		fail(CHECK_SIZE, mode, b, in.opsize16, z.operand_width);
	/* Without REX.W it is 4, in 16-bit mode too (SDM vol. 2, PTWRITE); Zydis says 2 there. */
	if (in.ptw_bytes != (in.cls != INSN_PTWRITE ? 0 : z.operand_width == 64 ? 8 : 4))
		fail(CHECK_SIZE, mode, b, in.ptw_bytes, z.operand_width);
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 5000000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	if (ZYDIS_VERSION_MAJOR(ZydisGetVersion()) != 4) {
		printf("skipped: written for Zydis 4\n0 passed, 0 failed, 1 skipped\n");
		return 0;
	}
	ZydisDecoderInit(&decoders[INSN_64], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderInit(&decoders[INSN_32], ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
	ZydisDecoderInit(&decoders[INSN_16], ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);

	random_state = seed ? seed : 1;
	for (int mode = INSN_64; mode <= INSN_16; mode++) {
		for (uint64_t i = 0; i < count; i++) {
			uint8_t b[16];

			fill(b, (enum insn_mode)mode);
			compare(b, (enum insn_mode)mode);
		}
	}

	printf("  seed %" PRIu64 ": %" PRIu64 " instructions for both, %" PRIu64 " invalid for both\n", seed,
	       sum.both, sum.neither);
	for (int r = RULE_NONE + 1; r < RULE_COUNT; r++)
		printf("  %" PRIu64 " %s\n", sum.rules[r], rule_names[r]);
	for (int c = 0; c < CHECK_COUNT; c++) {
		char text[100];

		snprintf(text, sizeof text, "%s: %" PRIu64 " differ", check_names[c], sum.failed[c]);
		check(!sum.failed[c], text);
	}
	return sum_up();
}
