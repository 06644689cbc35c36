/* time_bins.c - see time_bins.h. */
#include "export/time_bins.h"

#include <stddef.h>

#include "export/db.h"
#include "schema/records.h"

/* Fewer things than FEW need no sums: reading them takes a few hundredths of a second. */
enum { FEW = 50000, OF_A_BIN = 512, COARSEST = 2000, STEP = 2 };

/* A part of the table: what is in it, by the trace's number, and where bins, %d being their shift. One
 * max() alone: so the id is the longest one's. */
#define SUMS                                                                                                 \
	"count(length), coalesce(sum(length), 0), sum(off_cpu), sum(userspace), "                            \
	"max(length), id"
#define PART(kind, machine, n, tsc, length, of_exits, id, from)                                              \
	"INSERT INTO time_bin SELECT trace, %d, bin, " kind ", machine, n, " SUMS " FROM (SELECT " machine   \
	" AS machine, " n " AS n, " tsc " >> %d AS bin, " length " AS length, " of_exits ", " id             \
	" AS id, %lld AS trace FROM " from " WHERE " tsc " >= %lld AND "

static const struct {
	const char *table, *sql;
} parts[] = {
    {"guest_run",
     PART("0", "r.machine", "r.vcpu", "r.entry_tsc", "r.residency_tsc", "NULL AS off_cpu, NULL AS userspace",
	  "r.id", "guest_run r") "r.trace = %lld) WHERE machine IS NOT NULL AND n IS NOT NULL GROUP BY bin, "
				 "machine, n"},
    {"vm_exit",
     PART(
	 "1", "r.machine", "r.vcpu", "r.exit_tsc", "r.latency_tsc",
	 "r.off_cpu_tsc AS off_cpu, r.userspace_tsc AS userspace", "r.id",
	 "vm_exit r") "r.trace = %lld) WHERE machine IS NOT NULL AND n IS NOT NULL GROUP BY bin, machine, n"},
    {"slice",
     PART("2", "0", "r.cpu", "r.tsc", "r.tsc_end - r.tsc", "NULL AS off_cpu, NULL AS userspace", "r.id",
	  "slice r") "r.trace = %lld AND r.vcpu IS NULL) WHERE n IS NOT NULL GROUP BY bin, machine, n"},
    {"error", PART("3", "0", "coalesce(r.cpu, s.cpu)", "r.tsc", "max(coalesce(r.tsc_end - r.tsc, 0), 0)",
		   "NULL AS off_cpu, NULL AS userspace", "r.id",
		   "error r LEFT JOIN slice s ON s.id = r.slice") "r.trace = %lld) WHERE n IS NOT NULL GROUP "
								  "BY bin, machine, n"},
    {"event",
     PART(
	 "4", "CASE WHEN coalesce(r.vcpu, s.vcpu) IS NULL THEN 0 ELSE coalesce(r.machine, h.machine) END",
	 "coalesce(r.vcpu, s.vcpu, r.cpu, s.cpu)", "r.tsc", "0", "NULL AS off_cpu, NULL AS userspace", "r.id",
	 "event r LEFT JOIN slice s ON s.id = r.slice LEFT JOIN thread h ON h.id = coalesce(r.thread, "
	 "s.thread)") "r.trace = %lld) WHERE machine IS NOT NULL AND n IS NOT NULL GROUP BY bin, machine, n"},
    {"interrupt",
     PART("5", "CASE WHEN s.vcpu IS NULL THEN 0 ELSE h.machine END", "coalesce(s.vcpu, s.cpu)", "r.tsc", "0",
	  "NULL AS off_cpu, NULL AS userspace", "r.id",
	  "interrupt r JOIN slice s ON s.id = r.slice LEFT JOIN thread h ON h.id = "
	  "s.thread") "r.trace = %lld) WHERE machine IS NOT NULL AND n IS NOT NULL GROUP BY bin, machine, n"},
};

/* Bins of `shift` from those of a finer one. */
static const char coarser[] =
    "INSERT INTO time_bin SELECT trace, %d, bin >> %d, kind, machine, n, sum(count), sum(total_tsc), "
    "sum(off_cpu_tsc),"
    " sum(userspace_tsc), max(longest_tsc), longest FROM time_bin WHERE trace = %lld AND shift = %d"
    " GROUP BY bin >> %d, kind, machine, n";

static int run(sqlite3 *db, char *sql, struct pt_error *e)
{
	int ret = sql ? db_exec(db, sql, e) : pt_fail_no_memory(e, NULL);

	sqlite3_free(sql);
	return ret;
}

/* How many rows of all parts the trace has. */
static int count(sqlite3 *db, int64_t trace, int64_t *ret, struct pt_error *e)
{
	*ret = 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		char sql[96];
		int64_t n;

		sqlite3_snprintf(sizeof sql, sql, "SELECT count(*) FROM %s WHERE trace = %lld",
				 parts[i].table, (long long)trace);
		if (db_number(db, sql, 0, &n, e) < 0)
			return -1;
		*ret += n;
	}
	return 0;
}

static int fill_finest(sqlite3 *db, int64_t trace, uint64_t first_tsc, int shift, struct pt_error *e)
{
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < sizeof parts / sizeof *parts; i++)
		ret = run(db,
			  sqlite3_mprintf(parts[i].sql, shift, shift, (long long)trace, (long long)first_tsc,
					  (long long)trace),
			  e);
	return ret;
}

int time_bins_fill(sqlite3 *db, const struct trace_bases *b, uint64_t first_tsc, uint64_t last_tsc,
		   struct pt_error *e)
{
	int64_t things;
	int shift = 0;

	if (first_tsc == PTR_NO_TSC || last_tsc == PTR_NO_TSC || last_tsc > INT64_MAX)
		return 0;
	if (count(db, b->trace, &things, e) < 0)
		return -1;
	if (things < FEW)
		return 0;
	while ((last_tsc - first_tsc) >> shift > (uint64_t)things / OF_A_BIN)
		shift++;
	if (fill_finest(db, b->trace, first_tsc, shift, e) < 0)
		return -1;
	for (; (last_tsc - first_tsc) >> shift > COARSEST; shift += STEP)
		if (run(db, sqlite3_mprintf(coarser, shift + STEP, STEP, (long long)b->trace, shift, STEP),
			e) < 0)
			return -1;
	return 0;
}
