/*
 * pprof.h - call stacks as a profile of pprof (github.com/google/pprof, proto/profile.proto): gzip around
 * protobuf, by zlib and protobuf-c (pprof.proto).
 *
 * Samples are the rows, with the last column's number as their value; the value's type is that column's
 * name, its unit "count", or "nanoseconds" for a name in _ns.
 */
#ifndef QUERIES_PPROF_H
#define QUERIES_PPROF_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

/* Keeps all in memory. 0, or -1: as stacks_read(), and PT_ERR_REFUSED (pt-query was built without
 * protobuf-c). */
int pprof_print(sqlite3_stmt *statement, FILE *out, struct pt_error *e);

#endif
