/*
 * speedscope.h - call stacks as a file of speedscope (https://www.speedscope.app/file-format-schema.json):
 * one "sampled" profile whose samples are the rows, in their order, with the last column's number as
 * weight.
 *
 * Frames are the texts between the semicolons of column `stack`, the outermost first; rows without a stack
 * or with no positive weight are left out. The profile has no unit: what the numbers count, the query says.
 */
#ifndef QUERIES_SPEEDSCOPE_H
#define QUERIES_SPEEDSCOPE_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

/* Runs the statement to its end; keeps all in memory. name: the profile's. 0, or -1: PT_ERR_BAD_INPUT
 * (SQLite's message), PT_ERR_USAGE (no column `stack`), PT_ERR_NO_MEMORY. */
int speedscope_print(sqlite3_stmt *statement, const char *name, FILE *out, struct pt_error *e);

#endif
