/*
 * insn.c - x86 instruction lengths and branch classes from tables (insn_tables.h).
 *
 * An opcode is judged by its number, mandatory prefix, group digit (ModRM's /r), and memory or register form.
 * Fields that can only raise #UD without changing the length (VEX.L, W, vvvv, reserved registers, CPUID
 * features) are not looked at.
 */
#include <stdbool.h>

#include "decode/insn.h"
#include "decode/insn_tables.h"

enum { MAX_LEN = 15 };

/* An instruction that is being decoded. */
struct op {
	const uint8_t *p;
	size_t n;      /* bytes that may be read */
	size_t max;    /* of them those that an instruction can have */
	size_t length; /* so far */
	enum insn_mode mode;
	unsigned rex; /* 0: none */
	bool rex2;
	bool p66, p67, lock;
	bool m64;     /* mode is INSN_64 */
	unsigned pp;  /* the mandatory prefix */
	unsigned map; /* 0: one-byte opcodes, 1: 0F; 2: 0F 38; 3: 0F 3A; or VEX_MAP, EVEX_MAP, XOP_MAP + n */
	unsigned opcode; /* its last byte */
	unsigned modrm;
};

enum { VEX_MAP = 0x10, EVEX_MAP = 0x20, XOP_MAP = 0x30 };
enum { REX_W = 8, REX_R = 4 };

static bool has(const uint64_t set[4], unsigned v)
{
	return set[v >> 6] >> (v & 63) & 1;
}

/* The bytes have ended before the instruction has. */
static int past_end(const struct op *o)
{
	return o->n < MAX_LEN ? INSN_TRUNCATED : INSN_INVALID;
}

/* ---- Opcodes that ModRM extends or restricts -------------------------------------------------------- */

/* All return what an entry becomes once ModRM is known: 0 where that makes it undefined. */

static unsigned reg_of(const struct op *o)
{
	return o->modrm >> 3 & 7;
}

static bool is_memory(const struct op *o)
{
	return o->modrm < 0xc0;
}

/* 0F 01 */
static uint32_t grp7(const struct op *o, uint32_t e)
{
	unsigned reg = reg_of(o);

	if (is_memory(o))
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

/* 0F AE */
static uint32_t grp15(const struct op *o, uint32_t e)
{
	unsigned reg = reg_of(o);

	if (is_memory(o)) {
		switch (o->pp) {
		case PP_NONE: return o->rex2 && reg >= 4 && reg <= 6 ? 0 : e; /* XSAVE, XRSTOR, XSAVEOPT */
		case PP_66: return reg == 6 || reg == 7 ? e : 0;	      /* CLWB, CLFLUSHOPT */
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

/* 0F C7 */
static uint32_t grp9(const struct op *o, uint32_t e)
{
	unsigned reg = reg_of(o);

	if (!is_memory(o)) {
		if (o->pp == PP_F3)
			return reg == 7 || (reg == 6 && o->m64) ? e : 0; /* RDPID, SENDUIPI */
		return reg >= 6 && o->pp != PP_F2 ? e : 0;		 /* RDRAND, RDSEED */
	}
	switch (reg) {
	case 1: return e | LOCKABLE;
	case 3: /* XRSTORS, XSAVEC, XSAVES */
	case 4:
	case 5: return o->pp == PP_NONE && !o->rex2 ? e : 0;
	case 6:
		if (o->pp == PP_NONE)
			return e | CLS(INSN_VMPTRLD);
		return o->pp == PP_F2 ? 0 : e; /* VMCLEAR, VMXON */
	case 7: return o->pp == PP_NONE ? e : 0;
	}
	return 0;
}

#define KEY(map, opcode) ((map) << 8 | (opcode))

/* One-byte opcodes. */
static uint32_t group_one_byte(const struct op *o, uint32_t e)
{
	unsigned reg = reg_of(o);
	bool mem = is_memory(o);

	switch (o->opcode) {
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
	}
	return e;
}

/* 0F. */
static uint32_t group_0f(const struct op *o, uint32_t e)
{
	unsigned reg = reg_of(o);
	bool mem = is_memory(o);

	switch (o->opcode) {
	case 0x00: return reg < 6 || (reg == 6 && o->pp == PP_F2 && o->m64) ? e : 0; /* LKGS */
	case 0x01: return grp7(o, e);
	case 0x12: return mem || o->pp != PP_66 ? e : 0;
	case 0x16: return o->pp != PP_F2 && (mem || o->pp != PP_66) ? e : 0;
	case 0x20:
	case 0x22:
		if (o->rex & REX_R)
			return reg == 0 ? e : 0; /* CR8 */
		if (reg == 3 && o->opcode == 0x22)
			return e | CLS(INSN_MOV_CR3);
		return reg == 0 || (reg >= 2 && reg <= 4) ? e : 0;
	case 0x21:
	case 0x23: return o->rex & REX_R ? 0 : e;
	case 0x71:
	case 0x72: return reg == 2 || reg == 4 || reg == 6 ? e : 0;
	case 0x73:
		if (reg == 3 || reg == 7)
			return o->pp == PP_66 ? e : 0;
		return reg == 2 || reg == 6 ? e : 0;
	case 0x78: /* VMREAD; AMD's EXTRQ and INSERTQ, registers only, with two immediates */
	case 0x79:
		if (o->pp == PP_NONE)
			return e;
		if (mem || (o->opcode == 0x78 && o->pp == PP_66 && reg != 0))
			return 0;
		return o->opcode == 0x78 ? e | IMM_8_8 : e;
	case 0xa6: /* PadLock */ return o->pp == PP_F3 && (o->modrm & 7) == 0 && reg < 3 ? e : 0;
	case 0xa7: /* XSTORE needs no F3 */
		return (o->pp == PP_F3 || reg == 0) && (o->modrm & 7) == 0 && reg < 6 ? e : 0;
	case 0xae: return grp15(o, e);
	case 0xba: return reg < 4 ? 0 : reg > 4 ? e | LOCKABLE : e;
	case 0xc7: return grp9(o, e);
	case 0xd6: return o->pp != PP_NONE && (o->pp == PP_66 || !mem) ? e : 0;
	}
	return e;
}

/* 0F 38, 0F 3A. */
static uint32_t group_0f38_0f3a(const struct op *o, uint32_t e)
{
	unsigned reg = reg_of(o);
	bool mem = is_memory(o);

	switch (KEY(o->map, o->opcode)) {
	case KEY(2, 0xd8): return reg < 4 ? e : 0;
	case KEY(2, 0xdd):
	case KEY(2, 0xde):
	case KEY(2, 0xdf): return mem || o->pp == PP_66 ? e : 0; /* with F3 Key Locker */
	case KEY(2, 0xf0):
	case KEY(2, 0xf1): return mem || o->pp == PP_F2 ? e : 0;   /* MOVBE, CRC32 */
	case KEY(2, 0xf6): return mem || o->pp != PP_NONE ? e : 0; /* WRSS */
	case KEY(2, 0xf8): return mem || o->pp != PP_66 ? e : 0;   /* MOVDIR64B */
	case KEY(3, 0xf0): return o->modrm == 0xc0 ? e : 0;	   /* HRESET */
	}
	return e;
}

/* VEX. */
static uint32_t group_vex(const struct op *o, uint32_t e)
{
	unsigned reg = reg_of(o);
	bool mem = is_memory(o);

	switch (KEY(o->map - VEX_MAP, o->opcode)) {
	case KEY(1, 0x12):
	case KEY(1, 0x16): return mem || o->pp != PP_66 ? e : 0;
	case KEY(1, 0x71):
	case KEY(1, 0x72): return !mem && (reg == 2 || reg == 4 || reg == 6) ? e : 0;
	case KEY(1, 0x73): return !mem && (reg & 2) ? e : 0;
	case KEY(1, 0xae): return reg == 2 || reg == 3 ? e : 0; /* VLDMXCSR, VSTMXCSR */
	case KEY(2, 0x49): /* LDTILECFG, TILERELEASE; STTILECFG; TILEZERO */
		if (mem)
			return reg == 0 && o->pp != PP_F2 ? e : 0;
		if (o->pp == PP_NONE)
			return o->modrm == 0xc0 ? e : 0;
		return o->pp == PP_F2 && (o->modrm & 7) == 0 ? e : 0;
	case KEY(2, 0xf3): return reg >= 1 && reg <= 3 ? e : 0;
	}
	return e;
}

/* EVEX. */
static uint32_t group_evex(const struct op *o, uint32_t e)
{
	unsigned reg = reg_of(o);
	bool mem = is_memory(o);

	switch (KEY(o->map - EVEX_MAP, o->opcode)) {
	case KEY(1, 0x12):
	case KEY(1, 0x16): return mem || o->pp != PP_66 ? e : 0;
	case KEY(1, 0x71): return reg == 2 || reg == 4 || reg == 6 ? e : 0;
	case KEY(1, 0x72): return reg == 0 || reg == 1 || reg == 2 || reg == 4 || reg == 6 ? e : 0;
	case KEY(1, 0x73): return reg & 2 ? e : 0;
	case KEY(2, 0x28): /* with F3 mask moves, registers only */
	case KEY(2, 0x29):
	case KEY(2, 0x38):
	case KEY(2, 0x39):
	case KEY(2, 0x3a): return mem && o->pp == PP_F3 ? 0 : e;
	case KEY(2, 0x2a): return mem == (o->pp == PP_66) ? e : 0;
	case KEY(2, 0x49): return reg == 0 ? e : 0; /* LDTILECFG, STTILECFG */
	case KEY(2, 0xf3): return reg >= 1 && reg <= 3 ? e : 0;
	case KEY(2, 0x52): /* with F2 four-operand forms, memory only */
	case KEY(2, 0x53):
	case KEY(2, 0x9a):
	case KEY(2, 0x9b):
	case KEY(2, 0xaa):
	case KEY(2, 0xab): return !mem && o->pp == PP_F2 ? 0 : e;
	case KEY(2, 0xc6):
	case KEY(2, 0xc7): return reg == 1 || reg == 2 || reg == 5 || reg == 6 ? e : 0;
	}
	return e;
}

/* EVEX map 4: the one-byte opcodes, and some of 0F and 0F 38, of APX. */
static uint32_t group_evex4(const struct op *o, uint32_t e)
{
	unsigned reg = reg_of(o);
	bool mem = is_memory(o);

	switch (o->opcode) {
	case 0x66: return mem || o->pp != PP_NONE ? e : 0; /* WRSS; ADCX, ADOX */
	case 0x8f: return reg == 0 ? e : 0;		   /* POP2 */
	case 0xf0:
	case 0xf1: return mem || o->pp != PP_F3 ? e : 0; /* CRC32; INVEPT, INVVPID */
	case 0xf6: return reg < 2 ? e | IMM_8 : e;
	case 0xf7: return reg < 2 ? e | IMM_Z : e;
	case 0xf8: return mem || o->pp != PP_66 ? e : 0; /* MOVDIR64B */
	case 0xfe: return reg < 2 ? e : 0;
	case 0xff: return reg == 6 || (reg < 2 && o->pp <= PP_66) ? e : 0; /* PUSH2 */
	}
	return e;
}

/* XOP. */
static uint32_t group_xop(const struct op *o, uint32_t e)
{
	unsigned reg = reg_of(o);
	bool mem = is_memory(o);

	switch (KEY(o->map - XOP_MAP, o->opcode)) {
	case KEY(9, 0x01): return reg != 0 ? e : 0;
	case KEY(9, 0x02): return reg == 1 || reg == 6 ? e : 0;
	case KEY(9, 0x12): return !mem && reg < 2 ? e : 0;
	case KEY(10, 0x12): return reg < 2 ? e : 0;
	}
	return e;
}

static uint32_t group(const struct op *o, uint32_t e)
{
	switch (o->map) {
	case 0: return group_one_byte(o, e);
	case 1: return group_0f(o, e);
	case 2:
	case 3: return group_0f38_0f3a(o, e);
	}
	if (o->map == EVEX_MAP + 4)
		return group_evex4(o, e);
	return o->map < EVEX_MAP ? group_vex(o, e) : o->map < XOP_MAP ? group_evex(o, e) : group_xop(o, e);
}

/* ---- The parts of an instruction, in their order ---------------------------------------------------- */

/* Prefixes come in any order and number; a REX counts only directly before the opcode. Ends with the opcode's
 * first byte. */
static int take_prefixes(struct op *o)
{
	unsigned rep = PP_NONE;

	for (;;) {
		if (o->length == o->max)
			return past_end(o);
		o->opcode = o->p[o->length++];
		if (o->m64 && (o->opcode & 0xf0) == 0x40) {
			o->rex = o->opcode;
			continue;
		}
		if (!(map0[o->opcode] & PREFIX))
			break;
		o->rex = 0;
		switch (o->opcode) {
		case 0x66: o->p66 = true; break;
		case 0x67: o->p67 = true; break;
		case 0xf0: o->lock = true; break;
		case 0xf2: rep = PP_F2; break;
		case 0xf3: rep = PP_F3; break;
		}
	}
	o->pp = rep ? rep : o->p66 ? PP_66 : PP_NONE;
	return 0;
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

/* p1: the byte of the EVEX prefix that has W. The operand size is by W and pp, as by REX.W and 66. */
static uint32_t evex4_entry(unsigned p1, struct op *o)
{
	unsigned v = evex4[o->opcode];

	o->rex = p1 & 0x80 ? REX_W : 0;
	o->p66 = o->pp == PP_66;
	return PP(v & 0xf) | MODRM | GROUP | (v & 0x10 ? IMM_8 : v & 0x20 ? IMM_Z : 0) | (v & 0x40 ? MEM : 0);
}

/*
 * The VEX, EVEX or XOP prefix that starts with `first`; q are the bytes after it, up to and including the
 * opcode. Fills o's map, opcode, pp; returns the entry, 0 when undefined.
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
		/* P0 bit 3 must be 0, P1 bit 2 must be 1; in 64-bit mode they are APX's B4 and X4. */
		if (!o->m64 && ((q[0] & 8) || !(q[1] & 4)))
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
	if (first == 0x62 && !o->m64 && map >= 1 && map <= 3 && has(evex_apx[map - 1], o->opcode))
		return 0;
	switch (map) {
	case 1:
		if (o->map == VEX_MAP + 1 && o->opcode == 0x77)
			return PP(1); /* VZEROUPPER, VZEROALL */
		imm8 = (o->opcode >= 0x70 && o->opcode <= 0x73) || o->opcode == 0xc2 ||
		       (o->opcode >= 0xc4 && o->opcode <= 0xc6);
		return shared_entry(vec1[o->opcode], first == 0x62 ? 2 : 1) | GROUP | (imm8 ? IMM_8 : 0);
	case 2: return shared_entry(vec2[o->opcode], first == 0x62 ? 2 : 1) | GROUP;
	case 3: return shared_entry(vec3[o->opcode], first == 0x62 ? 2 : 1) | IMM_8;
	case 4: return first == 0x62 && o->m64 ? evex4_entry(q[1], o) : 0;
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

/* After 0F: the rest of the opcode. */
static int take_0f(struct op *o, uint32_t *ret)
{
	if (o->length == o->max)
		return past_end(o);
	o->map = 1;
	o->opcode = o->p[o->length++];
	*ret = map1[o->opcode];
	if (o->opcode == 0x38 || o->opcode == 0x3a) {
		o->map = o->opcode == 0x3a ? 3 : 2;
		if (o->length == o->max)
			return past_end(o);
		o->opcode = o->p[o->length++];
		*ret = GROUP | (o->map == 3 ? shared_entry(vec3[o->opcode], 0) | IMM_8
					    : shared_entry(vec2[o->opcode], 0));
	}
	return 0;
}

/*
 * After D5 in 64-bit mode: a REX2 prefix, which is the last one and is the whole way to its opcode:
 * of the one-byte opcodes or of 0F's (its M0). JMPABS is a jump to an address that is no part of the
 * decision: as it is patched while programs run, the CPU sends a TIP as for an indirect one (APX
 * specification, "JMPABS").
 */
static int take_rex2(struct op *o, uint32_t *ret)
{
	unsigned payload;

	if (o->rex)
		return INSN_INVALID;
	if (o->max - o->length < 2)
		return past_end(o);
	payload = o->p[o->length++];
	o->opcode = o->p[o->length++];
	o->rex = 0x40 | (payload & 0xf);
	o->rex2 = true;
	o->map = payload >> 7;
	if (o->map == 0 && o->opcode == 0xa1) {
		*ret = o->p66 || o->p67 || (payload & REX_W) ? 0 : PP(1) | IMM_64 | CLS(INSN_JMP_IND);
		return 0;
	}
	*ret = has(o->map ? rex2_map1_not : rex2_map0_not, o->opcode) ? 0
	       : o->map ? map1[o->opcode]
			: map0[o->opcode];
	return 0;
}

/* After 62, 8F, C4 or C5: the prefix that it begins; or nothing, when it is an opcode. */
static int take_vector_prefix(struct op *o, uint32_t *ret)
{
	unsigned first = o->opcode, next;
	size_t bytes = first == 0xc5 ? 2 : first == 0x62 ? 4 : 3;

	if (o->length == o->max)
		return past_end(o);
	next = o->p[o->length];
	/* In the older modes BOUND, LES and LDS, which take memory only; everywhere POP, with an /r of 0. */
	if (first == 0x8f ? (next & 0x1f) < 8 : !o->m64 && next < 0xc0)
		return 0;
	if (o->rex || o->lock || o->pp != PP_NONE)
		return INSN_INVALID;
	if (o->max - o->length < bytes)
		return past_end(o);
	*ret = vector_entry(first, o->p + o->length, o);
	o->length += bytes;
	return 0;
}

/* The opcode's entry. */
static int take_opcode(struct op *o, uint32_t *ret)
{
	int error = 0;

	*ret = map0[o->opcode];
	switch (o->opcode) {
	case 0x0f: error = take_0f(o, ret); break;
	case 0x62:
	case 0x8f:
	case 0xc4:
	case 0xc5: error = take_vector_prefix(o, ret); break;
	case 0xd5:
		if (o->m64)
			error = take_rex2(o, ret);
		break;
	}
	if (error)
		return error;
	return !(ENTRY_PP(*ret) >> o->pp & 1) || (o->m64 && (*ret & NOT64)) ? INSN_INVALID : 0;
}

/* ModRM, SIB and displacement, of which the latter two may lie beyond the bytes. */
static int take_operands(struct op *o, uint32_t *entry)
{
	unsigned mod, rm;

	if (o->length == o->max)
		return past_end(o);
	o->modrm = o->p[o->length++];
	if (*entry & ALWAYSREG)
		o->modrm |= 0xc0;
	if (*entry & GROUP)
		*entry = group(o, *entry);
	if (*entry == 0)
		return INSN_INVALID;
	mod = o->modrm >> 6;
	rm = o->modrm & 7;
	if (*entry & (mod == 3 ? MEM : REG))
		return INSN_INVALID;
	if (mod == 3)
		return 0;
	if (!o->m64 && (o->mode == INSN_16) != o->p67) { /* 16-bit addressing */
		o->length += mod == 0 ? (rm == 6 ? 2 : 0) : mod;
		return 0;
	}
	if (rm == 4) {
		if (o->length == o->max)
			return past_end(o);
		rm = o->p[o->length++] & 7; /* SIB.base, which has the same special case */
	}
	o->length += mod == 1 ? 1 : mod == 2 || rm == 5 ? 4 : 0;
	return 0;
}

static bool takes_lock(const struct op *o, uint32_t entry)
{
	bool cmp = o->map == 0 && (o->opcode & 0xfc) == 0x80 && reg_of(o) == 7;

	return (entry & LOCKABLE) && is_memory(o) && !cmp;
}

/* An index into imm_bytes' rows. */
enum { SIZE_16, SIZE_32, SIZE_64 };

static unsigned operand_size(const struct op *o, unsigned imm)
{
	if (imm == IMM_RELZ && o->m64)
		return SIZE_32;
	return o->rex & REX_W ? SIZE_64 : (o->mode == INSN_16) == o->p66 ? SIZE_32 : SIZE_16;
}

static unsigned address_size(const struct op *o)
{
	if (o->m64)
		return o->p67 ? SIZE_32 : SIZE_64;
	return (o->mode == INSN_16) == o->p67 ? SIZE_32 : SIZE_16;
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
	struct op o = {
	    .p = p, .n = n, .max = n < MAX_LEN ? n : MAX_LEN, .mode = mode, .m64 = mode == INSN_64};
	unsigned imm, cls, bytes, opsize;
	size_t imm_at;
	uint32_t entry;
	int error;

	error = take_prefixes(&o);
	if (!error)
		error = take_opcode(&o, &entry);
	if (!error && (entry & MODRM))
		error = take_operands(&o, &entry);
	if (error)
		return error;
	if (o.lock && !takes_lock(&o, entry))
		return INSN_INVALID;

	imm = ENTRY_IMM(entry);
	cls = ENTRY_CLS(entry);
	opsize = operand_size(&o, imm);
	bytes = imm_bytes[imm][imm == IMM_MOFFS ? address_size(&o) : opsize];
	imm_at = o.length;
	o.length += bytes;
	if (o.length > MAX_LEN)
		return INSN_INVALID;
	if (o.length > n)
		return INSN_TRUNCATED;
	if (imm == IMM_3DNOW && !has(amd_3dnow, p[imm_at]))
		return INSN_INVALID;

	ret->len = (uint8_t)o.length;
	ret->cls = (uint8_t)cls;
	ret->ptw_bytes = cls != INSN_PTWRITE ? 0 : o.rex & REX_W ? 8 : 4;
	/* The abort address of an XBEGIN is never cut to 16 bits (SDM vol. 2). */
	ret->opsize16 = !o.m64 && opsize == SIZE_16 && cls != INSN_XBEGIN;
	ret->rel = 0;
	if (cls == INSN_JCC || cls == INSN_JMP || cls == INSN_CALL || cls == INSN_XBEGIN)
		ret->rel = read_rel(p + imm_at, bytes);
	return (int)o.length;
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
