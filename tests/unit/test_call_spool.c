/* test_call_spool.c - calls come out of the scratch file as they went in (export/call_spool.h), whatever
 * their numbers are, and mostly take few bytes there. */
#include <sys/stat.h>

#include "export/call_spool.h"
#include "tests/unit/check.h"

enum { MANY = 40000 };

static struct pt_error error;
static struct spooled_calls wanted, got;
static struct call_spool spool;
static uint64_t state;

static uint64_t random_bits(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 31 ^ state << 40;
}

/* Of up to `bits` bits; now and then the largest, or 0. */
static uint64_t number(unsigned bits)
{
	uint64_t max = UINT64_MAX >> (64 - bits), r = random_bits();

	return r % 16 == 0 ? max : r % 16 == 1 ? 0 : (random_bits() & max) >> r / 16 % bits;
}

/* Number i of them, the same each time when they are made in order. */
static void make(uint32_t i)
{
	memset(&wanted, 0, sizeof wanted);
	wanted.thread = (uint32_t)number(32);
	if (i % 7 == 0) {
		wanted.shape = SHAPE_NONE;
		wanted.n = wanted.callers = 1;
		wanted.places[0] = number(64) >> 1;
		wanted.whole = (struct ptr_call){.thread = wanted.thread,
						 .call_tsc = number(64),
						 .return_tsc = PTR_NO_TSC,
						 .cyc_count = PTR_UNKNOWN,
						 .insn_count = number(64)};
		return;
	}
	wanted.return_run = number(54);
	wanted.return_tsc = i % 11 ? number(64) : PTR_NO_TSC;
	wanted.shape = (uint32_t)number(32);
	wanted.shape -= wanted.shape == SHAPE_NONE;
	wanted.path = (uint32_t)number(32);
	wanted.elapsed = (uint32_t)number(32);
	wanted.n = i % 5 ? 1 + (uint32_t)(random_bits() % 4) : SHAPE_CALLS;
	wanted.callers = 1 + (uint32_t)(random_bits() % wanted.n);
	wanted.has_cyc = i % 3 == 0;
	for (uint32_t k = 0; k < wanted.callers; k++)
		wanted.places[k] = number(64) >> 1;
	for (uint32_t k = 0; wanted.has_cyc && k < wanted.n; k++)
		wanted.cyc[k] = (uint32_t)number(32);
}

static bool is_wanted_call(const struct ptr_call *a, const struct ptr_call *b)
{
	return a->thread == b->thread && a->call_tsc == b->call_tsc && a->return_tsc == b->return_tsc &&
	       a->cyc_count == b->cyc_count && a->insn_count == b->insn_count && !a->flags;
}

static bool is_wanted(void)
{
	bool same = got.thread == wanted.thread && got.shape == wanted.shape && got.n == wanted.n &&
		    got.callers == wanted.callers && got.has_cyc == wanted.has_cyc &&
		    !memcmp(got.places, wanted.places, wanted.callers * sizeof *wanted.places);

	if (wanted.shape == SHAPE_NONE)
		return same && is_wanted_call(&got.whole, &wanted.whole);
	return same && got.return_run == wanted.return_run && got.return_tsc == wanted.return_tsc &&
	       got.path == wanted.path && got.elapsed == wanted.elapsed &&
	       (!wanted.has_cyc || !memcmp(got.cyc, wanted.cyc, wanted.n * sizeof *wanted.cyc));
}

static void test_round_trip(void)
{
	bool all = true;

	state = 1;
	for (uint32_t i = 0; i < MANY; i++) {
		make(i);
		all &= call_spool_put(&spool, &wanted, &error) == 0;
	}
	check(all, "put");
	check(call_spool_rewind(&spool, &error) == 0, "from the beginning");
	state = 1;
	for (uint32_t i = 0; i < MANY; i++) {
		make(i);
		all &= call_spool_get(&spool, &got, &error) == 0 && is_wanted();
	}
	check(all, "got as they were put");
	check(call_spool_get(&spool, &got, &error) < 0 && error.kind == PT_ERR_IO, "no more than were put");
}

/* Runs one after the other, whose calls wait for the callers that those before wait for. */
static void test_small(int file)
{
	struct stat st;

	memset(&wanted, 0, sizeof wanted);
	wanted.n = wanted.callers = 1;
	for (uint32_t i = 1; i <= MANY; i++) {
		wanted.return_run = i * 10ull;
		wanted.return_tsc = 1234567890123 + i * 50ull;
		wanted.thread = 3;
		wanted.shape = i % 100;
		wanted.path = i % 1000;
		wanted.places[0] = i;
		if (call_spool_put(&spool, &wanted, &error) < 0)
			break;
	}
	check(call_spool_rewind(&spool, &error) == 0 && fstat(file, &st) == 0 && st.st_size < 16 * MANY,
	      "of a run's calls less than 16 bytes");
}

int main(void)
{
	FILE *file = tmpfile(), *other = tmpfile();

	if (!file || !other)
		return 1;
	spool.spool.scratch = fileno(file);
	test_round_trip();
	memset(&spool, 0, sizeof spool);
	spool.spool.scratch = fileno(other);
	test_small(fileno(other));
	fclose(file);
	fclose(other);
	return sum_up();
}
