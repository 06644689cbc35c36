/*
 * thread_paths.h - the sums of the calls of call paths that several threads share, of each thread, as the view
 * `thread_path` has them: by call path, then thread.
 */
#ifndef SCHEMA_UNPACK_THREAD_PATHS_H
#define SCHEMA_UNPACK_THREAD_PATHS_H

#include "schema/unpack/group_table.h"

/* The table unpacked_thread_path: id, thread_path_group, trace, thread, call_path, calls, insn_count,
 * cyc_count, elapsed_tsc. */
extern const struct group_table thread_path_table;

#endif
