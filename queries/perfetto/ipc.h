/*
 * ipc.h - instructions per cycle of each CPU of a trace: the view `ipc`, summed up in 5,000 parts of the
 * time.
 */
#ifndef QUERIES_PERFETTO_IPC_H
#define QUERIES_PERFETTO_IPC_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"

/* What is called for each part of which cycles are known, CPU by CPU (-1: not known) in the order of
 * time: it begins at TSC tsc and is tsc_length long. Another value than 0 ends it. */
typedef int ipc_part_fn(void *arg, int64_t cpu, int64_t tsc, int64_t tsc_length, double ipc,
			struct pt_error *e);

/* Memory: 16 bytes a path, 80 KB a CPU. Its value that was not 0, else 0; or -1: PT_ERR_NO_MEMORY,
 * PT_ERR_BAD_INPUT, PT_ERR_REFUSED (as unpack_sql_error()). */
int ipc_parts(sqlite3 *db, int64_t trace, ipc_part_fn *each, void *arg, struct pt_error *e);

#endif
