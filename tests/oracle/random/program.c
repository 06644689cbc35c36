/* program.c - random code; see random.h. */
#include <stdlib.h>
#include <string.h>

#include "tests/oracle/random/random.h"

struct text {
	uint8_t b[15];
	uint8_t n;
};

static void add(struct text *t, const char *bytes, unsigned n)
{
	memcpy(t->b + t->n, bytes, n);
	t->n += (uint8_t)n;
}

static void add_random(struct text *t, struct dice *d, unsigned n)
{
	while (n--)
		t->b[t->n++] = (uint8_t)roll(d);
}

/* An instruction that does nothing to the flow; several have another length in another width. */
static struct text nop(struct dice *d, enum width w)
{
	struct text t = {.n = 0};

	switch (pick(d, 9)) {
	case 0: add(&t, "\x0f\x1f\x00", 3); break;
	case 1: add(&t, "\x89\xc0", 2); break;
	case 2:
		add(&t, "\xb8", 1); /* mov eax/ax, imm */
		add_random(&t, d, w == WIDTH_16 ? 2 : 4);
		break;
	case 3:
		add(&t, "\xb0", 1);
		add_random(&t, d, 1);
		break;
	case 4: /* 40: inc eax, or a REX prefix */
		add(&t, w == WIDTH_64 ? "\x40\x89\xc0" : "\x40", w == WIDTH_64 ? 3 : 1);
		break;
	case 5:
		add(&t, "\x66\xb8", 2); /* the other operand size */
		add_random(&t, d, w == WIDTH_16 ? 4 : 2);
		break;
	case 6:
		if (w == WIDTH_64) {
			add(&t, "\x48\xb8", 2);
			add_random(&t, d, 8);
		} else {
			add(&t, "\x8b\x47", 2); /* mov r, [bx/edi + disp8] */
			add_random(&t, d, 1);
		}
		break;
	case 7: /* mov r, [disp32] or [disp16] */
		add(&t, w == WIDTH_16 ? "\x8b\x06" : "\x8b\x05", 2);
		add_random(&t, d, w == WIDTH_16 ? 2 : 4);
		break;
	default: add(&t, "\x90", 1); break;
	}
	return t;
}

/* Direct branches get their displacement when everything has its place. */
static struct text branch(struct dice *d, enum op op, enum width w)
{
	struct text t = {.n = 0};

	switch (op) {
	case OP_JCC:
		if (one_in(d, 2)) {
			t.b[t.n++] = (uint8_t)(0x70 + pick(d, 16));
			t.n++;
		} else {
			t.b[t.n++] = 0x0f;
			t.b[t.n++] = (uint8_t)(0x80 + pick(d, 16));
			t.n += w == WIDTH_16 ? 2 : 4;
		}
		break;
	case OP_JMP:
		t.b[t.n++] = 0xe9;
		t.n += w == WIDTH_16 ? 2 : 4;
		break;
	case OP_CALL:
	case OP_CALL_NEXT:
		t.b[t.n++] = 0xe8;
		t.n += w == WIDTH_16 ? 2 : 4;
		break;
	case OP_JMP_IND:
		if (one_in(d, 2))
			add(&t, "\xff\xe0", 2);
		else
			add(&t, "\xff\x27", 2);
		break;
	case OP_CALL_IND: add(&t, "\xff\xd0", 2); break;
	case OP_RET:
		if (one_in(d, 4))
			add(&t, "\xc2\x08\x00", 3);
		else
			add(&t, "\xc3", 1);
		break;
	case OP_SYSCALL: add(&t, "\x0f\x05", 2); break;
	case OP_SYSRET: add(&t, "\x48\x0f\x07", 3); break;
	case OP_INT:
		add(&t, "\xcd", 1);
		add_random(&t, d, 1);
		break;
	case OP_IRET: add(&t, w == WIDTH_64 ? "\x48\xcf" : "\xcf", w == WIDTH_64 ? 2 : 1); break;
	case OP_JMP_FAR: add(&t, "\xff\x2f", 2); break;
	case OP_CALL_FAR: add(&t, "\xff\x1f", 2); break;
	case OP_RET_FAR: add(&t, "\xcb", 1); break;
	case OP_PTWRITE: add(&t, "\xf3\x0f\xae\xe0", 4); break;
	case OP_VMENTRY: add(&t, "\x0f\x01\xc3", 3); break;
	case OP_CPUID: add(&t, "\x0f\xa2", 2); break;
	case OP_MOV_CR3: add(&t, "\x0f\x22\xd8", 3); break;
	default: break;
	}
	return t;
}

static enum op pick_op(struct dice *d, const struct region *r, bool others, bool vm)
{
	static const uint8_t near[] = {
	    OP_JCC,  OP_JCC,  OP_JCC, OP_JCC, OP_JCC, OP_JCC,	  OP_JMP,      OP_JMP,	     OP_CALL,
	    OP_CALL, OP_CALL, OP_RET, OP_RET, OP_RET, OP_JMP_IND, OP_CALL_IND, OP_CALL_NEXT, OP_PTWRITE,
	};

	if (vm && (r->guest || r->kernel) && one_in(d, 20))
		return r->guest ? OP_CPUID : OP_VMENTRY;
	if (one_in(d, 12)) {
		if (r->kernel)
			return one_in(d, 2) ? OP_MOV_CR3 : one_in(d, 2) ? OP_SYSRET : OP_IRET;
		if (others && one_in(d, 2))
			return (enum op)(OP_JMP_FAR + pick(d, 3));
		return r->width == WIDTH_64 && one_in(d, 2) ? OP_SYSCALL : OP_INT;
	}
	return (enum op)near[pick(d, sizeof near)];
}

static bool is_direct(uint8_t op)
{
	return op == OP_JCC || op == OP_JMP || op == OP_CALL;
}

static bool ends_straight(uint8_t op)
{
	return op == OP_JMP || op == OP_JMP_IND || op == OP_RET || op == OP_SYSRET || op == OP_IRET ||
	       op == OP_JMP_FAR || op == OP_RET_FAR;
}

/* The instruction that follows without a packet; count when there is one. */
static uint32_t silent_next(const struct region *r, uint32_t i)
{
	switch (r->ins[i].op) {
	case OP_NOP:
	case OP_PTWRITE:
	case OP_MOV_CR3:
	case OP_VMENTRY:
	case OP_CPUID:
	case OP_CALL_NEXT: return i + 1;
	case OP_JMP:
	case OP_CALL: return r->ins[i].goal;
	default: return r->count;
	}
}

/* No loop of direct branches: how often it was run would not be known. */
static void break_circles(struct region *r, struct dice *d)
{
	uint8_t *seen = calloc(r->count, 1); /* 1: on this walk, 2: comes to a packet */

	for (uint32_t i = 0; i < r->count; i++) {
		uint32_t at = i;

		while (at < r->count && !seen[at]) {
			uint32_t next = silent_next(r, at);

			seen[at] = 1;
			if (next < r->count && seen[next] == 1) {
				/* One of its jumps or calls goes backward: forward instead. The last
				 * instruction is none. */
				at = next;
				while ((r->ins[at].op != OP_JMP && r->ins[at].op != OP_CALL) ||
				       r->ins[at].goal > at)
					at = silent_next(r, at);
				r->ins[at].goal = at + 1 + pick(d, r->count - at - 1);
				memset(seen, 0, r->count);
				at = i;
				continue;
			}
			at = next;
		}
		for (at = i; at < r->count && seen[at] == 1; at = silent_next(r, at))
			seen[at] = 2;
	}
	free(seen);
}

static void make_region(struct region *r, struct dice *d, bool others, bool vm)
{
	uint32_t at = 0;

	r->count = 20 + pick(d, 150);
	r->ins = calloc(r->count, sizeof *r->ins);
	r->code = calloc(r->count, 15);
	for (uint32_t i = 0; i < r->count; i++) {
		struct ins *in = &r->ins[i];
		struct text t;

		in->op = (uint8_t)(i == r->count - 1 ? (r->kernel ? OP_IRET : OP_JMP_IND)
				   : one_in(d, 3)    ? pick_op(d, r, others, vm)
						     : OP_NOP);
		t = in->op == OP_NOP ? nop(d, r->width) : branch(d, (enum op)in->op, r->width);
		if (is_direct(in->op))
			in->goal = pick(d, r->count);
		in->ip = r->base + at;
		in->len = t.n;
		memcpy(r->code + at, t.b, t.n);
		at += t.n;
	}
	r->bytes = at;
	for (uint32_t i = 0; i < r->count; i++) {
		struct ins *in = &r->ins[i];

		/* What rel8 reaches. */
		if (in->op == OP_JCC && in->len == 2) {
			int32_t rel;

			do {
				uint32_t low = i < 30 ? 0 : i - 30,
					 high = i + 30 < r->count ? i + 30 : r->count;

				in->goal = low + pick(d, high - low);
				rel = (int32_t)(r->ins[in->goal].ip - in->ip) - 2;
			} while (rel < -128 || rel > 127);
		}
		if (in->op == OP_CALL && in->goal == i + 1)
			in->op = OP_CALL_NEXT;
	}
	break_circles(r, d);
	for (uint32_t i = 0; i < r->count; i++) {
		struct ins *in = &r->ins[i];
		uint8_t *code = r->code + (in->ip - r->base);
		uint32_t rel;

		if (in->op == OP_CALL_NEXT)
			in->goal = i + 1;
		else if (!is_direct(in->op))
			continue;
		in->target = r->ins[in->goal].ip;
		rel = (uint32_t)(in->target - in->ip - in->len);
		if (in->op == OP_JCC && in->len == 2)
			code[1] = (uint8_t)rel;
		else
			memcpy(code + in->len - (r->width == WIDTH_16 ? 2 : 4), &rel,
			       r->width == WIDTH_16 ? 2 : 4);
		if (in->op == OP_CALL && in->goal == i + 1)
			in->op = OP_CALL_NEXT;
	}
}

void program_make(struct program *p, struct dice *d)
{
	static const struct {
		uint64_t base;
		enum width width;
		bool kernel, guest;
	} kinds[] = {
	    {0x401000, WIDTH_64, false, false},
	    {0x7f1234560000, WIDTH_64, false, false},
	    {0xffffffff81000000, WIDTH_64, true, false},
	    {0x8048000, WIDTH_32, false, false},
	    {0x2000, WIDTH_16, false, false},
	    {0x501000, WIDTH_64, false, true},
	    {0xffffffff82000000, WIDTH_64, true, true},
	    {0x8000, WIDTH_16, false, true},
	};
	bool narrow = one_in(d, 3), vm = one_in(d, 3);

	memset(p, 0, sizeof *p);
	p->vm = vm;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct region *r = &p->regions[p->count];

		if ((kinds[i].width != WIDTH_64 && !narrow) || (kinds[i].guest && !vm))
			continue;
		r->base = kinds[i].base + pick(d, 4096);
		r->width = kinds[i].width;
		r->kernel = kinds[i].kernel;
		r->guest = kinds[i].guest;
		make_region(r, d, narrow, vm);
		p->count++;
	}
}

void program_free(struct program *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		free(p->regions[i].ins);
		free(p->regions[i].code);
	}
}

bool program_border(const struct region *r, uint32_t i)
{
	return i == 0 || ends_straight(r->ins[i - 1].op);
}
