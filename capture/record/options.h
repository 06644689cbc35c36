/* options.h - the command line of a capture: pt-capture [options] [-- PROGRAM [ARGUMENTS]]. */
#ifndef CAPTURE_RECORD_OPTIONS_H
#define CAPTURE_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "capture/record/capture.h"
#include "capture/record/event_list.h"

/* What the options say. Texts are argv's unless they are said to be owned. */
struct hw_arguments {
	struct hw_options o; /* without what the machine decides: config, filter, VMs */

	const char *output;	  /* NULL: standard output */
	const char *engine;	  /* "auto", "perf" or "step"; NULL: auto */
	const char *truth;	  /* the step engine's; NULL: not given */
	const char *max_steps;	  /* likewise */
	uint64_t snapshot_bytes;  /* -S's; 0: none */
	bool dry_run;		  /* nothing is to be done with what they say */
	bool no_exit_status;	  /* exit with 0, not with the program's status */
	const char *vm;		  /* "list", "all", a pid or a name; NULL: not given */
	char *filter;		  /* perf's syntax, owned; NULL: none */
	struct event_list events; /* -e's */
	char *terms;		  /* those of intel_pt without aux-action; owned; NULL: none */

	/* What o points to, where an option asks for it. */
	struct hw_group group;
	struct hw_rotation rotation;
	struct hw_trigger trigger;
	long long trigger_count; /* -1: not given */
	struct hw_control control;
	int ready_fd; /* --ready-fd's, open; -1: none */
	struct guest_kernels kernels;
};

/*
 * Fills *a by the arguments; hw_arguments_deinit() in any case. Returns 0; 1 for --help; or -1: PT_ERR_USAGE,
 * PT_ERR_IO (a file that is named cannot be opened), PT_ERR_NO_MEMORY.
 */
int hw_arguments_parse(struct hw_arguments *a, int argc, char **argv, struct pt_error *e);
void hw_arguments_deinit(struct hw_arguments *a);

/* The options' part of --help. */
void hw_arguments_help(FILE *to);

/*
 * Records a tracepoint, once, if it has not been asked for. The text must live as long as *o. 0, or -1:
 * PT_ERR_NO_MEMORY.
 */
int hw_options_tracepoint(struct hw_options *o, const char *name, struct pt_error *e);
/* The same with a breakpoint, by event_name.h's name. */
int hw_options_breakpoint(struct hw_options *o, const char *name, struct pt_error *e);

#endif
