/*
 * records_runs.h - where the RUNs of a struct ptr_runs (records.h) are in its bytes.
 *
 * Private to the writer: records_write.c.
 */
#ifndef SCHEMA_RECORDS_RUNS_H
#define SCHEMA_RECORDS_RUNS_H

#include "schema/records.h"

/* Where run i begins; the last one's end when i is their count. */
size_t ptr_runs_offset(const struct ptr_runs *runs, uint32_t i);
/* Up to which of [from, to) they can be put in a block that has room for so many bytes: before each there is to
 * be room for a RUN of any length. */
uint32_t ptr_runs_fitting(const struct ptr_runs *runs, uint32_t from, uint32_t to, size_t bytes);

#endif
