/* group_times.c - see group_times.h. The view `run` (schema/views.sql) says the same in SQL. */
#include "schema/unpack/group_times.h"

#include <stdbool.h>
#include <stddef.h>

#include "schema/digit.h"
#include "schema/unpack/sql.h"

enum { EST_ADD_PARTS = 125, EST_ADD_ZERO = 2 /* see est_add */ };

/* As SQL adds: NULL is NULL. */
static int64_t sum(int64_t a, int64_t b)
{
	return a == UNPACK_UNKNOWN || b == UNPACK_UNKNOWN ? UNPACK_UNKNOWN : unpack_plus(a, b);
}

/* begin + span * part / parts */
static int64_t between(const struct group_times *t, int64_t part, int64_t parts)
{
	if (t->span == UNPACK_UNKNOWN)
		return UNPACK_UNKNOWN;
	return sum(t->begin, (int64_t)((uint64_t)t->span * (uint64_t)part) / parts);
}

static int64_t later_of(int64_t a, int64_t b)
{
	if (a == UNPACK_UNKNOWN || b == UNPACK_UNKNOWN)
		return UNPACK_UNKNOWN;
	return a > b ? a : b;
}

/* Without the text step the numbers of time may be the same one after the other. */
static void find_later(struct group_times *t)
{
	for (uint32_t i = t->row.n; i-- > 0;) {
		uint32_t next = i + 1;

		if (t->row.step)
			t->later[i] = t->place[i] + 1;
		else if (next < t->times && next < t->row.n && t->time[next] == t->time[i])
			t->later[i] = t->later[next];
		else
			t->later[i] = next;
		if (t->later[i] > t->times)
			t->later[i] = t->times;
	}
}

void group_times_read(struct group_times *t, const struct group_times_row *row)
{
	const uint8_t *step = row->step, *time = row->time, *est_add = row->est_add;
	int64_t est = row->est == UNPACK_UNKNOWN ? 0 : row->est;

	t->row = *row;
	t->begin = sum(row->tsc, est);
	t->span = sum(row->est_next, -est);
	t->end = sum(row->tsc, row->end_add);
	for (t->times = 0; time && *time && t->times <= RUN_GROUP_MAX; t->times++)
		t->time[t->times] = digits_next(&time);
	for (uint32_t i = 0; i < row->n; i++) {
		t->place[i] = step ? digits_next(&step) : i;
		t->est_point[i] = est_add ? digits_point(&est_add) : 0;
	}
	find_later(t);
}

int64_t group_times_tsc(const struct group_times *t, uint32_t i)
{
	return sum(t->row.tsc, t->place[i] < t->times ? t->time[t->place[i]] : 0);
}

int64_t group_times_end(const struct group_times *t, uint32_t i)
{
	if (t->row.open >> i & 1 || t->row.tsc == UNPACK_UNKNOWN || t->later[i] >= t->times)
		return t->end;
	return sum(t->row.tsc, t->time[t->later[i]]);
}

/* For a run that no CYC packet times. */
static int64_t spread(const struct group_times *t, uint32_t i)
{
	int64_t tsc = group_times_tsc(t, i);

	if (!t->row.est_add && t->row.time)
		return later_of(tsc, t->begin);
	if (!t->row.est_add)
		return between(t, i, t->row.n);
	return later_of(tsc, between(t, (int64_t)t->est_point[i] - EST_ADD_ZERO, EST_ADD_PARTS));
}

int64_t group_times_estimate(const struct group_times *t, uint32_t i)
{
	return t->row.exact >> i & 1 ? group_times_tsc(t, i) : spread(t, i);
}

/* Whether run i + 1 has another time than run i. */
static bool goes_on(const struct group_times *t, uint32_t i)
{
	if (t->row.step)
		return t->place[i + 1] != t->place[i];
	return i + 1 < t->times && t->time[i + 1] != t->time[i];
}

int64_t group_times_next(const struct group_times *t, uint32_t i)
{
	int64_t last = sum(t->row.tsc, t->row.est_next);

	if (i + 1 == t->row.n)
		return last != UNPACK_UNKNOWN && t->end != UNPACK_UNKNOWN && t->end < last ? t->end : last;
	if (t->row.exact >> (i + 1) & 1 || goes_on(t, i))
		return group_times_tsc(t, i + 1);
	return spread(t, i + 1);
}
