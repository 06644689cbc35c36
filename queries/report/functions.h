/*
 * functions.h - the hottest functions, instruction by instruction.
 */
#ifndef QUERIES_REPORT_FUNCTIONS_H
#define QUERIES_REPORT_FUNCTIONS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/error.h"

/*
 * An array with an object for each of the first `count` functions of functions.sql that have names:
 * {"name","dso","rows"} with the rows of pt-query annotate, or {"name","dso","why"} when there are none. The
 * first one has rows if it can; the others, as long as no more than 200 million runs are read for all of them.
 * 0, or -1: PT_ERR_BAD_INPUT, PT_ERR_NO_MEMORY, PT_ERR_REFUSED (its time was over).
 */
int functions_annotated(sqlite3 *db, int64_t trace, int count, bool raw_names, FILE *out, struct pt_error *e);

#endif
