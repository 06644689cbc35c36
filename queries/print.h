/*
 * print.h - a statement's rows as a table for people, CSV (RFC 4180) or JSON (an array of objects; NULL is null).
 */
#ifndef QUERIES_PRINT_H
#define QUERIES_PRINT_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

enum print_format { PRINT_TABLE, PRINT_CSV, PRINT_JSON };

/* Runs the statement to its end. A table is gathered whole first (its columns must be measured), the others are not.
 * Returns 0, or -1: PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_NO_MEMORY, PT_ERR_IO, PT_ERR_CLOSED. */
int print_rows(sqlite3_stmt *statement, enum print_format format, FILE *out, struct pt_error *e);

#endif
