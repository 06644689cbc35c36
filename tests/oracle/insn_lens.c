/*
 * insn_lens - objdump's reading of a library against decode/insn.c's, instruction by instruction.
 *
 *   objdump -d -z -w -M intel64 --insn-width=16 FILE | insn_lens NAME PPM
 *
 * Compares length, class (from the mnemonic) and branch target (from the operand). Where objdump
 * finds no instruction, "(bad)", ours must find none either. Code that a compiler made has no
 * difference at all; but some libraries keep tables among their code, and of such bytes objdump
 * prints readings that no CPU shares. Each kind of these is a rule below, counted and printed; all of
 * them together, and the (bad) ones, may be at most PPM millionths of the instructions. Prints one
 * line per check, "ok" or "FAIL", and the first differences; exits 1 when a check failed.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/insn.h"

enum { BATCH = 4096, AHEAD = 16, MAX_SHOWN = 20, MAX_EXAMPLES = 3 };

struct line {
	uint64_t addr;
	unsigned len;
	uint8_t bytes[16];
	char text[112]; /* mnemonic and operands */
};

enum rule {
	RULE_NONE,
	RULE_BAD, /* objdump: (bad); ours: invalid. No difference, but no code either. */
	/* 9b is WAIT, an instruction (SDM vol. 2); objdump joins it to the x87 one after it: fstcw */
	RULE_FWAIT,
	RULE_PREFIX, /* prefixes alone on a line: a second REX after it, or what follows is bad with them */
	RULE_BYTE,   /* .byte: a symbol begins within the instruction */
	/* What #UD is for the SDM, and invalid for ours, though objdump has a mnemonic: */
	RULE_LOCK, /* LOCK before what cannot be locked (vol. 2, LOCK) */
	RULE_SREG, /* MOV with segment register 6 or 7, MOV to CS (vol. 2, MOV) */
	RULE_VEX,  /* REX, 66, F2, F3 before VEX, EVEX (vol. 2, 2.3.2 to 2.3.5, 2.7.1) */
	RULE_287,  /* FRSTPM: "287 only" (vol. 2, opcode map) */
	/* What objdump rejects, but ours gives the length of: */
	/* VEX, EVEX, XOP with an L, W, vvvv or mask that the opcode does not have: #UD, length certain */
	RULE_FIELD,
	RULE_X87,  /* x87 aliases that all CPUs execute: dc d0 is fcom */
	RULE_BND,  /* BNDLDX, BNDSTX with an address that has no MPX meaning: a NOP where MPX is off */
	RULE_REX2, /* D5 in 64-bit mode: binutils knows APX's prefix from 2.44 on (oracle/insn_apx.sh) */
	RULE_COUNT
};
static const char *const rule_names[RULE_COUNT] = {
    [RULE_BAD] = "bad for both",      [RULE_FWAIT] = "wait joined", [RULE_PREFIX] = "lone prefixes",
    [RULE_BYTE] = "cut by a symbol",  [RULE_LOCK] = "lock",	    [RULE_SREG] = "segment register",
    [RULE_VEX] = "prefix before VEX", [RULE_287] = "287 only",	    [RULE_FIELD] = "VEX field",
    [RULE_X87] = "x87 alias",	      [RULE_BND] = "MPX address",   [RULE_REX2] = "REX2",
};

enum check { CHECK_LENGTH, CHECK_CLASS, CHECK_TARGET, CHECK_BAD, CHECK_SHARE, CHECK_COUNT };
static const char *const check_names[CHECK_COUNT] = {"lengths", "classes", "branch targets", "(bad)",
						     "share of what is no code"};

static struct {
	uint64_t insns, targets, rules[RULE_COUNT], failed[CHECK_COUNT], classes[INSN_HLT + 1];
} sum;

static int hex_digit(int c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False when it is not a line of disassembly. */
static bool parse(const char *s, struct line *ret)
{
	char *end;

	ret->addr = strtoull(s, &end, 16);
	if (end == s || end[0] != ':' || end[1] != '\t')
		return false;
	for (ret->len = 0, s = end + 2; ret->len < 16 && hex_digit(s[0]) >= 0 && hex_digit(s[1]) >= 0; s += 3)
		ret->bytes[ret->len++] = (uint8_t)(hex_digit(s[0]) << 4 | hex_digit(s[1]));
	while (*s == ' ')
		s++;
	if (ret->len == 0 || *s++ != '\t')
		return false;
	snprintf(ret->text, sizeof ret->text, "%.*s", (int)strcspn(s, "\n"), s);
	return true;
}

/* The text after the prefixes that objdump writes as words of their own. */
static const char *skip_prefixes(const char *s)
{
	static const char *const words[] = {"rep",    "repz",	"repnz",    "lock",    "bnd", "notrack",
					    "data16", "addr32", "cs",	    "ds",      "es",  "ss",
					    "fs",     "gs",	"xacquire", "xrelease"};

	for (;;) {
		size_t n = strcspn(s, " "), i;

		for (i = 0; i < sizeof words / sizeof *words; i++) {
			if (strlen(words[i]) == n && memcmp(s, words[i], n) == 0)
				break;
		}
		if (i == sizeof words / sizeof *words && strncmp(s, "rex", 3) != 0 && *s != '{')
			return s;
		s += n;
		s += strspn(s, " ");
		if (*s == '\0')
			return s;
	}
}

static bool starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static enum insn_class class_of(const char *s)
{
	static const struct {
		const char *mnemonic; /* its beginning */
		enum insn_class cls;
	} table[] = {
	    {"xbegin", INSN_XBEGIN},	{"loop", INSN_JCC},	    {"ret", INSN_RET},
	    {"lret", INSN_RET_FAR},	{"iret", INSN_IRET},	    {"uiret", INSN_IRET},
	    {"ljmp", INSN_JMP_FAR},	{"lcall", INSN_CALL_FAR},   {"syscall", INSN_SYSCALL},
	    {"sysenter", INSN_SYSCALL}, {"sysret", INSN_SYSRET},    {"sysexit", INSN_SYSRET},
	    {"hlt", INSN_HLT},		{"rsm", INSN_RSM},	    {"vmcall", INSN_VMCALL},
	    {"vmfunc", INSN_VMCALL},	{"vmlaunch", INSN_VMENTRY}, {"vmresume", INSN_VMENTRY},
	    {"vmptrld", INSN_VMPTRLD},	{"ptwrite", INSN_PTWRITE},  {"umwait", INSN_MWAIT},
	    {"tpause", INSN_MWAIT},	{"int3", INSN_INT},	    {"int1", INSN_INT},
	    {"int ", INSN_INT},		{"into", INSN_INT},
	};
	size_t n = strcspn(s, " ");
	bool indirect = s[n + strspn(s + n, " ")] == '*';

	if (starts(s, "jmp"))
		return indirect ? INSN_JMP_IND : INSN_JMP;
	if (starts(s, "call"))
		return indirect ? INSN_CALL_IND : INSN_CALL;
	if (*s == 'j')
		return INSN_JCC;
	if (starts(s, "mwait") && !starts(s, "mwaitx"))
		return INSN_MWAIT;
	if (starts(s, "mov ") && strstr(s, ",%cr3"))
		return INSN_MOV_CR3;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (starts(s, table[i].mnemonic))
			return table[i].cls;
	}
	return INSN_OTHER;
}

static void show(const char *what, const struct line *l, const char *ours)
{
	printf("  %s: %" PRIx64 ":", what, l->addr);
	for (unsigned i = 0; i < l->len; i++)
		printf(" %02x", l->bytes[i]);
	printf(" objdump '%s', ours %s\n", l->text, ours);
}

static void fail(enum check check, const struct line *l, const char *ours)
{
	if (sum.failed[check]++ < MAX_SHOWN)
		show(check_names[check], l, ours);
}

/* The rule that excuses a difference, if one does. `len` is ours; p are the bytes from l on. */
static enum rule excuse(const struct line *l, const char *mnemonic, int len, const uint8_t *p, size_t n)
{
	bool bad = strstr(l->text, "(bad)") != NULL;
	bool prefixed = false, vex;
	size_t i = 0;

	/* `prefixed`: with one that VEX does not stand. */
	for (; i < n; i++) {
		if (p[i] == 0x66 || p[i] == 0xf0 || p[i] == 0xf2 || p[i] == 0xf3 || (p[i] & 0xf0) == 0x40)
			prefixed = true;
		else if (p[i] != 0x67 && p[i] != 0x64 && p[i] != 0x65 && (p[i] & 0xe7) != 0x26)
			break;
	}
	vex = i < n && (p[i] == 0x62 || p[i] == 0xc4 || p[i] == 0xc5);

	if (starts(l->text, ".byte"))
		return RULE_BYTE;
	if (bad && len == INSN_INVALID)
		return RULE_BAD;
	if (bad && len > 0 && (vex || (i < n && p[i] == 0x8f)))
		return RULE_FIELD;
	if (bad && len > 0 && i + 1 < n && (p[i] & 0xf8) == 0xd8 && p[i + 1] >= 0xc0)
		return RULE_X87;
	if (bad && len > 0 && starts(mnemonic, "bnd"))
		return RULE_BND;
	if (bad && len > 0 && i < n && p[i] == 0xd5)
		return RULE_REX2;
	if (bad)
		return RULE_NONE;
	if (*mnemonic == '\0' || *mnemonic == '#')
		return RULE_PREFIX;
	if (len != INSN_INVALID)
		return RULE_NONE;
	if (strstr(l->text, "lock "))
		return RULE_LOCK;
	if (starts(mnemonic, "mov") && (strstr(l->text, "%?") || strstr(l->text, ",%cs")))
		return RULE_SREG;
	if (strstr(l->text, "287 only"))
		return RULE_287;
	return prefixed && vex ? RULE_VEX : RULE_NONE;
}

static void compare(const struct line *l, const uint8_t *p, size_t n)
{
	const char *mnemonic = skip_prefixes(l->text);
	struct insn in = {0}, x87;
	int len = insn_decode(p, n, INSN_64, &in);
	char ours[64];
	enum insn_class cls;
	enum rule rule;

	if (len > 0)
		snprintf(ours, sizeof ours, "%d bytes, %s", len, insn_class_name(in.cls));
	else
		snprintf(ours, sizeof ours, "%s", len == INSN_INVALID ? "invalid" : "truncated");
	rule = excuse(l, mnemonic, len, p, n);
	if (p[0] == 0x9b && len == 1 && l->len > 1) {
		len += insn_decode(p + 1, n - 1, INSN_64, &x87);
		rule = len == (int)l->len ? RULE_FWAIT : RULE_NONE;
	}
	if (rule != RULE_NONE) {
		if (sum.rules[rule]++ < MAX_EXAMPLES)
			show(rule_names[rule], l, ours);
		return;
	}
	if (strstr(l->text, "(bad)")) {
		fail(CHECK_BAD, l, ours);
		return;
	}

	sum.insns++;
	if (len != (int)l->len) {
		fail(CHECK_LENGTH, l, ours);
		return;
	}
	cls = class_of(mnemonic);
	sum.classes[cls]++;
	if (cls != in.cls)
		fail(CHECK_CLASS, l, ours);
	if (cls == INSN_JCC || cls == INSN_JMP || cls == INSN_CALL || cls == INSN_XBEGIN) {
		const char *operand = strchr(mnemonic, ' ');

		sum.targets++;
		if (operand == NULL || strtoull(operand, NULL, 16) != insn_target(&in, l->addr, INSN_64))
			fail(CHECK_TARGET, l, ours);
	}
}

static void read_all(FILE *f)
{
	static struct line lines[BATCH + AHEAD];
	char *text = NULL;
	size_t cap = 0, held = 0;
	bool more = true;

	while (more || held > 0) {
		size_t i, todo;

		while (more && held < BATCH + AHEAD) {
			if (getline(&text, &cap, f) < 0)
				more = false;
			else if (parse(text, &lines[held]))
				held++;
		}
		/* A line's bytes may be only the beginning of what ours reads there. */
		todo = more ? held - AHEAD : held;
		for (i = 0; i < todo; i++) {
			uint8_t bytes[2 * AHEAD];
			size_t n = 0;

			for (size_t k = i; k < held && n < AHEAD && lines[k].addr == lines[i].addr + n; k++) {
				memcpy(bytes + n, lines[k].bytes, lines[k].len);
				n += lines[k].len;
			}
			compare(&lines[i], bytes, n);
		}
		memmove(lines, lines + todo, (held - todo) * sizeof *lines);
		held -= todo;
	}
	free(text);
}

int main(int argc, char **argv)
{
	uint64_t excused = 0;
	int status = 0;

	if (argc != 3) {
		fprintf(stderr,
			"usage: objdump -d -z -w -M intel64 --insn-width=16 FILE | insn_lens NAME PPM\n");
		return 2;
	}
	read_all(stdin);

	printf("  %s: %" PRIu64 " instructions, %" PRIu64 " targets\n ", argv[1], sum.insns, sum.targets);
	for (int c = 0; c <= INSN_HLT; c++) {
		if (sum.classes[c])
			printf(" %" PRIu64 " %s,", sum.classes[c], insn_class_name((enum insn_class)c));
	}
	printf("\n  excused:");
	for (int r = RULE_NONE + 1; r < RULE_COUNT; r++) {
		if (sum.rules[r])
			printf(" %" PRIu64 " %s,", sum.rules[r], rule_names[r]);
		excused += sum.rules[r];
	}
	printf(" in all %" PRIu64 "\n", excused);
	if (excused * 1000000 > sum.insns * strtoull(argv[2], NULL, 10))
		sum.failed[CHECK_SHARE] = excused;
	for (int c = 0; c < CHECK_COUNT; c++) {
		bool ok = sum.insns > 0 && sum.failed[c] == 0;

		printf("%s %s: %s", ok ? "ok" : "FAIL", argv[1], check_names[c]);
		if (sum.failed[c])
			printf(": %" PRIu64, sum.failed[c]);
		printf("\n");
		status |= !ok;
	}
	return status;
}
