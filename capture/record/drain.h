/*
 * drain.h - rounds: what all rings hold goes into the container, in an order that its reader can rely on.
 *
 * A round is: how far each ring's AUX data is (1), then all rings' records (2), then the AUX data up to (1). A record that
 * AUX data needs (the mapping of its code, say) was in its ring when that AUX data was published, so it is in the container
 * before it. Each piece of AUX data gets the flags and the time of its PERF_RECORD_AUX. aux_tail moves when the container has
 * the bytes.
 *
 * With readers (drain_threads.h) the AUX data of several rings is taken side by side: each stream's in order, streams mixed.
 *
 * While much is written (the images of what has just been mapped, all of the kernel at the beginning) the rings go on filling.
 * hw_drain_stash(), called after each chunk and from another thread (spill_thread.h), copies what is in a ring that is over
 * a third full to memory, of AUX data up to
 * HW_STASH_MAX for all rings together, of records HW_EARLY_MAX. AUX data is copied for no other reason.
 *
 * AUX data in samples (PERF_SAMPLE_AUX) is taken out of them, and put a round later: by then all records that it needs are there.
 *
 * Where a ring has the switches of all tasks, those of the target, which say which are its, are used here and not put.
 *
 * PTC_ROUND tells a time that all AUX data still to come is later than: what the kernel has not published may be as old as
 * the last time that it published something in that ring; a ring whose task has left its CPU has nothing unpublished.
 */
#ifndef CAPTURE_RECORD_DRAIN_H
#define CAPTURE_RECORD_DRAIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/pt/aux_sample.h"
#include "capture/record/drain_threads.h"
#include "capture/record/ring.h"
#include "schema/container.h"

#define HW_DRAIN_ATTRS 64
#define HW_STASH_MAX   ((uint64_t)256 << 20) /* bytes of AUX data */
/* Of records; sorting them takes as much twice more, and none of it is kept when they have been put. */
#define HW_EARLY_MAX ((uint64_t)64 << 20)

/* What was lost, summed up for people; each loss is in the container in its place as well. */
struct hw_losses {
	uint64_t truncated; /* times that AUX data was lost: the buffer was full */
	uint64_t partial;   /* pieces of AUX data with gaps inside */
	uint64_t records;   /* sideband records that the kernel dropped (PERF_RECORD_LOST) */
};

struct hw_aux_record {
	uint64_t offset, size, flags, time_ns;
};

/* AUX data that was copied out of its ring, in order. */
struct hw_stash {
	struct hw_stash *next;
	uint64_t offset, size;
	uint8_t bytes[];
};

struct hw_drain_ring {
	struct hw_ring ring;
	struct hw_stash *stash, *stash_last;
	struct hw_bytes early; /* records that were copied out of it */
	bool busy;	       /* its ring is being read: not to be stashed */
	uint64_t taken;	       /* position of the first byte that is not in the container */
	int32_t cpu, tid;
	uint32_t stream; /* the container's; 0: this ring has no AUX data */
	bool overwrite;	 /* its AUX data is taken by snapshots, not by rounds */
	bool task;	 /* traced tasks come and go: an absent one leaves nothing unpublished */
	/* PERF_RECORD_SWITCH_CPU_WIDE tells of all tasks; PERF_RECORD_SWITCH, of the target, says the same again */
	bool all_switches;
	struct hw_aux_record *records; /* PERF_RECORD_AUX of data not yet put, in order */
	size_t record_count, record_room;
	uint64_t head, last_head; /* aux_head of this round and the one before */
	uint64_t published_ns;	  /* no unpublished AUX data is older */
	enum { HW_TASK_AWAY, HW_TASK_ON, HW_TASK_LEAVING } presence;
	bool truncated; /* in this round: the event has to be started again */
	uint64_t lost;	/* sum of its PERF_RECORD_LOST */
	struct aux_sample samples;
};

/* The caller's part: each record before it is put. It may put images. 0, or -1 (e filled). */
typedef int hw_record_fn(void *arg, struct hw_drain_ring *ring, const uint8_t *record, uint64_t time_ns,
			 int32_t pid, int32_t tid, uint32_t attr, struct pt_error *e);

struct hw_drain {
	struct ptc_writer *w;
	struct hw_drain_threads *readers; /* the caller's; NULL: none */
	struct hw_drain_ring *rings;	  /* the caller's */
	size_t ring_count;
	/* Sample id -> attr index, of all events; all have sample_id_all and the sample_type HW_SAMPLE_TYPE, and no other
	 * field that stands before or behind them but IP, RAW and AUX. */
	uint64_t *ids;
	uint32_t *id_attrs;
	size_t id_count;
	uint32_t sideband_attr; /* what is no sample goes under it */
	uint64_t sample_types[HW_DRAIN_ATTRS];
	hw_record_fn *on_record;
	void *arg;
	struct hw_losses losses;
	uint64_t aux_bytes, sideband_bytes;
	/* PTHREAD_MUTEX_INITIALIZER (zeroes). Around what hw_drain_stash() uses: the rings' tails, early, stash, taken, busy. */
	pthread_mutex_t lock;
	uint64_t round_ns;	     /* the last PTC_ROUND's */
	uint64_t stashed;	     /* bytes, in all rings' stashes */
	uint64_t early;		     /* bytes, in all rings' early records */
	struct pt_error early_error; /* of hw_drain_stash(), for the next round */
	unsigned fill;		     /* of the fullest AUX ring in this round, percent */
	struct hw_bytes raw;	     /* scratch */
	struct hw_bytes sorted[HW_DRAIN_ATTRS];
	struct hw_bytes samples, next_samples; /* AUX data of samples: to be put in this round, in the next */
	uint64_t sample_count,
	    empty_samples; /* with PERF_SAMPLE_AUX; those that the kernel gave no AUX data */
};

#define HW_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* One round; now_ns: the perf clock, read before (0: unknown, then no PTC_ROUND is put). 0, or -1: the writer's and the
 * rings' errors, and on_record's. */
int hw_drain_round(struct hw_drain *d, uint64_t now_ns, struct pt_error *e);
void hw_drain_stash(struct hw_drain *d);
void hw_drain_deinit(struct hw_drain *d); /* frees what it holds; not the rings' memory */

#endif
