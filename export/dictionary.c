/* dictionary.c - see dictionary.h. */
#include "export/dictionary.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/code_rows.h"
#include "export/inserter.h"
#include "export/digits.h"
#include "export/paged.h"
#include "export/scratch.h"
#include "schema/array.h"

enum {
	CHUNK_RUNS = 4096,    /* runs in a chunk of path_chunk */
	CHUNK_PATHS = 256,    /* paths in a chunk of edge_chunk */
	CHUNK_BITS = 24,      /* of a chunk's number */
	PAIRS = 3 << 20,      /* of a chunk table in memory at a time */
	CHUNKS_ROW = 1024,    /* chunks in a row of a chunk table, at most: as many as the table number has */
	STEPS_HELD = 1 << 14, /* edges of paths in memory at a time */
	PAGES = 1 << 12,      /* of paths, and of edges, in memory: 262,144 of each, 50 MB in all */
	TIERS = 3
};

/* Ids up to that take one byte and two in the texts of runs; the others are not below them. */
static const size_t tier_ends[TIERS] = {126, 2046, SIZE_MAX};

/* An edge of a path, in the scratch file. */
struct step {
	uint32_t edge, insns;
};

struct path {
	uint64_t runs, repeats, insn_timed;
	double cycles;
	uint64_t insns, start_ip, end_ip;
	uint32_t chunk; /* the last chunk of runs that has it, + 1 */
	uint32_t tail_insns, not_taken;
	uint32_t edges;
	uint32_t interrupts; /* see struct dictionary_path */
	uint32_t machine;    /* the one that took it first, 0 unknown */
	uint32_t first_insns;
	uint32_t code_version;
	uint32_t id; /* from dictionary_rank() on: less the base */
	/* How many instructions the stretches of cycles that end with it have: what most have, if there
	 * is such a majority. votes: how many more have that than have others. */
	uint32_t stretch_insns, stretch_votes;
	uint8_t first_kind, last_kind;
	uint8_t tier;
};

struct edge {
	struct ptr_edge def;
	uint64_t taken, insns, tail_insns, insn_timed;
	double cycles;
	uint32_t chunk; /* the last chunk of paths that has it, + 1 */
	/* Its ends in that version of the code (code_rows.h). 0: not looked for yet. */
	uint32_t code_version, from_insn, to_insn;
};

/*
 * Which chunks an edge or path is in: pairs id << CHUNK_BITS | chunk, gathered to be sorted. At the
 * end the first chunks of each go into columns of its own row, and what does not fit there into rows
 * of the chunk table.
 */
struct pairs {
	struct insert *insert; /* into the chunk table */
	int64_t *ids;
	size_t count, room;
	size_t at; /* when all have come and are sorted: the next pair for a column */
};

struct dictionary {
	struct trace_bases bases;
	struct insert *insert_path, *insert_edge, *insert_version, *set_symbol, *set_dsos;
	struct paged paths, edges; /* number n at n */
	size_t path_count, edge_count;
	/* One of the two could not be read or written: what it would have had is counted nowhere. */
	bool failed;
	struct pt_error error;
	struct path no_path;
	struct edge no_edge;
	uint32_t last_symbol; /* of all edges */
	struct pairs path_chunks, edge_chunks;
	/* The edges of all paths, one after another: in memory they would be the biggest part. */
	int scratch;
	struct step steps[STEPS_HELD];
	size_t held, at;  /* in steps; the next one to be read */
	bool in_file;	  /* steps are read from there */
	uint64_t written; /* steps written to the file, before those held; when reading: read from it */
};

static const char set_symbol_sql[] = "UPDATE symbol SET machine = ? WHERE id = ?";
static const char set_dsos_sql[] =
    "UPDATE dso SET machine = s.machine FROM (SELECT dso, min(machine) AS machine FROM symbol"
    " WHERE trace = ? AND machine IS NOT NULL GROUP BY dso) s WHERE dso.id = s.dso";

struct dictionary *dictionary_create(struct inserter *inserter, const int scratch[DICTIONARY_SCRATCHES],
				     const struct trace_bases *bases, struct pt_error *e)
{
	struct dictionary *d = calloc(1, sizeof *d);

	if (!d) {
		pt_fail_no_memory(e, "the dictionary");
		return NULL;
	}
	d->scratch = scratch[0];
	d->bases = *bases;
	if (!(d->insert_path = insert_create(inserter, "path", 20, e)) ||
	    !(d->insert_edge = insert_create(inserter, "edge", 14, e)) ||
	    !(d->insert_version = insert_create(inserter, "path_version", 3, e)) ||
	    !(d->set_symbol = insert_create_sql(inserter, set_symbol_sql, 2, e)) ||
	    !(d->set_dsos = insert_create_sql(inserter, set_dsos_sql, 1, e)) ||
	    !(d->path_chunks.insert = insert_create(inserter, "path_chunk", 2, e)) ||
	    !(d->edge_chunks.insert = insert_create(inserter, "edge_chunk", 2, e)) ||
	    paged_init(&d->paths, scratch[1], sizeof(struct path), PAGES, e) < 0 ||
	    paged_init(&d->edges, scratch[2], sizeof(struct edge), PAGES, e) < 0) {
		dictionary_destroy(d);
		return NULL;
	}
	return d;
}

void dictionary_destroy(struct dictionary *d)
{
	if (!d)
		return;
	insert_destroy(d->insert_path);
	insert_destroy(d->insert_edge);
	insert_destroy(d->insert_version);
	insert_destroy(d->set_symbol);
	insert_destroy(d->set_dsos);
	insert_destroy(d->path_chunks.insert);
	insert_destroy(d->edge_chunks.insert);
	free(d->path_chunks.ids);
	free(d->edge_chunks.ids);
	paged_deinit(&d->paths);
	paged_deinit(&d->edges);
	free(d);
}

/* A record of the paths or the edges, to be read and changed until the next one of these is asked for. */
static void *record_at(struct dictionary *d, struct paged *of, size_t number, void *instead)
{
	struct pt_error e;
	void *record = paged_at(of, number, &e);

	if (record)
		return record;
	d->error = d->failed ? d->error : e;
	d->failed = true;
	return instead;
}

static struct path *path_at(struct dictionary *d, size_t number)
{
	return record_at(d, &d->paths, number, &d->no_path);
}

static struct edge *edge_at(struct dictionary *d, size_t number)
{
	return record_at(d, &d->edges, number, &d->no_edge);
}

/* 0, or -1 when something could not be read or written since the beginning. */
static int check_failed(const struct dictionary *d, struct pt_error *e)
{
	if (d->failed)
		*e = d->error;
	return d->failed ? -1 : 0;
}

/* ---- Chunk tables ------------------------------------------------------------------------------------- */

/* A radix sort by 11 bits at a time, the lowest first; ids are not negative. */
static int sort(struct pairs *p, struct pt_error *e)
{
	int64_t *from = p->ids, *to = malloc((p->count + 1) * sizeof *to), *tmp, all = 0;

	if (!to)
		return pt_fail_no_memory(e, "the dictionary");
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

/* How many of the pairs from there on make one text and the chunk before it. */
static uint32_t count_chunks(const struct pairs *p, size_t at)
{
	uint32_t n;

	for (n = 1; at + n < p->count && n < CHUNKS_ROW &&
		    p->ids[at + n] >> CHUNK_BITS == p->ids[at] >> CHUNK_BITS &&
		    p->ids[at + n] - p->ids[at] < 1 << DIGITS_BITS;
	     n++)
		;
	return n;
}

/* The text of the chunks after the first, as differences to it. */
static void bind_more(const struct pairs *p, size_t at, uint32_t n, struct insert *s, int column, char *text)
{
	uint32_t offsets[CHUNKS_ROW];

	for (uint32_t i = 1; i < n; i++)
		offsets[i - 1] = (uint32_t)(p->ids[at + i] - p->ids[at]);
	digits_bind_array(offsets, n - 1, 0, s, column, text);
}

static int write_chunks(struct pairs *p, size_t at, uint32_t n, struct pt_error *e)
{
	char text[CHUNKS_ROW * DIGITS_BYTES];

	insert_int(p->insert, 1, p->ids[at]);
	bind_more(p, at, n, p->insert, 2, text);
	return insert_run(p->insert, e);
}

/* Sorted, so that the table grows at its end. Only traces of some eighty million runs have PAIRS. */
static int write_pairs(struct pairs *p, struct pt_error *e)
{
	uint32_t n;

	if (sort(p, e) < 0)
		return -1;
	for (size_t i = 0; i < p->count; i += n) {
		n = count_chunks(p, i);
		if (write_chunks(p, i, n, e) < 0)
			return -1;
	}
	p->count = 0;
	return 0;
}

/* The columns chunk and more of the row with that id; what does not fit becomes rows of the chunk
 * table. Rows come in the order of ids. text: room for CHUNKS_ROW digits. */
static int bind_chunks(struct pairs *p, int64_t id, struct insert *s, int column, char *text,
		       struct pt_error *e)
{
	uint32_t n;

	if (p->at == p->count || p->ids[p->at] >> CHUNK_BITS != id)
		return 0;
	n = count_chunks(p, p->at);
	insert_int(s, column, p->ids[p->at] & ((1 << CHUNK_BITS) - 1));
	bind_more(p, p->at, n, s, column + 1, text);
	for (p->at += n; p->at < p->count && p->ids[p->at] >> CHUNK_BITS == id; p->at += n) {
		n = count_chunks(p, p->at);
		if (write_chunks(p, p->at, n, e) < 0)
			return -1;
	}
	return 0;
}

static int add_pair(struct pairs *p, int64_t id, int64_t chunk, struct pt_error *e)
{
	if (p->count == PAIRS && write_pairs(p, e) < 0)
		return -1;
	if (pt_array_grow(&p->ids, p->count, &p->room, e))
		return -1;
	p->ids[p->count++] = id << CHUNK_BITS | chunk;
	return 0;
}

/* ---- The edges of paths -------------------------------------------------------------------------------- */

static int write_steps(struct dictionary *d, struct pt_error *e)
{
	if (scratch_write(d->scratch, d->steps, d->held * sizeof *d->steps, d->written * sizeof *d->steps,
			  e) < 0)
		return -1;
	d->written += d->held;
	d->held = 0;
	return 0;
}

static int read_steps(struct dictionary *d, struct pt_error *e)
{
	size_t bytes;

	if (scratch_read(d->scratch, d->steps, sizeof d->steps, d->written * sizeof *d->steps, &bytes, e) < 0)
		return -1;
	d->held = bytes / sizeof *d->steps;
	d->written += d->held;
	d->at = 0;
	return d->held ? 0 : pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "a scratch file was cut");
}

static int add_step(struct dictionary *d, uint32_t edge, uint32_t insns, struct pt_error *e)
{
	if (d->held == STEPS_HELD && write_steps(d, e) < 0)
		return -1;
	d->steps[d->held++] = (struct step){.edge = edge, .insns = insns};
	return 0;
}

/* To the first step. All are known; what is held need not go through the file when it is all. */
static int rewind_steps(struct dictionary *d, struct pt_error *e)
{
	if (d->written && !d->in_file) {
		if (write_steps(d, e) < 0)
			return -1;
		d->in_file = true;
	}
	if (d->in_file)
		d->written = d->held = 0;
	d->at = 0;
	return 0;
}

/* NULL: failed. */
static const struct step *next_step(struct dictionary *d, struct pt_error *e)
{
	if (d->at == d->held && read_steps(d, e) < 0)
		return NULL;
	return &d->steps[d->at++];
}

static int skip_steps(struct dictionary *d, uint32_t n, struct pt_error *e)
{
	while (n--)
		if (!next_step(d, e))
			return -1;
	return 0;
}

/* ---- Definitions -------------------------------------------------------------------------------------- */

int dictionary_edge(struct dictionary *d, const struct ptr_edge *edge, struct pt_error *e)
{
	/* A path has two digits for it. */
	if (d->bases.edge + (int64_t)++d->edge_count >= DIGITS_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "too many edges for one database");
	*edge_at(d, d->edge_count) = (struct edge){.def = *edge};
	if (edge->from_symbol > d->last_symbol)
		d->last_symbol = edge->from_symbol;
	if (edge->to_symbol > d->last_symbol)
		d->last_symbol = edge->to_symbol;
	return check_failed(d, e);
}

/* The i-th edge of the path p. */
static int add_edge(struct dictionary *d, struct path *p, uint32_t i, const struct ptr_path *path,
		    struct pt_error *e)
{
	const struct edge *edge = edge_at(d, path->edge[i]);

	p->insns += path->insns[i];
	p->last_kind = (uint8_t)edge->def.kind;
	if (!i)
		p->first_kind = p->last_kind;
	if (edge->def.kind == PTR_ASYNC && edge->def.to)
		p->interrupts |= 1u << i;
	return add_step(d, path->edge[i], path->insns[i], e);
}

int dictionary_path(struct dictionary *d, const struct ptr_path *path, struct pt_error *e)
{
	int64_t id = d->bases.path + (int64_t)++d->path_count;
	struct path *p;

	/* A run has two digits for it. */
	if (id >= DIGITS_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "too many paths for one database");
	p = path_at(d, d->path_count);
	*p = (struct path){.insns = path->tail_insns,
			   .start_ip = path->start_ip,
			   .end_ip = path->end_ip,
			   .tail_insns = path->tail_insns,
			   .not_taken = path->not_taken,
			   .code_version = path->code_version,
			   .edges = path->count,
			   .first_insns = path->count ? path->insns[0] : 0};
	for (uint32_t i = 0; i < path->count; i++)
		if (add_edge(d, p, i, path, e) < 0)
			return -1;
	return check_failed(d, e);
}

/* ---- Sums --------------------------------------------------------------------------------------------- */

/* One more stretch ends with the path: Boyer and Moore's majority vote. */
static void vote(struct path *p, uint64_t stretch_insns)
{
	if (p->stretch_insns == stretch_insns) {
		p->stretch_votes += p->stretch_votes < UINT32_MAX;
	} else if (p->stretch_votes) {
		p->stretch_votes--;
	} else if (stretch_insns < DIGITS_MAX) {
		p->stretch_insns = (uint32_t)stretch_insns;
		p->stretch_votes = 1;
	}
}

void dictionary_run(struct dictionary *d, const struct ptr_run *run, uint32_t machine)
{
	struct path *p = path_at(d, run->path);

	p->runs++;
	p->repeats += run->repeats;
	if (!p->machine)
		p->machine = machine;
	if (run->cyc_count != PTR_UNKNOWN)
		vote(p, run->insn_count);
}

void dictionary_path_sum(struct dictionary *d, const struct ptr_path_sum *sum)
{
	struct path *p = path_at(d, sum->path);

	p->runs += sum->runs;
	p->repeats += sum->repeats;
	p->insn_timed += sum->insn_timed;
	p->cycles += sum->cycles;
	if (!p->machine)
		p->machine = sum->machine;
}

void dictionary_timed(struct dictionary *d, uint32_t path, uint64_t insns_timed, double cycles)
{
	struct path *p = path_at(d, path);

	p->insn_timed += insns_timed;
	p->cycles += cycles;
}

struct dictionary_path dictionary_path_of(struct dictionary *d, uint32_t path)
{
	const struct path *p = path_at(d, path);

	return (struct dictionary_path){.insns = p->insns,
					.not_taken = p->not_taken,
					.edges = p->edges,
					.interrupts = p->interrupts,
					.first_insns = p->first_insns,
					.first_kind = p->first_kind,
					.last_kind = p->last_kind};
}

/* ---- Ids of paths -------------------------------------------------------------------------------------- */

/* Within a tier as in the stream: paths of the same edges stay together, which edge_chunk is the shorter
 * for. */
static void number_tiers(struct dictionary *d)
{
	uint32_t id = 0;

	for (unsigned t = 0; t < TIERS; t++)
		for (size_t i = 1; i <= d->path_count; i++)
			if (path_at(d, i)->tier == t)
				path_at(d, i)->id = ++id;
}

int dictionary_rank(struct dictionary *d, struct pt_error *e)
{
	uint64_t *order = calloc(d->path_count + 1, sizeof *order);
	uint8_t t = 0;

	if (!order)
		return pt_fail_no_memory(e, "the dictionary");
	for (size_t i = 0; i < d->path_count; i++) {
		struct path *p = path_at(d, i + 1);
		uint64_t runs = p->runs;

		p->tier = TIERS - 1;
		/* The more runs the less; of equal ones as the numbers are, which are the low half. */
		order[i] = (uint64_t)(UINT32_MAX - (runs < UINT32_MAX ? runs : UINT32_MAX)) << 32 | (i + 1);
	}
	qsort(order, d->path_count, sizeof *order, pt_compare_u64);
	for (size_t i = 0; i < d->path_count && t < TIERS - 1; i++) {
		t += i == tier_ends[t];
		path_at(d, (uint32_t)order[i])->tier = t;
	}
	free(order);
	number_tiers(d);
	return check_failed(d, e);
}

int64_t dictionary_path_id(struct dictionary *d, uint32_t path)
{
	return d->bases.path + path_at(d, path)->id;
}

int dictionary_run_at(struct dictionary *d, uint32_t path, int64_t run, struct dictionary_place *ret,
		      struct pt_error *e)
{
	struct path *p = path_at(d, path);
	int64_t chunk = run / CHUNK_RUNS;

	ret->id = (uint32_t)(d->bases.path + p->id);
	ret->stretch_insns = p->stretch_insns;
	if (p->chunk == (uint32_t)chunk + 1)
		return 0;
	if (chunk >> CHUNK_BITS)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "too many runs for one database");
	p->chunk = (uint32_t)chunk + 1;
	return add_pair(&d->path_chunks, ret->id, chunk, e);
}

/* ---- Tables ------------------------------------------------------------------------------------------- */

static void bind_timed(struct insert *s, int at, uint64_t insn_timed, double cycles)
{
	insert_known(s, at, insn_timed, (int64_t)insn_timed);
	if (insn_timed)
		insert_double(s, at + 1, cycles);
}

/* The path's i-th edge was taken as often as the path. symbol_machines: to be filled, by symbols' numbers. */
static void sum_edge(struct dictionary *d, const struct path *p, uint32_t i, const struct step *step,
		     uint32_t *symbol_machines)
{
	struct edge *edge = edge_at(d, step->edge);

	/* Both ends are code of the machine whose path it is, but for transitions between host and guest. */
	if (p->machine && edge->def.kind != PTR_VMENTRY && edge->def.kind != PTR_VMEXIT) {
		symbol_machines[edge->def.from_symbol] = p->machine;
		symbol_machines[edge->def.to_symbol] = p->machine;
	}
	edge->taken += p->repeats;
	edge->insns += p->repeats * step->insns;
	if (i == p->edges - 1)
		edge->tail_insns += p->repeats * p->tail_insns;
	if (p->insn_timed) {
		double share = (double)step->insns / (double)p->insns;

		edge->insn_timed += (uint64_t)((double)p->insn_timed * share + 0.5);
		edge->cycles += p->cycles * share;
	}
}

/* The edges of a path as columns, with the texts that the statement binds. */
struct path_columns {
	uint32_t edges[PTR_PATH_EDGES], insns[PTR_PATH_EDGES], least;
	uint64_t first_from; /* the first edge's address */
	char text[4][PTR_PATH_EDGES * DIGITS_BYTES], more[CHUNKS_ROW * DIGITS_BYTES];
};

/* What counting a path's code needs to know of an edge. */
struct edge_ends {
	enum ptr_kind kind;
	uint64_t from;
	uint32_t from_insn, to_insn; /* in the path's version of the code */
};

static int ends_of(struct dictionary *d, uint32_t number, uint32_t code_version, struct code_rows *code,
		   struct edge_ends *ret, struct pt_error *e)
{
	struct edge *edge = edge_at(d, number);

	if (edge->code_version != code_version) {
		edge->code_version = code_version;
		if (code_rows_find(code, code_version, edge->def.from, &edge->from_insn, e) < 0 ||
		    code_rows_find(code, code_version, edge->def.to, &edge->to_insn, e) < 0)
			return -1;
	}
	*ret = (struct edge_ends){.kind = edge->def.kind,
				  .from = edge->def.from,
				  .from_insn = edge->from_insn,
				  .to_insn = edge->to_insn};
	return 0;
}

/* The path's step: straight code, from where the edge before it led (NULL: the path's start) up to its
 * own edge; or with no edge, the path's tail. */
static int count_step(const struct path *p, const struct edge_ends *before, const struct edge_ends *edge,
		      uint64_t insns, struct code_rows *code, struct pt_error *e)
{
	uint64_t start = p->start_ip ? p->start_ip : edge ? edge->from : 0;
	struct code_stretch s = {.insns = (uint32_t)insns, .times = p->repeats, .machine = p->machine};

	if (before)
		s.first = before->to_insn;
	else if (code_rows_find(code, p->code_version, start, &s.first, e) < 0)
		return -1;
	/* An interrupted instruction was not executed. */
	if (edge && insns && edge->kind != PTR_ASYNC && edge->kind != PTR_VMEXIT &&
	    edge->kind != PTR_TX_ABORT && edge->kind != PTR_TRACE_END)
		s.last = edge->from_insn;
	if (p->insn_timed) {
		s.timed = (double)p->insn_timed / (double)p->insns;
		s.cycles = p->cycles / (double)p->insns;
	}
	return code_rows_ran(code, &s, e);
}

/* The edge is in a path of that chunk. */
static int note_chunk(struct dictionary *d, uint32_t edge, uint32_t chunk, struct pt_error *e)
{
	struct edge *p = edge_at(d, edge);

	if (p->chunk == chunk + 1)
		return 0;
	p->chunk = chunk + 1;
	return add_pair(&d->edge_chunks, d->bases.edge + edge, chunk, e);
}

/* Takes the path's steps. */
static int read_path(struct dictionary *d, const struct path *p, uint32_t *symbol_machines,
		     struct path_columns *ret, struct code_rows *code, struct pt_error *e)
{
	uint32_t chunk = (uint32_t)((d->bases.path + p->id) / CHUNK_PATHS);
	struct edge_ends edge, before = {0};

	ret->least = UINT32_MAX;
	ret->first_from = 0;
	for (uint32_t k = 0; k < p->edges; k++) {
		const struct step *step = next_step(d, e);

		if (!step || note_chunk(d, step->edge, chunk, e) < 0)
			return -1;
		sum_edge(d, p, k, step, symbol_machines);
		if (ends_of(d, step->edge, p->code_version, code, &edge, e) < 0 ||
		    count_step(p, k ? &before : NULL, &edge, step->insns, code, e) < 0)
			return -1;
		before = edge;
		ret->edges[k] = step->edge;
		ret->insns[k] = step->insns;
		if (step->edge < ret->least)
			ret->least = step->edge;
		if (!k)
			ret->first_from = edge.from;
	}
	if (count_step(p, p->edges ? &before : NULL, NULL, p->tail_insns, code, e) < 0)
		return -1;
	for (uint32_t k = 0; k < p->edges; k++)
		ret->edges[k] -= ret->least;
	return 0;
}

/* Of most paths it is 1, and needs no row. */
static int insert_version(struct dictionary *d, int64_t path, uint32_t version, struct pt_error *e)
{
	insert_int(d->insert_version, 1, path);
	insert_int(d->insert_version, 2, d->bases.trace);
	insert_int(d->insert_version, 3, version);
	return insert_run(d->insert_version, e);
}

static int insert_path(struct dictionary *d, const struct path *p, int64_t id, struct path_columns *c,
		       struct pt_error *e)
{
	struct insert *s = d->insert_path;

	insert_int(s, 1, id);
	insert_int(s, 2, d->bases.trace);
	insert_int(s, 3, p->edges);
	insert_known(s, 4, p->edges, d->bases.edge + c->least - 1);
	/* Zeros only are a text, too: that it is never NULL makes the view branches faster. */
	digits_bind_always(c->edges, p->edges, 0, s, 5, c->text[0]);
	digits_bind_array(c->edges, p->edges, DIGITS_BITS, s, 6, c->text[1]);
	digits_bind_array(c->insns, p->edges, 0, s, 7, c->text[2]);
	digits_bind_array(c->insns, p->edges, DIGITS_BITS, s, 8, c->text[3]);
	insert_int(s, 9, (int64_t)p->insns);
	insert_int(s, 10, p->not_taken);
	insert_int(s, 11, p->tail_insns);
	if (p->edges)
		insert_known(s, 12, p->start_ip && c->first_from, (int64_t)(c->first_from - p->start_ip));
	else
		insert_known(s, 12, p->start_ip, (int64_t)p->start_ip);
	insert_known(s, 13, p->end_ip, (int64_t)p->end_ip);
	insert_int(s, 14, (int64_t)p->runs);
	insert_known(s, 15, p->repeats != p->runs, (int64_t)p->repeats);
	bind_timed(s, 16, p->insn_timed, p->cycles);
	insert_known(s, 18, p->stretch_insns != 0, p->stretch_insns);
	if (bind_chunks(&d->path_chunks, id, s, 19, c->more, e) < 0)
		return -1;
	if (insert_run(s, e) < 0)
		return -1;
	return p->code_version == 1 ? 0 : insert_version(d, id, p->code_version, e);
}

/* Those of a tier. */
static int insert_tier(struct dictionary *d, unsigned tier, uint32_t *symbol_machines, struct code_rows *code,
		       struct pt_error *e)
{
	struct path_columns columns;

	if (rewind_steps(d, e) < 0)
		return -1;
	for (size_t i = 1; i <= d->path_count; i++) {
		const struct path *p = path_at(d, i);

		if (p->tier != tier ? skip_steps(d, p->edges, e) < 0
				    : read_path(d, p, symbol_machines, &columns, code, e) < 0 ||
					  insert_path(d, p, d->bases.path + p->id, &columns, e) < 0)
			return -1;
	}
	return 0;
}

/* In the order of ids. */
static int insert_paths(struct dictionary *d, uint32_t *symbol_machines, struct code_rows *code,
			struct pt_error *e)
{
	for (unsigned t = 0; t < TIERS; t++)
		if (insert_tier(d, t, symbol_machines, code, e) < 0)
			return -1;
	return 0;
}

static int insert_edges(struct dictionary *d, struct pt_error *e)
{
	struct insert *s = d->insert_edge;

	for (size_t i = 1; i <= d->edge_count; i++) {
		const struct edge *p = edge_at(d, i);
		char more[CHUNKS_ROW * DIGITS_BYTES];

		insert_int(s, 1, d->bases.edge + (int64_t)i);
		insert_int(s, 2, d->bases.trace);
		insert_known(s, 3, p->def.from, (int64_t)p->def.from);
		insert_known(s, 4, p->def.to, (int64_t)p->def.to);
		insert_int(s, 5, p->def.kind + (p->def.ends_trace ? PTR_KIND_ENDS_TRACE : 0));
		insert_known(s, 6, p->def.from_symbol, d->bases.symbol + p->def.from_symbol);
		insert_known(s, 7, p->def.to_symbol, d->bases.symbol + p->def.to_symbol);
		insert_int(s, 8, (int64_t)p->taken);
		insert_int(s, 9, (int64_t)p->insns);
		insert_int(s, 10, (int64_t)p->tail_insns);
		bind_timed(s, 11, p->insn_timed, p->cycles);
		if (bind_chunks(&d->edge_chunks, d->bases.edge + (int64_t)i, s, 13, more, e) < 0)
			return -1;
		if (insert_run(s, e) < 0)
			return -1;
	}
	return 0;
}

static int set_machines(struct dictionary *d, const uint32_t *symbol_machines, struct pt_error *e)
{
	for (uint32_t i = 1; i <= d->last_symbol; i++) {
		if (!symbol_machines[i])
			continue;
		insert_int(d->set_symbol, 1, d->bases.machine + symbol_machines[i]);
		insert_int(d->set_symbol, 2, d->bases.symbol + i);
		if (insert_run(d->set_symbol, e) < 0)
			return -1;
	}
	insert_int(d->set_dsos, 1, d->bases.trace);
	return insert_run(d->set_dsos, e);
}

int dictionary_finish(struct dictionary *d, struct code_rows *code, struct pt_error *e)
{
	uint32_t *symbol_machines = calloc((size_t)d->last_symbol + 1, sizeof *symbol_machines);
	int ret;

	if (!symbol_machines)
		return pt_fail_no_memory(e, "the dictionary");
	ret = sort(&d->path_chunks, e) < 0 || insert_paths(d, symbol_machines, code, e) < 0 ||
		      sort(&d->edge_chunks, e) < 0 || insert_edges(d, e) < 0 ||
		      set_machines(d, symbol_machines, e) < 0
		  ? -1
		  : 0;
	free(symbol_machines);
	return ret < 0 ? -1 : check_failed(d, e);
}
