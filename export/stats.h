/*
 * stats.h - sums over runs that queries would otherwise have to read all runs for: tables path_stat, edge_stat and
 * path_chunk.
 */
#ifndef EXPORT_STATS_H
#define EXPORT_STATS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/records.h"

enum { STATS_CHUNK_RUNS = 4096, STATS_CHUNK_BITS = 24 };

struct stats;

/* path_base, edge_base: what is added to the stream's numbers. */
struct stats *stats_create(sqlite3 *db, int64_t path_base, int64_t edge_base, struct pt_error *e);
void stats_destroy(struct stats *s);

/* The next path's definition; the stream's numbers, in order. */
int stats_path(struct stats *s, const struct ptr_path *path, struct pt_error *e);
void stats_edge(struct stats *s);

/* A run. id: the database's. */
int stats_run(struct stats *s, int64_t id, uint32_t path, uint32_t repeats, struct pt_error *e);
/* insns_timed instructions of the path took so many cycles. */
void stats_timed(struct stats *s, uint32_t path, uint64_t insns_timed, double cycles);

uint32_t stats_path_edges(const struct stats *s, uint32_t path);
uint64_t stats_path_insns(const struct stats *s, uint32_t path); /* the tail's too */
uint32_t stats_path_not_taken(const struct stats *s, uint32_t path);

/* Fills the tables; path_edge must have the paths. */
int stats_finish(struct stats *s, struct pt_error *e);

#endif
