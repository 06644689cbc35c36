/* test_executed_lines.c - executed instructions, by lines of 64 bytes (decode/output/executed_lines.h). */
#include <stdio.h>
#include <string.h>

#include "decode/output/executed_lines.h"
#include "tests/unit/check.h"

static struct pt_executed_lines lines;
static char text[4096];

static enum pt_executed_added add(uint32_t version, uint32_t symbol, uint64_t ip, const char *bytes)
{
	const struct pt_executed_insn insn = {.ip = ip,
					      .version = version,
					      .symbol = symbol,
					      .bits = 64,
					      .len = (uint32_t)strlen(bytes),
					      .bytes = (const uint8_t *)bytes};

	return pt_executed_lines_add(&lines, &insn);
}

static int print(void *arg, const struct ptr_code *r)
{
	size_t at = 0, n = strlen(text);

	(void)arg;
	n += (size_t)snprintf(text + n, sizeof text - n, "%u/%u %lx:", r->version, r->symbol,
			      (unsigned long)r->ip);
	for (uint32_t i = 0; i < r->count; at += r->lens[i++])
		n += (size_t)snprintf(text + n, sizeof text - n, " %.*s", r->lens[i], r->bytes + at);
	snprintf(text + n, sizeof text - n, "\n");
	return 0;
}

static void expect(const char *what, const char *expected)
{
	bool memory;

	text[0] = 0;
	check(pt_executed_lines_put(&lines, print, NULL, &memory) == 0 && memory, "written");
	check_case(!strcmp(text, expected), what, text);
	pt_executed_lines_empty(&lines);
}

static void fill(uint32_t version, uint64_t ip, unsigned n)
{
	while (n--)
		add(version, 1, ip++, "r");
}

int main(void)
{
	struct pt_error e;

	check(pt_executed_lines_init(&lines, &e) == 0, "made");
	expect("none", "");

	add(1, 7, 0x1030, "abc");
	add(1, 7, 0x1033, "defghijklmnopqr"); /* into the next line */
	add(1, 7, 0x1042, "s");
	check(add(1, 7, 0x1030, "abc") == PT_EXECUTED_THERE, "again");
	expect("a record goes on over the end of a line, and has each once",
	       "1/7 1030: abc defghijklmnopqr s\n");

	add(1, 7, 0x1000, "abcde");
	check(add(1, 7, 0x1002, "cd") == PT_EXECUTED_THERE, "into the middle of an instruction");
	check(add(1, 7, 0x1003, "x") == PT_EXECUTED_DIFFERS, "other bytes in the middle of an instruction");
	check(add(1, 7, 0x1000, "abcd") == PT_EXECUTED_DIFFERS, "another length");
	check(add(1, 7, 0x1000, "abcdf") == PT_EXECUTED_DIFFERS, "other bytes");
	check(add(1, 8, 0x1000, "abcde") == PT_EXECUTED_DIFFERS, "another symbol");
	check(add(2, 8, 0x1000, "abcdf") == PT_EXECUTED_THERE, "another version");
	expect("instructions in the middle of others", "1/7 1000: abcde\n1/7 1002: cd\n2/8 1000: abcdf\n");

	/* Behind the line's end, too. */
	add(1, 7, 0x103e, "abcde");
	check(add(1, 7, 0x103f, "bcx") == PT_EXECUTED_DIFFERS, "other bytes after the line");
	check(add(1, 7, 0x103f, "bcdefg") == PT_EXECUTED_THERE, "more bytes after the line");
	check(add(1, 7, 0x103d, "zabcdefh") == PT_EXECUTED_DIFFERS, "of both");
	expect("across a line's end", "1/7 103e: abcde\n1/7 103f: bcdefg\n");

	/* Symbols that share a line, and one that goes on after another's. */
	add(1, 2, 0x1010, "b");
	add(1, 1, 0x1000, "a");
	add(1, 1, 0x1001, "a");
	add(1, 2, 0x1011, "b");
	add(1, 1, 0x1012, "c");
	expect("symbols that share a line", "1/1 1000: a a\n1/1 1012: c\n1/2 1010: b b\n");

	fill(1, 0x103f, PTR_CODE_INSNS + 1);
	expect("as many as a record has, and the rest",
	       "1/1 103f: r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r r "
	       "r r r r "
	       "r r r r r r r r r r r r r r r r r r r\n1/1 107f: r\n");

	for (uint32_t i = 0; i < 20000; i++)
		check(add(1 + i % 3, 1, 0x400000 + 67 * (uint64_t)i, "abc") == PT_EXECUTED_THERE, "many");
	for (uint32_t i = 0; i < 20000; i++)
		check(add(1 + i % 3, 1, 0x400000 + 67 * (uint64_t)i, "abd") == PT_EXECUTED_DIFFERS,
		      "are found");
	pt_executed_lines_deinit(&lines);
	return sum_up();
}
