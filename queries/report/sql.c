/* sql.c - see sql.h. The assembler reads the files, from the repository's root. */
#include "queries/report/sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/sql_macros.h"

#define FILES(X)                                                                                             \
	X(macros)                                                                                            \
	X(trace)                                                                                             \
	X(reasons)                                                                                           \
	X(exits)                                                                                             \
	X(machines)                                                                                          \
	X(threads)                                                                                           \
	X(guests)                                                                                            \
	X(entering)                                                                                          \
	X(running)                                                                                           \
	X(marks)                                                                                             \
	X(losses)                                                                                            \
	X(loss_kinds)                                                                                        \
	X(counter_time)                                                                                      \
	X(counter_paths)                                                                                     \
	X(counters)                                                                                          \
	X(stack_paths)                                                                                       \
	X(stack_shared)                                                                                      \
	X(stacks)                                                                                            \
	X(path)                                                                                              \
	X(functions)                                                                                         \
	X(calls_least)                                                                                       \
	X(calls)                                                                                             \
	X(exit_calls)                                                                                        \
	X(findings)

#define EMBED(name)                                                                                          \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl report_sql_" #name "\n"                                                              \
		".hidden report_sql_" #name "\n"                                                             \
		"report_sql_" #name ":\n"                                                                    \
		".incbin \"queries/report/" #name ".sql\"\n"                                                 \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char report_sql_##name[] __attribute__((visibility("hidden")));
FILES(EMBED)

#define LIST(name) {#name, report_sql_##name},
static const struct {
	const char *name, *sql;
} files[] = {FILES(LIST)};

/* macros.sql, and the file. */
static char *whole(const char *name, struct pt_error *e)
{
	char *ret = NULL;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (!strcmp(files[i].name, name) &&
		    asprintf(&ret, "%s%s", report_sql_macros, files[i].sql) < 0) {
			pt_fail_no_memory(e, "SQL");
			return NULL;
		}
	return ret;
}

sqlite3_stmt *report_prepare(sqlite3 *db, const char *name, struct pt_error *e)
{
	char *text = whole(name, e), *sql = text ? pt_sql_expand(text, e) : NULL;
	sqlite3_stmt *st = NULL;

	if (sql && sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: %s", name, sqlite3_errmsg(db));
	free(sql);
	free(text);
	return st;
}

void report_bind(sqlite3_stmt *st, const char *parameter, int64_t value)
{
	int index = sqlite3_bind_parameter_index(st, parameter);

	if (index)
		sqlite3_bind_int64(st, index, value);
}

int report_step(sqlite3 *db, sqlite3_stmt *statement, struct pt_error *e)
{
	int r = statement ? sqlite3_step(statement) : SQLITE_ERROR;

	if (r == SQLITE_ROW || r == SQLITE_DONE)
		return r == SQLITE_ROW;
	return pt_fail(e, r == SQLITE_INTERRUPT ? PT_ERR_REFUSED : PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s",
		       r == SQLITE_INTERRUPT ? "it took longer than --timeout allows" : sqlite3_errmsg(db));
}
