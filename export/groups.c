/* groups.c - see groups.h. */
#include "export/groups.h"

#include <stdbool.h>
#include <stdlib.h>

#include "export/db.h"
#include "schema/records.h"

enum { DIGIT_MASK = (1 << GROUP_DIGIT_BITS) - 1, FIELD_MAX = 1 << 2 * GROUP_DIGIT_BITS };

enum field { PATH, TSC, REPEATS, CYC, INSN, BACK, FIELDS };

struct groups {
	sqlite3_stmt *insert;
	int64_t id, slice;
	uint64_t tsc; /* the first run's */
	uint32_t n;
	uint32_t any[FIELDS];		    /* all values of the field or'ed */
	uint32_t value[FIELDS][GROUP_RUNS]; /* below FIELD_MAX each */
	bool whole;			    /* one run, whose cycles and instructions are these: */
	uint64_t cyc_whole, insn_whole;
	char text[FIELDS * 2][GROUP_RUNS * 3];
};

struct groups *groups_create(sqlite3 *db, struct pt_error *e)
{
	struct groups *g = calloc(1, sizeof *g);

	if (!g) {
		pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
		return NULL;
	}
	g->insert = db_insert(db, "run_group", 16, e);
	if (!g->insert) {
		free(g);
		return NULL;
	}
	return g;
}

void groups_destroy(struct groups *g)
{
	if (g)
		sqlite3_finalize(g->insert);
	free(g);
}

/* A digit as UTF-8: code points 1 to 32768, below the surrogates. */
static char *put_digit(char *p, uint32_t digit)
{
	uint32_t c = digit + 1;

	if (c < 0x80) {
		*p++ = (char)c;
	} else if (c < 0x800) {
		*p++ = (char)(0xc0 | c >> 6);
		*p++ = (char)(0x80 | (c & 0x3f));
	} else {
		*p++ = (char)(0xe0 | c >> 12);
		*p++ = (char)(0x80 | (c >> 6 & 0x3f));
		*p++ = (char)(0x80 | (c & 0x3f));
	}
	return p;
}

/* Binds the field's digits to parameter at, or leaves it NULL when all are 0. */
static void bind_digits(struct groups *g, int at, enum field f, unsigned shift, char *text)
{
	char *p = text;

	if (!(g->any[f] >> shift & DIGIT_MASK) && f != PATH) {
		sqlite3_bind_null(g->insert, at);
		return;
	}
	for (uint32_t i = 0; i < g->n; i++)
		p = put_digit(p, g->value[f][i] >> shift & DIGIT_MASK);
	sqlite3_bind_text(g->insert, at, text, (int)(p - text), SQLITE_STATIC);
}

static void bind_high(struct groups *g, int at, enum field f, char *text)
{
	if (g->any[f] >> GROUP_DIGIT_BITS)
		bind_digits(g, at, f, GROUP_DIGIT_BITS, text);
	else
		sqlite3_bind_null(g->insert, at);
}

int groups_flush(struct groups *g, struct pt_error *e)
{
	sqlite3_stmt *s = g->insert;

	if (!g->n)
		return 0;
	sqlite3_bind_int64(s, 1, g->id);
	sqlite3_bind_int64(s, 2, g->n);
	sqlite3_bind_int64(s, 3, g->slice);
	if (g->tsc == PTR_NO_TSC)
		sqlite3_bind_null(s, 4);
	else
		sqlite3_bind_int64(s, 4, (int64_t)g->tsc);
	bind_digits(g, 5, PATH, 0, g->text[0]);
	bind_high(g, 6, PATH, g->text[1]);
	bind_digits(g, 7, TSC, 0, g->text[2]);
	bind_high(g, 8, TSC, g->text[3]);
	bind_digits(g, 9, REPEATS, 0, g->text[4]);
	bind_digits(g, 10, CYC, 0, g->text[5]);
	bind_high(g, 11, CYC, g->text[6]);
	bind_digits(g, 12, INSN, 0, g->text[7]);
	bind_high(g, 13, INSN, g->text[8]);
	bind_digits(g, 14, BACK, 0, g->text[9]);
	if (g->whole) {
		sqlite3_bind_int64(s, 15, (int64_t)g->cyc_whole);
		sqlite3_bind_int64(s, 16, (int64_t)g->insn_whole);
	} else {
		sqlite3_bind_null(s, 15);
		sqlite3_bind_null(s, 16);
	}
	g->n = 0;
	g->whole = false;
	for (int f = 0; f < FIELDS; f++)
		g->any[f] = 0;
	return db_run(s, e);
}

static void set(struct groups *g, enum field f, uint32_t value)
{
	g->value[f][g->n] = value;
	g->any[f] |= value;
}

int groups_add(struct groups *g, const struct group_run *r, struct pt_error *e)
{
	uint64_t tsc_add = r->tsc - g->tsc;
	bool known = r->cyc_count != PTR_UNKNOWN;
	bool whole = known && (r->cyc_count >= FIELD_MAX - 1 || r->insn_count >= FIELD_MAX);

	/* An unknown time adds 0 to an unknown one; a known one and an unknown one differ by far too much. */
	if (g->n &&
	    (r->slice != g->slice || g->n == GROUP_RUNS || tsc_add >= FIELD_MAX ||
	     (r->tsc == PTR_NO_TSC) != (g->tsc == PTR_NO_TSC) || whole || g->whole ||
	     r->id != g->id + (int64_t)g->n) &&
	    groups_flush(g, e) < 0)
		return -1;
	if (!g->n) {
		g->id = r->id;
		g->slice = r->slice;
		g->tsc = r->tsc;
		tsc_add = 0;
	}
	set(g, PATH, r->path);
	set(g, TSC, (uint32_t)tsc_add);
	set(g, REPEATS, r->repeats - 1);
	set(g, CYC, known && !whole ? (uint32_t)r->cyc_count + 1 : 0);
	set(g, INSN, known && !whole ? (uint32_t)r->insn_count : 0);
	set(g, BACK, known && r->back <= DIGIT_MASK ? (uint32_t)r->back : 0);
	if (whole) {
		g->whole = true;
		g->cyc_whole = r->cyc_count;
		g->insn_whole = r->insn_count;
	}
	g->n++;
	return 0;
}
