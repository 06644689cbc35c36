/*
 * test_scenarios.c - the rules by which packets are understood, one per file:
 * tests/scenarios/NAME.pts (scenario_file.h). Each is decoded as a whole, and byte by byte.
 *
 * test_scenarios [FOLDER [SEEDS]]: with SEEDS, each is written there as an input of
 * tests/fuzz/fuzz_flow.c instead.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow.h"
#include "decode/flow/vm_transition.h"
#include "decode/packet/packet.h"
#include "tests/unit/check.h"
#include "tests/unit/scenario_file.h"

static bool packet_seen[PT_TYPES], kind_seen[PTR_KINDS]; /* in any scenario */

static void say(struct scenario *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct scenario *s, const char *format, ...)
{
	size_t n = strlen(s->got);
	va_list ap;

	va_start(ap, format);
	vsnprintf(s->got + n, sizeof s->got - n, format, ap);
	va_end(ap);
}

/* ---- What the flow reports -------------------------------------------------------------------------- */

static void on_begin(void *arg, const struct pt_flow *f, uint64_t tsc, struct pt_code *code, uint64_t ip)
{
	(void)f;
	(void)code;
	((struct scenario *)arg)->at = ip;
	((struct scenario *)arg)->insns = 0;
	if (tsc == PT_CLOCK_UNKNOWN)
		say(arg, "begin\n");
	else
		say(arg, "begin %" PRIx64 "\n", tsc);
}

static void on_run(void *arg, const struct pt_flow *f, const struct pt_flow_run *run)
{
	struct scenario *s = arg;
	const struct pt_graph *graph = &s->graph;
	const struct pt_path *path = &graph->paths[run->path];
	uint64_t end = path->count ? graph->edges[graph->path_edges[path->first + path->count - 1]].to : 0;

	(void)f;
	if (path->count > PTR_PATH_EDGES)
		say(arg, "a path of %u edges\n", path->count);
	if (s->at && path->start_ip && s->at != path->start_ip)
		say(arg, "gap %" PRIx64 " %" PRIx64 "\n", s->at, path->start_ip);
	s->at = path->end_ip ? path->end_ip : end;
	s->insns += (uint64_t)path->insns * run->repeats;
	for (uint32_t r = 0; r < run->repeats; r++) {
		for (uint32_t i = 0; i < path->count; i++) {
			const struct pt_edge *edge = &graph->edges[graph->path_edges[path->first + i]];

			kind_seen[edge->kind] = true;
			say(arg, "%" PRIx64 " %" PRIx64 " %s%s", edge->from, edge->to,
			    ptr_kind_name(edge->kind), edge->ends_trace ? "+trace_end" : "");
			s->at = edge->ends_trace ? 0 : s->at;
			if (run->tsc != PT_CLOCK_UNKNOWN)
				say(arg, " %" PRIx64, run->tsc);
			say(arg, run->tsc == PT_CLOCK_UNKNOWN		     ? "\n"
				 : !r && !i && run->timing == PTR_TIME_EXACT ? " exact\n"
									     : " interval\n");
		}
	}
	if (run->cyc_count != PTR_UNKNOWN)
		say(arg, "cyc %" PRIu64 " insn %" PRIu64 "\n", run->cyc_count, run->insn_count);
}

static void on_runs(void *arg, const struct pt_flow *f, const struct pt_flow_run *runs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		on_run(arg, f, &runs[i]);
}

static void on_end(void *arg, const struct pt_flow *f, uint64_t tsc, uint64_t insns, uint64_t cyc)
{
	(void)f;
	(void)tsc;
	(void)cyc;
	say(arg, "end %" PRIu64 "\n", insns);
	if (((struct scenario *)arg)->insns != insns)
		say(arg, "gap of %" PRId64 " instructions\n", insns - ((struct scenario *)arg)->insns);
}

static void on_error(void *arg, const struct pt_flow *f, const struct pt_flow_error *err)
{
	(void)f;
	say(arg, "error %s %" PRIx64 "\n", pt_flow_error_name(err->kind), err->ip);
}

/* Maps the code of one of SPACES from `from` up to `to`, by the low 16 bits. */
static void map(struct scenario *s, unsigned which, uint32_t from, uint32_t to)
{
	struct img_space *space = &s->spaces[which];
	struct pt_error e;

	for (uint32_t i = from, n; i < to; i += n) {
		uint64_t at = i | (which & 1 ? upper_half : 0);
		struct ptc_image image = {
		    .kind = PTC_IMAGE_MEMORY, .name = "x", .name_bytes = 1, .vaddr = at};

		for (n = 1; i + n < to && s->known[which][i + n] == s->known[which][i]; n++)
			;
		image.bytes = s->code[which] + i;
		image.size = n;
		if (s->known[which][i])
			img_space_map(space, at, at + n, at, img_store_memory(s->store, &image, &e), &e);
	}
}

static bool on_missing(void *arg, struct pt_flow *f, uint64_t ip)
{
	struct scenario *s = arg;
	uint32_t late = s->late;

	(void)ip;
	if (!late)
		return false;
	s->late = 0;
	pt_flow_pause(f, false);
	map(s, USER, late, sizeof s->code[USER]);
	pt_code_refresh(&s->graph, s->codes[USER]);
	pt_flow_resume(f);
	return true;
}

static void on_event(void *arg, const struct pt_flow *f, const char *name, uint64_t ip, const char *fields)
{
	(void)f;
	say(arg, "event %s %s%sip %" PRIx64 "\n", name, fields, fields[0] ? " " : "", ip);
}

static void on_transition(void *arg, const struct pt_flow *f, const struct pt_vm_transition *t)
{
	(void)f;
	say(arg, "%s %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "%s\n", t->entry ? "enter" : "exit",
	    t->guest_ip, t->host_ip, t->vmcs == PT_VMCS_UNKNOWN ? 0 : t->vmcs, t->cr3,
	    t->concealed ? " concealed" : "");
}

static void on_side(void *arg, struct pt_flow *f, const struct pt_vm_transition *t)
{
	struct scenario *s = arg;
	bool guest = pt_flow_in_guest(f);

	if (!t)
		say(s, "side %u\n", guest);
	pt_flow_set_code(f, s->codes[guest ? GUEST_USER : USER], s->codes[guest ? GUEST_KERNEL : KERNEL]);
}

static bool is_filtered(void *arg, struct pt_flow *f, uint64_t ip)
{
	const struct scenario *s = arg;

	(void)f;
	return s->filter_end && (ip < s->filter_start || ip >= s->filter_end);
}

static const struct pt_flow_env env = {.missing = on_missing, .side = on_side, .filtered = is_filtered};
static const struct pt_flow_output output = {.begin = on_begin,
					     .runs = on_runs,
					     .end = on_end,
					     .error = on_error,
					     .event = on_event,
					     .transition = on_transition};

/* ---- Running ---------------------------------------------------------------------------------------- */

static void feed(struct scenario *s, struct pt_flow *flow, size_t from, size_t to, bool last)
{
	const uint8_t *p = s->packets + from, *end = s->packets + to, *at;

	if (s->crumbs) {
		for (const uint8_t *q = p; q <= end; q++) {
			pt_flow_feed(flow, p, q, (uint64_t)(p - s->packets), false, &at);
			p = at;
		}
	}
	/* Nobody recycles the graph: it takes what its room allows. */
	while (pt_flow_feed(flow, p, end, (uint64_t)(p - s->packets), last, &at) == PT_FEED_CACHE_FULL)
		p = at;
}

/* What the packets are, a BIP's among them only where a BBP came before. */
static void see(const struct scenario *s)
{
	const uint8_t *p = s->packets, *end = p + s->packet_bytes;
	struct pt_packet k;
	unsigned bip_bytes = 0;
	int n;

	for (; p<end; p += n> 0 ? n : 1) {
		n = pt_packet_decode(p, end, bip_bytes, &k);
		if (n <= 0)
			continue;
		packet_seen[k.type] = true;
		bip_bytes = k.type == PT_BBP ? k.n : k.type == PT_BEP || k.type == PT_PSB ? 0 : bip_bytes;
	}
}

/* Each kind of packet and of branch is in some scenario. */
static void see_all(void)
{
	char what[80];

	for (int i = 0; i < PT_TYPES; i++) {
		snprintf(what, sizeof what, "a scenario has a packet %s", pt_type_name((enum pt_type)i));
		check_case(packet_seen[i], what, "none");
	}
	for (int i = PTR_KIND_NONE + 1; i < PTR_KINDS; i++) {
		snprintf(what, sizeof what, "a scenario has a branch %s", ptr_kind_name((enum ptr_kind)i));
		check_case(kind_seen[i], what, "none");
	}
}

enum { ROOM_ENOUGH, ROOM_POSITIONS, ROOM_BLOCKS, ROOM_EDGES, ROOM_PATHS, ROOM_PATH_EDGES, ROOM_KINDS };

/* The room that the graph's array has, and is to have; pt_graph_deinit() wants it as it was. */
static void swap_room(struct scenario *s)
{
	uint32_t *const rooms[ROOM_KINDS] = {NULL,
					     &s->graph.position_room,
					     &s->graph.block_room,
					     &s->graph.edge_room,
					     &s->graph.path_room,
					     &s->graph.path_edge_room};

	if (s->room) {
		uint32_t room = *rooms[s->room];

		*rooms[s->room] = s->rooms;
		s->rooms = room;
	}
}

static int decode(struct scenario *s)
{
	struct pt_error e;
	struct pt_flow_config config = {.graph = &s->graph,
					.clock = s->clock,
					.env = &env,
					.env_arg = s,
					.output = &output,
					.output_arg = s,
					.errata = s->errata,
					.no_tnt = s->no_tnt,
					.snapshot = s->snapshot};
	struct pt_flow *flow = pt_flow_create(&config);
	uint32_t late = s->late;
	size_t from = 0;
	int r = -1;

	s->store = img_store_create();
	for (unsigned i = 0; i < SPACES; i++)
		img_space_init(&s->spaces[i]);
	if (!flow || !s->store || pt_graph_init(&s->graph, &e) < 0)
		goto out;
	swap_room(s);
	for (unsigned i = 0; i < SPACES; i++) {
		map(s, i, 0, i == USER && late ? late : sizeof s->code[i]);
		s->codes[i] = memchr(s->known[i], 1, sizeof s->known[i])
				  ? pt_graph_code(&s->graph, &s->spaces[i])
				  : NULL;
	}
	pt_flow_set_code(flow, s->codes[USER], s->codes[KERNEL]);
	for (unsigned i = 0; i < s->losses; i++) {
		feed(s, flow, from, s->lost_at[i], false);
		from = s->lost_at[i];
		pt_flow_lost(flow, from, s->lost_whole[i], "lost");
	}
	feed(s, flow, from, s->packet_bytes, true);
	pt_flow_finish(flow);
	see(s);
	swap_room(s);
	pt_graph_deinit(&s->graph);
	r = 0;
out:
	for (unsigned i = 0; i < SPACES; i++)
		img_space_deinit(&s->spaces[i]);
	img_store_destroy(s->store);
	s->late = late;
	pt_flow_destroy(flow);
	return r;
}

/* Line by line: an expected line may be the beginning of what came. */
static bool matches(const char *want, const char *got)
{
	while (*want && *got) {
		size_t w = strcspn(want, "\n"), g = strcspn(got, "\n");

		if (w > g || strncmp(want, got, w) != 0 || (w < g && got[w] != ' '))
			return false;
		want += w + (want[w] == '\n');
		got += g + (got[g] == '\n');
	}
	return !*want && !*got;
}

/* The next line of *p that is a branch, up to its kind; 0: none comes before `end`. */
static size_t next_branch(const char **p, const char *end)
{
	for (; *p < end; *p += strcspn(*p, "\n") + 1) {
		unsigned long long from, to;
		int n = 0;

		if (sscanf(*p, "%llx %llx %*s%n", &from, &to, &n) == 2 && n)
			return (size_t)n;
	}
	return 0;
}

/* What was decoded until memory ran out is the beginning of what comes when it does not; then comes
 * the error, and no branch after it. */
static bool ends_well(const char *whole, const char *got)
{
	const char *error = strstr(got, "error out of memory"), *end = error ? error : got + strlen(got);
	const char *w = whole, *g = got, *whole_end = whole + strlen(whole);
	size_t n;

	while ((n = next_branch(&g, end)) != 0) {
		if (next_branch(&w, whole_end) != n || strncmp(w, g, n) != 0)
			return false;
		g += strcspn(g, "\n") + 1;
		w += strcspn(w, "\n") + 1;
	}
	return error ? !strstr(error, "begin") && !next_branch(&error, got + strlen(got))
		     : !strcmp(whole, got);
}

/* Each of the graph's arrays has no room for more, sooner or later: in each scenario at two other places. */
static void check_full(const char *path, struct scenario *s)
{
	static uint32_t number;
	char whole[sizeof s->got];

	strcpy(whole, s->got);
	for (s->room = ROOM_ENOUGH + 1; s->room < ROOM_KINDS; s->room++) {
		for (uint32_t i = 0; i < 2; i++) {
			bool ok;

			s->rooms = (i ? 4 : 1) + number++ % (i ? 13 : 3);
			s->got[0] = 0;
			ok = decode(s) == 0 && ends_well(whole, s->got);
			check_case(ok, path, "with too little room");
			if (!ok)
				printf("array %u has room for %u\n--- whole\n%s--- got\n%s", s->room,
				       s->rooms, whole, s->got);
		}
	}
	s->room = ROOM_ENOUGH;
}

static void decode_and_compare(const char *path, const char *how, struct scenario *s)
{
	static char text[sizeof s->expected + sizeof s->got + 100];
	char name[600];

	s->got[0] = 0;
	bool ok = decode(s) == 0 && matches(s->expected, s->got);
	snprintf(name, sizeof name, "%s (%s)", path, how);
	snprintf(text, sizeof text, "\n--- expected\n%s--- got\n%s", s->expected, s->got);
	check_case(ok, name, text);
}

/* seed: the file to write instead of decoding; NULL. */
static void scenario(const char *path, const char *seed)
{
	struct scenario *s = calloc(1, sizeof *s);
	char what[60];
	int bad;

	if (!s)
		check_stop("no memory");
	bad = read_scenario(s, path);
	snprintf(what, sizeof what, "line %d cannot be read", bad);
	if (bad || seed)
		check_case(!bad, path, what);
	if (!bad && seed)
		write_seed(s, seed);
	if (!bad && !seed) {
		decode_and_compare(path, "whole", s);
		check_full(path, s);
		s->crumbs = true;
		decode_and_compare(path, "byte by byte", s);
	}
	free(s);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : "tests/scenarios";
	struct dirent **names;
	int n = scandir(dir, &names, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		char path[512], seed[512];
		size_t len = strlen(names[i]->d_name);

		if (len > 4 && !strcmp(names[i]->d_name + len - 4, ".pts")) {
			snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
			if (argc > 2)
				snprintf(seed, sizeof seed, "%s/%.*s", argv[2], (int)len - 4,
					 names[i]->d_name);
			scenario(path, argc > 2 ? seed : NULL);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	check(n > 2, "the folder has scenarios");
	if (argc <= 2)
		see_all();
	return sum_up();
}
