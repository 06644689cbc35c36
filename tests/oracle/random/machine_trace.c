/*
 * machine_trace.c - what is traced of the execution: its packets, and the facts that a decoder must come to.
 */
#include <stdlib.h>

#include "tests/oracle/random/machine.h"

void machine_fact(struct machine *m, uint64_t from, uint64_t to, unsigned kind)
{
	struct trace *t = m->trace;

	if (t->count == t->fact_room) {
		t->fact_room = t->fact_room ? t->fact_room * 2 : 256;
		t->facts = realloc(t->facts, t->fact_room * sizeof *t->facts);
		if (!t->facts)
			abort();
	}
	t->facts[t->count++] =
	    (struct fact){.from = from, .to = to, .tsc = encode_tsc(&m->encoder), .kind = (uint8_t)kind};
}

void machine_decide(struct machine *m)
{
	m->decided = m->trace->count;
	m->decided_insns = m->insns;
}

void machine_settle(struct machine *m)
{
	if (!m->encoder.flushed)
		return;
	m->encoder.flushed = false;
	m->sure = m->decided;
	m->sure_insns = m->decided_insns;
}

void machine_begin(struct machine *m)
{
	if (m->in_slice)
		return;
	m->in_slice = true;
	m->insns = m->sure_insns = m->decided_insns = 0;
	machine_fact(m, 0, 0, FACT_BEGIN);
}

static bool filtered(const struct machine *m, uint64_t ip)
{
	const struct config *c = m->config;

	for (uint32_t i = 0; i < c->ranges; i++)
		if (ip >= c->from[i] && ip <= c->to[i])
			return false;
	return c->ranges > 0;
}

bool machine_context(const struct machine *m, struct place at)
{
	if (m->config->cr3_filter && m->cr3 != TRACED_CR3)
		return false;
	return region(m, at)->kernel ? m->config->os : m->config->user;
}

bool machine_may_trace(const struct machine *m, struct place at)
{
	return machine_context(m, at) && !filtered(m, ip_of(m, at));
}

void machine_send_mode(struct machine *m, struct place to)
{
	enum width w = region(m, to)->width;

	if (!m->mode_unknown && m->sent == w && !one_in(m->dice, 16))
		return;
	encode_mode(&m->encoder, w);
	if (!m->encoder.overflow) {
		m->sent = w;
		m->mode_unknown = false;
	}
}

void machine_enable(struct machine *m, struct place to)
{
	m->enabled = true;
	if (m->encoder.overflow)
		return;
	machine_send_mode(m, to);
	encode_ip(&m->encoder, IP_PGE, ip_of(m, to));
	machine_begin(m);
	machine_fact(m, 0, ip_of(m, to), PTR_TRACE_BEGIN);
	m->trace->branches++;
	machine_decide(m);
	machine_settle(m);
}

/* The packets of a branch that is traced at both its ends. */
static void encode_branch(struct machine *m, struct place to, enum op op)
{
	struct encoder *e = &m->encoder;
	uint64_t ip = ip_of(m, to);

	switch (op) {
	case OP_JMP:
	case OP_CALL:
	case OP_CALL_NEXT: break;
	case OP_JCC:
		machine_decide(m);
		encode_tnt(e, true);
		break;
	case OP_RET:
		if (!e->depth || e->stack[e->depth - 1] != ip || m->config->disretc) {
			encode_flush(e); /* what was decided before */
			machine_settle(m);
		}
		machine_decide(m);
		encode_ret(e, ip);
		break;
	case OP_JMP_IND:
	case OP_CALL_IND:
		machine_decide(m);
		encode_tip(e, ip);
		break;
	default: /* far */
		machine_decide(m);
		if (e->config->defer_tips && m->sent == region(m, to)->width && !m->mode_unknown) {
			encode_tip(e, ip);
		} else {
			machine_send_mode(m, to);
			encode_ip(e, IP_TIP, ip);
		}
	}
	machine_settle(m);
}

/* The branch leaves what is traced. */
static void disable(struct machine *m, struct place to, enum op op, enum ptr_kind kind)
{
	struct encoder *e = &m->encoder;
	uint64_t ip = ip_of(m, to);
	bool compressed = op == OP_RET && e->depth && e->stack[e->depth - 1] == ip && !m->config->disretc;

	if (op == OP_CALL || op == OP_CALL_IND)
		e->depth = 0; /* whether the CPU keeps it is not documented */
	if (op == OP_RET && e->depth)
		e->depth--;
	if (e->overflow)
		return;
	machine_fact(m, ip_of(m, m->at), 0, kind);
	m->trace->branches++;
	m->trace->disables++;
	machine_decide(m);
	if (machine_context(m, to) && op != OP_JCC && !compressed)
		encode_ip(e, IP_PGD, ip);
	else
		encode_no_ip(e, IP_PGD);
	machine_settle(m);
}

void machine_transfer(struct machine *m, struct place to, enum op op, enum ptr_kind kind)
{
	struct encoder *e = &m->encoder;
	uint64_t from = ip_of(m, m->at), ip = ip_of(m, to), next = from + ins(m, m->at)->len;
	bool before = m->enabled;

	m->enabled = machine_may_trace(m, to);
	if (before && m->enabled) {
		if (op == OP_CALL || op == OP_CALL_IND)
			encode_call(e, next);
		if (!e->overflow) {
			machine_fact(m, from, ip, kind);
			m->trace->facts[m->trace->count - 1].to_next = op == OP_JCC && ip == next;
			m->trace->branches++;
		}
		encode_branch(m, to, op);
	} else if (before) {
		disable(m, to, op, kind);
	} else if (m->enabled) {
		machine_enable(m, to);
	}
	m->at = to;
}

void machine_change_side(struct machine *m, struct place to, enum ptr_kind kind)
{
	struct encoder *e = &m->encoder;
	uint64_t from = ip_of(m, m->at);
	bool entry = kind == PTR_VMENTRY;

	m->guest = entry;
	if (e->overflow) {
		m->side_changed = true;
		m->at = to;
		return;
	}
	machine_fact(m, from, 0, kind);
	machine_decide(m);
	if (!entry)
		encode_ip(e, IP_FUP, from);
	encode_pip(e, m->cr3, entry);
	machine_send_mode(m, to);
	encode_ip(e, IP_TIP, ip_of(m, to));
	machine_settle(m);
	machine_fact(m, m->insns, 0, FACT_END);
	m->in_slice = false;
	machine_begin(m);
	machine_fact(m, 0, ip_of(m, to), kind);
	machine_decide(m);
	e->flushed = true;
	machine_settle(m);
	m->trace->branches += 2;
	m->trace->entries += entry;
	m->at = to;
}
