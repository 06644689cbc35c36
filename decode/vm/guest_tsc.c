/* guest_tsc.c - see guest_tsc.h. */
#include "decode/vm/guest_tsc.h"

bool pt_vm_tsc_to_host(const struct pt_clock *clock, const struct pt_vm_clock *c,
		       const struct pt_tsc_packet *tsc, uint64_t *ret_host, bool *ret_sure)
{
	uint64_t by_ctc = 0, by_guest = 0, round = pt_clock_ctc_round(clock), missing;
	bool has_ctc = tsc->has_tma && pt_clock_at(clock, tsc->ctc, tsc->fast, &by_ctc);
	bool has_guest = c && pt_vm_clock_to_host(c, tsc->tsc, clock->tsc, &by_guest);

	*ret_sure = has_ctc;
	*ret_host = has_ctc ? by_ctc : by_guest;
	if (!has_ctc || !has_guest || !round || !pt_vm_clock_settled(c))
		return has_ctc || has_guest;
	missing = by_guest - by_ctc;
	if (missing < 1ull << 55 && missing > round / 2) {
		/* Whole rounds of the CTC, and no more: it is they that are missing, not the offset that has changed. */
		uint64_t rest = missing % round, slop = round >> 10;

		if (rest < slop || rest > round - slop)
			*ret_host = by_ctc + (missing + round / 2) / round * round;
	}
	return true;
}
