/* cyc_binding.c - see cyc_binding.h. */
#include "decode/flow/cyc_binding.h"

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

void pt_cyc_binding_sample(struct pt_cyc_binding *l, uint64_t packet, uint64_t cyc, uint64_t first,
			   uint64_t last)
{
	uint64_t cycles = cyc - l->cyc, firsts = first - l->first, lasts = last - l->last;

	/* By the SDM the cycles up to this TNT's CYC go with the instructions from the first branch before to this one's.
	 * Else those up to the CYC before, whose TNT is over now, go with the instructions that it was the end of. */
	l->samples++;
	l->in_a_row = packet - l->packet == 2 ? l->in_a_row + 1 : 0;
	l->packet = packet;
	if (l->in_a_row >= 2 && cycles < PT_CYC_BINDING_SHORT && l->cycles < PT_CYC_BINDING_SHORT &&
	    firsts < PT_CYC_BINDING_SHORT && lasts < PT_CYC_BINDING_SHORT) {
		uint64_t by_first, by_last;

		l->insn_sum += firsts;
		l->cyc_sum += cycles;
		by_first = distance(cycles * l->insn_sum, firsts * l->cyc_sum);
		by_last = distance(l->cycles * l->insn_sum, lasts * l->cyc_sum);
		l->for_first += by_first < by_last;
		l->for_last += by_last < by_first;
	}
	l->cycles = cycles;
	l->cyc = cyc;
	l->first = first;
	l->last = last;
	l->times_last = l->for_first + l->for_last >= PT_CYC_BINDING_LEAST && l->for_last > 2 * l->for_first;
}
