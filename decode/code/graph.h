/*
 * graph.h - code as a graph that TNT bits can be walked through, each instruction decoded once.
 *
 * Three layers, each made on first use and kept:
 *  - a block: straight code from an address up to its first branch;
 *  - a position: an address where the flow can stand, right behind a branch that packets told of. From it, code
 *    runs straight, through direct jumps and calls, up to a decision: what the next TNT bit or TIP answers;
 *  - an arc: from a position through its decision to the next position, with all the taken branches on the way
 *    (struct pt_arc; which they are, apart from it, in union pt_edge_list). A TNT bit follows one arc.
 * A position is committed by definition: nothing behind it has been assumed. So a FUP, a timing packet or a PSB
 * that comes next finds the flow at a place from which it can walk slowly (by blocks).
 *
 * Beside that, the dictionaries: edges (distinct taken branches) and paths (sequences of them), interned per
 * code. Numbers of edges and paths are local to the graph; output/emit.h gives those of the record stream.
 *
 * A code is one version of one address space. When its mappings change, pt_code_refresh() forgets what was
 * derived from them. Positions of the old version stay valid memory, but must be looked up again by their ip.
 */
#ifndef DECODE_CODE_GRAPH_H
#define DECODE_CODE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/image.h"
#include "decode/insn.h"
#include "schema/records.h"

/* What a position's code runs into. */
enum pt_decision {
	PT_D_UNRESOLVED, /* of an arc: not followed before, ask pt_graph_follow() */
	PT_D_JCC,	 /* TNT */
	PT_D_RET,	 /* TNT (compressed) or TIP */
	PT_D_CONT,	 /* no packet: arc[0] leads on */
	PT_D_IND,	 /* TIP: near indirect jump or call */
	PT_D_FAR,	 /* TIP or TIP.PGD: far transfer */
	PT_D_DEAD	 /* the code cannot be followed: why[] says */
};

struct pt_arc {
	uint32_t next;	/* position */
	uint32_t push;	/* position behind a call, when rise is 1 */
	uint32_t insns; /* instructions from the position to the decision, inclusive */
	int8_t rise; /* of the stack: 1 when a call is on the way, -1: goes to the top of it, not to next */
	uint8_t n_edges;
	uint8_t backward; /* the last edge goes backward */
	uint8_t decision; /* enum pt_decision of `next`; PT_D_UNRESOLVED: nothing else is valid */
};

/* Two to a cache line: what the hot loop walks along. */
union pt_position {
	/* PT_D_JCC: not taken, taken. PT_D_CONT: [0]. PT_D_RET: [1], of an unnumbered graph a compressed return. */
	struct pt_arc arc[2];
	/* Others; of PT_D_RET the prefix only. */
	struct {
		struct pt_arc prefix; /* to the decision; its next and decision are 0 */
		/* The target that was last seen, as a whole. */
		uint64_t ip;
		uint32_t next;
		uint8_t decision, backward, calls;
	} ind;
};

/* The taken branches along a position's arcs, in order; all four of an arc may be read. Not filled when the graph is
 * unnumbered, but for push. */
union pt_edge_list {
	uint32_t edges[2][4];
	struct {
		uint32_t prefix[4];
		uint32_t edge; /* to the target that was last seen */
		uint32_t next; /* PT_D_RET: that target, as a position */
		uint32_t push; /* PT_D_IND that calls: the position behind, else 0 */
		uint8_t backward, decision;
	};
};

/* Where an indirect branch or return went: for those with many targets. Direct-mapped, by branch and target. */
struct pt_jump {
	uint64_t to;	   /* the target's address; of a compressed return the position behind the call */
	uint32_t position; /* the branch's, 0 free */
	uint32_t edge, next;
	uint8_t decision, backward;
};
#define PT_JUMPS (1u << 14)

/*
 * A path as the packets told it: from the place where it started (nothing gathered, the same return addresses on the
 * stack as far as they were used), the same packet bytes lead along the same path to the same place. Two cache lines
 * for a whole path, instead of one for each bit and a search for the path. A cache: the latest of each slot. A
 * path has three slots, as long as others that begin alike are in the ones before: by its first four bytes, by eight, and by
 * sixteen and the return address.
 */
#define PT_PATH_MEMO_STACK 4
struct pt_path_memo {
	uint64_t start_ip; /* the path's, and */
	uint32_t position; /* where the flow stood; 0 free */
	uint32_t path;
	uint64_t window[4]; /* the packets' bytes, the first one highest, */
	uint16_t bits;	    /* so many of them */
	uint8_t left;	    /* TNT bits of the last byte that were not used */
	uint8_t decision;   /* of next */
	uint8_t packets;
	uint8_t pops : 3, pushes : 3;
	bool ips : 1;  /* TIPs are among the packets */
	uint8_t rise;  /* highest top of the stack, from where it was */
	uint32_t next; /* position */
	uint32_t insns;
	uint64_t next_ip;			      /* where the next path starts */
	uint64_t last_ip, last_ip_mask, next_last_ip; /* for IP compression */
	uint32_t popped[PT_PATH_MEMO_STACK],
	    pushed[PT_PATH_MEMO_STACK]; /* the highest first; the lowest first */
};
#define PT_PATH_MEMOS	   (1u << PT_PATH_MEMOS_LOG2)
#define PT_PATH_MEMOS_LOG2 14

/*
 * What a packet led to, for traces with CYCs, where most runs are one packet long: from a position's decision to the next
 * position's decision, for the direct branches on the way there belong to the run, too. A cache, one line each.
 */
#define PT_PACKET_MEMO_STACK 4
struct pt_packet_memo {
	uint64_t from;		/* where the run starts that begins with the packet, else the path before */
	uint64_t next_start_ip; /* where the run behind starts */
	uint64_t to;		/* a TIP's address, and byte 0; */
	uint32_t position;	/* where it begins; 0 free */
	uint32_t path;		/* the run so far, 0: no branch was taken */
	uint32_t base, next; /* positions: where it leads to, and behind the direct jumps and calls there */
	uint32_t
	    stack[PT_PACKET_MEMO_STACK]; /* pushed, the lowest first; what a TNT popped, the highest last */
	uint16_t insns;
	uint8_t byte; /* or a TNT packet */
	uint8_t decision : 4, pops : 4;
	uint8_t pushes, rise; /* highest top of the stack, from where it was */
};
#define PT_PACKET_MEMOS_LOG2 16
#define PT_PACKET_MEMOS	     (1u << PT_PACKET_MEMOS_LOG2)

struct pt_where { /* of a position: the cold part */
	uint64_t ip;
	uint64_t decision_ip;	/* of the branch; PT_D_DEAD: of what could not be followed */
	uint64_t decision_next; /* the instruction behind it */
	uint64_t target;	/* PT_D_JCC */
	uint32_t code;
	uint8_t cls;  /* enum insn_class of the branch */
	uint8_t mode; /* enum insn_mode */
	uint8_t why;  /* PT_D_DEAD: enum pt_dead */
};

enum pt_dead {
	PT_DEAD_NO_CODE,
	PT_DEAD_BAD_INSN,
	PT_DEAD_ENDLESS,
	PT_DEAD_SEGMENT /* insn_target_sure() says no */
};

struct pt_block {
	uint64_t ip, term_ip, next_ip, target; /* target: direct branches, else 0 */
	uint32_t insns;			       /* up to and with the branch */
	uint32_t next;			       /* block at next_ip, 0 not yet asked for */
	uint32_t position;		       /* at ip, 0 none yet */
	uint32_t code;
	/* enum insn_class; INSN_OTHER: the code ends behind it (why) or the block got too long */
	uint8_t cls;
	uint8_t mode, rel0, why;
	bool dead; /* cannot be followed beyond term_ip */
};

struct pt_edge {
	uint64_t from, to;
	uint32_t code;	 /* uid: an edge outlives its code's versions */
	uint32_t number; /* in the record stream, 0 not there yet (output/emit.h) */
	uint32_t symbol; /* the target's record number, when role says so (output/calls.c) */
	uint32_t block;	 /* that was at `to` last; check whether it still is */
	uint8_t kind;	 /* enum ptr_kind */
	uint8_t role;	 /* what it does to a call stack, 0 not yet asked (output/calls.c) */
	uint8_t bytes;	 /* of the branch instruction, when role says so */
};

/* A slot of the paths' hash. Paths are told by 96 bits of hash, never compared: looking at the edges would cost
 * two more cache misses for each run, and among a billion paths two of one hash are expected once in 10^11 traces. */
struct pt_path_slot {
	uint64_t high;
	uint32_t low;
	uint32_t path; /* 0 free */
};

struct pt_path {
	uint64_t start_ip, end_ip;
	uint64_t times; /* how often run; not counted when the graph is bare */
	uint32_t first; /* its edges: graph->path_edges[first], count */
	uint32_t code;	/* id */
	/* all of them, with the tail; this, the next two and path_insns: 0 when the graph is bare */
	uint32_t insns;
	uint32_t tail_insns;
	uint32_t not_taken;
	uint32_t number; /* in the record stream, 0 not there yet (output/emit.h) */
	uint32_t follow; /* the path that followed it last: most often the one that will */
	uint8_t count;	 /* edges */
	uint8_t role;	 /* of its edges together, 0 not yet asked (output/calls.c) */
	/* one of its edges begins an emulated PTWRITE (emulated_ptwrite.h); false when the graph is bare */
	bool emulated;
};

/* What executed paths add up to. */
struct pt_graph_sums {
	uint64_t not_taken, hash, by_kind[PTR_KINDS]; /* the latter two: of path_stats */
};

/* What a path's branches add to --stats, as ../shared/bench/README.md counts them: near branches with mix(from, to),
 * those not taken too. */
struct pt_path_stats {
	uint64_t hash;
	uint16_t by_kind[PTR_KINDS];
};

struct pt_code {
	struct img_space *space;
	uint32_t generation, changes; /* of the space, when derived */
	bool holes;		      /* something was looked for where nothing was mapped */
	bool
	    unknown_process; /* it is known without knowing whose it is; what is not there is some process's */
	uint32_t id;	     /* index in the graph: this version; changes when refreshed */
	uint32_t uid;	     /* its first id: the space, over all versions */
	uint64_t switch_ip;  /* of a kernel: where it switches threads, 0 unknown; a position is made there */
};

struct pt_graph {
	union pt_position *positions;	     /* from 1 */
	union pt_edge_list *edge_lists;	     /* parallel */
	uint8_t *decisions;		     /* parallel: enum pt_decision */
	struct pt_where *where;		     /* parallel */
	struct pt_jump *jumps;		     /* PT_JUMPS of them */
	struct pt_path_memo *path_memos;     /* PT_PATH_MEMOS of them */
	struct pt_packet_memo *packet_memos; /* PT_PACKET_MEMOS of them */
	uint32_t position_count, position_room;
	struct pt_block *blocks; /* from 1 */
	uint32_t block_count, block_room;
	uint32_t *block_hash;
	uint32_t block_mask;
	struct pt_edge *edges; /* from 1 */
	uint32_t edge_count, edge_room;
	uint32_t *edge_hash;
	uint32_t edge_mask;
	struct pt_path *paths; /* from 1 */
	uint8_t *path_counts;  /* parallel: their edges; what a run that is only counted needs */
	uint32_t path_count, path_room;
	struct pt_path_slot *path_hash;
	uint32_t path_mask;
	uint32_t *path_edges; /* edges of all paths, one behind the other */
	uint32_t *path_insns; /* parallel: instructions before each edge, as in struct ptr_path */
	uint8_t *path_roles;  /* parallel: of a path whose role was asked, its edges' (output/calls.c) */
	struct pt_path_stats *path_stats; /* parallel to paths; NULL unless pt_graph_count_stats() */
	uint32_t path_edge_count, path_edge_room;
	struct pt_code **codes;
	uint32_t code_count;
	uint32_t position_limit, block_limit, edge_limit, path_limit, path_edge_limit;
	bool cache_full;	   /* one of the limits is reached: time for pt_graph_recycle() */
	bool bare;		   /* nobody asks what paths hold but their edges: they are not counted */
	bool unnumbered;	   /* see pt_graph_number_no_paths() */
	bool full;		   /* out of memory or room: what follows is not decoded, and said so */
	struct pt_graph_sums sums; /* of the paths that were forgotten */
};

int pt_graph_init(struct pt_graph *g, struct pt_error *e);
void pt_graph_deinit(struct pt_graph *g);

/* From now on the graph is crowded when it takes about that many bytes (at first: PT_GRAPH_BYTES). It may grow beyond
 * by what the packet at hand needs. */
#define PT_GRAPH_BYTES ((size_t)160 << 20)
void pt_graph_limit(struct pt_graph *g, size_t bytes);
/*
 * Forgets blocks, positions and paths; edges too when it is they that are too many. So memory is bounded however much
 * code a trace runs through; what is run again is decoded again, and the record stream gets its paths defined again under
 * new numbers. No flow may hold a position, a path or an edge: see pt_flow_detach().
 */
void pt_graph_recycle(struct pt_graph *g);
/* Of all that was executed so far. */
void pt_graph_sum(const struct pt_graph *g, struct pt_graph_sums *ret);

/* Zeroed, for a hash of n slots (n x size a power of two); free() it. NULL: no memory. */
void *pt_table_create(size_t n, size_t size);

/* A code over a space (the caller's, must outlive the graph). NULL: no memory. The graph owns it. */
struct pt_code *pt_graph_code(struct pt_graph *g, struct img_space *space);
/* True when the space has changed since: what was derived is forgotten, look positions up again. */
bool pt_code_refresh(struct pt_graph *g, struct pt_code *code);

/* The position at ip. Never 0 but when the graph is full. */
uint32_t pt_graph_position(struct pt_graph *g, struct pt_code *code, uint64_t ip, enum insn_mode mode);
/* Resolves arc `bit` (PT_D_CONT: 0) of a position. False when the graph is full. */
bool pt_graph_follow(struct pt_graph *g, uint32_t position, unsigned bit);
/* The block at ip; NULL when the graph is full. */
struct pt_block *pt_graph_block(struct pt_graph *g, struct pt_code *code, uint64_t ip, enum insn_mode mode);
/* The block behind b. */
struct pt_block *pt_graph_next_block(struct pt_graph *g, struct pt_block *b);
/* Instructions of b before ip, or -1 when ip is no instruction's beginning in it. */
int pt_graph_insns_before(struct pt_graph *g, const struct pt_block *b, uint64_t ip);

/* The address of the next instruction of a class in b, the branch not included, 0 when there is none. Begins behind the
 * first *insns instructions, and leaves there how many there are up to and with the one found. */
uint64_t pt_graph_find(struct pt_graph *g, const struct pt_block *b, enum insn_class cls, uint32_t *insns);

/* The edge's number. 0 when the graph is full. */
uint32_t pt_graph_edge(struct pt_graph *g, struct pt_code *code, uint64_t from, uint64_t to,
		       enum ptr_kind kind);
/* The path's number, 0 when the graph is full. count <= PTR_PATH_EDGES; the three words behind the edges may be
 * read and written. after: the path before it in the flow (0 none), which remembers what followed. */
uint32_t pt_graph_path(struct pt_graph *g, struct pt_code *code, uint64_t start_ip, uint32_t *edges,
		       uint32_t count, uint64_t end_ip, enum insn_mode mode, uint32_t after);

/*
 * Of a bare graph, before the first path: nobody asks which paths are run, only how long they are. Neither edges nor
 * paths are looked up then nor kept, which saves a third of the time where code repeats itself little: an edge's number
 * is 1, a path's one more than it has edges, and the structs of both are empty.
 */
void pt_graph_number_no_paths(struct pt_graph *g);

/* From now on fill path_stats for each new path. 0, or -1 (PT_ERR_NO_MEMORY). Before the first path. */
int pt_graph_count_stats(struct pt_graph *g, struct pt_error *e);

/* What the position runs into, decoding its code if that was not done yet: enum pt_decision. */
uint8_t pt_graph_decision(struct pt_graph *g, uint32_t position);

enum ptr_kind pt_kind_of(enum insn_class cls);

#endif
