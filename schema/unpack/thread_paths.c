/* thread_paths.c - see thread_paths.h. The view `thread_path` (schema/views.sql) says the same in SQL. */
#include "schema/unpack/thread_paths.h"

#include <stddef.h>

#include "schema/digit.h"
#include "schema/unpack/sql.h"

enum { ROW_MAX = 64 }; /* sums */
/* The columns that are read, a sum's three texts side by side. */
#define COLUMNS                                                                                              \
	"g.id, g.n, g.trace, g.call_path, g.path_add, g.path_add_high, g.thread, g.thread_add, "             \
	"g.thread_add_high, g.calls, g.calls_high, g.calls_top, g.insn_count, g.insn_count_high, "           \
	"g.insn_count_top, g.cyc_count, g.cyc_count_high, g.cyc_count_top, g.elapsed_tsc, "                  \
	"g.elapsed_tsc_high, g.elapsed_tsc_top"
enum {
	ID,
	N,
	TRACE,
	CALL_PATH,
	PATH_ADD,
	PATH_ADD_HIGH,
	THREAD,
	THREAD_ADD,
	THREAD_ADD_HIGH,
	CALLS,
	INSNS = CALLS + DIGITS_SUM,
	CYCLES = INSNS + DIGITS_SUM,
	ELAPSED = CYCLES + DIGITS_SUM
};

struct unpacked_thread_path {
	int64_t id, thread_path_group, trace, thread, call_path, calls, insn_count, cyc_count, elapsed_tsc;
};

/* The texts of sums, from the lowest digit on. */
struct sums {
	const uint8_t *digit[DIGITS_SUM];
};

static struct sums sums_at(sqlite3_stmt *s, int column)
{
	struct sums ret;

	for (int i = 0; i < DIGITS_SUM; i++)
		ret.digit[i] = sqlite3_column_text(s, column + i);
	return ret;
}

static int64_t next_sum(struct sums *s)
{
	uint64_t ret = 0;

	for (unsigned i = 0; i < DIGITS_SUM; i++)
		ret |= (uint64_t)digits_next(&s->digit[i]) << i * DIGITS_BITS;
	return (int64_t)ret;
}

/* Of one that is stored as number + 1. */
static int64_t next_known(struct sums *s)
{
	int64_t number = next_sum(s);

	return number ? number - 1 : UNPACK_UNKNOWN;
}

static int unpack(void *state, sqlite3_stmt *s, struct group_rows *rows, struct pt_error *e)
{
	const uint8_t *path = sqlite3_column_text(s, PATH_ADD),
		      *path_high = sqlite3_column_text(s, PATH_ADD_HIGH),
		      *thread = sqlite3_column_text(s, THREAD_ADD),
		      *thread_high = sqlite3_column_text(s, THREAD_ADD_HIGH);
	struct sums calls = sums_at(s, CALLS), insns = sums_at(s, INSNS), cycles = sums_at(s, CYCLES),
		    elapsed = sums_at(s, ELAPSED);
	int64_t n = sqlite3_column_int64(s, N), id = sqlite3_column_int64(s, ID),
		first_path = sqlite3_column_int64(s, CALL_PATH), first_thread = unpack_number(s, THREAD);
	struct unpacked_thread_path r = {.thread_path_group = id, .trace = unpack_number(s, TRACE)};
	struct unpacked_thread_path *to = group_rows_room(rows, ROW_MAX, e);

	(void)state;
	if (!to)
		return -1;
	if (n < 0 || n > ROW_MAX)
		return unpack_damaged("thread_path_group", e);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = digits_wide(&thread, &thread_high);

		r.id = unpack_plus(id, i);
		r.call_path = unpack_plus(first_path, digits_wide(&path, &path_high));
		r.thread =
		    at && first_thread != UNPACK_UNKNOWN ? unpack_plus(first_thread, at - 1) : UNPACK_UNKNOWN;
		r.calls = next_sum(&calls);
		r.insn_count = next_sum(&insns);
		r.cyc_count = next_known(&cycles);
		r.elapsed_tsc = next_known(&elapsed);
		to[i] = r;
	}
	rows->count = (size_t)n;
	return 0;
}

const struct group_table thread_path_table = {
    .name = "unpacked_thread_path",
    .columns = "id, thread_path_group, trace, thread, call_path, calls, insn_count, cyc_count, "
	       "elapsed_tsc",
    .column_count = sizeof(struct unpacked_thread_path) / sizeof(int64_t),
    .id_column = offsetof(struct unpacked_thread_path, id) / sizeof(int64_t),
    .group_column = offsetof(struct unpacked_thread_path, thread_path_group) / sizeof(int64_t),
    .groups = "SELECT " COLUMNS " FROM thread_path_group g",
    .table = "thread_path_group",
    .unpack = unpack};
