/*
 * test_scenarios.c - the flow's rules, one a file: tests/scenarios/NAME.pts holds code, packets and what must come out.
 *
 *   # what rule, and where the SDM states it
 *   code 1000          a label for the address; then an instruction a line (see assemble())
 *   packets            a packet a word and its arguments, a line each (see packet())
 *   expect             what the flow tells, a line each:
 *     begin            execution is seen from here on
 *     1000 2000 jcc    a taken branch: from, to (0: not seen), kind; a third number is the TSC of its run
 *     end N            it is not seen any more; N instructions were executed
 *     error KIND [IP]
 *     event NAME FIELDS
 *
 * Runs and repeats are flattened. Lines of "expect" may be fewer in fields than what comes (a prefix of words).
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/flow.h"

static int passed, failed;

struct scenario {
	uint8_t code[1 << 16]; /* from address 0 */
	uint8_t known[1 << 16];
	uint8_t packets[4096];
	size_t packet_bytes;
	char expected[8192], got[8192];
	uint64_t last_ip;
	bool crumbs; /* feed a byte at a time */
	bool mode32;
	struct pt_clock_config clock;
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

static uint32_t emit(struct scenario *s, uint32_t at, const uint8_t *bytes, size_t n)
{
	memcpy(s->code + at, bytes, n);
	memset(s->known + at, 1, n);
	return at + (uint32_t)n;
}

static const struct {
	const char *name;
	const char *bytes;
	size_t n;
} plain[] = {
	{"nop", "\x90", 1},	       {"ret", "\xc3", 1},		  {"jmp*", "\xff\xe0", 2},
	{"call*", "\xff\xd0", 2},      {"syscall", "\x0f\x05", 2},	  {"sysret", "\x48\x0f\x07", 3},
	{"iret", "\x48\xcf", 2},       {"int3", "\xcc", 1},		  {"int80", "\xcd\x80", 2},
	{"hlt", "\xf4", 1},	       {"vmlaunch", "\x0f\x01\xc2", 3}, {"vmresume", "\x0f\x01\xc3", 3},
	{"mov-cr3", "\x0f\x22\xd8", 3}, {"ud", "\xff\xff", 2},		  {"ptwrite", "\xf3\x48\x0f\xae\xe0", 5},
	{"ret-far", "\xcb", 1},	       {"vmptrld", "\x0f\xc7\x30", 3},	  {"xend", "\x0f\x01\xd5", 3},
};

/* nop ret jmp* ...; jcc X, jmp X, call X (rel32), jrcxz X (rel8); nops N; skip N: unknown code. */
static int assemble(struct scenario *s, const char *line, uint32_t *at)
{
	char op[32];
	unsigned long arg = 0;
	int n = sscanf(line, "%31s %lx", op, &arg);
	uint8_t b[6] = {0};
	int32_t rel;

	if (n < 1)
		return 0;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		if (!strcmp(op, plain[i].name)) {
			*at = emit(s, *at, (const uint8_t *)plain[i].bytes, plain[i].n);
			return 0;
		}
	}
	if (!strcmp(op, "nops")) {
		for (unsigned long i = 0; i < arg; i++)
			*at = emit(s, *at, (const uint8_t *)"\x90", 1);
		return 0;
	}
	if (!strcmp(op, "jcc")) {
		rel = (int32_t)(arg - (*at + 6));
		b[0] = 0x0f;
		b[1] = 0x85;
		memcpy(b + 2, &rel, 4);
		*at = emit(s, *at, b, 6);
		return 0;
	}
	if (!strcmp(op, "jmp") || !strcmp(op, "call")) {
		rel = (int32_t)(arg - (*at + 5));
		b[0] = op[0] == 'j' ? 0xe9 : 0xe8;
		memcpy(b + 1, &rel, 4);
		*at = emit(s, *at, b, 5);
		return 0;
	}
	if (!strcmp(op, "jrcxz")) {
		b[0] = 0xe3;
		b[1] = (uint8_t)(arg - (*at + 2));
		*at = emit(s, *at, b, 2);
		return 0;
	}
	return -1;
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

/* tip, pge, pgd, fup [IP[/IPBYTES]] (without IP: suppressed; default 6); tnt TTN; tnt64 TNT...; psb psbend pad ovf stop;
 * mode64 mode32 mode16; tsx BITS; tsc X; tma CTC FC; mtc X; cyc N; cbr N; pip CR3 NR; vmcs X; ptw X [ip]; exstop [ip];
 * mwait X; pwre X; pwrx X; bbp; bip ID X; bep [ip]; cfe TYPE VECTOR [ip]; evd TYPE X; mnt X; hex BYTES. Numbers are hex. */
static int packet(struct scenario *s, char *line)
{
	static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
	static const int size[8] = {0, 2, 4, 6, 6, 0, 8, 0};
	char op[32], a[64] = "", b[64] = "", c[64] = "";
	int n = sscanf(line, "%31s %63s %63s %63s", op, a, b, c);
	uint64_t x = strtoull(a, NULL, 16), y = strtoull(b, NULL, 16);
	const char *last = n > 3 ? c : n > 2 ? b : a;
	bool ip = !strcmp(last, "ip");

	if (n < 1)
		return 0;
	if (!strcmp(op, "tip") || !strcmp(op, "pge") || !strcmp(op, "pgd") || !strcmp(op, "fup")) {
		unsigned low = op[0] == 't' ? 0x0d : op[0] == 'f' ? 0x1d : op[2] == 'e' ? 0x11 : 0x01;
		char *slash = strchr(a, '/');
		unsigned ipbytes = n == 1 ? 0 : slash ? (unsigned)atoi(slash + 1) : 6;

		le(s, low | ipbytes << 5, 1);
		le(s, x, (size_t)size[ipbytes]);
	} else if (!strcmp(op, "tnt")) {
		unsigned v = 1;

		for (const char *p = a; *p; p++)
			v = v << 1 | (*p == 'T');
		le(s, v << 1, 1);
	} else if (!strcmp(op, "tnt64")) {
		uint64_t v = 1;

		for (const char *p = a; *p; p++)
			v = v << 1 | (*p == 'T');
		bytes(s, "\x02\xa3", 2);
		le(s, v, 6);
	} else if (!strcmp(op, "psb")) {
		bytes(s, psb, 16);
	} else if (!strcmp(op, "psbend")) {
		bytes(s, "\x02\x23", 2);
	} else if (!strcmp(op, "pad")) {
		bytes(s, "", 1);
	} else if (!strcmp(op, "ovf")) {
		bytes(s, "\x02\xf3", 2);
	} else if (!strcmp(op, "stop")) {
		bytes(s, "\x02\x83", 2);
	} else if (!strcmp(op, "mode64")) {
		bytes(s, "\x99\x01", 2);
	} else if (!strcmp(op, "mode32")) {
		bytes(s, "\x99\x02", 2);
	} else if (!strcmp(op, "mode16")) {
		bytes(s, "\x99\x00", 2);
	} else if (!strcmp(op, "tsx")) {
		bytes(s, "\x99", 1);
		le(s, 0x20 | x, 1);
	} else if (!strcmp(op, "tsc")) {
		bytes(s, "\x19", 1);
		le(s, x, 7);
	} else if (!strcmp(op, "tma")) {
		bytes(s, "\x02\x73", 2);
		le(s, x, 2);
		le(s, 0, 1);
		le(s, y, 2);
	} else if (!strcmp(op, "mtc")) {
		bytes(s, "\x59", 1);
		le(s, x, 1);
	} else if (!strcmp(op, "cyc")) {
		if (x < 32) {
			le(s, x << 3 | 3, 1);
		} else {
			le(s, (x & 31) << 3 | 7, 1);
			le(s, x >> 5 << 1, 1); /* up to 12 bits are enough here */
		}
	} else if (!strcmp(op, "cbr")) {
		bytes(s, "\x02\x03", 2);
		le(s, x, 2);
	} else if (!strcmp(op, "pip")) {
		bytes(s, "\x02\x43", 2);
		le(s, x >> 5 << 1 | y, 6);
	} else if (!strcmp(op, "vmcs")) {
		bytes(s, "\x02\xc8", 2);
		le(s, x >> 12, 5);
	} else if (!strcmp(op, "ptw")) {
		le(s, 2, 1);
		le(s, 0x32 | (ip ? 0x80 : 0), 1);
		le(s, x, 8);
	} else if (!strcmp(op, "exstop")) {
		le(s, 2, 1);
		le(s, 0x62 | (ip ? 0x80 : 0), 1);
	} else if (!strcmp(op, "mwait")) {
		bytes(s, "\x02\xc2", 2);
		le(s, x, 8);
	} else if (!strcmp(op, "pwre")) {
		bytes(s, "\x02\x22", 2);
		le(s, x, 2);
	} else if (!strcmp(op, "pwrx")) {
		bytes(s, "\x02\xa2", 2);
		le(s, x, 5);
	} else if (!strcmp(op, "bbp")) {
		bytes(s, "\x02\x63\x01", 3);
	} else if (!strcmp(op, "bip")) {
		le(s, x << 3 | 4, 1);
		le(s, y, 8);
	} else if (!strcmp(op, "bep")) {
		le(s, 2, 1);
		le(s, 0x33 | (ip ? 0x80 : 0), 1);
	} else if (!strcmp(op, "cfe")) {
		bytes(s, "\x02\x13", 2);
		le(s, x | (ip ? 0x80 : 0), 1);
		le(s, y, 1);
	} else if (!strcmp(op, "evd")) {
		bytes(s, "\x02\x53", 2);
		le(s, x, 1);
		le(s, y, 8);
	} else if (!strcmp(op, "mnt")) {
		bytes(s, "\x02\xc3\x88", 3);
		le(s, x, 8);
	} else if (!strcmp(op, "hex")) {
		for (char *p = strtok(line + 3, " \n"); p; p = strtok(NULL, " \n"))
			le(s, strtoull(p, NULL, 16), 1);
	} else {
		return -1;
	}
	return 0;
}

/* ---- What the flow tells ---------------------------------------------------------------------------- */

static void on_begin(void *arg, struct pt_flow *f, uint64_t tsc)
{
	(void)f;
	(void)tsc;
	say(arg, "begin\n");
}

static void on_run(void *arg, struct pt_flow *f, const struct pt_flow_run *run)
{
	const struct pt_path *path = &f->graph->paths[run->path];

	for (uint32_t r = 0; r < run->repeats; r++) {
		for (uint32_t i = 0; i < path->count; i++) {
			const struct pt_edge *edge = &f->graph->edges[f->graph->path_edges[path->first + i]];

			say(arg, "%" PRIx64 " %" PRIx64 " %s", edge->from, edge->to, ptr_kind_name(edge->kind));
			if (run->tsc != PT_CLOCK_UNKNOWN)
				say(arg, " %" PRIx64, run->tsc);
			say(arg, "\n");
		}
	}
	if (run->cyc_count != PTR_UNKNOWN)
		say(arg, "cyc %" PRIu64 " insn %" PRIu64 "\n", run->cyc_count, run->insn_count);
}

static void on_end(void *arg, struct pt_flow *f, uint64_t tsc, uint64_t insns, uint64_t cyc)
{
	(void)f;
	(void)tsc;
	(void)cyc;
	say(arg, "end %" PRIu64 "\n", insns);
}

static void on_error(void *arg, struct pt_flow *f, const struct pt_flow_error *err)
{
	(void)f;
	say(arg, "error %s %" PRIx64 "\n", pt_flow_error_name(err->kind), err->ip);
}

static bool on_missing(void *arg, struct pt_flow *f, uint64_t ip)
{
	(void)arg;
	(void)f;
	(void)ip;
	return false;
}

static void on_event(void *arg, struct pt_flow *f, const char *name, uint64_t ip, const char *fields)
{
	(void)f;
	(void)ip;
	say(arg, "event %s %s\n", name, fields);
}

static const struct pt_flow_sink sink = {.begin = on_begin,
					 .run = on_run,
					 .end = on_end,
					 .error = on_error,
					 .missing = on_missing,
					 .event = on_event};

/* ---- Running ---------------------------------------------------------------------------------------- */

static int decode(struct scenario *s)
{
	struct pt_error e;
	struct pt_graph graph;
	struct pt_flow *flow = malloc(sizeof *flow);
	struct img_store *store = img_store_create();
	struct img_space space;
	const uint8_t *p = s->packets, *end = p + s->packet_bytes, *at;
	int r = -1;

	img_space_init(&space);
	if (!flow || !store || pt_graph_init(&graph, &e) < 0)
		goto out;
	for (uint32_t i = 0, n; i < sizeof s->code; i += n) {
		struct ptc_image image = {.kind = PTC_IMAGE_MEMORY, .name = "x", .name_bytes = 1, .vaddr = i};

		for (n = 1; i + n < sizeof s->code && s->known[i + n] == s->known[i]; n++)
			;
		image.bytes = s->code + i;
		image.size = n;
		if (s->known[i])
			img_space_map(&space, i, i + n, i, img_store_memory(store, &image, &e), &e);
	}
	pt_flow_init(flow, &graph, &s->clock, &sink, s);
	flow->user = pt_graph_code(&graph, &space);
	if (s->crumbs) {
		for (const uint8_t *q = p; q <= end; q++) {
			pt_flow_feed(flow, p, q, (uint64_t)(p - s->packets), false, &at);
			p = at;
		}
	}
	pt_flow_feed(flow, p, end, (uint64_t)(p - s->packets), true, &at);
	pt_flow_finish(flow);
	pt_graph_deinit(&graph);
	r = 0;
out:
	img_space_deinit(&space);
	img_store_destroy(store);
	free(flow);
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

static void scenario(const char *path)
{
	struct scenario *s = calloc(1, sizeof *s);
	enum { NONE, CODE, PACKETS, EXPECT } section = NONE;
	FILE *f = fopen(path, "r");
	char line[512];
	uint32_t at = 0;
	int bad = 0, number = 0;

	s->clock = (struct pt_clock_config){.ctc_num = 160, .ctc_den = 2, .mtc_shift = 3, .nominal_ratio = 20, .mtc = true};
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
			at = (uint32_t)strtoul(p + 5, NULL, 16) & 0xffff;
		} else if (!strcmp(p, "packets\n")) {
			section = PACKETS;
		} else if (!strcmp(p, "expect\n")) {
			section = EXPECT;
		} else if (section == CODE) {
			bad = assemble(s, p, &at);
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
	} else {
		check(path, "whole", s);
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
		char path[512];
		size_t len = strlen(names[i]->d_name);

		if (len > 4 && !strcmp(names[i]->d_name + len - 4, ".pts")) {
			snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
			scenario(path);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	if (n < 0 || passed + failed == 0)
		failed++;
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
