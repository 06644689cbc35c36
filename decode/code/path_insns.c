/* path_insns.c - see path_insns.h. */
#include "decode/code/path_insns.h"

/* n instructions of straight code from ip on. */
static bool straight(const struct pt_path_insns *to, uint64_t ip, uint32_t n, enum insn_mode mode)
{
	bool ok = true;

	if (to->straight && to->straight(to->arg, ip, n))
		return true;
	for (uint32_t i = 0; i < n && ok; i++) {
		uint32_t len = to->insn(to->arg, ip, &ok);

		if (!len)
			break;
		ip += len;
		if (mode != INSN_64)
			ip &= 0xffffffff;
	}
	return ok;
}

bool pt_path_insns(const struct pt_graph *g, const struct pt_path *path, const struct pt_path_insns *to)
{
	uint64_t ip = path->start_ip;

	for (uint32_t i = 0; i < path->count; i++) {
		const struct pt_edge *edge = &g->edges[g->path_edges[path->first + i]];

		/* Where it is not known how the branch was reached, the branch alone counts, if at all. */
		if (!straight(to, ip ? ip : edge->from, pt_path_insns_before(g, path, i), path->mode))
			return false;
		ip = edge->to;
	}
	return straight(to, ip, path->tail_insns, path->mode);
}
