/* ddl.c - see ddl.h. The assembler reads the files, from the repository's root. */
#include "export/clickhouse/ddl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMBED(name, path)                                                                                    \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl " #name "\n"                                                                         \
		".hidden " #name "\n" #name ":\n"                                                            \
		".incbin \"" path "\"\n"                                                                     \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char name[] __attribute__((visibility("hidden")));

EMBED(clickhouse_tables_sql, "schema/clickhouse/tables.sql")
EMBED(clickhouse_views_sql, "schema/clickhouse/views.sql")

enum { CODECS_SINCE = 19008 };

/* Without comments: a ";" in one ends no statement. */
static void strip_comments(char *text)
{
	char *to = text;

	while (*text) {
		if (text[0] == '-' && text[1] == '-')
			text += strcspn(text, "\n");
		else
			*to++ = *text++;
	}
	*to = 0;
}

static void strip_codecs(char *text)
{
	char *at;

	while ((at = strstr(text, " CODEC("))) {
		char *end = strchr(at, ')');

		memmove(at, end + 1, strlen(end + 1) + 1);
		text = at;
	}
}

char *ddl_text(unsigned server_version, struct pt_error *e)
{
	char *text;

	if (asprintf(&text, "%s\n%s\nINSERT INTO pt_schema VALUES (%d);\n", clickhouse_tables_sql,
		     clickhouse_views_sql, DDL_VERSION) < 0) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	strip_comments(text);
	if (server_version < CODECS_SINCE)
		strip_codecs(text);
	return text;
}

char *ddl_next(char **at)
{
	char *begin = *at + strspn(*at, " \t\r\n"), *end = strchr(begin, ';');

	if (!end)
		return NULL;
	*end = 0;
	*at = end + 1;
	return begin;
}
