/*
 * test_pt_encode.c - the step engine's packets, byte for byte as the Intel SDM (vol. 3, "Intel Processor
 * Trace") has them, and their order and times as its "Packet Generation Scenarios", "Cycle Packet Semantics"
 * say.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/pt/encode.h"
#include "decode/packet/packet.h"
#include "tests/unit/check.h"

/* The packets at p as words: "tnt.110 tip 401000", with payloads where they have one. */
static void words(const uint8_t *p, size_t n, char *to, size_t room)
{
	const uint8_t *end = p + n;
	size_t at = 0;

	*to = 0;
	while (p < end && at < room) {
		struct pt_packet k;
		int len = pt_packet_decode(p, end, 0, &k);

		if (len <= 0) {
			snprintf(to + at, room - at, " bad.%02x", *p);
			return;
		}
		if (!(p[0] & 1) && p[0] != 2) { /* short TNT: the bits below the highest one */
			int top = 7;

			at += (size_t)snprintf(to + at, room - at, " tnt.");
			while (!(p[0] >> top & 1))
				top--;
			while (--top > 0 && at < room)
				at += (size_t)snprintf(to + at, room - at, "%d", p[0] >> top & 1);
		} else {
			at += (size_t)snprintf(to + at, room - at, " ");
			for (int i = 0; i < len && at < room; i++)
				at += (size_t)snprintf(to + at, room - at, "%02x", p[i]);
		}
		p += len;
	}
	memmove(to, to + (*to == ' '), strlen(to) + 1);
}

/* begin() makes an encoder, after a PSB+; end() compares what it appended since. */
static struct pt_model model;
static struct pt_encode_config config;
static struct pt_encoder e;

static void begin(bool tsc, bool mtc, bool cyc)
{
	model.cycles = 3000000; /* TSC 2,000,000 = 1e8480, CTC 25,000 = 61a8 */
	config = (struct pt_encode_config){
	    .tsc = tsc, .mtc = mtc, .cyc = cyc, .retcomp = true, .mtc_shift = 3, .psb_bytes = 1 << 20};
	pt_encode_init(&e, &config, &model);
	pt_encode_begin(&e, 0x401000, true);
}

static void end(const char *name, const char *want)
{
	char got[4096];

	words(e.bytes, e.size, got, sizeof got);
	check_text(got, want, name);
	pt_encode_deinit(&e);
}

#define PSB "02820282028202820282028202820282"

static void test_psb(void)
{
	begin(true, true, false);
	end("PSB+: TSC, TMA, CBR, MODE.TSX, PSBEND; tracing is still off; then MODE.Exec, TIP.PGE with all "
	    "of the IP",
	    PSB " 1980841e00000000 0273a861000000 02031e00 9920 0223 9901 71001040000000");

	begin(true, true, false);
	e.size = 0;
	pt_encode_psb(&e, 0x401002);
	end("PSB+ while tracing: with MODE.Exec and FUP",
	    PSB " 1980841e00000000 0273a861000000 02031e00 9920 9901 7d021040000000 0223");
}

/* MTC counts to 256 periods, here of 8 CTC ticks. */
static void test_sleep(void)
{
	begin(true, true, true);
	e.size = 0;
	pt_encode_end(&e);
	model.cycles = 6000000; /* TSC 4,000,000 = 3d0900, CTC 50,000 = c350: 3,125 periods later */
	pt_encode_begin(&e, 0x401008, false);
	end("after a sleep of more periods than MTC has bits for: PSB+ with the time",
	    "01 " PSB " 1900093d00000000 027350c3000000 02031e00 9920 0223 9901 71081040000000");
}

static void test_branches(void)
{
	begin(false, false, false);
	e.size = 0;
	for (int i = 0; i < 6; i++)
		pt_encode_jcc(&e, i % 2 == 0, 0);
	pt_encode_jcc(&e, true, 0);
	pt_encode_flush(&e);
	end("TNT: oldest bit first, sent when full; the rest when it is wanted", "tnt.101010 tnt.1");

	begin(false, false, false);
	e.size = 0;
	pt_encode_jcc(&e, true, 0);
	pt_encode_indirect(&e, 0x401234);
	pt_encode_indirect(&e, 0x7f0000401234);
	pt_encode_indirect(&e, 0x7f0012341234);
	pt_encode_indirect(&e, 0xffffffff81000000);
	pt_encode_indirect(&e, 0x0012345678901234);
	end("TIP: after the TNT; 2, 6, 4, 6 (sign extended), 8 bytes",
	    "tnt.1 2d3412 8d34124000007f 4d34123412 6d00000081ffff cd3412907856341200");

	begin(false, false, false);
	e.size = 0;
	pt_encode_push(&e, 0x401005);
	pt_encode_ret(&e, 0x401005);
	pt_encode_push(&e, 0x401005);
	pt_encode_ret(&e, 0x401006);
	pt_encode_ret(&e, 0x401005);
	end("RET: a TNT bit when it returns to after its call, else TIP", "tnt.1 2d0610 2d0510");

	begin(false, false, false);
	config.retcomp = false;
	e.size = 0;
	pt_encode_push(&e, 0x401005);
	pt_encode_ret(&e, 0x401005);
	end("RET, not compressed", "2d0510");
}

static void test_ends(void)
{
	begin(false, false, false);
	e.size = 0;
	pt_encode_end(&e);
	pt_encode_begin(&e, 0x401008, false);
	end("system call: TIP.PGD without IP; MODE.Exec, TIP.PGE", "01 9901 310810");

	begin(false, false, false);
	e.size = 0;
	pt_encode_jcc(&e, false, 0);
	pt_encode_async_end(&e, 0x401003);
	end("interrupt, fault, INT3: TNT, FUP with the IP, TIP.PGD without", "tnt.0 3d0310 01");

	begin(false, false, false);
	e.size = 0;
	pt_encode_async(&e, 0x401003, 0x401050, true);
	end("a transaction's abort: MODE.TSX, FUP, TIP", "9922 3d0310 2d5010");
}

static void test_time(void)
{
	begin(true, true, false);
	e.size = 0;
	pt_encode_jcc(&e, true, 0);
	model.cycles += 2000; /* 1,333 TSC, 16 CTC: two periods */
	pt_encode_jcc(&e, true, 0);
	pt_encode_flush(&e);
	end("MTC: what retired before it is written before it; one per period", "tnt.1 5936 5937 tnt.1");

	/* CYC: 5 bits in its first byte; the cycles up to what follows it, of a TNT the first branch. */
	begin(true, false, true);
	e.size = 0;
	model.cycles += 7;
	pt_encode_jcc(&e, true, 0);
	model.cycles += 100;
	pt_encode_jcc(&e, true, 0);
	model.cycles += 10;
	pt_encode_indirect(&e, 0x401010);
	end("CYC before a TNT is its first branch's time, the next one's counts from there",
	    "3b tnt.11 7706 2d1010");

	begin(true, true, true);
	e.size = 0;
	model.cycles += 5;
	pt_encode_jcc(&e, true, 0);
	model.cycles += 1000; /* the period of 8 CTC is 640 TSC, 960 cycles */
	pt_encode_flush(&e);
	end("CYC before MTC: when the CTC ticked, not when it was noticed", "2b tnt.1 df3a 5936");

	begin(true, false, true);
	config.cyc_min = 64;
	e.size = 0;
	model.cycles += 63;
	pt_encode_indirect(&e, 0x401010);
	model.cycles += 1;
	pt_encode_indirect(&e, 0x401020);
	end("CYC threshold: none before its cycles are over, then all of them", "2d1010 0704 2d2010");
}

int main(void)
{
	test_psb();
	test_sleep();
	test_branches();
	test_ends();
	test_time();
	return sum_up();
}
