/* test_sql_macros - schema/sql_macros.h: what is expanded, what is left alone, and what is an error. */
#include <stdlib.h>
#include <string.h>

#include "schema/sql_macros.h"
#include "tests/unit/check.h"

#define ADD "CREATE MACRO ADD(a, b) AS (a + b);\n"

static bool becomes(const char *sql, const char *expected)
{
	struct pt_error e;
	char *got = pt_sql_expand(sql, &e);
	bool same = got && !strcmp(got, expected);

	if (!same)
		printf("# %s\n", got ? got : e.message);
	free(got);
	return same;
}

static bool fails(const char *sql, const char *with)
{
	struct pt_error e = {0};
	char *got = pt_sql_expand(sql, &e);
	bool right = !got && e.kind == PT_ERR_BAD_INPUT && strstr(e.message, with);

	if (!right)
		printf("# %s\n", got ? got : e.message);
	free(got);
	return right;
}

int main(void)
{
	check(becomes("SELECT a, 'b' FROM c -- d", "SELECT a, 'b' FROM c -- d"), "plain SQL is as it was");
	check(becomes("", ""), "nothing is nothing");
	check(becomes("SELECT NUMBER_AT(x, 1)", "SELECT coalesce(unicode(substr(x, 1, 1)) - 1, 0)"),
	      "macros.sql is known");
	check(becomes("-- c\n" ADD "SELECT ADD(1, x.y)", "-- c\nSELECT (1 + x.y)"),
	      "a definition leaves no line, comments before it are kept");
	check(becomes(ADD "ADD(1, 2 * 3) ADD(f(1, 2), (4))", "(1 + (2 * 3)) (f(1, 2) + (4))"),
	      "an argument that could be torn apart gets parentheses");
	check(becomes(ADD "ADD((1) + (2), 3)", "(((1) + (2)) + 3)"), "so does one that only begins with one");
	check(becomes(ADD "ADD(ADD(1, 2), ADD(3, 4))", "((1 + 2) + (3 + 4))"), "calls as arguments");
	check(becomes(ADD "CREATE MACRO TWICE(a) AS ADD(a, a);\nTWICE(x)", "(x + x)"), "calls in a body");
	check(becomes("CREATE MACRO M(g, path) AS g.path + path + :path + 'g' + \"g\";\nM(h, 1)",
		      "h.path + 1 + :path + 'g' + \"g\""),
	      "a parameter's name after a dot or a colon, or quoted, is none");
	check(becomes("CREATE MACRO M(a) AS\n\ta -- b\n\t+ /* ; */ 1;\nM(2)", "2 + 1"),
	      "blanks and comments of a body become one blank");
	check(becomes(ADD "ADD(1 -- one\n, 2)", "(1 + 2)"), "comments in arguments go");
	check(becomes(ADD "SELECT ADD, x.ADD(1, 2), 'ADD(1, 2)', \"ADD\"(1) -- ADD(\n",
		      "SELECT ADD, x.ADD(1, 2), 'ADD(1, 2)', \"ADD\"(1) -- ADD(\n"),
	      "what is no call");
	check(becomes(ADD "ADD ('a,)', \"b(\") /* ADD(1) */", "(('a,)') + (\"b(\")) /* ADD(1) */"),
	      "commas and parentheses in strings");
	check(becomes(ADD "ADD('it''s', 1)", "(('it''s') + 1)"), "doubled quotes");
	check(becomes("CREATE TABLE MACRO (x)", "CREATE TABLE MACRO (x)"), "CREATE of something else");
	check(becomes("SELECT 'a /* b", "SELECT 'a /* b") && becomes("/* a", "/* a") && becomes("-", "-") &&
		  becomes("/*/", "/*/"),
	      "what does not end");

	check(fails(ADD "ADD(1)", "ADD: too few arguments"), "too few arguments");
	check(fails(ADD "ADD(1, 2, 3)", "ADD: too many arguments"), "too many arguments");
	check(fails(ADD "ADD(1, )", "ADD: an argument is empty"), "an empty argument");
	check(fails(ADD "ADD(1, (2)", "ADD: no ) ends its arguments"), "a call that does not end");
	check(fails("CREATE MACRO A(x) AS A(x);\nA(1)", "A: it calls itself"), "a macro that calls itself");
	check(fails("CREATE MACRO A(x) AS B(x); CREATE MACRO B(x) AS A(x);\nA(1)", "calls itself"),
	      "macros that call each other");
	check(fails(ADD ADD, "ADD: it is defined already"), "a second definition");
	check(fails("CREATE MACRO A(x) AS x", "A: no ; ends"), "a definition that does not end");
	check(fails("CREATE MACRO A x AS x;", "A: a definition is"), "no parameters");
	check(fails("CREATE MACRO A(x) x;", "A: its parameters do not end"), "no AS");
	check(fails("CREATE MACRO", "a definition is"), "nothing after CREATE MACRO");
	check(fails("CREATE MACRO A(a, b, c, d, e, f, g, h, i) AS a;", "A: too many parameters"),
	      "more parameters than there may be");
	return sum_up();
}
