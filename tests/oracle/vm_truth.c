/*
 * vm_truth - checks the guest runs and VM exits of a record stream against an emulator's ground truth.
 *
 *     pt-decode C | vm_truth TRUTH OFFSET [insns] [SOURCE]
 *
 * TRUTH is one CPU's log (../shared/ptbox/CORE.md, "Ground truth"); OFFSET the guest's TSC offset, as
 * perf or KVM has it. All VM entries and exits of the log have to be there, in order: where, when
 * (within the stated uncertainty), why (at least 99 of 100); and with `insns` (older logs count a
 * string instruction's rounds and the instruction that exits) the instructions between them, as far
 * as they were counted. SOURCE is where all reasons are known from, as ptr_reason_source_name() says
 * it ("inferred"); a tracepoint or Event Trace gives qualifications, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/records.h"
#include "tests/unit/check.h"

struct event {
	uint64_t tsc, insns, from, to, reason, qualification;
};

static struct event *exits, *entries;
static size_t exit_count, entry_count;
static const uint8_t *at, *end;

static uint64_t number(void)
{
	uint64_t v = 0;
	int shift = 0;

	while (at < end) {
		v |= (uint64_t)(*at & 0x7f) << shift;
		shift += 7;
		if (!(*at++ & 0x80))
			break;
	}
	return v;
}

static int64_t difference(void)
{
	uint64_t v = number();

	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static void keep(struct event **list, size_t *count, const struct event *e)
{
	if ((*count & (*count + 1)) == 0)
		*list = realloc(*list, (*count * 2 + 2) * sizeof **list);
	(*list)[(*count)++] = *e;
}

/* Record kinds by ../shared/tools/truthdump.c. */
static int read_truth(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct event e = {0};
	uint8_t *bytes;
	long size;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 8)
		return -1;
	rewind(f);
	bytes = malloc((size_t)size);
	if (!bytes || fread(bytes, 1, (size_t)size, f) != (size_t)size || memcmp(bytes, "PTTRUTH1", 8) != 0)
		return -1;
	fclose(f);
	at = bytes + 8;
	end = bytes + size;
	while (at < end) {
		unsigned kind = *at++ & 31;

		switch (kind) {
		case 16:
			at++;
			number();
			number();
			difference();
			break;
		case 17:
			number(), number();
			e.tsc = number();
			number();
			e.insns = number();
			e.to = number();
			at++;
			break;
		case 18: e.tsc += number(), number(), e.insns += number(), number(), number(); break;
		case 19: number(), number(); break;
		case 20: e.tsc += number(), number(), e.insns += number(); break;
		case 21: e.tsc += number(), number(), e.insns += number(), at++; break;
		case 22:
		case 24: number(); break;
		case 25: e.tsc += number(), number(), e.insns += number(), number(), number(); break;
		case 26:
			if (!number())
				number();
			break;
		default:
			if (kind > 13)
				return -1;
			e.tsc += number(), number(), e.insns += number();
			e.from = e.to + (uint64_t)difference();
			e.to = e.from + (uint64_t)difference();
			if (kind == 11)
				at += 2;
			if (kind == 12) {
				e.reason = number();
				e.qualification = number();
				keep(&exits, &exit_count, &e);
			} else if (kind == 13) {
				keep(&entries, &entry_count, &e);
			}
		}
	}
	free(bytes);
	return 0;
}

struct counts {
	size_t seen, outside, elsewhere, others, qualified, misqualified, sourced, counted, miscounted;
};

/* check() with two numbers: of how many it is true. */
static void check_share(const char *what, bool ok, size_t got, size_t of)
{
	char text[120];

	snprintf(text, sizeof text, "%s: %zu of %zu", what, got, of);
	check(ok, text);
}

static int within(uint64_t truth, uint64_t tsc, uint64_t uncertainty)
{
	/* The truth counts a tick when it begins, a clock that is interpolated when it ends. */
	return truth + 1 >= tsc && (uncertainty == PTR_UNKNOWN || truth <= tsc + uncertainty + 1);
}

static enum ptr_reason_source source = PTR_REASON_INFERRED;

/* The first entry comes before the first exit: an exit's is the one after it. */
static void on_vmexit(const struct ptr_vmexit *t, struct counts *x, struct counts *n)
{
	if (t->exit_tsc != PTR_NO_TSC && x->seen++ < exit_count) {
		const struct event *e = &exits[x->seen - 1];

		x->outside += !within(e->tsc, t->exit_tsc, t->exit_uncertainty_tsc);
		x->elsewhere += e->from != t->guest_ip;
		x->others += e->reason != t->reason;
		x->sourced += t->source == source;
		x->qualified += t->qualification != PTR_UNKNOWN;
		x->misqualified += t->qualification != PTR_UNKNOWN && t->qualification != e->qualification;
		if (t->entry_tsc == PTR_NO_TSC || x->seen >= entry_count)
			return;
		n->outside += !within(entries[x->seen].tsc, t->entry_tsc, t->entry_uncertainty_tsc);
		if (t->host_insns != PTR_UNKNOWN &&
		    !(t->flags & PTR_VM_SCHEDULED_OUT)) { /* the log counts other threads, too */
			x->counted++;
			x->miscounted += entries[x->seen].insns - e->insns != t->host_insns;
		}
	}
}

static void on_run(const struct ptr_guest_run *g, struct counts *r, struct counts *n)
{
	size_t i = r->seen++;

	if (g->entry_tsc != PTR_NO_TSC && n->seen++ < entry_count)
		n->outside += !within(entries[n->seen - 1].tsc, g->entry_tsc, g->entry_uncertainty_tsc);
	if (i >= entry_count || i >= exit_count)
		return;
	r->elsewhere += g->entry_ip != entries[i].to || (g->exit_ip && g->exit_ip != exits[i].from);
	if (g->insn_count == PTR_UNKNOWN)
		return;
	r->counted++;
	r->miscounted += exits[i].insns - entries[i].insns != g->insn_count;
}

int main(int argc, char **argv)
{
	struct counts x = {0}, n = {0}, r = {0};
	struct ptr_reader *reader;
	struct ptr_record k;
	struct pt_error e = {0};
	uint64_t offset;
	int insns = 0;
	size_t clocks = 0, right = 0;
	int more = 0;

	if (argc < 3 || read_truth(argv[1]) < 0) {
		fprintf(stderr, "usage: vm_truth TRUTH OFFSET [insns] [SOURCE] <RECORDS\n");
		return 2;
	}
	offset = strtoull(argv[2], NULL, 0);
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "insns"))
			insns = 1;
		for (int j = PTR_REASON_EVENT_TRACE; j < PTR_REASON_SOURCES; j++)
			if (!strcmp(argv[i], ptr_reason_source_name(j)))
				source = j;
	}
	reader = ptr_reader_create(0, &e);
	while (reader && (more = ptr_next(reader, &k, &e)) > 0) {
		if (k.type == PTR_VMEXIT_INTERVAL)
			on_vmexit(&k.vmexit, &x, &n);
		else if (k.type == PTR_GUEST_RUN)
			on_run(&k.guest_run, &r, &n);
		else if (k.type == PTR_VM_CLOCK) {
			clocks++;
			right += k.vm_clock.offset == offset && k.vm_clock.worst_residual_tsc <= 2;
		}
	}
	if (!reader || more < 0)
		check_stop(e.message);
	ptr_reader_destroy(reader);
	check_share("VM exits", x.seen == exit_count, x.seen, exit_count);
	check_share("VM entries", n.seen == entry_count, n.seen, entry_count);
	check_share("guest runs", r.seen == entry_count, r.seen, entry_count);
	check_share("exits from elsewhere", !x.elsewhere, x.elsewhere, x.seen);
	check_share("guest runs elsewhere", !r.elsewhere, r.elsewhere, r.seen);
	check_share("exits outside of their time", !x.outside, x.outside, x.seen);
	check_share("entries outside of their time", !n.outside, n.outside, n.seen);
	check_share("exits for other reasons", x.others * 100 <= x.seen, x.others, x.seen);
	check_share("exits of which SOURCE gives the reason", x.sourced == x.seen, x.sourced, x.seen);
	check_share("qualifications",
		    x.qualified == (source == PTR_REASON_INFERRED ? 0 : x.seen) && !x.misqualified,
		    x.misqualified, x.qualified);
	if (insns) {
		check_share("VM exits of which the instructions are miscounted", !x.miscounted, x.miscounted,
			    x.counted);
		check_share("guest runs of which the instructions are miscounted", !r.miscounted,
			    r.miscounted, r.counted);
	}
	check_share("the clock's offset", clocks == 1 && right == 1, right, clocks);
	printf("# %zu exits, %zu other reasons; %zu of %zu VM exits and %zu of %zu guest runs counted\n",
	       x.seen, x.others, x.counted, x.seen, r.counted, r.seen);
	return sum_up();
}
