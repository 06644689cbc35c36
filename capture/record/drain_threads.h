/*
 * drain_threads.h - threads that take AUX data out of the rings: one for the rings of each NUMA node, on a
 * CPU of that node, and one more for each HW_DRAIN_THREAD_RINGS of them. Rounds say what may be taken
 * (drain.h) and do not wait for them.
 *
 * A thread goes around its rings and takes at most a chunk of each in turn, so a full one does not delay the
 * others. To take is to copy: the container's compressor threads do the rest. When those, or the output, are
 * so far behind that their queue is full, the thread leaves the data in the rings, which is counted; what a
 * ring cannot hold is copied to memory as far as drain.h allows, and beyond that the kernel loses it and says
 * so.
 *
 * While the capture's own thread does something that takes long (images, symbols), they look every two
 * milliseconds for rings that fill up. Otherwise they sleep until a round. They block all signals, and have
 * the capabilities and the scheduling class that their creator has when it creates them.
 */
#ifndef CAPTURE_RECORD_DRAIN_THREADS_H
#define CAPTURE_RECORD_DRAIN_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/record/numa.h"

/* At 100 MB/s each, what a quarter of a core copies. */
#define HW_DRAIN_THREAD_RINGS 32

struct hw_drain;
struct hw_drain_threads;

/*
 * For d's rings, which stay where they are. They begin busy. numa NULL: nobody knows. The container's writer
 * has compressor threads. Fewer threads where the system has no more, one at least. NULL: PT_ERR_NO_MEMORY.
 */
struct hw_drain_threads *hw_drain_threads_create(struct hw_drain *d, const struct hw_numa *numa,
						 struct pt_error *e);
void hw_drain_threads_destroy(struct hw_drain_threads *t); /* before the rings and the writer; NULL is fine */

/* busy: the capture is at work, and does not just wait for its rings. NULL is fine. */
void hw_drain_threads_busy(struct hw_drain_threads *t, bool busy);

/* A round has released data. 0, or -1: a thread's error, of the writer. */
int hw_drain_threads_go(struct hw_drain_threads *t, struct pt_error *e);

/* Waits until what was released is taken. 0, or -1 as above. */
int hw_drain_threads_settle(struct hw_drain_threads *t, struct pt_error *e);

/* How often a thread found the compressors' queue full, and how long that lasted in all. NULL: never. */
struct hw_held_back {
	uint64_t times, ns;
};
struct hw_held_back hw_drain_threads_held_back(struct hw_drain_threads *t);

/* How many there are. */
unsigned hw_drain_threads_count(const struct hw_drain_threads *t);

#endif
