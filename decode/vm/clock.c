/* clock.c - see clock.h. */
#include "decode/vm/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOW56 (((uint64_t)1 << 56) - 1)
/* CTC ticks that an option may be off by: some microseconds, which is less than what it puts in time lasts. */
#define OPTION_TICKS 256
#define TESTS_ENOUGH 3
#define SPANS_MAX    65536 /* more changes of an offset than any trace has: a hostile one ends here */

typedef unsigned __int128 u128;

/* What an observation says of the offset at a given ratio: it lies in [lo, hi]. */
struct range {
	int64_t lo, hi;
};

#define TIGHT 2 /* TSC ticks: what rounding does to an exact observation */

struct slopes {
	uint64_t lo, hi; /* none when lo > hi */
};

/* The current span as a line through its first observation, whose slope is still open. */
struct line {
	struct pt_vm_observation first, last;
	struct slopes loose, tight; /* by the clock's tolerance; by TIGHT, for as long as there is one */
	uint64_t points;
	bool alive;
};

struct pt_vm_clock {
	uint64_t vmcs;
	uint64_t tolerance, host_khz;
	struct pt_vm_span *spans;
	size_t count, room;
	struct range offset; /* of the last span */
	struct line line;    /* of the last span, while it is solved */
	bool agreed;	     /* two observations have, before they were forgotten */
	bool ratio_given;    /* the ratio is not the trace's to say */
	bool sloped;	     /* the last span's ratio is the line's, and not certain yet */
	bool doubted;	     /* the last observation fits the line, but not the span: the next one decides */
	bool has_end;
	int64_t end_offset;
	uint64_t written_tsc; /* the last write of the offset; 0 none */
	uint64_t tests, against,
	    off_by; /* of an option: observations, those that contradict, by how much at least */
	bool over;  /* since over_tsc the last span holds no more */
	uint64_t over_tsc;
	uint64_t moved; /* how often a span was found to have begun earlier */
	struct pt_vm_clock *next;
};

struct pt_vm_clocks {
	uint64_t tolerance, host_khz;
	struct pt_vm_clock *first, *any;
};

/* ---- One span --------------------------------------------------------------------------------------- */

static uint64_t scale(uint64_t host, uint64_t ratio)
{
	return (uint64_t)(((u128)host * ratio) >> PT_VM_RATIO_BITS);
}

uint64_t pt_vm_span_to_guest(const struct pt_vm_span *s, uint64_t host_tsc)
{
	return scale(host_tsc, s->ratio) + (uint64_t)s->offset;
}

uint64_t pt_vm_span_to_host(const struct pt_vm_span *s, uint64_t guest_tsc)
{
	u128 scaled = (u128)((guest_tsc - (uint64_t)s->offset)) << PT_VM_RATIO_BITS;

	if (s->ratio == PT_VM_RATIO_ONE)
		return guest_tsc - (uint64_t)s->offset;
	/* The first host tick that shows this guest tick. */
	return (uint64_t)((scaled + s->ratio - 1) / s->ratio);
}

/* A packet has 56 bits: the offset's upper ones are its sign's. */
static int64_t extend(uint64_t difference)
{
	return (int64_t)(difference << 8) >> 8;
}

static struct range range_of(const struct pt_vm_observation *o, uint64_t ratio)
{
	return (struct range){.lo = extend(o->guest_tsc - scale(o->host_hi, ratio)),
			      .hi = extend(o->guest_tsc - scale(o->host_lo, ratio))};
}

/* How far v lies outside of r. */
static uint64_t outside(int64_t v, struct range r)
{
	if (v < r.lo)
		return (uint64_t)r.lo - (uint64_t)v;
	return v > r.hi ? (uint64_t)v - (uint64_t)r.hi : 0;
}

static uint64_t apart(struct range a, struct range b)
{
	if (a.lo > b.hi)
		return (uint64_t)a.lo - (uint64_t)b.hi;
	return b.lo > a.hi ? (uint64_t)b.lo - (uint64_t)a.hi : 0;
}

static int64_t middle(struct range r)
{
	return r.lo + (int64_t)(((uint64_t)r.hi - (uint64_t)r.lo) / 2);
}

static struct pt_vm_span *last_span(struct pt_vm_clock *c)
{
	return c->count ? &c->spans[c->count - 1] : NULL;
}

static struct pt_vm_span *add_span(struct pt_vm_clock *c)
{
	if (!c->spans || c->count == c->room) {
		size_t room = c->room ? c->room * 2 : 4;
		struct pt_vm_span *spans = room > SPANS_MAX ? NULL : realloc(c->spans, room * sizeof *spans);

		if (!spans)
			return NULL;
		c->spans = spans;
		c->room = room;
	}
	c->spans[c->count] = (struct pt_vm_span){0};
	return &c->spans[c->count++];
}

/* ---- The line: is it a change, or another rate? ----------------------------------------------------- */

static const struct slopes all_slopes = {0, UINT64_MAX}, no_slopes = {1, 0};

static void line_begin(struct line *l, const struct pt_vm_observation *o)
{
	*l = (struct line){
	    .first = *o, .last = *o, .loose = all_slopes, .tight = all_slopes, .points = 1, .alive = true};
}

/* Those of `before` with which a line through both observations has a slope that a KVM would set. */
static struct slopes narrow(struct slopes before, const struct line *l, const struct pt_vm_observation *o,
			    uint64_t tolerance)
{
	uint64_t guest = (o->guest_tsc - l->first.guest_tsc) & LOW56, near, far;
	struct slopes s;

	if (o->host_lo < l->first.host_hi || guest > LOW56 >> 1)
		return no_slopes;
	near = o->host_lo - l->first.host_hi;
	far = o->host_hi - l->first.host_lo;
	if (far > LOW56 || guest <= tolerance || near <= tolerance)
		return no_slopes;
	s.lo = (uint64_t)(((u128)(guest - tolerance) << PT_VM_RATIO_BITS) / (far + 1));
	s.hi = (uint64_t)(((u128)(guest + tolerance) << PT_VM_RATIO_BITS) / (near - (near > 1)));
	if (s.hi < PT_VM_RATIO_ONE / 64 || s.lo > PT_VM_RATIO_ONE * 64)
		return no_slopes;
	s.lo = s.lo > before.lo ? s.lo : before.lo;
	s.hi = s.hi < before.hi ? s.hi : before.hi;
	return s;
}

/* The one ratio of whole kHz among the slopes, else the middle. */
static uint64_t pick_ratio(const struct pt_vm_clock *c, struct slopes slopes, bool *ret_exact)
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

/* The span's ratio is the line's. */
static void follow_line(struct pt_vm_clock *c, struct pt_vm_span *s)
{
	struct line *l = &c->line;
	struct slopes slopes = l->tight.lo <= l->tight.hi ? l->tight : l->loose;
	struct range r;
	bool exact;

	s->ratio = pick_ratio(c, slopes, &exact);
	c->offset = range_of(&l->first, s->ratio);
	r = range_of(&l->last, s->ratio);
	if (!apart(c->offset, r)) {
		c->offset.lo = r.lo > c->offset.lo ? r.lo : c->offset.lo;
		c->offset.hi = r.hi < c->offset.hi ? r.hi : c->offset.hi;
	}
	s->offset = middle(c->offset);
	s->observations = l->points;
	s->worst_residual = outside(s->offset, r);
	s->slack = (uint64_t)c->offset.hi - (uint64_t)c->offset.lo;
	c->sloped = !exact;
	/* Where the lines of all slopes are at TSC 0 is far off what was seen: the offset is as good as the slope. */
	if (!exact)
		s->slack += scale(l->first.host_hi, slopes.hi - slopes.lo);
}

/* ---- Knowing and observing -------------------------------------------------------------------------- */

static uint64_t to_48(uint64_t ratio, unsigned frac_bits)
{
	if (!ratio)
		return PT_VM_RATIO_ONE;
	return frac_bits >= PT_VM_RATIO_BITS ? ratio >> (frac_bits - PT_VM_RATIO_BITS)
					     : ratio << (PT_VM_RATIO_BITS - frac_bits);
}

int pt_vm_clock_know(struct pt_vm_clock *c, uint64_t from_tsc, int64_t offset, uint64_t ratio,
		     unsigned frac_bits, enum ptr_clock_source source)
{
	struct pt_vm_span *s = last_span(c);

	ratio = frac_bits > 63 ? PT_VM_RATIO_ONE : to_48(ratio, frac_bits);
	if (s && s->source == PTR_CLOCK_OPTION)
		return 0;
	if (c->over && from_tsc < c->over_tsc)
		from_tsc = c->over_tsc;
	if (s && !c->over && s->from_tsc <= from_tsc && s->offset == offset && s->ratio == ratio) {
		s->source = source;
		s->slack = 0;
	} else {
		/* What held only from now on takes the place of a guess that began with the same. */
		if (!s || s->from_tsc < from_tsc || s->observations)
			s = add_span(c);
		if (!s)
			return -1;
		*s = (struct pt_vm_span){
		    .from_tsc = from_tsc, .ratio = ratio, .offset = offset, .source = source};
	}
	c->over = false;
	c->offset = (struct range){offset, offset};
	c->ratio_given = true;
	c->line.alive = c->doubted = c->sloped = false;
	return 0;
}

void pt_vm_clock_know_end(struct pt_vm_clock *c, int64_t offset)
{
	c->has_end = true;
	c->end_offset = offset;
}

void pt_vm_clock_written(struct pt_vm_clock *c, uint64_t host_tsc)
{
	c->written_tsc = host_tsc;
	/* A change that was found before the decode, by its first TSC packet. */
	for (size_t i = 1; i < c->count; i++) {
		struct pt_vm_span *s = &c->spans[i];

		if (s->source != PTR_CLOCK_TRACEPOINT && host_tsc < s->from_tsc &&
		    host_tsc > s[-1].from_tsc && host_tsc > s[-1].seen_tsc) {
			s->from_tsc = host_tsc;
			c->moved++;
		}
	}
}

bool pt_vm_clock_restart(struct pt_vm_clock *c, uint64_t host_tsc)
{
	const struct pt_vm_span *s = last_span(c);

	pt_vm_clock_written(c, host_tsc);
	if (!s || s->source == PTR_CLOCK_OPTION || s->seen_tsc >= host_tsc || s->from_tsc >= host_tsc)
		return !s;
	c->over = true;
	c->over_tsc = host_tsc;
	c->has_end = c->ratio_given = c->agreed = false; /* those were another vCPU's */
	c->moved++;
	return true;
}

static void saw(struct pt_vm_span *s, const struct pt_vm_observation *o)
{
	s->seen_tsc = o->host_lo > s->seen_tsc ? o->host_lo : s->seen_tsc;
}

static int begin_span(struct pt_vm_clock *c, const struct pt_vm_observation *o)
{
	struct pt_vm_span *before = last_span(c);
	uint64_t ratio = before ? before->ratio : PT_VM_RATIO_ONE;
	uint64_t since = before ? c->line.last.host_hi : 0;
	struct pt_vm_span *s = add_span(c); /* `before` may have moved */

	if (!s)
		return -1;
	if (c->over)
		ratio = PT_VM_RATIO_ONE;
	c->over = false;
	s->ratio = ratio;
	s->source = PTR_CLOCK_SOLVED;
	if (c->count > 1)
		s->from_tsc =
		    c->written_tsc > since && c->written_tsc <= o->host_hi ? c->written_tsc : o->host_lo;
	s->observations = 1;
	saw(s, o);
	c->offset = range_of(o, ratio);
	s->offset = middle(c->offset);
	s->slack = (uint64_t)c->offset.hi - (uint64_t)c->offset.lo;
	if (c->has_end && outside(c->end_offset, c->offset) <= c->tolerance) {
		s->offset = c->end_offset;
		s->source = PTR_CLOCK_CONTAINER;
		s->worst_residual = outside(c->end_offset, c->offset);
		s->slack = 0;
		c->offset = (struct range){c->end_offset, c->end_offset};
	}
	line_begin(&c->line, o);
	c->line.alive = !c->ratio_given;
	c->doubted = c->sloped = false;
	return 0;
}

/* The span takes an observation that agrees with it. */
static void confirm(struct pt_vm_clock *c, struct pt_vm_span *s, struct range r)
{
	uint64_t residual;

	if (s->source == PTR_CLOCK_SOLVED && !apart(c->offset, r)) {
		c->offset.lo = r.lo > c->offset.lo ? r.lo : c->offset.lo;
		c->offset.hi = r.hi < c->offset.hi ? r.hi : c->offset.hi;
		s->offset = middle(c->offset);
		s->slack = (uint64_t)c->offset.hi - (uint64_t)c->offset.lo;
	}
	residual = outside(s->offset, r);
	s->worst_residual = residual > s->worst_residual ? residual : s->worst_residual;
	s->observations++;
}

/* An observation from before the last one. */
static void observe_late(struct pt_vm_clock *c, const struct pt_vm_observation *o)
{
	size_t i = c->count;
	uint64_t residual;
	struct pt_vm_span *s;

	while (i > 1 && c->spans[i - 1].from_tsc > o->host_lo)
		i--;
	s = &c->spans[i - 1];
	residual = outside(s->offset, range_of(o, s->ratio));
	if (residual > c->tolerance + s->slack)
		return; /* around a change that was seen from elsewhere */
	s->worst_residual = residual > s->worst_residual ? residual : s->worst_residual;
	s->observations++;
	saw(s, o);
}

int pt_vm_clock_observe(struct pt_vm_clock *c, const struct pt_vm_observation *o)
{
	struct pt_vm_span *s = last_span(c);
	struct slopes slopes;
	uint64_t far;
	struct range r;
	bool fits, on_line;

	if (!s || (c->over && o->host_lo >= c->over_tsc))
		return begin_span(c, o);
	if (s->source != PTR_CLOCK_OPTION && o->host_lo < c->line.last.host_lo) {
		observe_late(c, o);
		return 0;
	}
	r = range_of(o, s->ratio);
	far = outside(s->offset, r);
	fits = apart(c->offset, r) <= c->tolerance;
	slopes = narrow(c->line.loose, &c->line, o, c->tolerance);
	on_line = c->line.alive && slopes.lo <= slopes.hi;
	if (s->source == PTR_CLOCK_OPTION) {
		c->tests++;
		if (far > OPTION_TICKS * c->tolerance) {
			c->off_by = !c->against++ || far < c->off_by ? far : c->off_by;
		}
		s->observations++;
		s->worst_residual = far > s->worst_residual ? far : s->worst_residual;
		return 0;
	}
	if (c->doubted && !(on_line && !fits)) {
		struct pt_vm_observation doubt = c->line.last;

		/* It was no other rate: the offset has changed at the observation before, unless that was wrong alone. */
		c->doubted = false;
		if (!fits) {
			if (begin_span(c, &doubt) < 0)
				return -1;
			return pt_vm_clock_observe(c, o);
		}
		line_begin(&c->line, o);
		confirm(c, s, r);
		saw(s, o);
		return 0;
	}
	if (!fits && !on_line)
		return begin_span(c, o);
	c->line.last = *o;
	if (on_line) {
		c->line.loose = slopes;
		if (c->line.tight.lo <= c->line.tight.hi)
			c->line.tight = narrow(c->line.tight, &c->line, o, TIGHT);
		c->line.points++;
	} else {
		c->line.alive = false;
	}
	c->doubted = !fits && c->line.points < 3;
	if (!c->doubted)
		saw(s, o);
	if (on_line && !c->doubted && (c->sloped || !fits))
		follow_line(c, s);
	else if (fits)
		confirm(c, s, r);
	return 0;
}

const struct pt_vm_span *pt_vm_clock_spans(const struct pt_vm_clock *c, size_t *ret_count)
{
	*ret_count = c->count;
	return c->spans;
}

bool pt_vm_clock_settled(const struct pt_vm_clock *c)
{
	const struct pt_vm_span *s = c->count ? &c->spans[c->count - 1] : NULL;

	return s && !c->over && !c->doubted &&
	       (s->source != PTR_CLOCK_SOLVED || s->observations > 1 || c->agreed);
}

bool pt_vm_clock_to_host(const struct pt_vm_clock *c, uint64_t guest_tsc, uint64_t about_tsc, uint64_t *ret)
{
	size_t i = c->count;

	if (!i || (c->over && about_tsc >= c->over_tsc))
		return false;
	if (about_tsc != UINT64_MAX) {
		while (i > 1 && c->spans[i - 1].from_tsc > about_tsc)
			i--;
	} else {
		/* The last span that was in force at the time that it gives. */
		while (i > 1 && pt_vm_span_to_host(&c->spans[i - 1], guest_tsc) < c->spans[i - 1].from_tsc)
			i--;
	}
	if (about_tsc != UINT64_MAX) {
		uint64_t there = pt_vm_span_to_guest(&c->spans[i - 1], about_tsc);

		guest_tsc = there + (uint64_t)extend(guest_tsc - there);
	}
	*ret = pt_vm_span_to_host(&c->spans[i - 1], guest_tsc);
	return true;
}

bool pt_vm_clock_to_host_after(const struct pt_vm_clock *c, uint64_t guest_tsc, uint64_t after_tsc,
			       uint64_t *ret)
{
	uint64_t slack = c->host_khz ? c->host_khz : 1 << 20, earliest = UINT64_MAX;

	for (size_t i = 0; i < c->count; i++) {
		const struct pt_vm_span *s = &c->spans[i];
		uint64_t host = pt_vm_span_to_host(s, guest_tsc);

		if (host >= s->from_tsc && (i + 1 == c->count || host < s[1].from_tsc) &&
		    (host >= after_tsc || after_tsc - host <= slack) && host < earliest)
			earliest = host;
	}
	if (earliest == UINT64_MAX)
		return pt_vm_clock_to_host(c, guest_tsc, UINT64_MAX, ret);
	*ret = earliest;
	return true;
}

/* ---- All of a trace --------------------------------------------------------------------------------- */

static struct pt_vm_clock *clock_create(const struct pt_vm_clocks *all, uint64_t vmcs)
{
	struct pt_vm_clock *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->vmcs = vmcs;
	c->tolerance = all->tolerance;
	c->host_khz = all->host_khz;
	return c;
}

static void clock_destroy(struct pt_vm_clock *c)
{
	if (c)
		free(c->spans);
	free(c);
}

struct pt_vm_clocks *pt_vm_clocks_create(uint64_t tolerance, uint64_t host_khz)
{
	struct pt_vm_clocks *all = calloc(1, sizeof *all);

	if (!all)
		return NULL;
	all->tolerance = tolerance;
	all->host_khz = host_khz;
	all->any = clock_create(all, PT_VM_ANY);
	if (!all->any) {
		free(all);
		return NULL;
	}
	return all;
}

void pt_vm_clocks_destroy(struct pt_vm_clocks *all)
{
	if (!all)
		return;
	while (all->first) {
		struct pt_vm_clock *c = all->first;

		all->first = c->next;
		clock_destroy(c);
	}
	clock_destroy(all->any);
	free(all);
}

struct pt_vm_clock *pt_vm_clocks_get(struct pt_vm_clocks *all, uint64_t vmcs)
{
	struct pt_vm_clock *c, **at = &all->first;
	const struct pt_vm_span *s = last_span(all->any);

	for (; *at; at = &(*at)->next)
		if ((*at)->vmcs == vmcs)
			return *at;
	c = clock_create(all, vmcs);
	if (!c)
		return NULL;
	c->has_end = all->any->has_end;
	c->end_offset = all->any->end_offset;
	if (s && pt_vm_clock_know(c, 0, s->offset, s->ratio, PT_VM_RATIO_BITS, s->source) < 0) {
		clock_destroy(c);
		return NULL;
	}
	*at = c;
	return c;
}

const struct pt_vm_clock *pt_vm_clocks_find(const struct pt_vm_clocks *all, uint64_t vmcs)
{
	const struct pt_vm_clock *c = all->first;

	while (c && c->vmcs != vmcs)
		c = c->next;
	return c;
}

struct pt_vm_clock *pt_vm_clocks_at(struct pt_vm_clocks *all, size_t i)
{
	struct pt_vm_clock *c = all->first;

	while (c && i--)
		c = c->next;
	return c;
}

const struct pt_vm_clock *pt_vm_clocks_any(const struct pt_vm_clocks *all)
{
	return all->any;
}

uint64_t pt_vm_clocks_changes(const struct pt_vm_clocks *all)
{
	uint64_t n = 0;

	for (const struct pt_vm_clock *c = all->first; c; c = c->next)
		n += c->count + c->moved;
	return n;
}

void pt_vm_clocks_recount(struct pt_vm_clocks *all)
{
	for (struct pt_vm_clock *c = all->first; c; c = c->next) {
		c->agreed = pt_vm_clock_settled(c);
		for (size_t i = 0; i < c->count; i++)
			c->spans[i].observations = c->spans[i].worst_residual = 0;
	}
}

uint64_t pt_vm_clock_contradicted(const struct pt_vm_clock *c)
{
	return c->against > 1 || (c->against && c->tests == 1) ? c->off_by : 0;
}

bool pt_vm_clocks_tested(const struct pt_vm_clocks *all)
{
	for (const struct pt_vm_clock *c = all->first; c; c = c->next)
		if (c->count && c->spans[0].source == PTR_CLOCK_OPTION && c->tests < TESTS_ENOUGH)
			return false;
	return true;
}

bool pt_vm_clocks_settled(const struct pt_vm_clocks *all)
{
	for (const struct pt_vm_clock *c = all->first; c; c = c->next)
		if (!pt_vm_clock_settled(c))
			return false;
	return all->first || pt_vm_clock_settled(all->any);
}

uint64_t pt_vm_clock_vmcs(const struct pt_vm_clock *c)
{
	return c->vmcs;
}

int pt_vm_clocks_know_any(struct pt_vm_clocks *all, int64_t offset, uint64_t ratio, unsigned frac_bits,
			  enum ptr_clock_source source)
{
	struct pt_vm_clock *c;

	if (pt_vm_clock_know(all->any, 0, offset, ratio, frac_bits, source) < 0)
		return -1;
	for (c = all->first; c; c = c->next)
		if (!c->count && pt_vm_clock_know(c, 0, offset, ratio, frac_bits, source) < 0)
			return -1;
	return 0;
}

void pt_vm_clocks_know_end_any(struct pt_vm_clocks *all, int64_t offset)
{
	struct pt_vm_clock *c;

	pt_vm_clock_know_end(all->any, offset);
	for (c = all->first; c; c = c->next)
		if (!c->has_end)
			pt_vm_clock_know_end(c, offset);
}

/* ---- The option ------------------------------------------------------------------------------------- */

static bool parse_ratio(const char *text, char **ret_end, uint64_t *ret)
{
	uint64_t whole, part = 0, unit = 1;

	*ret_end = NULL;
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	if (text[0] == '0' && (text[1] | 0x20) == 'x') {
		*ret = strtoull(text, ret_end, 16);
		return !errno && *ret;
	}
	whole = strtoull(text, ret_end, 10);
	if (**ret_end == '.')
		for (++*ret_end; **ret_end >= '0' && **ret_end <= '9'; ++*ret_end)
			if (unit < 1000000000000000000) {
				part = part * 10 + (uint64_t)(**ret_end - '0');
				unit *= 10;
			}
	if (errno || whole >= 1 << 16)
		return false;
	*ret = (whole << PT_VM_RATIO_BITS) + (uint64_t)(((u128)part << PT_VM_RATIO_BITS) / unit);
	return *ret != 0;
}

/* One of the list; *ret_end is behind it. */
static bool parse_one(const char *text, char **ret_end, uint64_t *vmcs, int64_t *offset, uint64_t *ratio)
{
	size_t before_colon = strcspn(text, ":,");
	char *end;

	*vmcs = PT_VM_ANY;
	*ratio = PT_VM_RATIO_ONE;
	errno = 0;
	if (text[before_colon] == ':') {
		if (*text < '0' || *text > '9')
			return false;
		*vmcs = strtoull(text, &end, 0);
		if (end != text + before_colon || errno || *vmcs >> 52)
			return false;
		*vmcs <<= 12;
		text = end + 1;
	}
	if (!(*text >= '0' && *text <= '9') &&
	    !((*text == '-' || *text == '+') && text[1] >= '0' && text[1] <= '9'))
		return false;
	*offset = (int64_t)strtoull(text, ret_end, 0);
	if (errno || (*text == '-' && *offset > 0))
		return false;
	return **ret_end != '*' || parse_ratio(*ret_end + 1, ret_end, ratio);
}

bool pt_vm_options_add(struct pt_vm_options *o, const char *text)
{
	char *end;

	for (;; text = end + 1) {
		if (o->count == PT_VM_OPTIONS_MAX ||
		    !parse_one(text, &end, &o->told[o->count].vmcs, &o->told[o->count].offset,
			       &o->told[o->count].ratio))
			return false;
		o->count++;
		if (*end != ',')
			return !*end;
	}
}

int pt_vm_options_apply(const struct pt_vm_options *o, struct pt_vm_clocks *clocks)
{
	/* Those of one VMCS first: what is for any is for the others. */
	for (int any = 0; any < 2; any++)
		for (size_t i = 0; i < o->count; i++) {
			struct pt_vm_clock *c;
			int r = 0;

			if (any && o->told[i].vmcs == PT_VM_ANY) {
				r = pt_vm_clocks_know_any(clocks, o->told[i].offset, o->told[i].ratio,
							  PT_VM_RATIO_BITS, PTR_CLOCK_OPTION);
			} else if (!any && o->told[i].vmcs != PT_VM_ANY) {
				c = pt_vm_clocks_get(clocks, o->told[i].vmcs);
				r = c ? pt_vm_clock_know(c, 0, o->told[i].offset, o->told[i].ratio,
							 PT_VM_RATIO_BITS, PTR_CLOCK_OPTION)
				      : -1;
			}
			if (r < 0)
				return -1;
		}
	return 0;
}
