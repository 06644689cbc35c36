/* scan.c - see scan.h. */
#include "decode/vm/scan.h"

#include <stdlib.h>
#include <string.h>

#include "decode/packet/packet.h"
#include "decode/vm/guest_tsc.h"

struct found {
	uint64_t vmcs;
	uint32_t stream;
	struct pt_vm_observation o;
};

struct stream {
	struct stream *next;
	uint32_t id;
	struct pt_clock clock;
	uint64_t next_offset;
	uint8_t rest[PT_PACKET_MAX]; /* the beginning of a packet */
	unsigned rest_bytes, bip_bytes;
	bool any, synced, lost_after;
	bool knows_side, guest; /* NR of the last PIP */
	bool in_psb, has_tsc, has_tma;
	bool cyc_before; /* the packet before was a CYC */
	uint64_t tsc;	 /* a TSC packet that waits: in PSB+, for the PIP behind it; else for a TMA */
	uint32_t ctc, fast;
	uint64_t vmcs;
	uint64_t host_tsc; /* the last certain one; PT_CLOCK_UNKNOWN */
	struct found open; /* a guest TSC without TMA: the next host TSC is its upper bound */
	bool has_open;
};

struct pt_vm_scan {
	struct pt_clock_config config;
	struct pt_vm_clocks *clocks;
	struct stream *streams;
	struct found *found;
	size_t count, room;
	struct found *firsts; /* of each VMCS */
	size_t first_count;
	uint64_t guest_tscs;
};

struct pt_vm_scan *pt_vm_scan_create(const struct pt_clock_config *config, struct pt_vm_clocks *clocks)
{
	struct pt_vm_scan *scan = calloc(1, sizeof *scan);

	if (!scan)
		return NULL;
	scan->config = *config;
	scan->clocks = clocks;
	return scan;
}

void pt_vm_scan_destroy(struct pt_vm_scan *scan)
{
	if (!scan)
		return;
	while (scan->streams) {
		struct stream *s = scan->streams;

		scan->streams = s->next;
		free(s);
	}
	free(scan->found);
	free(scan->firsts);
	free(scan);
}

static int add(struct pt_vm_scan *scan, const struct found *f)
{
	if (scan->count == scan->room) {
		size_t room = scan->room ? scan->room * 2 : 64;
		struct found *found = realloc(scan->found, room * sizeof *found);

		if (!found)
			return -1;
		scan->found = found;
		scan->room = room;
	}
	scan->found[scan->count++] = *f;
	return 0;
}

/* The TSC packet that waits, and perhaps its TMA, are complete, and it is known whose they are. */
static int settle(struct pt_vm_scan *scan, struct stream *s)
{
	uint64_t host;
	int r = 0;

	if (!s->has_tsc)
		return 0;
	s->has_tsc = false;
	if (!s->guest) {
		pt_clock_tsc(&s->clock, s->tsc);
		if (s->has_tma)
			pt_clock_tma(&s->clock, s->ctc, s->fast);
		s->host_tsc = s->clock.anchor_tsc;
		if (s->has_open) {
			s->open.o.host_hi = s->host_tsc;
			s->has_open = false;
			r = s->open.o.host_hi >= s->open.o.host_lo ? add(scan, &s->open) : 0;
		}
	} else {
		struct pt_tsc_packet tsc = {
		    .tsc = s->tsc, .has_tma = s->has_tma, .ctc = s->ctc, .fast = s->fast};
		struct found f = {.vmcs = s->vmcs, .stream = s->id, .o = {.guest_tsc = s->tsc}};
		bool sure = false, known;

		scan->guest_tscs++;
		known = pt_vm_tsc_to_host(&s->clock, pt_vm_clocks_find(scan->clocks, s->vmcs), &tsc, &host,
					  &sure);
		if (known) {
			pt_clock_tsc(&s->clock, host);
			if (s->has_tma)
				pt_clock_tma(&s->clock, s->ctc, s->fast);
		}
		if (sure) {
			f.o.host_lo = f.o.host_hi = host;
			r = add(scan, &f);
		} else if (s->host_tsc != PT_CLOCK_UNKNOWN) {
			f.o.host_lo = s->host_tsc;
			s->open = f;
			s->has_open = true;
		}
	}
	s->has_tma = false;
	return r;
}

static void lost(struct stream *s)
{
	pt_clock_lost(&s->clock);
	s->has_tsc = s->has_tma = s->in_psb = s->has_open = false;
	s->bip_bytes = 0;
}

static int handle(struct pt_vm_scan *scan, struct stream *s, const struct pt_packet *k)
{
	/* Outside of PSB+ the side is known: only the TMA is waited for, and it comes at once. */
	if (s->has_tsc && !s->in_psb && k->type != PT_TMA && settle(scan, s) < 0)
		return -1;
	switch ((enum pt_type)k->type) {
	case PT_TSC:
		s->tsc = k->a;
		s->has_tsc = s->in_psb || s->knows_side;
		s->has_tma = false;
		return 0;
	case PT_TMA:
		if (!s->has_tsc)
			return 0;
		s->ctc = (uint32_t)k->a;
		s->fast = k->b;
		s->has_tma = true;
		return s->in_psb ? 0 : settle(scan, s);
	case PT_MTC:
		if (!s->has_tsc)
			pt_clock_mtc(&s->clock, (uint32_t)k->a, s->cyc_before);
		return 0;
	case PT_CYC: pt_clock_cyc(&s->clock, k->a); return 0;
	case PT_CBR: pt_clock_cbr(&s->clock, (uint32_t)k->a); return 0;
	case PT_PIP:
		s->guest = k->b;
		s->knows_side = true;
		return 0;
	case PT_VMCS: s->vmcs = k->a; return 0;
	case PT_PSB:
		s->in_psb = true;
		s->bip_bytes = 0;
		return 0;
	case PT_PSBEND:
		s->in_psb = false;
		/* No PIP in the first PSB+: no kernel is traced, and no guest can be told from the host. */
		s->knows_side = true;
		return settle(scan, s);
	case PT_OVF:
		/* TSC and TMA come behind it, and are new anchors; what was between is not known. */
		lost(s);
		return 0;
	case PT_BBP: s->bip_bytes = k->n; return 0;
	case PT_BEP: s->bip_bytes = 0; return 0;
	default: return 0;
	}
}

/* Takes the whole packets of [p, end): returns the first byte that is left, NULL: no memory. */
static const uint8_t *take(struct pt_vm_scan *scan, struct stream *s, const uint8_t *p, const uint8_t *end)
{
	struct pt_packet k;

	while (p < end) {
		int n;

		if (!s->synced) {
			const uint8_t *next = pt_find_psb(p, end);

			if (!next)
				return end - p >= PT_PACKET_MAX ? end - (PT_PACKET_MAX - 1) : p;
			p = next;
			s->synced = true;
		}
		if (!(*p & 1) && *p > 2 && !s->bip_bytes) { /* a short TNT: most packets */
			p++;
			continue;
		}
		n = pt_packet_decode(p, end, s->bip_bytes, &k);
		if (n == PT_NEED_MORE_BYTES)
			return p;
		if (n < 0) {
			lost(s);
			s->synced = false;
			p++;
			continue;
		}
		if (handle(scan, s, &k) < 0)
			return NULL;
		s->cyc_before = k.type == PT_CYC;
		p += n;
	}
	return p;
}

static struct stream *stream_of(struct pt_vm_scan *scan, uint32_t id)
{
	struct stream *s;

	for (s = scan->streams; s && s->id != id; s = s->next)
		;
	if (s)
		return s;
	s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->id = id;
	s->vmcs = PTR_UNKNOWN;
	s->host_tsc = PT_CLOCK_UNKNOWN;
	pt_clock_init(&s->clock, &scan->config);
	s->next = scan->streams;
	scan->streams = s;
	return s;
}

int pt_vm_scan_feed(struct pt_vm_scan *scan, uint32_t id, uint64_t aux_offset, const uint8_t *bytes,
		    uint64_t size, bool lost_after)
{
	struct stream *s = stream_of(scan, id);
	const uint8_t *at;

	if (!s)
		return -1;
	if (s->any && aux_offset < s->next_offset) {
		uint64_t skip = s->next_offset - aux_offset < size ? s->next_offset - aux_offset : size;

		bytes += skip;
		size -= skip;
		aux_offset += skip;
	}
	if (s->lost_after || (s->any && aux_offset > s->next_offset)) {
		lost(s);
		s->synced = false;
		s->rest_bytes = 0;
	}
	s->lost_after = lost_after;
	if (!size)
		return 0;
	s->any = true;
	s->next_offset = aux_offset + size;
	/* The packet that began in the bytes before ends in these. */
	while (s->rest_bytes && size) {
		uint8_t joined[2 * PT_PACKET_MAX];
		size_t more = size < PT_PACKET_MAX ? size : PT_PACKET_MAX, n = s->rest_bytes + more, left;

		memcpy(joined, s->rest, s->rest_bytes);
		memcpy(joined + s->rest_bytes, bytes, more);
		at = take(scan, s, joined, joined + n);
		if (!at)
			return -1;
		left = (size_t)(joined + n - at);
		if (left > more) { /* not even with all there is */
			memcpy(s->rest, at, left);
			s->rest_bytes = (unsigned)left;
			return 0;
		}
		s->rest_bytes = 0;
		bytes += more - left;
		size -= more - left;
	}
	at = take(scan, s, bytes, bytes + size);
	if (!at)
		return -1;
	s->rest_bytes = (unsigned)(bytes + size - at);
	memcpy(s->rest, at, s->rest_bytes);
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->o.host_lo != y->o.host_lo)
		return x->o.host_lo < y->o.host_lo ? -1 : 1;
	return x->vmcs < y->vmcs ? -1 : x->vmcs > y->vmcs;
}

static int note_first(struct pt_vm_scan *scan, const struct found *f)
{
	struct found *firsts;

	for (size_t i = 0; i < scan->first_count; i++)
		if (scan->firsts[i].vmcs == f->vmcs)
			return 0;
	firsts = realloc(scan->firsts, (scan->first_count + 1) * sizeof *firsts);
	if (!firsts)
		return -1;
	scan->firsts = firsts;
	firsts[scan->first_count++] = *f;
	return 0;
}

bool pt_vm_scan_first(const struct pt_vm_scan *scan, size_t i, uint64_t *ret_vmcs, uint32_t *ret_stream,
		      uint64_t *ret_host_tsc)
{
	if (i >= scan->first_count)
		return false;
	*ret_vmcs = scan->firsts[i].vmcs;
	*ret_stream = scan->firsts[i].stream;
	*ret_host_tsc = scan->firsts[i].o.host_lo;
	return true;
}

int pt_vm_scan_flush(struct pt_vm_scan *scan)
{
	size_t i;

	if (scan->count)
		qsort(scan->found, scan->count, sizeof *scan->found, by_time);
	for (i = 0; i < scan->count; i++) {
		struct pt_vm_clock *c = pt_vm_clocks_get(scan->clocks, scan->found[i].vmcs);

		if (!c || pt_vm_clock_observe(c, &scan->found[i].o) < 0 ||
		    note_first(scan, &scan->found[i]) < 0)
			return -1;
	}
	scan->count = 0;
	return 0;
}

uint64_t pt_vm_scan_guest_tscs(const struct pt_vm_scan *scan)
{
	return scan->guest_tscs;
}
