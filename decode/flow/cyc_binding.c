/* cyc_binding.c - see cyc_binding.h. */
#include "decode/flow/cyc_binding.h"

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

void pt_cyc_binding_sample(struct pt_cyc_binding *b, const struct pt_cyc_sample *s)
{
	uint64_t cycles = s->cyc - b->previous.cyc, firsts = s->first_insns - b->previous.first_insns,
		 lasts = s->last_insns - b->previous.last_insns;

	b->samples++;
	b->in_a_row = s->packet - b->previous.packet == 2 ? b->in_a_row + 1 : 0;
	/* By the SDM these cycles belong to the instructions from the first branch of the TNT before to the
	 * first of this one. Else the cycles before belong to the TNT before, which is over now: to the
	 * instructions up to its last branch. */
	if (b->in_a_row >= 2 && cycles < PT_CYC_BINDING_SHORT && b->previous_cycles < PT_CYC_BINDING_SHORT &&
	    firsts < PT_CYC_BINDING_SHORT && lasts < PT_CYC_BINDING_SHORT) {
		uint64_t by_first, by_last;

		b->insn_sum += firsts;
		b->cyc_sum += cycles;
		by_first = distance(cycles * b->insn_sum, firsts * b->cyc_sum);
		by_last = distance(b->previous_cycles * b->insn_sum, lasts * b->cyc_sum);
		b->for_first += by_first < by_last;
		b->for_last += by_last < by_first;
	}
	b->previous = *s;
	b->previous_cycles = cycles;
	b->times_last = b->for_first + b->for_last >= PT_CYC_BINDING_LEAST && b->for_last > 2 * b->for_first;
}
