/*
 * mkscale.c - writes a container with as much of everything as is asked for, to see how time and memory grow.
 *
 *   mkscale --bytes N [--streams N] --clone CONTAINER > FILE
 *   mkscale --bytes N [--streams N] [--threads N | --programs N [--cr3]]
 *           [--blocks N | --call-paths N] > FILE
 *
 * --clone: the AUX data of the container's only stream over and over. Each copy comes later in time, by a
 * multiple of what MTC and TMA packets count to before they begin anew, so only its TSC packets differ.
 * With several streams, which run at the same time, each is another thread's. perf's time is TSC, and what all
 * streams have of the same time is a round.
 * Else a made-up program runs, one stream a CPU, and the threads take turns on them; with --programs each is
 * a process of its own, which has the program at an address of its own; --cr3: the trace shows their CR3s, and
 * its PSBs are where they run. With --blocks it is a loop of so many basic blocks, each of which ends in a
 * conditional branch that is mostly, not always, taken. With --call-paths functions call each other, through a
 * pointer, along so many different paths before the first comes again.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/container/copy.h"
#include "decode/packet/packet.h"
#include "schema/array.h"
#include "schema/bytes.h"
#include "schema/container.h"

enum {
	PIECE = 1 << 16, /* bytes of AUX data in a chunk */
	PID = 1000,
	FIRST_TSC = 1000000,
	SLICE_TSC = 100000, /* how long a thread runs */
	FUNCTIONS = 10	    /* that each function calls */
};
#define PROGRAM	     UINT64_C(0x400000)
#define APART	     UINT64_C(0x1000000) /* of programs */
#define BLOCK	     "\x90\x90\x74"	 /* nop; nop; jz to what follows */
#define BLOCK_BYTES  4
#define SAMPLE_TYPE  (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)
#define SIDEBAND_MAX ((size_t)4 << 20)

static struct {
	uint64_t bytes, streams, threads, blocks, call_paths;
	bool programs; /* the threads are */
	bool cr3;
	const char *clone;
} opt = {.bytes = 1 << 20, .streams = 1, .threads = 1, .blocks = 1000};

static struct pt_error error;
static struct ptc_writer *w;

static int64_t ok(int64_t ret)
{
	if (ret < 0) {
		fprintf(stderr, "mkscale: %s\n", error.message);
		exit(1);
	}
	return ret;
}

/* ---- Bytes ------------------------------------------------------------------------------------------- */

struct buffer {
	uint8_t *bytes;
	size_t used, held;
};

static void put(struct buffer *b, const void *from, size_t n)
{
	while (b->used + n > b->held)
		ok(pt_array_grow(&b->bytes, b->held, &b->held, &error));
	memcpy(b->bytes + b->used, from, n);
	b->used += n;
}

static void put32(struct buffer *b, uint32_t lower, uint32_t upper)
{
	put(b, &(uint64_t){lower | (uint64_t)upper << 32}, 8);
}

/* A TSC packet has 56 bits of it. */
static void put_tsc(struct buffer *b, uint64_t tsc)
{
	put(b, &(uint64_t){tsc << 8 | 0x19}, 8);
}

static void put_psb(struct buffer *b)
{
	for (int i = 0; i < 8; i++)
		put(b, "\x02\x82", 2);
}

/* opcode: its lower five bits. IPBytes 110: the whole address. */
static void put_ip(struct buffer *b, uint8_t opcode, uint64_t ip)
{
	put(b, &(uint8_t){opcode | 6 << 5}, 1);
	put(b, &ip, 8);
}

/* ---- Streams ----------------------------------------------------------------------------------------- */

struct stream {
	uint32_t number;
	uint64_t offset; /* of what comes next, in the stream */
	struct buffer aux;
	/* Of the program that runs on it. */
	uint64_t position; /* block, or call path */
	uint64_t psb_at;   /* bytes at which the next PSB is due */
	unsigned bits, n;  /* TNT bits that are not yet in a packet */
	uint32_t tid;	   /* that runs, 0 none */
};

static struct stream *streams;
static uint64_t written;

static void declare(uint32_t pid, bool per_thread, uint32_t attr)
{
	streams = calloc(opt.streams, sizeof *streams);
	for (uint32_t i = 0; streams && i < opt.streams; i++) {
		struct ptc_stream s = {.cpu = (int32_t)i,
				       .pid = per_thread ? (int32_t)pid : -1,
				       .tid = per_thread ? (int32_t)(pid + i) : -1,
				       .attr = attr};

		streams[i].number = (uint32_t)ok(ptc_put_stream(w, &s, &error));
	}
	ok(streams ? 0 : -1);
}

static void put_aux(struct stream *s, const uint8_t *bytes, size_t size)
{
	struct ptc_aux aux = {.aux_offset = s->offset, .bytes = bytes, .size = size};

	ok(ptc_put_aux(w, s->number, &aux, &error));
	s->offset += size;
	written += size;
}

/* ---- Copies ------------------------------------------------------------------------------------------ */

static struct buffer original;
static size_t *tsc_packets, tsc_count, tsc_room;

/* Everything but AUX data is copied, that is read. */
static void read_original(uint64_t *ret_period, uint32_t *ret_pid)
{
	FILE *f = fopen(opt.clone, "rb");
	struct ptc_reader *r = f ? ptc_reader_create(fileno(f), &error) : NULL;
	struct ptc_meta *meta = ptc_meta_create();
	struct ptc_stream stream = {.pid = PID};
	struct ptc_chunk c;
	struct ptc_aux aux;

	if (!r || !meta) {
		fprintf(stderr, "mkscale: %s: %s\n", opt.clone, f ? error.message : strerror(errno));
		exit(1);
	}
	while (ok(ptc_next(r, &c, &error))) {
		switch (c.type) {
		case PTC_META: ok(ptc_meta_add(meta, &c, &error)); break;
		case PTC_STREAM: ok(ptc_parse_stream(&c, &stream, &error)); continue;
		case PTC_AUX:
			ok(ptc_parse_aux(&c, &aux, &error));
			put(&original, aux.bytes, aux.size);
			continue;
		default: break;
		}
		ok(container_copy_chunk(w, &c, &error));
	}
	/* TMA packets have 16 bits of the CTC. */
	*ret_period = 65536 * ptc_meta_number(meta, "tsc_ctc_numerator", 1) /
		      ptc_meta_number(meta, "tsc_ctc_denominator", 1);
	*ret_pid = stream.pid > 0 ? (uint32_t)stream.pid : PID;
	ptc_meta_destroy(meta);
	ptc_reader_destroy(r);
	fclose(f);
}

/* Where the TSC packets are. Returns what the last one has, less the first. */
static uint64_t find_times(void)
{
	const uint8_t *p = original.bytes, *end = p + original.used;
	struct pt_packet packet;
	uint64_t first = 0, last = 0;

	while (p < end && pt_packet_decode(p, end, 0, &packet) > 0) {
		if (packet.type == PT_TSC) {
			ok(pt_array_grow(&tsc_packets, tsc_count, &tsc_room, &error));
			tsc_packets[tsc_count++] = (size_t)(p - original.bytes);
			first = tsc_count == 1 ? packet.a : first;
			last = packet.a;
		}
		p += packet.size;
	}
	return last - first;
}

static void move_times(uint64_t by)
{
	for (size_t i = 0; i < tsc_count; i++) {
		uint64_t packet = u64(original.bytes + tsc_packets[i]) + (by << 8);

		memcpy(original.bytes + tsc_packets[i], &packet, 8);
	}
}

static void put_clock(void)
{
	ok(ptc_put_meta(w, "time_mult", "1", &error));
	ok(ptc_put_meta(w, "time_shift", "0", &error));
	ok(ptc_put_meta(w, "time_zero", "0", &error));
}

/* What has come of all streams up to that place: all up to the last TSC packet before it. *packet: the first
 * one after the round before. */
static void put_round(size_t at, size_t *packet)
{
	size_t before = *packet;

	while (*packet < tsc_count && tsc_packets[*packet] + 8 <= at)
		++*packet;
	if (*packet > before)
		ok(ptc_put_round(w, u64(original.bytes + tsc_packets[*packet - 1]) >> 8, &error));
}

static void write_copies(void)
{
	uint64_t period, later;
	uint32_t pid;

	put_clock();
	read_original(&period, &pid);
	later = (find_times() / period + 2) * period;
	declare(pid, true, UINT32_MAX);
	while (written < opt.bytes) {
		size_t packet = 0;

		for (size_t at = 0; at < original.used && written < opt.bytes; at += PIECE) {
			size_t n = original.used - at < PIECE ? original.used - at : PIECE;

			for (uint32_t i = 0; i < opt.streams; i++)
				put_aux(&streams[i], original.bytes + at, n);
			put_round(at + n, &packet);
		}
		move_times(later);
	}
}

/* ---- The program ------------------------------------------------------------------------------------- */

static uint64_t program_bytes;

/* Where the thread has the program. */
static uint64_t program_ip(uint32_t tid)
{
	return PROGRAM + (opt.programs ? (tid - PID) * APART : 0);
}

static uint32_t process_of(uint32_t tid)
{
	return opt.programs ? tid : PID;
}

static void put_program(void)
{
	/* jz to the ret; call *%rax; jmp back; ret */
	static const uint8_t function[16] = {0x74, 4, 0xff, 0xd0, 0xeb, 0xfa, 0xc3};
	struct ptc_image image = {
	    .kind = PTC_IMAGE_MEMORY, .pid = PID, .vaddr = PROGRAM, .name = "program", .name_bytes = 7};
	struct buffer b = {0};
	int32_t back;

	if (opt.programs) {
		image.kind = PTC_IMAGE_FILE;
		image.vaddr = 0;
	}
	for (uint64_t i = 0; opt.call_paths && i < FUNCTIONS; i++)
		put(&b, function, sizeof function);
	for (uint64_t i = 0; !opt.call_paths && i < opt.blocks; i++)
		put(&b, BLOCK, BLOCK_BYTES);
	back = -(int32_t)(b.used + 5);
	put(&b, "\xe9", 1);
	put(&b, &back, 4);
	image.bytes = b.bytes;
	image.size = program_bytes = b.used;
	ok(ptc_put_image(w, &image, &error));
	free(b.bytes);
}

static void flush_bits(struct stream *s)
{
	const uint8_t packet = (uint8_t)((1u << s->n | s->bits) << 1);

	if (s->n)
		put(&s->aux, &packet, 1);
	s->bits = s->n = 0;
}

static void put_bit(struct stream *s, unsigned bit)
{
	s->bits = s->bits << 1 | bit;
	if (++s->n == 6)
		flush_bits(s);
}

static uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

static uint64_t block_ip(const struct stream *s)
{
	return program_ip(s->tid) + BLOCK_BYTES * s->position;
}

/* To the next block. Which of them are taken is the same each time. */
static void run_block(struct stream *s)
{
	put_bit(s, (mix(s->position) & 3) != 0);
	if (++s->position == opt.blocks)
		s->position = 0;
}

/* How deep the functions call each other, so that there are call_paths ways to do so. */
static unsigned depth_max(void)
{
	unsigned depth = 1;

	for (uint64_t leaves = FUNCTIONS; leaves < opt.call_paths; leaves *= FUNCTIONS)
		depth++;
	return depth;
}

/* How many functions are on the way to this leaf and on that to the one before it. */
static unsigned in_common(uint64_t leaf)
{
	unsigned n = depth_max() - 1;

	for (; n > 0 && leaf % FUNCTIONS == 0; n--)
		leaf /= FUNCTIONS;
	return n;
}

static void put_returns(struct stream *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		put_bit(s, 1); /* jz */
		put_bit(s, 1); /* ret, compressed */
	}
}

/* Calls the next leaf of the tree, with `open` functions on the way to it called already; and returns to
 * what the leaf after it has in common with it, which many it says. */
static unsigned run_calls(struct stream *s, unsigned open)
{
	unsigned depth = depth_max(), keep;
	uint64_t unit = 1;

	for (unsigned i = open + 1; i < depth; i++)
		unit *= FUNCTIONS;
	for (unsigned i = open; i < depth; i++, unit /= FUNCTIONS) {
		put_bit(s, 0);
		flush_bits(s);
		put_ip(&s->aux, 0x0d, program_ip(s->tid) + 16 * (s->position / unit % FUNCTIONS));
	}
	if (++s->position >= opt.call_paths)
		s->position = 0;
	keep = in_common(s->position);
	put_returns(s, depth - keep);
	return keep;
}

/* ---- Threads ----------------------------------------------------------------------------------------- */

static struct buffer sideband;

static void end_record(size_t at, uint32_t tid, uint64_t time, uint32_t cpu)
{
	uint16_t size;

	put32(&sideband, process_of(tid), tid);
	put(&sideband, &time, 8);
	put32(&sideband, cpu, 0);
	size = (uint16_t)(sideband.used - at);
	memcpy(sideband.bytes + at + 6, &size, 2);
}

static void put_comm(uint32_t tid)
{
	struct perf_event_header h = {.type = PERF_RECORD_COMM};
	char name[16] = "";
	size_t at = sideband.used;

	snprintf(name, sizeof name, "t%" PRIu32, tid - PID);
	put(&sideband, &h, sizeof h);
	put32(&sideband, process_of(tid), tid);
	put(&sideband, name, sizeof name);
	end_record(at, tid, FIRST_TSC / 2, 0);
}

static void put_mapping(uint32_t tid)
{
	struct perf_event_header h = {.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER};
	const uint64_t place[] = {program_ip(tid), (program_bytes + 4095) / 4096 * 4096, 0, 0, 0, 0};
	size_t at = sideband.used;

	put(&sideband, &h, sizeof h);
	put32(&sideband, process_of(tid), tid);
	put(&sideband, place, sizeof place); /* address, length, offset; device, inode, generation */
	put32(&sideband, 5, 2);		     /* PROT_READ | PROT_EXEC, MAP_PRIVATE */
	put(&sideband, "program", 8);
	end_record(at, tid, FIRST_TSC / 2 + 1, 0);
}

/* Of `tid`; other: the thread that ran before, or runs next. */
static void put_switch(uint32_t tid, bool out, uint64_t time, uint32_t cpu)
{
	struct perf_event_header h = {.type = PERF_RECORD_SWITCH_CPU_WIDE,
				      .misc = out ? PERF_RECORD_MISC_SWITCH_OUT : 0};
	size_t at = sideband.used;

	put(&sideband, &h, sizeof h);
	put32(&sideband, out ? 0 : process_of(tid), out ? 0 : tid);
	end_record(at, tid, time, cpu);
}

static void flush_sideband(void)
{
	if (sideband.used)
		ok(ptc_put_sideband(w, 0, sideband.bytes, sideband.used, &error));
	sideband.used = 0;
}

/* Of a process. */
static void put_pip(struct stream *s)
{
	uint64_t payload = (uint64_t)(0x10000 + (s->tid - PID) * 2) << 12 >> 5 << 1;

	put(&s->aux, "\x02\x43", 2);
	put(&s->aux, &payload, 6);
}

/* A PSB+ in the middle of what runs: TSC, MODE.Exec of 64 bits, PIP, FUP. */
static void put_psb_running(struct stream *s, uint64_t tsc)
{
	put_psb(&s->aux);
	put_tsc(&s->aux, tsc);
	put(&s->aux, "\x99\x01", 2);
	put_pip(s);
	put_ip(&s->aux, 0x1d, block_ip(s));
	put(&s->aux, "\x02\x23", 2);
	s->psb_at = s->offset + s->aux.used + PIECE / 4;
}

/* A thread's turn: so many bytes. */
static void run_thread(struct stream *s, uint64_t tsc, size_t bytes)
{
	size_t begin = s->aux.used;
	unsigned open = 0;

	if (s->offset + begin >= s->psb_at) {
		put_psb(&s->aux);
		put_tsc(&s->aux, tsc);
		put(&s->aux, "\x02\x23", 2);
		s->psb_at = s->offset + begin + PIECE;
	} else {
		put_tsc(&s->aux, tsc);
	}
	if (opt.cr3)
		put_pip(s);
	put_ip(&s->aux, 0x11, opt.call_paths ? program_ip(s->tid) : block_ip(s)); /* TIP.PGE */
	for (uint64_t time = tsc + 100; s->aux.used - begin < bytes; time += 100) {
		size_t end = s->aux.used + 128;

		while (s->aux.used < end)
			if (opt.call_paths)
				open = run_calls(s, open);
			else
				run_block(s);
		flush_bits(s);
		if (opt.cr3 && s->offset + s->aux.used >= s->psb_at)
			put_psb_running(s, time < tsc + SLICE_TSC / 2 ? time : tsc + SLICE_TSC / 2);
		put_tsc(&s->aux, time < tsc + SLICE_TSC / 2 ? time : tsc + SLICE_TSC / 2);
	}
	put_returns(s, open);
	flush_bits(s);
	put_ip(&s->aux, 0x1d, opt.call_paths ? program_ip(s->tid) : block_ip(s)); /* FUP, TIP.PGD */
	put(&s->aux, "\x01", 1);
}

static void begin_container(void)
{
	struct perf_event_attr attr = {.type = 8,
				       .size = sizeof attr,
				       .config = 0x2001, /* branches; no return compression is off */
				       .sample_type = SAMPLE_TYPE,
				       .sample_id_all = 1,
				       .exclude_kernel = 1,
				       .context_switch = 1};
	struct ptc_attr a = ptc_host_attr("intel_pt", &attr, sizeof attr, &(uint64_t){1}, 1);

	ok(ptc_put_meta(w, "engine", "perf", &error));
	ok(ptc_put_meta(w, "uuid", "5ca1e", &error));
	ok(ptc_put_meta(w, "pt_user_only", opt.cr3 ? "0" : "1", &error));
	ok(ptc_put_meta(w, "time_mult", "1", &error));
	ok(ptc_put_meta(w, "time_shift", "0", &error));
	ok(ptc_put_meta(w, "time_zero", "0", &error));
	ok(ptc_put_attr(w, &a, &error));
}

static void write_program(void)
{
	uint64_t turns = opt.bytes / PIECE, tsc = FIRST_TSC, turn = 0;
	size_t each;

	if (turns < 2 * opt.threads)
		turns = 2 * opt.threads;
	each = opt.bytes / turns;
	begin_container();
	put_program();
	for (uint32_t i = 0; i < opt.threads; i++) {
		put_comm(PID + i);
		if (opt.programs)
			put_mapping(PID + i);
		if (sideband.used > SIDEBAND_MAX)
			flush_sideband();
	}
	declare(PID, false, 0);
	while (turn < turns) {
		for (uint64_t batch = 0; batch < PIECE && turn < turns; batch += each) {
			for (uint32_t i = 0; i < opt.streams; i++, turn++) {
				uint32_t tid = PID + (uint32_t)(turn % opt.threads);

				streams[i].tid = tid;
				put_switch(tid, false, tsc - 10, i);
				run_thread(&streams[i], tsc, each);
				put_switch(tid, true, tsc + SLICE_TSC - 20, i);
				if (sideband.used > SIDEBAND_MAX)
					flush_sideband();
			}
			tsc += SLICE_TSC;
		}
		flush_sideband();
		for (uint32_t i = 0; i < opt.streams; i++) {
			put_aux(&streams[i], streams[i].aux.bytes, streams[i].aux.used);
			streams[i].aux.used = 0;
		}
		ok(ptc_put_round(w, tsc - SLICE_TSC, &error));
	}
}

static bool read_options(int argc, char **argv)
{
	static const struct option longs[] = {
	    {"bytes", 1, NULL, 'b'},	{"streams", 1, NULL, 's'},    {"threads", 1, NULL, 't'},
	    {"blocks", 1, NULL, 'k'},	{"call-paths", 1, NULL, 'c'}, {"clone", 1, NULL, 'l'},
	    {"programs", 1, NULL, 'p'}, {"cr3", 0, NULL, 'r'},	      {NULL, 0, NULL, 0}};

	for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
		uint64_t n = optarg ? strtoull(optarg, NULL, 10) : 0;

		switch (c) {
		case 'b': opt.bytes = n; break;
		case 's': opt.streams = n; break;
		case 't': opt.threads = n; break;
		case 'r': opt.cr3 = true; break;
		case 'p':
			opt.threads = n;
			opt.programs = true;
			break;
		case 'k': opt.blocks = n; break;
		case 'c': opt.call_paths = n; break;
		case 'l': opt.clone = optarg; break;
		default: return false;
		}
	}
	if (opt.threads < opt.streams)
		opt.threads = opt.streams;
	return optind == argc && opt.bytes && opt.streams && opt.threads && opt.blocks;
}

int main(int argc, char **argv)
{
	if (!read_options(argc, argv) || isatty(STDOUT_FILENO)) {
		fprintf(stderr, "usage: mkscale --bytes N [--streams N] [--threads N | --programs N [--cr3]] "
				"[--blocks N | --call-paths N | "
				"--clone CONTAINER] > FILE\n");
		return 2;
	}
	w = ptc_writer_create(STDOUT_FILENO, NULL, -7, &error);
	ok(w ? 0 : -1);
	if (opt.clone)
		write_copies();
	else
		write_program();
	ok(ptc_put_round(w, UINT64_MAX, &error));
	ok(ptc_writer_finish(w, &error));
	ptc_writer_destroy(w);
	return 0;
}
