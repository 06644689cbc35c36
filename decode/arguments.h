/*
 * arguments.h - pt-decode's command line.
 */
#ifndef DECODE_ARGUMENTS_H
#define DECODE_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "decode/guest_merge.h"
#include "decode/session/selection.h"
#include "decode/vm/tsc_offset.h"
#include "schema/error.h"
#include "schema/records.h"

/* Texts are argv's. */
struct pt_arguments {
	bool vm_clock, version;

	const char *input;  /* NULL: standard input */
	const char *output; /* NULL: standard output */

	/* What is written; none of them: the record stream. used_code implies null. */
	bool text, insns, packets, null, used_code;
	bool att;	    /* of insns: AT&T syntax */
	const char *fields; /* of text or insns; NULL: the usual ones */
	enum ptr_detail detail;
	struct pt_selection detail_time; /* its from and to: of which all is written; neither given: none */
	bool detail_slowest;		 /* that is the time of the slowest VM exit, which is to be found */
	unsigned mode;			 /* of output */
	bool stats, no_calls, quiet, verbose;

	long long memory_mb; /* 0: the default */
	long long jobs;	     /* 0: as many as there are CPUs */
	unsigned quick;	     /* 0 to 2, as in struct pt_session_options */
	struct pt_selection selection;

	bool guest_code;
	bool include_self, from_psb;
	struct pt_vm_options tsc_offsets;
	struct pt_guest_merge guests;
};

/*
 * Fills *ret, which has zeros and defaults. Returns 0; 1 if only --help or --version (ret->version) was
 * asked for; or -1 with PT_ERR_USAGE, also when standard input or output is a terminal and cannot be used.
 */
int pt_arguments_parse(int argc, char **argv, struct pt_arguments *ret, struct pt_error *e);

/* The text of --help. */
void pt_arguments_help(FILE *to);

#endif
