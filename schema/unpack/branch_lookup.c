/* branch_lookup.c - see branch_lookup.h. */
#include "schema/unpack/branch_lookup.h"

#include <stdlib.h>
#include <string.h>

#include "schema/digit.h"
#include "schema/unpack/sql.h"

enum { PATHS, EDGES, SYMBOLS, DSOS, KINDS, SLICES, CACHES };

/* What a slot of each cache begins with. */
struct slot {
	int64_t id;
	bool known;
};

struct kind_of_slot {
	size_t bytes, slots; /* slots: a power of two */
	const char *sql;     /* of the row with id ?1 */
	/* The row's columns. 0, or -1 as the functions of the header. */
	int (*read)(void *slot, sqlite3_stmt *row, struct pt_error *e);
	void (*clear)(void *slot); /* frees texts; NULL: there are none */
};

struct branch_lookup {
	sqlite3 *db;
	sqlite3_stmt *row[CACHES];
	char *slots[CACHES];
};

/* A column's text, to be freed; NULL, and *no_memory as it was: it is NULL. */
static char *text_of(sqlite3_stmt *row, int column, bool *no_memory)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	char *ret = text ? strdup(text) : NULL;

	*no_memory |= text && !ret;
	return ret;
}

static int read_path(void *slot, sqlite3_stmt *row, struct pt_error *e)
{
	struct lookup_path *p = slot;
	int64_t edges = sqlite3_column_int64(row, 0), first = unpack_number(row, 1);
	const uint8_t *add = sqlite3_column_text(row, 2), *add_high = sqlite3_column_text(row, 3);
	const uint8_t *insn = sqlite3_column_text(row, 4), *insn_high = sqlite3_column_text(row, 5);

	if (edges < 0 || edges > LOOKUP_PATH_EDGES)
		return unpack_damaged("path", e);
	p->edges = (uint32_t)edges;
	for (uint32_t i = 0; i < p->edges; i++) {
		uint32_t low = add ? digits_point(&add) : 0, high = add_high ? digits_point(&add_high) : 1;

		p->edge[i] = first == UNPACK_UNKNOWN || !low || !high
				 ? UNPACK_UNKNOWN
				 : unpack_plus(first, (low & 1048575) + ((int64_t)(high - 1) << DIGITS_BITS));
		p->insns[i] = digits_wide(&insn, &insn_high);
	}
	return 0;
}

static int read_edge(void *slot, sqlite3_stmt *row, struct pt_error *e)
{
	struct lookup_edge *edge = slot;

	(void)e;
	edge->from_ip = unpack_number(row, 0);
	edge->to_ip = unpack_number(row, 1);
	edge->kind = unpack_number(row, 2);
	edge->from_symbol = unpack_number(row, 3);
	edge->to_symbol = unpack_number(row, 4);
	return 0;
}

static int read_symbol(void *slot, sqlite3_stmt *row, struct pt_error *e)
{
	struct lookup_symbol *s = slot;
	bool no_memory = false;

	s->start_ip = unpack_number(row, 0);
	s->dso = unpack_number(row, 1);
	s->name = text_of(row, 2, &no_memory);
	return no_memory ? pt_fail_no_memory(e, NULL) : 0;
}

static void clear_symbol(void *slot)
{
	free(((struct lookup_symbol *)slot)->name);
}

static int read_name(void *slot, sqlite3_stmt *row, struct pt_error *e)
{
	bool no_memory = false;

	((struct lookup_name *)slot)->name = text_of(row, 0, &no_memory);
	return no_memory ? pt_fail_no_memory(e, NULL) : 0;
}

static void clear_name(void *slot)
{
	free(((struct lookup_name *)slot)->name);
}

static int read_slice(void *slot, sqlite3_stmt *row, struct pt_error *e)
{
	struct lookup_slice *s = slot;
	bool no_memory = false;

	s->trace = unpack_number(row, 0);
	s->cpu = unpack_number(row, 1);
	s->vcpu = unpack_number(row, 2);
	s->pid = unpack_number(row, 3);
	s->tid = unpack_number(row, 4);
	s->time_zero = unpack_number(row, 5);
	s->time_mult = unpack_number(row, 6);
	s->time_shift = unpack_number(row, 7);
	s->machine = text_of(row, 8, &no_memory);
	s->comm = text_of(row, 9, &no_memory);
	return no_memory ? pt_fail_no_memory(e, NULL) : 0;
}

static void clear_slice(void *slot)
{
	free(((struct lookup_slice *)slot)->machine);
	free(((struct lookup_slice *)slot)->comm);
}

static const struct kind_of_slot kinds[CACHES] = {
    [PATHS] = {sizeof(struct lookup_path), 1 << 14,
	       "SELECT edges, edge, edge_add, edge_add_high, insn, insn_high FROM path WHERE id = ?1",
	       read_path, NULL},
    [EDGES] = {sizeof(struct lookup_edge), 1 << 17,
	       "SELECT from_ip, to_ip, kind, from_symbol, to_symbol FROM edge WHERE id = ?1", read_edge,
	       NULL},
    [SYMBOLS] = {sizeof(struct lookup_symbol), 1 << 13,
		 "SELECT start_ip, dso, name FROM symbol WHERE id = ?1", read_symbol, clear_symbol},
    [DSOS] = {sizeof(struct lookup_name), 1 << 8, "SELECT name FROM dso WHERE id = ?1", read_name,
	      clear_name},
    [KINDS] = {sizeof(struct lookup_name), 1 << 8, "SELECT name FROM kind WHERE id = ?1", read_name,
	       clear_name},
    [SLICES] = {
	sizeof(struct lookup_slice), 1 << 8,
	"SELECT s.trace, s.cpu, s.vcpu, h.pid, h.tid, t.time_zero, t.time_mult, t.time_shift, m.name, h.comm"
	" FROM slice s CROSS JOIN trace t LEFT JOIN thread h ON h.id = s.thread"
	" LEFT JOIN machine m ON m.id = h.machine WHERE s.id = ?1 AND t.id = s.trace",
	read_slice, clear_slice}};

static struct slot *slot_at(const struct branch_lookup *l, unsigned which, size_t at)
{
	return (struct slot *)(l->slots[which] + at * kinds[which].bytes);
}

/* An id that is no row's: each but that of slot 0 is another slot's. */
static int64_t no_id(size_t at)
{
	return at ? 0 : INT64_MAX;
}

static void clear(const struct branch_lookup *l, unsigned which, size_t at)
{
	struct slot *slot = slot_at(l, which, at);

	if (kinds[which].clear)
		kinds[which].clear(slot);
	memset(slot, 0, kinds[which].bytes);
	slot->id = no_id(at);
}

struct branch_lookup *branch_lookup_create(sqlite3 *db, struct pt_error *e)
{
	struct branch_lookup *l = calloc(1, sizeof *l);

	if (!l) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	l->db = db;
	for (unsigned i = 0; i < CACHES; i++) {
		l->row[i] = unpack_prepare(db, kinds[i].sql, e);
		l->slots[i] = l->row[i] ? calloc(kinds[i].slots, kinds[i].bytes) : NULL;
		if (!l->slots[i]) {
			if (l->row[i])
				pt_fail_no_memory(e, NULL);
			branch_lookup_destroy(l);
			return NULL;
		}
		slot_at(l, i, 0)->id = no_id(0);
	}
	return l;
}

void branch_lookup_destroy(struct branch_lookup *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < CACHES; i++) {
		sqlite3_finalize(l->row[i]);
		for (size_t k = 0; l->slots[i] && kinds[i].clear && k < kinds[i].slots; k++)
			kinds[i].clear(slot_at(l, i, k));
		free(l->slots[i]);
	}
	free(l);
}

static int read_row(const struct branch_lookup *l, unsigned which, struct slot *slot, int64_t id,
		    struct pt_error *e)
{
	sqlite3_stmt *row = l->row[which];
	int ret = 0, r;

	sqlite3_bind_int64(row, 1, id);
	r = sqlite3_step(row);
	slot->id = id;
	slot->known = r == SQLITE_ROW;
	if (slot->known)
		ret = kinds[which].read(slot, row, e);
	else if (r != SQLITE_DONE)
		ret = unpack_sql_error(l->db, e);
	sqlite3_reset(row);
	return ret;
}

static const void *look_up(struct branch_lookup *l, unsigned which, int64_t id, struct pt_error *e)
{
	size_t at = (size_t)id & (kinds[which].slots - 1);
	struct slot *slot = slot_at(l, which, at);

	if (slot->id == id)
		return slot;
	clear(l, which, at);
	if (read_row(l, which, slot, id, e) == 0)
		return slot;
	clear(l, which, at);
	return NULL;
}

const struct lookup_path *branch_lookup_path(struct branch_lookup *l, int64_t id, struct pt_error *e)
{
	return look_up(l, PATHS, id, e);
}

const struct lookup_edge *branch_lookup_edge(struct branch_lookup *l, int64_t id, struct pt_error *e)
{
	return look_up(l, EDGES, id, e);
}

const struct lookup_symbol *branch_lookup_symbol(struct branch_lookup *l, int64_t id, struct pt_error *e)
{
	return look_up(l, SYMBOLS, id, e);
}

const struct lookup_name *branch_lookup_dso(struct branch_lookup *l, int64_t id, struct pt_error *e)
{
	return look_up(l, DSOS, id, e);
}

const struct lookup_name *branch_lookup_kind(struct branch_lookup *l, int64_t id, struct pt_error *e)
{
	return look_up(l, KINDS, id, e);
}

const struct lookup_slice *branch_lookup_slice(struct branch_lookup *l, int64_t id, struct pt_error *e)
{
	return look_up(l, SLICES, id, e);
}
