/*
 * filter.h - address filters as `perf record --filter` takes them, made into what the kernel takes.
 *
 *     filter|start|stop|tracestop START [/ SIZE] [@FILE], ...
 *
 * START is an address (of the kernel; with @FILE a file offset), a function's name, or * for all of it. A
 * name can be followed by #N, the Nth of that name in address order, or #g, the global one; a name that
 * several functions have is refused without, and they are listed. SIZE is a number, or a function's name, and
 * means up to that function's end. A filter or tracestop without SIZE is one function long. White space
 * around names is as perf wants it, but need not be there. Several filters are separated by commas or spaces.
 *
 * The kernel takes "filter 0xSTART/0xSIZE[@FILE]", "start 0xSTART[@FILE]", "stop ...", with commas between
 * them (PERF_EVENT_IOC_SET_FILTER, kernel/events/core.c); the address in a file is an offset, FILE its whole
 * path. A tracestop is a stop with a size. Intel PT has filter and tracestop only
 * (pt_event_addr_filters_validate()).
 */
#ifndef CAPTURE_RECORD_FILTER_H
#define CAPTURE_RECORD_FILTER_H

#include "schema/error.h"

/*
 * Returns the text for the kernel, to be freed. kallsyms: its path, /proc/kallsyms. NULL: PT_ERR_USAGE
 * (syntax, an unknown or ambiguous name, an end before its start), PT_ERR_IO, PT_ERR_BAD_INPUT (the file is
 * no ELF file, kallsyms hides its addresses), PT_ERR_NO_MEMORY.
 */
char *hw_filter_resolve(const char *text, const char *kallsyms, struct pt_error *e);

#endif
