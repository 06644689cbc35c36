/*
 * json.h - a statement's rows as JSON that may stand in an HTML page: whatever a name contains, it ends no
 * element.
 */
#ifndef QUERIES_REPORT_JSON_H
#define QUERIES_REPORT_JSON_H

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/error.h"

/* What wants to know the values of one column. */
struct json_watch {
	const char *column; /* NULL: none */
	int (*see)(void *arg, int64_t value, struct pt_error *e);
	void *arg;
};

/* A string in quotes: valid UTF-8. */
void json_string(FILE *out, const char *s);

/* Runs the statement: {"columns":[names],"rows":[[values], ...]}. 0, or -1:
 * PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_REFUSED (its time was over), or what watch says. */
int json_rows(sqlite3_stmt *statement, const struct json_watch *watch, FILE *out, struct pt_error *e);

/* What json_rows() writes before the rows; after them "]}" is due. */
void json_columns(sqlite3_stmt *statement, FILE *out);
/* The statement's row at hand, as an array. */
void json_row(sqlite3_stmt *statement, FILE *out);

/* The element that has data: what is written until json_end() is its content. */
void json_begin(FILE *out, const char *name, const char *suffix);
void json_end(FILE *out);

#endif
