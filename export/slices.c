/* slices.c - see slices.h. */
#include "export/slices.h"

#include <stdlib.h>
#include <string.h>

#include "export/db.h"
#include "schema/array.h"

/* Runs of a stretch that are kept to divide its cycles. The runs of longer stretches get none. */
enum { STRETCH_MAX = 4096 };

struct stretch_run {
	uint32_t path, repeats;
};

struct open_slice {
	struct ptr_slice slice;
	uint32_t number;
	uint64_t first_run, last_run; /* ids; 0 none */
	uint64_t branches, insns, not_taken, cycles, last_tsc;
	bool has_cycles;
	/* The stretch since the last run with cycles */
	struct stretch_run *stretch;
	size_t stretch_count, stretch_room; /* count STRETCH_MAX + 1: too many */
	uint64_t stretch_first, stretch_insns;
};

struct slices {
	sqlite3 *db;
	struct dictionary *dictionary;
	struct trace_bases bases;
	sqlite3_stmt *insert;
	struct open_slice **open; /* ascending numbers */
	size_t count, room;
	struct open_slice *last; /* the one of the last run */
	uint64_t first_tsc, last_tsc, cycles;
	bool has_cycles;
};

struct slices *slices_create(sqlite3 *db, struct dictionary *dictionary, const struct trace_bases *bases,
			     struct pt_error *e)
{
	struct slices *s = calloc(1, sizeof *s);

	if (!s) {
		pt_fail_no_memory(e, "slices");
		return NULL;
	}
	s->db = db;
	s->dictionary = dictionary;
	s->bases = *bases;
	s->first_tsc = s->last_tsc = PTR_NO_TSC;
	s->insert = db_insert(db, "slice", 16, e);
	if (!s->insert) {
		free(s);
		return NULL;
	}
	return s;
}

static void free_slice(struct open_slice *o)
{
	free(o->stretch);
	free(o);
}

void slices_destroy(struct slices *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		free_slice(s->open[i]);
	free(s->open);
	sqlite3_finalize(s->insert);
	free(s);
}

static void note_time(struct slices *s, uint64_t tsc)
{
	if (tsc == PTR_NO_TSC)
		return;
	if (s->first_tsc == PTR_NO_TSC || tsc < s->first_tsc)
		s->first_tsc = tsc;
	if (s->last_tsc == PTR_NO_TSC || tsc > s->last_tsc)
		s->last_tsc = tsc;
}

int slices_begin(struct slices *s, const struct ptr_record *r, struct pt_error *e)
{
	struct open_slice *o;

	if (pt_array_grow(&s->open, s->count, &s->room, e))
		return -1;
	o = calloc(1, sizeof *o);
	if (!o)
		return pt_fail_no_memory(e, "slices");
	o->slice = r->slice;
	o->number = (uint32_t)r->number;
	o->last_tsc = PTR_NO_TSC;
	s->open[s->count++] = o;
	note_time(s, r->slice.tsc);
	return 0;
}

/* The index of the open slice, or where it would be. */
static size_t find(const struct slices *s, uint32_t number)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->open[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Divides the cycles among the runs of the stretch, by their instructions. */
static void divide(struct slices *s, struct open_slice *o, uint64_t cycles)
{
	if (o->stretch_count <= STRETCH_MAX && o->stretch_insns) {
		double per_insn = (double)cycles / (double)o->stretch_insns;

		for (size_t i = 0; i < o->stretch_count; i++) {
			const struct stretch_run *r = &o->stretch[i];
			uint64_t insns = r->repeats * dictionary_path_of(s->dictionary, r->path).insns;

			dictionary_timed(s->dictionary, r->path, insns, (double)insns * per_insn);
		}
	}
	o->stretch_count = 0;
	o->stretch_insns = 0;
}

static int stretch_add(struct open_slice *o, int64_t id, const struct ptr_run *r, uint64_t insns,
		       struct pt_error *e)
{
	if (!o->stretch_count)
		o->stretch_first = (uint64_t)id;
	if (o->stretch_count >= STRETCH_MAX) {
		o->stretch_count = STRETCH_MAX + 1;
		return 0;
	}
	if (pt_array_grow(&o->stretch, o->stretch_count, &o->stretch_room, e))
		return -1;
	o->stretch[o->stretch_count++] = (struct stretch_run){.path = r->path, .repeats = r->repeats};
	o->stretch_insns += insns;
	return 0;
}

int slices_run(struct slices *s, int64_t id, const struct ptr_run *r, const struct dictionary_path *path,
	       uint64_t *ret_back, struct pt_error *e)
{
	struct open_slice *o = s->last;

	if (!o || o->number != r->slice)
		o = s->last = s->open[find(s, r->slice)];
	if (!o->first_run)
		o->first_run = (uint64_t)id;
	o->last_run = (uint64_t)id;
	o->last_tsc = r->tsc;
	o->branches += (uint64_t)r->repeats * path->edges;
	o->insns += r->repeats * path->insns;
	o->not_taken += (uint64_t)r->repeats * path->not_taken;
	*ret_back = 0;
	if (stretch_add(o, id, r, r->repeats * path->insns, e) < 0)
		return -1;
	if (r->cyc_count != PTR_UNKNOWN) {
		*ret_back = (uint64_t)id - o->stretch_first;
		o->cycles += r->cyc_count;
		o->has_cycles = true;
		divide(s, o, r->cyc_count);
	}
	return 0;
}

static int insert(struct slices *s, const struct open_slice *o, const struct ptr_slice_end *r,
		  struct pt_error *e)
{
	const struct ptr_slice *d = &o->slice;
	sqlite3_stmt *st = s->insert;

	note_time(s, r->tsc);
	if (r->cyc_count != PTR_UNKNOWN) {
		s->cycles += r->cyc_count;
		s->has_cycles = true;
	}
	sqlite3_bind_int64(st, 1, s->bases.slice + o->number);
	sqlite3_bind_int64(st, 2, s->bases.trace);
	db_bind(st, 3, d->thread, s->bases.thread + d->thread);
	db_bind(st, 4, d->cpu >= 0, d->cpu);
	db_bind(st, 5, d->vcpu >= 0, d->vcpu);
	sqlite3_bind_int64(st, 6, d->stream);
	db_bind(st, 7, d->tsc != PTR_NO_TSC, (int64_t)d->tsc);
	db_bind(st, 8, r->tsc != PTR_NO_TSC, (int64_t)r->tsc);
	db_bind(st, 9, o->first_run, (int64_t)o->first_run);
	db_bind(st, 10, o->first_run, (int64_t)o->last_run);
	sqlite3_bind_int64(st, 11, (int64_t)r->branch_count);
	sqlite3_bind_int64(st, 12, (int64_t)r->insn_count);
	db_bind(st, 13, r->cyc_count != PTR_UNKNOWN, (int64_t)r->cyc_count);
	sqlite3_bind_int64(st, 14, (int64_t)r->not_taken);
	db_bind_time(st, 15, &s->bases.clock, d->tsc);
	db_bind_time(st, 16, &s->bases.clock, r->tsc);
	return db_run(st, e);
}

uint32_t slices_stream(const struct slices *s)
{
	return s->last ? s->last->slice.stream : 0;
}

uint32_t slices_thread(const struct slices *s)
{
	return s->last ? s->last->slice.thread : 0;
}

int slices_end(struct slices *s, const struct ptr_slice_end *r, struct pt_error *e)
{
	size_t i = find(s, r->slice);
	int ret = insert(s, s->open[i], r, e);

	if (s->last == s->open[i])
		s->last = NULL;
	free_slice(s->open[i]);
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	memmove(&s->open[i], &s->open[i + 1], (s->count - i - 1) * sizeof *s->open);
	s->count--;
	return ret;
}

int slices_finish(struct slices *s, struct pt_error *e)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct open_slice *o = s->open[i];
		struct ptr_slice_end end = {.slice = o->number,
					    .tsc = o->last_tsc,
					    .insn_count = o->insns,
					    .cyc_count = o->has_cycles ? o->cycles : PTR_UNKNOWN,
					    .not_taken = o->not_taken,
					    .branch_count = o->branches};

		if (insert(s, o, &end, e) < 0)
			return -1;
	}
	return 0;
}

uint64_t slices_first_tsc(const struct slices *s)
{
	return s->first_tsc;
}

uint64_t slices_last_tsc(const struct slices *s)
{
	return s->last_tsc;
}

uint64_t slices_cyc_count(const struct slices *s)
{
	return s->has_cycles ? s->cycles : PTR_UNKNOWN;
}
