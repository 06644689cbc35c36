/* scan.c - see scan.h. */
#include "decode/vm/scan.h"

#include <stdlib.h>
#include <string.h>

#include "decode/packet/packet.h"
#include "decode/vm/guest_tsc.h"
#include "schema/array.h"

/* MTC packets of a CPU that runs may be lost or late, by as many steps of 256. */
#define MTC_STEP_MAX 2

/* A guest TSC packet, and what is known of its host TSC. */
struct found {
	uint64_t vmcs;
	uint32_t stream;
	struct pt_vm_observation o;
};

struct stream {
	struct stream *next;
	uint32_t id;
	struct {
		bool any;	      /* there were some */
		uint64_t next_offset; /* in the stream, after them */
		bool lost_after;      /* PTC_AUX_TRUNCATED */
		uint8_t rest[PT_PACKET_MAX];
		unsigned rest_bytes; /* of a packet that is not complete */
	} bytes;
	struct {
		bool synced;
		bool in_psb;
		bool cyc_before; /* the last packet was a CYC */
		unsigned bip_bytes;
	} packets;
	struct {
		bool known, in_guest; /* NR of the last PIP */
		uint64_t vmcs;	      /* PTR_UNKNOWN */
	} vmx;
	struct pt_clock clock;
	bool host_known;	  /* there was a host TSC since the stream began, or bytes were lost */
	uint64_t host_tsc;	  /* the last that is certain; PT_CLOCK_UNKNOWN */
	struct pt_tsc_packet tsc; /* waits: in PSB+ for the PIP after it; else for its TMA */
	bool has_tsc;
	struct found open; /* a guest TSC without TMA, of which the next host TSC is the upper bound */
	bool has_open;
	/*
	 * A guest TSC, with TMA, before the first host TSC. The clock runs from it on, in its time:
	 * at the next host PSB+ it says how long ago that was, if MTC packets have come all the time:
	 * the last one is mtc.
	 */
	struct found begin;
	bool has_begin;
	uint32_t mtc;
};

struct pt_vm_scan {
	struct pt_clock_config config;
	struct pt_vm_clocks *clocks;
	struct stream *streams;
	struct found *found; /* since the last flush */
	size_t count, room;
	struct found *firsts; /* the first of each VMCS */
	size_t first_count, first_room;
	struct found *begins; /* the guest TSCs that streams begin with */
	size_t begin_count, begin_room;
	uint64_t *wanted; /* the VMCSs of these, and of those of which the time was not found */
	size_t wanted_count, wanted_room;
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
	free(scan->begins);
	free(scan->wanted);
	free(scan);
}

static int add(struct pt_vm_scan *scan, const struct found *f)
{
	if (pt_array_grow(&scan->found, scan->count, &scan->room, NULL) < 0)
		return -1;
	scan->found[scan->count++] = *f;
	return 0;
}

/* ---- Packets ---------------------------------------------------------------------------------------- */

/* `tsc` is the host's TSC at a TSC packet, which may have a TMA. */
static void set_clock(struct stream *s, uint64_t tsc)
{
	pt_clock_tsc(&s->clock, tsc);
	if (s->tsc.has_tma)
		pt_clock_tma(&s->clock, s->tsc.ctc, s->tsc.fast);
}

/* What MTC has of a CTC. */
static uint32_t mtc_of(const struct pt_vm_scan *scan, uint32_t ctc)
{
	return ctc >> scan->config.mtc_shift & 0xff;
}

/*
 * The next MTC after a TMA or MTC, or the CTC of a TMA as one: of a CPU that runs it is the next one,
 * or the same again. Where tracing was off or the CPU slept, more time has passed, and how much MTC
 * and TMA do not say.
 */
static void note_mtc(struct stream *s, uint32_t mtc)
{
	s->has_begin &= ((mtc - s->mtc) & 0xff) <= MTC_STEP_MAX;
	s->mtc = mtc & 0xff;
}

/* The host TSC of a PSB+, with its TMA, says when the stream began. (Other TSC packets come after a
 * sleep, or where tracing was switched on.) */
static int settle_begin(struct pt_vm_scan *scan, struct stream *s, bool in_psb)
{
	struct found *f = &s->begin;
	uint64_t now;

	note_mtc(s, mtc_of(scan, s->tsc.ctc));
	if (!s->has_begin)
		return 0;
	s->has_begin = false;
	if (!in_psb || !s->tsc.has_tma || !pt_clock_at(&s->clock, s->tsc.ctc, s->tsc.fast, &now) ||
	    now < f->o.guest_tsc || now - f->o.guest_tsc > s->tsc.tsc)
		return 0;
	f->o.host_lo = f->o.host_hi = s->tsc.tsc - (now - f->o.guest_tsc);
	if (pt_array_grow(&scan->begins, scan->begin_count, &scan->begin_room, NULL) < 0)
		return -1;
	scan->begins[scan->begin_count++] = *f;
	return add(scan, f);
}

static int settle_host(struct pt_vm_scan *scan, struct stream *s, bool in_psb)
{
	if (s->has_begin) {
		if (settle_begin(scan, s, in_psb) < 0)
			return -1;
		pt_clock_init(&s->clock, &scan->config); /* its time was the guest's */
	}
	set_clock(s, s->tsc.tsc);
	s->host_tsc = s->clock.anchor_tsc;
	s->host_known = true;
	if (!s->has_open)
		return 0;
	s->has_open = false;
	s->open.o.host_hi = s->host_tsc;
	return s->open.o.host_hi >= s->open.o.host_lo ? add(scan, &s->open) : 0;
}

/* The VMCS's clock is wanted: a stream begins in its guest. */
static int note_wanted(struct pt_vm_scan *scan, const struct found *f)
{
	for (size_t i = 0; i < scan->wanted_count; i++)
		if (scan->wanted[i] == f->vmcs)
			return 0;
	if (pt_array_grow(&scan->wanted, scan->wanted_count, &scan->wanted_room, NULL) < 0)
		return -1;
	scan->wanted[scan->wanted_count++] = f->vmcs;
	return 0;
}

static int settle_guest(struct pt_vm_scan *scan, struct stream *s)
{
	struct found f = {.vmcs = s->vmx.vmcs, .stream = s->id, .o = {.guest_tsc = s->tsc.tsc}};
	uint64_t host;
	bool sure = false;

	if (s->has_begin)
		return 0;
	if (!s->host_known) {
		if (note_wanted(scan, &f) < 0)
			return -1;
		if (!s->tsc.has_tma || !scan->config.mtc)
			return 0;
		pt_clock_init(&s->clock, &scan->config);
		set_clock(s, s->tsc.tsc);
		s->begin = f;
		s->has_begin = s->clock.have_ctc;
		s->mtc = mtc_of(scan, s->tsc.ctc);
		return 0;
	}
	if (pt_vm_tsc_to_host(&s->clock, pt_vm_clocks_find(scan->clocks, s->vmx.vmcs), &s->tsc, &host, &sure))
		set_clock(s, host);
	if (sure) {
		f.o.host_lo = f.o.host_hi = host;
		return add(scan, &f);
	}
	if (s->host_tsc != PT_CLOCK_UNKNOWN) {
		f.o.host_lo = s->host_tsc;
		s->open = f;
		s->has_open = true;
	}
	return 0;
}

/* The TSC packet that waits is complete, and it is known on which side it was sent. */
static int settle(struct pt_vm_scan *scan, struct stream *s, bool in_psb)
{
	int r;

	if (!s->has_tsc)
		return 0;
	s->has_tsc = false;
	r = s->vmx.in_guest ? settle_guest(scan, s) : settle_host(scan, s, in_psb);
	s->tsc.has_tma = false;
	return r;
}

static void lost(struct stream *s)
{
	pt_clock_lost(&s->clock);
	s->has_tsc = s->tsc.has_tma = s->packets.in_psb = s->has_open = s->has_begin = false;
	s->packets.bip_bytes = 0;
}

static int handle(struct pt_vm_scan *scan, struct stream *s, const struct pt_packet *k)
{
	/* Outside of PSB+ only the TMA is waited for, which comes next if at all. */
	if (s->has_tsc && !s->packets.in_psb && k->type != PT_TMA && settle(scan, s, false) < 0)
		return -1;
	switch ((enum pt_type)k->type) {
	case PT_TSC:
		s->tsc.tsc = k->a;
		s->tsc.has_tma = false;
		s->has_tsc = s->packets.in_psb || s->vmx.known;
		return 0;
	case PT_TMA:
		if (!s->has_tsc)
			return 0;
		s->tsc.ctc = (uint32_t)k->a;
		s->tsc.fast = k->b;
		s->tsc.has_tma = true;
		return s->packets.in_psb ? 0 : settle(scan, s, false);
	case PT_MTC:
		note_mtc(s, (uint32_t)k->a);
		if (!s->has_tsc)
			pt_clock_mtc(&s->clock, (uint32_t)k->a, s->packets.cyc_before);
		return 0;
	case PT_CYC: pt_clock_cyc(&s->clock, k->a); return 0;
	case PT_CBR: pt_clock_cbr(&s->clock, (uint32_t)k->a); return 0;
	case PT_PIP:
		s->vmx.in_guest = k->b;
		s->vmx.known = true;
		return 0;
	case PT_VMCS: s->vmx.vmcs = k->a; return 0;
	case PT_PSB:
		s->packets.in_psb = true;
		s->packets.bip_bytes = 0;
		return 0;
	case PT_PSBEND:
		s->packets.in_psb = false;
		/* Without a PIP in the first PSB+ no kernel is traced, so guest and host cannot be
		 * distinguished. */
		s->vmx.known = true;
		return settle(scan, s, true);
	case PT_OVF:
		/* TSC and TMA follow and anchor the clock anew; what lies between is not known. */
		lost(s);
		return 0;
	case PT_BBP: s->packets.bip_bytes = k->n; return 0;
	case PT_BEP: s->packets.bip_bytes = 0; return 0;
	default: return 0;
	}
}

/* ---- Bytes ------------------------------------------------------------------------------------------ */

/* Takes the whole packets of [p, end). Returns the first byte that is not taken; NULL: no memory. */
static const uint8_t *take(struct pt_vm_scan *scan, struct stream *s, const uint8_t *p, const uint8_t *end)
{
	struct pt_packet k;

	while (p < end) {
		int n;

		if (!s->packets.synced) {
			const uint8_t *next = pt_find_psb(p, end);

			if (!next)
				return end - p >= PT_PACKET_MAX ? end - (PT_PACKET_MAX - 1) : p;
			p = next;
			s->packets.synced = true;
		}
		if (!(*p & 1) && *p > 2 && !s->packets.bip_bytes) { /* a short TNT: most packets */
			p++;
			continue;
		}
		n = pt_packet_decode(p, end, s->packets.bip_bytes, &k);
		if (n == PT_NEED_MORE_BYTES)
			return p;
		if (n < 0) {
			lost(s);
			s->packets.synced = false;
			p++;
			continue;
		}
		if (handle(scan, s, &k) < 0)
			return NULL;
		s->packets.cyc_before = k.type == PT_CYC;
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
	s->vmx.vmcs = PTR_UNKNOWN;
	s->host_tsc = PT_CLOCK_UNKNOWN;
	pt_clock_init(&s->clock, &scan->config);
	s->next = scan->streams;
	scan->streams = s;
	return s;
}

/* Takes the packets that began in the bytes before; *at is then the first byte that is not taken. 0, or -1:
 * no memory. */
static int take_rest(struct pt_vm_scan *scan, struct stream *s, const uint8_t **at, const uint8_t *end)
{
	while (s->bytes.rest_bytes && *at < end) {
		uint8_t joined[2 * PT_PACKET_MAX];
		size_t more = (size_t)(end - *at), n, left;
		const uint8_t *next;

		more = more < PT_PACKET_MAX ? more : PT_PACKET_MAX;
		n = s->bytes.rest_bytes + more;
		memcpy(joined, s->bytes.rest, s->bytes.rest_bytes);
		memcpy(joined + s->bytes.rest_bytes, *at, more);
		next = take(scan, s, joined, joined + n);
		if (!next)
			return -1;
		left = (size_t)(joined + n - next);
		if (left > more) { /* still not complete */
			memcpy(s->bytes.rest, next, left);
			s->bytes.rest_bytes = (unsigned)left;
			*at = end;
			return 0;
		}
		s->bytes.rest_bytes = 0;
		*at += more - left;
	}
	return 0;
}

int pt_vm_scan_feed(struct pt_vm_scan *scan, uint32_t stream, const struct ptc_aux *aux)
{
	struct stream *s = stream_of(scan, stream);
	const uint8_t *at = aux->bytes, *end = at + aux->size;
	uint64_t offset = aux->aux_offset;

	if (!s)
		return -1;
	if (s->bytes.any && offset < s->bytes.next_offset) {
		uint64_t seen = s->bytes.next_offset - offset;

		seen = seen < aux->size ? seen : aux->size;
		at += seen;
		offset += seen;
	}
	if (s->bytes.lost_after || (s->bytes.any && offset > s->bytes.next_offset)) {
		lost(s);
		s->host_known = false;
		s->packets.synced = false;
		s->bytes.rest_bytes = 0;
	}
	s->bytes.lost_after = aux->flags & PTC_AUX_TRUNCATED;
	if (at == end)
		return 0;
	s->bytes.any = true;
	s->bytes.next_offset = offset + (uint64_t)(end - at);
	if (take_rest(scan, s, &at, end) < 0)
		return -1;
	if (at == end)
		return 0;
	at = take(scan, s, at, end);
	if (!at)
		return -1;
	s->bytes.rest_bytes = (unsigned)(end - at);
	memcpy(s->bytes.rest, at, s->bytes.rest_bytes);
	return 0;
}

/* ---- What was found --------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->o.host_lo != y->o.host_lo)
		return x->o.host_lo < y->o.host_lo ? -1 : 1;
	return x->vmcs < y->vmcs ? -1 : x->vmcs > y->vmcs;
}

static bool is_certain(const struct found *f)
{
	return f->o.host_lo == f->o.host_hi;
}

static int note_first(struct pt_vm_scan *scan, const struct found *f)
{
	for (size_t i = 0; i < scan->first_count; i++) {
		struct found *first = &scan->firsts[i];

		if (first->vmcs != f->vmcs)
			continue;
		if (!is_certain(first) && is_certain(f))
			*first = *f;
		return 0;
	}
	if (pt_array_grow(&scan->firsts, scan->first_count, &scan->first_room, NULL) < 0)
		return -1;
	scan->firsts[scan->first_count++] = *f;
	return 0;
}

bool pt_vm_scan_first(const struct pt_vm_scan *scan, size_t i, struct pt_vm_first *ret)
{
	const struct found *f;

	if (i >= scan->first_count)
		return false;
	f = &scan->firsts[i];
	*ret = (struct pt_vm_first){
	    .vmcs = f->vmcs, .stream = f->stream, .host_lo = f->o.host_lo, .host_hi = f->o.host_hi};
	return true;
}

bool pt_vm_scan_begin(const struct pt_vm_scan *scan, size_t i, struct pt_vm_begin *ret)
{
	if (i >= scan->begin_count)
		return false;
	*ret = (struct pt_vm_begin){.stream = scan->begins[i].stream,
				    .guest_tsc = scan->begins[i].o.guest_tsc,
				    .host_tsc = scan->begins[i].o.host_lo};
	return true;
}

bool pt_vm_scan_waits(const struct pt_vm_scan *scan)
{
	for (const struct stream *s = scan->streams; s; s = s->next)
		if (s->has_begin)
			return true;
	for (size_t i = 0; i < scan->wanted_count; i++) {
		const struct pt_vm_clock *c = pt_vm_clocks_find(scan->clocks, scan->wanted[i]);
		size_t spans = 0;

		if (c)
			pt_vm_clock_spans(c, &spans);
		if (!spans || pt_vm_clock_assumed(c))
			return true;
	}
	return false;
}

int pt_vm_scan_flush(struct pt_vm_scan *scan)
{
	if (scan->count)
		qsort(scan->found, scan->count, sizeof *scan->found, by_time);
	for (size_t i = 0; i < scan->count; i++) {
		struct pt_vm_clock *c = pt_vm_clocks_get(scan->clocks, scan->found[i].vmcs);

		if (!c || pt_vm_clock_observe(c, &scan->found[i].o) < 0 ||
		    note_first(scan, &scan->found[i]) < 0)
			return -1;
	}
	scan->count = 0;
	return 0;
}
