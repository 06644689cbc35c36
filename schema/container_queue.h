/*
 * container_queue.h - a container's compressor threads: chunks in the order in which they were put,
 * compressed by several threads at the same time and written in that order, by whichever thread has just made
 * the next one ready.
 *
 * A chunk's payload is handed over, not copied, where its buffer is not much too large for it. Errors of the
 * threads are kept: after one nothing is written any more.
 */
#ifndef SCHEMA_CONTAINER_QUEUE_H
#define SCHEMA_CONTAINER_QUEUE_H

#include "schema/container_chunk.h"

/* As ptc_writer_threads(). NULL: PT_ERR_NO_MEMORY. */
struct ptc_queue *ptc_queue_create(struct ptc_writer *w, unsigned count, uint64_t max_bytes,
				   struct pt_error *e);

/* Ends the threads; what was not written is dropped. NULL is fine. */
void ptc_queue_destroy(struct ptc_queue *q);

/*
 * The next chunk: takes the payload in *raw, which becomes another buffer, perhaps an empty one. Waits for
 * room. From any thread. 0, or -1: an error of the threads, PT_ERR_NO_MEMORY.
 */
int ptc_queue_put(struct ptc_queue *q, const struct ptc_new_chunk *c, struct ptc_buffer *raw,
		  struct pt_error *e);

/* Waits until all is written. 0, or -1: the threads' error. */
int ptc_queue_finish(struct ptc_queue *q, struct pt_error *e);

/* The same for some time (ms < 1000): 1, not all is written yet. */
int ptc_queue_wait(struct ptc_queue *q, unsigned ms, struct pt_error *e);

void ptc_queue_load(struct ptc_queue *q, struct ptc_load *ret);

#endif
