/*
 * insn_lens - objdump's reading of a library against decode/insn.c's, instruction by instruction.
 *
 *   objdump -d -z -w -M intel64 --insn-width=16 FILE | insn_lens NAME
 *
 * Compares length, class (from the mnemonic) and branch target (from the operand). Where objdump finds no
 * instruction, "(bad)", ours must find none either. objdump is excused where it prints something that is not one
 * instruction of a CPU; each excuse is a rule below, counted and printed. Prints a line a check, "ok" or "FAIL",
 * and the first differences; exits 1 when a check failed.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/insn.h"

enum { BATCH = 4096, AHEAD = 16, MAX_SHOWN = 20 };

struct line {
	uint64_t addr;
	unsigned len;
	uint8_t bytes[16];
	char text[112]; /* mnemonic and operands */
};

enum rule {
	/* 9b is an instruction of its own (SDM vol. 2, WAIT); objdump writes it and the x87 one behind as one: fstcw. */
	RULE_FWAIT,
	/*
	 * Prefixes alone on a line: objdump takes no more than one REX (SDM vol. 2, 2.2.1: ours ignores all but the
	 * last), or the instruction behind them is bad with, but not without them.
	 */
	RULE_PREFIX_LINE,
	RULE_COUNT
};
static const char *const rule_names[RULE_COUNT] = {"fwait joined", "prefixes on a line of their own"};

enum check { CHECK_LENGTH, CHECK_CLASS, CHECK_TARGET, CHECK_BAD, CHECK_COUNT };
static const char *const check_names[CHECK_COUNT] = {"length", "class", "branch target", "(bad)"};

static struct {
	uint64_t insns, bad, targets, rules[RULE_COUNT], failed[CHECK_COUNT], classes[INSN_HLT + 1];
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

/* The text behind the prefixes that objdump writes as words of their own. */
static const char *skip_prefixes(const char *s)
{
	static const char *const words[] = {"rep", "repz", "repnz", "lock", "bnd", "notrack", "data16", "addr32",
					    "cs", "ds", "es", "ss", "fs", "gs", "xacquire", "xrelease"};

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
	    {"xbegin", INSN_XBEGIN},   {"loop", INSN_JCC},	{"ret", INSN_RET},	{"lret", INSN_RET_FAR},
	    {"iret", INSN_IRET},       {"uiret", INSN_IRET},	{"ljmp", INSN_JMP_FAR}, {"lcall", INSN_CALL_FAR},
	    {"syscall", INSN_SYSCALL}, {"sysenter", INSN_SYSCALL}, {"sysret", INSN_SYSRET}, {"sysexit", INSN_SYSRET},
	    {"hlt", INSN_HLT},	       {"rsm", INSN_RSM},	{"vmcall", INSN_VMCALL}, {"vmfunc", INSN_VMCALL},
	    {"vmlaunch", INSN_VMENTRY}, {"vmresume", INSN_VMENTRY}, {"vmptrld", INSN_VMPTRLD},
	    {"ptwrite", INSN_PTWRITE}, {"umwait", INSN_MWAIT},	{"tpause", INSN_MWAIT}, {"int3", INSN_INT},
	    {"int1", INSN_INT},	       {"int ", INSN_INT},	{"into", INSN_INT},
	};

	if (starts(s, "jmp"))
		return strchr(s, '*') ? INSN_JMP_IND : INSN_JMP;
	if (starts(s, "call"))
		return strchr(s, '*') ? INSN_CALL_IND : INSN_CALL;
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

static void fail(enum check check, const struct line *l, const char *ours)
{
	if (sum.failed[check]++ >= MAX_SHOWN)
		return;
	printf("  %s: %" PRIx64 ":", check_names[check], l->addr);
	for (unsigned i = 0; i < l->len; i++)
		printf(" %02x", l->bytes[i]);
	printf(" objdump '%s', ours %s\n", l->text, ours);
}

/* Compares line l; the bytes from it on, as far as they are known, are in p. */
static void compare(const struct line *l, const uint8_t *p, size_t n)
{
	const char *mnemonic = skip_prefixes(l->text);
	struct insn in = {0}, second;
	int len = insn_decode(p, n, INSN_64, &in);
	char ours[64];
	enum insn_class cls;

	if (len > 0)
		snprintf(ours, sizeof ours, "%d bytes, %s", len, insn_class_name(in.cls));
	else
		snprintf(ours, sizeof ours, "%s", len == INSN_INVALID ? "invalid" : "truncated");

	if (strstr(l->text, "(bad)")) {
		sum.bad++;
		if (len > 0)
			fail(CHECK_BAD, l, ours);
		return;
	}
	if (*mnemonic == '\0' || starts(mnemonic, "#")) {
		sum.rules[RULE_PREFIX_LINE]++;
		return;
	}
	sum.insns++;
	if (p[0] == 0x9b && len == 1 && l->len > 1) {
		len += insn_decode(p + 1, n - 1, INSN_64, &second);
		sum.rules[RULE_FWAIT]++;
	}
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

int main(int argc, char **argv)
{
	static struct line lines[BATCH + AHEAD];
	const char *name = argc > 1 ? argv[1] : "objdump";
	char *text = NULL;
	size_t cap = 0, held = 0;
	bool more = true;
	int status = 0;

	while (more || held > 0) {
		size_t i, todo;

		while (more && held < BATCH + AHEAD) {
			if (getline(&text, &cap, stdin) < 0)
				more = false;
			else if (parse(text, &lines[held]))
				held++;
		}
		todo = more ? held - AHEAD : held;
		for (i = 0; i < todo; i++) {
			uint8_t bytes[2 * AHEAD];
			size_t n = 0;

			for (size_t k = i; k < held && n < AHEAD; k++) {
				if (lines[k].addr != lines[i].addr + n)
					break; /* another section */
				memcpy(bytes + n, lines[k].bytes, lines[k].len);
				n += lines[k].len;
			}
			compare(&lines[i], bytes, n);
		}
		memmove(lines, lines + todo, (held - todo) * sizeof *lines);
		held -= todo;
	}
	free(text);

	printf("%s: %" PRIu64 " instructions, %" PRIu64 " targets; (bad): %" PRIu64, name, sum.insns, sum.targets,
	       sum.bad);
	for (int r = 0; r < RULE_COUNT; r++)
		printf("; %s: %" PRIu64, rule_names[r], sum.rules[r]);
	printf("\n ");
	for (int c = 0; c <= INSN_HLT; c++) {
		if (sum.classes[c])
			printf(" %s %" PRIu64, insn_class_name((enum insn_class)c), sum.classes[c]);
	}
	printf("\n");
	for (int c = 0; c < CHECK_COUNT; c++) {
		bool ok = sum.insns > 0 && sum.failed[c] == 0;

		printf("%s %s: %s", ok ? "ok" : "FAIL", name, check_names[c]);
		if (sum.failed[c])
			printf(": %" PRIu64 " differences", sum.failed[c]);
		printf("\n");
		status |= !ok;
	}
	return status;
}
