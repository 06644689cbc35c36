/*
 * markdown.h - a statement's rows as a table of GitHub's Markdown (GFM, "Tables (extension)").
 *
 * What Markdown would take for markup stands behind a backslash. A column whose value in the first row is a
 * number is aligned right.
 */
#ifndef QUERIES_MARKDOWN_H
#define QUERIES_MARKDOWN_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

/* Runs the statement to its end. 0, or -1: PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_NO_MEMORY. */
int markdown_print(sqlite3_stmt *statement, FILE *out, struct pt_error *e);

#endif
