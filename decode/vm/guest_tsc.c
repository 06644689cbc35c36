/* guest_tsc.c - see guest_tsc.h. */
#include "decode/vm/guest_tsc.h"

/*
 * The CTC wraps around every `round` TSC ticks. Adds as many rounds as make by_ctc the time by the guest's
 * TSC. Anything but whole rounds (up to a thousandth of one) is no sleep but a change of the guest's offset.
 */
static uint64_t add_ctc_rounds(uint64_t by_ctc, uint64_t by_guest, uint64_t round)
{
	uint64_t missing = by_guest - by_ctc, rest = missing % round, tolerance = round >> 10;

	if (missing >= 1ull << 55 || missing <= round / 2)
		return by_ctc;
	if (rest >= tolerance && rest <= round - tolerance)
		return by_ctc;
	return by_ctc + (missing + round / 2) / round * round;
}

bool pt_vm_tsc_to_host(const struct pt_clock *clock, const struct pt_vm_clock *c,
		       const struct pt_tsc_packet *tsc, uint64_t *ret_host, bool *ret_sure)
{
	uint64_t by_ctc = 0, by_guest = 0, round = pt_clock_ctc_round(clock);
	bool has_ctc = tsc->has_tma && pt_clock_at(clock, tsc->ctc, tsc->fast, &by_ctc);
	bool has_guest = c && pt_vm_clock_to_host(c, tsc->tsc, clock->tsc, &by_guest);

	/* The packet has 56 bits. */
	if (clock->tsc == PT_CLOCK_UNKNOWN)
		by_guest &= ((uint64_t)1 << 56) - 1;
	*ret_sure = has_ctc;
	*ret_host = has_ctc ? by_ctc : by_guest;
	if (has_ctc && has_guest && round && pt_vm_clock_settled(c))
		*ret_host = add_ctc_rounds(by_ctc, by_guest, round);
	return has_ctc || has_guest;
}
