/*
 * options.h - command-line options as a table, from which parsing, --help, completion and the test of the man
 * pages come.
 *
 *     static const struct pt_option table[] = {
 *             PT_OPERAND("FILE", "what to read"),
 *             PT_OPTION_HEADING("Output:"),
 *             {.name = "output", .letter = 'o', .argument = "FILE", .help = "write to FILE",
 *              PT_OPTION_TEXT(struct arguments, output)},
 *             {.name = "quiet", .letter = 'q', .help = "no progress",
 *              PT_OPTION_FLAG(struct arguments, quiet)},
 *             {.name = "time", .argument = "A..B", .help = "only from A to B", .set = set_time},
 *             PT_OPTION_END};
 *
 * --help (-h) is part of every table without being named in it. Parsing is getopt_long(3)'s, so options may
 * be abbreviated and "--" ends them.
 */
#ifndef SCHEMA_OPTIONS_H
#define SCHEMA_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "schema/error.h"

struct pt_option {
	const char *name;     /* long name, without "--"; NULL: a heading, an operand, or the end */
	char letter;	      /* short name, 0 none */
	const char *argument; /* what it takes, "[PID:]FILE"; "[=SIZE]": may take; NULL: takes none */
	const char *help;     /* wrapped when printed; '\n' breaks a line */
	/* One of these says what it does. arg is what pt_options_parse() was given; value is NULL without
	 * argument. */
	int (*set)(void *arg, const char *value, struct pt_error *e); /* 0, or -1: usually PT_ERR_USAGE */
	size_t flag; /* 1 + offset of a bool in *arg that becomes true */
	size_t text; /* 1 + offset of a const char * in *arg that points to the value */
};
#define PT_OPTION_FLAG(type, field) .flag = 1 + offsetof(type, field)
#define PT_OPTION_TEXT(type, field) .text = 1 + offsetof(type, field)
#define PT_OPTION_HEADING(line)                                                                              \
	{                                                                                                    \
		.help = (line)                                                                               \
	}
/*
 * An operand, listed among the options: PT_OPERAND("-- PROGRAM [ARGUMENTS]", "a program"). It is not parsed.
 */
#define PT_OPERAND(text, what)                                                                               \
	{                                                                                                    \
		.argument = (text), .help = (what)                                                           \
	}
#define PT_OPTION_END                                                                                        \
	{                                                                                                    \
		.name = NULL                                                                                 \
	}

struct pt_command_line {
	const char *program; /* for messages: "see 'PROGRAM --help'" */
	const struct pt_option *options;
	/* The first argument that is no option ends them (it is a command's name, a program). */
	bool stop_at_operand;
};

/*
 * Calls the setters in the order of the arguments. *ret_operand: index of the first operand in argv, to whose
 * end getopt has moved the operands. Returns 0; 1 for --help, of which nothing has been printed; -1:
 * PT_ERR_USAGE or a setter's error.
 */
int pt_options_parse(const struct pt_command_line *line, int argc, char **argv, void *arg, int *ret_operand,
		     struct pt_error *e);

/* The options of a --help text: one paragraph an option, headings between them, within 100 columns. */
void pt_options_print(const struct pt_option *options, FILE *to);

/*
 * Helpers for setters: "NAME: why" goes to e. The whole value must be a decimal number from low to high.
 */
int pt_option_number(const char *name, const char *value, long long low, long long high, long long *ret,
		     struct pt_error *e);

/* A file's permissions, in octal (640), of which the owner's read and write are part. */
int pt_option_mode(const char *name, const char *value, unsigned *ret, struct pt_error *e);

#endif
