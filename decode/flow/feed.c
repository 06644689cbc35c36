/* feed.c - bytes to packets, and which of them the fast loops take; see internal.h. */
#include "decode/flow/internal.h"

struct bytes {
	const uint8_t *begin, *p, *end; /* p: the first one that was not taken */
	uint64_t aux_offset;		/* of begin */
	bool last;			/* nothing follows */
};

/* Goes on to the next PSB. False when there is none; what may be the beginning of one is left. */
static bool find_psb(struct bytes *b)
{
	const uint8_t *psb = pt_find_psb(b->p, b->end);

	if (psb)
		b->p = psb;
	else if (b->last)
		b->p = b->end;
	else if (b->end - b->p >= PT_PACKET_MAX)
		b->p = b->end - (PT_PACKET_MAX - 1);
	return psb != NULL;
}

/* No packet could be read: n says why. False when more bytes are needed. */
static bool on_unreadable(struct pt_flow *f, struct bytes *b, int n)
{
	if (n == PT_NEED_MORE_BYTES) {
		if (b->last) {
			pt_flow_desync(f, PT_FLOW_CUT, pt_flow_here(f), "the trace ends inside a packet");
			b->p = b->end;
		}
		return false;
	}
	if (f->state == PT_FLOW_DATA_LOST)
		f->state = PT_FLOW_UNSYNCED;
	else
		pt_flow_desync(f, PT_FLOW_BAD_PACKET, pt_flow_here(f), "no packet begins with these bytes");
	b->p++;
	return true;
}

static inline bool clock_at_stop(const struct pt_flow *f)
{
	return f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN;
}

/* It can be left there: no TNT bits wait for a TIP. */
static inline bool stops(const struct pt_flow *f)
{
	return clock_at_stop(f) && !f->tnt.n;
}

/* Nothing waits for the next packet, so that the fast loops need not look. */
static inline bool may_go_fast(const struct pt_flow *f)
{
	return f->state == PT_FLOW_RUNNING && !f->packet.bip_bytes && !f->tnt.n && !f->psb.open &&
	       !f->psb.alone && !f->tsc.waits && !f->held.name;
}

/* The graph is full: what comes is not decoded. Ends the flow, with an error, and takes all bytes. */
static void stop_at_full(struct pt_flow *f, struct bytes *b)
{
	if (!f->full_reported) {
		pt_flow_report_held(f, pt_flow_here(f));
		pt_flow_desync(f, PT_FLOW_FULL, pt_flow_here(f), "");
	}
	b->p = b->end;
}

/* Takes a packet, after those that the fast loops take. False when the feed ends, with *ret. */
static bool take_packets(struct pt_flow *f, struct bytes *b, enum pt_flow_feed *ret)
{
	struct pt_packet k;
	int n;

	*ret = PT_FEED_MORE;
	if (__builtin_expect(f->graph->full, 0)) {
		stop_at_full(f, b);
		return false;
	}
	if (f->state == PT_FLOW_UNSYNCED && !f->psb.open && !find_psb(b))
		return false;
	if (__builtin_expect(may_go_fast(f), 1)) {
		if (b->end - b->p > PT_FAST_BYTES)
			b->p = pt_flow_fast(f, b->p, b->end - PT_FAST_BYTES,
					    b->aux_offset + (uint64_t)(b->p - b->begin));
		if (f->state != PT_FLOW_RUNNING || f->graph->full)
			return true;
		*ret = stops(f) ? PT_FEED_TIME : PT_FEED_MORE;
		if (*ret == PT_FEED_TIME || b->p >= b->end)
			return false;
	}
	n = pt_packet_decode(b->p, b->end, f->packet.bip_bytes, &k);
	f->packet.aux_offset = b->aux_offset + (uint64_t)(b->p - b->begin);
	if (f->errata & (PT_SKD007 | PT_SKZ84))
		n = pt_errata_packet(f->errata, b->p, b->end, b->last, n, &k);
	if (n <= 0)
		return on_unreadable(f, b, n);
	*ret = PT_FEED_TIME;
	if (k.type == PT_PSBEND && f->psb.open && !f->psb.side_known) {
		/* Time may have jumped: who runs now must be known before the flow begins at the PSB's IP. */
		pt_flow_psb_side(f);
		if (stops(f)) {
			f->psb.ask_side = f->side.nr;
			return false;
		}
	}
	b->p += n;
	f->counts.packets++;
	pt_flow_on_packet(f, &k);
	if (f->graph->full)
		return true;
	if (stops(f))
		return false;
	*ret = f->graph->cache_full && !f->tnt.n && !f->psb.open && !f->fup.pending ? PT_FEED_CACHE_FULL
										    : PT_FEED_MORE;
	return *ret == PT_FEED_MORE;
}

enum pt_flow_feed pt_flow_feed(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset,
			       bool last, const uint8_t **ret)
{
	struct bytes b = {.begin = p, .p = p, .end = end, .aux_offset = aux_offset, .last = last};
	enum pt_flow_feed fed = clock_at_stop(f) ? PT_FEED_TIME : PT_FEED_MORE;

	while (fed == PT_FEED_MORE && b.p < b.end && take_packets(f, &b, &fed))
		;
	pt_flow_deliver(f);
	*ret = b.p;
	return fed;
}
