/* remote.c - see remote.h. */
#include "queries/remote.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/clickhouse/http.h"
#include "schema/sql_macros.h"

extern const char remote_macros[] __attribute__((visibility("hidden")));

/*
 * ---- Parameters -----------------------------------------------------------------------------------------
 */

/* How far what is never looked into reaches: a comment, a text in quotes; 0: there is none at p. */
static size_t skipped(const char *p)
{
	const char *begin = p;
	char quote = *p;

	if (p[0] == '-' && p[1] == '-')
		return strcspn(p, "\n");
	if (p[0] == '/' && p[1] == '*') {
		p = strstr(p + 2, "*/");
		return p ? (size_t)(p + 2 - begin) : strlen(begin);
	}
	if (quote != '\'' && quote != '"' && quote != '`')
		return 0;
	for (p++; *p && *p != quote; p++)
		if (*p == '\\' && p[1])
			p++;
	return (size_t)(p - begin) + (*p == quote);
}

/* The name of the parameter that begins at p, and how long it is; 0: there is none. */
static size_t parameter_length(const char *p)
{
	size_t n = 0;

	if (p[0] != ':' || !(isalpha((unsigned char)p[1]) || p[1] == '_'))
		return 0;
	while (isalnum((unsigned char)p[1 + n]) || p[1 + n] == '_')
		n++;
	return n;
}

/* The value of "NAME=VALUE" of the name, NULL: not given. */
static const char *value_of(const struct remote *r, const char *name, size_t n)
{
	const char *value = NULL;

	for (size_t i = 0; i < r->parameter_count; i++)
		if (!strncmp(r->parameters[i], name, n) && r->parameters[i][n] == '=')
			value = r->parameters[i] + n + 1;
	if (!value && r->no_demangle && n == strlen("no_demangle") && !strncmp(name, "no_demangle", n))
		return "1";
	return value;
}

/* A number as it is, in decimal; else a text in quotes. */
static int put_value(FILE *to, const char *value, struct pt_error *e)
{
	char *end, *quoted;
	long long number;
	double real;

	if (!value)
		return fputs("NULL", to) < 0 ? pt_fail_no_memory(e, NULL) : 0;
	errno = 0;
	number = strtoll(value, &end, 0);
	if (*value && !*end && !errno)
		return fprintf(to, "%lld", number) < 0 ? pt_fail_no_memory(e, NULL) : 0;
	real = strtod(value, &end);
	if (*value && !*end && isdigit((unsigned char)value[strspn(value, "+-.")]))
		return fprintf(to, "%.17g", real) < 0 ? pt_fail_no_memory(e, NULL) : 0;
	quoted = clickhouse_quote(value, e);
	if (!quoted)
		return -1;
	fputs(quoted, to);
	free(quoted);
	return 0;
}

static int fill_in(const struct remote *r, const char *sql, FILE *to, struct pt_error *e)
{
	while (*sql) {
		size_t n = skipped(sql), name = n ? 0 : parameter_length(sql);

		if (name) {
			if (put_value(to, value_of(r, sql + 1, name), e) < 0)
				return -1;
			sql += 1 + name;
			continue;
		}
		n = n ? n : 1;
		fwrite(sql, 1, n, to);
		sql += n;
	}
	return 0;
}

/* LIMIT 20 + 1 becomes LIMIT 21: at the digits' end. In place; the number may need one more. */
static void add_one(char *digits, char *end)
{
	static const char one[] = " + 1";
	int n;

	if (strncmp(end, one, sizeof one - 1) != 0)
		return;
	n = sprintf(digits, "%lld", strtoll(digits, NULL, 10) + 1);
	end += sizeof one - 1;
	memmove(digits + n, end, strlen(end) + 1);
}

/* LIMIT coalesce(NULL, 20) becomes LIMIT 20: older servers take a number only. In place. */
static void fold_limits(char *text)
{
	static const char begin[] = "LIMIT coalesce(";
	int value, otherwise;

	for (char *at = text; (at = strstr(at, begin)); at++) {
		char *first = at + sizeof begin - 1, *second, *to = at + strlen("LIMIT ");
		bool given = strncmp(first, "NULL", 4) != 0;

		value = given ? (int)strspn(first, "0123456789") : 4;
		if (!value || first[value] != ',' || first[value + 1] != ' ')
			continue;
		second = first + value + 2;
		otherwise = (int)strspn(second, "0123456789");
		if (!otherwise || second[otherwise] != ')')
			continue;
		memmove(to, given ? first : second, (size_t)(given ? value : otherwise));
		to += given ? value : otherwise;
		memmove(to, second + otherwise + 1, strlen(second + otherwise + 1) + 1);
		add_one(at + strlen("LIMIT "), to);
	}
}

static bool has_parameter(const char *sql, const char *name, size_t length)
{
	while (*sql) {
		size_t n = skipped(sql), found = n ? 0 : parameter_length(sql);

		if (found == length && !strncmp(sql + 1, name, length))
			return true;
		sql += n ? n : 1;
	}
	return false;
}

/* The query itself: its text behind the macros. */
static int check_parameters(const struct remote *r, const char *sql, struct pt_error *e)
{
	for (size_t i = 0; i < r->parameter_count; i++) {
		size_t n = strcspn(r->parameters[i], "=");

		if (!has_parameter(sql, r->parameters[i], n))
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "the query has no parameter %.*s",
				       (int)n, r->parameters[i]);
	}
	return 0;
}

char *remote_sql(const struct remote *r, const char *sql, struct pt_error *e)
{
	char *with_macros, *expanded, *text = NULL;
	FILE *to;
	size_t n;
	int failed;

	if (asprintf(&with_macros, "%s%s", remote_macros, sql) < 0) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	expanded = pt_sql_expand(with_macros, e);
	free(with_macros);
	if (!expanded || check_parameters(r, expanded, e) < 0) {
		free(expanded);
		return NULL;
	}
	to = open_memstream(&text, &n);
	failed = to ? fill_in(r, expanded, to, e) : pt_fail_no_memory(e, NULL);
	if (to && fclose(to) && !failed)
		failed = pt_fail_no_memory(e, NULL);
	free(expanded);
	if (!failed)
		fold_limits(text);
	if (!failed)
		return text;
	free(text);
	return NULL;
}
