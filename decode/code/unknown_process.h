/*
 * unknown_process.h - user code of a machine of which nobody knows which process runs: a guest, in a trace without time.
 *
 * Linux places programs and libraries at random. So at such an address all processes together have one piece of code, but for
 * rare accidents, and who executes there executes that, whoever it is. Code that is placed by the linker (below PT_UNKNOWN_PROCESS_LOWEST)
 * is not taken, for a process that the sideband does not tell of may have other code there; what two processes had differently
 * is nobody's; and when different programs come to the same places again, the machine does not place at random, and nothing is.
 */
#ifndef DECODE_CODE_UNKNOWN_PROCESS_H
#define DECODE_CODE_UNKNOWN_PROCESS_H

#include "decode/code/graph.h"
#include "decode/code/image.h"

#define PT_UNKNOWN_PROCESS_LOWEST ((uint64_t)1 << 40)

struct pt_unknown_process {
	struct img_space space;
	struct pt_code *code; /* NULL: there is none yet */
	uint64_t told, again; /* mappings; those that another program had alike */
	bool never;	      /* nothing is placed at random */
};

/* Zeroed is empty. upper: the machine's kernel. */
void pt_unknown_process_deinit(struct pt_unknown_process *a);
/* A process has mapped this. anew: its program did so while it was recorded, and has not before. 0, or -1
 * (PT_ERR_NO_MEMORY). The caller pauses flows in a->code before, and refreshes it behind. */
int pt_unknown_process_map(struct pt_unknown_process *a, struct pt_graph *graph, struct img_space *upper,
			   const struct img_map *map, bool anew, struct pt_error *e);

#endif
