/*
 * scenario_file.h - the file of a scenario, tests/scenarios/NAME.pts: a rule by which packets are
 * understood, as code, packets and what must come out.
 *
 *   # what rule, and where the SDM states it
 *   config             optional: "mtc SHIFT", "ratio NUM DEN", "nominal N" (0: no CBR ratio),
 *                      "model M" (of family 6, hexadecimal: its errata), "notnt", "snapshot",
 *                      "filter START END" (hexadecimal, the end is out: traced by the CPU's address filter)
 *   code 1000 [guest]  a label for the address; then one instruction per line (see assemble()). Addresses of
 *                      the upper half (ffffffff8000xxxx) are the kernel's; there are 64 KB of each, by the
 *                      low 16 bits
 *   code 1000 late     the same, but the user's code from here on is known only after the flow missed some
 *   packets            one packet per line, a word and its arguments (see packet()); "lost" and "lost whole":
 *                      AUX data is missing here (and what follows begins with a whole packet)
 *   expect             what the flow reports, one line each:
 *     begin [TSC]      execution is seen from here on
 *     1000 2000 jcc    a taken branch: from, to (0: not seen), kind; a third number is the TSC of its run,
 *                      "exact" if that is the branch's, else "interval". jcc+trace_end: tracing stopped with it
 *     cyc N insn M     the run's cycles and their instructions
 *     end N            it is not seen any more; N instructions were executed
 *     error KIND [IP]
 *     event NAME FIELDS
 *     enter GUEST-IP HOST-IP VMCS CR3 [concealed], exit (the same): a VM entry or exit
 *     side NR          a VM entry or exit that was not seen
 *
 * A path that does not start where the one before it in the slice ended, or instructions of a slice
 * that are not its paths', are a line "gap". Runs and repeats are flattened. Lines of "expect" may be
 * fewer in fields than what comes (a prefix of words). Each scenario is decoded as a whole, and byte
 * by byte.
 */
#ifndef TESTS_SCENARIO_FILE_H
#define TESTS_SCENARIO_FILE_H

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow.h"
#include "decode/packet/errata.h"

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
	bool no_tnt, snapshot;
};

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
	else if (n == 1 && !strcmp(what, "snapshot"))
		s->snapshot = true;
	else if (n > 1 && !strcmp(what, "filter"))
		return sscanf(line, "%*s %" SCNx64 " %" SCNx64, &s->filter_start, &s->filter_end) == 2 ? 0
												       : -1;
	else if (n > 1 && !strcmp(what, "model")) /* of family 6 */
		s->errata = pt_errata_of(6, (uint32_t)strtoul(name, NULL, 16));
	else
		return -1;
	return 0;
}

/* What its lines are, as a file is read. */
struct scenario_reader {
	struct scenario *s;
	enum { NO_SECTION, CONFIG, CODE, PACKETS, EXPECT } section;
	uint64_t at; /* CODE: the next instruction's address */
	unsigned space;
};

/* One line without comment and blanks around it, with its newline. 0, or -1: it is none of its section. */
static int read_line(struct scenario_reader *r, char *line)
{
	struct scenario *s = r->s;

	if (!strncmp(line, "code ", 5)) {
		r->section = CODE;
		r->at = strtoull(line + 5, NULL, 16);
		r->space = (r->at >> 63 ? KERNEL : USER) + (strstr(line, "guest") ? GUEST_USER : 0);
		if (strstr(line, "late"))
			s->late = (uint32_t)r->at & 0xffff;
		s->bits = 64;
		return 0;
	}
	if (!strcmp(line, "config\n")) {
		r->section = CONFIG;
		return 0;
	}
	if (!strcmp(line, "packets\n")) {
		r->section = PACKETS;
		return 0;
	}
	if (!strcmp(line, "expect\n")) {
		r->section = EXPECT;
		return 0;
	}
	switch (r->section) {
	case CODE: return assemble(s, line, r->space, &r->at);
	case CONFIG: return configure(s, line);
	case PACKETS: return packet(s, line);
	case EXPECT: strncat(s->expected, line, sizeof s->expected - strlen(s->expected) - 1); return 0;
	default: return -1;
	}
}

/* 0, or the line's number that cannot be read; -1 without a file. */
static int read_scenario(struct scenario *s, const char *path)
{
	struct scenario_reader r = {.s = s};
	FILE *f = fopen(path, "r");
	char line[512];
	int ret = 0;

	if (!f)
		return -1;
	s->clock = (struct pt_clock_config){
	    .ctc_num = 160, .ctc_den = 2, .mtc_shift = 3, .nominal_ratio = 20, .mtc = true};
	for (int number = 1; !ret && fgets(line, sizeof line, f); number++) {
		char *p = line, *hash = strchr(line, '#');

		if (hash)
			strcpy(hash, "\n");
		while (isspace((unsigned char)*p) && *p != '\n')
			p++;
		for (size_t n = strlen(p); n > 1 && isspace((unsigned char)p[n - 2]); n--)
			strcpy(p + n - 2, "\n");
		if (*p != '\n' && *p && read_line(&r, p) < 0)
			ret = number;
	}
	fclose(f);
	return ret;
}

/* ---- A seed of the fuzzer --------------------------------------------------------------------------- */

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

#endif
