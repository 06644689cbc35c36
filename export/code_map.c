/* code_map.c - see code_map.h. */
#include "export/code_map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

enum { LINE_BYTES = 64 };

/* The first instruction of a block that begins in a line of LINE_BYTES. */
struct code_place {
	uint32_t block;
	uint16_t offset; /* of the instruction, from the block's ip */
	uint8_t insn;	 /* which of the block's it is, from 0 */
};

int code_map_init(struct code_map *m, struct pt_error *e)
{
	return pt_hash_init(&m->hash, 12, e);
}

void code_map_deinit(struct code_map *m)
{
	pt_hash_deinit(&m->hash);
	free(m->blocks);
	free(m->lens);
	free(m->block_of);
	free(m->bytes);
	free(m->places);
}

static uint64_t line_of(uint64_t ip)
{
	return ip / LINE_BYTES;
}

static uint64_t line_key(uint64_t ip, uint32_t version)
{
	return pt_hash_mix(line_of(ip) ^ (uint64_t)version << 48);
}

static uint64_t key_of_place(const void *map, uint32_t n)
{
	const struct code_map *m = map;
	const struct code_place *place = &m->places[n - 1];
	const struct code_block *b = &m->blocks[place->block];

	return line_key(b->ip + place->offset, b->version);
}

/* The block's instruction at ip, in the line that `place` begins; 0: it has none there. */
static uint32_t find_in(const struct code_map *m, const struct code_place *place, uint64_t ip)
{
	const struct code_block *b = &m->blocks[place->block];
	uint64_t at = b->ip + place->offset;
	uint32_t i = place->insn;

	for (; i < b->count && at < ip; i++)
		at += m->lens[b->first + i - 1];
	return i < b->count && at == ip ? b->first + i : 0;
}

uint32_t code_map_find(const struct code_map *m, uint32_t version, uint64_t ip)
{
	uint32_t n, found;

	for (uint32_t i = pt_hash_first(&m->hash, line_key(ip, version)); (n = m->hash.slots[i]);
	     i = pt_hash_next(&m->hash, i)) {
		const struct code_place *place = &m->places[n - 1];
		const struct code_block *b = &m->blocks[place->block];

		if (b->version != version || line_of(b->ip + place->offset) != line_of(ip))
			continue;
		found = find_in(m, place, ip);
		if (found)
			return found;
	}
	return 0;
}

static int add_place(struct code_map *m, const struct code_place *place, struct pt_error *e)
{
	if (pt_array_grow(&m->places, m->place_count, &m->place_room, e) < 0)
		return -1;
	m->places[m->place_count++] = *place;
	return pt_hash_insert(&m->hash, key_of_place(m, (uint32_t)m->place_count), (uint32_t)m->place_count,
			      key_of_place, m, e);
}

static int add_bytes(struct code_map *m, const uint8_t *bytes, size_t n, struct pt_error *e)
{
	while (m->held + n > m->bytes_room)
		if (pt_array_grow(&m->bytes, m->bytes_room, &m->bytes_room, e) < 0)
			return -1;
	memcpy(m->bytes + m->held, bytes, n);
	m->held += n;
	return 0;
}

/* The instruction at ip, which is the block's next one. */
static int add_insn(struct code_map *m, struct code_block *b, uint64_t ip, uint8_t len, struct pt_error *e)
{
	const struct code_place place = {
	    .block = (uint32_t)m->block_count, .offset = b->size, .insn = b->count};

	if (code_map_find(m, b->version, ip))
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "the record stream has the instruction at %" PRIx64 " twice", ip);
	if (m->count == UINT32_MAX - 1 || pt_array_grow(&m->lens, m->count, &m->len_room, e) < 0 ||
	    pt_array_grow(&m->block_of, m->count, &m->block_of_room, e) < 0)
		return pt_fail_no_memory(e, "the code");
	m->block_of[m->count] = place.block;
	m->lens[m->count++] = len;
	b->size = (uint16_t)(b->size + len);
	b->count++;
	m->blocks[place.block] = *b;
	if (place.insn && line_of(ip) == line_of(ip - m->lens[m->count - 2]))
		return 0;
	return add_place(m, &place, e);
}

int code_map_add(struct code_map *m, const struct ptr_code *code, struct pt_error *e)
{
	struct code_block b = {.ip = code->ip,
			       .bytes = m->held,
			       .version = code->version,
			       .symbol = code->symbol,
			       .first = (uint32_t)m->count + 1,
			       .bits = (uint8_t)code->bits};

	if (pt_array_grow(&m->blocks, m->block_count, &m->block_room, e) < 0)
		return -1;
	for (uint32_t i = 0; i < code->count; i++)
		if (add_insn(m, &b, code->ip + b.size, code->lens[i], e) < 0)
			return -1;
	m->block_count++;
	return add_bytes(m, code->bytes, b.size, e);
}
