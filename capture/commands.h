/*
 * commands.h - pt-capture's subcommands, one file each; main.c's table names them.
 *
 * Each gets its own argument vector (argv[0] is the subcommand's name, options follow; for cmd_step the
 * program's own argv), prints its output and its errors ("pt-capture: what: why"), and returns the exit status:
 * 0 done, 1 failed and nothing half-made left, 2 usage, 3 done but with gaps. SIGPIPE is ignored by then.
 */
#ifndef CAPTURE_COMMANDS_H
#define CAPTURE_COMMANDS_H

#include "schema/error.h"

int cmd_capture(int argc, char **argv); /* record/main.c: pt-capture [options] [-- prog args] */
int cmd_step(int argc,
	     char **argv); /* step/main.c: pt-capture [options] -- prog args. --help: main has printed the
					  usage of all; it prints its options below that */
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

/* Prints "pt-capture: MESSAGE" (with the offset when it has one; nothing for PT_ERR_CLOSED) to stderr and
 * returns the exit status. In commands.c. */
int command_failed(const struct pt_error *e);

#endif
