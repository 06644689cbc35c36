/* psb_time.c - see psb_time.h. */
#include "decode/session/psb_time.h"

#include <string.h>

#include "decode/packet/packet.h"

/* The TSC of the PSB+ at p; UINT64_MAX if it does not count. */
static uint64_t psb_tsc(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *begin = p;
	uint64_t tsc = UINT64_MAX;
	struct pt_packet k;
	int n;

	while ((n = pt_packet_decode(p, end, 0, &k)) > 0 && k.type != PT_PSBEND && k.type != PT_OVF) {
		if (k.type == PT_PSB && p != begin) /* the caller comes to that one, too */
			return UINT64_MAX;
		if (k.type == PT_TSC)
			tsc = k.a;
		if (k.type == PT_PIP && k.b)
			return UINT64_MAX;
		p += n;
	}
	return n > 0 && k.type == PT_PSBEND ? tsc : UINT64_MAX;
}

size_t pt_psb_time_last(const uint8_t *bytes, size_t size, uint64_t tsc, bool *ret_later)
{
	const uint8_t *p = bytes, *end = bytes + size, *last = bytes;

	*ret_later = false;
	for (; (p = pt_find_psb(p, end)); p += PT_PACKET_MAX) {
		uint64_t t = psb_tsc(p, end);

		if (t == UINT64_MAX)
			continue;
		if (t > tsc) {
			*ret_later = true;
			break;
		}
		last = p;
	}
	return (size_t)(last - bytes);
}

uint64_t pt_psb_time_first(const uint8_t *bytes, size_t size)
{
	const uint8_t *p = bytes, *end = bytes + size;

	for (; (p = pt_find_psb(p, end)); p += PT_PACKET_MAX)
		if (psb_tsc(p, end) != UINT64_MAX)
			return psb_tsc(p, end);
	return UINT64_MAX;
}

/* ---- The first PSB+ --------------------------------------------------------------------------------- */

enum side { SIDE_UNKNOWN, SIDE_HOST, SIDE_GUEST };

/* Of the first PSB+. Unknown: it is not there, or not whole. One without a TSC packet counts as the host's. */
static enum side side_of_first(const uint8_t *bytes, size_t size)
{
	const uint8_t *p = pt_find_psb(bytes, bytes + size), *end = bytes + size;
	bool tsc = false, guest = false;
	struct pt_packet k;
	int n = PT_NEED_MORE_BYTES;

	while (p && (n = pt_packet_decode(p, end, 0, &k)) > 0 && k.type != PT_PSBEND && k.type != PT_OVF) {
		tsc |= k.type == PT_TSC;
		guest |= k.type == PT_PIP && k.b;
		p += n;
	}
	if (n == PT_NEED_MORE_BYTES)
		return SIDE_UNKNOWN;
	return tsc && guest ? SIDE_GUEST : SIDE_HOST;
}

static void keep_last(struct pt_first_psb *f, const uint8_t *bytes, size_t size)
{
	size_t more = size < sizeof f->last ? size : sizeof f->last;
	size_t old = f->count < sizeof f->last - more ? f->count : sizeof f->last - more;

	memmove(f->last, f->last + f->count - old, old);
	if (more)
		memcpy(f->last + old, bytes + size - more, more);
	f->count = old + more;
}

bool pt_first_psb_in_guest(struct pt_first_psb *f, const uint8_t *bytes, size_t size)
{
	uint8_t joined[2 * PT_PSB_PLUS_BYTES];
	size_t more = size < PT_PSB_PLUS_BYTES ? size : PT_PSB_PLUS_BYTES;
	enum side side = SIDE_UNKNOWN;

	if (f->found)
		return false;
	if (f->count && more) {
		memcpy(joined, f->last, f->count);
		memcpy(joined + f->count, bytes, more);
		side = side_of_first(joined, f->count + more);
	}
	if (side == SIDE_UNKNOWN)
		side = side_of_first(bytes, size);
	f->found = side != SIDE_UNKNOWN;
	if (!f->found)
		keep_last(f, bytes, size);
	return side == SIDE_GUEST;
}
