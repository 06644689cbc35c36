/*
 * prometheus.h - rows as Prometheus' text exposition format: print.h says how.
 */
#ifndef QUERIES_PROMETHEUS_H
#define QUERIES_PROMETHEUS_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

/* As print_rows(). */
int prometheus(sqlite3_stmt *statement, const char *name, FILE *out, struct pt_error *e);

#endif
