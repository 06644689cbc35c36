/*
 * fuzz_flow.c - packets and hostile code through a flow: what it reports must be in order, and fit together.
 *
 *   u8  bit 0: MTC expected; bits 1-2: no CBR ratio, byte by byte; bit 3: user space only; bits 4-7: errata
 *   u8  segments of code; each: u8 space (user, kernel, guest's user, guest's kernel), u16 address, u8 size,
 *       bytes
 *   the rest: packets
 */
#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow.h"
#include "decode/flow/vm_transition.h"
#include "tests/fuzz/fuzz.h"

enum { SPACES = 4 };

struct state {
	const struct pt_graph *graph;
	struct pt_code *codes[SPACES];
	bool running; /* between begin() and end() */
	uint64_t last_tsc;
};

static void on_begin(void *arg, const struct pt_flow *f, uint64_t tsc, struct pt_code *code, uint64_t ip)
{
	struct state *s = arg;

	(void)f;
	(void)code;
	(void)ip;
	if (s->running)
		abort();
	s->running = true;
	s->last_tsc = tsc;
}

static void on_run(void *arg, const struct pt_flow *f, const struct pt_flow_run *run)
{
	struct state *s = arg;
	const struct pt_graph *graph = s->graph;
	const struct pt_path *path = &graph->paths[run->path];

	(void)f;
	if (!s->running || !run->repeats || run->path >= graph->path_count || path->count > PTR_PATH_EDGES ||
	    run->repeats * (path->count ? path->count : 1) > PTR_RUN_BRANCHES)
		abort();
	if (run->tsc != PT_CLOCK_UNKNOWN) {
		if (s->last_tsc != PT_CLOCK_UNKNOWN && run->tsc < s->last_tsc)
			abort();
		s->last_tsc = run->tsc;
	}
	for (uint32_t i = 0; i < path->count; i++)
		if (graph->path_edges[path->first + i] >= graph->edge_count)
			abort();
}

static void on_runs(void *arg, const struct pt_flow *f, const struct pt_flow_run *runs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		on_run(arg, f, &runs[i]);
}

static void on_end(void *arg, const struct pt_flow *f, uint64_t tsc, uint64_t insns, uint64_t cyc)
{
	struct state *s = arg;

	(void)f;
	(void)tsc;
	(void)insns;
	(void)cyc;
	if (!s->running)
		abort();
	s->running = false;
}

static void on_error(void *arg, const struct pt_flow *f, const struct pt_flow_error *err)
{
	struct state *s = arg;

	(void)f;
	if (s->running || !err->message || !pt_flow_error_name(err->kind))
		abort();
}

static bool on_missing(void *arg, struct pt_flow *f, uint64_t ip)
{
	(void)arg;
	(void)f;
	(void)ip;
	return false;
}

static void on_side(void *arg, struct pt_flow *f, const struct pt_vm_transition *t)
{
	struct state *s = arg;

	(void)t;
	if (s->running)
		abort();
	pt_flow_set_code(f, s->codes[pt_flow_in_guest(f) ? 2 : 0], s->codes[pt_flow_in_guest(f) ? 3 : 1]);
}

static void on_event(void *arg, const struct pt_flow *f, const char *name, uint64_t ip, const char *fields)
{
	(void)arg;
	(void)f;
	(void)ip;
	if (!name || !fields)
		abort();
}

static const struct pt_flow_env env = {.missing = on_missing, .side = on_side};
static const struct pt_flow_output output = {
    .begin = on_begin, .runs = on_runs, .end = on_end, .error = on_error, .event = on_event};

static const uint8_t *map(const uint8_t *p, const uint8_t *end, struct img_space *spaces,
			  struct img_store *store)
{
	struct pt_error e;
	uint8_t n = *p++;

	for (; n && end - p >= 4 && end - p - 4 >= p[3]; n--) {
		unsigned space = p[0] % SPACES;
		uint64_t at = (p[1] | p[2] << 8) + (space & 1 ? 0xffffffff80000000 : 0);
		struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
					  .name = "x",
					  .name_bytes = 1,
					  .vaddr = at,
					  .bytes = p + 4,
					  .size = p[3]};

		if (p[3])
			img_space_map(&spaces[space], at, at + p[3], at, img_store_memory(store, &image, &e),
				      &e);
		p += 4 + p[3];
	}
	return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pt_clock_config clock = {.ctc_num = 160, .ctc_den = 2, .mtc_shift = 3, .nominal_ratio = 20};
	const uint8_t *p = data, *end = data + size, *from;
	struct img_space spaces[SPACES];
	struct img_store *store;
	struct pt_graph graph;
	struct pt_flow *flow;
	struct pt_error e;
	struct state s = {.graph = &graph, .last_tsc = PT_CLOCK_UNKNOWN};
	uint8_t flags;

	if (size < 2)
		return 0;
	flags = *p++;

	clock.mtc = flags & 1;
	clock.nominal_ratio = flags & 2 ? 0 : 20;
	flow = pt_flow_create(&(struct pt_flow_config){.graph = &graph,
						       .clock = clock,
						       .env = &env,
						       .env_arg = &s,
						       .output = &output,
						       .output_arg = &s,
						       .errata = flags >> 4});
	store = img_store_create();
	if (!flow || !store || pt_graph_init(&graph, &e) < 0)
		abort();
	for (unsigned i = 0; i < SPACES; i++)
		img_space_init(&spaces[i]);
	p = map(p, end, spaces, store);
	for (unsigned i = 0; i < SPACES; i++)
		s.codes[i] = pt_graph_code(&graph, &spaces[i]);
	if (flags & 8)
		s.codes[1] = s.codes[3] = NULL;
	pt_flow_set_code(flow, s.codes[0], s.codes[1]);
	for (from = p; flags & 4 && from < end; from++)
		pt_flow_feed(flow, p, from, (uint64_t)(p - data), false, &p);
	pt_flow_feed(flow, p, end, (uint64_t)(p - data), true, &p);
	pt_flow_finish(flow);
	if (s.running)
		abort();
	pt_graph_deinit(&graph);
	for (unsigned i = 0; i < SPACES; i++)
		img_space_deinit(&spaces[i]);
	img_store_destroy(store);
	pt_flow_destroy(flow);
	return 0;
}
