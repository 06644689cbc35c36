/*
 * encode.h - Intel PT packets from what a thread executed: those that the hardware would write.
 *
 * There is one encoder per thread. The caller reports branches in order, and time by advancing the model's
 * clock; the encoder appends bytes. Encodings and conditions are those of the Intel SDM, volume 3, "Intel
 * Processor Trace", for user-space tracing of 64-bit code.
 */
#ifndef CAPTURE_PT_ENCODE_H
#define CAPTURE_PT_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pt_encode_config {
	bool tsc, mtc, cyc, retcomp;
	uint32_t mtc_shift; /* an MTC every 2^mtc_shift CTC ticks */
	uint32_t cyc_min;   /* a CYC only for this many cycles and more */
	uint64_t psb_bytes; /* from one PSB to the next */
};

/* The modelled machine: everything follows from core cycles. */
struct pt_model {
	uint64_t cycles; /* of the one core, which all threads share */
};
enum {
	PT_MODEL_TSC_HZ = 2000000000,
	PT_MODEL_CTC_NUM = 160,
	PT_MODEL_CTC_DEN = 2, /* TSC ticks per CTC tick: 80, a CTC of 25 MHz */
	PT_MODEL_NOMINAL = 20,
	PT_MODEL_CBR = 30 /* core cycles per TSC tick: 1.5 */
};
static inline uint64_t pt_model_tsc(const struct pt_model *m)
{
	return m->cycles * PT_MODEL_NOMINAL / PT_MODEL_CBR;
}

/* Return addresses for RET compression, the newest last; the oldest drops out when it is full. */
struct pt_return_stack {
	uint64_t at[64];
	uint32_t count;
};

/* All but bytes, size and no_memory is the encoder's own. */
struct pt_encoder {
	const struct pt_encode_config *config;
	const struct pt_model *model;

	uint8_t *bytes; /* owned; the caller takes them and sets size to 0 */
	size_t size, room;
	bool no_memory; /* bytes were dropped */
	uint64_t total; /* bytes ever appended */

	bool enabled;	 /* PacketEn */
	bool want_psb;	 /* a PSB+ is due */
	uint64_t psb_at; /* total when the last PSB began */
	uint64_t last_ip;
	struct {
		uint32_t bits, count;
		uint64_t first_cycles; /* when the first of them retired */
	} tnt;			       /* branches that no packet has yet */
	uint64_t cyc_cycles;	       /* when the last CYC was sent */
	uint64_t mtc_period;	       /* the last period of CTC ticks that an MTC or TMA announced */
	/*
	 * Decoders model the hardware's return stack in two ways: perf pops an address at each return, libipt
	 * at compressed ones only. A return is compressed when both stacks have its target on top, so that
	 * either decoder follows.
	 */
	struct pt_return_stack popped_by_all, popped_by_compressed;
};

void pt_encode_init(struct pt_encoder *e, const struct pt_encode_config *config,
		    const struct pt_model *model);
void pt_encode_deinit(struct pt_encoder *e);

/* Tracing begins or continues at ip (TIP.PGE); psb: after a PSB+, as when the thread was scheduled in. So it is
 * without psb, too, more than 64 MTC periods after what was last written. */
void pt_encode_begin(struct pt_encoder *e, uint64_t ip, bool psb);

/* A system call (SYSCALL, SYSENTER) out of user space: TIP.PGD without IP. */
void pt_encode_end(struct pt_encoder *e);

/*
 * An interrupt, signal or fault before the instruction at ip, or a software interrupt that it is (INT3, INT
 * n): FUP with ip, TIP.PGD without (SDM "Packet Generation Scenarios", 11c to 13c).
 */
void pt_encode_async_end(struct pt_encoder *e, uint64_t ip);

/*
 * A transfer from before the instruction at ip to `to`, both traced: FUP, TIP. abort: a transaction's,
 * MODE.TSX before them.
 */
void pt_encode_async(struct pt_encoder *e, uint64_t ip, uint64_t to, bool abort);

/* Branches. A PSB that is due follows them; next: where execution continues. */
void pt_encode_jcc(struct pt_encoder *e, bool taken, uint64_t next);
void pt_encode_indirect(struct pt_encoder *e, uint64_t to);
void pt_encode_ret(struct pt_encoder *e, uint64_t to);

/*
 * A near call, before pt_encode_indirect() when it is indirect; ret: the address after it. Not for a call to
 * ret.
 */
void pt_encode_push(struct pt_encoder *e, uint64_t ret);

/* Writes a PSB+ now, before the instruction at ip. */
void pt_encode_psb(struct pt_encoder *e, uint64_t ip);

/* Writes all packets that are pending, so that the bytes can be cut here. */
void pt_encode_flush(struct pt_encoder *e);

#endif
