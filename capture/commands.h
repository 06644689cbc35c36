/*
 * commands.h - pt-capture's subcommands, one file each; capture/main.c's table names them.
 *
 * Each gets its own argument vector (argv[0] is the subcommand's name, options follow), prints its output and
 * its errors ("pt-capture: what: why"), and returns the exit status: 0 done, 1 failed and nothing half-made
 * left, 2 usage, 3 done but with gaps. SIGPIPE is ignored by then, and output_limit_is_error() was called.
 */
#ifndef CAPTURE_COMMANDS_H
#define CAPTURE_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/error.h"

/*
 * The capture itself, without a subcommand's name. --help: its options, below the usage of all that main.c
 * prints.
 */
int cmd_capture(int argc, char **argv); /* record/main.c */

int cmd_check(int argc, char **argv);  /* record/check.c */
int cmd_merge(int argc, char **argv);  /* container/merge.c */
int cmd_info(int argc, char **argv);   /* container/info.c */
int cmd_import(int argc, char **argv); /* import.c */
int cmd_export(int argc, char **argv); /* perfdata/export.c */
int cmd_trim(int argc, char **argv);   /* container/trim.c */

/* import.c's kinds: */
int import_tracecmd(int argc, char **argv); /* tracecmd/import.c */
int import_raw(int argc, char **argv);	    /* raw/import.c */
int import_perf(int argc, char **argv);	    /* perfdata/import.c */

/* The options of a capture that the step engine has. */
struct step_command {
	char **program;		    /* with its arguments, NULL-terminated */
	const char *output;	    /* NULL: standard output */
	const char *terms;	    /* -e's; NULL: none */
	const char *truth;	    /* a file for all taken branches; NULL: none */
	uint64_t max_steps;	    /* 0: no limit */
	void (*started)(void *arg); /* the program is about to run its first instruction; NULL: not called */
	void *started_arg;
	int level; /* zstd's */
	bool quiet;
	bool single;	     /* no breakpoints: an instruction at a time */
	bool no_exit_status; /* return 0, not the program's status */
};

/*
 * Traces a program by single-stepping it. Its exit status (128 + signal), 0 when it runs on, or -1:
 * PT_ERR_USAGE (the terms), PT_ERR_REFUSED (the program cannot be run, or not be traced), PT_ERR_IO,
 * PT_ERR_CLOSED, PT_ERR_NO_MEMORY. In step/main.c.
 */
int step_capture(const struct step_command *c, struct pt_error *e);

/*
 * Prints "pt-capture: MESSAGE" to stderr, with the offset when it has one; nothing for PT_ERR_CLOSED. Returns
 * the exit status. In commands.c.
 */
int command_failed(const struct pt_error *e);

#endif
