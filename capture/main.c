/* main.c - pt-capture: a recording in, or a program run, and a container out. */
#include "capture/commands.h"
#include "schema/output.h"
#include "schema/terminal.h"
#include "schema/version.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* In the usage text's order. Arguments that do not begin with a subcommand's name are the first one's. */
static const struct command {
	const char *name; /* NULL: the capture itself */
	const char *arguments;
	const char *summary;
	int (*run)(int argc, char **argv);
} commands[] = {
    {NULL, "[options] [-- PROGRAM [ARGUMENTS]]", "trace; the options are listed below", cmd_capture},
    {"check", "", "whether Processor Trace works here, and what to do where not", cmd_check},
    {"merge", "[-o FILE] HOST GUEST[,PID]...", "join a host's container and what was recorded in its guests",
     cmd_merge},
    {"info", "[--json] [CONTAINER|-]", "print what is inside a container", cmd_info},
    {"import", "[options] FILE|DIR|- (or --raw AUX --elf FILE:ADDR...)",
     "make a container from a perf recording, or from raw PT bytes and their code", cmd_import},
    {"export", "--perf-data FILE [CONTAINER|-]", "write a container as a perf.data", cmd_export},
    {"trim", "[--time A..B] [--used-code] CONTAINER",
     "make a smaller container: a time range, only code that ran", cmd_trim},
};

#define COMMANDS (sizeof commands / sizeof *commands)

static void usage(FILE *to)
{
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "%s pt-capture %s%s%s\n%12s%s\n",
			i ? "      " : "usage:", commands[i].name ? commands[i].name : "",
			commands[i].name ? " " : "", commands[i].arguments, "", commands[i].summary);
	fputs("\nThe capture and import write a container to standard output, or to a file with -o.\n"
	      "`pt-capture SUBCOMMAND --help` says more; so do `man pt-capture` and, on the format, `man "
	      "pt-container`.\n"
	      "\n"
	      "Example: pt-capture -- ls | pt-decode | pt-load trace.db && pt-query trace.db summary\n",
	      to);
}

/* A subcommand's status, unless what it printed could not be written. */
static int printed(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno != EPIPE)
		perror("pt-capture: cannot write");
	return status && status != 3 ? status : 1;
}

int main(int argc, char **argv)
{
	/* A closed pipe is an error of write() then, which is handled; so is a file that may not grow. */
	signal(SIGPIPE, SIG_IGN);
	output_limit_is_error();
	pt_terminal_protect();
	pt_terminal_protect_errors();
	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return printed(commands[0].run(argc, argv));
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("pt-capture " PT_VERSION);
		return printed(0);
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].name && strcmp(argv[1], commands[i].name) == 0)
			return printed(commands[i].run(argc - 1, argv + 1));
	return printed(commands[0].run(argc, argv));
}
