/*
 * source_files.h - the source files that executed code comes from, and which of their lines have code: table
 * source_file.
 */
#ifndef EXPORT_SOURCE_FILES_H
#define EXPORT_SOURCE_FILES_H

#include <stdint.h>

#include "export/bases.h"
#include "export/source_lines.h"

struct inserter;

struct source_files;

/* bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct source_files *source_files_create(struct inserter *inserter, const struct trace_bases *bases,
					 struct pt_error *e);
void source_files_destroy(struct source_files *f); /* NULL is fine */

/* The number of the line's file in the trace, 1 or more; its id is base + number. 0: PT_ERR_NO_MEMORY. */
uint32_t source_files_number(struct source_files *f, const struct source_line *line, struct pt_error *e);

/* All lines that were executed are known: fills the table. 0, or -1: PT_ERR_NO_MEMORY, SQLite's error. */
int source_files_finish(struct source_files *f, struct source_lines *lines, struct pt_error *e);

#endif
