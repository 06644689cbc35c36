/* facts.c - see facts.h. The assembler reads the files, from the repository's root. */
#include "schema/unpack/facts.h"

#include <stdlib.h>
#include <string.h>

#include "schema/sql_macros.h"
#include "schema/unpack/branches.h"
#include "schema/unpack/calls.h"
#include "schema/unpack/runs.h"
#include "schema/unpack/sql.h"
#include "schema/unpack/thread_paths.h"

__asm__(".pushsection .rodata\n"
	".globl unpack_facts_sql\n"
	".hidden unpack_facts_sql\n"
	"unpack_facts_sql:\n"
	".incbin \"schema/unpack/facts.sql\"\n"
	".incbin \"schema/fact_views.sql\"\n"
	".byte 0\n"
	".popsection\n");
extern const char unpack_facts_sql[] __attribute__((visibility("hidden")));

/* The text with each CREATE VIEW as CREATE TEMP VIEW, for sqlite3_free(). NULL: no memory. */
static char *temporary(const char *sql)
{
	static const char create[] = "CREATE ";
	sqlite3_str *text = sqlite3_str_new(NULL);
	const char *next;

	while ((next = strstr(sql, "CREATE VIEW "))) {
		next += strlen(create);
		sqlite3_str_append(text, sql, (int)(next - sql));
		sqlite3_str_appendall(text, "TEMP ");
		sql = next;
	}
	sqlite3_str_appendall(text, sql);
	return sqlite3_str_finish(text);
}

static int make_views(sqlite3 *db, struct pt_error *e)
{
	char *plain = pt_sql_expand(unpack_facts_sql, e), *sql = plain ? temporary(plain) : NULL;
	int ret = -1;

	if (plain && !sql)
		pt_fail_no_memory(e, NULL);
	else if (sql)
		ret = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : unpack_sql_error(db, e);
	sqlite3_free(sql);
	free(plain);
	return ret;
}

int facts_register(sqlite3 *db, struct pt_error *e)
{
	if (group_table_register(db, &run_table, e) < 0 || group_table_register(db, &branch_table, e) < 0 ||
	    group_table_register(db, &call_table, e) < 0 ||
	    group_table_register(db, &thread_path_table, e) < 0)
		return -1;
	return make_views(db, e);
}
