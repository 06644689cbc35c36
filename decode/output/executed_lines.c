/* executed_lines.c - see executed_lines.h. */
#include "decode/output/executed_lines.h"

#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

/* Bytes of instructions that begin in a line, the last of which may end after it. */
enum { BYTES = PT_LINE_BYTES + PTR_INSN_BYTES - 1 };

struct pt_executed_line {
	uint64_t ip; /* of its first byte */
	uint32_t version, symbol;
	uint64_t starts, written;	 /* bit n: an instruction begins at ip + n; and is in a record */
	uint64_t known;			 /* bit n: of bytes; after the line, all of an instruction's */
	uint8_t lens[PT_LINE_BYTES / 2]; /* four bits each, by where they begin */
	uint8_t bits, known_after;
	uint8_t bytes[BYTES];
};

static uint64_t key(uint64_t ip, uint32_t version)
{
	return pt_hash_mix(ip ^ (uint64_t)version << 48);
}

static uint64_t key_of(const void *lines, uint32_t n)
{
	const struct pt_executed_line *line = (const struct pt_executed_line *)lines + (n - 1);

	return key(line->ip, line->version);
}

static uint64_t line_ip(uint64_t ip)
{
	return ip & ~(uint64_t)(PT_LINE_BYTES - 1);
}

static unsigned len_at(const struct pt_executed_line *line, unsigned at)
{
	return line->lens[at / 2] >> at % 2 * 4 & 15;
}

int pt_executed_lines_init(struct pt_executed_lines *l, struct pt_error *e)
{
	return pt_hash_init(&l->hash, 12, e);
}

void pt_executed_lines_deinit(struct pt_executed_lines *l)
{
	pt_hash_deinit(&l->hash);
	free(l->lines);
}

void pt_executed_lines_empty(struct pt_executed_lines *l)
{
	memset(l->hash.slots, 0, ((size_t)l->hash.mask + 1) * sizeof *l->hash.slots);
	l->hash.count = 0;
	l->count = l->last = 0;
}

static bool is_of(const struct pt_executed_line *line, const struct pt_executed_insn *insn)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): where there is a number there is an array */
	return line->ip == line_ip(insn->ip) && line->version == insn->version &&
	       line->symbol == insn->symbol && line->bits == insn->bits;
}

/* Its number; 0: no memory. */
static size_t add_line(struct pt_executed_lines *l, const struct pt_executed_insn *insn)
{
	const struct pt_executed_line line = {
	    .ip = line_ip(insn->ip), .version = insn->version, .symbol = insn->symbol, .bits = insn->bits};

	if (pt_array_grow(&l->lines, l->count, &l->room, NULL) < 0)
		return 0;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): where there is room there is an array */
	l->lines[l->count++] = line;
	if (pt_hash_insert(&l->hash, key_of(&line, 1), (uint32_t)l->count, key_of, l->lines, NULL) < 0) {
		l->count--;
		return 0;
	}
	return l->count;
}

/* The instruction's line; NULL: no memory. *ret_taken: another line of the version has an instruction there. */
static struct pt_executed_line *find(struct pt_executed_lines *l, const struct pt_executed_insn *insn,
				     bool *ret_taken)
{
	uint64_t ip = line_ip(insn->ip), bit = (uint64_t)1 << (insn->ip - ip);
	size_t found = 0;
	uint32_t n;

	*ret_taken = false;
	for (uint32_t i = pt_hash_first(&l->hash, key(ip, insn->version)); (n = l->hash.slots[i]);
	     i = pt_hash_next(&l->hash, i)) {
		const struct pt_executed_line *line = &l->lines[n - 1];

		if (is_of(line, insn))
			found = n;
		else
			*ret_taken |= line->ip == ip && line->version == insn->version && line->starts & bit;
	}
	if (!found)
		found = add_line(l, insn);
	if (!found)
		return NULL;
	l->last = found;
	return &l->lines[found - 1];
}

/* Whether the line has other bytes where the instruction is. */
static bool contradicts(const struct pt_executed_line *line, unsigned at, const struct pt_executed_insn *insn)
{
	for (unsigned i = 0; i < insn->len; i++) {
		unsigned n = at + i;
		bool known = n < PT_LINE_BYTES ? line->known >> n & 1 : n - PT_LINE_BYTES < line->known_after;

		if (known && line->bytes[n] != insn->bytes[i])
			return true;
	}
	return false;
}

static void put_insn(struct pt_executed_line *line, unsigned at, const struct pt_executed_insn *insn)
{
	unsigned end = at + insn->len;

	memcpy(line->bytes + at, insn->bytes, insn->len);
	line->lens[at / 2] |= (uint8_t)(insn->len << at % 2 * 4);
	line->starts |= (uint64_t)1 << at;
	line->known |= (((uint64_t)1 << insn->len) - 1) << at;
	if (end > PT_LINE_BYTES && end - PT_LINE_BYTES > line->known_after)
		line->known_after = (uint8_t)(end - PT_LINE_BYTES);
}

enum pt_executed_added pt_executed_lines_add(struct pt_executed_lines *l, const struct pt_executed_insn *insn)
{
	unsigned at = (unsigned)(insn->ip % PT_LINE_BYTES);
	struct pt_executed_line *line = l->last ? &l->lines[l->last - 1] : NULL;
	bool taken = false;

	if (!line || !is_of(line, insn) || !(line->starts >> at & 1)) {
		line = find(l, insn, &taken);
		if (!line)
			return PT_EXECUTED_NO_MEMORY;
	}
	if (line->starts >> at & 1)
		return len_at(line, at) == insn->len && !memcmp(line->bytes + at, insn->bytes, insn->len)
			   ? PT_EXECUTED_THERE
			   : PT_EXECUTED_DIFFERS;
	if (taken || contradicts(line, at, insn))
		return PT_EXECUTED_DIFFERS;
	put_insn(line, at, insn);
	return PT_EXECUTED_THERE;
}

/* ---- Records ------------------------------------------------------------------------------------------ */

/* A line's place among all: where its first instruction begins. */
struct place {
	uint64_t ip;
	uint32_t version, index;
};

static struct place place_of(const struct pt_executed_lines *l, uint32_t index)
{
	const struct pt_executed_line *line = &l->lines[index];

	return (struct place){line->ip + (line->starts ? (unsigned)__builtin_ctzll(line->starts) : 0),
			      line->version, index};
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->version != y->version)
		return x->version < y->version ? -1 : 1;
	if (x->ip != y->ip)
		return x->ip < y->ip ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* What is written: lines in order. */
struct sorted {
	struct pt_executed_line *lines;
	struct place *places;
	size_t count;
};

/* The line after that at *i, or itself, in which the record goes on at ip; NULL: it does not. */
static struct pt_executed_line *line_after(const struct sorted *s, size_t *i, const struct ptr_code *r,
					   uint64_t ip)
{
	for (size_t n = *i; n < s->count && s->places[n].version == r->version && s->places[n].ip <= ip;
	     n++) {
		struct pt_executed_line *next = &s->lines[s->places[n].index];

		if (next->ip == line_ip(ip) && next->symbol == r->symbol && next->bits == r->bits) {
			*i = n;
			return next;
		}
	}
	return NULL;
}

/* The instruction at `at` of the line at i, and those that follow it. */
static int put_code(const struct sorted *s, size_t i, unsigned at,
		    int (*put)(void *, const struct ptr_code *), void *arg)
{
	struct pt_executed_line *line = &s->lines[s->places[i].index];
	uint8_t bytes[PTR_CODE_INSNS * PTR_INSN_BYTES];
	struct ptr_code r = {.version = line->version,
			     .symbol = line->symbol,
			     .bits = line->bits,
			     .ip = line->ip + at,
			     .bytes = bytes};
	uint64_t ip = r.ip;
	size_t n = 0;

	while (line && (line->starts & ~line->written) >> (ip - line->ip) & 1 && r.count < PTR_CODE_INSNS) {
		unsigned len = len_at(line, (unsigned)(ip - line->ip));

		memcpy(bytes + n, line->bytes + (ip - line->ip), len);
		n += len;
		r.lens[r.count++] = (uint8_t)len;
		line->written |= (uint64_t)1 << (ip - line->ip);
		ip += len;
		if (ip - line->ip >= PT_LINE_BYTES)
			line = line_after(s, &i, &r, ip);
	}
	return put(arg, &r);
}

int pt_executed_lines_put(struct pt_executed_lines *l, int (*put)(void *arg, const struct ptr_code *r),
			  void *arg, bool *ret_memory)
{
	struct sorted s = {.lines = l->lines, .count = l->count};
	int r = 0;

	s.places = malloc((l->count + 1) * sizeof *s.places);
	*ret_memory = s.places;
	if (!s.places)
		return -1;
	for (size_t i = 0; i < l->count; i++)
		s.places[i] = place_of(l, (uint32_t)i);
	qsort(s.places, s.count, sizeof *s.places, by_place);
	for (size_t i = 0; i < s.count && r == 0; i++) {
		const struct pt_executed_line *line = &l->lines[s.places[i].index];
		uint64_t left;

		while (r == 0 && (left = line->starts & ~line->written))
			r = put_code(&s, i, (unsigned)__builtin_ctzll(left), put, arg);
	}
	free(s.places);
	return r;
}
