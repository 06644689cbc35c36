/*
 * print.h - a statement's rows in one of several formats.
 *
 *   table       aligned, for people: table.h
 *   csv         RFC 4180; NULL is empty
 *   tsv         tab-separated; tab, newline, carriage return and backslash are \t, \n, \r, \\, NULL is \N, as
 *               ClickHouse, MySQL and PostgreSQL read it
 *   json        an array of objects; NULL is null
 *   jsonl       an object on each line
 *   markdown    a table of GitHub's Markdown: markdown.h
 *   prometheus  the text exposition format, version 0.0.4: a gauge pt_QUERY_COLUMN, or a counter
 *               pt_QUERY_COLUMN_total of what counts, for each column of numbers, with the other columns
 *               as labels, and those whose numbers name something (trace, cpu, vcpu, pid, tid, id, ...).
 *               The unit is the name's end; *_ns become *_seconds, exactly.
 *               When two rows have the same labels, all rows get one more: row, counted from 1. NULL makes
 *               no sample. Where no column has numbers only, the last that has any is the gauge, of those
 *               rows. Rows with le_ns, cumulative_count and sum_ns are a histogram's.
 *   folded      flame-graph stacks: column `stack` and the last column, of positive integers; rows without
 *               either are left out
 *   speedscope  the same stacks as a file that https://www.speedscope.app opens: speedscope.h
 *   pprof       the same stacks as pprof's: pprof.h
 *   firefox     the same stacks as a profile of https://profiler.firefox.com: firefox.h
 *   lines       one line per row, its columns separated by tabs: for queries whose rows are a text file's
 *               lines (lcov)
 *   plot        a picture of characters: plot.h; --plot asks for it, not --format
 *   html        a page that needs nothing else: html.h, which is not print_rows()'s job
 *   perfetto    the whole database, for ui.perfetto.dev: queries/perfetto/perfetto.h
 *   perf-sqlite the same, as perf's export-to-sqlite.py has it: queries/perf_sqlite/perf_sqlite.h
 *   sqlite      one trace of a ClickHouse server as a database of pt-load's: remote_copy.h
 */
#ifndef QUERIES_PRINT_H
#define QUERIES_PRINT_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

enum print_format {
	PRINT_NONE,
	PRINT_TABLE,
	PRINT_CSV,
	PRINT_TSV,
	PRINT_JSON,
	PRINT_JSONL,
	PRINT_MARKDOWN,
	PRINT_PROMETHEUS,
	PRINT_FOLDED,
	PRINT_SPEEDSCOPE,
	PRINT_PPROF,
	PRINT_FIREFOX,
	PRINT_LINES,
	PRINT_PLOT,
	PRINT_HTML,
	PRINT_PERFETTO,
	PRINT_PERF_SQLITE,
	PRINT_SQLITE,
	PRINT_FORMATS
};

/* PRINT_NONE when there is none of that name. */
enum print_format print_format_find(const char *name);

/*
 * Runs the statement to its end. name: the query's; width: the table's (table.h). Tables and
 * Prometheus' text are gathered whole first, the others need little memory. Returns 0, or -1:
 * PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_USAGE (folded, but no column `stack`),
 * PT_ERR_NO_MEMORY. print_flush() says whether the rows arrived.
 */
int print_rows(sqlite3_stmt *statement, enum print_format format, const char *name, size_t width, FILE *out,
	       struct pt_error *e);

/* The column `stack` of rows that are call stacks, with a weight in the last one. 0, or -1:
 * PT_ERR_USAGE, there is none. */
int print_stack_column(sqlite3_stmt *statement, const char *format, int *ret, struct pt_error *e);

/* A string of JSON, in quotes: valid UTF-8, and nothing that a terminal obeys. */
void print_json_string(FILE *out, const char *s);

/* After the last output: 0, or -1 when something did not arrive: PT_ERR_IO, PT_ERR_CLOSED. */
int print_flush(FILE *out, struct pt_error *e);

#endif
