/* test_vm_clock.c - a guest's clock: from observations (offset, ratio, changes of both), from known values,
 * from --tsc-offset. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decode/vm/clocks.h"
#include "decode/vm/tsc_offset.h"
#include "tests/unit/check.h"

#define KHZ   1497600
#define TICK  78 /* TSC ticks per CTC tick */
#define HOST0 3250243000000u
#define LOW56 (((uint64_t)1 << 56) - 1)

static const struct pt_vm_span *spans(struct pt_vm_clock *c, size_t *n)
{
	return pt_vm_clock_spans(c, n);
}

/* The values of pt_vm_clock_know(). */
static const struct pt_vm_known *known(int64_t offset, uint64_t ratio, unsigned frac_bits,
				       enum ptr_clock_source source)
{
	static struct pt_vm_known k;

	k = (struct pt_vm_known){offset, ratio, frac_bits, source};
	return &k;
}

/* The packet of a guest with this offset and ratio at a host TSC, which is known to lie `before` to `after`
 * around it. */
static void observe(struct pt_vm_clock *c, uint64_t host, int64_t offset, uint64_t ratio, uint64_t before,
		    uint64_t after)
{
	struct pt_vm_span s = {.ratio = ratio, .offset = offset};
	struct pt_vm_observation o = {.guest_tsc = pt_vm_span_to_guest(&s, host) & LOW56,
				      .host_lo = host - before,
				      .host_hi = host + after};

	pt_vm_clock_observe(c, &o);
}

static void plain(void)
{
	struct pt_vm_clocks *all = pt_vm_clocks_create(TICK, KHZ);
	struct pt_vm_clock *c = pt_vm_clocks_get(all, 0x5fc57000);
	int64_t offset = (int64_t)0xfffffd0b3e60cd07;
	uint64_t host;
	size_t n;

	check(!pt_vm_clock_to_host(c, 5, UINT64_MAX, &host) && !pt_vm_clock_settled(c), "nothing is known");
	observe(c, HOST0, offset, PT_VM_RATIO_ONE, 0, 0);
	check(spans(c, &n)->offset == offset && n == 1 && !pt_vm_clock_settled(c),
	      "one observation gives the offset");
	for (int i = 1; i < 100; i++)
		observe(c, HOST0 + (uint64_t)i * 30011, offset, PT_VM_RATIO_ONE, 0, 0);
	check(spans(c, &n)->offset == offset && n == 1 && spans(c, &n)->observations == 100 &&
		  spans(c, &n)->worst_residual == 0 && pt_vm_clock_settled(c),
	      "a hundred agree");
	check(pt_vm_clock_to_host(c, HOST0 + 7 + (uint64_t)offset, UINT64_MAX, &host) && host == HOST0 + 7,
	      "back to the host");
	check(pt_vm_clock_to_host(c, (HOST0 + 7 + (uint64_t)offset) & LOW56, HOST0, &host) &&
		  host == HOST0 + 7,
	      "back from a packet's 56 bits");
	observe(c, HOST0 + 4000000, offset + 5, PT_VM_RATIO_ONE, 0, 0);
	check(spans(c, &n)->offset == offset && n == 1 && spans(c, &n)->worst_residual == 5,
	      "a few ticks are a residual, no change");
	pt_vm_clocks_destroy(all);
}

static void bounds(void)
{
	struct pt_vm_clocks *all = pt_vm_clocks_create(TICK, KHZ);
	struct pt_vm_clock *c = pt_vm_clocks_get(all, 1);
	size_t n;

	observe(c, HOST0, -1000000, PT_VM_RATIO_ONE, 5000, 9000);
	check(spans(c, &n)->slack == 14000, "an interval leaves slack");
	observe(c, HOST0 + 100000, -1000000, PT_VM_RATIO_ONE, 100, 9000);
	observe(c, HOST0 + 200000, -1000000, PT_VM_RATIO_ONE, 7000, 30);
	check(n == 1 && spans(c, &n)->slack == 130 && spans(c, &n)->offset >= -1000100 &&
		  spans(c, &n)->offset <= -999900,
	      "intervals close in");
	pt_vm_clocks_destroy(all);
}

static void scaled(void)
{
	const uint64_t ratio = (uint64_t)(((unsigned __int128)1000000 << 48) / KHZ);

	for (int khz = 0; khz < 2; khz++) {
		struct pt_vm_clocks *all = pt_vm_clocks_create(TICK, khz ? KHZ : 0);
		struct pt_vm_clock *c = pt_vm_clocks_get(all, 1);
		const struct pt_vm_span *s;
		uint64_t host = 0;
		size_t n;

		observe(c, HOST0, -2000000000, ratio, 0, 0);
		observe(c, HOST0 + 100000, -2000000000, ratio, 0, 0);
		check(!pt_vm_clock_settled(c), "two observations of another slope decide nothing");
		for (int i = 2; i < 200; i++)
			observe(c, HOST0 + (uint64_t)i * 100000, -2000000000, ratio, 0, 0);
		s = spans(c, &n);
		check(n == 1 && pt_vm_clock_settled(c), "one span");
		if (khz)
			check(s->ratio == ratio && s->offset == -2000000000 && s->slack <= 1 &&
				  s->worst_residual <= 1,
			      "whole kHz: exact");
		else
			check(s->ratio / 1000 - ratio / 1000 + 20000 < 40000, "without kHz: close");
		check(pt_vm_clock_to_host(
			  c, (uint64_t)(((unsigned __int128)(HOST0 + 5000000) * ratio) >> 48) - 2000000000u,
			  UINT64_MAX, &host) &&
			  host + TICK >= HOST0 + 5000000 && host <= HOST0 + 5000000 + TICK,
		      "back to the host");
		/* The offset of a scaled clock changes. */
		observe(c, HOST0 + 30000000, 1000000000, ratio, 0, 0);
		observe(c, HOST0 + 30100000, 1000000000, ratio, 0, 0);
		observe(c, HOST0 + 30200000, 1000000000, ratio, 0, 0);
		s = spans(c, &n);
		check(n == 2 && (!khz || (s[1].ratio == ratio && s[1].offset >= 999999999 &&
					  s[1].offset <= 1000000001)),
		      "its offset changes");
		pt_vm_clocks_destroy(all);
	}
}

static void changed(void)
{
	struct pt_vm_clocks *all = pt_vm_clocks_create(TICK, KHZ);
	struct pt_vm_clock *c = pt_vm_clocks_get(all, 1);
	const struct pt_vm_span *s;
	uint64_t host, changes;
	size_t n;

	for (int i = 0; i < 5; i++)
		observe(c, HOST0 + (uint64_t)i * 50000, -100, PT_VM_RATIO_ONE, 0, 0);
	pt_vm_clock_written(c, HOST0 + 240000);
	for (int i = 5; i < 9; i++)
		observe(c, HOST0 + (uint64_t)i * 50000, 3000000000 - 100, PT_VM_RATIO_ONE, 0, 0);
	/* and back, as a Linux guest does some ten milliseconds later; it is not seen when */
	for (int i = 9; i < 12; i++)
		observe(c, HOST0 + (uint64_t)i * 50000, -90000, PT_VM_RATIO_ONE, 0, 0);
	s = spans(c, &n);
	check(n == 3, "three spans");
	check(n == 3 && s[0].offset == -100 && s[1].offset == 2999999900 && s[2].offset == -90000,
	      "their offsets");
	check(n == 3 && s[0].from_tsc == 0 && s[1].from_tsc == HOST0 + 240000 &&
		  s[2].from_tsc == HOST0 + 450000,
	      "from where KVM wrote it, else from where it was seen");
	check(pt_vm_clock_to_host(c, HOST0 - 100 + 60000, HOST0 + 60000, &host) && host == HOST0 + 60000 &&
		  pt_vm_clock_to_host(c, HOST0 + 2999999900 + 260000, HOST0 + 260000, &host) &&
		  host == HOST0 + 260000,
	      "by each in its time");
	check(pt_vm_clock_to_host_after(c, HOST0 - 100 + 60000, 0, &host) && host == HOST0 + 60000 &&
		  pt_vm_clock_to_host_after(c, HOST0 + 2999999900 + 260000, HOST0 + 60000, &host) &&
		  host == HOST0 + 260000 &&
		  pt_vm_clock_to_host_after(c, HOST0 - 90000 + 500000, HOST0 + 260000, &host) &&
		  host == HOST0 + 500000 &&
		  pt_vm_clock_to_host_after(c, HOST0 + 2999999900 + 260000, HOST0 + 3000000000, &host) &&
		  host == HOST0 + 2999999900 + 90000 + 260000,
	      "of times that are possible the earliest that is not before the one before");
	changes = pt_vm_clocks_changes(all);
	pt_vm_clock_written(c, HOST0 + 430000);
	s = spans(c, &n);
	check(s[2].from_tsc == HOST0 + 430000 && s[1].from_tsc == HOST0 + 240000 &&
		  pt_vm_clocks_changes(all) != changes,
	      "KVM's write, which is reported later, says from when on");
	changes = pt_vm_clocks_changes(all);
	pt_vm_clock_written(c, HOST0 + 150000);
	check(pt_vm_clocks_changes(all) == changes, "a write that the trace contradicts moves nothing");
	pt_vm_clocks_destroy(all);

	/* The same, and KVM's write was seen: the change is dated there, not at the observation in doubt. */
	all = pt_vm_clocks_create(TICK, KHZ);
	c = pt_vm_clocks_get(all, 1);
	observe(c, HOST0, 0, PT_VM_RATIO_ONE, 0, 0);
	pt_vm_clock_written(c, HOST0 + 40000);
	observe(c, HOST0 + 100000, 50000, PT_VM_RATIO_ONE, 0, 0);
	observe(c, HOST0 + 200000, 50000, PT_VM_RATIO_ONE, 0, 0);
	s = spans(c, &n);
	check(n == 2 && s[1].offset == 50000 && s[1].from_tsc == HOST0 + 40000,
	      "a change that could be a slope begins where KVM wrote it");
	pt_vm_clocks_destroy(all);

	/* A change right after the first observation could be a slope: the third observation decides. */
	all = pt_vm_clocks_create(TICK, KHZ);
	c = pt_vm_clocks_get(all, 1);
	observe(c, HOST0, 0, PT_VM_RATIO_ONE, 0, 0);
	observe(c, HOST0 + 100000, 50000, PT_VM_RATIO_ONE, 0, 0);
	check(!pt_vm_clock_settled(c), "in doubt");
	observe(c, HOST0 + 200000, 50000, PT_VM_RATIO_ONE, 0, 0);
	s = spans(c, &n);
	check(n == 2 && s[0].offset == 0 && s[1].offset == 50000 && pt_vm_clock_settled(c) &&
		  s[1].ratio == PT_VM_RATIO_ONE,
	      "a change, no slope");
	/* One packet alone is out of line. */
	pt_vm_clocks_destroy(all);
	all = pt_vm_clocks_create(TICK, KHZ);
	c = pt_vm_clocks_get(all, 1);
	observe(c, HOST0, 0, PT_VM_RATIO_ONE, 0, 0);
	observe(c, HOST0 + 100000, 50000, PT_VM_RATIO_ONE, 0, 0);
	observe(c, HOST0 + 200000, 0, PT_VM_RATIO_ONE, 0, 0);
	observe(c, HOST0 + 300000, 0, PT_VM_RATIO_ONE, 0, 0);
	s = spans(c, &n);
	check(n == 1 && s[0].offset == 0 && pt_vm_clock_settled(c), "back to the first");
	pt_vm_clocks_destroy(all);
}

static void values(void)
{
	struct pt_vm_clocks *all = pt_vm_clocks_create(TICK, KHZ);
	struct pt_vm_clock *a, *b;
	const struct pt_vm_span *s;
	size_t n;

	pt_vm_clocks_know_any(all, known(-500, 0, 0, PTR_CLOCK_CONTAINER));
	a = pt_vm_clocks_get(all, 1);
	b = pt_vm_clocks_get(all, 2);
	check(spans(a, &n)->offset == -500 && spans(b, &n)->offset == -500 && pt_vm_clock_settled(a),
	      "for all of them");
	check(pt_vm_clocks_get(all, 2) == b && pt_vm_clocks_at(all, 1) == b && !pt_vm_clocks_at(all, 2) &&
		  pt_vm_clock_vmcs(b) == 2,
	      "the same again is the same clock");
	observe(a, HOST0, -500, PT_VM_RATIO_ONE, 0, 0);
	observe(a, HOST0 + 50000, -500, PT_VM_RATIO_ONE, 0, 0);
	check(spans(a, &n)->observations == 2 && spans(a, &n)->source == PTR_CLOCK_CONTAINER, "confirmed");
	pt_vm_clock_know_end(a, -70000);
	observe(a, HOST0 + 100000, -70002, PT_VM_RATIO_ONE, 0, 0);
	s = spans(a, &n);
	check(n == 2 && s[1].offset == -70000 && s[1].source == PTR_CLOCK_CONTAINER &&
		  s[1].worst_residual == 2,
	      "what KVM said at the end, from where it is seen");
	observe(b, HOST0, 700, PT_VM_RATIO_ONE, 0, 0);
	s = spans(b, &n);
	check(n == 2 && s[1].offset == 700 && s[1].source == PTR_CLOCK_SOLVED, "contradicted");
	pt_vm_clock_know(b, HOST0 + 10, known(900, (uint64_t)2 << 32, 32, PTR_CLOCK_TRACEPOINT));
	s = spans(b, &n);
	check(n == 3 && s[2].ratio == 2 * PT_VM_RATIO_ONE && s[2].from_tsc == HOST0 + 10 &&
		  s[2].source == PTR_CLOCK_TRACEPOINT,
	      "a tracepoint adds a span");
	pt_vm_clocks_destroy(all);

	all = pt_vm_clocks_create(TICK, KHZ);
	pt_vm_clocks_know_any(all, known(-500, 0, 0, PTR_CLOCK_OPTION));
	a = pt_vm_clocks_get(all, 1);
	observe(a, HOST0, 700, PT_VM_RATIO_ONE, 0, 0);
	s = spans(a, &n);
	check(n == 1 && s->offset == -500 && s->worst_residual == 1200,
	      "an option's value is kept, the residual is counted");
	pt_vm_clocks_destroy(all);
}

static void parsing(void)
{
	static const struct {
		const char *text;
		uint64_t vmcs;
		int64_t offset;
		uint64_t ratio; /* 0: refused */
	} cases[] = {
	    {"0xfffffd0b3e60cd07", PT_VM_ANY, -3250243711737, PT_VM_RATIO_ONE},
	    {"-1569630896", PT_VM_ANY, -1569630896, PT_VM_RATIO_ONE},
	    {"0x5fc57:-5", 0x5fc57000, -5, PT_VM_RATIO_ONE},
	    {"392279:0x10*0.5", 0x5fc57000, 16, PT_VM_RATIO_ONE / 2},
	    {"7*2", PT_VM_ANY, 7, PT_VM_RATIO_ONE * 2},
	    {"7*1.25", PT_VM_ANY, 7, PT_VM_RATIO_ONE + PT_VM_RATIO_ONE / 4},
	    {"7*0xab0000000000", PT_VM_ANY, 7, 0xab0000000000},
	    {"", 0, 0, 0},
	    {"x", 0, 0, 0},
	    {"5:", 0, 0, 0},
	    {":5", 0, 0, 0},
	    {"5*", 0, 0, 0},
	    {"5*0", 0, 0, 0},
	    {"5*-1", 0, 0, 0},
	    {"5*64", PT_VM_ANY, 5, PT_VM_RATIO_MAX},
	    {"5*64.01", 0, 0, 0},
	    {"5*0.015", 0, 0, 0},
	    {"5*0x1", 0, 0, 0},
	    {"5*1.x", 0, 0, 0},
	    {"5 ", 0, 0, 0},
	    {"- 5", 0, 0, 0},
	    {"0x10000000000000000", 0, 0, 0},
	    {"-5:7", 0, 0, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct pt_vm_options o = {0};
		bool ok = pt_vm_options_add(&o, cases[i].text);
		uint64_t vmcs = o.given[0].vmcs, ratio = o.given[0].ratio;
		int64_t offset = o.given[0].offset;
		char got[100];

		snprintf(got, sizeof got, "%d, vmcs %" PRIx64 ", offset %" PRId64 ", ratio %" PRIx64, ok,
			 vmcs, offset, ratio);
		check_case(ok == (cases[i].ratio != 0) &&
			       (!ok || (vmcs == cases[i].vmcs && offset == cases[i].offset &&
					ratio == cases[i].ratio)),
			   cases[i].text, got);
	}
}

static void options(void)
{
	struct pt_vm_clocks *all = pt_vm_clocks_create(TICK, KHZ);
	struct pt_vm_options o = {0};
	size_t n;

	check(pt_vm_options_add(&o, "-7,0x2:9*0.5") && o.count == 2, "a list");
	check(pt_vm_options_apply(&o, all) == 0, "applied");
	check(spans(pt_vm_clocks_get(all, 0x2000), &n)->offset == 9 &&
		  spans(pt_vm_clocks_get(all, 0x3000), &n)->offset == -7,
	      "one's own, and any");
	pt_vm_clock_know(pt_vm_clocks_get(all, 0x3000), 0, known(5, 0, 0, PTR_CLOCK_CONTAINER));
	check(spans(pt_vm_clocks_get(all, 0x3000), &n)->offset == -7 && n == 1, "an option outdoes the rest");
	for (size_t i = 0; i < PT_VM_OPTIONS_MAX - 2; i++)
		check(pt_vm_options_add(&o, "1"), "as many as there may be");
	check(!pt_vm_options_add(&o, "1"), "and no more");
	pt_vm_clocks_destroy(all);
}

/* A ratio that is none makes the values unknown, and no division by zero follows. */
static void bad_ratios(void)
{
	static const struct {
		uint64_t ratio;
		unsigned frac_bits;
		bool bad;
	} cases[] = {{1, 63, true},
		     {UINT64_MAX, 0, true},
		     {(uint64_t)1 << 63, 0, true},
		     {5, 64, true},
		     {5, UINT32_MAX, true},
		     {65, 0, true},
		     {PT_VM_RATIO_MIN - 1, PT_VM_RATIO_BITS, true},
		     {PT_VM_RATIO_MAX + 1, PT_VM_RATIO_BITS, true},
		     {0, 0, false},
		     {0, 99, false},
		     {PT_VM_RATIO_ONE, PT_VM_RATIO_BITS, false},
		     {PT_VM_RATIO_MIN, PT_VM_RATIO_BITS, false},
		     {PT_VM_RATIO_MAX, PT_VM_RATIO_BITS, false},
		     {(uint64_t)1 << 32, 32, false},
		     {(uint64_t)1 << 63, 63, false}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct pt_vm_clocks *all = pt_vm_clocks_create(TICK, KHZ);
		struct pt_vm_clock *c = pt_vm_clocks_get(all, 0x1000);
		uint64_t host, ratio;
		char text[40];

		snprintf(text, sizeof text, "%" PRIu64 ", %u", cases[i].ratio, cases[i].frac_bits);
		check_case(pt_vm_ratio(cases[i].ratio, cases[i].frac_bits, &ratio) != cases[i].bad,
			   "a ratio that no guest can have", text);
		check(pt_vm_clock_know(
			  c, 0, known(-1000, cases[i].ratio, cases[i].frac_bits, PTR_CLOCK_CONTAINER)) == 0,
		      "known");
		check_case(pt_vm_clock_to_host(c, HOST0, HOST0, &host) != cases[i].bad,
			   "its clock is unknown", text);
		pt_vm_clocks_destroy(all);
	}
}

/* An offset that changes all the time: the clock is unknown from some time on; nothing runs out of memory. */
static void many_changes(void)
{
	struct pt_vm_clocks *all = pt_vm_clocks_create(TICK, KHZ);
	struct pt_vm_clock *c = pt_vm_clocks_get(all, 0x1000);
	uint64_t host, since;
	size_t n;
	bool ok = true;

	for (uint64_t i = 0; i < PT_VM_SPANS_MAX; i++)
		ok &= pt_vm_clock_know(c, HOST0 + i * 1000,
				       known((int64_t)i * 7777, 0, 0, PTR_CLOCK_TRACEPOINT)) == 0;
	spans(c, &n);
	check(ok && n == PT_VM_SPANS_MAX && !pt_vm_clock_gave_up(c, &since), "as many as there may be");
	host = HOST0 + PT_VM_SPANS_MAX * (uint64_t)1000;
	check(pt_vm_clock_know(c, host, known(-1, 0, 0, PTR_CLOCK_TRACEPOINT)) == 0 &&
		  pt_vm_clock_gave_up(c, &since) && since == host,
	      "one more: it gives up");
	observe(c, host + 5000, 99, PT_VM_RATIO_ONE, 0, 0);
	observe(c, host + 9000, 4711000, PT_VM_RATIO_ONE, 0, 0);
	spans(c, &n);
	check(n == PT_VM_SPANS_MAX && !pt_vm_clock_settled(c), "for good");
	check(!pt_vm_clock_restart(c, host + 10000) && pt_vm_clock_gave_up(c, &since) && since == host,
	      "also when it becomes another's");
	check(!pt_vm_clock_to_host(c, host + 5000, host + 5000, &since), "nothing is known from then on");
	check(pt_vm_clock_to_host(c, HOST0 + 500, HOST0 + 500, &since) && since == HOST0 + 500,
	      "before, it is as it was");
	pt_vm_clocks_destroy(all);

	all = pt_vm_clocks_create(TICK, KHZ);
	c = pt_vm_clocks_get(all, 0x1000);
	/* Observations that fit neither the span nor a line. */
	for (uint64_t i = 0; i < PT_VM_SPANS_MAX + 10; i++)
		observe(c, HOST0 + i * 100000, (int64_t)(i % 2 ? i * 1000000000 : 5), PT_VM_RATIO_ONE, 0, 0);
	check(pt_vm_clock_gave_up(c, &since), "observations as well");
	pt_vm_clocks_destroy(all);
}

/* A VMCS that is freed becomes another VM's. */
static void reused(void)
{
	struct pt_vm_clocks *all = pt_vm_clocks_create(TICK, KHZ);
	struct pt_vm_clock *c = pt_vm_clocks_get(all, 0x6c66000);
	uint64_t host, later = HOST0 + 50000000;
	size_t n;

	check(pt_vm_clock_restart(c, HOST0 - 1), "new: nothing to forget");
	observe(c, HOST0, -1000000, PT_VM_RATIO_ONE, 0, 0);
	observe(c, HOST0 + 30011, -1000000, PT_VM_RATIO_ONE, 0, 0);
	check(pt_vm_clock_restart(c, later), "another VM's");
	check(pt_vm_clock_to_host(c, HOST0 + 99 - 1000000, later - 1, &host) && host == HOST0 + 99,
	      "before, it is as it was");
	check(!pt_vm_clock_to_host(c, later, later + 5, &host) && !pt_vm_clock_settled(c),
	      "from then on nothing is known");
	observe(c, later + 70000, -9000000, PT_VM_RATIO_ONE, 0, 0);
	check(spans(c, &n)[1].offset == -9000000 && n == 2 && spans(c, &n)[1].from_tsc == later &&
		  spans(c, &n)[0].offset == -1000000,
	      "until it is seen: from the entry on");
	check(!pt_vm_clock_restart(c, later + 1000) && pt_vm_clock_to_host(c, later, later + 70001, &host),
	      "what was found before the decode remains");
	pt_vm_clocks_destroy(all);
	all = pt_vm_clocks_create(TICK, KHZ);
	c = pt_vm_clocks_get(all, 1);
	pt_vm_clock_know(c, 0, known(77, 0, PT_VM_RATIO_BITS, PTR_CLOCK_CONTAINER));
	check(pt_vm_clock_restart(c, HOST0), "known: another VM's");
	pt_vm_clock_know(c, 0, known(78, 0, PT_VM_RATIO_BITS, PTR_CLOCK_CONTAINER));
	check(spans(c, &n)[1].from_tsc == HOST0 && n == 2 && spans(c, &n)[1].offset == 78,
	      "the other's values hold from then on");
	pt_vm_clocks_destroy(all);
}

int main(void)
{
	options();
	bad_ratios();
	many_changes();
	reused();
	plain();
	bounds();
	scaled();
	changed();
	values();
	parsing();
	return sum_up();
}
