/*
 * test_insn - decode/insn.c, one instruction per case: length, class, displacement. Each case is decoded also
 * cut short at every byte, from memory that ends with it, and with other bytes after it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check.h"
#include "tests/unit/insn_cases.h"

/* Of the case of this name. */
static void expect(bool ok, const char *name, const char *what, long got, long expected)
{
	char text[100] = "";

	if (!ok)
		snprintf(text, sizeof text, "%s: %ld, not %ld", what, got, expected);
	check_case(ok, name, text);
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

static void test_valid(void)
{
	for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
		const struct valid *v = &valid[i];
		uint8_t b[64];
		size_t n = parse(v->hex, b);
		struct insn in = {0}, again = {0}, untouched;
		int len = decode(b, n, v->mode, &in);

		expect(len == (int)n, v->name, "length", len, (long)n);
		if (len != (int)n)
			continue;
		expect(in.len == n, v->name, "len", in.len, (long)n);
		expect(in.cls == v->cls, v->name, "class", in.cls, v->cls);
		expect(in.rel == v->rel, v->name, "rel", in.rel, v->rel);
		expect(in.cls == INSN_PTWRITE || in.ptw_bytes == 0, v->name, "ptw_bytes", in.ptw_bytes, 0);
		expect(v->mode != INSN_64 || in.opsize16 == 0, v->name, "opsize16", in.opsize16, 0);

		memset(&untouched, 0x5a, sizeof untouched);
		for (size_t k = 0; k < n; k++) {
			len = decode(b, k, v->mode, &untouched);
			expect(len == INSN_TRUNCATED, v->name, "cut short", len, INSN_TRUNCATED);
		}
		expect(untouched.len == 0x5a && untouched.cls == 0x5a && untouched.rel == 0x5a5a5a5a, v->name,
		       "*ret after a failure", untouched.len, 0x5a);

		for (int after = 0; after < 256; after += 85) {
			memset(b + n, after, sizeof b - n);
			len = insn_decode(b, sizeof b, v->mode, &again);
			expect(len == (int)n && again.cls == in.cls && again.rel == in.rel, v->name,
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

		expect(len == INSN_INVALID, v->name, "undefined", len, INSN_INVALID);
		/* Cut short it may be seen as undefined already or not yet, but never as an instruction. */
		for (size_t k = 0; k < n; k++) {
			len = decode(b, k, v->mode, &in);
			expect(len < 0, v->name, "undefined, cut short", len, INSN_TRUNCATED);
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
		char name[80];

		snprintf(name, sizeof name, "%s in mode %d", cases[i].hex, (int)cases[i].mode);
		expect(len == (int)n, name, "length", len, (long)n);
		expect(in.ptw_bytes == cases[i].ptw_bytes, name, "ptw_bytes", in.ptw_bytes,
		       cases[i].ptw_bytes);
		expect(in.opsize16 == cases[i].opsize16, name, "opsize16", in.opsize16, cases[i].opsize16);
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
		expect(to == cases[i].target, cases[i].name, "target", (long)to, (long)cases[i].target);
		expect(insn_target_sure(&in, cases[i].ip, cases[i].mode) == !cases[i].unsure, cases[i].name,
		       "sure", cases[i].unsure, !cases[i].unsure);
	}
}

static void test_names(void)
{
	for (int i = INSN_OTHER; i <= INSN_HLT; i++) {
		const char *name = insn_class_name((enum insn_class)i);

		expect(name && *name, "each class has a name", "class", i, i);
		for (int k = INSN_OTHER; name && k < i; k++)
			expect(strcmp(name, insn_class_name((enum insn_class)k)) != 0,
			       "no two classes have one name", name, k, i);
	}
	check(insn_class_name((enum insn_class)200) != NULL, "what is no class has a name");
	check(!strcmp(insn_class_name(INSN_CALL_IND), "call indirect"), "call indirect");
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
	check_same(wrong, 0, "wrong lengths of all beginnings");
}

int main(void)
{
	test_valid();
	test_invalid();
	test_operand_size();
	test_target();
	test_names();
	test_all_beginnings();
	return sum_up();
}
