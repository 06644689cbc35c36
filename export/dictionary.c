/* dictionary.c - see dictionary.h. */
#include "export/dictionary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/db.h"
#include "export/digits.h"

enum { PAIRS = 1 << 22 }; /* for a chunk table in memory at a time */

struct path {
	uint64_t runs, repeats, insn_timed;
	double cycles;
	uint64_t insns, start_ip, end_ip;
	uint32_t chunk; /* the last one that has it, + 1 */
	uint32_t tail_insns, not_taken;
	uint32_t edges;
	uint32_t interrupts; /* see struct dictionary_path */
	uint32_t machine;    /* that took it first, 0 unknown */
	uint32_t first_insns;
	uint8_t first_kind, last_kind;
};

struct edge {
	struct ptr_edge def;
	uint64_t taken, insns, tail_insns, insn_timed;
	double cycles;
	uint32_t chunk; /* the last one that has it, + 1 */
};

/* The rows of a chunk table, gathered to be sorted. */
struct pairs {
	sqlite3_stmt *insert;
	int64_t *ids;
	size_t count, room;
};

struct dictionary {
	sqlite3 *db;
	struct dictionary_bases bases;
	sqlite3_stmt *insert_path, *insert_edge, *insert_path_edge;
	struct path *paths; /* number n at n */
	struct edge *edges;
	size_t path_count, path_room, edge_count, edge_room;
	uint32_t last_symbol; /* that any edge has */
	struct pairs path_chunks, edge_chunks;
};

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for the dictionary");
}

struct dictionary *dictionary_create(sqlite3 *db, const struct dictionary_bases *bases, struct pt_error *e)
{
	struct dictionary *d = calloc(1, sizeof *d);

	if (!d) {
		no_memory(e);
		return NULL;
	}
	d->db = db;
	d->bases = *bases;
	if (!(d->insert_path = db_insert(db, "path", 12, e)) ||
	    !(d->insert_edge = db_insert(db, "edge", 12, e)) ||
	    !(d->insert_path_edge = db_insert(db, "path_edge", 3, e)) ||
	    !(d->path_chunks.insert = db_insert(db, "path_chunk", 1, e)) ||
	    !(d->edge_chunks.insert = db_insert(db, "edge_chunk", 1, e))) {
		dictionary_destroy(d);
		return NULL;
	}
	return d;
}

void dictionary_destroy(struct dictionary *d)
{
	if (!d)
		return;
	sqlite3_finalize(d->insert_path);
	sqlite3_finalize(d->insert_edge);
	sqlite3_finalize(d->insert_path_edge);
	sqlite3_finalize(d->path_chunks.insert);
	sqlite3_finalize(d->edge_chunks.insert);
	free(d->path_chunks.ids);
	free(d->edge_chunks.ids);
	free(d->paths);
	free(d->edges);
	free(d);
}

/* ---- Chunk tables ------------------------------------------------------------------------------------- */

/* By the lowest byte first; ids are not negative. */
static int sort(struct pairs *p, struct pt_error *e)
{
	int64_t *from = p->ids, *to = malloc((p->count + 1) * sizeof *to), *tmp, all = 0;

	if (!to)
		return no_memory(e);
	for (size_t i = 0; i < p->count; i++)
		all |= p->ids[i];
	for (unsigned shift = 0; shift < 63 && all >> shift; shift += 11) {
		size_t at[2048] = {0}, sum = 0;

		for (size_t i = 0; i < p->count; i++)
			at[from[i] >> shift & 2047]++;
		for (int i = 0; i < 2048; i++) {
			size_t n = at[i];

			at[i] = sum;
			sum += n;
		}
		for (size_t i = 0; i < p->count; i++)
			to[at[from[i] >> shift & 2047]++] = from[i];
		tmp = from;
		from = to;
		to = tmp;
	}
	if (from != p->ids)
		memcpy(p->ids, from, p->count * sizeof *from);
	free(from != p->ids ? from : to);
	return 0;
}

/* Sorted, so that the table grows at its end; only traces of a hundred million runs take more than one turn. */
static int write_pairs(struct pairs *p, struct pt_error *e)
{
	if (sort(p, e) < 0)
		return -1;
	for (size_t i = 0; i < p->count; i++) {
		sqlite3_bind_int64(p->insert, 1, p->ids[i]);
		if (db_run(p->insert, e) < 0)
			return -1;
	}
	p->count = 0;
	return 0;
}

static int add_pair(struct pairs *p, int64_t id, int64_t chunk, struct pt_error *e)
{
	if (p->count == PAIRS && write_pairs(p, e) < 0)
		return -1;
	if (p->count == p->room) {
		size_t room = p->room ? p->room * 2 : 4096;
		int64_t *ids = realloc(p->ids, room * sizeof *ids);

		if (!ids)
			return no_memory(e);
		p->ids = ids;
		p->room = room;
	}
	p->ids[p->count++] = id << DICTIONARY_CHUNK_BITS | chunk;
	return 0;
}

/* ---- Definitions -------------------------------------------------------------------------------------- */

int dictionary_edge(struct dictionary *d, const struct ptr_edge *edge, struct pt_error *e)
{
	if (d->edge_count + 1 >= d->edge_room) {
		size_t room = d->edge_room ? d->edge_room * 2 : 1024;
		struct edge *edges = realloc(d->edges, room * sizeof *edges);

		if (!edges)
			return no_memory(e);
		d->edges = edges;
		d->edge_room = room;
	}
	d->edges[++d->edge_count] = (struct edge){.def = *edge};
	if (edge->from_symbol > d->last_symbol)
		d->last_symbol = edge->from_symbol;
	if (edge->to_symbol > d->last_symbol)
		d->last_symbol = edge->to_symbol;
	return 0;
}

int dictionary_path(struct dictionary *d, const struct ptr_path *path, struct pt_error *e)
{
	int64_t id = d->bases.path + (int64_t)++d->path_count;
	struct path *p;

	/* Two digits of run_group. */
	if (id >= DIGITS_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "too many paths for one database");
	if (d->path_count >= d->path_room) {
		size_t room = d->path_room ? d->path_room * 2 : 1024;

		p = realloc(d->paths, room * sizeof *p);
		if (!p)
			return no_memory(e);
		d->paths = p;
		d->path_room = room;
	}
	p = &d->paths[d->path_count];
	*p = (struct path){.insns = path->tail_insns,
			   .start_ip = path->start_ip,
			   .end_ip = path->end_ip,
			   .tail_insns = path->tail_insns,
			   .not_taken = path->not_taken,
			   .edges = path->count,
			   .first_insns = path->count ? path->insns[0] : 0};
	for (uint32_t i = 0; i < path->count; i++) {
		struct edge *edge = &d->edges[path->edge[i]];
		uint32_t chunk = (uint32_t)(id / DICTIONARY_CHUNK_PATHS);

		p->insns += path->insns[i];
		p->last_kind = (uint8_t)edge->def.kind;
		if (!i)
			p->first_kind = p->last_kind;
		if (edge->def.kind == PTR_ASYNC && edge->def.to)
			p->interrupts |= 1u << i;
		sqlite3_bind_int64(d->insert_path_edge, 1, id * PTR_PATH_EDGES + i);
		sqlite3_bind_int64(d->insert_path_edge, 2, d->bases.edge + path->edge[i]);
		sqlite3_bind_int64(d->insert_path_edge, 3, path->insns[i]);
		if (db_run(d->insert_path_edge, e) < 0)
			return -1;
		if (edge->chunk == chunk + 1)
			continue;
		edge->chunk = chunk + 1;
		if (add_pair(&d->edge_chunks, d->bases.edge + path->edge[i], chunk, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- Sums --------------------------------------------------------------------------------------------- */

int dictionary_run(struct dictionary *d, int64_t id, uint32_t path, uint32_t repeats, uint32_t machine,
		   struct pt_error *e)
{
	struct path *p = &d->paths[path];
	int64_t chunk = id / DICTIONARY_CHUNK_RUNS;

	p->runs++;
	p->repeats += repeats;
	if (!p->machine)
		p->machine = machine;
	if (p->chunk == (uint32_t)chunk + 1)
		return 0;
	if (chunk >> DICTIONARY_CHUNK_BITS)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "too many runs for one database");
	p->chunk = (uint32_t)chunk + 1;
	return add_pair(&d->path_chunks, d->bases.path + path, chunk, e);
}

void dictionary_timed(struct dictionary *d, uint32_t path, uint64_t insns_timed, double cycles)
{
	d->paths[path].insn_timed += insns_timed;
	d->paths[path].cycles += cycles;
}

struct dictionary_path dictionary_path_of(const struct dictionary *d, uint32_t path)
{
	const struct path *p = &d->paths[path];

	return (struct dictionary_path){.insns = p->insns,
					.not_taken = p->not_taken,
					.edges = p->edges,
					.interrupts = p->interrupts,
					.first_insns = p->first_insns,
					.first_kind = p->first_kind,
					.last_kind = p->last_kind};
}

/* ---- Tables ------------------------------------------------------------------------------------------- */

static void bind_timed(sqlite3_stmt *s, int at, uint64_t insn_timed, double cycles)
{
	db_bind(s, at, insn_timed, (int64_t)insn_timed);
	if (insn_timed)
		sqlite3_bind_double(s, at + 1, cycles);
	else
		sqlite3_bind_null(s, at + 1);
}

static int insert_paths(struct dictionary *d, struct pt_error *e)
{
	sqlite3_stmt *s = d->insert_path;

	for (size_t i = 1; i <= d->path_count; i++) {
		const struct path *p = &d->paths[i];

		sqlite3_bind_int64(s, 1, d->bases.path + (int64_t)i);
		sqlite3_bind_int64(s, 2, d->bases.trace);
		sqlite3_bind_int64(s, 3, p->edges);
		sqlite3_bind_int64(s, 4, (int64_t)p->insns);
		sqlite3_bind_int64(s, 5, p->not_taken);
		sqlite3_bind_int64(s, 6, p->tail_insns);
		db_bind(s, 7, p->start_ip, (int64_t)p->start_ip);
		db_bind(s, 8, p->end_ip, (int64_t)p->end_ip);
		sqlite3_bind_int64(s, 9, (int64_t)p->runs);
		sqlite3_bind_int64(s, 10, (int64_t)p->repeats);
		bind_timed(s, 11, p->insn_timed, p->cycles);
		if (db_run(s, e) < 0)
			return -1;
	}
	return 0;
}

/* What the paths consist of is read back from the database: in memory it would be the biggest part. */
static int sum_edges(struct dictionary *d, uint32_t *symbol_machines, struct pt_error *e)
{
	sqlite3_stmt *select;
	int result;

	if (sqlite3_prepare_v2(d->db, "SELECT id, edge, insn_count FROM path_edge WHERE id >= ? ORDER BY id",
			       -1, &select, NULL) != SQLITE_OK)
		return db_fail_main(d->db, e);
	sqlite3_bind_int64(select, 1, (d->bases.path + 1) * PTR_PATH_EDGES);
	while ((result = sqlite3_step(select)) == SQLITE_ROW) {
		int64_t id = sqlite3_column_int64(select, 0);
		const struct path *p = &d->paths[id / PTR_PATH_EDGES - d->bases.path];
		struct edge *edge = &d->edges[sqlite3_column_int64(select, 1) - d->bases.edge];
		uint64_t insns = (uint64_t)sqlite3_column_int64(select, 2);

		/* Both ends are in the machine whose path it is, but for those of the transitions between two. */
		if (p->machine && edge->def.kind != PTR_VMENTRY && edge->def.kind != PTR_VMEXIT) {
			symbol_machines[edge->def.from_symbol] = p->machine;
			symbol_machines[edge->def.to_symbol] = p->machine;
		}
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
	return result == SQLITE_DONE ? 0 : db_fail_main(d->db, e);
}

static int insert_edges(struct dictionary *d, struct pt_error *e)
{
	sqlite3_stmt *s = d->insert_edge;

	for (size_t i = 1; i <= d->edge_count; i++) {
		const struct edge *p = &d->edges[i];

		sqlite3_bind_int64(s, 1, d->bases.edge + (int64_t)i);
		sqlite3_bind_int64(s, 2, d->bases.trace);
		db_bind(s, 3, p->def.from, (int64_t)p->def.from);
		db_bind(s, 4, p->def.to, (int64_t)p->def.to);
		sqlite3_bind_int64(s, 5, p->def.kind);
		db_bind(s, 6, p->def.from_symbol, d->bases.symbol + p->def.from_symbol);
		db_bind(s, 7, p->def.to_symbol, d->bases.symbol + p->def.to_symbol);
		sqlite3_bind_int64(s, 8, (int64_t)p->taken);
		sqlite3_bind_int64(s, 9, (int64_t)p->insns);
		sqlite3_bind_int64(s, 10, (int64_t)p->tail_insns);
		bind_timed(s, 11, p->insn_timed, p->cycles);
		if (db_run(s, e) < 0)
			return -1;
	}
	return 0;
}

static int set_machines(struct dictionary *d, const uint32_t *symbol_machines, struct pt_error *e)
{
	sqlite3_stmt *st;
	char sql[256];
	int ret = 0;

	if (sqlite3_prepare_v2(d->db, "UPDATE symbol SET machine = ? WHERE id = ?", -1, &st, NULL) !=
	    SQLITE_OK)
		return db_fail_main(d->db, e);
	for (uint32_t i = 1; !ret && i <= d->last_symbol; i++) {
		if (!symbol_machines[i])
			continue;
		sqlite3_bind_int64(st, 1, d->bases.machine + symbol_machines[i]);
		sqlite3_bind_int64(st, 2, d->bases.symbol + i);
		ret = db_run(st, e);
	}
	sqlite3_finalize(st);
	snprintf(sql, sizeof sql,
		 "UPDATE dso SET machine = s.machine FROM (SELECT dso, min(machine) AS machine FROM symbol"
		 " WHERE trace = %lld AND machine IS NOT NULL GROUP BY dso) s WHERE dso.id = s.dso",
		 (long long)d->bases.trace);
	return ret < 0 ? ret : db_exec(d->db, sql, e);
}

int dictionary_finish(struct dictionary *d, struct pt_error *e)
{
	uint32_t *symbol_machines = calloc((size_t)d->last_symbol + 1, sizeof *symbol_machines);
	int ret;

	if (!symbol_machines)
		return no_memory(e);
	ret = write_pairs(&d->path_chunks, e) < 0 || write_pairs(&d->edge_chunks, e) < 0 ||
		      insert_paths(d, e) < 0 || sum_edges(d, symbol_machines, e) < 0 ||
		      insert_edges(d, e) < 0 || set_machines(d, symbol_machines, e) < 0
		  ? -1
		  : 0;
	free(symbol_machines);
	return ret;
}
