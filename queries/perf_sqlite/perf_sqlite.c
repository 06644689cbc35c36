/* perf_sqlite.c - see perf_sqlite.h: which tables are made of what, in which order. */
#include "queries/perf_sqlite/perf_sqlite.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "queries/perf_sqlite/copy.h"

/* The assembler reads the files, from the repository's root. */
#define EMBED(name)                                                                                          \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl perf_sqlite_" #name "\n"                                                             \
		".hidden perf_sqlite_" #name "\n"                                                            \
		"perf_sqlite_" #name ":\n"                                                                   \
		".incbin \"queries/perf_sqlite/" #name ".sql\"\n"                                            \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char perf_sqlite_##name[] __attribute__((visibility("hidden")));
EMBED(tables)
EMBED(selected_events)
EMBED(exec_comms)
EMBED(samples)
EMBED(cbr)
EMBED(switches)
EMBED(views)

#define OF_EVENTS(name, columns) "SELECT id, " columns " FROM event WHERE name = '" name "' ORDER BY id"
#define NUMBER(name)		 "NUMBER_OF_FIELD(fields, '\"" name "\":')"
#define EXEC_COMM(id)		 "(SELECT comm FROM exec_comm WHERE id = " id ")"
#define INTO_EVENT(table, columns)                                                                           \
	"INSERT INTO " table " SELECT sample, " columns " FROM sample_of WHERE kind = 1 AND original = ?1"

static const struct {
	const char *select; /* of ours; NULL: nothing is copied, the other is run alone */
	const char *insert;
} steps[] = {
    {NULL, perf_sqlite_tables},
    {perf_sqlite_exec_comms, "INSERT INTO exec_comm VALUES (?1, ?2)"},
    {perf_sqlite_selected_events, "INSERT INTO selected_events VALUES (?1, ?2)"},
    {"SELECT id, pid, root_dir FROM machines", "INSERT INTO machines VALUES (?1, ?2, ?3)"},
    {"SELECT id, machine_id, process_id, pid, tid FROM threads",
     "INSERT INTO threads VALUES (?1, ?2, ?3, ?4, ?5)"},
    {"SELECT id, comm, c_thread_id, c_time, exec_flag FROM comms",
     "INSERT INTO comms VALUES (?1, ?2, ?3, ?4, ?5, NULL)"},
    {"SELECT comm_id, thread_id FROM comm_threads WHERE id > 0",
     "INSERT INTO comm_threads SELECT NULL, comm, ?2 FROM exec_comm WHERE id = ?1 AND NOT EXISTS (SELECT 1 "
     "FROM "
     "comm_threads c WHERE c.comm_id = exec_comm.comm AND c.thread_id = ?2)"},
    {"SELECT id, machine_id, short_name, long_name, build_id FROM dsos",
     "INSERT INTO dsos VALUES (?1, ?2, ?3, ?4, ?5)"},
    {"SELECT id, dso_id, sym_start, sym_end, binding, name FROM symbols",
     "INSERT INTO symbols VALUES (?1, ?2, ?3, ?4, ?5, ?6)"},
    {"SELECT id, name FROM branch_types", "INSERT INTO branch_types VALUES (?1, ?2)"},
    {perf_sqlite_samples, "INSERT INTO samples VALUES (NULL, ?1, ?2, ?3, " EXEC_COMM(
			      "?4") ", ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
				    "?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)"},
    {NULL, "INSERT INTO sample_of SELECT 0, branch, id FROM samples WHERE branch IS NOT NULL ORDER BY branch;"
	   "INSERT INTO sample_of SELECT 1, event, id FROM samples WHERE event IS NOT NULL ORDER BY event"},
    {"SELECT id, parent_id, symbol_id, ip FROM call_paths", "INSERT INTO call_paths VALUES (?1, ?2, ?3, ?4)"},
    {"SELECT id, thread_id, comm_id, call_path_id, call_time, return_time, branch_count, call_id, return_id, "
     "parent_call_path_id, flags, parent_id, insn_count, cyc_count FROM calls",
     "INSERT INTO calls VALUES (?1, ?2, " EXEC_COMM(
	 "?3") ", ?4, ?5, ?6, ?7,"
	       "coalesce((SELECT sample FROM sample_of WHERE kind = 0 AND original = ?8), 0),"
	       "coalesce((SELECT sample FROM sample_of WHERE kind = 0 AND original = ?9), 0),"
	       "?10, ?11, ?12, ?13, ?14)"},
    {OF_EVENTS("ptwrite", NUMBER("payload")), INTO_EVENT("ptwrite", "?2, 0")},
    {perf_sqlite_cbr, INTO_EVENT("cbr", "?2, ?3, ?4")},
    {OF_EVENTS("mwait", NUMBER("hints") ", " NUMBER("extensions")), INTO_EVENT("mwait", "?2, ?3")},
    {OF_EVENTS("pwre", NUMBER("cstate") ", " NUMBER("subcstate") ", " NUMBER("hw")),
     INTO_EVENT("pwre", "?2, ?3, ?4")},
    {OF_EVENTS("exstop", NUMBER("ip")), INTO_EVENT("exstop", "?2")},
    {OF_EVENTS("pwrx", NUMBER("deepest_cstate") ", " NUMBER("last_cstate") ", " NUMBER("wake_reason")),
     INTO_EVENT("pwrx", "?2, ?3, ?4")},
    {perf_sqlite_switches, "INSERT INTO context_switches VALUES (NULL, ?1, ?2, ?3, ?4, " EXEC_COMM(
			       "?5") ", ?6, " EXEC_COMM("?7") ", ?8)"},
    {NULL, perf_sqlite_views},
};

static const char no_power[] =
    "SELECT 1 FROM mwait UNION ALL SELECT 1 FROM pwre UNION ALL SELECT 1 FROM exstop "
    "UNION ALL SELECT 1 FROM pwrx";

/* perf's script leaves these out when there are no rows; its viewer offers what there is. In this order. */
static const struct {
	const char *rows, *drop;
} unused[] = {
    {"SELECT 1 FROM ptwrite", "DROP VIEW ptwrite_view; DROP TABLE ptwrite"},
    {"SELECT 1 FROM context_switches", "DROP VIEW context_switches_view; DROP TABLE context_switches"},
    {"SELECT 1 FROM cbr UNION ALL SELECT 1 FROM mwait UNION ALL SELECT 1 FROM pwre UNION ALL SELECT 1 FROM "
     "exstop "
     "UNION ALL SELECT 1 FROM pwrx",
     "DROP VIEW power_events_view; DROP VIEW cbr_view; DROP TABLE cbr"},
    {no_power, "DROP VIEW IF EXISTS power_events_view; DROP VIEW mwait_view; DROP VIEW pwre_view; DROP VIEW "
	       "exstop_view; "
	       "DROP VIEW pwrx_view; DROP TABLE mwait; DROP TABLE pwre; DROP TABLE exstop; DROP TABLE pwrx"},
};

static int drop_unused(sqlite3 *to, struct pt_error *e)
{
	for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) {
		sqlite3_stmt *st = NULL;
		bool any = sqlite3_prepare_v2(to, unused[i].rows, -1, &st, NULL) == SQLITE_OK &&
			   sqlite3_step(st) == SQLITE_ROW;

		sqlite3_finalize(st);
		if (!any && copy_execute(to, unused[i].drop, e) < 0)
			return -1;
	}
	return 0;
}

static int fill(sqlite3 *db, sqlite3 *to, struct pt_error *e)
{
	int r = copy_execute(
	    to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; BEGIN", e);

	for (size_t i = 0; r == 0 && i < sizeof steps / sizeof *steps; i++)
		r = steps[i].select ? copy_rows(db, steps[i].select, to, steps[i].insert, e)
				    : copy_execute(to, steps[i].insert, e);
	if (r == 0)
		r = drop_unused(to, e);
	return r ? r : copy_execute(to, "COMMIT", e);
}

/* Of copy_database(). */
static int make(void *arg, sqlite3 *to, struct pt_error *e)
{
	return fill(arg, to, e);
}

int perf_sqlite_write(sqlite3 *db, FILE *out, struct pt_error *e)
{
	return copy_database(make, db, out, e);
}
