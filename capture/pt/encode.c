/* encode.c - see encode.h. */
#include "capture/pt/encode.h"

#include <stdlib.h>
#include <string.h>

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

/* An opcode of up to two bytes and a little-endian payload. */
static void packet(struct pt_encoder *e, unsigned op, size_t op_bytes, uint64_t payload, size_t n)
{
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

/* CYC: the cycles from the last one to `at`, when what the next packet tells of happened. */
static void cyc(struct pt_encoder *e, uint64_t at)
{
	uint64_t n = at - e->cyc_at;
	uint8_t b[12];
	size_t i = 1;

	if (!e->config->cyc || at <= e->cyc_at || n < e->config->cyc_min)
		return;
	e->cyc_at = at;
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
	if (!e->tnt_n)
		return;
	cyc(e, e->tnt_at);
	packet(e, (1u << (e->tnt_n + 1)) | e->tnt << 1, 1, 0, 0);
	e->tnt = 0;
	e->tnt_n = 0;
}

/*
 * MTC, at its own time, for each period of CTC ticks that began since the last one. Branches from before are
 * told first.
 */
static void mtc(struct pt_encoder *e)
{
	uint64_t now, shift = e->config->mtc_shift;

	if (!e->config->mtc)
		return;
	now = ctc_now(e) >> shift;
	if (e->ctc_at < now)
		put_tnt(e);
	if (now - e->ctc_at >
	    64) /* a long sleep: the counter's 8 bits must not be ambiguous, but need not be dense */
		e->ctc_at = now - 64;
	while (e->ctc_at < now) {
		uint64_t tsc = (++e->ctc_at << shift) * PT_MODEL_CTC_NUM / PT_MODEL_CTC_DEN;

		cyc(e, (tsc * PT_MODEL_CBR + PT_MODEL_NOMINAL - 1) / PT_MODEL_NOMINAL);
		packet(e, 0x59, 1, e->ctc_at & 0xff, 1);
	}
}

void pt_encode_flush(struct pt_encoder *e)
{
	mtc(e);
	put_tnt(e);
}

/* TIP*, FUP: with the shortest payload that the last IP allows; full: 6 bytes, sign-extended. */
static void ip_packet(struct pt_encoder *e, unsigned low, uint64_t ip, bool full)
{
	uint64_t diff = ip ^ e->last_ip;

	if (full || (diff >> 48 && (uint64_t)((int64_t)(ip << 16) >> 16) == ip))
		packet(e, low | 3 << 5, 1, ip, 6);
	else if (diff >> 48)
		packet(e, low | 6 << 5, 1, ip, 8);
	else if (diff >> 32)
		packet(e, low | 4 << 5, 1, ip, 6);
	else if (diff >> 16)
		packet(e, low | 2 << 5, 1, ip, 4);
	else
		packet(e, low | 1 << 5, 1, ip, 2);
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
	e->all_n = e->compressed_n = 0;
	if (e->config->tsc) {
		packet(e, 0x19, 1, tsc, 7);
		if (e->config->mtc) {
			uint64_t fast = tsc - ctc * PT_MODEL_CTC_NUM / PT_MODEL_CTC_DEN;

			packet(e, 0x7302, 2, (ctc & 0xffff) | fast << 24, 5);
		}
	}
	e->ctc_at = ctc >> e->config->mtc_shift;
	packet(e, 0x0302, 2, PT_MODEL_CBR, 2);
	packet(e, 0x99, 1, 0x20, 1); /* MODE.TSX */
	if (e->enabled) {
		packet(e, 0x99, 1, 1, 1); /* MODE.Exec: 64 bit */
		ip_packet(e, 0x1d, ip, true);
	}
	packet(e, 0x2302, 2, 0, 0);
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

void pt_encode_begin(struct pt_encoder *e, uint64_t ip, bool with_psb)
{
	if (with_psb) {
		/* Tracing itself was off: nothing was counted. */
		e->cyc_at = e->model->cycles;
		e->ctc_at = ctc_now(e) >> e->config->mtc_shift;
	}
	if (with_psb || e->want_psb)
		psb(e, ip);
	mtc(e);
	cyc_now(e);
	packet(e, 0x99, 1, 1, 1);
	ip_packet(e, 0x11, ip, with_psb);
	e->enabled = true;
}

void pt_encode_end(struct pt_encoder *e)
{
	pt_encode_flush(e);
	cyc_now(e);
	packet(e, 0x01, 1, 0, 0);
	e->enabled = false;
}

void pt_encode_async_end(struct pt_encoder *e, uint64_t ip)
{
	pt_encode_flush(e);
	cyc_now(e);
	ip_packet(e, 0x1d, ip, false);
	packet(e, 0x01, 1, 0, 0);
	e->enabled = false;
}

void pt_encode_async(struct pt_encoder *e, uint64_t ip, uint64_t to, bool abort)
{
	pt_encode_flush(e);
	cyc_now(e);
	if (abort)
		packet(e, 0x99, 1, 0x22, 1);
	ip_packet(e, 0x1d, ip, false);
	ip_packet(e, 0x0d, to, false);
	maybe_psb(e, to);
}

static void tnt(struct pt_encoder *e, bool bit)
{
	mtc(e);
	if (!e->tnt_n)
		e->tnt_at = e->model->cycles;
	e->tnt = e->tnt << 1 | bit;
	if (++e->tnt_n == 6)
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
	ip_packet(e, 0x0d, to, false);
	maybe_psb(e, to);
}

static void push(uint64_t *stack, uint32_t *n, uint64_t ret)
{
	if (*n == 64) {
		memmove(stack, stack + 1, 63 * sizeof *stack);
		--*n;
	}
	stack[(*n)++] = ret;
}

void pt_encode_push(struct pt_encoder *e, uint64_t ret)
{
	push(e->all, &e->all_n, ret);
	push(e->compressed, &e->compressed_n, ret);
}

void pt_encode_ret(struct pt_encoder *e, uint64_t to)
{
	bool match = e->config->retcomp && e->all_n && e->compressed_n && e->all[e->all_n - 1] == to &&
		     e->compressed[e->compressed_n - 1] == to;

	if (e->all_n)
		e->all_n--;
	if (!match) {
		pt_encode_indirect(e, to);
		return;
	}
	e->compressed_n--;
	tnt(e, true);
	maybe_psb(e, to);
}
