/* options.c - see options.h. */
#include "schema/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 96, FIRST_LONG = 256, HELP_COLUMN = 28, LINE_COLUMNS = 100 };

static bool is_end(const struct pt_option *o)
{
	return !o->name && !o->help;
}

static bool is_optional(const char *argument)
{
	return strncmp(argument, "[=", 2) == 0;
}

static int kind_of(const struct pt_option *o)
{
	return !o->argument ? no_argument : is_optional(o->argument) ? optional_argument : required_argument;
}

/* What getopt_long() wants: longs' val is FIRST_LONG plus the index in the table. */
static void getopt_tables(const struct pt_command_line *line, struct option *longs, char *shorts)
{
	size_t n = 0;

	if (line->stop_at_operand)
		*shorts++ = '+';
	for (size_t i = 0; !is_end(&line->options[i]) && n < OPTIONS_MAX; i++) {
		const struct pt_option *o = &line->options[i];

		if (!o->name)
			continue;
		longs[n++] = (struct option){o->name, kind_of(o), NULL, FIRST_LONG + (int)i};
		if (!o->letter)
			continue;
		*shorts++ = o->letter;
		for (int colons = kind_of(o); colons; colons--)
			*shorts++ = ':';
	}
	longs[n++] = (struct option){"help", no_argument, NULL, 'h'};
	longs[n] = (struct option){0};
	*shorts++ = 'h';
	*shorts = 0;
}

static const struct pt_option *option_of(const struct pt_option *options, int c)
{
	if (c >= FIRST_LONG)
		return &options[c - FIRST_LONG];
	for (; !is_end(options); options++)
		if (options->letter == c)
			return options;
	return NULL;
}

static int apply(const struct pt_option *o, void *arg, const char *value, struct pt_error *e)
{
	if (o->set)
		return o->set(arg, value, e);
	if (o->flag)
		*(bool *)((char *)arg + o->flag - 1) = true;
	if (o->text)
		memcpy((char *)arg + o->text - 1, &value, sizeof value);
	return 0;
}

int pt_options_parse(const struct pt_command_line *line, int argc, char **argv, void *arg, int *ret_operand,
		     struct pt_error *e)
{
	struct option longs[OPTIONS_MAX + 2];
	char shorts[3 * OPTIONS_MAX + 4];
	int c;

	getopt_tables(line, longs, shorts);
	optind = 0; /* glibc: begin anew, and read the '+' */
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct pt_option *o = option_of(line->options, c);

		if (c == 'h' && !o)
			return 1;
		if (!o)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "see '%s --help'", line->program);
		if (apply(o, arg, optarg, e))
			return -1;
	}
	*ret_operand = optind;
	return 0;
}

/* Prints text from column on, wrapped at blanks; the cursor is at column. */
static void print_wrapped(const char *text, int column, FILE *to)
{
	int at = column;

	while (*text) {
		size_t n = strcspn(text, " \n");

		if (at > column && at + (int)n + 1 > LINE_COLUMNS) {
			fprintf(to, "\n%*s", column, "");
			at = column;
		}
		at += fprintf(to, "%s%.*s", at > column ? " " : "", (int)n, text);
		text += n;
		if (*text == '\n') {
			fprintf(to, "\n%*s", column, "");
			at = column;
		}
		text += *text != 0;
	}
	fputc('\n', to);
}

/* What is before the help: "  -o, --output FILE". Returns its columns. */
static int print_name(const struct pt_option *o, FILE *to)
{
	const char *a = o->argument;
	int at;

	if (!o->name)
		return fprintf(to, "  %s", a);
	at = o->letter ? fprintf(to, "  -%c, --%s", o->letter, o->name) : fprintf(to, "      --%s", o->name);
	return a ? at + fprintf(to, "%s%s", is_optional(a) ? "" : " ", a) : at;
}

void pt_options_print(const struct pt_option *options, FILE *to)
{
	for (; !is_end(options); options++) {
		int at;

		if (!options->name && !options->argument) {
			fprintf(to, "%s\n", options->help);
			continue;
		}
		at = print_name(options, to);
		if (at + 2 > HELP_COLUMN)
			fprintf(to, "\n%*s", HELP_COLUMN, "");
		else
			fprintf(to, "%*s", HELP_COLUMN - at, "");
		print_wrapped(options->help, HELP_COLUMN, to);
	}
}

int pt_option_number(const char *name, const char *value, long long low, long long high, long long *ret,
		     struct pt_error *e)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(value, &end, 10);
	if (errno || end == value || *end || v < low || v > high)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s %s: not a number from %lld to %lld", name,
			       value, low, high);
	*ret = v;
	return 0;
}

int pt_option_mode(const char *name, const char *value, unsigned *ret, struct pt_error *e)
{
	size_t digits = strspn(value, "01234567");
	unsigned long mode = strtoul(value, NULL, 8);

	if (!digits || digits > 5 || value[digits] || mode > 0777 || (mode & 0600) != 0600)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "%s %s: not an octal mode that lets the owner read and write, as 600 or 640",
			       name, value);
	*ret = (unsigned)mode;
	return 0;
}
