/*
 * table.h - a statement's rows as a table for people; "-" is NULL. On a terminal numbers that count or
 * measure have thousands separators.
 */
#ifndef QUERIES_TABLE_H
#define QUERIES_TABLE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>

#include "schema/error.h"

enum { TABLE_TEXT_MIN = 16 }; /* characters that are left of a text that is cut, at least */

/*
 * width: of a line, in characters; 0: any. To fit, texts are cut, the longest first ("…" is where),
 * and numbers never. Rows that would still take more than two lines are shown whole, one line per
 * column. Returns as print_rows().
 */
int table_print(sqlite3_stmt *statement, size_t width, FILE *out, struct pt_error *e);

#endif
