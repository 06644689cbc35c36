/*
 * encode.c - packets as the SDM says that a CPU writes them (vol. 3, "Intel Processor Trace": "Packet
 * definitions", "Deferred TIPs", "IP compression", "Indirect transfer compression for returns"); see
 * random.h.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/oracle/random/random.h"

static void byte(struct encoder *e, unsigned v)
{
	struct trace *t = e->trace;

	if (t->bytes == t->room) {
		t->room = t->room ? t->room * 2 : 4096;
		t->packets = realloc(t->packets, t->room);
		if (!t->packets)
			abort();
	}
	t->packets[t->bytes++] = (uint8_t)v;
}

static void bytes(struct encoder *e, uint64_t v, unsigned n)
{
	for (; n; n--, v >>= 8)
		byte(e, v & 0xff);
}

uint64_t encode_tsc(const struct encoder *e)
{
	return 1000000 + e->cycles * e->config->nominal_ratio / e->config->cbr;
}

/* CYC comes before the packets that the SDM calls CYC-eligible, with the time of what they report. */
static void cyc(struct encoder *e, uint64_t cycles)
{
	uint64_t n = cycles - e->cyc_sent;

	if (!e->config->cyc || cycles <= e->cyc_sent)
		return;
	e->cyc_sent = cycles;
	byte(e, (unsigned)(n & 31) << 3 | (n > 31 ? 7 : 3));
	for (n >>= 5; n; n >>= 7)
		byte(e, (unsigned)(n & 127) << 1 | (n > 127));
}

static void eligible(struct encoder *e)
{
	cyc(e, e->cycles);
}

static void tnt_packet(struct encoder *e)
{
	uint64_t stop = (uint64_t)1 << e->tnt_n;

	if (!e->tnt_n)
		return;
	cyc(e, e->tnt_cycles);
	if (e->tnt_n <= 6 && !(e->config->long_tnt && one_in(e->dice, 2))) {
		byte(e, (unsigned)(stop | e->tnt) << 1);
	} else {
		bytes(e, 0xa302, 2);
		bytes(e, stop | e->tnt, 6);
	}
	e->tnt = 0;
	e->tnt_n = 0;
}

static void ip_packet(struct encoder *e, enum ip_packet type, uint64_t ip)
{
	static const uint8_t size[] = {0, 2, 4, 6, 6, 0, 8};
	uint64_t changed = ip ^ e->last_ip;
	unsigned fits[5], n = 0;

	if (changed >> 16 == 0)
		fits[n++] = 1;
	if (changed >> 32 == 0)
		fits[n++] = 2;
	if ((uint64_t)((int64_t)(ip << 16) >> 16) == ip)
		fits[n++] = 3;
	if (changed >> 48 == 0)
		fits[n++] = 4;
	fits[n++] = 6;
	/* Most often the shortest. */
	n = one_in(e->dice, 4) ? fits[pick(e->dice, n)] : fits[0];
	eligible(e);
	byte(e, (unsigned)type | n << 5);
	bytes(e, ip, size[n]);
	e->last_ip = ip;
}

void encode_init(struct encoder *e, const struct config *c, struct dice *d, struct trace *t)
{
	memset(e, 0, sizeof *e);
	e->config = c;
	e->dice = d;
	e->trace = t;
}

void encode_flush(struct encoder *e)
{
	if (e->overflow)
		return;
	tnt_packet(e);
	for (unsigned i = 0; i < e->tips_n; i++)
		ip_packet(e, IP_TIP, e->tips[i]);
	e->tips_n = 0;
	e->flushed = true;
}

void encode_tnt(struct encoder *e, bool taken)
{
	if (e->overflow)
		return;
	if (!e->tnt_n)
		e->tnt_cycles = e->cycles;
	e->tnt = e->tnt << 1 | taken;
	if (++e->tnt_n == (e->config->long_tnt ? 47 : 6))
		encode_flush(e);
}

void encode_tip(struct encoder *e, uint64_t ip)
{
	if (e->overflow)
		return;
	if (e->tnt_n && e->config->defer_tips && e->tips_n < TIPS_MAX) {
		e->tips[e->tips_n++] = ip;
		return;
	}
	encode_flush(e);
	ip_packet(e, IP_TIP, ip);
}

void encode_call(struct encoder *e, uint64_t next)
{
	if (e->depth == 64)
		memmove(e->stack, e->stack + 1, 63 * sizeof *e->stack);
	else
		e->depth++;
	e->stack[e->depth - 1] = next;
}

bool encode_ret(struct encoder *e, uint64_t to)
{
	bool same = e->depth && e->stack[e->depth - 1] == to;

	if (e->depth) {
		e->depth--;
		e->trace->odd_returns += !same && !e->config->disretc;
	}
	if (same && !e->config->disretc && !e->overflow) {
		encode_tnt(e, true);
		return true;
	}
	/* It is not deferred: a TNT in progress would say that the return is compressed. */
	encode_ip(e, IP_TIP, to);
	return false;
}

void encode_ip(struct encoder *e, enum ip_packet type, uint64_t ip)
{
	if (e->overflow)
		return;
	encode_flush(e);
	ip_packet(e, type, ip);
}

void encode_no_ip(struct encoder *e, enum ip_packet type)
{
	if (e->overflow)
		return;
	encode_flush(e);
	eligible(e);
	byte(e, type);
}

static void mode(struct encoder *e, enum width width)
{
	byte(e, 0x99);
	byte(e, width == WIDTH_64 ? 1 : width == WIDTH_32 ? 2 : 0);
}

void encode_mode(struct encoder *e, enum width width)
{
	if (e->overflow)
		return;
	encode_flush(e);
	mode(e, width);
}

static void pip(struct encoder *e, uint64_t cr3, bool nr)
{
	bytes(e, 0x4302, 2);
	bytes(e, cr3 >> 5 << 1 | nr, 6);
}

void encode_pip(struct encoder *e, uint64_t cr3, bool nr)
{
	if (e->overflow)
		return;
	encode_flush(e);
	eligible(e);
	pip(e, cr3, nr);
}

void encode_ptwrite(struct encoder *e, uint64_t payload, bool eight, bool fup)
{
	if (e->overflow)
		return;
	encode_flush(e);
	eligible(e);
	byte(e, 0x02);
	byte(e, 0x12 | (unsigned)eight << 5 | (unsigned)fup << 7);
	bytes(e, payload, eight ? 8 : 4);
}

static uint64_t ctc(const struct encoder *e)
{
	return encode_tsc(e) * e->config->ctc_den / e->config->ctc_num;
}

static void timing(struct encoder *e)
{
	const struct config *c = e->config;
	uint64_t tick = ctc(e);

	if (c->tsc) {
		byte(e, 0x19);
		bytes(e, encode_tsc(e), 7);
	}
	if (c->tsc && c->mtc) {
		/* The TSC at the tick: the first that gives it. */
		uint64_t at = (tick * c->ctc_num + c->ctc_den - 1) / c->ctc_den;

		bytes(e, 0x7302, 2);
		bytes(e, tick, 2);
		byte(e, 0);
		bytes(e, encode_tsc(e) - at, 2);
	}
	if (c->mtc)
		e->mtc_next = (tick >> c->mtc_shift) + 1;
	bytes(e, 0x0302, 2);
	bytes(e, c->cbr, 2);
}

void encode_psb(struct encoder *e, bool enabled, uint64_t ip, enum width width, uint64_t cr3, bool nr,
		uint64_t vmcs)
{
	if (e->overflow)
		return;
	encode_flush(e);
	if (e->config->cyc)
		eligible(e);
	for (int i = 0; i < 8; i++)
		bytes(e, 0x8202, 2);
	e->last_ip = 0;
	e->depth = 0;
	timing(e);
	if (one_in(e->dice, 8))
		byte(e, 0);
	if (cr3)
		pip(e, cr3, nr);
	if (vmcs) {
		bytes(e, 0xc802, 2);
		bytes(e, vmcs >> 12, 5);
	}
	if (enabled) {
		mode(e, width);
		ip_packet(e, IP_FUP, ip);
	}
	bytes(e, 0x2302, 2);
	e->trace->psbs++;
}

void encode_overflow_begin(struct encoder *e)
{
	if (one_in(e->dice, 2))
		encode_flush(e);
	e->overflow = true;
	e->tnt = 0;
	e->tnt_n = 0;
	e->tips_n = 0;
}

void encode_overflow_end(struct encoder *e)
{
	e->overflow = false;
	bytes(e, 0xf302, 2);
	e->last_ip = 0;
	e->depth = 0;
	e->cyc_sent = e->cycles;
	if (e->config->tsc)
		timing(e);
}

void encode_pass(struct encoder *e, uint32_t cycles)
{
	for (; cycles; cycles--) {
		e->cycles++;
		if (!e->mtc_next || ctc(e) >> e->config->mtc_shift < e->mtc_next)
			continue;
		if (!e->overflow) {
			encode_flush(e);
			eligible(e);
			byte(e, 0x59);
			byte(e, e->mtc_next & 0xff);
		}
		e->mtc_next++;
	}
}

void trace_free(struct trace *t)
{
	free(t->packets);
	free(t->facts);
}
