/* test_run_times.c - runs between timing packets: estimates, bounds, gaps, several streams, an interval that
 * does not end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/records.h"
#include "schema/derived/run_times.h"
#include "tests/unit/check.h"

static void put(struct ptr_times *t, uint32_t stream, uint64_t tsc, bool exact, uint64_t insns)
{
	struct ptr_timed_run r = {.stream = stream,
				  .tsc = tsc,
				  .timing = exact ? PTR_TIME_EXACT : PTR_TIME_BEFORE,
				  .first_insns = 10,
				  .insns = insns};

	check(ptr_times_put(t, &r), "put");
}

static void run(struct ptr_times *t, const char *what, uint64_t est, uint64_t next, uint64_t end)
{
	const struct ptr_timed_run *r = ptr_times_next(t);

	check(r != NULL, what);
	if (!r)
		return;
	check_same(r->tsc_est, est, what);
	check_same(r->tsc_next, next, what);
	check_same(r->tsc_end, end, what);
}

/* Two runs of 100 instructions between CYCs that are 190 + 10 instructions apart, 2 TSC each. */
static void between(void)
{
	struct ptr_times *t = ptr_times_create();

	put(t, 0, 1000, true, 100);
	put(t, 0, 1000, false, 100);
	check(ptr_times_next(t) == NULL, "nothing yet");
	put(t, 1, 5000, true, 1);
	put(t, 0, 1400, true, 100);
	run(t, "first", 1000, 1200, 1400);
	run(t, "second", 1200, 1400, 1400);
	check(ptr_times_next(t) == NULL, "another stream's waits");
	ptr_times_settle(t);
	run(t, "no end known", 5000, 5000, PTR_NO_TSC);
	run(t, "no end known", 1400, 1400, PTR_NO_TSC);
	check(ptr_times_next(t) == NULL, "no more");
	ptr_times_destroy(t);
}

/* CYCs of the branches before the runs: from one to the next are the 100 instructions of the first run, 3 TSC
 * each; and 5 of the 10 before an MTC. */
static void after_branch(void)
{
	struct ptr_times *t = ptr_times_create();
	struct ptr_timed_run r = {.tsc = 1000, .timing = PTR_TIME_AFTER, .first_insns = 10, .insns = 100};

	check(ptr_times_put(t, &r), "put");
	r.tsc = 1300;
	check(ptr_times_put(t, &r), "put");
	put(t, 0, 1615, false, 100);
	put(t, 0, 1715, true, 100);
	run(t, "from the branch before", 1030, 1300, 1300);
	run(t, "up to the middle", 1330, 1615, 1615);
	run(t, "from the middle", 1605 + 10 + 5, 1715, 1715);
	ptr_times_settle(t);
	run(t, "no end known", 1715, 1715, PTR_NO_TSC);
	ptr_times_destroy(t);
}

/*
 * Direct branches, which have no packet, may be younger than an MTC: all runs that end with such, up to it.
 */
static void direct(void)
{
	struct ptr_times *t = ptr_times_create();
	struct ptr_timed_run r = {.tsc = 1000, .insns = 10};

	for (int i = 0; i < 3; i++) {
		check(ptr_times_put(t, &r), "put");
		r.direct_last = true;
	}
	put(t, 0, 1400, false, 10);
	check(ptr_times_next(t) && !ptr_times_next(t), "only the first is settled");
	put(t, 0, 1500, false, 10);
	for (int i = 0; i < 2; i++) {
		const struct ptr_timed_run *got = ptr_times_next(t);

		check(got && got->tsc_end == 1500, "the next packet but one");
	}
	ptr_times_settle(t);
	ptr_times_destroy(t);
}

/* Tracing was off in the middle: what ran has the rate of before, the gap takes the rest. */
static void gap(void)
{
	struct ptr_times *t = ptr_times_create();
	struct ptr_timed_run r = {.tsc = 2000, .begins = true, .first_insns = 0, .insns = 100};

	put(t, 0, 1000, true, 510);
	put(t, 0, 1510, true, 10);
	put(t, 0, 2000, true, 110);
	check(ptr_times_put(t, &r), "put");
	put(t, 0, 3000, true, 10);
	run(t, "rate 1", 1000, 1510, 1510);
	run(t, "then 49", 1510, 2000, 2000);
	ptr_times_next(t);
	{
		const struct ptr_timed_run *after = ptr_times_next(t);

		check(after && after->tsc_est > 2100 && after->tsc_est < 3000, "after the gap");
		check_same(after ? after->tsc_next : 0, 3000, "up to the end");
	}
	ptr_times_destroy(t);
}

/* Direct branches at the end may be younger than an MTC: the next one bounds them. */
static void open_end(void)
{
	struct ptr_times *t = ptr_times_create();
	struct ptr_timed_run r = {.tsc = 1000, .direct_last = true, .first_insns = 10, .insns = 100};

	check(ptr_times_put(t, &r), "put");
	put(t, 0, 2000, false, 100);
	check(ptr_times_next(t) == NULL, "its end waits");
	put(t, 0, 3000, false, 100);
	run(t, "bounded by the one after", 1050, 2000, 3000);
	ptr_times_destroy(t);
}

static void unknown_and_endless(void)
{
	struct ptr_times *t = ptr_times_create();
	uint64_t last = 0, n = 0;
	const struct ptr_timed_run *r;
	bool good = true;

	put(t, 0, PTR_NO_TSC, false, 1);
	run(t, "unknown", PTR_NO_TSC, PTR_NO_TSC, PTR_NO_TSC);
	for (int i = 0; i < 3 * PTR_TIMES_HELD; i++) {
		struct ptr_timed_run in = {.tsc = i < 2 * PTR_TIMES_HELD + 7 ? 100 : 100 + (uint64_t)i,
					   .insns = 3,
					   .first_insns = 1};

		good = good && ptr_times_put(t, &in);
		while ((r = ptr_times_next(t))) {
			good = good && r->tsc_est >= last && r->tsc_est >= r->tsc && r->tsc_est <= r->tsc_end;
			last = r->tsc_est;
			n++;
		}
	}
	ptr_times_settle(t);
	while (ptr_times_next(t))
		n++;
	check(good, "in order, in bounds");
	check_same(n, 3 * PTR_TIMES_HELD, "all come out");
	ptr_times_destroy(t);
}

/* Whatever comes in, times are within bounds and in order. */
static void any(void)
{
	uint64_t state = 1;

	for (int round = 0; round < 300; round++) {
		struct ptr_times *t = ptr_times_create();
		uint64_t now[3] = {0}, last[3] = {0};
		bool good = true;

		for (int i = 0; i < 400; i++) {
			struct ptr_timed_run r = {0};
			const struct ptr_timed_run *o;

			state = state * 6364136223846793005u + 1442695040888963407u;
			r.stream = (state >> 20) % 3;
			now[r.stream] += (state >> 22) % 3 ? 0 : (state >> 24) % 1000;
			r.tsc = now[r.stream];
			r.timing = (state >> 34) % 3;
			r.begins = !((state >> 36) % 5);
			r.direct_last = !((state >> 39) % 2);
			r.first_insns = (state >> 40) % 20;
			r.insns = r.first_insns + (state >> 45) % 300;
			good = good && ptr_times_put(t, &r);
			while ((o = ptr_times_next(t))) {
				good = good && o->tsc <= o->tsc_est && o->tsc_est <= o->tsc_next &&
				       o->tsc_next <= o->tsc_end && last[o->stream] <= o->tsc_est &&
				       (o->timing != PTR_TIME_EXACT || o->tsc_est == o->tsc);
				last[o->stream] = o->tsc_next;
			}
		}
		check(good, "bounds and order");
		ptr_times_destroy(t);
	}
}

int main(void)
{
	between();
	after_branch();
	direct();
	gap();
	open_end();
	unknown_and_endless();
	any();
	return sum_up();
}
