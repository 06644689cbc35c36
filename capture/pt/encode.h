/*
 * encode.h - Intel PT packets from what a thread executed: what the hardware would write.
 *
 * One encoder a thread. The caller tells of branches in order, and of time by advancing the clock; the
 * encoder appends bytes. Encodings and conditions: Intel SDM vol. 3, "Intel Processor Trace". User-space
 * tracing only.
 */
#ifndef CAPTURE_PT_ENCODE_H
#define CAPTURE_PT_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pt_encode_config {
	bool tsc, mtc, cyc, retcomp;
	uint32_t mtc_shift; /* MTC every 2^n CTC ticks */
	uint32_t cyc_min;   /* CYC only after so many cycles */
	uint64_t psb_bytes; /* PSB after so many bytes */
};

/* The modelled machine: core cycles drive everything. */
struct pt_model {
	uint64_t cycles; /* of the one core, shared by all threads */
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

struct pt_encoder {
	const struct pt_encode_config *config;
	const struct pt_model *model;
	uint8_t *bytes; /* owned; the caller takes them and sets size to 0 */
	size_t size, room;
	bool no_memory;	 /* bytes were dropped */
	bool enabled;	 /* PacketEn */
	bool want_psb;	 /* a PSB+ is due */
	uint64_t psb_at; /* bytes in all when the last PSB began */
	uint64_t total;
	uint64_t last_ip;
	uint32_t tnt;
	unsigned tnt_n;
	uint64_t tnt_at; /* cycles when the first of them retired */
	uint64_t cyc_at; /* cycles when the last CYC was sent */
	uint64_t ctc_at; /* the CTC tick that was told last */
	/* Two models of the call stack (perf pops at each return, libipt at compressed ones): a return is
	 * compressed when both agree with the truth. */
	uint64_t all[64], compressed[64];
	uint32_t all_n, compressed_n;
};

void pt_encode_init(struct pt_encoder *e, const struct pt_encode_config *config,
		    const struct pt_model *model);
void pt_encode_deinit(struct pt_encoder *e);

/* Tracing begins or goes on at ip (TIP.PGE); psb: behind a PSB+, as when the thread was scheduled in. */
void pt_encode_begin(struct pt_encoder *e, uint64_t ip, bool psb);
/* A system call (SYSCALL, SYSENTER) out of user space: TIP.PGD without IP. */
void pt_encode_end(struct pt_encoder *e);
/*
 * An interrupt, signal or fault before the instruction at ip, or a software interrupt that it is (INT3, INT
 * n): FUP with ip, TIP.PGD without (SDM "Packet Generation Scenarios", 11c to 13c).
 */
void pt_encode_async_end(struct pt_encoder *e, uint64_t ip);
/*
 * From before the instruction at ip to `to`, both traced: FUP, TIP. abort: a transaction's, MODE.TSX before
 * them.
 */
void pt_encode_async(struct pt_encoder *e, uint64_t ip, uint64_t to, bool abort);
/* next: where execution goes on, for a PSB that may be due. */
void pt_encode_jcc(struct pt_encoder *e, bool taken, uint64_t next);
void pt_encode_indirect(struct pt_encoder *e, uint64_t to);
void pt_encode_ret(struct pt_encoder *e, uint64_t to);
/*
 * A near call, before pt_encode_indirect() when it is one: ret is the address behind it. Not for a call to
 * ret.
 */
void pt_encode_push(struct pt_encoder *e, uint64_t ret);
/* A PSB+ now, before the instruction at ip. */
void pt_encode_psb(struct pt_encoder *e, uint64_t ip);
/* All that is pending, so that what was appended can be cut here. */
void pt_encode_flush(struct pt_encoder *e);

#endif
