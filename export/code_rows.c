/* code_rows.c - see code_rows.h. */
#include "export/code_rows.h"

#include <stdlib.h>
#include <string.h>

#include "export/code_map.h"
#include "export/digits.h"
#include "export/inlined_rows.h"
#include "export/inserter.h"
#include "export/paged.h"
#include "export/source_files.h"
#include "schema/array.h"

enum {
	ROW_INSNS = 64,
	INSNS_HELD = 1 << 16, /* of code without a gap, before what is known is written: 6 MB */
	FRACTION = 1 << 16,   /* timed and cycles are whole numbers of that part */
	ENDS_PAGES = 1 << 12, /* in memory: 15 MB */
	ENDS_NUMBERS = 16,
	ENDS_OF_PAGES = 1 << 10 /* 4 MB */
};

/* By an instruction's number, so many in a record: number of its ends, 0 none. Most have none. */
struct ends_numbers {
	uint32_t of[ENDS_NUMBERS];
};

/* Sums of the stretches that begin at an instruction, or that end with it. */
struct sums {
	uint64_t times;
	int64_t timed, cycles;
};

struct ends {
	struct sums enter, leave;
	uint32_t machine; /* that entered, 0 unknown */
};

/* An instruction of the code that is counted and written next: of one version, without a gap, INSNS_HELD or a
 * few more. */
struct insn {
	uint64_t ip;
	uint32_t number; /* in the map */
	uint32_t symbol;
	uint8_t bits, len, bytes[PTR_INSN_BYTES];
	uint32_t next;	     /* index + 1 of the one that follows it in the code; 0 none */
	uint32_t machine;    /* that ran it, 0 unknown */
	uint32_t file, line; /* number of the source file in the trace; 0 unknown */
	uint32_t inlined;    /* number of the inlined call in the trace; 0 none */
	struct sums ran;
	bool written;
};

struct code_rows {
	struct trace_bases bases;
	struct insert *insert, *set_machine;
	uint32_t named; /* the symbol that set_machine was run for last */
	struct source_files *files;
	struct inlined_rows *inlined;
	struct code_map map;
	struct paged ends_of; /* struct ends_numbers */
	struct paged ends;    /* number n at n */
	uint32_t ends_count;
	struct insn *insns;
	size_t count, room;
	uint32_t version; /* of insns */
	int64_t rows;
};

static const char set_machine_sql[] = "UPDATE symbol SET machine = ?1 WHERE id = ?2 AND machine IS NULL";

struct code_rows *code_rows_create(struct inserter *inserter, const int scratch[CODE_SCRATCHES],
				   const struct trace_bases *bases, struct pt_error *e)
{
	struct code_rows *c = calloc(1, sizeof *c);

	if (!c || code_map_init(&c->map, scratch, NULL) < 0 ||
	    paged_init(&c->ends, scratch[CODE_MAP_SCRATCHES], sizeof(struct ends), ENDS_PAGES, NULL) < 0 ||
	    paged_init(&c->ends_of, scratch[CODE_MAP_SCRATCHES + 1], sizeof(struct ends_numbers),
		       ENDS_OF_PAGES, NULL) < 0) {
		code_rows_destroy(c);
		pt_fail_no_memory(e, "the code");
		return NULL;
	}
	c->bases = *bases;
	c->insert = insert_create(inserter, "code", 15, e);
	c->files = !c->insert ? NULL : source_files_create(inserter, bases, e);
	c->inlined = c->files ? inlined_rows_create(inserter, bases, c->files, e) : NULL;
	c->set_machine = c->inlined ? insert_create_sql(inserter, set_machine_sql, 2, e) : NULL;
	if (c->set_machine)
		return c;
	code_rows_destroy(c);
	return NULL;
}

void code_rows_destroy(struct code_rows *c)
{
	if (!c)
		return;
	insert_destroy(c->insert);
	inlined_rows_destroy(c->inlined);
	source_files_destroy(c->files);
	insert_destroy(c->set_machine);
	code_map_deinit(&c->map);
	paged_deinit(&c->ends_of);
	paged_deinit(&c->ends);
	free(c->insns);
	free(c);
}

int code_rows_add(struct code_rows *c, const struct ptr_code *code, struct pt_error *e)
{
	return code_map_add(&c->map, code, e);
}

int code_rows_find(struct code_rows *c, uint32_t version, uint64_t ip, uint32_t *ret, struct pt_error *e)
{
	return code_map_find(&c->map, version, ip, ret, e);
}

/* ---- Counts ------------------------------------------------------------------------------------------- */

static void add_sums(struct sums *to, const struct sums *s)
{
	to->times += s->times;
	to->timed += s->timed;
	to->cycles += s->cycles;
}

/* The instruction's, new if it has none; NULL: the scratch file cannot be read or written. */
static struct ends *ends_of(struct code_rows *c, uint32_t insn, struct pt_error *e)
{
	struct ends_numbers *numbers = paged_at(&c->ends_of, insn / ENDS_NUMBERS, e);
	uint32_t *number = numbers ? &numbers->of[insn % ENDS_NUMBERS] : NULL;

	if (!number)
		return NULL;
	if (!*number)
		*number = ++c->ends_count;
	return paged_at(&c->ends, *number, e);
}

/* The instruction's; *ret NULL: it has none. 0, or -1: as above. */
static int known_ends(struct code_rows *c, uint32_t insn, const struct ends **ret, struct pt_error *e)
{
	const struct ends_numbers *numbers = paged_read(&c->ends_of, insn / ENDS_NUMBERS, e);
	uint32_t number = numbers ? numbers->of[insn % ENDS_NUMBERS] : 0;

	*ret = number ? paged_read(&c->ends, number, e) : NULL;
	return numbers && (!number || *ret) ? 0 : -1;
}

int code_rows_ran(struct code_rows *c, const struct code_stretch *s, struct pt_error *e)
{
	uint32_t last = s->last;
	/* Rounded once, for both ends: what enters leaves. */
	struct sums sums = {.times = s->times,
			    .timed = (int64_t)(s->timed * FRACTION + 0.5),
			    .cycles = (int64_t)(s->cycles * FRACTION + 0.5)};
	struct ends *ends;

	if (!s->first || !s->insns)
		return 0;
	if (!last && code_map_walk(&c->map, s->first, s->insns - 1, &last, e) < 0)
		return -1;
	if (!(ends = ends_of(c, s->first, e)))
		return -1;
	add_sums(&ends->enter, &sums);
	if (!ends->machine)
		ends->machine = s->machine;
	if (!(ends = ends_of(c, last, e)))
		return -1;
	add_sums(&ends->leave, &sums);
	return 0;
}

/* ---- Code without a gap ------------------------------------------------------------------------------- */

static int by_ip(const void *a, const void *b)
{
	const struct insn *x = a, *y = b;

	return x->ip < y->ip ? -1 : x->ip > y->ip;
}

static int add_insns(struct code_rows *c, const struct ptr_code *b, uint32_t first, struct pt_error *e)
{
	const uint8_t *bytes = b->bytes;

	c->version = b->version;
	for (uint32_t i = 0; i < b->count; bytes += b->lens[i++]) {
		struct insn *insn;

		if (pt_array_grow(&c->insns, c->count, &c->room, e) < 0)
			return -1;
		insn = &c->insns[c->count++];
		*insn = (struct insn){.ip = b->ip + (uint64_t)(bytes - b->bytes),
				      .number = first + i,
				      .symbol = b->symbol,
				      .bits = (uint8_t)b->bits,
				      .len = b->lens[i]};
		memcpy(insn->bytes, bytes, insn->len);
	}
	return 0;
}

/* Where each goes on: a few further on. */
static void set_next(struct code_rows *c)
{
	if (c->count)
		qsort(c->insns, c->count, sizeof *c->insns, by_ip);
	for (size_t i = 0; i < c->count; i++) {
		uint64_t to = c->insns[i].ip + c->insns[i].len;
		size_t n = i + 1;

		while (n < c->count && c->insns[n].ip < to)
			n++;
		c->insns[i].next = n < c->count && c->insns[n].ip == to ? (uint32_t)n + 1 : 0;
	}
}

/* Counts the first n. In the order of addresses: an instruction is reached by where a stretch begins, or from
 * one before it. */
static int count(struct code_rows *c, size_t n, struct pt_error *e)
{
	for (size_t i = 0; i < n; i++) {
		struct insn *insn = &c->insns[i], *next = insn->next ? &c->insns[insn->next - 1] : NULL;
		const struct ends *ends;
		struct sums on;

		if (known_ends(c, insn->number, &ends, e) < 0)
			return -1;
		if (ends)
			add_sums(&insn->ran, &ends->enter);
		if (ends && !insn->machine)
			insn->machine = ends->machine;
		on = insn->ran;
		if (ends) {
			on.times -= ends->leave.times;
			on.timed -= ends->leave.timed;
			on.cycles -= ends->leave.cycles;
		}
		if (next && on.times) {
			add_sums(&next->ran, &on);
			if (!next->machine)
				next->machine = insn->machine;
		}
	}
	return 0;
}

/* ---- Rows --------------------------------------------------------------------------------------------- */

static bool goes_on(const struct insn *a, const struct insn *b)
{
	return !b->written && b->file == a->file && b->inlined == a->inlined && b->symbol == a->symbol &&
	       b->bits == a->bits && memcmp(&a->ran, &b->ran, sizeof a->ran) == 0;
}

/* Symbols of an edge's ends have their machine already. */
static int set_machine(struct code_rows *c, uint32_t symbol, uint32_t machine, struct pt_error *e)
{
	if (!machine || !symbol || symbol == c->named)
		return 0;
	c->named = symbol;
	insert_int(c->set_machine, 1, c->bases.machine + machine);
	insert_int(c->set_machine, 2, c->bases.symbol + symbol);
	return insert_run(c->set_machine, e);
}

/* Those from first to the nth that are one row. */
static int insert(struct code_rows *c, struct insn *first, size_t nth, struct pt_error *e)
{
	uint32_t offsets[ROW_INSNS], lines[ROW_INSNS], n = 0, bytes = 0;
	uint8_t code[ROW_INSNS * PTR_INSN_BYTES];
	char text[2][ROW_INSNS * DIGITS_BYTES];
	struct insn *insn = first;
	struct insert *s = c->insert;

	do {
		lines[n] = insn->line;
		offsets[n++] = bytes;
		memcpy(code + bytes, insn->bytes, insn->len);
		bytes += insn->len;
		insn->written = true;
		insn = insn->next && insn->next <= nth ? &c->insns[insn->next - 1] : NULL;
	} while (n < ROW_INSNS && insn && goes_on(first, insn));
	insert_int(s, 1, c->bases.code + ++c->rows);
	insert_int(s, 2, c->bases.trace);
	insert_known(s, 3, first->symbol, c->bases.symbol + first->symbol);
	insert_known(s, 4, c->version != 1, c->version);
	insert_int(s, 5, (int64_t)first->ip);
	insert_known(s, 6, first->bits != 64, first->bits);
	insert_int(s, 7, n);
	digits_bind_array(offsets, n, 0, s, 8, text[0]);
	insert_blob(s, 9, code, bytes);
	insert_int(s, 10, (int64_t)first->ran.times);
	insert_known(s, 11, first->ran.timed, (first->ran.timed + FRACTION / 2) / FRACTION);
	if (first->ran.timed)
		insert_double(s, 12, (double)first->ran.cycles / FRACTION);
	insert_known(s, 13, first->file, c->bases.source_file + first->file);
	digits_bind_array(lines, n, 0, s, 14, text[1]);
	insert_known(s, 15, first->inlined, c->bases.inlined_call + first->inlined);
	return insert_run(s, e) < 0 || set_machine(c, first->symbol, first->machine, e) < 0 ? -1 : 0;
}

/* Of the first n. */
static int find_lines(struct code_rows *c, size_t n, struct source_lines *lines, struct pt_error *e)
{
	for (size_t i = 0; i < n; i++) {
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

/* How many of c->insns, which are sorted, end before an address: those do not lead to what is there. */
static size_t count_before(const struct code_rows *c, uint64_t ip)
{
	size_t n = c->count;

	while (n && (c->insns[n - 1].ip >= ip || ip - c->insns[n - 1].ip <= PTR_INSN_BYTES))
		n--;
	return n;
}

/*
 * Inserts rows of all instructions in c->insns; with until, only of those that end before that block. The
 * others are kept, with their sums. Blocks come by address, so none that is added later goes to one that was
 * inserted.
 */
static int put_insns(struct code_rows *c, const struct ptr_code *until, struct source_lines *lines,
		     struct pt_error *e)
{
	size_t n;

	set_next(c);
	n = until ? count_before(c, until->ip) : c->count;
	if (count(c, n, e) < 0 || find_lines(c, n, lines, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (!c->insns[i].written && c->insns[i].ran.times && insert(c, &c->insns[i], n, e) < 0)
			return -1;
	c->count -= n;
	if (c->count)
		memmove(c->insns, c->insns + n, c->count * sizeof *c->insns);
	return 0;
}

/* Before a block is added: inserts rows of all of c->insns after a gap or other code, of most of it when there
 * are INSNS_HELD. */
static int put_before(struct code_rows *c, const struct ptr_code *b, bool goes_on, struct source_lines *lines,
		      struct pt_error *e)
{
	if (!c->count || (goes_on && c->count < INSNS_HELD))
		return 0;
	return put_insns(c, goes_on ? b : NULL, lines, e);
}

/* All blocks. Those that overlap, or follow one another, are counted together. */
static int put_blocks(struct code_rows *c, struct source_lines *lines, struct pt_error *e)
{
	struct ptr_code b;
	uint64_t end = 0;
	uint32_t first;
	int more;

	code_map_rewind(&c->map);
	while ((more = code_map_next(&c->map, &b, &first, e)) > 0) {
		bool goes_on = b.ip <= end && c->count && b.version == c->version;
		const struct insn *last;

		if (put_before(c, &b, goes_on, lines, e) < 0 || add_insns(c, &b, first, e) < 0)
			return -1;
		last = &c->insns[c->count - 1];
		if (!goes_on || last->ip + last->len > end)
			end = last->ip + last->len;
	}
	return more < 0 ? -1 : put_insns(c, NULL, lines, e);
}

int code_rows_finish(struct code_rows *c, struct source_lines *lines, struct pt_error *e)
{
	return put_blocks(c, lines, e) < 0 ? -1 : source_files_finish(c->files, lines, e);
}
