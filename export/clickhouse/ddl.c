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

enum { CODECS_SINCE = 19008, DICTIONARIES_SINCE = 20000 };

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

/* LowCardinality(X) becomes X: 18.16 has it, and cannot join or unite such columns. */
static void strip_dictionaries(char *text)
{
	static const char begin[] = "LowCardinality(";
	size_t n = sizeof begin - 1, depth;
	char *end;

	while ((text = strstr(text, begin))) {
		memmove(text, text + n, strlen(text + n) + 1);
		for (end = text, depth = 1; *end && depth; end++)
			depth = *end == '(' ? depth + 1 : *end == ')' ? depth - 1 : depth;
		if (!depth)
			memmove(end - 1, end, strlen(end) + 1);
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
	if (server_version < DICTIONARIES_SINCE)
		strip_dictionaries(text);
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
