/*
 * test_insn - decode/insn.c, one instruction per case: length, class, displacement. Each case is decoded also
 * cut short at every byte, from memory that ends with it, and with other bytes after it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/insn.h"

static unsigned passed, failed;

static void check(bool ok, const char *name, const char *what, long got, long want)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("FAIL %s: %s: %ld, not %ld\n", name, what, got, want);
}

/* The bytes of a string like "e8 00 10"; "66*14 90" repeats. Returns how many. */
static size_t parse(const char *hex, uint8_t *ret)
{
	size_t n = 0;

	while (*hex) {
		char *end;
		unsigned long v = strtoul(hex, &end, 16), times = 1;

		if (*end == '*')
			times = strtoul(end + 1, &end, 10);
		while (times-- > 0)
			ret[n++] = (uint8_t)v;
		hex = end + strspn(end, " ");
	}
	return n;
}

/* Decodes from a copy that ends where the bytes do: a sanitizer sees a read past n. */
static int decode(const uint8_t *b, size_t n, enum insn_mode mode, struct insn *ret)
{
	uint8_t *copy = malloc(n ? n : 1);
	int len;

	if (copy == NULL)
		abort();
	memcpy(copy, b, n);
	len = insn_decode(n ? copy : copy + 1, n, mode, ret);
	free(copy);
	return len;
}

/* A valid instruction: the whole of `hex`. */
struct valid {
	const char *name;
	enum insn_mode mode;
	const char *hex;
	enum insn_class cls;
	int32_t rel;
};

#define M64 INSN_64
#define M32 INSN_32
#define M16 INSN_16

static const struct valid valid[] = {
    /* Near branches. */
    {"jo", M64, "70 7f", INSN_JCC, 127},
    {"jg back", M64, "7f 80", INSN_JCC, -128},
    {"je rel32", M64, "0f 84 44 33 22 11", INSN_JCC, 0x11223344},
    {"jne rel32 back", M64, "0f 85 fe ff ff ff", INSN_JCC, -2},
    {"je with 66: rel32 in 64-bit mode", M64, "66 0f 84 00 01 00 00", INSN_JCC, 256},
    {"je rel32, 32-bit", M32, "0f 84 00 01 00 00", INSN_JCC, 256},
    {"je rel16, 32-bit", M32, "66 0f 84 00 ff", INSN_JCC, -256},
    {"je rel16, 16-bit", M16, "0f 84 00 ff", INSN_JCC, -256},
    {"je rel32, 16-bit", M16, "66 0f 84 00 01 00 00", INSN_JCC, 256},
    {"jcc with a hint", M64, "3e 75 fe", INSN_JCC, -2},
    {"bnd jcc", M64, "f2 75 02", INSN_JCC, 2},
    {"bnd jcc rel32", M64, "f2 0f 85 01 00 00 00", INSN_JCC, 1},
    {"loopne", M64, "e0 fe", INSN_JCC, -2},
    {"loope", M64, "e1 fe", INSN_JCC, -2},
    {"loop", M64, "e2 fe", INSN_JCC, -2},
    {"loop with ecx", M64, "67 e2 fe", INSN_JCC, -2},
    {"jrcxz", M64, "e3 05", INSN_JCC, 5},
    {"jecxz", M64, "67 e3 05", INSN_JCC, 5},
    {"jcxz, 16-bit", M16, "e3 05", INSN_JCC, 5},
    {"jmp rel8", M64, "eb fe", INSN_JMP, -2},
    {"jmp rel32", M64, "e9 fb ff ff ff", INSN_JMP, -5},
    {"jmp with 66: rel32 in 64-bit mode", M64, "66 e9 00 00 00 80", INSN_JMP, INT32_MIN},
    {"jmp with REX.W", M64, "48 e9 01 00 00 00", INSN_JMP, 1},
    {"jmp rel16, 32-bit", M32, "66 e9 34 12", INSN_JMP, 0x1234},
    {"jmp rel16, 16-bit", M16, "e9 34 f2", INSN_JMP, -0xdcc},
    {"jmp rel32, 16-bit", M16, "66 e9 78 56 34 12", INSN_JMP, 0x12345678},
    {"call", M64, "e8 00 00 00 00", INSN_CALL, 0},
    {"call with 66: rel32 in 64-bit mode", M64, "66 e8 00 00 00 00", INSN_CALL, 0},
    {"call of __tls_get_addr", M64, "66 48 e8 10 00 00 00", INSN_CALL, 16},
    {"call rel16, 32-bit", M32, "66 e8 00 80", INSN_CALL, -32768},
    {"call rel16, 16-bit", M16, "e8 00 80", INSN_CALL, -32768},
    {"bnd call", M64, "f2 e8 01 00 00 00", INSN_CALL, 1},
    {"call *rax", M64, "ff d0", INSN_CALL_IND, 0},
    {"call *r11", M64, "41 ff d3", INSN_CALL_IND, 0},
    {"call *mem", M64, "ff 15 78 56 34 12", INSN_CALL_IND, 0},
    {"call *(rax,rcx,8)", M64, "ff 14 c8", INSN_CALL_IND, 0},
    {"call *gs:10", M32, "65 ff 15 10 00 00 00", INSN_CALL_IND, 0},
    {"notrack jmp *rax", M64, "3e ff e0", INSN_JMP_IND, 0},
    {"bnd jmp *rax", M64, "f2 ff e0", INSN_JMP_IND, 0},
    {"jmp *table(,rax,8)", M64, "ff 24 c5 00 10 00 00", INSN_JMP_IND, 0},
    {"jmp *[bx], 16-bit", M16, "ff 27", INSN_JMP_IND, 0},
    {"jmp *disp16, 16-bit", M16, "ff 26 34 12", INSN_JMP_IND, 0},
    {"ret", M64, "c3", INSN_RET, 0},
    {"ret imm16", M64, "c2 08 00", INSN_RET, 0},
    {"rep ret", M64, "f3 c3", INSN_RET, 0},
    {"bnd ret", M64, "f2 c3", INSN_RET, 0},
    {"ret with 66", M64, "66 c3", INSN_RET, 0},
    {"ret, 16-bit", M16, "c2 02 00", INSN_RET, 0},

    /* Far transfers. */
    {"syscall", M64, "0f 05", INSN_SYSCALL, 0},
    {"sysenter", M32, "0f 34", INSN_SYSCALL, 0},
    {"sysenter, 64-bit", M64, "0f 34", INSN_SYSCALL, 0},
    {"sysret", M64, "0f 07", INSN_SYSRET, 0},
    {"sysretq", M64, "48 0f 07", INSN_SYSRET, 0},
    {"sysexit", M32, "0f 35", INSN_SYSRET, 0},
    {"int3", M64, "cc", INSN_INT, 0},
    {"int 80", M64, "cd 80", INSN_INT, 0},
    {"int1", M64, "f1", INSN_INT, 0},
    {"into", M32, "ce", INSN_INT, 0},
    {"iret", M32, "cf", INSN_IRET, 0},
    {"iretq", M64, "48 cf", INSN_IRET, 0},
    {"uiret", M64, "f3 0f 01 ec", INSN_IRET, 0},
    {"jmp far, 32-bit", M32, "ea 78 56 34 12 10 00", INSN_JMP_FAR, 0},
    {"jmp far, 16-bit", M16, "ea 00 7c 00 00", INSN_JMP_FAR, 0},
    {"jmp far with 66, 16-bit", M16, "66 ea 00 00 10 00 08 00", INSN_JMP_FAR, 0},
    {"jmp far with 66, 32-bit", M32, "66 ea 00 00 08 00", INSN_JMP_FAR, 0},
    {"jmp far *mem", M64, "48 ff 2d 00 00 00 00", INSN_JMP_FAR, 0},
    {"call far, 32-bit", M32, "9a 78 56 34 12 10 00", INSN_CALL_FAR, 0},
    {"call far, 16-bit", M16, "9a 00 00 00 f0", INSN_CALL_FAR, 0},
    {"call far *mem", M64, "ff 5c 24 08", INSN_CALL_FAR, 0},
    {"ret far", M64, "cb", INSN_RET_FAR, 0},
    {"retq far", M64, "48 cb", INSN_RET_FAR, 0},
    {"ret far imm16", M64, "ca 04 00", INSN_RET_FAR, 0},
    {"erets", M64, "f2 0f 01 ca", INSN_ERET, 0},
    {"eretu", M64, "f3 0f 01 ca", INSN_ERET, 0},
    {"vmlaunch", M64, "0f 01 c2", INSN_VMENTRY, 0},
    {"vmresume", M64, "0f 01 c3", INSN_VMENTRY, 0},
    {"rsm", M64, "0f aa", INSN_RSM, 0},

    /* Not branches, but with packets. */
    {"vmcall", M64, "0f 01 c1", INSN_VMCALL, 0},
    {"vmfunc", M64, "0f 01 d4", INSN_VMCALL, 0},
    {"mov cr3, rax", M64, "0f 22 d8", INSN_MOV_CR3, 0},
    {"mov cr3, r15", M64, "41 0f 22 df", INSN_MOV_CR3, 0},
    {"mov cr3, eax", M32, "0f 22 d8", INSN_MOV_CR3, 0},
    {"mov cr3 with ModRM.mod 0: still a register", M64, "0f 22 1c", INSN_MOV_CR3, 0},
    {"mov cr3 with ModRM.mod 2: still a register", M64, "0f 22 9d", INSN_MOV_CR3, 0},
    {"mov rax, cr3", M64, "0f 20 d8", INSN_OTHER, 0},
    {"mov cr0, rax", M64, "0f 22 c0", INSN_OTHER, 0},
    {"mov cr8, rax", M64, "44 0f 22 c0", INSN_OTHER, 0},
    {"mov dr7, rax", M64, "0f 23 f8", INSN_OTHER, 0},
    {"vmptrld", M64, "0f c7 30", INSN_VMPTRLD, 0},
    {"vmptrld disp32", M64, "0f c7 b5 00 10 00 00", INSN_VMPTRLD, 0},
    {"vmclear", M64, "66 0f c7 30", INSN_OTHER, 0},
    {"vmxon", M64, "f3 0f c7 30", INSN_OTHER, 0},
    {"vmptrst", M64, "0f c7 38", INSN_OTHER, 0},
    {"rdrand", M64, "0f c7 f0", INSN_OTHER, 0},
    {"rdpid", M64, "f3 0f c7 f8", INSN_OTHER, 0},
    {"senduipi", M64, "f3 0f c7 f0", INSN_OTHER, 0},
    {"ptwrite eax", M64, "f3 0f ae e0", INSN_PTWRITE, 0},
    {"ptwrite rax", M64, "f3 48 0f ae e0", INSN_PTWRITE, 0},
    {"ptwrite mem", M64, "f3 0f ae 64 24 08", INSN_PTWRITE, 0},
    {"ptwrite eax, 32-bit", M32, "f3 0f ae e0", INSN_PTWRITE, 0},
    {"xsave", M64, "0f ae 20", INSN_OTHER, 0},
    {"xbegin", M64, "c7 f8 10 00 00 00", INSN_XBEGIN, 16},
    {"xbegin rel16, 64-bit", M64, "66 c7 f8 f0 ff", INSN_XBEGIN, -16},
    {"xbegin rel16, 16-bit", M16, "c7 f8 f0 ff", INSN_XBEGIN, -16},
    {"xabort", M64, "c6 f8 01", INSN_OTHER, 0},
    {"xend", M64, "0f 01 d5", INSN_OTHER, 0},
    {"mwait", M64, "0f 01 c9", INSN_MWAIT, 0},
    {"umwait", M64, "f2 0f ae f1", INSN_MWAIT, 0},
    {"tpause", M64, "66 0f ae f1", INSN_MWAIT, 0},
    {"umonitor", M64, "f3 0f ae f1", INSN_OTHER, 0},
    {"clwb", M64, "66 0f ae 30", INSN_OTHER, 0},
    {"mfence", M64, "0f ae f0", INSN_OTHER, 0},
    {"rdfsbase", M64, "f3 48 0f ae c0", INSN_OTHER, 0},
    {"hlt", M64, "f4", INSN_HLT, 0},

    /* Neighbours in those groups that are nothing special. */
    {"clac", M64, "0f 01 ca", INSN_OTHER, 0},
    {"monitor", M64, "0f 01 c8", INSN_OTHER, 0},
    {"swapgs", M64, "0f 01 f8", INSN_OTHER, 0},
    {"rdtscp", M64, "0f 01 f9", INSN_OTHER, 0},
    {"mwaitx", M64, "0f 01 fb", INSN_OTHER, 0},
    {"vmmcall", M64, "0f 01 d9", INSN_OTHER, 0},
    {"stui", M64, "f3 0f 01 ef", INSN_OTHER, 0},
    {"wrpkru", M64, "0f 01 ef", INSN_OTHER, 0},
    {"serialize", M64, "0f 01 e8", INSN_OTHER, 0},
    {"lgdt", M64, "0f 01 15 00 00 00 00", INSN_OTHER, 0},
    {"invlpg", M64, "0f 01 38", INSN_OTHER, 0},
    {"push mem", M64, "ff 75 f8", INSN_OTHER, 0},
    {"inc mem", M64, "ff 00", INSN_OTHER, 0},
    {"dec al", M64, "fe c8", INSN_OTHER, 0},

    /* Nothing at all. */
    {"nop", M64, "90", INSN_OTHER, 0},
    {"pause", M64, "f3 90", INSN_OTHER, 0},
    {"nopl", M64, "0f 1f 44 00 00", INSN_OTHER, 0},
    {"nopw cs:", M64, "66 2e 0f 1f 84 00 00 00 00 00", INSN_OTHER, 0},
    {"data16 nopw cs:", M64, "66 66 2e 0f 1f 84 00 00 00 00 00", INSN_OTHER, 0},
    {"endbr64", M64, "f3 0f 1e fa", INSN_OTHER, 0},
    {"endbr32", M32, "f3 0f 1e fb", INSN_OTHER, 0},
    {"rdsspq", M64, "f3 48 0f 1e c8", INSN_OTHER, 0},
    {"ud0", M64, "0f ff c0", INSN_OTHER, 0},
    {"ud0 mem", M64, "0f ff 44 24 08", INSN_OTHER, 0},
    {"ud1", M64, "0f b9 40 00", INSN_OTHER, 0},
    {"ud2", M64, "0f 0b", INSN_OTHER, 0},
    {"ud1 of the undefined sanitizer", M64, "67 0f b9 40 16", INSN_OTHER, 0},
    {"prefetchw", M64, "0f 0d 08", INSN_OTHER, 0},
    {"wait", M64, "9b", INSN_OTHER, 0},

    /* Immediates. */
    {"add al, imm8", M64, "04 01", INSN_OTHER, 0},
    {"add eax, imm32", M64, "05 01 00 00 00", INSN_OTHER, 0},
    {"add ax, imm16", M64, "66 05 01 00", INSN_OTHER, 0},
    {"add rax, imm32", M64, "48 05 01 00 00 00", INSN_OTHER, 0},
    {"add rax with 66: REX.W wins", M64, "66 48 05 01 00 00 00", INSN_OTHER, 0},
    {"add, REX not last: ignored", M64, "48 66 05 01 00", INSN_OTHER, 0},
    {"add, two REX: the last counts", M64, "48 40 05 01 00 00 00", INSN_OTHER, 0},
    {"add ax, imm16, 16-bit", M16, "05 01 00", INSN_OTHER, 0},
    {"add eax, imm32, 16-bit", M16, "66 05 01 00 00 00", INSN_OTHER, 0},
    {"mov rax, imm64", M64, "48 b8 01 02 03 04 05 06 07 08", INSN_OTHER, 0},
    {"mov r9, imm64", M64, "49 b9 01 02 03 04 05 06 07 08", INSN_OTHER, 0},
    {"mov eax, imm32", M64, "b8 01 02 03 04", INSN_OTHER, 0},
    {"mov ax, imm16", M64, "66 b8 01 02", INSN_OTHER, 0},
    {"mov al, imm8", M64, "b0 01", INSN_OTHER, 0},
    {"movabs al, moffs64", M64, "a0 01 02 03 04 05 06 07 08", INSN_OTHER, 0},
    {"movabs moffs64, rax", M64, "48 a3 01 02 03 04 05 06 07 08", INSN_OTHER, 0},
    {"mov eax, moffs32 with 67", M64, "67 a1 01 02 03 04", INSN_OTHER, 0},
    {"mov eax, moffs32, 32-bit", M32, "a1 01 02 03 04", INSN_OTHER, 0},
    {"mov eax, moffs16, 32-bit", M32, "67 a1 01 02", INSN_OTHER, 0},
    {"mov ax, moffs16, 16-bit", M16, "a1 01 02", INSN_OTHER, 0},
    {"mov ax, moffs32, 16-bit", M16, "67 a1 01 02 03 04", INSN_OTHER, 0},
    {"mov with 66, moffs by address size", M32, "66 a1 01 02 03 04", INSN_OTHER, 0},
    {"push imm32", M64, "68 01 02 03 04", INSN_OTHER, 0},
    {"push imm16", M64, "66 68 01 02", INSN_OTHER, 0},
    {"push imm8", M64, "6a 01", INSN_OTHER, 0},
    {"imul imm32", M64, "69 c0 01 02 03 04", INSN_OTHER, 0},
    {"imul imm16", M64, "66 69 c0 01 02", INSN_OTHER, 0},
    {"imul imm8", M64, "6b 45 fc 03", INSN_OTHER, 0},
    {"enter", M64, "c8 10 00 00", INSN_OTHER, 0},
    {"leave", M64, "c9", INSN_OTHER, 0},
    {"cmp mem, imm32", M64, "81 3d 01 00 00 00 02 00 00 00", INSN_OTHER, 0},
    {"cmp mem, imm8", M64, "83 3d 01 00 00 00 02", INSN_OTHER, 0},
    {"shl imm8", M64, "c1 e0 04", INSN_OTHER, 0},
    {"sal /6", M64, "c1 f0 04", INSN_OTHER, 0},
    {"mov mem, imm32", M64, "48 c7 44 24 08 01 02 03 04", INSN_OTHER, 0},
    {"mov mem, imm16", M64, "66 c7 00 01 02", INSN_OTHER, 0},
    {"mov mem, imm8", M64, "c6 00 01", INSN_OTHER, 0},
    {"test /0 imm8", M64, "f6 c1 01", INSN_OTHER, 0},
    {"test /1 imm8", M64, "f6 c9 01", INSN_OTHER, 0},
    {"not has no immediate", M64, "f6 d1", INSN_OTHER, 0},
    {"test imm32", M64, "f7 c1 01 02 03 04", INSN_OTHER, 0},
    {"test /1 imm32", M64, "f7 c9 01 02 03 04", INSN_OTHER, 0},
    {"test imm16", M64, "66 f7 00 01 02", INSN_OTHER, 0},
    {"div has no immediate", M64, "48 f7 f1", INSN_OTHER, 0},
    {"bt imm8", M64, "0f ba e0 05", INSN_OTHER, 0},
    {"shld imm8", M64, "0f a4 c2 05", INSN_OTHER, 0},
    {"in al, imm8", M64, "e4 60", INSN_OTHER, 0},
    {"extrq", M64, "66 0f 78 c0 01 02", INSN_OTHER, 0},
    {"insertq", M64, "f2 0f 78 c1 01 02", INSN_OTHER, 0},
    {"insertq by registers", M64, "f2 0f 79 c1", INSN_OTHER, 0},
    {"vmread", M64, "0f 78 c1", INSN_OTHER, 0},

    /* Addressing. */
    {"rip + disp32", M64, "8b 05 01 00 00 00", INSN_OTHER, 0},
    {"disp32 by SIB", M64, "8b 04 25 01 00 00 00", INSN_OTHER, 0},
    {"(rax,rbx)", M64, "8b 04 18", INSN_OTHER, 0},
    {"disp32(,rax,8)", M64, "8b 04 c5 01 00 00 00", INSN_OTHER, 0},
    {"r13 as SIB.base needs a displacement, too", M64, "43 8b 44 25 00", INSN_OTHER, 0},
    {"disp8(rsp)", M64, "8b 44 24 08", INSN_OTHER, 0},
    {"disp32(rsp)", M64, "8b 84 24 00 01 00 00", INSN_OTHER, 0},
    {"disp8(rax)", M64, "8b 40 08", INSN_OTHER, 0},
    {"disp32(rax)", M64, "8b 80 00 01 00 00", INSN_OTHER, 0},
    {"67 changes no length in 64-bit mode", M64, "67 8b 04 25 01 00 00 00", INSN_OTHER, 0},
    {"disp32, 32-bit", M32, "8b 05 01 00 00 00", INSN_OTHER, 0},
    {"[bx+si], 16-bit", M16, "8b 00", INSN_OTHER, 0},
    {"[si], 16-bit: no SIB", M16, "8b 04", INSN_OTHER, 0},
    {"[di], 16-bit", M16, "8b 05", INSN_OTHER, 0},
    {"disp16, 16-bit", M16, "8b 06 34 12", INSN_OTHER, 0},
    {"[bp+disp8], 16-bit", M16, "8b 46 04", INSN_OTHER, 0},
    {"[bx+disp16], 16-bit", M16, "8b 87 34 12", INSN_OTHER, 0},
    {"67 in 16-bit mode", M16, "67 8b 84 88 01 00 00 00", INSN_OTHER, 0},
    {"67 in 32-bit mode", M32, "67 8b 86 34 12", INSN_OTHER, 0},

    /* Instructions that only the older modes have. */
    {"push es", M32, "06", INSN_OTHER, 0},
    {"daa", M32, "27", INSN_OTHER, 0},
    {"inc eax", M32, "40", INSN_OTHER, 0},
    {"dec edi", M32, "4f", INSN_OTHER, 0},
    {"pusha", M32, "60", INSN_OTHER, 0},
    {"bound", M32, "62 00", INSN_OTHER, 0},
    {"bound disp32", M32, "62 05 01 00 00 00", INSN_OTHER, 0},
    {"arpl", M32, "63 c8", INSN_OTHER, 0},
    {"movslq", M64, "48 63 d0", INSN_OTHER, 0},
    {"82 is 80", M32, "82 c0 01", INSN_OTHER, 0},
    {"les", M32, "c4 00", INSN_OTHER, 0},
    {"lds", M16, "c5 46 04", INSN_OTHER, 0},
    {"aam", M32, "d4 0a", INSN_OTHER, 0},
    {"salc", M32, "d6", INSN_OTHER, 0},
    {"aas", M16, "3f", INSN_OTHER, 0},

    /* LOCK. */
    {"lock add", M64, "f0 01 00", INSN_OTHER, 0},
    {"lock cmpxchg", M64, "f0 48 0f b1 0f", INSN_OTHER, 0},
    {"lock cmpxchg16b", M64, "f0 48 0f c7 0f", INSN_OTHER, 0},
    {"lock bts imm8", M64, "f0 0f ba 28 05", INSN_OTHER, 0},
    {"lock dec", M64, "f0 ff 08", INSN_OTHER, 0},
    {"xacquire lock xchg", M64, "f2 f0 87 08", INSN_OTHER, 0},
    {"lock or imm8, a fence", M64, "f0 83 0c 24 00", INSN_OTHER, 0},

    /* SSE, its prefixes, the three-byte maps, 3DNow!, x87. */
    {"movups", M64, "0f 10 00", INSN_OTHER, 0},
    {"movsd, with 66 too", M64, "66 f2 0f 10 00", INSN_OTHER, 0},
    {"pshufd", M64, "66 0f 70 c0 1b", INSN_OTHER, 0},
    {"pslldq", M64, "66 0f 73 f8 04", INSN_OTHER, 0},
    {"cmpps", M64, "0f c2 c1 02", INSN_OTHER, 0},
    {"pinsrw", M64, "66 0f c4 c0 01", INSN_OTHER, 0},
    {"shufps mem", M64, "0f c6 04 25 01 00 00 00 11", INSN_OTHER, 0},
    {"emms", M64, "0f 77", INSN_OTHER, 0},
    {"popcnt", M64, "f3 48 0f b8 c1", INSN_OTHER, 0},
    {"pshufb", M64, "66 0f 38 00 c1", INSN_OTHER, 0},
    {"movbe", M64, "0f 38 f0 00", INSN_OTHER, 0},
    {"crc32", M64, "f2 48 0f 38 f1 c1", INSN_OTHER, 0},
    {"adox", M64, "f3 48 0f 38 f6 c1", INSN_OTHER, 0},
    {"invept", M64, "66 0f 38 80 00", INSN_OTHER, 0},
    {"palignr", M64, "66 0f 3a 0f c1 04", INSN_OTHER, 0},
    {"pclmulqdq mem", M64, "66 0f 3a 44 40 10 11", INSN_OTHER, 0},
    {"sha1rnds4", M64, "0f 3a cc c1 01", INSN_OTHER, 0},
    {"pfadd, 3DNow!", M64, "0f 0f c1 9e", INSN_OTHER, 0},
    {"pavgusb mem, 3DNow!", M32, "0f 0f 44 24 08 bf", INSN_OTHER, 0},
    {"femms", M32, "0f 0e", INSN_OTHER, 0},
    {"fld", M64, "d9 45 00", INSN_OTHER, 0},
    {"fnstsw ax", M64, "df e0", INSN_OTHER, 0},
    {"fcmovne", M64, "db c9", INSN_OTHER, 0},

    /* VEX. */
    {"vzeroupper has no ModRM", M64, "c5 f8 77", INSN_OTHER, 0},
    {"vzeroall, three bytes of VEX", M64, "c4 e1 7c 77", INSN_OTHER, 0},
    {"vaddps", M64, "c5 f4 58 c2", INSN_OTHER, 0},
    {"vmovdqu mem", M64, "c5 fe 6f 44 24 20", INSN_OTHER, 0},
    {"vpshufd imm8", M64, "c5 f9 70 c1 1b", INSN_OTHER, 0},
    {"vpsrldq imm8", M64, "c5 f1 73 d9 04", INSN_OTHER, 0},
    {"vcmpps imm8", M64, "c5 f4 c2 c1 02", INSN_OTHER, 0},
    {"vpextrw imm8", M64, "c5 f9 c5 c1 02", INSN_OTHER, 0},
    {"vpshufb, map 2", M64, "c4 e2 71 00 c2", INSN_OTHER, 0},
    {"vpalignr, map 3", M64, "c4 e3 71 0f c2 04", INSN_OTHER, 0},
    {"vpermq mem, map 3", M64, "c4 e3 fd 00 05 01 00 00 00 4e", INSN_OTHER, 0},
    {"rorx", M64, "c4 e3 fb f0 c1 05", INSN_OTHER, 0},
    {"andn", M64, "c4 e2 f0 f2 c2", INSN_OTHER, 0},
    {"blsr", M64, "c4 e2 f8 f3 c9", INSN_OTHER, 0},
    {"kmovw", M64, "c5 f8 92 c8", INSN_OTHER, 0},
    {"vfmaddps, FMA4", M64, "c4 e3 f1 68 c2 30", INSN_OTHER, 0},
    {"vpgatherdd", M64, "c4 e2 69 90 04 08", INSN_OTHER, 0},
    {"tileloadd", M64, "c4 e2 7b 4b 04 08", INSN_OTHER, 0},
    {"tilerelease", M64, "c4 e2 78 49 c0", INSN_OTHER, 0},
    {"urdmsr imm32", M64, "c4 e7 7b f8 c0 01 00 00 00", INSN_OTHER, 0},
    {"vaddps with fs: and 67", M64, "64 67 c5 f4 58 00", INSN_OTHER, 0},
    {"vaddps, 32-bit", M32, "c5 f4 58 c2", INSN_OTHER, 0},
    {"vaddps disp16, 16-bit", M16, "c5 f4 58 06 34 12", INSN_OTHER, 0},
    {"vpalignr, 32-bit", M32, "c4 e3 71 0f c2 04", INSN_OTHER, 0},

    /* EVEX. */
    {"vpternlogd, map 3", M64, "62 f3 75 48 25 c2 ff", INSN_OTHER, 0},
    {"vmovdqu64 disp8*64", M64, "62 f1 fe 48 6f 40 01", INSN_OTHER, 0},
    {"vmovdqu8 disp32", M64, "62 f1 7f 48 6f 80 01 00 00 00", INSN_OTHER, 0},
    {"vpcmpeqb to a mask", M64, "62 f1 75 20 74 c2", INSN_OTHER, 0},
    {"vpsrlq mem, imm8", M64, "62 f1 f5 48 73 10 04", INSN_OTHER, 0},
    {"vcmpps imm8", M64, "62 f1 74 48 c2 c1 02", INSN_OTHER, 0},
    {"vpermb, map 2", M64, "62 f2 75 48 8d c2", INSN_OTHER, 0},
    {"vaddph, map 5", M64, "62 f5 74 48 58 c2", INSN_OTHER, 0},
    {"vfmadd231ph, map 6", M64, "62 f6 75 48 b8 c2", INSN_OTHER, 0},
    {"vaddps zmm, 32-bit", M32, "62 f1 74 48 58 c2", INSN_OTHER, 0},

    /* XOP. */
    {"vpcmov, map 8", M64, "8f e8 70 a2 c2 30", INSN_OTHER, 0},
    {"vprotb, map 9", M64, "8f e9 70 90 c2", INSN_OTHER, 0},
    {"bextr imm32, map a", M64, "8f ea 78 10 c1 01 02 03 04", INSN_OTHER, 0},
    {"vpcmov, 32-bit", M32, "8f e8 70 a2 c2 30", INSN_OTHER, 0},
    {"pop mem is no XOP", M64, "8f 44 24 08", INSN_OTHER, 0},
    {"pop rax by 8f", M64, "8f c0", INSN_OTHER, 0},

    /* The longest ones. */
    {"15 bytes with prefixes", M64, "66*14 90", INSN_OTHER, 0},
    {"lock add imm16 with segment, 67, 66", M64, "64 67 66 f0 81 84 88 01 02 03 04 05 06", INSN_OTHER, 0},
    {"15 bytes, imm64", M64, "2e*5 48 b8 01 02 03 04 05 06 07 08", INSN_OTHER, 0},
    {"15 bytes, jmp", M64, "2e*10 e9 04 03 02 01", INSN_JMP, 0x01020304},
    {"15 bytes, ret", M64, "f3*14 c3", INSN_RET, 0},
};

/* No instruction of any CPU, or longer than 15 bytes. */
static const struct invalid {
	const char *name;
	enum insn_mode mode;
	const char *hex;
} invalid[] = {
    {"push es", M64, "06"},
    {"pop es", M64, "07"},
    {"push cs", M64, "0e"},
    {"push ss", M64, "16"},
    {"pop ss", M64, "17"},
    {"push ds", M64, "1e"},
    {"pop ds", M64, "1f"},
    {"daa", M64, "27"},
    {"das", M64, "2f"},
    {"aaa", M64, "37"},
    {"aas", M64, "3f"},
    {"pusha", M64, "60"},
    {"popa", M64, "61"},
    {"82", M64, "82 c0 01"},
    {"call far", M64, "9a 00 00 00 00 00 00"},
    {"into", M64, "ce"},
    {"aam", M64, "d4 0a"},
    {"aad", M64, "d5 0a"},
    {"salc", M64, "d6"},
    {"jmp far", M64, "ea 00 00 00 00 00 00"},
    {"16 bytes, prefixes", M64, "66*15 90"},
    {"16 bytes, immediate", M64, "2e*11 e9 00 00 00 00"},
    {"16 bytes, ModRM", M64, "2e*14 8b c0"},
    {"16 bytes, SIB", M64, "2e*13 8b 04 08"},
    {"16 bytes, opcode", M64, "2e*14 0f 05"},
    {"16 bytes, VEX", M64, "2e*12 c5 f4 58 c2"},
    {"15 prefixes", M64, "66*15"},
    {"undefined 0f 04", M64, "0f 04"},
    {"undefined 0f 0a", M64, "0f 0a"},
    {"undefined 0f 24", M64, "0f 24 c0"},
    {"undefined 0f 38 0c", M64, "0f 38 0c c0"},
    {"undefined 0f 3a 00", M64, "66 0f 3a 00 c0 00"},
    {"undefined 3DNow!", M64, "0f 0f c0 00"},
    {"jmpe: 0f b8 without f3", M64, "0f b8 c0"},
    {"pshufb with f2", M64, "f2 0f 38 00 c0"},
    {"group 5 /7", M64, "ff f8"},
    {"call far *reg", M64, "ff d8"},
    {"jmp far *reg", M64, "ff e8"},
    {"group 4 /2", M64, "fe d0"},
    {"mov /1 imm8", M64, "c6 c8 00"},
    {"pop /4", M64, "8f 60 00"},
    {"lea of a register", M64, "8d c0"},
    {"mov to cs", M64, "8e c8"},
    {"mov from segment 7", M64, "8c f8"},
    {"mov cr1", M64, "0f 22 c8"},
    {"ptwrite with 66", M64, "66 f3 0f ae e0"},
    {"erets, 32-bit", M32, "f2 0f 01 ca"},
    {"uiret, 32-bit", M32, "f3 0f 01 ec"},
    {"swapgs, 32-bit", M32, "0f 01 f8"},
    {"lock nop", M64, "f0 90"},
    {"lock add to a register", M64, "f0 01 c0"},
    {"lock cmp", M64, "f0 83 38 00"},
    {"lock jmp", M64, "f0 eb 00"},
    {"vex with 66", M64, "66 c5 f8 77"},
    {"vex with f2", M64, "f2 c5 f8 77"},
    {"vex with REX", M64, "48 c5 f8 77"},
    {"vex with lock", M64, "f0 c5 f8 77"},
    {"vex map 0", M64, "c4 e0 78 77 c0"},
    {"vex map 4", M64, "c4 e4 78 77 c0"},
    {"vex, undefined opcode", M64, "c5 f8 04 c0"},
    {"evex with 66", M64, "66 62 f1 74 48 58 c2"},
    {"evex map 0", M64, "62 f0 74 48 58 c2"},
    {"evex without its fixed bit", M64, "62 f1 70 48 58 c2"},
    {"xop, undefined opcode", M64, "8f e8 78 00 c0 00"},
    {"bound", M64, "62 00 00 00 00 00"},
};

static void test_valid(void)
{
	for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
		const struct valid *v = &valid[i];
		uint8_t b[64];
		size_t n = parse(v->hex, b);
		struct insn in = {0}, again = {0}, untouched;
		int len = decode(b, n, v->mode, &in);

		check(len == (int)n, v->name, "length", len, (long)n);
		if (len != (int)n)
			continue;
		check(in.len == n, v->name, "len", in.len, (long)n);
		check(in.cls == v->cls, v->name, "class", in.cls, v->cls);
		check(in.rel == v->rel, v->name, "rel", in.rel, v->rel);
		check(in.cls == INSN_PTWRITE || in.ptw_bytes == 0, v->name, "ptw_bytes", in.ptw_bytes, 0);
		check(v->mode != INSN_64 || in.opsize16 == 0, v->name, "opsize16", in.opsize16, 0);

		memset(&untouched, 0x5a, sizeof untouched);
		for (size_t k = 0; k < n; k++) {
			len = decode(b, k, v->mode, &untouched);
			check(len == INSN_TRUNCATED, v->name, "cut short", len, INSN_TRUNCATED);
		}
		check(untouched.len == 0x5a && untouched.cls == 0x5a && untouched.rel == 0x5a5a5a5a, v->name,
		      "*ret after a failure", untouched.len, 0x5a);

		for (int after = 0; after < 256; after += 85) {
			memset(b + n, after, sizeof b - n);
			len = insn_decode(b, sizeof b, v->mode, &again);
			check(len == (int)n && again.cls == in.cls && again.rel == in.rel, v->name,
			      "with bytes after it", len, (long)n);
		}
	}
}

static void test_invalid(void)
{
	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		const struct invalid *v = &invalid[i];
		uint8_t b[64];
		size_t n = parse(v->hex, b);
		struct insn in;
		int len = decode(b, n, v->mode, &in);

		check(len == INSN_INVALID, v->name, "undefined", len, INSN_INVALID);
		/* Cut short it may be seen as undefined already or not yet, but never as an instruction. */
		for (size_t k = 0; k < n; k++) {
			len = decode(b, k, v->mode, &in);
			check(len < 0, v->name, "undefined, cut short", len, INSN_TRUNCATED);
		}
	}
}

static void test_operand_size(void)
{
	static const struct {
		const char *hex;
		enum insn_mode mode;
		int ptw_bytes, opsize16;
	} cases[] = {
	    {"f3 0f ae e0", M64, 4, 0}, {"f3 48 0f ae e0", M64, 8, 0}, {"f3 0f ae 20", M32, 4, 0},
	    {"f3 0f ae e0", M16, 4, 1}, {"48 f3 0f ae e0", M64, 4, 0}, {"eb 00", M64, 0, 0},
	    {"66 eb 00", M64, 0, 0},	{"eb 00", M32, 0, 0},	       {"66 eb 00", M32, 0, 1},
	    {"eb 00", M16, 0, 1},	{"66 eb 00", M16, 0, 0},       {"66 75 00", M32, 0, 1},
	    {"e2 00", M16, 0, 1},	{"67 e2 00", M32, 0, 0},       {"66 e8 00 00", M32, 0, 1},
	    {"e8 00 00", M16, 0, 1},	{"66 c7 f8 00 00", M32, 0, 0}, {"c7 f8 00 00", M16, 0, 0},
	    {"66 66 eb 00", M32, 0, 1}, {"66 66 eb 00", M16, 0, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t b[16];
		size_t n = parse(cases[i].hex, b);
		struct insn in = {0};
		int len = decode(b, n, cases[i].mode, &in);

		check(len == (int)n, cases[i].hex, "length", len, (long)n);
		check(in.ptw_bytes == cases[i].ptw_bytes, cases[i].hex, "ptw_bytes", in.ptw_bytes,
		      cases[i].ptw_bytes);
		check(in.opsize16 == cases[i].opsize16, cases[i].hex, "opsize16", in.opsize16,
		      cases[i].opsize16);
	}
}

static void test_target(void)
{
	static const struct {
		const char *name, *hex;
		enum insn_mode mode;
		uint64_t ip, target;
		bool unsure;
	} cases[] = {
	    {"forward", "e8 00 10 00 00", M64, 0x401000, 0x402005, false},
	    {"itself", "eb fe", M64, 0xffffffff81000000, 0xffffffff81000000, false},
	    {"back across 2^32", "e9 f0 ff ff ff", M64, 0x100000000, 0xfffffff5, false},
	    {"wraps at 2^64", "eb 10", M64, 0xfffffffffffffff8, 0xa, false},
	    {"wraps at 2^32", "eb 10", M32, 0xfffffff8, 0xa, false},
	    {"wraps at 2^32, back", "eb f0", M32, 0, 0xfffffff2, false},
	    {"cut to 16 bits", "66 eb 00", M32, 0x12345, 0x2348, false},
	    {"wraps at 2^16, or not", "eb 10", M16, 0xfff8, 0xa, true},
	    {"a segment above 64 KB, or wraps", "eb 10", M16, 0xffff0, 0x100002, true},
	    {"to the end of 64 KB", "eb 0d", M16, 0xffff0, 0xfffff, false},
	    {"back to the beginning of 64 KB", "eb f0", M16, 0xf000e, 0xf0000, false},
	    {"back before it, or wraps", "eb ef", M16, 0xf000e, 0xeffff, true},
	    {"after the last of 64 KB", "eb 00", M16, 0xffffe, 0x100000, false},
	    {"32 bits in 16-bit mode", "66 e9 00 00 01 00", M16, 0x100, 0x10106, false},
	    {"xbegin is not cut", "66 c7 f8 00 00", M32, 0x12345, 0x1234a, false},
	    {"xbegin rel16, 64-bit", "66 c7 f8 fb ff", M64, 0x401000, 0x401000, false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t b[16];
		size_t n = parse(cases[i].hex, b);
		struct insn in = {0};
		uint64_t to;

		decode(b, n, cases[i].mode, &in);
		to = insn_target(&in, cases[i].ip, cases[i].mode);
		check(to == cases[i].target, cases[i].name, "target", (long)to, (long)cases[i].target);
		check(insn_target_sure(&in, cases[i].ip, cases[i].mode) == !cases[i].unsure, cases[i].name,
		      "sure", cases[i].unsure, !cases[i].unsure);
	}
}

static void test_names(void)
{
	for (int i = INSN_OTHER; i <= INSN_HLT; i++) {
		const char *name = insn_class_name((enum insn_class)i);

		if (name == NULL || *name == '\0') {
			check(false, "insn_class_name", "no name", i, i);
			continue;
		}
		passed++;
		for (int k = INSN_OTHER; k < i; k++) {
			if (strcmp(name, insn_class_name((enum insn_class)k)) == 0)
				check(false, "insn_class_name", "the same name for two", k, i);
		}
	}
	check(insn_class_name((enum insn_class)200) != NULL, "insn_class_name", "of no class", 0, 1);
	check(strcmp(insn_class_name(INSN_CALL_IND), "call indirect") == 0, "insn_class_name",
	      "call indirect", 0, 1);
}

/* Every mode, all first two bytes, all lengths: nothing is read past n, no length beyond 15 or n. */
static void test_all_beginnings(void)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < 3 * 65536; i++) {
		uint8_t b[24];
		struct insn in;

		for (size_t k = 0; k < sizeof b; k++)
			b[k] = (uint8_t)((i * 2654435761u + k * 40503u) >> 7);
		b[0] = (uint8_t)i;
		b[1] = (uint8_t)(i >> 8);
		for (size_t n = 0; n <= 17; n++) {
			int len = decode(b, n, (enum insn_mode)(i >> 16), &in);

			if (len == 0 || len < INSN_TRUNCATED || len > 15 || len > (int)n ||
			    (n >= 15 && len == INSN_TRUNCATED))
				wrong++;
		}
	}
	check(wrong == 0, "all beginnings", "wrong lengths", wrong, 0);
}

int main(void)
{
	test_valid();
	test_invalid();
	test_operand_size();
	test_target();
	test_names();
	test_all_beginnings();
	printf("%u passed, %u failed\n", passed, failed);
	return failed > 0;
}
