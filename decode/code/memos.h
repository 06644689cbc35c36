/*
 * memos.h - two caches keyed by packet bytes: where the same bytes have led from the same place before.
 *
 * Both are direct-mapped: a slot holds the latest entry. The flow's fast loops fill and follow them
 * (flow/fast.c, flow/fast_cyc.c); pt_graph_recycle() empties them.
 */
#ifndef DECODE_CODE_MEMOS_H
#define DECODE_CODE_MEMOS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A memoized path. From the place where the path started (no edges gathered, the same return addresses on the
 * stack as far as they were used), the same packet bytes lead along the same path to the same place. That is
 * two cache lines per path, instead of one per TNT bit and a search for the path.
 *
 * A path has three slots: by its first four bytes; by eight; by sixteen and the return address. It takes the
 * next one when the one before holds another path that begins alike.
 */
#define PT_PATH_MEMO_STACK 4
struct pt_path_memo {
	uint64_t start_ip;  /* the path's */
	uint32_t position;  /* where the flow stood; 0 free */
	uint32_t path;	    /* its number */
	uint64_t window[4]; /* the packets' bytes, the first one highest */
	uint16_t bits;	    /* of window that count */
	uint8_t left;	    /* TNT bits of the last byte that were not used */
	uint8_t decision;   /* of next */
	uint8_t packets;
	uint8_t pops : 3, pushes : 3;
	bool ips : 1;  /* TIPs are among the packets */
	uint8_t rise;  /* the stack's highest top, from where it was */
	uint32_t next; /* position */
	uint32_t insns;
	uint64_t next_ip;			      /* where the next path starts */
	uint64_t last_ip, last_ip_mask, next_last_ip; /* for IP compression */
	uint32_t popped[PT_PATH_MEMO_STACK];	      /* the highest first */
	uint32_t pushed[PT_PATH_MEMO_STACK];	      /* the lowest first */
};
#define PT_PATH_MEMOS	   (1u << PT_PATH_MEMOS_LOG2)
#define PT_PATH_MEMOS_LOG2 14

/*
 * A memoized packet, for traces with CYC packets, where most runs are one packet long: what the packet led
 * to, from a position's decision to the next position's decision. The direct branches in between belong to
 * the run as well. One cache line.
 */
#define PT_PACKET_MEMO_STACK 4
struct pt_packet_memo {
	uint64_t from; /* where the run starts, if with the packet; else 1 << 62 | the path before it */
	uint64_t next_start_ip; /* where the next run starts */
	uint64_t to;		/* of a TIP: its address, and byte is 0 */
	uint32_t position;	/* that the packet answers; 0 free */
	uint32_t path;		/* of the run up to next, 0: no branch was taken */
	uint32_t base;		/* position that the packet leads to */
	uint32_t next;		/* and that with the next decision, after direct jumps and calls */
	/* Positions: what was pushed, the lowest first; at the end what a TNT popped, the highest last. */
	uint32_t stack[PT_PACKET_MEMO_STACK];
	uint16_t insns;
	uint8_t byte; /* of a TNT packet */
	uint8_t decision : 4, pops : 4;
	uint8_t pushes, rise; /* rise: the stack's highest top, from where it was */
};
#define PT_PACKET_MEMOS_LOG2 16
#define PT_PACKET_MEMOS	     (1u << PT_PACKET_MEMOS_LOG2)

#endif
