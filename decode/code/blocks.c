/* blocks.c - see blocks.h. */
#include "decode/code/graph.h"
#include "decode/code/huge_pages.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_INSNS_MAX 4096 /* a longer straight run is several blocks */
_Static_assert(BLOCK_INSNS_MAX * 15 <= UINT16_MAX, "pt_block.bytes");
_Static_assert(sizeof(struct pt_block) == 32, "half a cache line");

static bool is_branch(unsigned cls)
{
	return cls >= INSN_JCC && cls <= INSN_RSM;
}

static bool is_direct(unsigned cls)
{
	return cls >= INSN_JCC && cls <= INSN_CALL;
}

static uint32_t block_key(uint64_t ip, uint32_t code)
{
	uint64_t x = (ip ^ (uint64_t)code << 48) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(x >> 32);
}

static bool rehash(struct pt_graph *g)
{
	uint32_t mask = g->block_mask * 2 + 1, *hash = pt_table_create((size_t)mask + 1, sizeof *hash);

	if (!hash)
		return false;
	for (uint32_t b = 1; b < g->block_count; b++) {
		uint32_t i = block_key(g->blocks[b].ip, g->blocks[b].code) & mask;

		while (hash[i])
			i = (i + 1) & mask;
		hash[i] = b;
	}
	pt_table_destroy(g->block_hash, (size_t)g->block_mask + 1, sizeof *hash);
	g->block_hash = hash;
	g->block_mask = mask;
	return true;
}

/* As img_space_code(). */
static size_t code_at(struct pt_code *code, uint64_t ip, const uint8_t **ret)
{
	bool later;
	size_t n;

	if (!code->peeks)
		return img_space_code(code->space, ip, ret);
	n = img_space_peek(code->space, ip, ret, &later);
	if (later) {
		code->later = true;
		code->later_ip = ip;
	}
	return n;
}

/* As img_space_read(). */
static size_t read_at(struct pt_code *code, uint64_t ip, uint8_t *buffer, size_t n)
{
	size_t got = 0;

	while (got < n) {
		const uint8_t *p;
		size_t k = code_at(code, ip + got, &p);

		if (k == 0)
			break;
		if (k > n - got)
			k = n - got;
		memcpy(buffer + got, p, k);
		got += k;
	}
	return got;
}

static void read_begin(struct pt_code *code)
{
	if (code->peeks)
		img_store_read_begin(code->space->store);
}

static void read_end(struct pt_code *code)
{
	if (code->peeks)
		img_store_read_end(code->space->store);
}

/* The instruction at ip: its length, or an INSN_ error. The code may lie in two mappings. */
static int decode_at(struct pt_code *code, uint64_t ip, enum insn_mode mode, struct insn *ret)
{
	uint8_t bytes[16];

	return insn_decode(bytes, read_at(code, ip, bytes, sizeof bytes), mode, ret);
}

static void end_dead(struct pt_block *b, enum pt_dead why)
{
	b->dead = true;
	b->why = why & 3;
	b->bytes = b->term_bytes;
	b->cls = INSN_OTHER;
}

/*
 * Whether what is at ip is no code but what a kernel fills free memory for code with: int3, 16 of them
 * (Linux: execmem's and BPF's areas, of which a module's init code is a part again when its container is
 * written). One that is executed, a kprobe's or while text is patched, has the rest of an instruction
 * behind it.
 */
static bool is_filling(struct pt_code *code, uint64_t ip)
{
	uint8_t bytes[16];
	size_t n = read_at(code, ip, bytes, sizeof bytes), i = 0;

	while (i < n && bytes[i] == 0xcc)
		i++;
	return i == sizeof bytes;
}

/* Decodes straight code from b->ip on. */
static void decode(struct pt_block *b, struct pt_code *code)
{
	const uint8_t *p = NULL;
	size_t n = 0; /* bytes at p, which is ip's */

	for (;;) {
		uint64_t ip = pt_block_next_ip(b);
		struct insn in;
		int len;

		if (n == 0)
			n = code_at(code, ip, &p);
		len = n ? insn_decode(p, n, b->mode, &in) : INSN_TRUNCATED;
		if (len == INSN_TRUNCATED) {
			len = decode_at(code, ip, b->mode, &in);
			n = 0;
		} else if (len > 0) {
			p += len;
			n -= (size_t)len;
		}
		b->term_bytes = b->bytes;
		if (len < 0) {
			end_dead(b, len == INSN_TRUNCATED ? PT_DEAD_NO_CODE : PT_DEAD_BAD_INSN);
			return;
		}
		if (in.cls == INSN_INT && len == 1 && ip >> 63 && is_filling(code, ip)) {
			end_dead(b, PT_DEAD_NO_CODE);
			return;
		}
		if (is_direct(in.cls) && !insn_target_sure(&in, ip, b->mode)) {
			end_dead(b, PT_DEAD_SEGMENT);
			return;
		}
		b->insns++;
		b->mov_cr3 |= in.cls == INSN_MOV_CR3;
		b->bytes = (uint16_t)(b->bytes + len);
		if (is_branch(in.cls)) {
			b->cls = in.cls;
			b->rel0 = in.rel == 0;
			if (is_direct(in.cls))
				b->displacement =
				    (int32_t)(insn_target(&in, ip, b->mode) - pt_block_next_ip(b));
			return;
		}
		if (b->insns == BLOCK_INSNS_MAX) {
			b->cls = INSN_OTHER;
			return;
		}
	}
}

/* The same in any thread. */
static void decode_all(struct pt_graph *g, struct pt_block *b, struct pt_code *code)
{
	const struct pt_block empty = *b;

	for (;;) {
		bool later = code->later;

		code->later = false;
		read_begin(code);
		decode(b, code);
		read_end(code);
		if (!code->later || !g->read_later || !g->read_later(g->read_later_arg, code)) {
			code->later |= later;
			return;
		}
		code->later = later;
		*b = empty;
	}
}

struct pt_block *pt_graph_block(struct pt_graph *g, struct pt_code *code, uint64_t ip, enum insn_mode mode)
{
	uint32_t i = block_key(ip, code->id) & g->block_mask;
	struct pt_block *b;

	for (; g->block_hash[i]; i = (i + 1) & g->block_mask) {
		b = &g->blocks[g->block_hash[i]];
		if (b->ip == ip && b->code == code->id && b->mode == mode)
			return b;
	}
	if (g->block_count == g->block_room || g->full) {
		pt_graph_set_full(g);
		return NULL;
	}
	if (g->block_count > g->block_mask / 8 * 5) {
		if (!rehash(g)) {
			pt_graph_set_full(g);
			return NULL;
		}
		for (i = block_key(ip, code->id) & g->block_mask; g->block_hash[i];
		     i = (i + 1) & g->block_mask)
			;
	}
	pt_graph_watch_room(g, g->block_count, g->block_room);
	pt_graph_add_bytes(g, &g->code_bytes, sizeof *b + 2 * sizeof *g->block_hash);
	g->block_hash[i] = g->block_count;
	b = &g->blocks[g->block_count++];
	b->ip = ip;
	b->code = code->id;
	b->mode = mode & 3;
	decode_all(g, b, code);
	if (!code->peeks)
		img_space_use(code->space, b->ip, pt_block_next_ip(b));
	if (b->dead && b->why == PT_DEAD_NO_CODE)
		code->holes = true;
	return b;
}

struct pt_block *pt_graph_next_block(struct pt_graph *g, struct pt_block *b)
{
	struct pt_block *next;

	if (b->next)
		return &g->blocks[b->next];
	next = pt_graph_block(g, g->codes[b->code], pt_block_next_ip(b), b->mode);
	if (next)
		b->next = (uint32_t)(next - g->blocks);
	return next;
}

int pt_graph_insns_before(struct pt_graph *g, const struct pt_block *b, uint64_t ip)
{
	struct pt_code *code = g->codes[b->code];
	uint64_t at = b->ip;
	int n = 0, len = 0;

	read_begin(code);
	for (; at < ip; n++) {
		struct insn in;

		len = at < pt_block_term_ip(b) ? decode_at(code, at, b->mode, &in) : -1;
		if (len < 0)
			break;
		at += (uint64_t)len;
	}
	read_end(code);
	return len >= 0 && at == ip ? n : -1;
}

uint64_t pt_graph_find(struct pt_graph *g, const struct pt_block *b, enum insn_class cls, uint32_t *insns)
{
	struct pt_code *code = g->codes[b->code];
	uint64_t at = b->ip, found = 0;
	uint32_t n = 0;

	read_begin(code);
	while (at < pt_block_term_ip(b) && !found) {
		struct insn in;
		int len = decode_at(code, at, b->mode, &in);

		if (len < 0)
			break;
		if (++n > *insns && in.cls == cls) {
			*insns = n;
			found = at;
		}
		at += (uint64_t)len;
	}
	read_end(code);
	return found;
}
