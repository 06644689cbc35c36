/* code_map.c - see code_map.h. */
#include "export/code_map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

enum {
	LINE_BYTES = 64,
	PAGE_LINES = 64,
	RECORD_BYTES = 64, /* of lens and bytes */
	NUMBERS_APART = 16 /* those that block_of is of */
};

/* How many of paged.h's pages are in memory. */
enum {
	LINES_PAGES = 1 << 8,	   /* 4 MB */
	PLACES_PAGES = 1 << 12,	   /* 3 MB */
	BLOCKS_PAGES = 1 << 11,	   /* 6 MB */
	BLOCK_OF_PAGES = 1 << 8,   /* 1 MB */
	LENS_PAGES = 1 << 9,	   /* 2 MB */
	CODE_BYTES_PAGES = 1 << 10 /* 4 MB */
};

/* The code of one version at 4096 bytes of addresses. */
struct code_page {
	uint64_t address; /* less its lowest bits */
	uint32_t version, number;
};

/* In paged lines. Of each line its last place, 0 none. */
struct page_lines {
	uint32_t places[PAGE_LINES];
};

/* The first instruction of a block that begins in a line. */
struct place {
	uint32_t block;
	uint32_t before; /* the line's place before it, 0 none */
	uint16_t offset; /* of the instruction, from the block's ip */
	uint8_t insn;	 /* which of the block's it is, from 0 */
};

struct block {
	uint64_t ip;
	uint64_t bytes, lens; /* where they begin */
	uint32_t version, symbol;
	uint32_t first; /* number of its first instruction */
	uint16_t size;	/* bytes */
	uint8_t count, bits;
};

/* In paged block_of. */
struct blocks_of {
	uint32_t blocks[RECORD_BYTES / sizeof(uint32_t)];
};

int code_map_init(struct code_map *m, const int scratch[CODE_MAP_SCRATCHES], struct pt_error *e)
{
	*m = (struct code_map){0};
	return pt_hash_init(&m->by_address, 8, e) < 0 ||
		       paged_init(&m->lines, scratch[0], sizeof(struct page_lines), LINES_PAGES, e) < 0 ||
		       paged_init(&m->places, scratch[1], sizeof(struct place), PLACES_PAGES, e) < 0 ||
		       paged_init(&m->blocks, scratch[2], sizeof(struct block), BLOCKS_PAGES, e) < 0 ||
		       paged_init(&m->block_of, scratch[3], sizeof(struct blocks_of), BLOCK_OF_PAGES, e) <
			   0 ||
		       paged_init(&m->lens, scratch[4], RECORD_BYTES, LENS_PAGES, e) < 0 ||
		       paged_init(&m->bytes, scratch[5], RECORD_BYTES, CODE_BYTES_PAGES, e) < 0
		   ? -1
		   : 0;
}

void code_map_deinit(struct code_map *m)
{
	pt_hash_deinit(&m->by_address);
	free(m->pages);
	paged_deinit(&m->lines);
	paged_deinit(&m->places);
	paged_deinit(&m->blocks);
	paged_deinit(&m->block_of);
	paged_deinit(&m->lens);
	paged_deinit(&m->bytes);
}

/* ---- Pages and lines -------------------------------------------------------------------------------- */

static uint64_t page_of(uint64_t ip)
{
	return ip / (LINE_BYTES * PAGE_LINES);
}

static unsigned line_of(uint64_t ip)
{
	return ip / LINE_BYTES % PAGE_LINES;
}

static uint64_t page_key(uint64_t address, uint32_t version)
{
	return pt_hash_mix(address ^ (uint64_t)version << 48);
}

static uint64_t key_of_page(const void *pages, uint32_t n)
{
	const struct code_page *page = (const struct code_page *)pages + n - 1;

	return page_key(page->address, page->version);
}

/* The page's number; 0: there is none. */
static uint32_t find_page(const struct code_map *m, uint32_t version, uint64_t ip)
{
	uint64_t address = page_of(ip);
	uint32_t n;

	for (uint32_t i = pt_hash_first(&m->by_address, page_key(address, version));
	     (n = m->by_address.slots[i]); i = pt_hash_next(&m->by_address, i))
		if (m->pages[n - 1].address == address && m->pages[n - 1].version == version)
			return n;
	return 0;
}

/* The same, made if need be. 0: no memory. */
static uint32_t get_page(struct code_map *m, uint32_t version, uint64_t ip, struct pt_error *e)
{
	uint32_t n = find_page(m, version, ip);

	if (n)
		return n;
	n = (uint32_t)m->page_count + 1;
	if (pt_array_grow(&m->pages, m->page_count, &m->page_room, e) < 0)
		return 0;
	m->pages[n - 1] = (struct code_page){.address = page_of(ip), .version = version, .number = n};
	if (pt_hash_insert(&m->by_address, key_of_page(m->pages, n), n, key_of_page, m->pages, e) < 0)
		return 0;
	m->page_count++;
	return n;
}

/* ---- Finding ---------------------------------------------------------------------------------------- */

static const uint8_t *lens_of(struct code_map *m, const struct block *b, struct pt_error *e)
{
	const uint8_t *record = paged_read(&m->lens, b->lens / RECORD_BYTES, e);

	return record ? record + b->lens % RECORD_BYTES : NULL;
}

/* *ret: the block's instruction at ip, in the line that `place` begins; 0: it has none there. */
static int find_in(struct code_map *m, const struct place *place, uint64_t ip, uint32_t *ret,
		   struct pt_error *e)
{
	const struct block *b = paged_read(&m->blocks, place->block, e);
	const uint8_t *lens = b ? lens_of(m, b, e) : NULL;
	uint32_t i = place->insn;
	uint64_t at;

	if (!lens)
		return -1;
	for (at = b->ip + place->offset; i < b->count && at < ip; i++)
		at += lens[i];
	*ret = i < b->count && at == ip ? b->first + i : 0;
	return 0;
}

int code_map_find(struct code_map *m, uint32_t version, uint64_t ip, uint32_t *ret, struct pt_error *e)
{
	uint32_t page = find_page(m, version, ip);
	const struct page_lines *lines;

	*ret = 0;
	if (!page)
		return 0;
	if (!(lines = paged_read(&m->lines, page, e)))
		return -1;
	for (uint32_t n = lines->places[line_of(ip)]; n && !*ret;) {
		const struct place *place = paged_read(&m->places, n, e);

		if (!place || find_in(m, place, ip, ret, e) < 0)
			return -1;
		n = place->before;
	}
	return 0;
}

/* The block of an instruction, which there is. NULL: PT_ERR_IO. */
static const struct block *block_of(struct code_map *m, uint32_t number, struct pt_error *e)
{
	uint32_t i = (number - 1) / NUMBERS_APART;
	size_t each = sizeof(struct blocks_of) / sizeof(uint32_t);
	const struct blocks_of *of = paged_read(&m->block_of, i / each, e);
	const struct block *b;
	uint32_t n;

	if (!of)
		return NULL;
	for (n = of->blocks[i % each]; (b = paged_read(&m->blocks, n, e)); n++)
		if (number - b->first < b->count)
			return b;
	return NULL;
}

int code_map_walk(struct code_map *m, uint32_t number, uint32_t steps, uint32_t *ret, struct pt_error *e)
{
	*ret = number;
	while (steps) {
		const struct block *b = block_of(m, *ret, e);
		uint32_t rest, next;

		if (!b)
			return -1;
		rest = b->first + b->count - 1 - *ret;
		if (steps <= rest) {
			*ret += steps;
			return 0;
		}
		*ret += rest;
		steps -= rest;
		if (code_map_find(m, b->version, b->ip + b->size, &next, e) < 0)
			return -1;
		if (!next)
			return 0;
		*ret = next;
		steps--;
	}
	return 0;
}

/* ---- Adding ----------------------------------------------------------------------------------------- */

/* Where a block comes into a line. */
static int add_place(struct code_map *m, struct place *place, uint32_t version, uint64_t ip,
		     struct pt_error *e)
{
	uint32_t page = get_page(m, version, ip, e), *last;
	struct page_lines *lines = page ? paged_at(&m->lines, page, e) : NULL;
	struct place *to;

	if (!lines)
		return -1;
	last = &lines->places[line_of(ip)];
	place->before = *last;
	*last = (uint32_t)++m->place_count;
	if (!(to = paged_at(&m->places, m->place_count, e)))
		return -1;
	*to = *place;
	return 0;
}

/* The block, all of whose instructions are new, comes into each line once. */
static int add_places(struct code_map *m, const struct block *b, const uint8_t *lens, struct pt_error *e)
{
	struct place place = {.block = (uint32_t)m->block_count};
	uint64_t ip = b->ip;

	for (; place.insn < b->count; ip += lens[place.insn++]) {
		place.offset = (uint16_t)(ip - b->ip);
		if ((!place.insn || ip / LINE_BYTES != (ip - lens[place.insn - 1]) / LINE_BYTES) &&
		    add_place(m, &place, b->version, ip, e) < 0)
			return -1;
	}
	return 0;
}

static int check_new(struct code_map *m, const struct ptr_code *code, struct pt_error *e)
{
	uint64_t ip = code->ip;
	uint32_t found;

	for (uint32_t i = 0; i < code->count; ip += code->lens[i++]) {
		if (code_map_find(m, code->version, ip, &found, e) < 0)
			return -1;
		if (found)
			return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				       "the record stream has the instruction at %" PRIx64 " twice", ip);
	}
	return 0;
}

/* In one record, so that they can be read where they are. */
static int add_lens(struct code_map *m, struct block *b, const uint8_t *lens, struct pt_error *e)
{
	uint64_t in_record = m->held_lens % RECORD_BYTES;
	uint8_t *record;

	if (in_record + b->count > RECORD_BYTES)
		m->held_lens += RECORD_BYTES - in_record;
	b->lens = m->held_lens;
	if (!(record = paged_at(&m->lens, b->lens / RECORD_BYTES, e)))
		return -1;
	memcpy(record + b->lens % RECORD_BYTES, lens, b->count);
	m->held_lens += b->count;
	return 0;
}

static int add_bytes(struct code_map *m, const uint8_t *bytes, size_t n, struct pt_error *e)
{
	while (n) {
		uint64_t at = m->held_bytes % RECORD_BYTES;
		size_t part = n < RECORD_BYTES - at ? n : RECORD_BYTES - at;
		uint8_t *record = paged_at(&m->bytes, m->held_bytes / RECORD_BYTES, e);

		if (!record)
			return -1;
		memcpy(record + at, bytes, part);
		m->held_bytes += part;
		bytes += part;
		n -= part;
	}
	return 0;
}

/* The block has the instructions from b->first on. */
static int add_numbers(struct code_map *m, const struct block *b, struct pt_error *e)
{
	uint32_t i = (b->first - 1 + NUMBERS_APART - 1) / NUMBERS_APART;
	size_t each = sizeof(struct blocks_of) / sizeof(uint32_t);

	for (; i * NUMBERS_APART < b->first - 1 + b->count; i++) {
		struct blocks_of *of = paged_at(&m->block_of, i / each, e);

		if (!of)
			return -1;
		of->blocks[i % each] = (uint32_t)m->block_count;
	}
	return 0;
}

int code_map_add(struct code_map *m, const struct ptr_code *code, struct pt_error *e)
{
	struct block b = {.ip = code->ip,
			  .bytes = m->held_bytes,
			  .version = code->version,
			  .symbol = code->symbol,
			  .first = (uint32_t)m->count + 1,
			  .count = (uint8_t)code->count,
			  .bits = (uint8_t)code->bits},
		     *to;

	for (uint32_t i = 0; i < code->count; i++)
		b.size = (uint16_t)(b.size + code->lens[i]);
	if (m->count > UINT32_MAX - 2 * PTR_CODE_INSNS)
		return pt_fail_no_memory(e, "the code");
	if (check_new(m, code, e) < 0 || add_lens(m, &b, code->lens, e) < 0 ||
	    add_bytes(m, code->bytes, b.size, e) < 0 || add_numbers(m, &b, e) < 0 ||
	    !(to = paged_at(&m->blocks, m->block_count, e)))
		return -1;
	*to = b;
	if (add_places(m, &b, code->lens, e) < 0)
		return -1;
	m->block_count++;
	m->count += code->count;
	return 0;
}

/* ---- In order --------------------------------------------------------------------------------------- */

static int by_version_and_address(const void *a, const void *b)
{
	const struct code_page *x = a, *y = b;

	if (x->version != y->version)
		return x->version < y->version ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

void code_map_rewind(struct code_map *m)
{
	if (m->page_count)
		qsort(m->pages, m->page_count, sizeof *m->pages, by_version_and_address);
	m->at_page = 0;
	m->at_line = 0;
	m->at = LINE_BYTES;
}

/* Takes the blocks that begin in the line. */
static int take_line(struct code_map *m, uint32_t last_place, struct pt_error *e)
{
	memset(m->in_line, 0, sizeof m->in_line);
	m->at = 0;
	for (uint32_t n = last_place; n;) {
		const struct place *place = paged_read(&m->places, n, e);
		const struct block *b = place ? paged_read(&m->blocks, place->block, e) : NULL;

		if (!b)
			return -1;
		if (!place->insn)
			m->in_line[b->ip % LINE_BYTES] = place->block + 1;
		n = place->before;
	}
	return 0;
}

/* 1, or 0: there is none; -1. */
static int next_line(struct code_map *m, struct pt_error *e)
{
	for (; m->at_page < m->page_count; m->at_page++, m->at_line = 0) {
		const struct page_lines *lines = paged_read(&m->lines, m->pages[m->at_page].number, e);

		if (!lines)
			return -1;
		while (m->at_line < PAGE_LINES)
			if (lines->places[m->at_line++])
				return take_line(m, lines->places[m->at_line - 1], e) < 0 ? -1 : 1;
	}
	return 0;
}

static int read_bytes(struct code_map *m, uint64_t from, uint8_t *to, size_t n, struct pt_error *e)
{
	while (n) {
		uint64_t at = from % RECORD_BYTES;
		size_t part = n < RECORD_BYTES - at ? n : RECORD_BYTES - at;
		const uint8_t *record = paged_read(&m->bytes, from / RECORD_BYTES, e);

		if (!record)
			return -1;
		memcpy(to, record + at, part);
		to += part;
		from += part;
		n -= part;
	}
	return 0;
}

static int read_block(struct code_map *m, uint32_t number, struct ptr_code *ret, uint32_t *ret_first,
		      struct pt_error *e)
{
	const struct block *b = paged_read(&m->blocks, number, e);
	const uint8_t *lens = b ? lens_of(m, b, e) : NULL;

	if (!lens)
		return -1;
	*ret = (struct ptr_code){.version = b->version,
				 .symbol = b->symbol,
				 .bits = b->bits,
				 .ip = b->ip,
				 .count = b->count,
				 .bytes = m->read};
	memcpy(ret->lens, lens, b->count);
	*ret_first = b->first;
	return read_bytes(m, b->bytes, m->read, b->size, e);
}

int code_map_next(struct code_map *m, struct ptr_code *ret, uint32_t *ret_first, struct pt_error *e)
{
	for (;;) {
		int r;

		while (m->at < LINE_BYTES)
			if (m->in_line[m->at++])
				return read_block(m, m->in_line[m->at - 1] - 1, ret, ret_first, e) < 0 ? -1
												       : 1;
		r = next_line(m, e);
		if (r <= 0)
			return r;
	}
}
