/*
 * test_scenarios.c - the rules by which packets are understood, one per file: tests/scenarios/NAME.pts has
 * code, packets and what must come out.
 *
 *   # what rule, and where the SDM states it
 *   config             optional: "mtc SHIFT", "ratio NUM DEN", "nominal N" (0: no CBR ratio),
 *                      "model M" (of family 6, hexadecimal: its errata), "notnt",
 *                      "filter START END" (hexadecimal, the end is out: traced by the CPU's address filter)
 *   code 1000 [guest]  a label for the address; then one instruction per line (see assemble()). Addresses of
 *                      the upper half (ffffffff8000xxxx) are the kernel's; there are 64 KB of each, by the
 *                      low 16 bits
 *   code 1000 late     the same, but the user's code from here on is known only after the flow has missed some
 *   packets            one packet per line, a word and its arguments (see packet()); "lost" and "lost whole":
 *                      AUX data is missing here (and what follows begins with a whole packet)
 *   expect             what the flow reports, one line each:
 *     begin [TSC]      execution is seen from here on
 *     1000 2000 jcc    a taken branch: from, to (0: not seen), kind; a third number is the TSC of its run.
 *                      jcc+trace_end: tracing stopped with it
 *     cyc N insn M     the run's cycles and their instructions
 *     end N            it is not seen any more; N instructions were executed
 *     error KIND [IP]
 *     event NAME FIELDS
 *     enter GUEST-IP HOST-IP VMCS CR3 [concealed], exit (the same): a VM entry or exit
 *     side NR          a VM entry or exit that was not seen
 *
 * A path that does not start where the one before it in the slice ended, or that has not the instructions which
 * the slice has, is a line "gap". Runs and repeats are flattened. Lines of "expect" may be fewer in fields than what comes (a prefix of
 * words). Each scenario is decoded as a whole, and byte by byte.
 *
 * test_scenarios [FOLDER [SEEDS]]: with SEEDS, each is written there as an input of tests/fuzz/fuzz_flow.c
 * instead.
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow.h"
#include "decode/flow/vm_transition.h"
#include "decode/packet/packet.h"

static int passed, failed;
static bool packet_seen[PT_TYPES], kind_seen[PTR_KINDS]; /* in any scenario */

/* Whose code: the host's user space and kernel, the guest's. */
enum { USER, KERNEL, GUEST_USER, GUEST_KERNEL, SPACES };
static const uint64_t upper_half = 0xffffffff80000000;

#define LOSSES 4
struct scenario {
	struct pt_graph graph;
	uint8_t code[SPACES][1 << 16];
	uint8_t known[SPACES][1 << 16];
	uint8_t packets[8192];
	size_t packet_bytes;
	size_t lost_at[LOSSES];
	bool lost_whole[LOSSES];
	unsigned losses;
	char expected[16384], got[16384];
	uint64_t at;	/* where the last path ended, 0: the next one may start anywhere */
	uint64_t insns; /* of the slice's paths */
	uint32_t late;	/* the user's code from here on comes when the flow misses it; 0: none does */
	struct img_store *store;
	struct img_space spaces[SPACES];
	unsigned room;	/* of the graph's arrays: which is small, 0: none */
	uint32_t rooms; /* how small */
	bool crumbs;	/* feed a byte at a time */
	unsigned bits;	/* of the code being assembled */
	struct pt_code *codes[SPACES];
	struct pt_clock_config clock;
	uint32_t errata;
	uint64_t filter_start, filter_end; /* both 0: none */
	bool no_tnt;
};

static void say(struct scenario *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct scenario *s, const char *format, ...)
{
	size_t n = strlen(s->got);
	va_list ap;

	va_start(ap, format);
	vsnprintf(s->got + n, sizeof s->got - n, format, ap);
	va_end(ap);
}

/* ---- Code ------------------------------------------------------------------------------------------- */

static uint64_t emit(struct scenario *s, unsigned space, uint64_t at, const void *bytes, size_t n)
{
	memcpy(s->code[space] + (at & 0xffff), bytes, n);
	memset(s->known[space] + (at & 0xffff), 1, n);
	return at + n;
}

static const struct {
	const char *name;
	const char *bytes;
	size_t n;
} plain[] = {
    {"nop", "\x90", 1},
    {"ret", "\xc3", 1},
    {"ret-imm", "\xc2\x08\x00", 3},
    {"jmp*", "\xff\xe0", 2},
    {"call*", "\xff\xd0", 2},
    {"syscall", "\x0f\x05", 2},
    {"sysret", "\x48\x0f\x07", 3},
    {"sysenter", "\x0f\x34", 2},
    {"sysexit", "\x48\x0f\x35", 3},
    {"iret", "\x48\xcf", 2},
    {"iret32", "\xcf", 1},
    {"int3", "\xcc", 1},
    {"int1", "\xf1", 1},
    {"int80", "\xcd\x80", 2},
    {"into", "\xce", 1},
    {"hlt", "\xf4", 1},
    {"vmlaunch", "\x0f\x01\xc2", 3},
    {"vmresume", "\x0f\x01\xc3", 3},
    {"vmcall", "\x0f\x01\xc1", 3},
    {"vmptrld", "\x0f\xc7\x30", 3},
    {"mov-cr3", "\x0f\x22\xd8", 3},
    {"wrmsr", "\x0f\x30", 2},
    {"cpuid", "\x0f\xa2", 2},
    {"mwait", "\x0f\x01\xc9", 3},
    {"rsm", "\x0f\xaa", 2},
    {"ud", "\xff\xff", 2},
    {"ptwrite", "\xf3\x48\x0f\xae\xe0", 5},
    {"ptwrite32", "\xf3\x0f\xae\xe0", 4},
    {"jmp-far", "\xff\x2f", 2},
    {"call-far", "\xff\x1f", 2},
    {"ret-far", "\xcb", 1},
    {"erets", "\xf2\x0f\x01\xca", 4},
    {"eretu", "\xf3\x0f\x01\xca", 4},
    {"uiret", "\xf3\x0f\x01\xec", 4},
    {"xend", "\x0f\x01\xd5", 3},
    {"xabort", "\xc6\xf8\x01", 3},
    {"inc-eax", "\x40", 1},
    {"rep-movs", "\xf3\xa4", 2},
};

/* One of plain[]; jcc X, jmp X, call X, xbegin X (rel32, or rel16 after "bits 16"), jrcxz X, loop X, jshort X
 * (rel8); bits 16|32|64; nops N; skip N: unknown code; bytes XX... */
static int assemble(struct scenario *s, char *line, unsigned space, uint64_t *at)
{
	static const struct {
		const char *name;
		const char *opcode;
		size_t n;
		bool short_;
	} direct[] = {
	    {"jcc", "\x0f\x85", 2, false},    {"jmp", "\xe9", 1, false},  {"call", "\xe8", 1, false},
	    {"xbegin", "\xc7\xf8", 2, false}, {"jrcxz", "\xe3", 1, true}, {"loop", "\xe2", 1, true},
	    {"jshort", "\xeb", 1, true},
	};
	char op[32];
	unsigned long arg = 0;
	int n = sscanf(line, "%31s %lx", op, &arg);

	if (n < 1)
		return 0;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		if (!strcmp(op, plain[i].name)) {
			*at = emit(s, space, *at, plain[i].bytes, plain[i].n);
			return 0;
		}
	}
	for (size_t i = 0; i < sizeof direct / sizeof *direct; i++) {
		uint8_t b[8];
		size_t size = direct[i].short_ ? 1 : s->bits == 16 ? 2 : 4;
		uint32_t rel;

		if (strcmp(op, direct[i].name) != 0)
			continue;
		memcpy(b, direct[i].opcode, direct[i].n);
		rel = (uint32_t)(arg - (*at + direct[i].n + size));
		memcpy(b + direct[i].n, &rel, size);
		*at = emit(s, space, *at, b, direct[i].n + size);
		return 0;
	}
	if (!strcmp(op, "nops")) {
		for (unsigned long i = 0; i < arg; i++)
			*at = emit(s, space, *at, "\x90", 1);
	} else if (!strcmp(op, "skip")) {
		*at += arg;
	} else if (!strcmp(op, "bits")) {
		s->bits = arg == 0x16 ? 16 : arg == 0x32 ? 32 : 64;
	} else if (!strcmp(op, "bytes")) {
		for (char *rest, *p = strtok_r(line + 6, " \n", &rest); p; p = strtok_r(NULL, " \n", &rest)) {
			uint8_t b = (uint8_t)strtoul(p, NULL, 16);

			*at = emit(s, space, *at, &b, 1);
		}
	} else {
		return -1;
	}
	return 0;
}

/* ---- Packets ---------------------------------------------------------------------------------------- */

static void bytes(struct scenario *s, const void *p, size_t n)
{
	memcpy(s->packets + s->packet_bytes, p, n);
	s->packet_bytes += n;
}

static void le(struct scenario *s, uint64_t v, size_t n)
{
	bytes(s, &v, n);
}

/* Packets that are a head, then numbers of some bytes each. ip: the word "ip" sets bit 7 of the head's last
 * byte. */
static const struct plain_packet {
	const char *word;
	uint8_t head[3], n, x, y; /* bytes */
	bool ip;
} plain_packets[] = {
    {"pad", {0x00}, .n = 1},
    {"psbend", {0x02, 0x23}, .n = 2},
    {"ovf", {0x02, 0xf3}, .n = 2},
    {"stop", {0x02, 0x83}, .n = 2},
    {"mode64", {0x99, 0x01}, .n = 2},
    {"mode32", {0x99, 0x02}, .n = 2},
    {"mode16", {0x99, 0x00}, .n = 2},
    {"modeif", {0x99, 0x05}, .n = 2},
    {"tsc", {0x19}, .n = 1, .x = 7},
    {"mtc", {0x59}, .n = 1, .x = 1},
    {"cbr", {0x02, 0x03}, .n = 2, .x = 2},
    {"ptw", {0x02, 0x32}, .n = 2, .x = 8, .ip = true},
    {"ptw32", {0x02, 0x12}, .n = 2, .x = 4, .ip = true},
    {"exstop", {0x02, 0x62}, .n = 2, .ip = true},
    {"mwait", {0x02, 0xc2}, .n = 2, .x = 8},
    {"pwre", {0x02, 0x22}, .n = 2, .x = 2},
    {"pwrx", {0x02, 0xa2}, .n = 2, .x = 5},
    {"bbp", {0x02, 0x63, 0x01}, .n = 3},
    {"bbp32", {0x02, 0x63, 0x81}, .n = 3},
    {"bep", {0x02, 0x33}, .n = 2, .ip = true},
    {"evd", {0x02, 0x53}, .n = 2, .x = 1, .y = 8},
    {"trig", {0xd9, 0x00}, .n = 2, .x = 1, .ip = true},
    {"mnt", {0x02, 0xc3, 0x88}, .n = 3, .x = 8},
};

/* A line of words. x, y: the first two after the packet's, as numbers; ip: the last is "ip". */
struct words {
	char op[32], a[64], b[64], c[64];
	int n;
	uint64_t x, y;
	bool ip;
};

static bool put_plain(struct scenario *s, const struct words *w)
{
	for (size_t i = 0; i < sizeof plain_packets / sizeof *plain_packets; i++) {
		const struct plain_packet *k = &plain_packets[i];

		if (strcmp(w->op, k->word) != 0)
			continue;
		bytes(s, k->head, k->n);
		s->packets[s->packet_bytes - 1] |= k->ip && w->ip ? 0x80 : 0;
		le(s, w->x, k->x);
		le(s, w->y, k->y);
		return true;
	}
	return false;
}

static void ip_packet(struct scenario *s, const struct words *w, unsigned opcode)
{
	static const uint8_t size[8] = {0, 2, 4, 6, 6, 0, 8, 0};
	const char *slash = strchr(w->a, '/');
	unsigned ipbytes = w->n == 1 ? 0 : slash ? (unsigned)atoi(slash + 1) & 7 : 6;

	le(s, opcode | ipbytes << 5, 1);
	le(s, w->x, size[ipbytes]);
}

/* "TTN": the bits after a 1. */
static uint64_t tnt_bits(const char *p)
{
	uint64_t v = 1;

	for (; *p; p++)
		v = v << 1 | (*p == 'T');
	return v;
}

static void cyc_packet(struct scenario *s, uint64_t cycles)
{
	le(s, (cycles & 31) << 3 | (cycles > 31 ? 7 : 3), 1);
	for (cycles >>= 5; cycles; cycles >>= 7)
		le(s, (cycles & 127) << 1 | (cycles > 127), 1);
}

static int lost(struct scenario *s, bool whole)
{
	if (s->losses == LOSSES)
		return -1;
	s->lost_whole[s->losses] = whole;
	s->lost_at[s->losses++] = s->packet_bytes;
	return 0;
}

/* The plain ones, with X and Y; tip, pge, pgd, fup [IP[/IPBYTES]] (without IP: suppressed; default 6); tnt
 * TTN; tnt64 TNT...; psb; tsx BITS; tma CTC FC; cyc N; pip CR3 NR; vmcs X; bip ID X, bip32 ID X; cfe TYPE
 * VECTOR [ip]; hex BYTES; lost [whole]. Numbers are hex. */
static int packet(struct scenario *s, char *line)
{
	static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
	struct words w = {0};
	const char *op = w.op;

	w.n = sscanf(line, "%31s %63s %63s %63s", w.op, w.a, w.b, w.c);
	w.x = strtoull(w.a, NULL, 16);
	w.y = strtoull(w.b, NULL, 16);
	w.ip = !strcmp(w.n > 3 ? w.c : w.n > 2 ? w.b : w.a, "ip");
	if (w.n < 1 || put_plain(s, &w))
		return 0;
	if (!strcmp(op, "tip")) {
		ip_packet(s, &w, 0x0d);
	} else if (!strcmp(op, "pge")) {
		ip_packet(s, &w, 0x11);
	} else if (!strcmp(op, "pgd")) {
		ip_packet(s, &w, 0x01);
	} else if (!strcmp(op, "fup")) {
		ip_packet(s, &w, 0x1d);
	} else if (!strcmp(op, "tnt")) {
		le(s, tnt_bits(w.a) << 1, 1);
	} else if (!strcmp(op, "tnt64")) {
		bytes(s, "\x02\xa3", 2);
		le(s, tnt_bits(w.a), 6);
	} else if (!strcmp(op, "psb")) {
		bytes(s, psb, 16);
	} else if (!strcmp(op, "tsx")) {
		bytes(s, "\x99", 1);
		le(s, 0x20 | w.x, 1);
	} else if (!strcmp(op, "tma")) {
		bytes(s, "\x02\x73", 2);
		le(s, w.x, 3);
		le(s, w.y, 2);
	} else if (!strcmp(op, "cyc")) {
		cyc_packet(s, w.x);
	} else if (!strcmp(op, "pip")) {
		bytes(s, "\x02\x43", 2);
		le(s, w.x >> 5 << 1 | w.y, 6);
	} else if (!strcmp(op, "vmcs")) {
		bytes(s, "\x02\xc8", 2);
		le(s, w.x >> 12, 5);
	} else if (!strcmp(op, "bip") || !strcmp(op, "bip32")) {
		le(s, w.x << 3 | 4, 1);
		le(s, w.y, op[3] ? 4 : 8);
	} else if (!strcmp(op, "cfe")) {
		bytes(s, "\x02\x13", 2);
		le(s, w.x | (w.ip ? 0x80 : 0), 1);
		le(s, w.y, 1);
	} else if (!strcmp(op, "lost")) {
		return lost(s, !strcmp(w.a, "whole"));
	} else if (!strcmp(op, "hex")) {
		for (char *rest, *p = strtok_r(line + 3, " \n", &rest); p; p = strtok_r(NULL, " \n", &rest))
			le(s, strtoull(p, NULL, 16), 1);
	} else {
		return -1;
	}
	return 0;
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
			say(arg, "\n");
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
	pt_flow_feed(flow, p, end, (uint64_t)(p - s->packets), last, &at);
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
	for (int i = 0; i < PT_TYPES; i++) {
		passed += packet_seen[i];
		failed += !packet_seen[i];
		if (!packet_seen[i])
			printf("FAILED: no scenario has a packet %s\n", pt_type_name((enum pt_type)i));
	}
	for (int i = PTR_KIND_NONE + 1; i < PTR_KINDS; i++) {
		passed += kind_seen[i];
		failed += !kind_seen[i];
		if (!kind_seen[i])
			printf("FAILED: no scenario has a branch %s\n", ptr_kind_name((enum ptr_kind)i));
	}
}

enum { ROOM_ENOUGH, ROOM_POSITIONS, ROOM_BLOCKS, ROOM_EDGES, ROOM_PATHS, ROOM_PATH_EDGES, ROOM_KINDS };

static void make_small(struct scenario *s)
{
	uint32_t *const rooms[ROOM_KINDS] = {NULL,
					     &s->graph.position_room,
					     &s->graph.block_room,
					     &s->graph.edge_room,
					     &s->graph.path_room,
					     &s->graph.path_edge_room};

	if (s->room)
		*rooms[s->room] = s->rooms;
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
					.no_tnt = s->no_tnt};
	struct pt_flow *flow = pt_flow_create(&config);
	uint32_t late = s->late;
	size_t from = 0;
	int r = -1;

	s->store = img_store_create();
	for (unsigned i = 0; i < SPACES; i++)
		img_space_init(&s->spaces[i]);
	if (!flow || !s->store || pt_graph_init(&s->graph, &e) < 0)
		goto out;
	make_small(s);
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

/* What was decoded until memory ran out is the beginning of what comes when it does not; then comes the error, and
 * no branch after it. */
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
	char whole[sizeof s->got];

	strcpy(whole, s->got);
	for (s->room = ROOM_ENOUGH + 1; s->room < ROOM_KINDS; s->room++) {
		for (uint32_t i = 0; i < 2; i++) {
			s->rooms = (i ? 4 : 1) + (uint32_t)passed % (i ? 13 : 3);
			s->got[0] = 0;
			if (decode(s) == 0 && ends_well(whole, s->got)) {
				passed++;
				continue;
			}
			failed++;
			printf("FAILED: %s, when array %u has room for %u\n--- whole\n%s--- got\n%s", path,
			       s->room, s->rooms, whole, s->got);
		}
	}
	s->room = ROOM_ENOUGH;
}

static void check(const char *path, const char *what, struct scenario *s)
{
	s->got[0] = 0;
	if (decode(s) == 0 && matches(s->expected, s->got)) {
		passed++;
		return;
	}
	failed++;
	printf("FAILED: %s (%s)\n--- expected\n%s--- got\n%s", path, what, s->expected, s->got);
}

/* As tests/fuzz/fuzz_flow.c reads it. */
static void write_seed(const struct scenario *s, const char *path)
{
	uint8_t head[2] = {
	    (uint8_t)((s->clock.mtc ? 1 : 0) | (s->clock.nominal_ratio ? 0 : 2) | (s->errata & 15) << 4)};
	FILE *f = fopen(path, "wb");
	long at;

	if (!f)
		return;
	fwrite(head, 1, 2, f);
	for (unsigned space = 0; space < SPACES; space++) {
		for (uint32_t i = 0, n; i < sizeof s->code[space]; i += n) {
			uint8_t segment[4] = {(uint8_t)space, (uint8_t)i, (uint8_t)(i >> 8)};

			for (n = 1; n < 255 && i + n < sizeof s->code[space] &&
				    s->known[space][i + n] == s->known[space][i];
			     n++)
				;
			segment[3] = (uint8_t)n;
			if (!s->known[space][i] || head[1] == 255)
				continue;
			head[1]++;
			fwrite(segment, 1, 4, f);
			fwrite(s->code[space] + i, 1, n, f);
		}
	}
	fwrite(s->packets, 1, s->packet_bytes, f);
	at = ftell(f);
	rewind(f);
	fwrite(head, 1, 2, f);
	fseek(f, at, SEEK_SET);
	fclose(f);
}

static int configure(struct scenario *s, const char *line)
{
	char what[32], name[32] = "";
	unsigned a = 0, b = 0;
	int n = sscanf(line, "%31s %31s", what, name);

	sscanf(line, "%*s %u %u", &a, &b);
	if (n > 1 && !strcmp(what, "mtc"))
		s->clock.mtc_shift = a;
	else if (n > 1 && !strcmp(what, "nominal"))
		s->clock.nominal_ratio = a;
	else if (n > 1 && !strcmp(what, "ratio"))
		s->clock.ctc_num = a, s->clock.ctc_den = b;
	else if (n == 1 && !strcmp(what, "notnt"))
		s->no_tnt = true;
	else if (n > 1 && !strcmp(what, "filter"))
		return sscanf(line, "%*s %" SCNx64 " %" SCNx64, &s->filter_start, &s->filter_end) == 2 ? 0
												       : -1;
	else if (n > 1 && !strcmp(what, "model")) /* of family 6 */
		s->errata = pt_errata_of(6, (uint32_t)strtoul(name, NULL, 16));
	else
		return -1;
	return 0;
}

static void scenario(const char *path, const char *seed)
{
	struct scenario *s = calloc(1, sizeof *s);
	enum { NONE, CONFIG, CODE, PACKETS, EXPECT } section = NONE;
	FILE *f = fopen(path, "r");
	char line[512];
	uint64_t at = 0;
	unsigned space = USER;
	int bad = 0, number = 0;

	s->clock = (struct pt_clock_config){
	    .ctc_num = 160, .ctc_den = 2, .mtc_shift = 3, .nominal_ratio = 20, .mtc = true};
	while (f && fgets(line, sizeof line, f) && !bad) {
		char *p = line, *hash = strchr(line, '#');

		number++;
		if (hash)
			strcpy(hash, "\n");
		while (isspace((unsigned char)*p) && *p != '\n')
			p++;
		for (size_t n = strlen(p); n > 1 && isspace((unsigned char)p[n - 2]); n--)
			strcpy(p + n - 2, "\n");
		if (*p == '\n' || !*p)
			continue;
		if (!strncmp(p, "code ", 5)) {
			section = CODE;
			at = strtoull(p + 5, NULL, 16);
			space = (at >> 63 ? KERNEL : USER) + (strstr(p, "guest") ? GUEST_USER : 0);
			if (strstr(p, "late"))
				s->late = (uint32_t)at & 0xffff;
			s->bits = 64;
		} else if (!strcmp(p, "config\n")) {
			section = CONFIG;
		} else if (!strcmp(p, "packets\n")) {
			section = PACKETS;
		} else if (!strcmp(p, "expect\n")) {
			section = EXPECT;
		} else if (section == CODE) {
			bad = assemble(s, p, space, &at);
		} else if (section == CONFIG) {
			bad = configure(s, p);
		} else if (section == PACKETS) {
			bad = packet(s, p);
		} else if (section == EXPECT) {
			strncat(s->expected, p, sizeof s->expected - strlen(s->expected) - 1);
		} else {
			bad = 1;
		}
	}
	if (f)
		fclose(f);
	if (bad || !f) {
		failed++;
		printf("FAILED: %s:%d: cannot be read\n", path, number);
	} else if (seed) {
		write_seed(s, seed);
		passed++;
	} else {
		check(path, "whole", s);
		check_full(path, s);
		s->crumbs = true;
		check(path, "byte by byte", s);
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
	if (n < 0 || passed + failed == 0)
		failed++;
	if (argc <= 2)
		see_all();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
