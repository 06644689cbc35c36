/* sql_macros.c - see sql_macros.h. The assembler reads macros.sql, from the repository's root. */
#include "schema/sql_macros.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

__asm__(".pushsection .rodata\n"
	".globl pt_macros_sql\n"
	".hidden pt_macros_sql\n"
	"pt_macros_sql:\n"
	".incbin \"schema/macros.sql\"\n"
	".byte 0\n"
	".popsection\n");
extern const char pt_macros_sql[] __attribute__((visibility("hidden")));

enum { PARAMETERS_MAX = 8, DEPTH_MAX = 16 };

/* A part of a text that lives longer than it. */
struct span {
	const char *at, *end;
};

struct macro {
	struct span name, parameters[PARAMETERS_MAX], body;
	size_t parameter_count;
};

/* A text that grows; a NUL is not part of it. */
struct text {
	char *bytes;
	size_t n, room;
};

struct expander {
	struct macro *macros;
	size_t count, room;
	struct pt_error *e;
};

/* ---- Tokens ------------------------------------------------------------------------------------------- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_comment(struct span s)
{
	return s.end - s.at >= 2 && (!strncmp(s.at, "--", 2) || !strncmp(s.at, "/*", 2));
}

/* The token that s, which is not empty, begins with: a comment, a string, blanks, a word (with the
 * "." or ":" before it), or one character. One that does not end takes all. */
static struct span token_of(struct span s)
{
	const char *p = s.at;

	if (is_comment(s)) {
		bool line = *p == '-';

		for (p += 2; p < s.end && (line ? *p != '\n' : p[-1] != '*' || *p != '/' || p < s.at + 3);
		     p++)
			;
		p += !line && p < s.end;
	} else if (*p == '\'' || *p == '"' || *p == '`') {
		for (p++; p < s.end && *p != *s.at; p++)
			; /* a doubled quote is the next string's beginning */
		p += p < s.end;
	} else if (is_blank(*p)) {
		while (p < s.end && is_blank(*p))
			p++;
	} else {
		bool word = is_word(*p);

		for (p++; p < s.end && (word || *s.at == '.' || *s.at == ':') && is_word(*p); p++)
			;
	}
	return (struct span){s.at, p};
}

static bool span_is(struct span s, struct span other)
{
	return s.end - s.at == other.end - other.at && !memcmp(s.at, other.at, (size_t)(s.end - s.at));
}

static bool span_is_text(struct span s, const char *text)
{
	return span_is(s, (struct span){text, text + strlen(text)});
}

static void skip_blanks(struct span *s)
{
	while (s->at < s->end && (is_blank(*s->at) || is_comment(*s)))
		s->at = token_of(*s).end;
}

/* Takes the next token but blanks; empty at the end. */
static struct span take(struct span *s)
{
	struct span token;

	skip_blanks(s);
	token = s->at < s->end ? token_of(*s) : *s;
	s->at = token.end;
	return token;
}

static void trim(struct span *s)
{
	skip_blanks(s);
	while (s->at < s->end && is_blank(s->end[-1]))
		s->end--;
}

/* ---- Definitions -------------------------------------------------------------------------------------- */

static const struct macro *find(const struct expander *x, struct span name)
{
	for (size_t i = 0; i < x->count; i++)
		if (span_is(x->macros[i].name, name))
			return &x->macros[i];
	return NULL;
}

static int fail(const struct expander *x, struct span name, const char *what)
{
	return pt_fail(x->e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "SQL macro %.*s: %s",
		       (int)(name.end - name.at < 64 ? name.end - name.at : 64), name.at, what);
}

/* Takes what follows CREATE MACRO, to the end of its line. */
static int define(struct expander *x, struct span *s)
{
	struct macro m = {.name = take(s)};
	struct span token = take(s);

	if (m.name.at == m.name.end || !is_word(*m.name.at) || !span_is_text(token, "("))
		return fail(x, m.name, "a definition is CREATE MACRO name(parameter, ...) AS expression;");
	if (find(x, m.name))
		return fail(x, m.name, "it is defined already");
	do {
		if (m.parameter_count == PARAMETERS_MAX)
			return fail(x, m.name, "too many parameters");
		m.parameters[m.parameter_count++] = take(s);
		token = take(s);
	} while (span_is_text(token, ","));
	if (!span_is_text(token, ")") || !span_is_text(take(s), "AS"))
		return fail(x, m.name, "its parameters do not end with \") AS\"");
	skip_blanks(s);
	m.body = *s;
	while (s->at < s->end && *s->at != ';')
		s->at = token_of(*s).end;
	if (s->at == s->end)
		return fail(x, m.name, "no ; ends its definition");
	m.body.end = s->at++;
	trim(&m.body);
	if (s->at < s->end && *s->at == '\n')
		s->at++;
	if (pt_array_grow(&x->macros, x->count, &x->room, x->e))
		return -1;
	x->macros[x->count++] = m;
	return 0;
}

/* ---- Expansion ---------------------------------------------------------------------------------------- */

static int put(struct text *t, struct span s, struct pt_error *e)
{
	size_t n = (size_t)(s.end - s.at), room = t->room ? t->room : 64;
	char *bytes;

	while (room - t->n <= n)
		room *= 2;
	if (room > t->room) {
		bytes = realloc(t->bytes, room);
		if (!bytes)
			return pt_fail_no_memory(e, NULL);
		t->bytes = bytes;
		t->room = room;
	}
	memcpy(t->bytes + t->n, s.at, n);
	t->n += n;
	t->bytes[t->n] = 0;
	return 0;
}

static int put_text(struct text *t, const char *s, struct pt_error *e)
{
	return put(t, (struct span){s, s + strlen(s)}, e);
}

static struct span span_of(const struct text *t)
{
	return (struct span){t->bytes, t->bytes + t->n};
}

/* Whether what stands beside it cannot tear it apart: a name, a number, f(...), (...). */
static bool is_primary(struct span s)
{
	const char *p = s.at;
	int open = 1;

	while (p < s.end && (is_word(*p) || *p == '.' || *p == ':'))
		p++;
	if (p == s.end || *p != '(')
		return p == s.end;
	for (s.at = p + 1; s.at < s.end && open; s.at = token_of(s).end)
		open += (*s.at == '(') - (*s.at == ')');
	return s.at == s.end;
}

/* The body with the arguments in the parameters' places. */
static int substitute(const struct macro *m, const struct text *arguments, struct text *ret,
		      struct pt_error *e)
{
	struct span rest = m->body;
	int failed = 0;

	while (!failed && rest.at < rest.end) {
		struct span token = token_of(rest);
		size_t i = 0;

		rest.at = token.end;
		if (is_blank(*token.at) || is_comment(token)) {
			skip_blanks(&rest);
			failed = put_text(ret, " ", e);
			continue;
		}
		while (i < m->parameter_count && !span_is(token, m->parameters[i]))
			i++;
		if (i == m->parameter_count)
			failed = put(ret, token, e);
		else if (is_primary(span_of(&arguments[i])))
			failed = put(ret, span_of(&arguments[i]), e);
		else
			failed = put_text(ret, "(", e) || put(ret, span_of(&arguments[i]), e) ||
				 put_text(ret, ")", e);
	}
	return failed ? -1 : 0;
}

static int expand(struct expander *x, struct span s, int depth, struct text *ret);

/* Takes the arguments up to ")", and expands each. What is in arguments is the caller's to free, on
 * failure, too. */
static int take_arguments(struct expander *x, const struct macro *m, struct span *s, int depth,
			  struct text *arguments)
{
	size_t count = 0;
	bool more;

	do {
		struct span argument = *s;
		int open = 0;

		while (s->at < s->end && (open || (*s->at != ',' && *s->at != ')'))) {
			open += (*s->at == '(') - (*s->at == ')');
			s->at = token_of(*s).end;
		}
		if (s->at == s->end)
			return fail(x, m->name, "no ) ends its arguments");
		if (count == m->parameter_count)
			return fail(x, m->name, "too many arguments");
		argument.end = s->at;
		trim(&argument);
		if (argument.at == argument.end)
			return fail(x, m->name, "an argument is empty");
		if (expand(x, argument, depth + 1, &arguments[count]) < 0)
			return -1;
		while (is_blank(arguments[count].bytes[arguments[count].n - 1]))
			arguments[count].n--;
		count++;
		more = *s->at++ == ',';
	} while (more);
	return count == m->parameter_count ? 0 : fail(x, m->name, "too few arguments");
}

/* Takes a call of m, from after its "(". */
static int call(struct expander *x, const struct macro *m, struct span *s, int depth, struct text *ret)
{
	struct text arguments[PARAMETERS_MAX] = {0}, body = {0};
	int failed;

	if (depth == DEPTH_MAX)
		return fail(x, m->name, "it calls itself");
	failed = take_arguments(x, m, s, depth, arguments) < 0 || substitute(m, arguments, &body, x->e) < 0 ||
		 expand(x, span_of(&body), depth + 1, ret) < 0;
	for (size_t i = 0; i < PARAMETERS_MAX; i++)
		free(arguments[i].bytes);
	free(body.bytes);
	return failed ? -1 : 0;
}

/* Appends what becomes of s, which is not empty but at depth 0. */
static int expand(struct expander *x, struct span s, int depth, struct text *ret)
{
	int failed = put_text(ret, "", x->e);

	while (!failed && s.at < s.end) {
		struct span token = token_of(s), next = {token.end, s.end};
		const struct macro *m = is_word(*token.at) ? find(x, token) : NULL;

		s.at = token.end;
		if (m && span_is_text(take(&next), "(")) {
			s.at = next.at;
			failed = call(x, m, &s, depth, ret);
		} else if (!depth && span_is_text(token, "CREATE") && span_is_text(take(&next), "MACRO")) {
			s.at = next.at;
			failed = define(x, &s);
		} else if (depth && is_comment(token)) {
			failed = put_text(ret, " ", x->e); /* an argument becomes a part of a line */
		} else {
			failed = put(ret, token, x->e);
		}
	}
	return failed ? -1 : 0;
}

char *pt_sql_expand(const char *sql, struct pt_error *e)
{
	struct expander x = {.e = e};
	struct text common = {0}, ret = {0};
	bool failed =
	    expand(&x, (struct span){pt_macros_sql, pt_macros_sql + strlen(pt_macros_sql)}, 0, &common) < 0 ||
	    expand(&x, (struct span){sql, sql + strlen(sql)}, 0, &ret) < 0;

	free(common.bytes);
	free(x.macros);
	if (!failed)
		return ret.bytes;
	free(ret.bytes);
	return NULL;
}
