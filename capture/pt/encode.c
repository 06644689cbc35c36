/* encode.c - see encode.h. */
#include "capture/pt/encode.h"

#include <stdlib.h>
#include <string.h>

#define MTC_MAX 64 /* MTC packets at once */

void pt_encode_init(struct pt_encoder *e, const struct pt_encode_config *config, const struct pt_model *model)
{
	memset(e, 0, sizeof *e);
	e->config = config;
	e->model = model;
	e->want_psb = true;
}

void pt_encode_deinit(struct pt_encoder *e)
{
	free(e->bytes);
	e->bytes = NULL;
}

static void put(struct pt_encoder *e, const void *bytes, size_t n)
{
	if (e->size + n > e->room) {
		size_t room = e->room ? e->room * 2 : 65536;
		uint8_t *b = realloc(e->bytes, room);

		if (!b) {
			e->no_memory = true;
			return;
		}
		e->bytes = b;
		e->room = room;
	}
	memcpy(e->bytes + e->size, bytes, n);
	e->size += n;
	e->total += n;
}

/* Opcodes, the first byte lowest; those of two bytes begin with 02. TIP, TIP.PGE, TIP.PGD, FUP: IPBytes 0. */
enum {
	OP_TIP_PGD = 0x01,
	OP_TIP = 0x0d,
	OP_TIP_PGE = 0x11,
	OP_FUP = 0x1d,
	OP_TSC = 0x19,
	OP_MTC = 0x59,
	OP_MODE = 0x99,
	OP_CBR = 0x0302,
	OP_PSBEND = 0x2302,
	OP_TMA = 0x7302
};

/* Payloads of MODE. */
enum { MODE_EXEC_64 = 0x01, MODE_TSX_NONE = 0x20, MODE_TSX_ABORT = 0x22 };

/* An opcode and a little-endian payload of n bytes. */
static void packet(struct pt_encoder *e, unsigned op, uint64_t payload, size_t n)
{
	size_t op_bytes = op > 0xff ? 2 : 1;
	uint8_t b[16];

	b[0] = (uint8_t)op;
	b[1] = (uint8_t)(op >> 8);
	memcpy(b + op_bytes, &payload, n);
	put(e, b, op_bytes + n);
}

static uint64_t ctc_now(const struct pt_encoder *e)
{
	return pt_model_tsc(e->model) * PT_MODEL_CTC_DEN / PT_MODEL_CTC_NUM;
}

/* CYC: the cycles from the last one to `at`, when that happened which the next packet reports. */
static void cyc(struct pt_encoder *e, uint64_t at)
{
	uint64_t n = at - e->cyc_cycles;
	uint8_t b[12];
	size_t i = 1;

	if (!e->config->cyc || at <= e->cyc_cycles || n < e->config->cyc_min)
		return;
	e->cyc_cycles = at;
	b[0] = (uint8_t)((n & 31) << 3 | 3);
	n >>= 5;
	if (n)
		b[0] |= 4;
	for (; n; n >>= 7, i++)
		b[i] = (uint8_t)((n & 127) << 1 | (n >> 7 ? 1 : 0));
	put(e, b, i);
}

static void cyc_now(struct pt_encoder *e)
{
	cyc(e, e->model->cycles);
}

/* The CYC before a TNT is the time of its first branch (SDM "Cycle Packet Semantics"). */
static void put_tnt(struct pt_encoder *e)
{
	if (!e->tnt.count)
		return;
	cyc(e, e->tnt.first_cycles);
	packet(e, (1u << (e->tnt.count + 1)) | e->tnt.bits << 1, 0, 0);
	e->tnt.bits = 0;
	e->tnt.count = 0;
}

/*
 * MTC, at its own time, for each period of CTC ticks that began since the last one. Branches that retired
 * before are written first.
 */
static void mtc(struct pt_encoder *e)
{
	uint64_t now, shift = e->config->mtc_shift;

	if (!e->config->mtc)
		return;
	now = ctc_now(e) >> shift;
	if (e->mtc_period < now)
		put_tnt(e);
	/* What ends now slept before: nothing is traced after that, and nobody needs them all. */
	if (now - e->mtc_period > MTC_MAX)
		e->mtc_period = now - MTC_MAX;
	while (e->mtc_period < now) {
		uint64_t tsc = (++e->mtc_period << shift) * PT_MODEL_CTC_NUM / PT_MODEL_CTC_DEN;

		cyc(e, (tsc * PT_MODEL_CBR + PT_MODEL_NOMINAL - 1) / PT_MODEL_NOMINAL);
		packet(e, OP_MTC, e->mtc_period & 0xff, 1);
	}
}

void pt_encode_flush(struct pt_encoder *e)
{
	mtc(e);
	put_tnt(e);
}

/* TIP*, FUP: with the shortest payload that the last IP allows; full: 6 bytes, sign-extended. */
static void ip_packet(struct pt_encoder *e, unsigned op, uint64_t ip, bool full)
{
	uint64_t diff = ip ^ e->last_ip;

	if (full || (diff >> 48 && (uint64_t)((int64_t)(ip << 16) >> 16) == ip))
		packet(e, op | 3 << 5, ip, 6);
	else if (diff >> 48)
		packet(e, op | 6 << 5, ip, 8);
	else if (diff >> 32)
		packet(e, op | 4 << 5, ip, 6);
	else if (diff >> 16)
		packet(e, op | 2 << 5, ip, 4);
	else
		packet(e, op | 1 << 5, ip, 2);
	e->last_ip = ip;
}

static void psb(struct pt_encoder *e, uint64_t ip)
{
	static const uint8_t bytes[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					  2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
	uint64_t tsc = pt_model_tsc(e->model), ctc = ctc_now(e);

	pt_encode_flush(e);
	cyc_now(e);
	e->psb_at = e->total;
	e->want_psb = false;
	put(e, bytes, sizeof bytes);
	e->last_ip = 0;
	e->popped_by_all.count = e->popped_by_compressed.count = 0;
	if (e->config->tsc) {
		packet(e, OP_TSC, tsc, 7);
		if (e->config->mtc) {
			uint64_t fast = tsc - ctc * PT_MODEL_CTC_NUM / PT_MODEL_CTC_DEN;

			packet(e, OP_TMA, (ctc & 0xffff) | fast << 24, 5);
		}
	}
	e->mtc_period = ctc >> e->config->mtc_shift;
	packet(e, OP_CBR, PT_MODEL_CBR, 2);
	packet(e, OP_MODE, MODE_TSX_NONE, 1);
	if (e->enabled) {
		packet(e, OP_MODE, MODE_EXEC_64, 1);
		ip_packet(e, OP_FUP, ip, true);
	}
	packet(e, OP_PSBEND, 0, 0);
}

void pt_encode_psb(struct pt_encoder *e, uint64_t ip)
{
	psb(e, ip);
}

static void maybe_psb(struct pt_encoder *e, uint64_t next)
{
	if (e->want_psb || e->total - e->psb_at >= e->config->psb_bytes)
		psb(e, next);
}

/*
 * So long ago that MTC's 8 bits might soon not say how long: the thread slept, another one had the CPU, and
 * perf turns tracing off and on then.
 */
static bool slept(const struct pt_encoder *e)
{
	return e->config->mtc && (ctc_now(e) >> e->config->mtc_shift) - e->mtc_period > MTC_MAX;
}

void pt_encode_begin(struct pt_encoder *e, uint64_t ip, bool with_psb)
{
	with_psb = with_psb || slept(e);
	if (with_psb) {
		/* Tracing itself was off: nothing was counted. */
		e->cyc_cycles = e->model->cycles;
		e->mtc_period = ctc_now(e) >> e->config->mtc_shift;
	}
	if (with_psb || e->want_psb)
		psb(e, ip);
	mtc(e);
	cyc_now(e);
	packet(e, OP_MODE, MODE_EXEC_64, 1);
	ip_packet(e, OP_TIP_PGE, ip, with_psb);
	e->enabled = true;
}

void pt_encode_end(struct pt_encoder *e)
{
	pt_encode_flush(e);
	cyc_now(e);
	packet(e, OP_TIP_PGD, 0, 0);
	e->enabled = false;
}

void pt_encode_async_end(struct pt_encoder *e, uint64_t ip)
{
	pt_encode_flush(e);
	cyc_now(e);
	ip_packet(e, OP_FUP, ip, false);
	packet(e, OP_TIP_PGD, 0, 0);
	e->enabled = false;
}

void pt_encode_async(struct pt_encoder *e, uint64_t ip, uint64_t to, bool abort)
{
	pt_encode_flush(e);
	cyc_now(e);
	if (abort)
		packet(e, OP_MODE, MODE_TSX_ABORT, 1);
	ip_packet(e, OP_FUP, ip, false);
	ip_packet(e, OP_TIP, to, false);
	maybe_psb(e, to);
}

static void tnt(struct pt_encoder *e, bool bit)
{
	mtc(e);
	if (!e->tnt.count)
		e->tnt.first_cycles = e->model->cycles;
	e->tnt.bits = e->tnt.bits << 1 | bit;
	if (++e->tnt.count == 6)
		pt_encode_flush(e);
}

void pt_encode_jcc(struct pt_encoder *e, bool taken, uint64_t next)
{
	tnt(e, taken);
	maybe_psb(e, next);
}

void pt_encode_indirect(struct pt_encoder *e, uint64_t to)
{
	pt_encode_flush(e);
	cyc_now(e);
	ip_packet(e, OP_TIP, to, false);
	maybe_psb(e, to);
}

#define RETURN_STACK (sizeof((struct pt_return_stack *)0)->at / sizeof(uint64_t))

static void push(struct pt_return_stack *s, uint64_t ret)
{
	if (s->count == RETURN_STACK) {
		memmove(s->at, s->at + 1, (RETURN_STACK - 1) * sizeof *s->at);
		s->count--;
	}
	s->at[s->count++] = ret;
}

static bool on_top(const struct pt_return_stack *s, uint64_t ret)
{
	return s->count && s->at[s->count - 1] == ret;
}

void pt_encode_push(struct pt_encoder *e, uint64_t ret)
{
	push(&e->popped_by_all, ret);
	push(&e->popped_by_compressed, ret);
}

void pt_encode_ret(struct pt_encoder *e, uint64_t to)
{
	bool compressed =
	    e->config->retcomp && on_top(&e->popped_by_all, to) && on_top(&e->popped_by_compressed, to);

	if (e->popped_by_all.count)
		e->popped_by_all.count--;
	if (!compressed) {
		pt_encode_indirect(e, to);
		return;
	}
	e->popped_by_compressed.count--;
	tnt(e, true);
	maybe_psb(e, to);
}
