/* code_rows.c - see code_rows.h. */
#include "export/code_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/db.h"
#include "export/digits.h"
#include "export/inlined_rows.h"
#include "export/source_files.h"
#include "schema/array.h"
#include "schema/hash.h"

enum { ROW_INSNS = 64, FRACTION = 1 << 16 /* timed and cycles are whole numbers of that part */ };

/* Sums of the stretches that begin at an instruction, or that end with it. */
struct sums {
	uint64_t times;
	int64_t timed, cycles;
};

struct insn {
	uint64_t ip;
	size_t bytes; /* where they are */
	uint32_t version, symbol;
	uint8_t len, bits;
	bool written;
	uint32_t file, line; /* number of the source file in the trace; 0 unknown */
	uint32_t inlined;    /* number of the inlined call in the trace; 0 none */
	uint32_t machine;    /* that ran it, 0 unknown */
	struct sums enter, leave, ran;
};

struct code_rows {
	sqlite3 *db;
	struct trace_bases bases;
	sqlite3_stmt *insert, *set_machine;
	uint32_t named; /* the symbol that set_machine was run for last */
	struct source_files *files;
	struct inlined_rows *inlined;
	struct pt_hash hash; /* number n is insns[n - 1] */
	struct insn *insns;
	size_t count, room;
	uint8_t *bytes;
	size_t held, bytes_room;
	int64_t rows;
};

struct code_rows *code_rows_create(sqlite3 *db, const struct trace_bases *bases, struct pt_error *e)
{
	struct code_rows *c = calloc(1, sizeof *c);

	if (!c || pt_hash_init(&c->hash, 12, NULL) < 0) {
		code_rows_destroy(c);
		pt_fail_no_memory(e, "the code");
		return NULL;
	}
	c->db = db;
	c->bases = *bases;
	c->insert = db_insert(db, "code", 15, e);
	c->files = source_files_create(db, bases, e);
	c->inlined = c->files ? inlined_rows_create(db, bases, c->files, e) : NULL;
	if (sqlite3_prepare_v2(db, "UPDATE symbol SET machine = ?1 WHERE id = ?2 AND machine IS NULL", -1,
			       &c->set_machine, NULL) != SQLITE_OK)
		db_fail_main(db, e);
	else if (c->insert && c->inlined)
		return c;
	code_rows_destroy(c);
	return NULL;
}

void code_rows_destroy(struct code_rows *c)
{
	if (!c)
		return;
	sqlite3_finalize(c->insert);
	inlined_rows_destroy(c->inlined);
	source_files_destroy(c->files);
	sqlite3_finalize(c->set_machine);
	pt_hash_deinit(&c->hash);
	free(c->insns);
	free(c->bytes);
	free(c);
}

/* ---- Instructions ------------------------------------------------------------------------------------- */

static uint64_t insn_key(uint64_t ip, uint32_t version)
{
	return pt_hash_mix(ip ^ (uint64_t)version << 48);
}

static uint64_t key_of_insn(const void *insns, uint32_t n)
{
	const struct insn *insn = (const struct insn *)insns + (n - 1);

	return insn_key(insn->ip, insn->version);
}

uint32_t code_rows_find(const struct code_rows *c, uint32_t version, uint64_t ip)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(&c->hash, insn_key(ip, version)); (n = c->hash.slots[i]);
	     i = pt_hash_next(&c->hash, i))
		if (c->insns[n - 1].ip == ip && c->insns[n - 1].version == version)
			return n;
	return 0;
}

static struct insn *next_of(struct code_rows *c, const struct insn *insn)
{
	uint32_t n = code_rows_find(c, insn->version, insn->ip + insn->len);

	return n ? &c->insns[n - 1] : NULL;
}

static int add_bytes(struct code_rows *c, const uint8_t *bytes, size_t n, struct pt_error *e)
{
	for (size_t i = 0; i < n; i++) {
		if (pt_array_grow(&c->bytes, c->held, &c->bytes_room, e) < 0)
			return -1;
		c->bytes[c->held++] = bytes[i];
	}
	return 0;
}

int code_rows_add(struct code_rows *c, const struct ptr_code *code, struct pt_error *e)
{
	const uint8_t *bytes = code->bytes;
	uint64_t ip = code->ip;

	for (uint32_t i = 0; i < code->count; i++) {
		if (code_rows_find(c, code->version, ip))
			return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				       "the record stream has the instruction at %" PRIx64 " twice", ip);
		if (c->count == UINT32_MAX || pt_array_grow(&c->insns, c->count, &c->room, e) < 0)
			return pt_fail_no_memory(e, "the code");
		c->insns[c->count++] = (struct insn){.ip = ip,
						     .bytes = c->held,
						     .version = code->version,
						     .symbol = code->symbol,
						     .len = code->lens[i],
						     .bits = (uint8_t)code->bits};
		if (pt_hash_insert(&c->hash, insn_key(ip, code->version), (uint32_t)c->count, key_of_insn,
				   c->insns, e) < 0 ||
		    add_bytes(c, bytes, code->lens[i], e) < 0)
			return -1;
		ip += code->lens[i];
		bytes += code->lens[i];
	}
	return 0;
}

/* ---- Counts ------------------------------------------------------------------------------------------- */

static void add_sums(struct sums *to, const struct sums *s)
{
	to->times += s->times;
	to->timed += s->timed;
	to->cycles += s->cycles;
}

void code_rows_ran(struct code_rows *c, const struct code_stretch *s)
{
	struct insn *first = s->first ? &c->insns[s->first - 1] : NULL, *last = first, *next;
	/* Rounded once, for both ends: what enters leaves. */
	struct sums sums = {.times = s->times,
			    .timed = (int64_t)(s->timed * FRACTION + 0.5),
			    .cycles = (int64_t)(s->cycles * FRACTION + 0.5)};

	if (!first || !s->insns)
		return;
	if (s->last)
		last = &c->insns[s->last - 1];
	for (uint32_t i = 1; i < s->insns && !s->last && (next = next_of(c, last)); i++)
		last = next;
	if (!first->machine)
		first->machine = s->machine;
	add_sums(&first->enter, &sums);
	add_sums(&last->leave, &sums);
}

static int by_place(const void *a, const void *b)
{
	const struct insn *x = a, *y = b;

	if (x->version != y->version)
		return x->version < y->version ? -1 : 1;
	return x->ip < y->ip ? -1 : x->ip > y->ip;
}

/* In the order of addresses: whatever leads to an instruction but by a stretch's beginning lies before it. */
static void count(struct code_rows *c)
{
	if (!c->count)
		return;
	qsort(c->insns, c->count, sizeof *c->insns, by_place);
	memset(c->hash.slots, 0, ((size_t)c->hash.mask + 1) * sizeof *c->hash.slots);
	for (uint32_t n = 1; n <= c->count; n++)
		pt_hash_place(&c->hash, key_of_insn(c->insns, n), n);
	for (size_t i = 0; i < c->count; i++) {
		struct insn *insn = &c->insns[i], *next = next_of(c, insn);
		struct sums on;

		add_sums(&insn->ran, &insn->enter);
		on = insn->ran;
		on.times -= insn->leave.times;
		on.timed -= insn->leave.timed;
		on.cycles -= insn->leave.cycles;
		if (next && on.times) {
			add_sums(&next->ran, &on);
			if (!next->machine)
				next->machine = insn->machine;
		}
	}
}

/* ---- Rows --------------------------------------------------------------------------------------------- */

static bool goes_on(const struct insn *a, const struct insn *b)
{
	return b && !b->written && b->file == a->file && b->inlined == a->inlined && b->symbol == a->symbol &&
	       b->bits == a->bits && !memcmp(&a->ran, &b->ran, sizeof a->ran);
}

/* Symbols of an edge's ends have their machine already. */
static int set_machine(struct code_rows *c, const struct insn *insn, struct pt_error *e)
{
	if (!insn->machine || !insn->symbol || insn->symbol == c->named)
		return 0;
	c->named = insn->symbol;
	sqlite3_bind_int64(c->set_machine, 1, c->bases.machine + insn->machine);
	sqlite3_bind_int64(c->set_machine, 2, c->bases.symbol + insn->symbol);
	return db_run(c->set_machine, e);
}

static int insert(struct code_rows *c, struct insn *first, struct pt_error *e)
{
	uint32_t offsets[ROW_INSNS], lines[ROW_INSNS], n = 0, bytes = 0;
	uint8_t code[ROW_INSNS * 15];
	char text[2][ROW_INSNS * DIGITS_BYTES];
	struct insn *insn = first;
	sqlite3_stmt *s = c->insert;

	do {
		lines[n] = insn->line;
		offsets[n++] = bytes;
		memcpy(code + bytes, c->bytes + insn->bytes, insn->len);
		bytes += insn->len;
		insn->written = true;
		insn = next_of(c, insn);
	} while (n < ROW_INSNS && goes_on(first, insn));
	sqlite3_bind_int64(s, 1, c->bases.code + ++c->rows);
	sqlite3_bind_int64(s, 2, c->bases.trace);
	db_bind(s, 3, first->symbol, c->bases.symbol + first->symbol);
	db_bind(s, 4, first->version != 1, first->version);
	sqlite3_bind_int64(s, 5, (int64_t)first->ip);
	db_bind(s, 6, first->bits != 64, first->bits);
	sqlite3_bind_int64(s, 7, n);
	digits_bind_array(offsets, n, 0, s, 8, text[0]);
	sqlite3_bind_blob(s, 9, code, (int)bytes, SQLITE_STATIC);
	sqlite3_bind_int64(s, 10, (int64_t)first->ran.times);
	db_bind(s, 11, first->ran.timed, (first->ran.timed + FRACTION / 2) / FRACTION);
	if (first->ran.timed)
		sqlite3_bind_double(s, 12, (double)first->ran.cycles / FRACTION);
	else
		sqlite3_bind_null(s, 12);
	db_bind(s, 13, first->file, c->bases.source_file + first->file);
	digits_bind_array(lines, n, 0, s, 14, text[1]);
	db_bind(s, 15, first->inlined, c->bases.inlined_call + first->inlined);
	return db_run(s, e) < 0 || set_machine(c, first, e) < 0 ? -1 : 0;
}

static int find_lines(struct code_rows *c, struct source_lines *lines, struct pt_error *e)
{
	for (size_t i = 0; i < c->count; i++) {
		struct insn *insn = &c->insns[i];
		struct source_line line;
		int found = insn->ran.times ? source_lines_find(lines, insn->symbol, insn->ip, &line, e) : 0;

		if (found < 0)
			return -1;
		if (!found)
			continue;
		insn->line = line.line;
		insn->file = source_files_number(c->files, &line, e);
		if (!insn->file)
			return -1;
		if (line.inlined && !(insn->inlined = inlined_rows_number(c->inlined, line.inlined, e)))
			return -1;
	}
	return 0;
}

int code_rows_finish(struct code_rows *c, struct source_lines *lines, struct pt_error *e)
{
	count(c);
	if (find_lines(c, lines, e) < 0 || source_files_finish(c->files, lines, e) < 0)
		return -1;
	for (size_t i = 0; i < c->count; i++)
		if (!c->insns[i].written && c->insns[i].ran.times && insert(c, &c->insns[i], e) < 0)
			return -1;
	return 0;
}
