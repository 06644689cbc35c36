/* ddl.c - see ddl.h. The assembler reads the files, from the repository's root. */
#include "export/clickhouse/ddl.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/clickhouse.h"

#define EMBED(name, path)                                                                                    \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl clickhouse_" #name "\n"                                                              \
		".hidden clickhouse_" #name "\n"                                                             \
		"clickhouse_" #name ":\n"                                                                    \
		".incbin \"" path "\"\n"                                                                     \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char clickhouse_##name[] __attribute__((visibility("hidden")));

EMBED(tables_sql, "schema/clickhouse/tables.sql")
EMBED(views_sql, "schema/clickhouse/views.sql")

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

/* What comes after the bracket at `text` and the one that closes it. */
static char *after_brackets(char *text)
{
	size_t depth = 0;

	for (; *text; text++) {
		depth += *text == '(' ? 1 : *text == ')' ? -1 : 0;
		if (!depth)
			return text + 1;
	}
	return text;
}

static void strip_codecs(char *text)
{
	char *end;

	while ((text = strstr(text, " CODEC("))) {
		end = after_brackets(strchr(text, '('));
		memmove(text, end, strlen(end) + 1);
	}
}

/* LowCardinality(X) becomes X: 18.16 has it, and cannot join or unite such columns. */
static void strip_dictionaries(char *text)
{
	static const char begin[] = "LowCardinality(";
	size_t n = sizeof begin - 1;
	char *end;

	while ((text = strstr(text, begin))) {
		end = after_brackets(text + n - 1);
		memmove(end - 1, end, strlen(end) + 1);
		memmove(text, text + n, strlen(text + n) + 1);
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

/*
 * ---- Printed --------------------------------------------------------------------------------------------
 */

/* What CREATE TABLE or CREATE VIEW makes; 0 characters: it is neither. */
static const char *made_by(const char *statement, size_t *ret_length)
{
	static const char begin[] = " IF NOT EXISTS ";
	const char *name = strncmp(statement, "CREATE ", 7) ? NULL : strstr(statement, begin);

	name = name ? name + sizeof begin - 1 : statement;
	*ret_length = name == statement ? 0 : strspn(name, "abcdefghijklmnopqrstuvwxyz_");
	return name;
}

/* Rows of a recording go to one server: that of its host. */
static void print_distributed(FILE *to, const char *statement, const char *cluster, const char *database)
{
	size_t n;
	const char *name = made_by(statement, &n);
	bool rows = n > 5 && !strncmp(name + n - 5, "_data", 5);

	if (!n)
		return;
	rows = rows || (n == 5 && !strncmp(name, "loads", 5));
	fprintf(to, "CREATE TABLE IF NOT EXISTS %.*s AS %s.%.*s ENGINE = Distributed(%s, %s, %.*s%s);\n",
		(int)n, name, database, (int)n, name, cluster, database, (int)n, name,
		rows ? ", cityHash64(host)" : "");
}

static void print_replicated(FILE *to, const char *statement)
{
	static const char plain[] = "ENGINE = MergeTree", log[] = "ENGINE = TinyLog";
	size_t n;
	const char *name = made_by(statement, &n), *at = strstr(statement, plain);
	const char *end = at				  ? at + sizeof plain - 1
			  : (at = strstr(statement, log)) ? at + sizeof log - 1
							  : NULL;

	if (!n || !end) {
		fprintf(to, "%s;\n", statement);
		return;
	}
	fprintf(to,
		"%.*sENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/pt/%.*s', '{replica}')%s%s;\n",
		(int)(at - statement), statement, (int)n, name, *end ? end : " ORDER BY version", "");
}

/* CLUSTER:DATABASE, in place. */
static bool split_names(char *names, const char **ret_cluster, const char **ret_database)
{
	char *colon = strchr(names, ':');

	if (!colon || colon == names || !colon[1])
		return false;
	for (const char *p = names; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_' && p != colon)
			return false;
	*colon = 0;
	*ret_cluster = names;
	*ret_database = colon + 1;
	return true;
}

char *pt_clickhouse_schema(const char *form, struct pt_error *e)
{
	static const char distributed[] = "distributed:";
	bool is_distributed = !strncmp(form, distributed, sizeof distributed - 1),
	     replicated = !strcmp(form, "replicated");
	const char *cluster = "", *database = "";
	char *text = NULL, *next, *statement, *ret = NULL,
	     *names = is_distributed ? strdup(form + sizeof distributed - 1) : NULL;
	size_t n;
	FILE *to = NULL;

	if (is_distributed ? !names || !split_names(names, &cluster, &database)
			   : !replicated && strcmp(form, "plain") != 0)
		pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			"--schema %s: plain, replicated, or distributed:CLUSTER:DATABASE", form);
	else if (!(text = ddl_text(UINT_MAX, e)) || !(to = open_memstream(&ret, &n)))
		pt_fail_no_memory(e, NULL);
	for (next = text; to && (statement = ddl_next(&next));)
		if (is_distributed)
			print_distributed(to, statement, cluster, database);
		else if (replicated)
			print_replicated(to, statement);
		else
			fprintf(to, "%s;\n", statement);
	if (to)
		fclose(to);
	free(names);
	free(text);
	return ret;
}
