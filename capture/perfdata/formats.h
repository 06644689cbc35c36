/*
 * formats.h - the formats of tracepoints: from perf's "tracing data" (a feature, or a record in pipe mode)
 * into the container.
 *
 * Tracing data is trace-cmd's old format, version 0.6, with files of tracefs in it (perf's
 * util/trace-event-info.c writes it):
 *   17 08 44 "tracing" "0.6\0", u8 big endian, u8 size of long, u32 page size;
 *   "header_page\0" u64 size, bytes; "header_event\0" u64 size, bytes;
 *   u32 count of ftrace's own formats, each u64 size, bytes;
 *   u32 count of systems, each name\0, u32 count, and formats as before;
 *   then kallsyms and more, which is not needed here.
 */
#ifndef CAPTURE_PERFDATA_FORMATS_H
#define CAPTURE_PERFDATA_FORMATS_H

#include "capture/perfdata/description.h"
#include "schema/container.h"

/*
 * Writes a PTC_FORMAT for each tracepoint. *ret_whole: false when the data is malformed; what is before that
 * place is written. 0, or -1: the writer's errors.
 */
int import_perf_formats(const struct perf_description *d, struct ptc_writer *w, int32_t machine_pid,
			bool *ret_whole, struct pt_error *e);

#endif
