/*
 * clickhouse.h - pt-load with a clickhouse:// URL for a database (schema/clickhouse/http.h says which).
 *
 * Exactly once: a recording's rows get the number of their load, and are seen when the load's row in the
 * table `loads` says that it is complete, which is written last. A request that may or may not have been
 * carried out is never repeated: the load gets another number and starts again from its scratch copy. So
 * what reaches the server late, or twice, is of a load that nobody sees; a later load deletes it.
 */
#ifndef EXPORT_CLICKHOUSE_H
#define EXPORT_CLICKHOUSE_H

#include <stdint.h>

#include "export/manage.h"
#include "export/sink.h"

/* Its record() says PT_ERR_REFUSED before much is read when the server has the recording; commit() sends
 * it. options.mode is not used. NULL: PT_ERR_USAGE, PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_REFUSED (another
 * schema version, built without libcurl). */
struct pt_sink *pt_clickhouse_sink_create(const char *url, const struct pt_sink_options *options,
					  struct pt_error *e);

/* As manage_list() and manage_delete(). */
int pt_clickhouse_list(const char *url, const struct pt_sink_options *options,
		       void (*one)(void *arg, const struct manage_trace *t), void *arg, struct pt_error *e);
int pt_clickhouse_delete(const char *url, const struct pt_sink_options *options, int64_t trace,
			 struct pt_error *e);
/* Deletes the rows that died loads have left; makes the tables where there are none. PT_ERR_REFUSED: the
 * tables are Distributed. */
int pt_clickhouse_clean(const char *url, const struct pt_sink_options *options, struct pt_error *e);
/* The tables and views as SQL, for the caller to free(). form: "plain", "replicated" (for ZooKeeper,
 * with the macros shard and replica), "distributed:CLUSTER:DATABASE" (over that database of each server
 * of a cluster). NULL: PT_ERR_USAGE. */
char *pt_clickhouse_schema(const char *form, struct pt_error *e);

#endif
