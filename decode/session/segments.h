/*
 * segments.h - segments of the streams' AUX data that other threads decode ahead (flow/segment.h). See
 * internal.h.
 *
 * AUX data that has come is cut into jobs, at PSBs. The next few of each stream wait for the threads, with what
 * the stream's flow follows now in the host as their assumption, and the process that the job's PSB+ shows by
 * its CR3, if it is known; in a guest, what is known of it by its VMCS and CR3. When the flow comes to a job's
 * begin, and to the begin of each of its segments, it takes over what was made of it. A job that no thread has
 * begun then is the flow's own to decode, so that the session's thread never waits for work that it can do. Of
 * a stream whose assumptions are mostly wrong, as where new processes begin all the time, most jobs are left to
 * the flow.
 */
#ifndef DECODE_SESSION_SEGMENTS_H
#define DECODE_SESSION_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/flow/segment.h"
#include "schema/thread_pool.h"

struct session;
struct stream;
struct piece;

struct pt_segments;

struct pt_segments_options {
	struct pt_thread_pool *pool; /* that has no threads yet */
	unsigned threads;	     /* that it may have */
	size_t job_bytes;	     /* about how many a job has */
	bool every_other; /* job is given: the session's thread is to decode as much as the only other one */
	bool encodes;	  /* the threads encode runs, too (pt_segment_encode()) */
	bool waits;	  /* the session's thread waits for each job that was given: for tests */
	/* What the session's thread does in place of waiting, as one of the pool's. NULL: nothing. */
	pt_thread_pool_work meanwhile;
	void *meanwhile_arg;
};
/* NULL: no memory. */
struct pt_segments *pt_segments_create(const struct pt_segments_options *options,
				       const struct pt_segment_config *config);
/* Some 100,000 branches: a job that is much smaller costs more to give and to take over than it saves. */
#define PT_SEGMENTS_JOB_BYTES 32768
/* Before the pool ends: no thread waits for the session's any more. NULL is fine. */
void pt_segments_end(struct pt_segments *p);
/* After that. NULL is fine. */
void pt_segments_destroy(struct pt_segments *p);

/* The jobs of a stream; zeroed at first. */
struct pt_segment_jobs {
	struct pt_segment_job *first, **last; /* in the order of the AUX data */
	struct pt_segment_job *current;	      /* that is being taken over: the first one, or NULL */
	struct pt_segment *segment; /* of current: the next one, or the one that is being taken over, */
	bool within;		    /* in which the flow is then */
	/* How many may be given: more, the more of the last ones were right about what they assume. */
	unsigned ahead;
	uint64_t current_bytes; /* of current: that were taken over */
	/* Of the last jobs: bytes that were decoded ahead, and that were taken over. */
	uint64_t made_bytes, taken_bytes;
	bool every_other;    /* the last one was such a job, or not */
	uint64_t left_bytes; /* jobs of so many are left to the flow, because too little was taken */
};
void pt_segments_stream_init(struct pt_segment_jobs *jobs);

/* AUX data has come: [bytes, end), of which the first byte is at aux_offset of the stream. It remains
 * there until pt_segments_forget(). */
void pt_segments_add(const struct pt_segments *p, struct pt_segment_jobs *jobs, const uint8_t *bytes,
		     const uint8_t *end, uint64_t aux_offset);

/* Gives jobs of the stream to the threads, if few wait. */
void pt_segments_give(struct pt_segments *p, struct stream *st);

/* Times at which flows may stop, sorted, from now on; the array becomes p's. */
void pt_segments_set_stops(struct pt_segments *p, uint64_t *tsc, size_t count);

/* What is known of whose code comes: becomes p's. NULL: nothing. */
void pt_segments_set_world(struct pt_segments *p, struct pt_segment_world *world);

/* Where the flow is to stop decoding by itself: the begin of the stream's next job or segment in [at, end), or
 * end. */
const uint8_t *pt_segments_limit(const struct pt_segment_jobs *jobs, const uint8_t *at, const uint8_t *end);
/* The flow is at *at, and pt_segments_at() is true there. Takes over what it can, and moves *at.
 * PT_SEGMENT_ENDS: what follows is the flow's to decode, if pt_segments_at() is not true again. */
enum pt_segment_taken pt_segments_take(struct pt_segments *p, struct pt_segment_jobs *jobs, struct pt_flow *f,
				       const uint8_t **at);
/* True when pt_segments_take() may be called at this place. */
bool pt_segments_at(const struct pt_segment_jobs *jobs, const uint8_t *at);

/* Gives up the first jobs, as long as they begin in [bytes, end): the bytes go away. */
void pt_segments_forget(struct pt_segments *p, struct pt_segment_jobs *jobs, const uint8_t *bytes,
			const uint8_t *end);
/* Gives up what begins in [bytes, at), for the flow has passed it. */
void pt_segments_pass(struct pt_segments *p, struct pt_segment_jobs *jobs, const uint8_t *bytes,
		      const uint8_t *at);

/* The flows' graph is about to be recycled: all that was decoded ahead is given up. */
void pt_segments_recycle(struct pt_segments *p);

struct pt_segment_counts pt_segments_counts(const struct pt_segments *p);

#endif
