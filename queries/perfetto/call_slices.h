/*
 * call_slices.h - the calls of a trace as slices on the tracks of their threads.
 */
#ifndef QUERIES_PERFETTO_CALL_SLICES_H
#define QUERIES_PERFETTO_CALL_SLICES_H

#include <sqlite3.h>
#include <stdint.h>

#include "queries/perfetto/packets.h"
#include "queries/perfetto/sql.h"
#include "schema/error.h"

/* Those of range, which is not NULL. *ret_left_out: how many calls of the trace have no time. 0, or -1:
 * PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT, PT_ERR_REFUSED (as unpack_sql_error()), PT_ERR_IO (as
 * call_order.h). */
int call_slices_write(sqlite3 *db, const struct perfetto_range *range, struct packets *packets,
		      int64_t *ret_left_out, struct pt_error *e);

#endif
