/*
 * inlined_calls.h - the calls that a compiler inlined, of one compilation unit, by its DWARF
 * (DW_TAG_inlined_subroutine: DWARF 5, 3.3.8).
 */
#ifndef EXPORT_INLINED_CALLS_H
#define EXPORT_INLINED_CALLS_H

#include <elfutils/libdw.h>
#include <stdint.h>

#include "export/source_lines.h"

#define INLINED_DEPTH_MAX 256 /* of the DIEs' tree: what is deeper is not read */

struct inlined_calls;

/* The strings are libdw's, and live as long as the Dwarf of the unit. NULL: PT_ERR_NO_MEMORY. */
struct inlined_calls *inlined_calls_read(Dwarf_Die *unit, struct pt_error *e);
void inlined_calls_destroy(struct inlined_calls *c); /* NULL is fine */

/* The innermost one that has the code at an address of the file (without libdwfl's bias). NULL: none. */
struct inlined_call *inlined_calls_find(const struct inlined_calls *c, uint64_t address);

#endif
