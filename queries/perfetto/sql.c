/* sql.c - see sql.h. The assembler reads the files, from the repository's root. */
#include "queries/perfetto/sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/sql_macros.h"

#define FILES(X)                                                                                             \
	X(traces)                                                                                            \
	X(threads)                                                                                           \
	X(machines)                                                                                          \
	X(cpus)                                                                                              \
	X(vcpus)                                                                                             \
	X(paths)                                                                                             \
	X(call_threads)                                                                                      \
	X(idle_runs)                                                                                         \
	X(running)                                                                                           \
	X(vms)                                                                                               \
	X(ipc_time)                                                                                          \
	X(ipc_ends)                                                                                          \
	X(ipc_paths)                                                                                         \
	X(ipc_slice)                                                                                         \
	X(ipc_speed)                                                                                         \
	X(speeds)                                                                                            \
	X(marks)                                                                                             \
	X(left_out)

#define EMBED(name)                                                                                          \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl perfetto_sql_" #name "\n"                                                            \
		".hidden perfetto_sql_" #name "\n"                                                           \
		"perfetto_sql_" #name ":\n"                                                                  \
		".incbin \"queries/perfetto/" #name ".sql\"\n"                                               \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char perfetto_sql_##name[] __attribute__((visibility("hidden")));
FILES(EMBED)

#define LIST(name) {#name, perfetto_sql_##name},
static const struct {
	const char *name, *sql;
} files[] = {FILES(LIST)};

static void bind(sqlite3_stmt *st, const char *parameter, int64_t value, int64_t not_bounded)
{
	int index = sqlite3_bind_parameter_index(st, parameter);

	if (index && value != not_bounded)
		sqlite3_bind_int64(st, index, value);
}

sqlite3_stmt *perfetto_prepare(sqlite3 *db, const char *name, const struct perfetto_range *range,
			       struct pt_error *e)
{
	sqlite3_stmt *st = NULL;
	char *sql = NULL;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (!strcmp(files[i].name, name))
			sql = pt_sql_expand(files[i].sql, e);
	if (!sql)
		return NULL;
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: %s", name, sqlite3_errmsg(db));
	} else {
		bind(st, ":trace", range->trace, INT64_MIN);
		bind(st, ":after", range->after_ns, INT64_MIN);
		bind(st, ":until", range->until_ns, INT64_MAX);
	}
	free(sql);
	return st;
}
