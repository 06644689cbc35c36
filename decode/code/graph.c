/* graph.c - see graph.h: blocks, positions and arcs. Edges and paths are in paths.c. */
#include "decode/code/graph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Room is reserved, not used: arrays that never move let the hot loop keep pointers. */
#define ROOM_POSITIONS	(4u << 20)
#define ROOM_BLOCKS	(4u << 20)
#define ROOM_EDGES	(8u << 20)
#define ROOM_PATHS	(8u << 20)
#define ROOM_PATH_EDGES (64u << 20)

#define LIMIT_MIN	1024 /* a graph that does not hold the flows' return addresses would be crowded at once */

#define BLOCK_INSNS_MAX 4096 /* a longer straight run is several blocks */
#define CHAIN_EDGES	3 /* direct branches before a decision in one arc: one place is the decision's own */

static void *reserve(size_t n, size_t size)
{
	void *p =
	    mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* Walked at random: without it a TLB miss goes with every cache miss. */
	madvise(p, n * size, MADV_HUGEPAGE);
	return p;
}

void *pt_table_create(size_t n, size_t size)
{
	size_t bytes = n * size;
	void *p;

	if (bytes < 2u << 20)
		return calloc(n, size);
	p = aligned_alloc(2u << 20, bytes); /* a power of two */
	if (!p)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	return memset(p, 0, bytes);
}

static void release(void *p, size_t n, size_t size)
{
	if (p)
		munmap(p, n * size);
}

/* Zeroed again, and the memory is given back. */
static void wipe(void *p, size_t n, size_t size)
{
	size_t page = 4096;

	madvise(p, (n * size + page - 1) / page * page, MADV_DONTNEED);
}

void pt_graph_limit(struct pt_graph *g, size_t bytes)
{
	/* As many blocks, positions and paths, of 12 edges each; with their hashes. */
	size_t each = sizeof *g->positions + sizeof *g->edge_lists + 1 + sizeof *g->where +
		      sizeof *g->blocks + 2 * sizeof(uint32_t) + sizeof *g->paths + 2 * sizeof *g->path_hash +
		      24 * sizeof(uint32_t) + 2 * (sizeof *g->edges + 2 * sizeof(uint32_t));
	size_t n = bytes / each;

	if (n < LIMIT_MIN)
		n = LIMIT_MIN;
	if (n > ROOM_POSITIONS / 2)
		n = ROOM_POSITIONS / 2;
	g->position_limit = g->block_limit = g->path_limit = (uint32_t)n;
	g->path_edge_limit = (uint32_t)(12 * n);
	g->edge_limit = (uint32_t)(2 * n);
}

void pt_graph_sum(const struct pt_graph *g, struct pt_graph_sums *ret)
{
	*ret = g->sums;
	for (uint32_t i = 1; i < g->path_count && !g->bare; i++) {
		const struct pt_path *path = &g->paths[i];

		ret->not_taken += path->not_taken * path->times;
		if (!g->path_stats)
			continue;
		ret->hash += g->path_stats[i].hash * path->times;
		for (int k = 0; k < PTR_KINDS; k++)
			ret->by_kind[k] += g->path_stats[i].by_kind[k] * path->times;
	}
}

void pt_graph_recycle(struct pt_graph *g)
{
	struct pt_graph_sums sums;

	pt_graph_sum(g, &sums);
	g->sums = sums;
	wipe(g->positions, g->position_count, sizeof *g->positions);
	wipe(g->edge_lists, g->position_count, sizeof *g->edge_lists);
	wipe(g->decisions, g->position_count, sizeof *g->decisions);
	wipe(g->where, g->position_count, sizeof *g->where);
	wipe(g->blocks, g->block_count, sizeof *g->blocks);
	wipe(g->paths, g->path_count, sizeof *g->paths);
	if (!g->unnumbered)
		wipe(g->path_counts, g->path_count, sizeof *g->path_counts);
	wipe(g->path_edges, g->path_edge_count, sizeof *g->path_edges);
	wipe(g->path_insns, g->path_edge_count, sizeof *g->path_insns);
	wipe(g->path_roles, g->path_edge_count, sizeof *g->path_roles);
	if (g->path_stats)
		wipe(g->path_stats, g->path_count, sizeof *g->path_stats);
	wipe(g->path_memos, PT_PATH_MEMOS, sizeof *g->path_memos);
	wipe(g->packet_memos, PT_PACKET_MEMOS, sizeof *g->packet_memos);
	memset(g->jumps, 0, PT_JUMPS * sizeof *g->jumps);
	memset(g->block_hash, 0, ((size_t)g->block_mask + 1) * sizeof *g->block_hash);
	memset(g->path_hash, 0, ((size_t)g->path_mask + 1) * sizeof *g->path_hash);
	g->position_count = g->block_count = g->path_count = 1;
	g->path_edge_count = 0;
	if (g->edge_count >= g->edge_limit) {
		wipe(g->edges, g->edge_count, sizeof *g->edges);
		memset(g->edge_hash, 0, ((size_t)g->edge_mask + 1) * sizeof *g->edge_hash);
		g->edge_count = 1;
	}
	g->cache_full = false;
}

int pt_graph_count_stats(struct pt_graph *g, struct pt_error *e)
{
	g->path_stats = reserve(ROOM_PATHS, sizeof *g->path_stats);
	if (!g->path_stats)
		return pt_fail_no_memory(e, "statistics");
	return 0;
}

int pt_graph_init(struct pt_graph *g, struct pt_error *e)
{
	memset(g, 0, sizeof *g);
	g->position_room = ROOM_POSITIONS;
	g->block_room = ROOM_BLOCKS;
	g->edge_room = ROOM_EDGES;
	g->path_room = ROOM_PATHS;
	g->path_edge_room = ROOM_PATH_EDGES;
	g->positions = reserve(ROOM_POSITIONS, sizeof *g->positions);
	g->edge_lists = reserve(ROOM_POSITIONS, sizeof *g->edge_lists);
	g->decisions = reserve(ROOM_POSITIONS, sizeof *g->decisions);
	if (g->decisions)
		madvise(g->decisions, ROOM_POSITIONS, MADV_NOHUGEPAGE); /* few pages */
	g->where = reserve(ROOM_POSITIONS, sizeof *g->where);
	g->jumps = calloc(PT_JUMPS, sizeof *g->jumps);
	g->path_memos = reserve(PT_PATH_MEMOS, sizeof *g->path_memos);
	g->packet_memos = reserve(PT_PACKET_MEMOS, sizeof *g->packet_memos);
	g->blocks = reserve(ROOM_BLOCKS, sizeof *g->blocks);
	g->edges = reserve(ROOM_EDGES, sizeof *g->edges);
	g->paths = reserve(ROOM_PATHS, sizeof *g->paths);
	g->path_counts = reserve(ROOM_PATHS, sizeof *g->path_counts);
	if (g->path_counts) /* few pages */
		madvise(g->path_counts, ROOM_PATHS, MADV_NOHUGEPAGE);
	g->path_edges = reserve(ROOM_PATH_EDGES, sizeof *g->path_edges);
	g->path_insns = reserve(ROOM_PATH_EDGES, sizeof *g->path_insns);
	g->path_roles = reserve(ROOM_PATH_EDGES, sizeof *g->path_roles);
	g->block_mask = g->edge_mask = g->path_mask = (1u << 12) - 1;
	g->block_hash = calloc(g->block_mask + 1, sizeof *g->block_hash);
	g->edge_hash = calloc(g->edge_mask + 1, sizeof *g->edge_hash);
	g->path_hash = calloc(g->path_mask + 1, sizeof *g->path_hash);
	pt_graph_limit(g, PT_GRAPH_BYTES);
	g->position_count = g->block_count = g->edge_count = g->path_count = 1; /* 0 is none */
	if (!g->positions || !g->edge_lists || !g->decisions || !g->where || !g->jumps || !g->path_memos ||
	    !g->packet_memos || !g->blocks || !g->edges || !g->paths || !g->path_counts || !g->path_edges ||
	    !g->path_insns || !g->path_roles || !g->block_hash || !g->edge_hash || !g->path_hash) {
		pt_graph_deinit(g);
		return pt_fail_no_memory(e, "the code graph");
	}
	return 0;
}

void pt_graph_deinit(struct pt_graph *g)
{
	release(g->positions, g->position_room, sizeof *g->positions);
	release(g->edge_lists, g->position_room, sizeof *g->edge_lists);
	release(g->decisions, g->position_room, sizeof *g->decisions);
	release(g->where, g->position_room, sizeof *g->where);
	release(g->path_memos, PT_PATH_MEMOS, sizeof *g->path_memos);
	release(g->packet_memos, PT_PACKET_MEMOS, sizeof *g->packet_memos);
	release(g->blocks, g->block_room, sizeof *g->blocks);
	release(g->edges, g->edge_room, sizeof *g->edges);
	release(g->paths, g->path_room, sizeof *g->paths);
	release(g->path_counts, g->path_room, sizeof *g->path_counts);
	release(g->path_edges, g->path_edge_room, sizeof *g->path_edges);
	release(g->path_insns, g->path_edge_room, sizeof *g->path_insns);
	release(g->path_roles, g->path_edge_room, sizeof *g->path_roles);
	release(g->path_stats, g->path_room, sizeof *g->path_stats);
	free(g->jumps);
	free(g->block_hash);
	free(g->edge_hash);
	free(g->path_hash);
	for (uint32_t i = g->code_count; i-- > 0;)
		if (g->codes[i]->uid == i)
			free(g->codes[i]);
	free(g->codes);
	memset(g, 0, sizeof *g);
}

static bool code_add(struct pt_graph *g, struct pt_code *code)
{
	struct pt_code **codes = realloc(g->codes, (g->code_count + 1) * sizeof(struct pt_code *));

	if (!codes)
		return false;
	g->codes = codes;
	code->generation = code->space->generation;
	code->changes = code->space->changes;
	code->holes = false;
	code->id = g->code_count;
	codes[g->code_count++] = code;
	return true;
}

struct pt_code *pt_graph_code(struct pt_graph *g, struct img_space *space)
{
	struct pt_code *code = calloc(1, sizeof *code);

	if (!code)
		return NULL;
	code->space = space;
	code->uid = g->code_count;
	if (!code_add(g, code)) {
		free(code);
		return NULL;
	}
	return code;
}

bool pt_code_refresh(struct pt_graph *g, struct pt_code *code)
{
	if (code->generation == code->space->generation &&
	    !(code->holes && code->changes != code->space->changes))
		return false;
	/* A new id: all lookups are keyed by it, so the old blocks and positions are out of reach. */
	if (!code_add(g, code))
		g->full = true;
	return true;
}

enum ptr_kind pt_kind_of(enum insn_class cls)
{
	switch (cls) {
	case INSN_JCC: return PTR_JCC;
	case INSN_JMP: return PTR_JMP;
	case INSN_CALL: return PTR_CALL_DIR;
	case INSN_JMP_IND: return PTR_JMP_IND;
	case INSN_CALL_IND: return PTR_CALL_IND;
	case INSN_RET: return PTR_RET;
	case INSN_SYSCALL: return PTR_SYSCALL;
	case INSN_SYSRET: return PTR_SYSRET;
	case INSN_INT: return PTR_INT;
	case INSN_IRET: return PTR_IRET;
	case INSN_JMP_FAR: return PTR_JMP_FAR;
	case INSN_CALL_FAR: return PTR_CALL_FAR;
	case INSN_RET_FAR: return PTR_RET_FAR;
	case INSN_ERET: return PTR_ERET;
	case INSN_RSM: return PTR_RSM;
	case INSN_VMENTRY: return PTR_VMENTRY;
	default: return PTR_TRACE_END;
	}
}

static bool is_branch(unsigned cls)
{
	return cls >= INSN_JCC && cls <= INSN_RSM;
}

static uint32_t mix(uint64_t ip, uint32_t code)
{
	uint64_t x = (ip ^ (uint64_t)code << 48) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(x >> 32);
}

static bool rehash_blocks(struct pt_graph *g)
{
	uint32_t mask = g->block_mask * 2 + 1, *hash = pt_table_create((size_t)mask + 1, sizeof *hash);

	if (!hash)
		return false;
	for (uint32_t b = 1; b < g->block_count; b++) {
		uint32_t i = mix(g->blocks[b].ip, g->blocks[b].code) & mask;

		while (hash[i])
			i = (i + 1) & mask;
		hash[i] = b;
	}
	free(g->block_hash);
	g->block_hash = hash;
	g->block_mask = mask;
	return true;
}

/* Decodes straight code from b->ip on. */
static void fill(struct pt_block *b, struct img_space *space)
{
	uint64_t ip = b->ip;
	const uint8_t *p = NULL;
	size_t n = 0;

	for (;;) {
		struct insn in;
		int len;

		if (n == 0)
			n = img_space_code(space, ip, &p);
		len = n ? insn_decode(p, n, b->mode, &in) : INSN_TRUNCATED;
		if (len == INSN_TRUNCATED) {
			/* It may go on in the next mapping. */
			uint8_t bytes[16];
			size_t got = img_space_read(space, ip, bytes, sizeof bytes);

			len = insn_decode(bytes, got, b->mode, &in);
			n = 0;
		} else if (len > 0) {
			p += len;
			n -= (size_t)len;
		}
		b->term_ip = ip;
		if (len < 0 ||
		    (is_branch(in.cls) && in.cls <= INSN_CALL && !insn_target_sure(&in, ip, b->mode))) {
			b->dead = true;
			b->why = len == INSN_TRUNCATED ? PT_DEAD_NO_CODE
				 : len < 0	       ? PT_DEAD_BAD_INSN
						       : PT_DEAD_SEGMENT;
			b->next_ip = ip;
			b->cls = INSN_OTHER;
			return;
		}
		b->insns++;
		ip += (uint64_t)len;
		if (b->mode != INSN_64)
			ip &= 0xffffffff;
		if (is_branch(in.cls)) {
			b->cls = in.cls;
			b->next_ip = ip;
			b->rel0 = in.rel == 0;
			if (in.cls <= INSN_CALL)
				b->target = insn_target(&in, b->term_ip, b->mode);
			return;
		}
		if (b->insns == BLOCK_INSNS_MAX) {
			b->cls = INSN_OTHER;
			b->next_ip = ip;
			return;
		}
	}
}

struct pt_block *pt_graph_block(struct pt_graph *g, struct pt_code *code, uint64_t ip, enum insn_mode mode)
{
	uint32_t i = mix(ip, code->id) & g->block_mask;
	struct pt_block *b;

	for (; g->block_hash[i]; i = (i + 1) & g->block_mask) {
		b = &g->blocks[g->block_hash[i]];
		if (b->ip == ip && b->code == code->id && b->mode == mode)
			return b;
	}
	if (g->block_count == g->block_room || g->full) {
		g->full = true;
		return NULL;
	}
	if (g->block_count > g->block_mask / 8 * 5) {
		if (!rehash_blocks(g)) {
			g->full = true;
			return NULL;
		}
		for (i = mix(ip, code->id) & g->block_mask; g->block_hash[i]; i = (i + 1) & g->block_mask)
			;
	}
	if (g->block_count >= g->block_limit)
		g->cache_full = true;
	g->block_hash[i] = g->block_count;
	b = &g->blocks[g->block_count++];
	b->ip = ip;
	b->code = code->id;
	b->mode = (uint8_t)mode;
	fill(b, code->space);
	img_space_use(code->space, b->ip, b->next_ip);
	if (b->dead && b->why == PT_DEAD_NO_CODE)
		code->holes = true;
	return b;
}

struct pt_block *pt_graph_next_block(struct pt_graph *g, struct pt_block *b)
{
	struct pt_block *next;

	if (b->next)
		return &g->blocks[b->next];
	next = pt_graph_block(g, g->codes[b->code], b->next_ip, b->mode);
	if (next)
		b->next = (uint32_t)(next - g->blocks);
	return next;
}

int pt_graph_insns_before(struct pt_graph *g, const struct pt_block *b, uint64_t ip)
{
	struct img_space *space = g->codes[b->code]->space;
	uint64_t at = b->ip;
	int n = 0;

	while (at < ip) {
		uint8_t bytes[16];
		struct insn in;
		int len = insn_decode(bytes, img_space_read(space, at, bytes, sizeof bytes), b->mode, &in);

		if (len < 0 || at >= b->term_ip)
			return -1;
		at += (uint64_t)len;
		n++;
	}
	return at == ip ? n : -1;
}

uint64_t pt_graph_find(struct pt_graph *g, const struct pt_block *b, enum insn_class cls, uint32_t *insns)
{
	struct img_space *space = g->codes[b->code]->space;
	uint64_t at = b->ip, found;
	uint32_t n = 0;

	while (at < b->term_ip) {
		uint8_t bytes[16];
		struct insn in;
		int len = insn_decode(bytes, img_space_read(space, at, bytes, sizeof bytes), b->mode, &in);

		if (len < 0)
			break;
		found = at;
		at += (uint64_t)len;
		if (++n > *insns && in.cls == cls) {
			*insns = n;
			return found;
		}
	}
	return 0;
}

static bool backward(uint64_t from, uint64_t to)
{
	return to <= from;
}

/* Runs from position p's address to its decision, and fills it. */
static void build(struct pt_graph *g, struct pt_code *code, uint32_t p)
{
	struct pt_where *w = &g->where[p];
	union pt_position *position = &g->positions[p];
	union pt_edge_list *edge_list = &g->edge_lists[p];
	struct pt_arc arc = {.decision = PT_D_UNRESOLVED};
	uint32_t edges[4] = {0};
	uint8_t decision = PT_D_DEAD;
	struct pt_block *b = pt_graph_block(g, code, w->ip, w->mode);
	uint64_t push_ip = 0;
	uint32_t edge;

	w->why = PT_DEAD_NO_CODE;
	w->decision_ip = w->ip;
	while (b) {
		if (arc.insns > (1u << 20)) {
			decision = PT_D_CONT;
			w->decision_next = b->ip;
			break;
		}
		w->decision_ip = b->term_ip;
		w->decision_next = b->next_ip;
		w->cls = b->cls;
		if (b->dead) {
			w->why = b->why;
			arc.insns += b->insns;
			break;
		}
		if (b->cls == INSN_JMP || b->cls == INSN_CALL) {
			bool pushes = b->cls == INSN_CALL && !b->rel0;

			if (arc.n_edges == CHAIN_EDGES || (pushes && arc.rise)) {
				decision = PT_D_CONT;
				w->decision_next = b->ip;
				break;
			}
			arc.insns += b->insns;
			edge = pt_graph_edge(g, code, b->term_ip, b->target, pt_kind_of(b->cls));
			if (!edge)
				break;
			edges[arc.n_edges++] = edge;
			arc.backward = backward(b->term_ip, b->target);
			if (pushes) {
				push_ip = b->next_ip;
				arc.rise = 1;
			}
			b = pt_graph_block(g, code, b->target, w->mode);
			if (b && b->ip == code->switch_ip) {
				decision = PT_D_CONT;
				w->decision_next = b->ip;
				break;
			}
			continue;
		}
		arc.insns += b->insns;
		if (b->cls == INSN_OTHER) {
			b = pt_graph_next_block(g, b);
			continue;
		}
		if (b->cls == INSN_JCC) {
			decision = PT_D_JCC;
			w->target = b->target;
		} else if (b->cls == INSN_RET) {
			decision = PT_D_RET;
		} else {
			decision = b->cls == INSN_JMP_IND || b->cls == INSN_CALL_IND ? PT_D_IND : PT_D_FAR;
		}
		break;
	}
	g->decisions[p] = decision;
	if (arc.rise)
		arc.push = pt_graph_position(g, code, push_ip, w->mode);
	position->arc[0] = arc;
	if (!g->unnumbered)
		memcpy(edge_list->edges[0], edges, sizeof edges);
	/* The arcs share the way to the decision; what is beyond is resolved when a packet goes there. */
	if (decision == PT_D_JCC || decision == PT_D_CONT) {
		position->arc[1] = arc;
		if (!g->unnumbered)
			memcpy(edge_list->edges[1], edges, sizeof edges);
		return;
	}
	if (decision == PT_D_RET) {
		arc.n_edges++;
		arc.next = arc.push;
		arc.rise--;
		arc.decision = PT_D_RET;
		position->arc[1] = arc;
	} else if (w->cls == INSN_CALL_IND) {
		position->ind.calls = true;
		edge_list->push = pt_graph_position(g, code, w->decision_next, w->mode);
	}
}

uint32_t pt_graph_position(struct pt_graph *g, struct pt_code *code, uint64_t ip, enum insn_mode mode)
{
	struct pt_block *b = pt_graph_block(g, code, ip, mode);
	uint32_t p;

	if (!b)
		return 0;
	if (b->position)
		return b->position;
	if (g->position_count == g->position_room) {
		g->full = true;
		return 0;
	}
	if (g->position_count >= g->position_limit)
		g->cache_full = true;
	p = g->position_count++;
	b->position = p;
	g->where[p].ip = ip;
	g->where[p].code = code->id;
	g->where[p].mode = (uint8_t)mode;
	g->decisions[p] = PT_D_UNRESOLVED; /* built when the flow gets there */
	return p;
}

/* pt_graph_position() is lazy, for the positions behind calls are many and not all returned to. */
static void ensure(struct pt_graph *g, uint32_t p)
{
	if (g->decisions[p] == PT_D_UNRESOLVED)
		build(g, g->codes[g->where[p].code], p);
}

uint8_t pt_graph_decision(struct pt_graph *g, uint32_t p)
{
	ensure(g, p);
	return g->decisions[p];
}

bool pt_graph_follow(struct pt_graph *g, uint32_t p, unsigned bit)
{
	struct pt_where *w = &g->where[p];
	struct pt_arc *arc = &g->positions[p].arc[bit];
	struct pt_code *code = g->codes[w->code];
	uint64_t to;
	uint32_t next;

	if (g->decisions[p] == PT_D_CONT) {
		to = w->decision_next;
	} else if (bit) {
		uint32_t edge = pt_graph_edge(g, code, w->decision_ip, w->target, PTR_JCC);

		if (!edge)
			return false;
		if (!g->unnumbered)
			g->edge_lists[p].edges[1][arc->n_edges] = edge;
		arc->n_edges++;
		arc->backward = backward(w->decision_ip, w->target);
		to = w->target;
	} else {
		to = w->decision_next;
	}
	next = pt_graph_position(g, code, to, w->mode);
	if (!next)
		return false;
	arc->next = next;
	arc->decision = pt_graph_decision(g, next);
	return !g->full;
}
