/*
 * random.h - random programs and the Processor Trace that a CPU would write of them.
 *
 * program.c lays random code into regions (user, kernel; 64, 32 and 16 bit). machine.c runs it: every
 * conditional branch, indirect target, interrupt, overflow and PSB is a throw of dice. encode.c writes the
 * packets, from the SDM's rules alone; nothing here is shared with the decoder or with pt-capture's encoder.
 * What was executed and can be known from the packets is the list of facts that a decoder must come to.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/records.h"

/* ---- Dice (splitmix64: the same everywhere) ---------------------------------------------------------- */

struct dice {
	uint64_t state;
};

static inline uint64_t roll(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 .. n-1 */
static inline uint32_t pick(struct dice *d, uint32_t n)
{
	return (uint32_t)((roll(d) >> 32) * n >> 32);
}

static inline bool one_in(struct dice *d, uint32_t n)
{
	return n && pick(d, n) == 0;
}

/* ---- Programs ---------------------------------------------------------------------------------------- */

enum op {
	OP_NOP,
	OP_PTWRITE,
	OP_MOV_CR3,
	OP_JCC,
	OP_JMP,
	OP_CALL,
	OP_CALL_NEXT, /* a call to the next instruction: not on the CPU's call stack */
	OP_JMP_IND,
	OP_CALL_IND,
	OP_RET,
	OP_SYSCALL,
	OP_SYSRET,
	OP_INT,
	OP_IRET,
	OP_JMP_FAR,
	OP_CALL_FAR,
	OP_RET_FAR,
	OP_VMENTRY, /* VMRESUME: may fail and fall through */
	OP_CPUID,   /* in a guest: a VM exit */
	OPS
};

enum width { WIDTH_64, WIDTH_32, WIDTH_16 };

struct ins {
	uint64_t ip, target; /* target: of direct branches */
	uint32_t goal;	     /* direct branches: the target's index */
	uint8_t len, op;
};

struct region {
	uint64_t base;
	uint32_t bytes, count;
	enum width width;
	bool kernel, guest;
	struct ins *ins;
	uint8_t *code;
};

#define REGIONS 8
struct program {
	struct region regions[REGIONS];
	uint32_t count;
	bool vm; /* it has a guest */
};

/* Regions of random code. Each straight walk comes to a branch, and each circle of direct ones to a
 * packet. */
void program_make(struct program *p, struct dice *d);
void program_free(struct program *p);
/* True when no straight code leads from instruction i - 1 to i: an IP filter may begin here, or end
 * before. */
bool program_border(const struct region *r, uint32_t i);

/* ---- Configuration: IA32_RTIT_CTL and the dice's weights --------------------------------------------- */

struct config {
	bool os, user; /* by privilege */
	bool disretc, long_tnt, defer_tips, fup_on_ptw;
	bool tsc, mtc, cyc;
	uint32_t mtc_shift, ctc_num, ctc_den, nominal_ratio, cbr;
	bool balanced;				       /* returns go where they were called from */
	bool cr3_filter;			       /* one of two address spaces is traced */
	uint32_t ranges;			       /* IP filters: none, 1 or 2 */
	uint64_t from[2], to[2];		       /* inclusive */
	uint32_t async_one_in, psb_one_in, ovf_one_in; /* instructions; 0 never */
	uint32_t steps;
};

/* ---- What was executed, as far as packets say ------------------------------------------------------- */

enum { FACT_BEGIN = 100, FACT_END, FACT_OVERFLOW, FACT_ERROR };

struct fact {
	uint64_t from, to; /* END: from is the number of instructions; ERROR: the IP */
	uint64_t tsc;	   /* when it was executed */
	bool to_next;	   /* a taken conditional branch to the next instruction */
	uint8_t kind;	   /* enum ptr_kind, or FACT_ */
};

struct trace {
	uint8_t *packets;
	size_t bytes, room;
	struct fact *facts;
	size_t count, fact_room;
	uint64_t odd_returns; /* which did not go to the call's next instruction */
	uint64_t pips;	      /* of a MOV to CR3 */
	uint64_t ptwrites;    /* a hash over the payloads */
	uint64_t entries;     /* into a guest */
	uint64_t overflows, asyncs, disables, psbs, branches; /* how much of each there was */
};

void trace_free(struct trace *t);

/* Runs the program. The trace is the caller's to free. */
void machine_run(const struct program *p, const struct config *c, struct dice *d, struct trace *ret);

/* ---- The encoder ------------------------------------------------------------------------------------- */

#define TIPS_MAX 64

struct encoder {
	const struct config *config;
	struct dice *dice;
	struct trace *trace;
	uint64_t tnt;
	unsigned tnt_n;
	uint64_t tnt_cycles;	 /* at the first bit: what a CYC before the packet reports */
	uint64_t tips[TIPS_MAX]; /* deferred after the TNT bits */
	unsigned tips_n;
	uint64_t last_ip;
	uint64_t stack[64]; /* return compression */
	unsigned depth;
	uint64_t cycles, cyc_sent, mtc_next; /* now; at the last CYC; CTC of the next MTC */
	bool overflow;			     /* nothing is written */
	bool flushed; /* since the machine asked last: what was decided before is in the packets */
};

enum ip_packet { IP_TIP = 0x0d, IP_PGE = 0x11, IP_PGD = 0x01, IP_FUP = 0x1d };

void encode_init(struct encoder *e, const struct config *c, struct dice *d, struct trace *t);
uint64_t encode_tsc(const struct encoder *e); /* of now */
void encode_flush(struct encoder *e);
void encode_tnt(struct encoder *e, bool taken);
void encode_tip(struct encoder *e, uint64_t ip); /* of an indirect branch: may be deferred */
void encode_call(struct encoder *e, uint64_t next);
/* True when it was compressed to a TNT bit. */
bool encode_ret(struct encoder *e, uint64_t to);
void encode_ip(struct encoder *e, enum ip_packet type, uint64_t ip);
void encode_no_ip(struct encoder *e, enum ip_packet type);
void encode_mode(struct encoder *e, enum width width);
void encode_ptwrite(struct encoder *e, uint64_t payload, bool eight, bool fup);
void encode_pip(struct encoder *e, uint64_t cr3, bool nr);
/* enabled: with MODE.Exec and a FUP; cr3: with a PIP, 0 without; vmcs: with that packet, 0 without. */
void encode_psb(struct encoder *e, bool enabled, uint64_t ip, enum width width, uint64_t cr3, bool nr,
		uint64_t vmcs);
void encode_overflow_begin(struct encoder *e);
void encode_overflow_end(struct encoder *e);
/* Cycles pass; MTCs may fall due. */
void encode_pass(struct encoder *e, uint32_t cycles);

/* ---- Another judge ------------------------------------------------------------------------------------ */

/* libipt's: the same branches; others; or it gave up (it has no notion of some rules). */
enum verdict { VERDICT_SAME, VERDICT_OTHER, VERDICT_NONE };
enum verdict libipt_judges(const struct program *p, const struct config *c, const struct trace *t);

#endif
