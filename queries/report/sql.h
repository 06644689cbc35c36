/*
 * sql.h - the report's questions: queries/report/NAME.sql, which begin with what they answer.
 */
#ifndef QUERIES_REPORT_SQL_H
#define QUERIES_REPORT_SQL_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"

/* The statement of that file, with macros expanded, for sqlite3_finalize(). NULL: PT_ERR_BAD_INPUT
 * (SQLite's message), PT_ERR_NO_MEMORY. */
sqlite3_stmt *report_prepare(sqlite3 *db, const char *name, struct pt_error *e);

/* The next row: 1 there is one, 0 there is none, -1: PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_REFUSED
 * (it took too long). NULL, of a statement that could not be prepared on db, is an error. */
int report_step(sqlite3 *db, sqlite3_stmt *statement, struct pt_error *e);

/* Sets a parameter, where the statement has it. */
void report_bind(sqlite3_stmt *statement, const char *parameter, int64_t value);

#endif
