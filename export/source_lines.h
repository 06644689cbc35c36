/*
 * source_lines.h - which line of source an instruction comes from, by the DWARF of the file on this machine.
 *
 * A file is used when its build id is the trace's: else it might be another one. Its DWARF is looked for as
 * debuggers do, in the file itself and by its build id and .gnu_debuglink (libdwfl; debuginfod is asked when
 * DEBUGINFOD_URLS says so). Without libdw when this is compiled, no line is known.
 */
#ifndef EXPORT_SOURCE_LINES_H
#define EXPORT_SOURCE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/records.h"

struct source_lines;

struct source_lines *source_lines_create(struct pt_error *e); /* NULL: PT_ERR_NO_MEMORY */
void source_lines_destroy(struct source_lines *l);	      /* NULL is fine */

/* The next DSO, the next SYMBOL. 0, or -1: PT_ERR_NO_MEMORY. */
int source_lines_dso(struct source_lines *l, const struct ptr_dso *dso, struct pt_error *e);
int source_lines_symbol(struct source_lines *l, const struct ptr_symbol *symbol, struct pt_error *e);

/*
 * After the last DSO, once: opens their files in a thread, so that decompressing their DWARF does not keep the
 * caller. Without it, or when no thread can be had, each is opened when it is first asked for.
 */
void source_lines_open_ahead(struct source_lines *l);

/* A call that the compiler inlined. */
struct inlined_call {
	const char *name;	    /* as a linker has it, where it has one, else the source's; "" unknown */
	const char *folder, *file;  /* where the call stands, as in source_line; file NULL: unknown */
	uint32_t line;		    /* 0 unknown */
	struct inlined_call *outer; /* which this one was inlined into; NULL: into the symbol's function */
	uint32_t row;		    /* its user's: 0 at first */
};

/* Where in the source an instruction comes from. All of it lives as long as the source_lines. */
struct source_line {
	const char *folder; /* that the compiler ran in, of a file that is not an absolute path; else "" */
	const char *file;
	uint32_t line;
	struct inlined_call *inlined; /* the innermost one that it is of; NULL: of none */
};
/*
 * Of the instruction at ip, which the symbol covers. 1; 0: it is not known; -1: PT_ERR_IO or
 * PT_ERR_NO_MEMORY, the file that knows it could not be read now (descriptors, memory, a disk's error), and
 * the next load may know it.
 */
int source_lines_find(struct source_lines *l, uint32_t symbol, uint64_t ip, struct source_line *ret,
		      struct pt_error *e);

/*
 * Calls `each` for every line that has code in a compilation unit of which source_lines_find() has found
 * anything. 0, or -1 as that.
 */
int source_lines_all(struct source_lines *l,
		     int (*each)(void *arg, const struct source_line *line, struct pt_error *e), void *arg,
		     struct pt_error *e);

#endif
