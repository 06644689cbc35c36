/* machine.c - a CPU without data that runs random code; see random.h. */
#include <stdlib.h>
#include <string.h>

#include "tests/oracle/random/machine.h"

static struct place anywhere(const struct machine *m, uint32_t i)
{
	return (struct place){i, pick(m->dice, m->program->regions[i].count)};
}

static struct place somewhere(const struct machine *m, bool kernel, bool same_width, enum width width)
{
	for (;;) {
		struct place p = anywhere(m, pick(m->dice, m->program->count));
		const struct region *r = region(m, p);

		if (r->kernel == kernel && r->guest == m->guest && (!same_width || r->width == width))
			return p;
	}
}

/* Near branches do not leave their privilege and width. */
static struct place near(const struct machine *m)
{
	const struct region *r = region(m, m->at);

	/* Some targets are frequent. */
	if (one_in(m->dice, 2))
		return (struct place){m->at.region, m->at.ins * 7 % r->count};
	return somewhere(m, r->kernel, true, r->width);
}

static void push(struct place *stack, uint32_t *depth, struct place p)
{
	if (*depth == DEEP) {
		memmove(stack, stack + 1, (DEEP - 1) * sizeof *stack);
		--*depth;
	}
	stack[(*depth)++] = p;
}

/* An interrupt or exception at the instruction at hand, which is not executed. */
static void interrupt(struct machine *m)
{
	struct encoder *e = &m->encoder;
	struct place to = somewhere(m, true, false, WIDTH_64);
	bool before = m->enabled, after = machine_may_trace(m, to);

	push(m->contexts, &m->context_depth, m->at);
	m->enabled = after;
	if (before && !e->overflow) {
		machine_fact(m, ip_of(m, m->at), after ? ip_of(m, to) : 0, PTR_ASYNC);
		m->trace->branches++;
		m->trace->asyncs++;
		machine_decide(m);
		encode_ip(e, IP_FUP, ip_of(m, m->at));
		if (after) {
			machine_send_mode(m, to);
			encode_ip(e, IP_TIP, ip_of(m, to));
		} else if (machine_context(m, to)) {
			encode_ip(e, IP_PGD, ip_of(m, to));
		} else {
			encode_no_ip(e, IP_PGD);
		}
		machine_settle(m);
	} else if (!before && after) {
		machine_enable(m, to);
	}
	m->at = to;
}

static void mov_cr3(struct machine *m, struct place next)
{
	uint64_t from = ip_of(m, m->at);
	bool before = m->enabled, after;

	m->cr3 = one_in(m->dice, 2) ? TRACED_CR3 : OTHER_CR3;
	after = machine_may_trace(m, next);
	if (before && !after) {
		m->enabled = false;
		if (!m->encoder.overflow) {
			machine_fact(m, from, 0, PTR_TRACE_END);
			m->trace->branches++;
			m->trace->disables++;
			machine_decide(m);
			encode_no_ip(&m->encoder, IP_PGD);
		}
	} else if (m->config->os && machine_context(m, next)) {
		encode_pip(&m->encoder, m->cr3, m->guest);
		m->trace->pips++;
	}
	machine_settle(m);
	m->at = next;
	if (!before && after)
		machine_enable(m, next);
}

static struct place next_of(const struct machine *m)
{
	return (struct place){m->at.region, m->at.ins + 1};
}

static void vm_exit(struct machine *m, struct place guest_goes_on)
{
	bool guest = m->guest;
	struct place to;

	m->guest_at = guest_goes_on;
	m->left = true;
	m->guest = false;
	to = somewhere(m, true, false, WIDTH_64);
	m->guest = guest;
	machine_change_side(m, to, PTR_VMEXIT);
}

/*
 * Direct branches lead to another VM entry, and which of them was the one that succeeded is not known; or to
 * a return, whose TIP, if it goes elsewhere than its call came from, might be a concealed guest's
 * (decode/flow/ip.c, may_return()).
 */
static bool must_succeed(const struct machine *m, struct place at)
{
	for (;;) {
		const struct ins *in = ins(m, at);

		switch ((enum op)in->op) {
		case OP_VMENTRY:
		case OP_RET: return true;
		case OP_NOP:
		case OP_PTWRITE:
		case OP_MOV_CR3:
		case OP_CALL_NEXT: at.ins++; break;
		case OP_JMP:
		case OP_CALL: at.ins = in->goal; break;
		default: return false;
		}
	}
}

static void vm_entry(struct machine *m, struct place next)
{
	struct place to = m->guest_at;

	if (one_in(m->dice, 8) && !must_succeed(m, next)) { /* VMfail */
		m->at = next;
		return;
	}
	if (!m->left || one_in(m->dice, 8)) {
		m->guest = true;
		to = somewhere(m, one_in(m->dice, 2), false, WIDTH_64);
		m->guest = false;
	}
	machine_change_side(m, to, PTR_VMENTRY);
}

static void ptwrite(struct machine *m, const struct ins *in)
{
	uint64_t payload;

	if (!m->enabled || m->encoder.overflow)
		return;
	payload = roll(m->dice) & 0xffffffff;
	if (m->config->fup_on_ptw) {
		m->insns--; /* the FUP is of before it */
		machine_decide(m);
		m->insns++;
	}
	encode_ptwrite(&m->encoder, payload, false, m->config->fup_on_ptw);
	if (m->config->fup_on_ptw)
		encode_ip(&m->encoder, IP_FUP, in->ip);
	machine_settle(m);
	m->trace->ptwrites = m->trace->ptwrites * 31 + payload;
}

static void jcc(struct machine *m, struct place goal, struct place next)
{
	if (one_in(m->dice, 2)) {
		machine_transfer(m, goal, OP_JCC, PTR_JCC);
		return;
	}
	if (m->enabled) {
		machine_decide(m);
		encode_tnt(&m->encoder, false);
		machine_settle(m);
	}
	m->at = next;
}

static void ret(struct machine *m)
{
	if (m->call_depth && (m->config->balanced || !one_in(m->dice, 8))) {
		struct place back = m->calls[--m->call_depth];

		if (region(m, back)->kernel == region(m, m->at)->kernel &&
		    region(m, back)->guest == m->guest && region(m, back)->width == region(m, m->at)->width) {
			machine_transfer(m, back, OP_RET, PTR_RET);
			return;
		}
	}
	if (m->config->balanced && m->encoder.depth) { /* not now: its caller is another program */
		m->insns -= m->enabled;
		interrupt(m);
		return;
	}
	machine_transfer(m, near(m), OP_RET, PTR_RET);
}

/* SYSRET, IRET */
static void context_return(struct machine *m, enum op op)
{
	struct place back = somewhere(m, false, false, WIDTH_64);

	if (m->context_depth && !one_in(m->dice, 8))
		back = m->contexts[--m->context_depth];
	if (region(m, back)->guest != m->guest)
		back = somewhere(m, false, false, WIDTH_64);
	if (op == OP_SYSRET && (region(m, back)->kernel || region(m, back)->width != WIDTH_64))
		back = somewhere(m, false, true, WIDTH_64);
	machine_transfer(m, back, op, op == OP_IRET ? PTR_IRET : PTR_SYSRET);
}

static void execute(struct machine *m)
{
	const struct ins *in = ins(m, m->at);
	struct place next = next_of(m), goal = {m->at.region, in->goal};
	enum op op = (enum op)in->op;

	encode_pass(&m->encoder, pick(m->dice, 4));
	machine_settle(m);
	if (m->enabled)
		m->insns++;
	switch (op) {
	case OP_NOP: m->at = next; break;
	case OP_VMENTRY: vm_entry(m, next); break;
	case OP_CPUID:
		m->insns -= m->enabled; /* it exits before it is done */
		vm_exit(m, next);
		break;
	case OP_PTWRITE:
		ptwrite(m, in);
		m->at = next;
		break;
	case OP_MOV_CR3: mov_cr3(m, next); break;
	case OP_JCC: jcc(m, goal, next); break;
	case OP_JMP: machine_transfer(m, goal, OP_JMP, PTR_JMP); break;
	case OP_CALL:
		push(m->calls, &m->call_depth, next);
		machine_transfer(m, goal, OP_CALL, PTR_CALL_DIR);
		break;
	case OP_CALL_NEXT: machine_transfer(m, next, OP_CALL_NEXT, PTR_CALL_DIR); break;
	case OP_JMP_IND: machine_transfer(m, near(m), OP_JMP_IND, PTR_JMP_IND); break;
	case OP_CALL_IND:
		push(m->calls, &m->call_depth, next);
		machine_transfer(m, near(m), OP_CALL_IND, PTR_CALL_IND);
		break;
	case OP_RET: ret(m); break;
	case OP_SYSCALL:
	case OP_INT:
		push(m->contexts, &m->context_depth, next);
		machine_transfer(m, somewhere(m, true, false, WIDTH_64), op,
				 op == OP_INT ? PTR_INT : PTR_SYSCALL);
		break;
	case OP_SYSRET:
	case OP_IRET: context_return(m, op); break;
	default:
		machine_transfer(m, somewhere(m, false, false, WIDTH_64), op,
				 (enum ptr_kind)(PTR_JMP_FAR + op - OP_JMP_FAR));
	}
}

static void overflow_begin(struct machine *m)
{
	encode_overflow_begin(&m->encoder);
	machine_settle(m);
	m->overflow_left = 1 + pick(m->dice, 30);
	m->trace->count = m->sure;
	if (m->in_slice)
		machine_fact(m, m->sure_insns, 0, FACT_END);
	machine_fact(m, 0, 0, FACT_OVERFLOW);
	m->sure = m->decided = m->trace->count;
	m->in_slice = false;
	m->trace->overflows++;
}

static void psb(struct machine *m)
{
	encode_flush(&m->encoder);
	machine_settle(m);
	if (m->enabled)
		machine_decide(m); /* the FUP says how far it is */
	encode_psb(&m->encoder, m->enabled, ip_of(m, m->at), region(m, m->at)->width,
		   m->config->os && machine_context(m, m->at) ? m->cr3 : 0, m->guest,
		   m->program->vm ? VMCS : 0);
	if (m->enabled) {
		m->sent = region(m, m->at)->width;
		m->mode_unknown = false;
		machine_begin(m);
	}
	machine_decide(m);
	m->encoder.flushed = true;
	machine_settle(m);
}

static void overflow_end(struct machine *m)
{
	encode_overflow_end(&m->encoder);
	m->mode_unknown = true;
	if (m->side_changed)
		psb(m); /* nothing else says which side it is */
	m->side_changed = false;
	if (m->enabled) {
		machine_send_mode(m, m->at);
		encode_ip(&m->encoder, IP_FUP, ip_of(m, m->at));
		machine_begin(m);
	}
	machine_decide(m);
	machine_settle(m);
}

void machine_run(const struct program *p, const struct config *c, struct dice *d, struct trace *ret)
{
	struct machine machine = {
	    .program = p, .config = c, .dice = d, .trace = ret, .mode_unknown = true, .cr3 = TRACED_CR3};
	struct machine *m = &machine;

	memset(ret, 0, sizeof *ret);
	encode_init(&m->encoder, c, d, ret);
	m->at = somewhere(m, false, false, WIDTH_64);
	m->enabled = machine_may_trace(m, m->at);
	psb(m);
	for (uint32_t i = 0; i < c->steps; i++) {
		if (m->overflow_left) {
			if (--m->overflow_left == 0)
				overflow_end(m);
		} else if (one_in(d, c->ovf_one_in)) {
			overflow_begin(m);
		} else if (one_in(d, c->psb_one_in)) {
			psb(m);
		}
		if (m->guest && one_in(d, 40))
			vm_exit(m, m->at);
		else if (one_in(d, c->async_one_in))
			interrupt(m);
		else
			execute(m);
	}
	if (m->overflow_left)
		overflow_end(m);
	/* Tracing is switched off. */
	if (m->enabled) {
		machine_fact(m, ip_of(m, m->at), 0, PTR_ASYNC);
		m->trace->branches++;
		machine_decide(m);
		encode_ip(&m->encoder, IP_FUP, ip_of(m, m->at));
		encode_no_ip(&m->encoder, IP_PGD);
	} else {
		encode_flush(&m->encoder);
	}
	machine_settle(m);
	if (m->in_slice)
		machine_fact(m, m->insns, 0, FACT_END);
}
