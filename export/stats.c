/* stats.c - see stats.h. */
#include "export/stats.h"

#include <stdlib.h>
#include <string.h>

#include "export/db.h"

enum { PAIRS = 1 << 22 }; /* of path and chunk in memory at a time */

struct path_sums {
	uint64_t runs, repeats, insn_timed;
	double cycles;
	uint64_t insns;
	uint32_t chunk; /* the last one that has it, + 1 */
	uint32_t tail_insns, not_taken;
	uint8_t edges;
};

struct edge_sums {
	uint64_t taken, insns, tail_insns, insn_timed;
	double cycles;
};

struct stats {
	sqlite3 *db;
	int64_t path_base, edge_base;
	sqlite3_stmt *insert_path, *insert_edge, *insert_chunk;
	struct path_sums *paths; /* number n at n */
	size_t path_count, path_room;
	size_t edge_count;
	int64_t *pairs;
	size_t pair_count, pair_room;
	bool any_cycles;
};

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for the sums over runs");
}

struct stats *stats_create(sqlite3 *db, int64_t path_base, int64_t edge_base, struct pt_error *e)
{
	struct stats *s = calloc(1, sizeof *s);

	if (!s) {
		no_memory(e);
		return NULL;
	}
	s->db = db;
	s->path_base = path_base;
	s->edge_base = edge_base;
	s->insert_path = db_insert(db, "path_stat", 5, e);
	s->insert_edge = s->insert_path ? db_insert(db, "edge_stat", 6, e) : NULL;
	s->insert_chunk = s->insert_edge ? db_insert(db, "path_chunk", 1, e) : NULL;
	if (!s->insert_chunk) {
		stats_destroy(s);
		return NULL;
	}
	return s;
}

void stats_destroy(struct stats *s)
{
	if (!s)
		return;
	sqlite3_finalize(s->insert_path);
	sqlite3_finalize(s->insert_edge);
	sqlite3_finalize(s->insert_chunk);
	free(s->paths);
	free(s->pairs);
	free(s);
}

int stats_path(struct stats *s, const struct ptr_path *path, struct pt_error *e)
{
	struct path_sums *p;

	if (s->path_count + 1 >= s->path_room) {
		size_t room = s->path_room ? s->path_room * 2 : 1024;

		p = realloc(s->paths, room * sizeof *p);
		if (!p)
			return no_memory(e);
		s->paths = p;
		s->path_room = room;
	}
	p = &s->paths[++s->path_count];
	*p = (struct path_sums){.insns = path->tail_insns,
				.tail_insns = path->tail_insns,
				.not_taken = path->not_taken,
				.edges = (uint8_t)path->count};
	for (uint32_t i = 0; i < path->count; i++)
		p->insns += path->insns[i];
	return 0;
}

void stats_edge(struct stats *s)
{
	s->edge_count++;
}

uint32_t stats_path_edges(const struct stats *s, uint32_t path)
{
	return s->paths[path].edges;
}

uint64_t stats_path_insns(const struct stats *s, uint32_t path)
{
	return s->paths[path].insns;
}

uint32_t stats_path_not_taken(const struct stats *s, uint32_t path)
{
	return s->paths[path].not_taken;
}

/* ---- Pairs of path and chunk -------------------------------------------------------------------------- */

static int compare_pairs(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorted, so that the table grows at its end; only traces of many million runs take more than one turn. */
static int write_pairs(struct stats *s, struct pt_error *e)
{
	qsort(s->pairs, s->pair_count, sizeof *s->pairs, compare_pairs);
	for (size_t i = 0; i < s->pair_count; i++) {
		sqlite3_bind_int64(s->insert_chunk, 1, s->pairs[i]);
		if (db_run(s->insert_chunk, e) < 0)
			return -1;
	}
	s->pair_count = 0;
	return 0;
}

static int add_pair(struct stats *s, uint32_t path, int64_t chunk, struct pt_error *e)
{
	if (s->pair_count == PAIRS && write_pairs(s, e) < 0)
		return -1;
	if (s->pair_count == s->pair_room) {
		size_t room = s->pair_room ? s->pair_room * 2 : 4096;
		int64_t *pairs = realloc(s->pairs, room * sizeof *pairs);

		if (!pairs)
			return no_memory(e);
		s->pairs = pairs;
		s->pair_room = room;
	}
	s->pairs[s->pair_count++] = (s->path_base + path) << STATS_CHUNK_BITS | chunk;
	return 0;
}

/* ---- Sums --------------------------------------------------------------------------------------------- */

int stats_run(struct stats *s, int64_t id, uint32_t path, uint32_t repeats, struct pt_error *e)
{
	struct path_sums *p = &s->paths[path];
	uint32_t chunk = (uint32_t)(id / STATS_CHUNK_RUNS);

	p->runs++;
	p->repeats += repeats;
	if (p->chunk == chunk + 1)
		return 0;
	p->chunk = chunk + 1;
	return add_pair(s, path, chunk, e);
}

void stats_timed(struct stats *s, uint32_t path, uint64_t insns_timed, double cycles)
{
	s->paths[path].insn_timed += insns_timed;
	s->paths[path].cycles += cycles;
	s->any_cycles = true;
}

static void bind_timed(sqlite3_stmt *statement, int at, uint64_t insn_timed, double cycles)
{
	if (insn_timed) {
		sqlite3_bind_int64(statement, at, (int64_t)insn_timed);
		sqlite3_bind_double(statement, at + 1, cycles);
	} else {
		sqlite3_bind_null(statement, at);
		sqlite3_bind_null(statement, at + 1);
	}
}

static int insert_paths(struct stats *s, struct pt_error *e)
{
	for (size_t i = 1; i <= s->path_count; i++) {
		const struct path_sums *p = &s->paths[i];

		if (!p->runs)
			continue;
		sqlite3_bind_int64(s->insert_path, 1, s->path_base + (int64_t)i);
		sqlite3_bind_int64(s->insert_path, 2, (int64_t)p->runs);
		sqlite3_bind_int64(s->insert_path, 3, (int64_t)p->repeats);
		bind_timed(s->insert_path, 4, p->insn_timed, p->cycles);
		if (db_run(s->insert_path, e) < 0)
			return -1;
	}
	return 0;
}

/* Reads which edges the paths have back from the database: in memory they would be its biggest part. */
static int sum_edges(struct stats *s, struct edge_sums *edges, struct pt_error *e)
{
	sqlite3_stmt *select;
	int result;

	if (sqlite3_prepare_v2(s->db, "SELECT id, edge, insn_count FROM path_edge WHERE id >= ? ORDER BY id",
			       -1, &select, NULL) != SQLITE_OK)
		return db_fail_main(s->db, e);
	sqlite3_bind_int64(select, 1, (s->path_base + 1) * PTR_PATH_EDGES);
	while ((result = sqlite3_step(select)) == SQLITE_ROW) {
		int64_t id = sqlite3_column_int64(select, 0);
		const struct path_sums *p = &s->paths[id / PTR_PATH_EDGES - s->path_base];
		struct edge_sums *edge = &edges[sqlite3_column_int64(select, 1) - s->edge_base];
		uint64_t insns = (uint64_t)sqlite3_column_int64(select, 2);

		edge->taken += p->repeats;
		edge->insns += p->repeats * insns;
		if (id % PTR_PATH_EDGES == p->edges - 1)
			edge->tail_insns += p->repeats * p->tail_insns;
		if (p->insn_timed) {
			double share = (double)insns / (double)p->insns;

			edge->insn_timed += (uint64_t)((double)p->insn_timed * share + 0.5);
			edge->cycles += p->cycles * share;
		}
	}
	sqlite3_finalize(select);
	return result == SQLITE_DONE ? 0 : db_fail_main(s->db, e);
}

static int insert_edges(struct stats *s, const struct edge_sums *edges, struct pt_error *e)
{
	for (size_t i = 1; i <= s->edge_count; i++) {
		const struct edge_sums *p = &edges[i];

		if (!p->taken)
			continue;
		sqlite3_bind_int64(s->insert_edge, 1, s->edge_base + (int64_t)i);
		sqlite3_bind_int64(s->insert_edge, 2, (int64_t)p->taken);
		sqlite3_bind_int64(s->insert_edge, 3, (int64_t)p->insns);
		sqlite3_bind_int64(s->insert_edge, 4, (int64_t)p->tail_insns);
		bind_timed(s->insert_edge, 5, p->insn_timed, p->cycles);
		if (db_run(s->insert_edge, e) < 0)
			return -1;
	}
	return 0;
}

int stats_finish(struct stats *s, struct pt_error *e)
{
	struct edge_sums *edges;
	int ret;

	if (write_pairs(s, e) < 0 || insert_paths(s, e) < 0)
		return -1;
	edges = calloc(s->edge_count + 1, sizeof *edges);
	if (!edges)
		return no_memory(e);
	ret = sum_edges(s, edges, e) < 0 ? -1 : insert_edges(s, edges, e);
	free(edges);
	return ret;
}
