/*
 * unknown_process.h - user code of a machine when it is not known which of its processes runs: a guest's, in
 * a trace without time.
 *
 * Linux places programs and libraries at random. So the code at such an address is, but for rare accidents,
 * the same for all processes that have any there, and can be followed without knowing the process. Three
 * exceptions:
 *  - Code that the linker has placed (below PT_UNKNOWN_PROCESS_LOWEST) is left out, because a process that
 *    the sideband does not report may have other code there.
 *  - Where two processes have different code, there is none.
 *  - When different programs come to the same places again, the machine does not place at random, and no code
 *    is known.
 */
#ifndef DECODE_CODE_UNKNOWN_PROCESS_H
#define DECODE_CODE_UNKNOWN_PROCESS_H

#include "decode/code/address_space.h"
#include "decode/code/graph.h"

#define PT_UNKNOWN_PROCESS_LOWEST ((uint64_t)1 << 40)

/* Zeroed is empty. */
struct pt_unknown_process {
	struct img_space space; /* what all processes together have mapped */
	struct pt_code *code;	/* over it; NULL: nothing was mapped yet */
	uint64_t mappings;
	uint64_t repeated; /* of these: those that another program had at the same place */
	bool not_random;   /* too many were; from then on nothing is known */
};

void pt_unknown_process_deinit(struct pt_unknown_process *u);
/*
 * A process has mapped this. upper: the machine's kernel. fresh: its program has mapped it just now, while it
 * was recorded, and not before. The caller pauses flows in u->code before, and refreshes it afterwards. 0, or
 * -1 (PT_ERR_NO_MEMORY).
 */
int pt_unknown_process_map(struct pt_unknown_process *u, struct pt_graph *graph, struct img_space *upper,
			   const struct img_map *map, bool fresh, struct pt_error *e);

#endif
