/*
 * function.h - the executed instructions of one function, of all processes that mapped it.
 */
#ifndef QUERIES_ANNOTATE_FUNCTION_H
#define QUERIES_ANNOTATE_FUNCTION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

#define NO_INSN UINT32_MAX

struct fn_insn {
	uint64_t ip, start;	   /* start: of the function, as this process has it */
	uint64_t count;		   /* of the whole trace, until somebody counts otherwise */
	double insn_timed, cycles; /* as in the view insns; 0: not known */
	uint32_t version, bits, line;
	int64_t file;	 /* of the table source_file, 0 unknown */
	int64_t inlined; /* of the table inlined_call, 0 none */
	uint32_t next;	 /* the instruction after it, NO_INSN: not executed, or of another function */
	uint8_t len, bytes[15];
};

struct fn {
	int64_t trace;
	char *name, *dso;      /* name as the user wants it: demangled or not */
	struct fn_insn *insns; /* by version, then by address */
	size_t count, room;
	uint64_t low, high; /* no instruction is outside */
};

/* What the user asks for. */
struct fn_wanted {
	const char *name; /* NULL: by ip, and without one the function with the most instructions */
	const char *dso;  /* its name or the last part of it; NULL: any */
	uint64_t ip;
	bool has_ip, raw_names;
};

/*
 * Of several functions of that name, the one with the most instructions executed. Where no symbol covers
 * ip, the code from the call's target before it up to the next one. 0, or -1: PT_ERR_USAGE (no such
 * function was executed), PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_NO_MEMORY.
 */
int fn_load(struct fn *f, sqlite3 *db, const struct fn_wanted *wanted, struct pt_error *e);
void fn_deinit(struct fn *f);

/* The instruction at ip in that version of the code; NO_INSN: it is not one of the function. */
uint32_t fn_find(const struct fn *f, uint32_t version, uint64_t ip);
/* The one whose next it is; NO_INSN: none. */
uint32_t fn_before(const struct fn *f, uint32_t insn);

#endif
