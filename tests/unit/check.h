/*
 * check.h - how the tests that are written in C count: check() and its kin say what must hold, and
 * main() ends with `return sum_up()`.
 *
 * A test is what its text says: the same text in a loop is one test, also where only numbers in it
 * differ. It passes when the condition held each time. Each call hashes the text: a loop of millions
 * gathers its result in a bool first, and prints as information how many things it compared.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CHECK_SHOWN_MAX: that many failures of one test are printed. */
enum { CHECK_TESTS_MAX = 1 << 15, CHECK_SHOWN_MAX = 5 };
static struct {
	uint64_t key; /* 0: a free slot */
	uint32_t failures;
} checked[CHECK_TESTS_MAX];

/* FNV-1a over the text; with any_number, each number in it as one '0'. */
static inline uint64_t check_hash(const char *text, bool any_number)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *text; text++) {
		bool digit = any_number && *text >= '0' && *text <= '9';

		if (digit && text[1] >= '0' && text[1] <= '9')
			continue;
		h = (h ^ (digit ? '0' : (unsigned char)*text)) * 0x100000001b3u;
	}
	return h ? h : 1;
}

/* Counts one result of the test of this key. True for a failure that is to be printed. */
static inline bool check_count(uint64_t key, bool ok)
{
	unsigned i = key % CHECK_TESTS_MAX;

	for (unsigned n = 0; checked[i].key && checked[i].key != key; n++) {
		if (n == CHECK_TESTS_MAX) {
			printf("FAILED: more tests than CHECK_TESTS_MAX\n");
			exit(1);
		}
		i = (i + 1) % CHECK_TESTS_MAX;
	}
	checked[i].key = key;
	checked[i].failures += !ok;
	return !ok && checked[i].failures <= CHECK_SHOWN_MAX;
}

static inline void check(bool ok, const char *what)
{
	if (check_count(check_hash(what, true), ok))
		printf("FAILED: %s\n", what);
}

/* check() that two numbers are the same; a failure prints both. */
static inline void check_same(uint64_t got, uint64_t expected, const char *what)
{
	if (check_count(check_hash(what, true), got == expected))
		printf("FAILED: %s: %" PRIu64 " (0x%" PRIx64 "), expected %" PRIu64 " (0x%" PRIx64 ")\n",
		       what, got, got, expected, expected);
}

/* check() that two texts are the same; a failure prints both. */
static inline void check_text(const char *got, const char *expected, const char *what)
{
	if (check_count(check_hash(what, true), !strcmp(got, expected)))
		printf("FAILED: %s\nexpected:\n%s\ngot:\n%s\n", what, expected, got);
}

/* One of a table's cases: the case is the test, by all of its name, also its numbers. What: what of
 * it did not hold. */
static inline void check_case(bool ok, const char *name, const char *what)
{
	if (check_count(check_hash(name, false), ok))
		printf("FAILED: %s: %s\n", name, what);
}

/* check() by its place in the source: each CHECK is one test. */
#define CHECK(condition) check_line((condition), __FILE__, __LINE__, #condition)
static inline void check_line(bool ok, const char *file, int line, const char *condition)
{
	if (check_count(check_hash(file, false) + (uint64_t)line, ok))
		printf("FAILED: %s:%d: %s\n", file, line, condition);
}

/* Prints the line that tests/run.sh wants; the exit status. */
static inline int sum_up(void)
{
	unsigned passed = 0, failed = 0;

	for (unsigned i = 0; i < CHECK_TESTS_MAX; i++) {
		passed += checked[i].key && !checked[i].failures;
		failed += checked[i].failures > 0;
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}

/* The test cannot go on: that is a failure. */
static inline _Noreturn void check_stop(const char *why)
{
	check(false, why);
	exit(sum_up());
}

#endif
