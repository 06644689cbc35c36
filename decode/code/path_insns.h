/*
 * path_insns.h - the instructions that a path executes, one after the other.
 *
 * A path says its taken branches and how many instructions lie before each. Between two taken branches code
 * runs straight, so the instructions are those from one branch's target on, as many as were counted
 * (paths.h).
 */
#ifndef DECODE_CODE_PATH_INSNS_H
#define DECODE_CODE_PATH_INSNS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/graph.h"

struct pt_path_insns {
	/* Called for each n instructions of straight code that follow, before them; true: they are left out.
	 * NULL: none are. */
	bool (*straight)(void *arg, uint64_t ip, uint32_t n);
	/* Called for each instruction, in order. Returns its length, 0 where there is no code: then the
	 * straight code at hand is left. False in *ret_ok: all is left. */
	uint32_t (*insn)(void *arg, uint64_t ip, bool *ret_ok);
	void *arg;
};

/*
 * The instructions of a path: path->insns of them, where all of the code is there.
 * To be called while the code is as it was executed: when the path was reported last (flow.h). False: a
 * callback said so.
 */
bool pt_path_insns(const struct pt_graph *g, const struct pt_path *path, const struct pt_path_insns *to);

#endif
