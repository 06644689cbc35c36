/*
 * html.h - rows as sections of one HTML file that needs nothing else: no network, no other file.
 *
 * The rows are plain tables, to be read without JavaScript. With it (dashboard.js) tables sort by a
 * click on a column, columns named *percent get bars, a section `folded` becomes a flame graph, and
 * one whose query says `-- chart: lines` a line chart over its first column.
 *
 * A report (report/) is html_report_begin(), its data's elements, html_tables_begin(), sections,
 * html_report_end().
 */
#ifndef QUERIES_HTML_H
#define QUERIES_HTML_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

/* The page is html_begin(), sections, html_end(); print_flush() says whether it arrived. */
void html_begin(FILE *out, const char *title);
/* A section with the statement's rows. Its heading and notes are the leading comment of sql. Returns
 * as print_rows(). */
int html_section(sqlite3_stmt *statement, const char *name, const char *sql, FILE *out, struct pt_error *e);
void html_end(FILE *out);

/* A report's page: its frame, where its scripts put the pictures, and the scripts. */
void html_report_begin(FILE *out, const char *title);
/* What comes now, sections, is folded up at its end. */
void html_tables_begin(FILE *out);
void html_report_end(FILE *out);

#endif
