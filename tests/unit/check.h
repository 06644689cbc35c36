/*
 * check.h - what unit tests count with: check() what must hold, and end main() with `return sum_up()`.
 *
 * A test is what its text says: the same text in a loop is one test, also where only numbers in it differ. It passes when
 * the condition held each time.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CHECK_TESTS_MAX = 1 << 15 };
static struct {
	uint64_t text; /* its hash; 0: a free slot */
	bool failed;
} checked[CHECK_TESTS_MAX];

/* FNV-1a over the text, each number in it as one '0'. */
static uint64_t check_hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *text; text++) {
		bool digit = *text >= '0' && *text <= '9';

		if (digit && text[1] >= '0' && text[1] <= '9')
			continue;
		h = (h ^ (digit ? '0' : (unsigned char)*text)) * 0x100000001b3u;
	}
	return h ? h : 1;
}

static void check(bool ok, const char *what)
{
	uint64_t text = check_hash(what);
	unsigned i = text % CHECK_TESTS_MAX;

	for (unsigned n = 0; checked[i].text && checked[i].text != text && n < CHECK_TESTS_MAX; n++)
		i = (i + 1) % CHECK_TESTS_MAX;
	checked[i].text = text;
	checked[i].failed = checked[i].failed || !ok;
	if (!ok)
		printf("FAILED: %s\n", what);
}

/* Prints the line that tests/run.sh wants; the exit status. */
static int sum_up(void)
{
	unsigned passed = 0, failed = 0;

	for (unsigned i = 0; i < CHECK_TESTS_MAX; i++) {
		passed += checked[i].text && !checked[i].failed;
		failed += checked[i].failed;
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}

#endif
