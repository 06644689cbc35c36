/* schema_sql.c - see schema_sql.h. The assembler reads the files, from the repository's root. */
#include "export/schema_sql.h"

#define EMBED(name, path)                                                                                    \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl " #name "\n"                                                                         \
		".hidden " #name "\n"                                                                        \
		".type " #name ", @object\n" #name ":\n"                                                     \
		".incbin \"" path "\"\n"                                                                     \
		".byte 0\n"                                                                                  \
		".size " #name ", . - " #name "\n"                                                           \
		".popsection\n")

EMBED(pt_tables_sql, "schema/tables.sql");
EMBED(pt_indexes_sql, "schema/indexes.sql");
EMBED(pt_views_sql, "schema/views.sql");
EMBED(pt_fact_views_sql, "schema/fact_views.sql");
EMBED(pt_code_views_sql, "schema/code_views.sql");
