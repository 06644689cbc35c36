/*
 * table.h - a statement's rows as a table for people; "-" is NULL.
 */
#ifndef QUERIES_TABLE_H
#define QUERIES_TABLE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>

#include "schema/error.h"

/*
 * width: of a line, in characters; 0: any. Texts are cut, the longest first, to fit ("…" is where);
 * never numbers, and no text below TABLE_TEXT_MIN. Rows that would still take more than two lines are
 * shown a column a line, whole. Returns as print_rows().
 */
enum { TABLE_TEXT_MIN = 16 };
int table_print(sqlite3_stmt *statement, size_t width, FILE *out, struct pt_error *e);

#endif
