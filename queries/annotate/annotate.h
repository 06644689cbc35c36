/*
 * annotate.h - pt-query annotate: a function's disassembly, and what each instruction did.
 *
 * Rows, in the order of the function's offsets:
 *   ip, offset    of the instruction (hexadecimal): in one of the processes; from the function's begin
 *   count         how often it ran
 *   cycles, ipc   as in the view insns; NULL: not known, or of one thread
 *   code          the instruction; or a row of its own: a function's name, an inlined one's, a line, a gap
 *   branches      where it led, how often; "not taken"; by calls and returns, too; "interrupted"
 *   loop          of a loop's header: how often it was entered, its trips (loops.h)
 */
#ifndef QUERIES_ANNOTATE_ANNOTATE_H
#define QUERIES_ANNOTATE_ANNOTATE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "schema/error.h"

/* "NAME=VALUE" each: function or ip, dso, thread (a tid, or a name), syntax (intel, att). */
struct annotate_options {
	const char *const *parameters;
	size_t parameter_count;
	bool raw_names;
};

/*
 * A database in memory whose table annotate has the rows, for sqlite3_close(). NULL: PT_ERR_USAGE (a
 * parameter is wrong, no such function ran), PT_ERR_REFUSED (built without capstone), PT_ERR_BAD_INPUT,
 * PT_ERR_NO_MEMORY.
 */
sqlite3 *annotate(sqlite3 *db, const struct annotate_options *options, struct pt_error *e);

#endif
