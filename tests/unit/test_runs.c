/* test_runs.c - RUN records that are encoded before they are put (struct ptr_runs) are those of ptr_put_run(),
 * in whatever parts they are put, and whatever comes in between: the streams are the same byte by byte. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/records.h"
#include "tests/unit/check.h"
#include "tests/unit/file_content.h"

enum { SLICES = 40, RUNS_MAX = 9000 };

static uint64_t random_state = 88172645463325252u;

static uint64_t rnd(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

/* Of any length: a few bytes mostly, sometimes as many as it can have. */
static struct ptr_run random_run(uint32_t slice, uint64_t tsc)
{
	bool has_cyc = rnd(3) == 0, is_long = rnd(50) == 0;

	return (struct ptr_run){.slice = slice,
				.tsc = rnd(4)	 ? tsc
				       : is_long ? ~rnd(1000)
						 : tsc + rnd(5000),
				.timing = (enum ptr_timing)rnd(PTR_TIMINGS),
				.path = is_long ? UINT32_MAX - (uint32_t)rnd(9) : 1 + (uint32_t)rnd(70000),
				.repeats = rnd(5) ? 1 : 1 + (uint32_t)rnd(is_long ? UINT32_MAX : 300),
				.cyc_count = has_cyc ? rnd(is_long ? UINT64_MAX : 4000) : PTR_UNKNOWN,
				.insn_count = has_cyc ? rnd(is_long ? UINT64_MAX : 9000) : 0};
}

static void get(const void *arg, uint32_t i, struct ptr_run *ret)
{
	*ret = ((const struct ptr_run *)arg)[i];
}

struct both {
	struct ptr_writer *each, *encoded;
	struct pt_error e;
	bool failed;
};

/* What may cut a block between two parts. */
static void put_between(struct both *b)
{
	const struct ptr_call call = {.thread = 1, .call_tsc = rnd(1000), .return_tsc = 2000, .depth = 3};

	for (uint64_t n = rnd(3) ? 0 : rnd(2000); n; n--) {
		b->failed |= ptr_put_call(b->each, &call, &b->e) < 0;
		b->failed |= ptr_put_call(b->encoded, &call, &b->e) < 0;
	}
}

/* Of them the first one by itself, and the others in parts. */
static void put_encoded(struct both *b, const struct ptr_run *runs, uint32_t count)
{
	struct ptr_runs encoded = {0};
	const struct ptr_run_source source = {get, runs};
	uint32_t done = 1;
	uint64_t branches = 0;

	for (uint32_t i = 0; i < count; i++) {
		b->failed |= ptr_runs_add(&encoded, &runs[i]) < 0;
		branches += i ? runs[i].repeats : 0;
	}
	b->failed |= ptr_put_run(b->each, &runs[0], 1, &b->e) < 0;
	b->failed |= ptr_put_run(b->encoded, &runs[0], 1, &b->e) < 0;
	while (done < count && !b->failed) {
		uint32_t to = done + 1 + (uint32_t)rnd(rnd(2) ? count - done : rnd(40) + 1);
		int64_t first, of_each = 0;

		if (to > count)
			to = count;
		put_between(b);
		for (uint32_t i = done; i < to; i++) {
			int64_t number = ptr_put_run(b->each, &runs[i], 1, &b->e);

			of_each = i == done ? number : of_each;
		}
		first = ptr_put_runs(b->encoded, &encoded, done, to, &source, &b->e);
		b->failed |= first < 0 || first != of_each;
		done = to;
	}
	ptr_count_runs(b->encoded, 0, branches);
	ptr_runs_deinit(&encoded);
}

static void put_slices(struct both *b)
{
	struct ptr_run *runs = calloc(RUNS_MAX, sizeof *runs);

	for (uint32_t slice = 1; slice <= SLICES && runs && !b->failed; slice++) {
		uint32_t count = 1 + (uint32_t)rnd(slice % 4 ? RUNS_MAX : 5);
		uint64_t tsc = rnd(1000000);

		for (uint32_t i = 0; i < count; i++) {
			runs[i] = random_run(slice, tsc);
			tsc = runs[i].tsc;
		}
		put_encoded(b, runs, count);
	}
	b->failed |= !runs;
	free(runs);
}

static void test_bytes(void)
{
	int fds[2] = {memfd_create("each", MFD_CLOEXEC), memfd_create("encoded", MFD_CLOEXEC)};
	struct both b = {0};
	uint8_t *each, *encoded;
	size_t each_bytes, encoded_bytes;

	b.each = ptr_writer_create(fds[0], NULL, &b.e);
	b.encoded = ptr_writer_create(fds[1], NULL, &b.e);
	if (!b.each || !b.encoded)
		abort();
	put_slices(&b);
	check(!b.failed, "all are put, with the same numbers");
	check(ptr_writer_finish(b.each, &b.e) == 0 && ptr_writer_finish(b.encoded, &b.e) == 0,
	      "both streams end");
	each = content(fds[0], &each_bytes);
	encoded = content(fds[1], &encoded_bytes);
	check(each_bytes > 1 << 20, "there are several blocks");
	check(each_bytes == encoded_bytes && !memcmp(each, encoded, each_bytes), "they are the same");
	free(each);
	free(encoded);
	ptr_writer_destroy(b.each);
	ptr_writer_destroy(b.encoded);
	close(fds[0]);
	close(fds[1]);
}

/* Where they are only counted, what is counted is the same, too. */
static void test_counts(void)
{
	struct both b = {0};

	b.each = ptr_writer_create(PTR_COUNT_ONLY, NULL, &b.e);
	b.encoded = ptr_writer_create(PTR_COUNT_ONLY, NULL, &b.e);
	if (!b.each || !b.encoded)
		abort();
	put_slices(&b);
	check(!b.failed && ptr_writer_count(b.each, PTR_RUN) == ptr_writer_count(b.encoded, PTR_RUN),
	      "all are counted, with the same numbers");
	ptr_writer_destroy(b.each);
	ptr_writer_destroy(b.encoded);
}

int main(void)
{
	test_bytes();
	test_counts();
	return sum_up();
}
