/* solve.c - a clock from what is observed: offset, ratio, and when they change; see clock.h. */
#include "decode/vm/clock_internal.h"

typedef unsigned __int128 u128;

#define LOW56 (((uint64_t)1 << 56) - 1)
/* Of the clock's tolerance: an option contradicts an observation from here on. That is some microseconds, so
 * an option that is slightly off still puts what lasts longer in the right place. */
#define OPTION_TOLERANCE 256
#define ROUNDING_TSC	 2 /* what rounding does to an exact observation */

/* ---- Offsets ---------------------------------------------------------------------------------------- */

static struct pt_vm_range range_of(const struct pt_vm_observation *o, uint64_t ratio)
{
	return (struct pt_vm_range){.lo = pt_vm_extend56(o->guest_tsc - pt_vm_scale(o->host_hi, ratio)),
				    .hi = pt_vm_extend56(o->guest_tsc - pt_vm_scale(o->host_lo, ratio))};
}

/* How far the offset lies outside of the range. */
static uint64_t outside(int64_t offset, struct pt_vm_range r)
{
	if (offset < r.lo)
		return (uint64_t)r.lo - (uint64_t)offset;
	return offset > r.hi ? (uint64_t)offset - (uint64_t)r.hi : 0;
}

static uint64_t apart(struct pt_vm_range a, struct pt_vm_range b)
{
	if (a.lo > b.hi)
		return (uint64_t)a.lo - (uint64_t)b.hi;
	return b.lo > a.hi ? (uint64_t)b.lo - (uint64_t)a.hi : 0;
}

static void intersect(struct pt_vm_range *a, struct pt_vm_range b)
{
	a->lo = b.lo > a->lo ? b.lo : a->lo;
	a->hi = b.hi < a->hi ? b.hi : a->hi;
}

static uint64_t width(struct pt_vm_range r)
{
	return (uint64_t)r.hi - (uint64_t)r.lo;
}

static int64_t middle(struct pt_vm_range r)
{
	return r.lo + (int64_t)(width(r) / 2);
}

/* ---- The ratio -------------------------------------------------------------------------------------- */

static bool is_any(struct pt_vm_slopes s)
{
	return s.lo <= s.hi;
}

static void line_begin(struct pt_vm_line *l, const struct pt_vm_observation *o)
{
	const struct pt_vm_slopes all = {0, UINT64_MAX};

	*l = (struct pt_vm_line){
	    .first = *o, .last = *o, .loose = all, .tight = all, .points = 1, .open = true};
}

/* As a slope; one that is too steep for that is the steepest. */
static uint64_t slope64(u128 slope)
{
	return slope < UINT64_MAX ? (uint64_t)slope : UINT64_MAX;
}

/*
 * Those of the slopes that a line through the first observation and this one may have: of PT_VM_RATIO_MIN to
 * PT_VM_RATIO_MAX.
 */
static struct pt_vm_slopes narrow(struct pt_vm_slopes slopes, const struct pt_vm_line *l,
				  const struct pt_vm_observation *o, uint64_t tolerance)
{
	const struct pt_vm_slopes none = {1, 0};
	uint64_t guest = (o->guest_tsc - l->first.guest_tsc) & LOW56, near, far;
	struct pt_vm_slopes s;

	if (o->host_lo < l->first.host_hi || guest > LOW56 >> 1)
		return none;
	near = o->host_lo - l->first.host_hi;
	far = o->host_hi - l->first.host_lo;
	if (far > LOW56 || guest <= tolerance || near <= tolerance)
		return none;
	s.lo = slope64(((u128)(guest - tolerance) << PT_VM_RATIO_BITS) / (far + 1));
	s.hi = slope64(((u128)(guest + tolerance) << PT_VM_RATIO_BITS) / (near - (near > 1)));
	if (s.hi < PT_VM_RATIO_MIN || s.lo > PT_VM_RATIO_MAX)
		return none;
	s.lo = s.lo > slopes.lo ? s.lo : slopes.lo;
	s.hi = s.hi < slopes.hi ? s.hi : slopes.hi;
	return s;
}

/* The ratio with which the guest has whole kHz, if there is one such only; else the middle. */
static uint64_t choose_ratio(const struct pt_vm_clock *c, struct pt_vm_slopes slopes, bool *ret_exact)
{
	uint64_t khz = c->host_khz, first, last;

	*ret_exact = false;
	if (khz) {
		first = (uint64_t)(((u128)slopes.lo * khz + PT_VM_RATIO_ONE - 1) >> PT_VM_RATIO_BITS);
		last = (uint64_t)(((u128)slopes.hi * khz) >> PT_VM_RATIO_BITS);
		if (first == last) {
			*ret_exact = true;
			return (uint64_t)(((u128)first << PT_VM_RATIO_BITS) / khz);
		}
	}
	return slopes.lo + (slopes.hi - slopes.lo) / 2;
}

/* ---- Spans ------------------------------------------------------------------------------------------ */

static void note_residual(struct pt_vm_span *s, uint64_t residual)
{
	s->worst_residual = residual > s->worst_residual ? residual : s->worst_residual;
	s->observations++;
}

static void note_seen(struct pt_vm_span *s, const struct pt_vm_observation *o)
{
	s->seen_tsc = o->host_lo > s->seen_tsc ? o->host_lo : s->seen_tsc;
}

static void set_offset(struct pt_vm_clock *c, struct pt_vm_span *s)
{
	s->offset = middle(c->solution.offset);
	s->slack = width(c->solution.offset);
}

/* The span's ratio becomes the line's. */
static void follow_line(struct pt_vm_clock *c, struct pt_vm_span *s)
{
	const struct pt_vm_line *l = &c->solution.line;
	struct pt_vm_slopes slopes = is_any(l->tight) ? l->tight : l->loose;
	struct pt_vm_range last;
	bool exact;

	s->ratio = choose_ratio(c, slopes, &exact);
	c->solution.offset = range_of(&l->first, s->ratio);
	last = range_of(&l->last, s->ratio);
	if (!apart(c->solution.offset, last))
		intersect(&c->solution.offset, last);
	set_offset(c, s);
	s->observations = l->points;
	s->worst_residual = outside(s->offset, last);
	c->solution.ratio_estimated = !exact;
	/* The offset is where the line has host TSC 0, far from where it was observed: an error of the slope
	 * counts as often. */
	if (!exact)
		s->slack += pt_vm_scale(l->first.host_hi, slopes.hi - slopes.lo);
}

/* Where a span begins of which o is the first observation: where KVM wrote the offset, if it did so since the
 * last observation that agreed with the span before. */
static uint64_t begin_of(const struct pt_vm_clock *c, const struct pt_vm_observation *o, uint64_t seen_tsc)
{
	return c->written_tsc > seen_tsc && c->written_tsc <= o->host_hi ? c->written_tsc : o->host_lo;
}

static int begin_span(struct pt_vm_clock *c, const struct pt_vm_observation *o)
{
	const struct pt_vm_span *before = pt_vm_last_span(c);
	uint64_t ratio = before && !c->expired.set ? before->ratio : PT_VM_RATIO_ONE;
	uint64_t seen_tsc = before ? before->seen_tsc : 0;
	struct pt_vm_span *s;
	uint64_t end_off_by;

	if (pt_vm_clock_give_up(c, o->host_lo))
		return 0;
	s = pt_vm_add_span(c);
	if (!s)
		return -1;
	c->expired.set = false;
	s->ratio = ratio;
	s->source = PTR_CLOCK_SOLVED;
	if (c->count > 1)
		s->from_tsc = begin_of(c, o, seen_tsc);
	s->observations = 1;
	note_seen(s, o);
	c->solution.offset = range_of(o, ratio);
	set_offset(c, s);
	end_off_by = outside(c->end.offset, c->solution.offset);
	if (c->end.known && end_off_by <= c->tolerance) {
		c->solution.offset = (struct pt_vm_range){c->end.offset, c->end.offset};
		set_offset(c, s);
		s->source = PTR_CLOCK_CONTAINER;
		s->worst_residual = end_off_by;
	}
	line_begin(&c->solution.line, o);
	c->solution.line.open = !c->solution.ratio_known;
	c->solution.in_doubt = c->solution.ratio_estimated = false;
	return 0;
}

/* The span takes an observation that agrees with it: r is the offset by that. */
static void confirm(struct pt_vm_clock *c, struct pt_vm_span *s, struct pt_vm_range r)
{
	if (s->source == PTR_CLOCK_SOLVED && !apart(c->solution.offset, r)) {
		intersect(&c->solution.offset, r);
		set_offset(c, s);
	}
	note_residual(s, outside(s->offset, r));
}

/* ---- Observations ----------------------------------------------------------------------------------- */

/* One from before the last one. */
static void observe_out_of_order(struct pt_vm_clock *c, const struct pt_vm_observation *o)
{
	size_t i = c->count;
	uint64_t residual;
	struct pt_vm_span *s;

	while (i > 1 && c->spans[i - 1].from_tsc > o->host_lo)
		i--;
	s = &c->spans[i - 1];
	residual = outside(s->offset, range_of(o, s->ratio));
	if (residual > c->tolerance + s->slack)
		return; /* near a change, of which the exact time is not known */
	note_residual(s, residual);
	note_seen(s, o);
}

/* One of a clock that an option gives. */
static void test_option(struct pt_vm_clock *c, struct pt_vm_span *s, const struct pt_vm_observation *o)
{
	uint64_t residual = outside(s->offset, range_of(o, s->ratio));

	c->option.observations++;
	if (residual > OPTION_TOLERANCE * c->tolerance) {
		if (!c->option.contradictions || residual < c->option.off_by)
			c->option.off_by = residual;
		c->option.contradictions++;
	}
	note_residual(s, residual);
}

/*
 * The observation before this one fitted the line, but not the span s, and this one shows that the ratio is
 * the span's. Either the offset changed at the observation before (this one does not fit s either), or that
 * one was wrong.
 */
static int resolve_doubt(struct pt_vm_clock *c, struct pt_vm_span *s, const struct pt_vm_observation *o,
			 bool fits)
{
	struct pt_vm_observation doubtful = c->solution.line.last;

	c->solution.in_doubt = false;
	if (!fits) {
		if (begin_span(c, &doubtful) < 0)
			return -1;
		return pt_vm_clock_observe(c, o);
	}
	line_begin(&c->solution.line, o);
	confirm(c, s, range_of(o, s->ratio));
	note_seen(s, o);
	return 0;
}

static void extend_line(struct pt_vm_line *l, const struct pt_vm_observation *o, bool on_line,
			struct pt_vm_slopes slopes)
{
	l->last = *o;
	l->open = on_line;
	if (!on_line)
		return;
	l->loose = slopes;
	if (is_any(l->tight))
		l->tight = narrow(l->tight, l, o, ROUNDING_TSC);
	l->points++;
}

int pt_vm_clock_observe(struct pt_vm_clock *c, const struct pt_vm_observation *o)
{
	struct pt_vm_span *s = pt_vm_last_span(c);
	struct pt_vm_line *l = &c->solution.line;
	struct pt_vm_slopes slopes;
	struct pt_vm_range r;
	bool fits, on_line;

	if (c->gave_up)
		return 0;
	c->assumed = false;
	if (!s || (c->expired.set && o->host_lo >= c->expired.tsc))
		return begin_span(c, o);
	if (s->source == PTR_CLOCK_OPTION) {
		test_option(c, s, o);
		return 0;
	}
	if (o->host_lo < l->last.host_lo) {
		observe_out_of_order(c, o);
		return 0;
	}
	r = range_of(o, s->ratio);
	fits = apart(c->solution.offset, r) <= c->tolerance;
	slopes = narrow(l->loose, l, o, c->tolerance);
	on_line = l->open && is_any(slopes);
	if (c->solution.in_doubt && (fits || !on_line))
		return resolve_doubt(c, s, o, fits);
	if (!fits && !on_line)
		return begin_span(c, o);
	extend_line(l, o, on_line, slopes);
	c->solution.in_doubt = !fits && l->points < 3;
	if (!c->solution.in_doubt)
		note_seen(s, o);
	if (on_line && !c->solution.in_doubt && (c->solution.ratio_estimated || !fits))
		follow_line(c, s);
	else if (fits)
		confirm(c, s, r);
	return 0;
}
