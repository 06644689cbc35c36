/*
 * fast.c - the packets that running code mostly has, by memoized paths; see internal.h.
 *
 * What runs repeats itself. From the same place (position, start of the path, return addresses that are
 * used), the same packet bytes lead along the same path to the same place. So a path that ends is kept with
 * all of that (struct pt_path_memo), and when it comes again it is taken in one step, instead of one per TNT
 * bit and a search for the path:
 *
 *     bytes     ... | TNT  TNT  TIP  TNT...     a window of 32; the memo says how many bits must match
 *                   ^                 ^
 *             the path starts   it ends, here with TNT bits left, with which the next path starts
 *
 * The memos are a cache, a slot for each hash of position and first bytes. Nothing is assumed when none fits:
 * the packets are taken as everywhere, and what they lead to is recorded.
 */
#include "decode/flow/fast.h"

_Static_assert(sizeof(struct pt_path_memo) == 128, "two cache lines");

/* ---- Looking up ------------------------------------------------------------------------------------- */

/* The bytes from p-1 on, of which `first` is the first, in the order of the stream: the first byte is the
 * highest, so that what is used of the last byte ends a prefix. */
static inline void window_at(unsigned first, const uint8_t *p, uint64_t ret[4])
{
	uint64_t v[4];

	memcpy(v, p, 8);
	memcpy(v + 1, p + 7, 24);
	ret[0] = (uint64_t)first << 56 | __builtin_bswap64(v[0]) >> 8;
	for (int i = 1; i < 4; i++)
		ret[i] = __builtin_bswap64(v[i]);
}

static inline struct pt_path_memo *slot(const struct pt_flow *f, uint64_t bytes)
{
	uint64_t x = (bytes ^ (uint64_t)f->at.position << 40) * 0x9e3779b97f4a7c15u;

	x ^= x >> 32;
	return &f->graph->path_memos[(x * 0xd6e8feb86659fd93u) >> (64 - PT_PATH_MEMOS_LOG2)];
}

/* A path's memo is in the first of its slots that no other path which begins alike has: by four bytes, by
 * eight, and by sixteen and the return address. */
#define SLOTS 3
/* The next slot, when slot number n (from 1) holds another path that begins alike; NULL: it is in no
 * other. */
static inline struct pt_path_memo *next_slot(const struct pt_flow *f, const struct pt_path_memo *m,
					     unsigned n, const uint64_t window[4])
{
	uint64_t differs = m->window[0] ^ window[0], bytes = window[0] * 0x9e3779b97f4a7c15u;

	if (n == SLOTS || m->position != f->at.position || m->start_ip != f->path.start_ip ||
	    (n == 1 ? differs >> 32 : differs))
		return NULL;
	if (n == 2)
		bytes ^= window[1] * 0xd6e8feb86659fd93u ^ f->stack.entries[(f->stack.top - 1) % PT_STACK];
	return slot(f, bytes ^ bytes >> 32);
}

/* last: the byte in which the memo's path ends. */
static inline bool matches(const struct pt_flow *f, const struct pt_path_memo *m, const uint64_t window[4],
			   unsigned last)
{
	unsigned __int128 d;

	if (m->position != f->at.position || m->start_ip != f->path.start_ip)
		return false;
	d = (unsigned __int128)(window[0] ^ m->window[0]) << 64 | (window[1] ^ m->window[1]);
	if (m->bits > 128) {
		if (d)
			return false;
		d = (unsigned __int128)(window[2] ^ m->window[2]) << 64 | (window[3] ^ m->window[3]);
	}
	/* What is not used of the last byte is not compared, except that it must be a TNT's. */
	if (d >> (-m->bits & 127) || (m->left && last & 1))
		return false;
	if (m->ips && (f->packet.last_ip ^ m->last_ip) & m->last_ip_mask)
		return false;
	for (uint32_t i = 0; i < m->pops; i++)
		if (f->stack.entries[(f->stack.top - 1 - i) % PT_STACK] != m->popped[i])
			return false;
	return true;
}

/* Takes the memo's path. False, with nothing done, when the stack holds too few entries. */
static inline bool take_memo(struct pt_flow *f, const struct pt_path_memo *m)
{
	if (m->pops | m->rise) {
		uint32_t bottom = f->stack.bottom, low = f->stack.top - m->pops;

		if ((int32_t)(f->stack.top + m->rise - bottom) > PT_STACK_HW)
			bottom = f->stack.top + m->rise - PT_STACK_HW;
		if ((int32_t)(low - bottom) < 0)
			return false;
		for (uint32_t i = 0; i < m->pushes; i++)
			f->stack.entries[(low + i) % PT_STACK] = m->pushed[i];
		f->stack.top = low + m->pushes;
		f->stack.bottom = bottom;
	}
	if (m->ips)
		f->packet.last_ip = m->next_last_ip;
	f->path.start_ip = m->next_ip;
	f->at.position = m->next;
	f->at.decision = m->decision;
	f->counts.insns += m->insns;
	f->counts.packets += m->packets;
	f->path.last = m->path;
	f->path.ended++;
	pt_flow_hold_path(f, m->path);
	return true;
}

/* ---- Recording -------------------------------------------------------------------------------------- */

/* A path starts here. after: the first byte of the window. */
static void begin_recording(struct pt_flow *f, struct pt_path_memo *m, const uint64_t window[4],
			    const uint8_t *after)
{
	struct flow_recorder *r = &f->recorder;

	r->memo = m;
	memcpy(r->window, window, sizeof r->window);
	r->start_ip = f->path.start_ip;
	r->last_ip = f->packet.last_ip;
	r->insns = f->counts.insns;
	r->packets = f->counts.packets;
	r->from = after;
	r->code = f->at.code;
	r->position = f->at.position;
	r->paths_ended = f->path.ended;
	r->top = r->low = r->peak = f->stack.top;
	r->pops = 0;
	r->ip_bytes = 0;
}

static void fill(const struct pt_flow *f, size_t bytes, unsigned left)
{
	const struct flow_recorder *r = &f->recorder;
	struct pt_path_memo *m = r->memo;
	uint32_t pushes = f->stack.top - r->low;

	m->start_ip = r->start_ip;
	m->position = r->position;
	m->path = f->path.last;
	memcpy(m->window, r->window, sizeof m->window);
	m->bits = (uint16_t)(8 * bytes - (left ? left + 1 : 0));
	m->left = (uint8_t)left;
	m->decision = (uint8_t)f->at.decision;
	m->packets = (uint8_t)(f->counts.packets - r->packets);
	m->pops = (uint8_t)r->pops;
	m->pushes = (uint8_t)pushes;
	m->rise = (uint8_t)(r->peak - r->top);
	m->ips = r->ip_bytes != 0;
	m->next_ip = f->path.start_ip;
	m->next = f->at.position;
	m->insns = (uint32_t)(f->counts.insns - r->insns);
	m->last_ip = r->last_ip;
	/* The first IP that is not whole depends on the last one before. */
	m->last_ip_mask = r->ip_bytes < 3 ? UINT64_MAX << 16 * r->ip_bytes : 0;
	m->next_last_ip = f->packet.last_ip;
	memcpy(m->popped, r->popped, sizeof m->popped);
	for (uint32_t i = 0; i < pushes; i++)
		m->pushed[i] = f->stack.entries[(r->low + i) % PT_STACK];
}

/* A packet was taken. Fills the memo if the path that is recorded has ended with it: p is after the packet,
 * of which `left` bits are left. */
static void go_on_recording(struct pt_flow *f, const uint8_t *p, unsigned left)
{
	struct flow_recorder *r = &f->recorder;
	size_t bytes = (size_t)(p - r->from) + 1;

	if (f->path.ended == r->paths_ended)
		return;
	if (f->path.ended == r->paths_ended + 1 && !f->path.len && f->path.last && f->at.code == r->code &&
	    f->graph->where[r->position].code == r->code->id &&
	    f->graph->where[f->at.position].code == r->code->id && f->at.mode == f->at.next_mode &&
	    bytes <= sizeof r->window && r->pops <= PT_PATH_MEMO_STACK &&
	    f->stack.top - r->low <= PT_PATH_MEMO_STACK && f->counts.insns - r->insns <= UINT32_MAX)
		fill(f, bytes, left);
	pt_flow_stop_recording(f);
}

/* ---- The loop --------------------------------------------------------------------------------------- */

/* A path starts here that no timing packet is about to end. */
static inline bool starts(const struct pt_flow *f)
{
	return !f->path.len && !f->recorder.memo && !f->timing.clock_moved && !f->side.changes &&
	       !f->stack_state.unsure;
}

/*
 * A path starts with the packet whose first byte (or what is left of a TNT's, as a TNT byte) is `first`; *p
 * is after that byte. True when a memo was found and its path taken: *p is after its last byte, of which
 * *ret_left bits are left. Else the path is recorded.
 */
static inline bool along_memo(struct pt_flow *f, unsigned first, const uint8_t **p, unsigned *ret_left)
{
	struct pt_path_memo *m, *next;
	uint64_t window[4];

	window_at(first, *p, window);
	m = slot(f, window[0] >> 32);
	for (unsigned n = 1;; n++) {
		size_t more = (m->bits - 1u) / 8 % sizeof window;

		if (matches(f, m, window, more ? (*p)[more - 1] : first) && take_memo(f, m)) {
			*p += more;
			f->packet.aux_offset += more;
			*ret_left = m->left;
			return true;
		}
		next = next_slot(f, m, n, window);
		if (!next)
			break;
		m = next;
	}
	begin_recording(f, m, window, *p);
	return false;
}

/* The bits that are left of a TNT byte, as a TNT byte. */
static inline unsigned rest_of_tnt(unsigned byte, unsigned left)
{
	return 2u << left | (byte & ((2u << left) - 2));
}

/* A TNT packet. False when the fast loop ends after it. */
static inline bool take_tnt(struct pt_flow *f, unsigned byte, const uint8_t **p, const uint8_t *fast_end)
{
	f->fup.pending = false;
	for (;;) {
		unsigned left;

		if (starts(f) && *p < fast_end) {
			const uint8_t *before = *p;

			if (along_memo(f, byte, p, &left)) {
				if (!left)
					return true;
				byte = rest_of_tnt(*p == before ? byte : (*p)[-1], left);
				continue;
			}
		}
		f->tnt = short_tnt(byte);
		switch (pt_flow_run_tnt_to_path_end(f)) {
		case PT_TNT_DONE:
			if (f->recorder.memo)
				go_on_recording(f, *p, 0);
			return true;
		case PT_TNT_PATH_ENDED:
			if (f->recorder.memo)
				go_on_recording(f, *p, f->tnt.n);
			if (f->graph->full)
				return false;
			byte = rest_of_tnt(byte, f->tnt.n);
			f->tnt.n = 0;
			break;
		default: return false;
		}
	}
}

/* A TNT packet that is timed. */
static inline bool take_timed_tnt(struct pt_flow *f, unsigned byte)
{
	pt_flow_stop_recording(f);
	f->fup.pending = false;
	f->tnt = short_tnt(byte);
	return pt_flow_run_tnt(f) && !f->tnt.n;
}

/* The TIP packet at *p. */
static inline bool take_tip(struct pt_flow *f, const uint8_t **p, const uint8_t *fast_end)
{
	const uint8_t *packet = (*p)++;
	unsigned left;

	if (f->fup.pending || f->timing.clock_moved)
		pt_flow_stop_recording(f);
	else if (starts(f) && along_memo(f, *packet, p, &left))
		return !left || take_tnt(f, rest_of_tnt((*p)[-1], left), p, fast_end);
	*p = take_ip(f, packet);
	if (f->recorder.memo && !f->recorder.ip_bytes)
		f->recorder.ip_bytes = *packet >> 5;
	if (!pt_flow_on_tip(f, f->packet.last_ip) || f->tnt.n)
		return false;
	if (f->recorder.memo)
		go_on_recording(f, *p, 0);
	return true;
}

const uint8_t *pt_flow_fast(struct pt_flow *f, const uint8_t *p, const uint8_t *fast_end, uint64_t aux_offset)
{
	const uint8_t *begin = p;
	bool more = true;

	pt_flow_stop_recording(f);
	if (f->clock.has_cyc)
		return pt_flow_fast_cyc(f, p, fast_end, aux_offset);
	while (more && p < fast_end && !f->graph->cache_full) {
		unsigned b = *p;

		if (is_short_tnt(b)) {
			f->packet.aux_offset = aux_offset + (uint64_t)(p - begin);
			f->counts.packets++;
			p++;
			more = f->timing.clock_moved ? take_timed_tnt(f, b) : take_tnt(f, b, &p, fast_end);
		} else if (is_short_tip(b)) {
			f->packet.aux_offset = aux_offset + (uint64_t)(p - begin);
			f->counts.packets++;
			more = take_tip(f, &p, fast_end);
		} else if (b == MTC_BYTE) {
			more = take_mtc(f, p);
			pt_flow_stop_recording(f);
			p += 2;
		} else {
			break;
		}
	}
	pt_flow_stop_recording(f);
	return p;
}
