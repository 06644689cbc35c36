/*
 * jit_symbols.h - the names of code that a process has made: gathered, and put as a SYMBOLS chunk of absolute
 * addresses, named "[jit]".
 */
#ifndef CAPTURE_CODE_JIT_SYMBOLS_H
#define CAPTURE_CODE_JIT_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"

/* Zeroed: there are none. */
struct jit_symbols {
	struct ptc_symbol *symbols;
	size_t count, room;
	char *strings;
	size_t strings_bytes, strings_room;
};

void jit_symbols_deinit(struct jit_symbols *s);

/* The name is cut after 511 bytes. 0, or -1: PT_ERR_NO_MEMORY. */
int jit_symbols_add(struct jit_symbols *s, uint64_t address, uint64_t bytes, const char *name,
		    struct pt_error *e);

/*
 * Adds a line of a perf-PID.map: "ADDRESS BYTES NAME", hexadecimal, without its newline. What is no such line
 * is passed over. 0, or -1: PT_ERR_NO_MEMORY.
 */
int jit_symbols_add_line(struct jit_symbols *s, const char *line, struct pt_error *e);

/* Puts them as the process's, and begins anew. 0, or -1: the writer's errors. */
int jit_symbols_put(struct jit_symbols *s, struct ptc_writer *w, int32_t pid, struct pt_error *e);

#endif
