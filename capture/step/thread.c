/* thread.c - what an executed instruction means: for the encoder and for the truth. See internal.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "capture/step/internal.h"

static void truth(struct step *s, const struct step_thread *t, uint64_t from, uint64_t to)
{
	s->result->branches++;
	if (s->options->truth)
		fprintf(s->options->truth, "%d %" PRIx64 " %" PRIx64 "\n", t->tid, from, to);
}

/* By the bytes of a valid instruction in 64-bit mode. */
static enum step_quirk quirk_of(const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n && (p[i] == 0x66 || p[i] == 0x67 || p[i] == 0xf2 || p[i] == 0xf3 || p[i] == 0x2e ||
			 p[i] == 0x36 || p[i] == 0x3e || p[i] == 0x26 || p[i] == 0x64 || p[i] == 0x65))
		i++;
	if (i < n && (p[i] & 0xf0) == 0x40) /* REX */
		i++;
	if (i == n)
		return STEP_PLAIN;
	switch (p[i]) {
	case 0x0f: return i + 1 < n && p[i + 1] == 0xa2 ? STEP_CPUID : STEP_PLAIN;
	case 0x9c: return STEP_PUSHF;
	case 0x9d: return STEP_POPF;
	case 0x8e: return i + 1 < n && (p[i + 1] >> 3 & 7) == 2 ? STEP_MOV_SS : STEP_PLAIN;
	case 0xcc:
	case 0xf1: return STEP_TRAP;
	case 0xcd:
		return i + 1 == n	  ? STEP_PLAIN
		       : p[i + 1] == 3	  ? STEP_TRAP
		       : p[i + 1] == 0x80 ? STEP_INT80
					  : STEP_PLAIN;
	default: return STEP_PLAIN;
	}
}

/* Conditions: 1 + the lower four bits of a Jcc's opcode; LOOPNE, LOOPE, LOOP, JRCXZ; those by ECX. */
enum { LOOPNE = 17, LOOPE, LOOP, JRCXZ, BY_ECX = 0x20 };

/* By the bytes of a valid conditional branch in 64-bit mode. */
static uint8_t condition_of(const uint8_t *p, size_t n)
{
	size_t i = 0;
	uint8_t ecx = 0;

	for (; i < n && p[i] != 0x0f && (p[i] & 0xf0) != 0x70 && (p[i] & 0xfc) != 0xe0; i++)
		ecx |= p[i] == 0x67 ? BY_ECX : 0;
	if (i < n && (p[i] & 0xfc) == 0xe0)
		return (uint8_t)(LOOPNE + (p[i] & 3)) | ecx;
	if (i < n && p[i] == 0x0f)
		i++;
	return i < n ? 1 + (p[i] & 15) : 0;
}

/* SDM vol. 1, appendix B: EFLAGS condition codes. */
bool step_condition(uint8_t condition, uint64_t flags, uint64_t rcx)
{
	bool cf = flags & 1, pf = flags & 4, zf = flags & 0x40, sf = flags & 0x80, of = flags & 0x800;
	bool count = condition & BY_ECX ? (uint32_t)rcx : rcx, of_two[8];

	switch (condition & ~BY_ECX) {
	case LOOPNE: return count && !zf;
	case LOOPE: return count && zf;
	case LOOP: return count;
	case JRCXZ: return !count;
	default: break;
	}
	of_two[0] = of;
	of_two[1] = cf;
	of_two[2] = zf;
	of_two[3] = cf || zf;
	of_two[4] = sf;
	of_two[5] = pf;
	of_two[6] = sf != of;
	of_two[7] = zf || sf != of;
	return of_two[(condition - 1) >> 1 & 7] ^ ((condition - 1) & 1);
}

struct step_cached *step_cached(struct step *s, struct step_thread *t, uint64_t ip)
{
	struct step_process *p = t->process;
	struct step_cached *c = &p->cache[(ip * 0x9e3779b97f4a7c15u) >> 48];
	uint8_t bytes[16];
	struct iovec local = {bytes, sizeof bytes}, remote = {(void *)(uintptr_t)ip, sizeof bytes};
	const struct step_map *map;
	ssize_t n;

	if (c->ip == ip && !c->volatile_code)
		return c;
	n = process_vm_readv(t->tid, &local, 1, &remote, 1, 0);
	if (n <= 0) { /* up to the page's end, when the next one is not mapped */
		remote.iov_len = local.iov_len = 4096 - (ip & 4095);
		if (remote.iov_len > sizeof bytes)
			remote.iov_len = local.iov_len = sizeof bytes;
		n = process_vm_readv(t->tid, &local, 1, &remote, 1, 0);
	}
	if (n <= 0)
		return NULL;
	*c = (struct step_cached){0};
	if (insn_decode(bytes, (size_t)n, INSN_64, &c->insn.insn) < 0)
		return NULL;
	c->insn.quirk = (uint8_t)quirk_of(bytes, c->insn.insn.len);
	c->insn.condition = c->insn.insn.cls == INSN_JCC ? condition_of(bytes, c->insn.insn.len) : 0;
	map = step_map_at(p, ip);
	c->volatile_code = !map || map->writable;
	if (!map || !map->file) {
		/* An image has a time: the decoder must know the clock where the code changes. */
		bool changed = step_code_page(s, t, ip);

		if (((ip + c->insn.insn.len - 1) ^ ip) >> 12)
			changed |= step_code_page(s, t, ip + c->insn.insn.len - 1);
		if (changed && t->encoder.enabled) {
			s->model.cycles += 30;
			pt_encode_psb(&t->encoder, ip);
		}
	}
	c->ip = ip;
	return c;
}

bool step_insn(struct step *s, struct step_thread *t, struct step_insn *ret)
{
	const struct step_cached *c = step_cached(s, t, t->ip);

	if (c)
		*ret = c->insn;
	return c;
}

void step_begin(struct step *s, struct step_thread *t, uint64_t ip)
{
	truth(s, t, 0, ip);
	pt_encode_begin(&t->encoder, ip, t->want_psb);
	t->want_psb = false;
	t->in_kernel = false;
	t->ip = ip;
}

void step_end(struct step *s, struct step_thread *t, uint64_t from)
{
	truth(s, t, from, 0);
	pt_encode_end(&t->encoder);
	t->in_kernel = true;
	s->model.cycles += 3000;
}

void step_async_end(struct step *s, struct step_thread *t)
{
	truth(s, t, t->ip, 0);
	pt_encode_async_end(&t->encoder, t->ip);
	t->in_kernel = true;
	s->model.cycles += 3000;
}

void step_executed(struct step *s, struct step_thread *t, const struct insn *in, uint64_t to)
{
	uint64_t from = t->ip, next = from + in->len;
	bool taken;

	s->model.cycles++;
	t->ip = to;
	switch ((enum insn_class)in->cls) {
	case INSN_JCC:
		taken = to != next || t->jumped;
		if (taken)
			truth(s, t, from, to);
		pt_encode_jcc(&t->encoder, taken, to);
		return;
	case INSN_CALL:
		if (to != next)
			pt_encode_push(&t->encoder, next);
		truth(s, t, from, to);
		return;
	case INSN_JMP: truth(s, t, from, to); return;
	case INSN_CALL_IND:
		pt_encode_push(&t->encoder, next);
		/* fall through */
	case INSN_JMP_IND:
	case INSN_JMP_FAR:
	case INSN_CALL_FAR:
	case INSN_RET_FAR:
	case INSN_IRET:
		truth(s, t, from, to);
		pt_encode_indirect(&t->encoder, to);
		return;
	case INSN_RET:
		truth(s, t, from, to);
		pt_encode_ret(&t->encoder, to);
		return;
	default:
		/* Not to the next instruction: an abort, or another asynchronous branch. To itself: a
		 * string instruction continues. */
		if (to != next && to != from) {
			truth(s, t, from, to);
			pt_encode_async(&t->encoder, from, to, in->cls == INSN_XBEGIN);
		}
		return;
	}
}
