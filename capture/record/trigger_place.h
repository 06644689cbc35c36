/* trigger_place.h - where the breakpoints of a trigger are. */
#ifndef CAPTURE_RECORD_TRIGGER_PLACE_H
#define CAPTURE_RECORD_TRIGGER_PLACE_H

#include "capture/record/trigger.h"

/*
 * Finds the function among those that the process has mapped (pid 0: there is none), then in the kernel; by
 * .symtab, .dynsym, a debug file's or .gnu_debugdata's names, and by /proc/kallsyms. Of a return, these are
 * the instructions that leave the function: returns, and jumps out of it. Fills t->at, t->count and
 * t->stop. 0, or -1: PT_ERR_REFUSED (no such function, several, more places than a CPU has breakpoints),
 * PT_ERR_NO_MEMORY, the errors of filter_symbols.h.
 */
int hw_trigger_place(struct hw_trigger *t, int32_t pid, struct pt_error *e);

/*
 * Adds the breakpoints of a return: the instructions in n bytes of code at an address that leave it. 0, or -1:
 * PT_ERR_REFUSED. For tests, too.
 */
int hw_trigger_leaves(struct hw_trigger *t, const uint8_t *code, size_t n, uint64_t address,
		      struct pt_error *e);

#endif
