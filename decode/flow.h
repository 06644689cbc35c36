/*
 * flow.h - one stream's packets and the code graph to runs of branches.
 *
 * A flow takes PT bytes in pieces and tells its sink what was executed (runs of paths, graph.h), what happened
 * (events) and what could not be known (errors). It follows the SDM's rules for what binds to what; where the
 * packets and the code disagree it says so and starts again at the next PSB, never guessing.
 *
 * Time: a run's tsc is the clock at the end of the run before it, so no branch of the run is older, and none is
 * younger than the next run's tsc. A timing packet comes before the packet that it times (SDM, "CYC packet"),
 * and TNT bits gather while MTCs pass; so a run ends behind the first TNT or TIP that follows a timing packet.
 */
#ifndef DECODE_FLOW_H
#define DECODE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/clock.h"
#include "decode/graph.h"
#include "decode/packet.h"

enum pt_flow_error_kind {
	PT_FLOW_BAD_PACKET,
	PT_FLOW_NO_CODE,
	PT_FLOW_BAD_INSN,
	PT_FLOW_MISMATCH, /* trace and code disagree */
	PT_FLOW_OVERFLOW, /* OVF */
	PT_FLOW_LOST,     /* AUX data is missing */
	PT_FLOW_CUT,      /* the stream ends inside a packet, or without its end */
	PT_FLOW_FULL      /* out of memory */
};
const char *pt_flow_error_name(enum pt_flow_error_kind kind);

struct pt_flow_error {
	enum pt_flow_error_kind kind;
	uint64_t ip;         /* 0 unknown */
	uint64_t aux_offset;
	uint64_t tsc;        /* when it was known last */
	const char *message;
};

struct pt_flow_run {
	uint32_t path, repeats;
	uint64_t tsc;        /* PT_CLOCK_UNKNOWN */
	uint64_t cyc_count;  /* PTR_UNKNOWN; else as in struct ptr_run */
	uint64_t insn_count;
};

struct pt_flow;

/* What a flow tells. All are called with the flow; a sink that fails remembers it and ignores the rest. */
struct pt_flow_sink {
	/* Execution (re)starts here and goes on without gap until end(). */
	void (*begin)(void *arg, struct pt_flow *f, uint64_t tsc);
	void (*run)(void *arg, struct pt_flow *f, const struct pt_flow_run *run);
	void (*end)(void *arg, struct pt_flow *f, uint64_t tsc, uint64_t insn_count, uint64_t cyc_count);
	/* An error comes after the end() of what it ended, and before the begin() behind it. */
	void (*error)(void *arg, struct pt_flow *f, const struct pt_flow_error *error);
	/* There is no code at ip. True when there is now: the sink has brought its sideband up to date (with
	 * pt_flow_pause() and pt_flow_resume()), and the flow tries again. */
	bool (*missing)(void *arg, struct pt_flow *f, uint64_t ip);
	/* fields: a JSON object's inside, may be "". */
	void (*event)(void *arg, struct pt_flow *f, const char *name, uint64_t ip, const char *fields);
};

enum pt_flow_state {
	PT_FLOW_UNSYNCED, /* until the next PSB */
	PT_FLOW_DISABLED, /* in sync, PacketEn = 0 */
	PT_FLOW_RUNNING
};

#define PT_STACK 128 /* ring for the 64 return addresses that the hardware keeps */

struct pt_flow {
	struct pt_graph *graph;
	struct pt_code *user, *kernel; /* whose code runs now, by the half of the address; NULL: nobody knows */
	const struct pt_flow_sink *sink;
	void *arg;
	struct pt_clock clock;
	uint64_t stop_tsc; /* pt_flow_feed() returns when the clock reaches it */

	enum pt_flow_state state;
	enum insn_mode mode, next_mode; /* now; from the next IP packet on */
	uint32_t position;
	unsigned decision;     /* of position; PT_D_UNRESOLVED: ask pt_graph_decision() */
	struct pt_code *code;  /* of position */
	uint32_t stack[PT_STACK], top, bottom;
	uint32_t edges[PTR_PATH_EDGES + 32]; /* the path so far; arcs store four at once */
	uint32_t len;
	uint64_t start_ip;
	uint32_t run_path;     /* held back: its repeats may grow */
	uint64_t run_tsc;      /* of the branches that come; between the two for they are loaded as one otherwise */
	uint32_t run_repeats;
	uint32_t last_path;    /* the last one flushed */
	bool cut;              /* the clock has moved: end the run behind the next branch packet */
	bool cyc_fresh;        /* the last packet was a CYC: it times the next one */
	bool in_slice, has_cyc;
	uint64_t insns, slice_insns, cyc_insns; /* executed so far; at the slice's start; at the last counted CYC */
	uint64_t slice_cyc, cyc_cyc;

	uint64_t tnt;          /* bits that wait for a deferred TIP */
	unsigned tnt_n;
	uint64_t last_ip;      /* for IP compression */
	uint64_t fup_ip;       /* a FUP's, when fup */
	bool fup;              /* the next TIP comes from fup_ip, not from a branch */
	bool fup_binds;        /* the next FUP belongs to the packet before it */
	bool in_psb, psb_fup;
	bool psb_only;         /* that it runs is known from a PSB+ alone, and nothing has come since */
	bool overflow;         /* after OVF, until FUP or TIP.PGE */
	bool tsx_abort;
	bool ever;             /* has been in sync before */
	unsigned bip_bytes;
	uint64_t psb_ip, stop_ip; /* stop_ip: where it was when tracing stopped last */
	uint64_t cr3, vmcs;
	uint32_t nr, cbr, exec;

	uint64_t base;         /* aux_offset of the piece's first byte */
	uint64_t aux_offset;   /* of the packet at hand */
	uint64_t packets, psbs;
};

/* codes are set by the caller (user, kernel) before feeding. */
void pt_flow_init(struct pt_flow *f, struct pt_graph *graph, const struct pt_clock_config *clock,
		  const struct pt_flow_sink *sink, void *arg);

enum pt_flow_feed { PT_FEED_MORE, PT_FEED_TIME };

/*
 * Takes the bytes [p, end), whose first is at aux_offset. Returns PT_FEED_MORE when all that is complete was
 * taken, or PT_FEED_TIME when the clock has reached stop_tsc; *ret is the first byte not taken (fewer than
 * PT_PACKET_MAX remain with PT_FEED_MORE: give them again before what follows). last: nothing follows.
 */
enum pt_flow_feed pt_flow_feed(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset, bool last,
			       const uint8_t **ret);

/* AUX data is missing here. */
void pt_flow_lost(struct pt_flow *f, uint64_t aux_offset, const char *message);
/* The stream is over. */
void pt_flow_finish(struct pt_flow *f);
/* Another thread, or other code: call before and after changing user or kernel, or refreshing them. */
void pt_flow_pause(struct pt_flow *f, bool end_slice);
void pt_flow_resume(struct pt_flow *f);

#endif
