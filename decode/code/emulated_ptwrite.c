/* emulated_ptwrite.c - see emulated_ptwrite.h. */
#include "decode/code/emulated_ptwrite.h"

#include "decode/code/ptwrite_magic.h"

#define VALUE_BITS 64

/* False when that was the last bit. */
static bool add_bit(struct pt_emulated *e, unsigned bit)
{
	e->value = e->value << 1 | bit;
	e->reading = ++e->bits < VALUE_BITS;
	return e->reading;
}

/*
 * Reads the straight code from e->at to the branch at `from`: each conditional branch in it was not taken.
 * False when the value is complete.
 */
static bool read_straight(struct pt_emulated *e, struct pt_graph *g, struct pt_code *code, uint64_t from,
			  bool async)
{
	struct pt_block *b = pt_graph_block(g, code, e->at, INSN_64);

	while (b && !b->dead && pt_block_term_ip(b) != from &&
	       !(async && from >= b->ip && from < pt_block_next_ip(b))) {
		if (b->cls == INSN_JCC && !add_bit(e, 0))
			return false;
		if (b->cls != INSN_JCC && b->cls != INSN_OTHER) {
			e->reading = false; /* the code has changed */
			break;
		}
		b = pt_graph_next_block(g, b);
	}
	return true;
}

void pt_emulated_path(struct pt_emulated *e, struct pt_graph *g, const struct pt_path *path,
		      const struct pt_task *task, pt_emulated_report_fn *report, void *arg)
{
	struct pt_code *code = g->codes[path->code];

	if (e->reading && e->task != task && !path->emulated)
		return;
	for (uint32_t i = 0; i < path->count; i++) {
		const struct pt_edge *edge = &g->edges[g->path_edges[path->first + i]];
		bool async = pt_kind_is_async(edge->kind);

		if (path->emulated && edge->kind == PTR_JMP &&
		    pt_ptwrite_magic(code->space, edge->from, edge->to)) {
			e->reading = true;
			e->interrupted = false;
			e->bits = 0;
			e->at = e->ip = edge->to;
			e->task = task;
			continue;
		}
		if (!e->reading)
			continue;
		if (e->interrupted) {
			e->interrupted = edge->to != e->at;
			continue;
		}
		if (!read_straight(e, g, code, edge->from, async)) {
			report(arg, e->ip, e->value);
			continue;
		}
		e->at = edge->to;
		if (edge->kind == PTR_JCC) {
			if (!add_bit(e, 1))
				report(arg, e->ip, e->value);
		} else if (async || !edge->to) {
			e->at = edge->from;
			e->interrupted = true;
		} else if (edge->kind != PTR_JMP && edge->kind != PTR_CALL_DIR) {
			e->reading = false;
		}
	}
}
