/*
 * machine.h - the machine's state, for machine.c, which executes instructions, and machine_trace.c,
 * which makes packets and facts of what was executed. See random.h.
 */
#ifndef TESTS_MACHINE_H
#define TESTS_MACHINE_H

#include <string.h>

#include "tests/oracle/random/random.h"

struct place {
	uint32_t region, ins;
};

#define DEEP 256
struct machine {
	const struct program *program;
	const struct config *config;
	struct dice *dice;
	struct trace *trace;
	struct encoder encoder;
	struct place at;
	bool enabled;	 /* PacketEn */
	enum width sent; /* the last MODE.Exec */
	bool mode_unknown;
	/* Where returns go, if they go where they should. */
	struct place calls[DEEP], contexts[DEEP];
	uint32_t call_depth, context_depth;
	/* Facts that are not in the packets yet: from `decided` on a packet is still to come, from `sure` on
	 * it may get lost. */
	size_t sure, decided;
	uint64_t insns, sure_insns, decided_insns; /* of the slice */
	bool in_slice;
	uint32_t overflow_left;
	uint64_t cr3;
	bool guest, side_changed; /* runs; since the overflow began */
	struct place guest_at;	  /* where it was left */
	bool left;
};

#define VMCS	   0x7000

#define TRACED_CR3 0x1234000
#define OTHER_CR3  0x5678000

static inline const struct ins *ins(const struct machine *m, struct place at)
{
	return &m->program->regions[at.region].ins[at.ins];
}

static inline uint64_t ip_of(const struct machine *m, struct place at)
{
	return ins(m, at)->ip;
}

static inline const struct region *region(const struct machine *m, struct place at)
{
	return &m->program->regions[at.region];
}

/* ---- machine_trace.c -------------------------------------------------------------------------------- */

/* What a decoder must come to; the time is the encoder's. */
void machine_fact(struct machine *m, uint64_t from, uint64_t to, unsigned kind);
/* A packet has been made for all that was executed. */
void machine_decide(struct machine *m);
/* After something was given to the encoder: what it wrote is sure. */
void machine_settle(struct machine *m);
/* A slice begins, unless there is one. */
void machine_begin(struct machine *m);
/* By privilege and CR3 it is traced there; may_trace: by the IP filters, too. */
bool machine_context(const struct machine *m, struct place at);
bool machine_may_trace(const struct machine *m, struct place at);
/* MODE.Exec, where the width has changed or is unknown, and now and then without need. */
void machine_send_mode(struct machine *m, struct place to);
void machine_enable(struct machine *m, struct place to);
/* A branch to `to`: its packets, and tracing that begins or ends by it. */
void machine_transfer(struct machine *m, struct place to, enum op op, enum ptr_kind kind);
/* From host to guest or back, both traced: each end has its slice. */
void machine_change_side(struct machine *m, struct place to, enum ptr_kind kind);

#endif
