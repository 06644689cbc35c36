/* check.h - what unit tests count with: check() what must hold, and end main() with `return sum_up()`. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdbool.h>
#include <stdio.h>

static unsigned passed, failed;

static void check(bool ok, const char *what)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("FAILED: %s\n", what);
}

/* Prints the line that tests/run.sh wants; the exit status. */
static int sum_up(void)
{
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}

#endif
