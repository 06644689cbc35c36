/*
 * drain.h - rounds: what all rings hold is written to the container, in an order that its reader can rely on.
 *
 * A round is: (1) it reads how far each ring's AUX data is, (2) it puts all rings' records, (3) it releases
 * the AUX data up to (1), which may be taken from then on. A record that AUX data needs (the mapping of its
 * code, say) was in its ring when that AUX data was published, so it is in the container before it. Each
 * piece of AUX data gets the flags and the time of its PERF_RECORD_AUX. aux_tail moves when the container's
 * writer has the bytes.
 *
 * Released data is taken by drain threads (drain_threads.h), which a round does not wait for, or without them
 * by the round itself. Each stream's pieces are in order, pieces of different streams are mixed. The writer
 * has compressor threads, so to take is to copy.
 *
 * While the capture writes much (the images of what was just mapped, the whole kernel at the beginning) the
 * rings go on filling. hw_drain_spill(), called after each chunk, and the drain threads copy what a ring
 * holds to memory when the ring is over a third full: of AUX data up to HW_SPILL_AUX_MAX, of records up to
 * HW_SPILL_RECORDS_MAX for all rings together.
 *
 * A loss of AUX data (PERF_AUX_FLAG_TRUNCATED) also switches the events of the ring off. They are started
 * again as soon as the kernel has room: within a round, too, which takes long when it writes images. Not
 * earlier: an event that starts without room is off at once, and no record reports that
 * (perf_aux_output_begin()).
 *
 * AUX data in samples (PERF_SAMPLE_AUX) is cut out of them and put one round later: by then all records that
 * it needs are in the container.
 *
 * Where a ring records the switches of all tasks, the target's own switch records only say which of those
 * tasks are traced; they are used here and not put.
 *
 * PTC_ROUND states a time that all AUX data still to come is later than. Data that the kernel has not
 * published may be as old as the last time that it published something in that ring; a ring of which
 * the task has left its CPU has nothing unpublished.
 */
#ifndef CAPTURE_RECORD_DRAIN_H
#define CAPTURE_RECORD_DRAIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/pt/aux_sample.h"
#include "capture/record/aux_tail.h"
#include "capture/record/byte_buffer.h"
#include "capture/record/drain_threads.h"
#include "capture/record/jit.h"
#include "capture/record/ring.h"
#include "schema/container.h"

#define HW_DRAIN_ATTRS	 256
#define HW_SPILL_AUX_MAX ((uint64_t)256 << 20) /* bytes */
/*
 * Bytes. Sorting them takes twice as much for the time of a round; none of it is kept when they have been
 * put.
 */
#define HW_SPILL_RECORDS_MAX ((uint64_t)64 << 20)

/* What was lost, summed up for people; each loss is in the container in its place as well. */
struct hw_losses {
	uint64_t truncated; /* times that AUX data was lost: the buffer was full */
	uint64_t partial;   /* pieces of AUX data with gaps inside */
	uint64_t records;   /* sideband records that the kernel dropped (PERF_RECORD_LOST) */
};

/* A PERF_RECORD_AUX. */
struct hw_aux_record {
	uint64_t offset, size, flags, time_ns;
};

/* AUX data that was copied out of its ring: a block of HW_SPILL_BLOCK bytes, of which size are used. */
#define HW_SPILL_BLOCK ((uint64_t)64 << 10)
struct hw_spilled_aux {
	struct hw_spilled_aux *next; /* the bytes that follow; of unused blocks, the next one */
	uint64_t offset, size;
	uint8_t bytes[];
};

struct hw_drain_ring {
	/* What it is: filled by its owner. */
	struct hw_ring ring;
	int32_t cpu, tid;
	uint32_t stream; /* the container's; 0: this ring has no AUX data */
	bool overwrite;	 /* its AUX data is read by snapshots, not by rounds */
	bool task;	 /* traced tasks come and go: an absent one leaves nothing unpublished */
	/* It has PERF_RECORD_SWITCH_CPU_WIDE of all tasks; the target's PERF_RECORD_SWITCH repeats some of
	 * them. */
	bool all_switches;

	/* Zeroed is initialized. Around the tails and what follows, up to published_ns. */
	pthread_mutex_t lock;

	/* What was copied out of it. */
	struct {
		struct hw_spilled_aux *aux, *aux_last;
		struct hw_bytes records;
		bool reading; /* the AUX area is being read: not to be copied */
		struct pt_error error;
	} spill;

	/* A loss of AUX data, seen in the records before they are read. */
	struct {
		uint64_t scanned; /* position in the data area */
		bool due;	  /* its events are to be started again, */
		uint64_t at;	  /* when the kernel has got back the AUX area up to this position */
	} restart;

	/* Its AUX data. */
	uint64_t taken;			   /* position of the first byte that the writer does not have */
	struct hw_aux_record *aux_records; /* of data that is not taken: from aux_record_first on, in order */
	size_t aux_record_first, aux_record_count, aux_record_room;
	uint64_t released, before; /* up to here it may be taken: by the last round, by the one before */
	uint64_t published_ns; /* no unpublished AUX data is older; set by the owner to the capture's start */

	/* Of the rounds. */
	uint64_t head;	  /* aux_head when the round began */
	size_t raw_bytes; /* its part of hw_drain.raw */
	enum { HW_TASK_AWAY, HW_TASK_ON, HW_TASK_LEAVING } presence;
	struct aux_sample samples;

	uint64_t lost; /* sum of its PERF_RECORD_LOST */
};

/* A record that is about to be put. */
struct hw_record {
	const uint8_t *bytes; /* header.size of them; the drain's, until the next record */
	struct perf_event_header header;
	uint32_t attr;	  /* index of its event's attr */
	bool has_id;	  /* false: it is too short for a sample id, and the fields below are not known */
	int32_t pid, tid; /* -1: not known */
	uint64_t time_ns; /* perf's clock; 0: not known */
};

/* The caller's part: sees each record before it is put, and may put images. 0, or -1 (e filled). */
typedef int hw_record_fn(void *arg, const struct hw_record *r, struct pt_error *e);

/*
 * The events that write into the rings; all as sample_id.h has it, and with no other sample_type bits than
 * IP, RAW and AUX.
 */
struct hw_drain_events {
	uint64_t *ids;	 /* sample ids, sorted */
	uint32_t *attrs; /* the attr index of each */
	size_t count;
	uint32_t sideband_attr; /* records that are no samples are put under it */
	uint64_t sample_types[HW_DRAIN_ATTRS];
};

/* Zeroed but for what the owner sets. */
struct hw_drain {
	/* Set by the owner. */
	struct ptc_writer *w;
	struct hw_drain_threads *threads; /* NULL: a round takes AUX data itself */
	struct hw_drain_ring *rings;
	size_t ring_count;
	struct hw_drain_events events; /* its arrays are freed by hw_drain_deinit() */
	hw_record_fn *on_record;
	/* A process was begun, by a record of the round; before any of these is put, for each CPU has a
	 * ring: what the child did may be in one before. NULL: nobody asks. */
	void (*forked)(void *arg, int32_t child, int32_t parent);
	/* After all rings' records of a round, before its AUX data; NULL: nobody. 0, or -1. */
	int (*on_records_end)(void *arg, struct pt_error *e);
	/* Starts the events of a ring again, from any thread, one at a time; NULL: nobody does. */
	void (*restart)(void *arg, size_t ring);
	void *arg;
	bool jit_always;    /* it is read in each round: the last ones */
	struct hw_jit *jit; /* code that is made at run time is read; NULL: not */
	/* Of each ring, under its lock: the end of what the container has. NULL: not asked for. */
	struct hw_aux_tail *tails;

	/* What the rounds found. */
	struct hw_losses losses;
	uint64_t aux_bytes;
	uint64_t sample_count;	/* with PERF_SAMPLE_AUX */
	uint64_t empty_samples; /* of them those that the kernel gave no AUX data */
	uint64_t round_ns;	/* the last PTC_ROUND's */
	/* Of the fullest AUX area, or of the compressors' queue, when the round began: percent. */
	unsigned fill;

	uint64_t spilled_record_bytes; /* of all rings; atomic */
	struct {
		pthread_mutex_t lock; /* as restart_lock */
		struct hw_spilled_aux *unused;
		/* Of blocks. The system gets none back before the end: to get one anew takes long. */
		uint64_t used_bytes, bytes;
	} blocks;
	pthread_mutex_t restart_lock; /* zeroed is initialized; within a ring's */
	bool no_restart;

	/* Of the round that runs: the rings' records, those that are put next by attr, samples' AUX data for
	 * this round and the next. */
	struct hw_bytes raw, sorted[HW_DRAIN_ATTRS], samples, next_samples;
};

/*
 * One round. now_ns: perf's clock, read before (0: unknown, then no PTC_ROUND is put). 0, or -1: the errors
 * of the writer, the rings and on_record.
 */
int hw_drain_round(struct hw_drain *d, uint64_t now_ns, struct pt_error *e);

/* Puts the records that on_record() has had and that are not in the container yet, in a round. 0, or -1: the
 * errors of the writer. */
int hw_drain_put_records(struct hw_drain *d, struct pt_error *e);

/* Waits until all that rounds released is taken. 0, or -1: the drain threads' error. */
int hw_drain_settle(struct hw_drain *d, struct pt_error *e);

/*
 * Whether restart() may be called: false from the moment on that events are to be off. At the beginning it is
 * true.
 */
void hw_drain_allow_restart(struct hw_drain *d, bool allow);

/*
 * Copies out of the rings what would soon be lost, and lets lost events start again. From any thread;
 * on_chunk of the writer may call it inside a round.
 */
void hw_drain_spill(struct hw_drain *d);

/* Frees what it holds and what its rings hold beside their memory. */
void hw_drain_deinit(struct hw_drain *d);

#endif
