/* test_graph.c - blocks and paths at the ends of what they can hold, and what a graph forgets. */
#include "decode/code/graph.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#define NOPS 70000u /* more than 16 bits count */

struct code {
	struct img_store *store;
	struct img_space space;
	struct pt_graph graph;
	struct pt_code *code;
};

static void map(struct code *c, uint64_t start, const uint8_t *bytes, uint64_t size)
{
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .pid = 1,
				  .name = "f",
				  .name_bytes = 1,
				  .vaddr = start,
				  .bytes = bytes,
				  .size = size};
	struct pt_error e;
	struct img_file *f = img_store_memory(c->store, &image, &e);

	check(f && img_space_map(&c->space, start, start + size, start, f, &e) == 0, "mapped");
}

static void begin(struct code *c)
{
	struct pt_error e;

	memset(c, 0, sizeof *c);
	c->store = img_store_create();
	img_space_init(&c->space);
	check(c->store && pt_graph_init(&c->graph, &e) == 0, "a graph");
	c->code = pt_graph_code(&c->graph, &c->space);
}

static void end(struct code *c)
{
	pt_graph_deinit(&c->graph);
	img_space_deinit(&c->space);
	img_store_destroy(c->store);
}

static void jump(uint8_t *p, uint32_t from, uint32_t to)
{
	uint32_t rel = to - (from + 5);

	p[from] = 0xe9;
	memcpy(p + from + 1, &rel, 4);
}

/* The path from `start` on along n jumps. */
static uint32_t path(struct code *c, uint64_t start, uint32_t n, const struct pt_graph *like,
		     uint32_t like_path)
{
	struct pt_graph *g = &c->graph;
	uint32_t edges[PTR_PATH_EDGES + 3];
	uint64_t ip = start;

	for (uint32_t i = 0; i < n; i++) {
		const struct pt_block *b = pt_graph_block(g, c->code, ip, INSN_64);

		while (b->cls == INSN_OTHER)
			b = pt_graph_block(g, c->code, pt_block_next_ip(b), INSN_64);
		ip = pt_block_target(b);
		edges[i] = pt_graph_edge(g, c->code, pt_block_term_ip(b), ip, PTR_JMP);
	}
	return pt_graph_path(g,
			     &(struct pt_path_key){.code = c->code,
						   .start_ip = start,
						   .edges = edges,
						   .count = n,
						   .mode = INSN_64,
						   .like = like,
						   .like_path = like_path},
			     0);
}

static void check_counts(const struct pt_graph *g, uint32_t number, const char *what)
{
	const struct pt_path *p = &g->paths[number];

	check(p->insns == NOPS + 1 + 4 + NOPS + 1, what);
	check(pt_path_insns_before(g, p, 0) == NOPS + 1 && pt_path_insns_before(g, p, 1) == 4 &&
		  pt_path_insns_before(g, p, 2) == NOPS + 1,
	      what);
	check(pt_path_insns_until(g, p->first, p->count, p->insns, 1) == NOPS + 5, what);
}

/* A path with more instructions than 16 bits count, between two with less. */
static void long_paths(void)
{
	struct code c, d;
	uint8_t *bytes = malloc(NOPS + 16);
	uint32_t before, wide, after;

	memset(bytes, 0x90, NOPS + 16);
	jump(bytes, NOPS, NOPS + 6);
	jump(bytes, NOPS + 9, 0);
	begin(&c);
	map(&c, 0x400000, bytes, NOPS + 16);
	before = path(&c, 0x400000 + NOPS - 1, 2, NULL, 0);
	wide = path(&c, 0x400000, 3, NULL, 0);
	after = path(&c, 0x400000 + NOPS + 6, 1, NULL, 0);
	check_counts(&c.graph, wide, "a wide path");
	check(pt_path_insns_before(&c.graph, &c.graph.paths[before], 0) == 2 &&
		  pt_path_insns_before(&c.graph, &c.graph.paths[before], 1) == 4,
	      "the path before it");
	check(pt_path_insns_before(&c.graph, &c.graph.paths[after], 0) == 4, "the path after it");
	begin(&d);
	map(&d, 0x400000, bytes, NOPS + 16);
	path(&d, 0x400000 + NOPS + 6, 1, NULL, 0);
	check_counts(&d.graph, path(&d, 0x400000, 3, &c.graph, wide), "the same in another graph");
	end(&d);
	end(&c);
	free(bytes);
}

/* 32-bit code goes on at 0 after its last address, and jumps over that. */
static void around_4_gb(void)
{
	uint8_t low[0x1000], high[0x1000];
	const struct pt_block *b;
	struct code c;

	memset(low, 0x90, sizeof low);
	memset(high, 0x90, sizeof high);
	jump(low, 3, 0xffffff00);	/* to before 0 */
	jump(high, 0xe00, 0x1000 + 32); /* to behind it */
	begin(&c);
	map(&c, 0, low, sizeof low);
	map(&c, 0xfffff000, high, sizeof high);
	b = pt_graph_block(&c.graph, c.code, 0xfffffffe, INSN_32);
	check(b->insns == 6 && pt_block_term_ip(b) == 3 && pt_block_next_ip(b) == 8, "code goes on at 0");
	check(pt_block_target(b) == 0xffffff00, "a jump to before 0");
	b = pt_graph_block(&c.graph, c.code, 0xfffffe00, INSN_32);
	check(pt_block_target(b) == 32, "a jump to behind the last address");
	end(&c);
}

#define CODE 0x400000u

/* A graph of the least size, which may double once, over 8 KB of NOPs and a jump back to the first. */
static void begin_least(struct code *c)
{
	static uint8_t bytes[8192];

	memset(bytes, 0x90, sizeof bytes);
	jump(bytes, sizeof bytes - 5, 0);
	begin(c);
	map(c, CODE, bytes, sizeof bytes);
	pt_graph_limit(&c->graph, 0);
	c->graph.most_bytes = 2 * c->graph.limit_bytes;
}

static bool has_grown(const struct pt_graph *g)
{
	return g->limit_bytes == g->most_bytes;
}

/* Paths of 1 to 30 jumps from each of 100 addresses, each so many times executed. */
static void many_paths(struct code *c, uint32_t times)
{
	for (uint32_t i = 0; i < 100; i++)
		for (uint32_t n = 1; n <= 30; n++)
			pt_graph_count_run(&c->graph, path(c, CODE + i, n, NULL, 0), times);
	check(c->graph.cache_full && c->graph.path_bytes >= c->graph.limit_bytes / 4, "paths fill it");
}

/* Blocks and positions at 4,000 addresses, and a path that is executed so many times. */
static void much_code(struct code *c, uint32_t times)
{
	for (uint32_t i = 0; i < 4000; i++)
		pt_graph_position(&c->graph, c->code, CODE + i, INSN_64);
	pt_graph_count_run(&c->graph, path(c, CODE, 1, NULL, 0), times);
	check(c->graph.cache_full && c->graph.path_bytes < c->graph.limit_bytes / 4, "code fills it");
}

static void forgets_paths(void)
{
	struct code c;
	struct pt_graph *g = &c.graph;
	uint32_t blocks;

	begin_least(&c);
	many_paths(&c, 1);
	blocks = g->block_count;
	pt_graph_recycle(g);
	check(!g->cache_full && g->path_count == 1 && g->path_edge_count == 0, "paths are forgotten");
	check(blocks > 100 && g->block_count == blocks && g->edge_count == 2, "and nothing else");
	check(!has_grown(g), "paths that are new");
	many_paths(&c, 2);
	pt_graph_recycle(g);
	check(!has_grown(g), "the same paths again, twice each");
	many_paths(&c, 1);
	pt_graph_recycle(g);
	check(has_grown(g), "the same paths again, once each");
	end(&c);
}

static void forgets_code(void)
{
	struct code c;
	struct pt_graph *g = &c.graph;

	begin_least(&c);
	much_code(&c, 1);
	pt_graph_recycle(g);
	check(g->block_count == 1 && g->position_count == 1 && g->path_count == 1, "code is forgotten");
	check(g->edge_count == 2, "and edges are not");
	check(!has_grown(g), "code that is new");
	much_code(&c, 100000);
	pt_graph_recycle(g);
	check(!has_grown(g), "the same code again, much executed");
	many_paths(&c, 100);
	pt_graph_recycle(g); /* of paths alone */
	much_code(&c, 1);
	pt_graph_recycle(g);
	check(!has_grown(g), "the same code again, executed along paths that were forgotten before it");
	much_code(&c, 1);
	pt_graph_recycle(g);
	check(has_grown(g), "the same code again, hardly executed");
	end(&c);
}

int main(void)
{
	long_paths();
	around_4_gb();
	forgets_paths();
	forgets_code();
	return sum_up();
}
