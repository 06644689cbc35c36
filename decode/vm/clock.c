/* clock.c - what is known of a clock, and what it says; see clock.h. */
#include "decode/vm/clock.h"

#include <stdlib.h>

#include "decode/vm/clock_internal.h"
#include "schema/array.h"

struct pt_vm_clock *pt_vm_clock_create(uint64_t vmcs, uint64_t tolerance, uint64_t host_khz)
{
	struct pt_vm_clock *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->vmcs = vmcs;
	c->tolerance = tolerance;
	c->host_khz = host_khz;
	return c;
}

void pt_vm_clock_destroy(struct pt_vm_clock *c)
{
	if (c)
		free(c->spans);
	free(c);
}

uint64_t pt_vm_clock_vmcs(const struct pt_vm_clock *c)
{
	return c->vmcs;
}

bool pt_vm_clock_give_up(struct pt_vm_clock *c, uint64_t host_tsc)
{
	if (c->count < PT_VM_SPANS_MAX)
		return false;
	c->gave_up = c->expired.set = true;
	c->expired.tsc = host_tsc;
	return true;
}

struct pt_vm_span *pt_vm_add_span(struct pt_vm_clock *c)
{
	if (pt_array_grow(&c->spans, c->count, &c->room, NULL) < 0)
		return NULL;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): where there is room there is an array */
	c->spans[c->count] = (struct pt_vm_span){0};
	return &c->spans[c->count++];
}

/* ---- What is known ---------------------------------------------------------------------------------- */

int pt_vm_clock_know(struct pt_vm_clock *c, uint64_t from_tsc, const struct pt_vm_known *known)
{
	struct pt_vm_span *s = pt_vm_last_span(c);
	uint64_t ratio;

	if (!pt_vm_ratio(known->ratio, known->frac_bits, &ratio) || c->gave_up ||
	    (s && s->source == PTR_CLOCK_OPTION))
		return 0;
	if (c->expired.set && from_tsc < c->expired.tsc)
		from_tsc = c->expired.tsc;
	if (s && !c->expired.set && s->from_tsc <= from_tsc && s->offset == known->offset &&
	    s->ratio == ratio) {
		s->source = known->source;
		s->slack = 0;
	} else {
		/* It replaces a span of the same time that no observation has confirmed. */
		if (!s || s->from_tsc < from_tsc || s->observations) {
			if (pt_vm_clock_give_up(c, from_tsc))
				return 0;
			s = pt_vm_add_span(c);
		}
		if (!s)
			return -1;
		*s = (struct pt_vm_span){
		    .from_tsc = from_tsc, .ratio = ratio, .offset = known->offset, .source = known->source};
	}
	c->expired.set = c->assumed = false;
	c->solution.offset = (struct pt_vm_range){known->offset, known->offset};
	c->solution.ratio_known = true;
	c->solution.line.open = c->solution.in_doubt = c->solution.ratio_estimated = false;
	return 0;
}

bool pt_vm_clock_assumed(const struct pt_vm_clock *c)
{
	return c->assumed;
}

void pt_vm_clock_confirm(struct pt_vm_clock *c)
{
	c->assumed = false;
}

void pt_vm_clock_know_end(struct pt_vm_clock *c, int64_t offset)
{
	c->end.known = true;
	c->end.offset = offset;
}

void pt_vm_clock_written(struct pt_vm_clock *c, uint64_t host_tsc)
{
	c->written_tsc = host_tsc;
	/* A change that was found before the decode begins with its first TSC packet, which is too late. */
	for (size_t i = 1; i < c->count; i++) {
		struct pt_vm_span *s = &c->spans[i];

		if (s->source != PTR_CLOCK_TRACEPOINT && host_tsc < s->from_tsc &&
		    host_tsc > s[-1].from_tsc && host_tsc > s[-1].seen_tsc) {
			s->from_tsc = host_tsc;
			c->moves++;
		}
	}
}

bool pt_vm_clock_restart(struct pt_vm_clock *c, uint64_t host_tsc)
{
	const struct pt_vm_span *s = pt_vm_last_span(c);

	if (c->gave_up)
		return false;
	pt_vm_clock_written(c, host_tsc);
	if (!s || s->source == PTR_CLOCK_OPTION || s->seen_tsc >= host_tsc || s->from_tsc >= host_tsc)
		return !s;
	c->expired.set = true;
	c->expired.tsc = host_tsc;
	/* These were the other vCPU's. */
	c->end.known = c->solution.ratio_known = c->was_settled = false;
	c->moves++;
	return true;
}

/* ---- What it says ----------------------------------------------------------------------------------- */

uint64_t pt_vm_clock_contradicted(const struct pt_vm_clock *c)
{
	return c->option.contradictions > 1 || (c->option.contradictions && c->option.observations == 1)
		   ? c->option.off_by
		   : 0;
}

bool pt_vm_clock_gave_up(const struct pt_vm_clock *c, uint64_t *ret_tsc)
{
	*ret_tsc = c->expired.tsc;
	return c->gave_up;
}

const struct pt_vm_span *pt_vm_clock_spans(const struct pt_vm_clock *c, size_t *ret_count)
{
	*ret_count = c->count;
	return c->spans;
}

bool pt_vm_clock_settled(const struct pt_vm_clock *c)
{
	const struct pt_vm_span *s = pt_vm_last_span(c);

	return s && !c->expired.set && !c->solution.in_doubt &&
	       (s->source != PTR_CLOCK_SOLVED || s->observations > 1 || c->was_settled);
}

bool pt_vm_clock_to_host(const struct pt_vm_clock *c, uint64_t guest_tsc, uint64_t about_tsc, uint64_t *ret)
{
	size_t i = c->count;

	if (!i || (c->expired.set && about_tsc >= c->expired.tsc))
		return false;
	if (about_tsc == PTR_NO_TSC) {
		while (i > 1 && pt_vm_span_to_host(&c->spans[i - 1], guest_tsc) < c->spans[i - 1].from_tsc)
			i--;
		*ret = pt_vm_span_to_host(&c->spans[i - 1], guest_tsc);
	} else {
		while (i > 1 && c->spans[i - 1].from_tsc > about_tsc)
			i--;
		*ret = pt_vm_span_to_host_near(&c->spans[i - 1], guest_tsc, about_tsc);
	}
	return true;
}

bool pt_vm_clock_to_host_after(const struct pt_vm_clock *c, uint64_t guest_tsc, uint64_t after_tsc,
			       uint64_t *ret)
{
	uint64_t millisecond_tsc = c->host_khz ? c->host_khz : 1 << 20, earliest = PTR_NO_TSC;

	for (size_t i = 0; i < c->count; i++) {
		const struct pt_vm_span *s = &c->spans[i];
		uint64_t host = pt_vm_span_to_host(s, guest_tsc);

		if (host >= s->from_tsc && (i + 1 == c->count || host < s[1].from_tsc) &&
		    (host >= after_tsc || after_tsc - host <= millisecond_tsc) && host < earliest)
			earliest = host;
	}
	if (earliest == PTR_NO_TSC)
		return pt_vm_clock_to_host(c, guest_tsc, PTR_NO_TSC, ret);
	*ret = earliest;
	return true;
}
