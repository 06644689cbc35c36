/* fast.c - running code's usual packets, path by path along trails (code/graph.h); see internal.h. */
#include "decode/flow/internal.h"

_Static_assert(sizeof(struct pt_path_memo) == 128, "two cache lines");

/* In the order of the stream: the first byte highest, so that what was used of the last byte ends a prefix. */
static inline void window_at(unsigned first, const uint8_t *p, uint64_t ret[4])
{
	uint64_t v[4];

	memcpy(v, p, 8);
	memcpy(v + 1, p + 7, 24);
	ret[0] = (uint64_t)first << 56 | __builtin_bswap64(v[0]) >> 8;
	for (int i = 1; i < 4; i++)
		ret[i] = __builtin_bswap64(v[i]);
}

static inline struct pt_path_memo *path_memo_slot(const struct pt_flow *f, uint64_t bytes)
{
	uint64_t x = (bytes ^ (uint64_t)f->at.position << 40) * 0x9e3779b97f4a7c15u;

	x ^= x >> 32;
	return &f->graph->path_memos[(x * 0xd6e8feb86659fd93u) >> (64 - PT_PATH_MEMOS_LOG2)];
}

#define PATH_MEMO_SLOTS 3
/* Where a path's trail is when slot `n` (from 1) holds another that begins alike; NULL: in no other. */
static inline struct pt_path_memo *next_slot(const struct pt_flow *f, const struct pt_path_memo *t,
					     unsigned n, const uint64_t window[4])
{
	uint64_t differs = t->window[0] ^ window[0], bytes = window[0] * 0x9e3779b97f4a7c15u;

	if (n == PATH_MEMO_SLOTS || t->position != f->at.position || t->start_ip != f->path.start_ip ||
	    (n == 1 ? differs >> 32 : differs))
		return NULL;
	if (n == 2)
		bytes ^= window[1] * 0xd6e8feb86659fd93u ^ f->stack.entries[(f->stack.top - 1) % PT_STACK];
	return path_memo_slot(f, bytes ^ bytes >> 32);
}

static inline bool matches(const struct pt_flow *f, const struct pt_path_memo *t, const uint64_t window[4],
			   unsigned last)
{
	unsigned __int128 d;

	if (t->position != f->at.position || t->start_ip != f->path.start_ip)
		return false;
	d = (unsigned __int128)(window[0] ^ t->window[0]) << 64 | (window[1] ^ t->window[1]);
	if (t->bits > 128) {
		if (d)
			return false;
		d = (unsigned __int128)(window[2] ^ t->window[2]) << 64 | (window[3] ^ t->window[3]);
	}
	/* What is not used of the last byte is not compared, but that it is a TNT's has to be seen. */
	if (d >> (-t->bits & 127) || (t->left && last & 1))
		return false;
	if (t->ips && (f->packet.last_ip ^ t->last_ip) & t->last_ip_mask)
		return false;
	for (uint32_t i = 0; i < t->pops; i++)
		if (f->stack.entries[(f->stack.top - 1 - i) % PT_STACK] != t->popped[i])
			return false;
	return true;
}

/* Goes along the trail. False, with nothing done, when the stack holds too few. */
static inline bool follow(struct pt_flow *f, const struct pt_path_memo *t)
{
	if (t->pops | t->rise) {
		uint32_t bottom = f->stack.bottom, low = f->stack.top - t->pops;

		if ((int32_t)(f->stack.top + t->rise - bottom) > 64)
			bottom = f->stack.top + t->rise - 64;
		if ((int32_t)(low - bottom) < 0)
			return false;
		for (uint32_t i = 0; i < t->pushes; i++)
			f->stack.entries[(low + i) % PT_STACK] = t->pushed[i];
		f->stack.top = low + t->pushes;
		f->stack.bottom = bottom;
	}
	if (t->ips)
		f->packet.last_ip = t->next_last_ip;
	f->path.start_ip = t->next_ip;
	f->at.position = t->next;
	f->at.decision = t->decision;
	f->counts.insns += t->insns;
	f->counts.packets += t->packets;
	f->path.last = t->path;
	f->path.flushes++;
	pt_flow_hold(f, t->path);
	return true;
}

static void begin(struct pt_flow *f, struct pt_path_memo *t, const uint64_t window[4], const uint8_t *behind)
{
	struct pt_path_memo_recorder *r = &f->recorder;

	r->memo = t;
	memcpy(r->window, window, sizeof r->window);
	r->start_ip = f->path.start_ip;
	r->last_ip = f->packet.last_ip;
	r->insns = f->counts.insns;
	r->packets = f->counts.packets;
	r->from = behind;
	r->code = f->at.code;
	r->position = f->at.position;
	r->flushes = f->path.flushes;
	r->top = r->low = r->peak = f->stack.top;
	r->pops = 0;
	r->ip_bytes = 0;
}

/* The path that is being recorded may have ended: p is behind its last packet, of which `left` bits are left. */
static void end(struct pt_flow *f, const uint8_t *p, unsigned left)
{
	struct pt_path_memo_recorder *r = &f->recorder;
	struct pt_path_memo *t = r->memo;
	size_t bytes = (size_t)(p - r->from) + 1;
	uint32_t pushes = f->stack.top - r->low;

	if (f->path.flushes == r->flushes)
		return; /* it goes on */
	r->memo = NULL;
	if (f->path.flushes != r->flushes + 1 || f->path.len || !f->path.last || f->at.code != r->code ||
	    f->at.mode != f->at.next_mode || bytes > 32 || r->pops > PT_PATH_MEMO_STACK ||
	    pushes > PT_PATH_MEMO_STACK || f->counts.insns - r->insns > UINT32_MAX)
		return;
	t->start_ip = r->start_ip;
	t->position = r->position;
	t->path = f->path.last;
	memcpy(t->window, r->window, sizeof t->window);
	t->bits = (uint16_t)(8 * bytes - (left ? left + 1 : 0));
	t->left = (uint8_t)left;
	t->decision = (uint8_t)f->at.decision;
	t->packets = (uint8_t)(f->counts.packets - r->packets);
	t->pops = (uint8_t)r->pops;
	t->pushes = (uint8_t)pushes;
	t->rise = (uint8_t)(r->peak - r->top);
	t->ips = r->ip_bytes != 0;
	t->next_ip = f->path.start_ip;
	t->next = f->at.position;
	t->insns = (uint32_t)(f->counts.insns - r->insns);
	t->last_ip = r->last_ip;
	t->last_ip_mask = r->ip_bytes < 3 ? UINT64_MAX << 16 * r->ip_bytes : 0;
	t->next_last_ip = f->packet.last_ip;
	memcpy(t->popped, r->popped, sizeof t->popped);
	for (uint32_t i = 0; i < pushes; i++)
		t->pushed[i] = f->stack.entries[(r->low + i) % PT_STACK];
}

/*
 * A path starts with the packet whose first byte (or what is left of a TNT's, as a TNT byte) is `first`, *p behind it.
 * True when a trail was followed: *p is behind its last byte, of which *left bits are left. Else it is recorded.
 */
static inline bool along(struct pt_flow *f, unsigned first, const uint8_t **p, unsigned *left)
{
	struct pt_path_memo *t, *next;
	uint64_t window[4];

	window_at(first, *p, window);
	t = path_memo_slot(f, window[0] >> 32);
	for (unsigned n = 1;; n++) {
		size_t more = (t->bits - 1u) / 8 % sizeof window;

		if (matches(f, t, window, more ? (*p)[more - 1] : first) && follow(f, t)) {
			*p += more;
			f->packet.aux_offset += more;
			*left = t->left;
			return true;
		}
		next = next_slot(f, t, n, window);
		if (!next)
			break;
		t = next;
	}
	begin(f, t, window, *p);
	return false;
}

/* Whether a path starts here that no timing packet is about to end. */
static inline bool starts(const struct pt_flow *f)
{
	return !f->path.len && !f->recorder.memo && !f->timing.clock_moved && !f->side.changes &&
	       !f->stack_state.unsure;
}

/* The bits that are left of a TNT byte, as one. */
static inline unsigned tnt_left(unsigned byte, unsigned left)
{
	return 2u << left | (byte & ((2u << left) - 2));
}

/* A TNT packet. False when the fast loop ends behind it. */
static inline bool tnt(struct pt_flow *f, unsigned byte, const uint8_t **p, const uint8_t *fast_end)
{
	f->fup.pending = false;
	for (;;) {
		unsigned n = 30u - (unsigned)__builtin_clz(byte), left;

		if (starts(f) && *p < fast_end) {
			const uint8_t *behind = *p;

			if (along(f, byte, p, &left)) {
				if (!left)
					return true;
				byte = tnt_left(*p == behind ? byte : (*p)[-1], left);
				continue;
			}
		}
		f->tnt.bits = byte >> 1 & ((1u << n) - 1);
		f->tnt.n = n;
		switch (pt_flow_run_tnt_to_flush(f)) {
		case PT_RAN_ALL:
			if (f->recorder.memo)
				end(f, *p, 0);
			return true;
		case PT_RAN_FLUSHED:
			if (f->recorder.memo)
				end(f, *p, f->tnt.n);
			byte = tnt_left(byte, f->tnt.n);
			f->tnt.n = 0;
			break;
		default: return false;
		}
	}
}

const uint8_t *pt_flow_fast(struct pt_flow *f, const uint8_t *p, const uint8_t *fast_end, uint64_t aux_offset)
{
	const uint8_t *begins = p;

	f->recorder.memo = NULL;
	if (f->graph->unnumbered && pt_flow_countable(f))
		return pt_flow_counted(f, p, fast_end, aux_offset);
	if (f->timing.has_cyc)
		return pt_flow_timed(f, p, fast_end, aux_offset);
	while (p < fast_end && !f->graph->cache_full) {
		unsigned b = *p;

		if (!(b & 1) && b > 2) {
			f->packet.aux_offset = aux_offset + (uint64_t)(p - begins);
			f->counts.packets++;
			p++;
			if (f->timing.clock_moved) {
				f->recorder.memo = NULL;
				f->fup.pending = false;
				f->tnt.n = 30u - (unsigned)__builtin_clz(b);
				f->tnt.bits = b >> 1 & ((1u << f->tnt.n) - 1);
				if (!pt_flow_run_tnt(f) || f->tnt.n)
					break;
			} else if (!tnt(f, b, &p, fast_end)) {
				break;
			}
		} else if (pt_flow_short_tip(b)) {
			const uint8_t *packet = p++;

			f->packet.aux_offset = aux_offset + (uint64_t)(packet - begins);
			f->counts.packets++;
			if (f->fup.pending || f->timing.clock_moved) {
				f->recorder.memo = NULL;
			} else if (starts(f)) {
				unsigned left;

				if (along(f, b, &p, &left)) {
					if (left && !tnt(f, tnt_left(p[-1], left), &p, fast_end))
						break;
					continue;
				}
			}
			p = pt_flow_take_ip(f, packet);
			if (f->recorder.memo && !f->recorder.ip_bytes)
				f->recorder.ip_bytes = (uint8_t)(b >> 5);
			if (!pt_flow_on_tip(f, f->packet.last_ip) || f->tnt.n)
				break;
			if (f->recorder.memo)
				end(f, p, 0);
		} else if (b == PT_MTC_BYTE) {
			bool more = pt_flow_take_mtc(f, p);

			f->recorder.memo = NULL;
			p += 2;
			if (!more)
				break;
		} else {
			break;
		}
	}
	f->recorder.memo = NULL;
	return p;
}
