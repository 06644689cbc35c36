/*
 * ddl.h - the tables and views of ClickHouse (schema/clickhouse/tables.sql, views.sql) as statements.
 */
#ifndef EXPORT_CLICKHOUSE_DDL_H
#define EXPORT_CLICKHOUSE_DDL_H

#include "schema/error.h"

enum { DDL_VERSION = 3 }; /* of the tables; the last statement writes it into pt_schema */

/* All statements for a server of that version (18016: 18.16): what it does not know is left out. For the
 * caller to free(). NULL: PT_ERR_NO_MEMORY. */
char *ddl_text(unsigned server_version, struct pt_error *e);
/* The next statement of the text, whose ";" is overwritten; NULL: there is no more. *at: at first the
 * text. */
char *ddl_next(char **at);

#endif
