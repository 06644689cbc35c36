/* libipt.c - what Intel's libipt decodes of a random program; see random.h. */
#include <stdlib.h>
#include <string.h>

#include <intel-pt.h>

#include "tests/oracle/random/random.h"

struct judge {
	const struct trace *trace;
	size_t at; /* of the next fact */
	bool same;
	bool known; /* the last instruction */
	uint64_t ip, next;
	enum pt_insn_class class;
};

/* Facts that it cannot see: conditional branches to the next instruction. */
static void skip(struct judge *j)
{
	for (; j->at < j->trace->count; j->at++) {
		const struct fact *f = &j->trace->facts[j->at];

		if (f->kind < FACT_BEGIN && !f->to_next)
			break;
	}
}

static void branch(struct judge *j, uint64_t from, uint64_t to)
{
	const struct fact *f;

	skip(j);
	f = &j->trace->facts[j->at];
	if (!j->same || j->at == j->trace->count || f->from != from || f->to != to)
		j->same = false;
	else
		j->at++;
}

static bool always_taken(enum pt_insn_class class)
{
	return class != ptic_other && class != ptic_cond_jump && class != ptic_ptwrite;
}

static void on_event(struct judge *j, const struct pt_event *v)
{
	if (v->status_update)
		return;
	switch (v->type) {
	case ptev_enabled: branch(j, 0, v->variant.enabled.ip); break;
	case ptev_disabled:
		if (j->known)
			branch(j, j->ip, 0);
		break;
	case ptev_async_disabled:
		if (j->known && (j->next != v->variant.async_disabled.at || always_taken(j->class)))
			branch(j, j->ip, v->variant.async_disabled.at);
		branch(j, v->variant.async_disabled.at, 0);
		break;
	case ptev_async_branch:
		if (j->known && (j->next != v->variant.async_branch.from || always_taken(j->class)))
			branch(j, j->ip, v->variant.async_branch.from);
		branch(j, v->variant.async_branch.from, v->variant.async_branch.to);
		break;
	default: return;
	}
	j->known = false;
}

static int read_code(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip, void *context)
{
	const struct program *p = context;

	(void)asid;
	for (uint32_t i = 0; i < p->count; i++) {
		const struct region *r = &p->regions[i];

		if (ip >= r->base && ip < r->base + r->bytes) {
			uint64_t n = r->base + r->bytes - ip;

			memcpy(buffer, r->code + (ip - r->base), n < size ? n : size);
			return (int)(n < size ? n : size);
		}
	}
	return -pte_nomap;
}

/* Decodes until the end, an error, or a difference. */
static int decode(struct pt_insn_decoder *d, struct judge *j)
{
	int status = pt_insn_sync_forward(d);

	while (status >= 0 && j->same && !(status & pts_eos)) {
		struct pt_insn in;

		while (status >= 0 && (status & pts_event_pending)) {
			struct pt_event event;

			status = pt_insn_event(d, &event, sizeof event);
			if (status >= 0)
				on_event(j, &event);
		}
		if (status < 0 || (status & pts_eos))
			break;
		memset(&in, 0, sizeof in);
		status = pt_insn_next(d, &in, sizeof in);
		if (in.iclass == ptic_error)
			break;
		if (j->known && (j->next != in.ip || always_taken(j->class)))
			branch(j, j->ip, in.ip);
		j->known = true;
		j->ip = in.ip;
		j->next = in.ip + in.size;
		j->class = in.iclass;
	}
	return status;
}

enum verdict libipt_judges(const struct program *p, const struct config *c, const struct trace *t)
{
	struct judge j = {.trace = t, .same = true};
	struct pt_image *image = pt_image_alloc(NULL);
	struct pt_insn_decoder *d;
	struct pt_config config;
	int status;

	pt_config_init(&config);
	config.begin = t->packets;
	config.end = t->packets + t->bytes;
	config.mtc_freq = (uint8_t)c->mtc_shift;
	config.nom_freq = (uint8_t)c->nominal_ratio;
	config.cpuid_0x15_eax = c->ctc_den;
	config.cpuid_0x15_ebx = c->ctc_num;
	if (c->ranges > 0) {
		config.addr_filter.config.ctl.addr0_cfg = 1;
		config.addr_filter.addr0_a = c->from[0];
		config.addr_filter.addr0_b = c->to[0];
	}
	if (c->ranges > 1) {
		config.addr_filter.config.ctl.addr1_cfg = 1;
		config.addr_filter.addr1_a = c->from[1];
		config.addr_filter.addr1_b = c->to[1];
	}
	d = pt_insn_alloc_decoder(&config);
	if (!d || !image || pt_image_set_callback(image, read_code, (void *)(uintptr_t)p) < 0 ||
	    pt_insn_set_image(d, image) < 0)
		abort();
	status = decode(d, &j);
	pt_insn_free_decoder(d);
	pt_image_free(image);
	if (!j.same)
		return VERDICT_OTHER;
	if (status < 0 && status != -pte_eos)
		return VERDICT_NONE;
	skip(&j);
	/* It does not come to the very last branch when that left an IP filter's range. */
	return j.at == t->count ? VERDICT_SAME : c->ranges ? VERDICT_NONE : VERDICT_OTHER;
}
