/* container_queue.c - see container_queue.h. */
#include "schema/container_queue.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/thread.h"

enum {
	SPARE_MIN = 16384, /* bytes: the system's malloc() is quick for less */
	KEPT_MAX = 2 << 20,
	/*
	 * Small chunks are compressed and written several at a time: to wake a thread and to call write()
	 * takes longer.
	 */
	BATCH_JOBS = 64,
	BATCH_BYTES = 64 << 10,
	/* A payload that is smaller than its buffer by this factor is copied out of it. */
	OVERSIZE = 4
};

struct job {
	struct job *next; /* that was put after it */
	struct ptc_new_chunk chunk;
	int level;
	struct ptc_buffer buffer; /* the payload; when packed: header and frame */
	size_t stored;		  /* bytes of the frame */
	bool packed;
};

/*
 * At the beginning of a buffer that nobody uses. Its pages are there already, which to get takes longer than
 * to compress.
 */
struct spare {
	struct spare *next;
	size_t room;
};

struct compressor {
	struct ptc_queue *queue;
	struct ptc_packer packer;
	pthread_t thread;
};

struct ptc_queue {
	struct ptc_writer *w;
	struct compressor *compressors;
	unsigned started;
	uint64_t max_bytes;
	pthread_mutex_t lock; /* around what follows */
	pthread_cond_t work, written;
	unsigned waiters;	  /* for written */
	struct job *first, *last; /* in the order of the container */
	struct job *to_pack;	  /* the first that no thread has taken */
	/* Of the thread that writes: what it writes at once. */
	struct job *batch_jobs[BATCH_JOBS];
	uint8_t *batch; /* BATCH_BYTES */
	uint64_t bytes; /* of all jobs' buffers */
	bool writing;	/* a thread writes `first` */
	bool end, failed;
	struct pt_error error;
	uint64_t waits, wait_ns;
	struct spare *spares; /* the last one that was used first: it may be in a cache still */
	uint64_t spare_bytes;
};

/* ---- Buffers ---- */

/* A bit more than may wait: a buffer is larger than its payload. */
static uint64_t spare_limit(const struct ptc_queue *q)
{
	return q->max_bytes + q->max_bytes / 4;
}

/* A spare buffer for so many bytes; an empty one when there is none. */
static struct ptc_buffer take_spare(struct ptc_queue *q, size_t bytes)
{
	for (struct spare **at = &q->spares; *at; at = &(*at)->next) {
		struct spare *s = *at;
		struct ptc_buffer b = {(uint8_t *)s, s->room};

		if (s->room < bytes || s->room / OVERSIZE > bytes)
			continue;
		*at = s->next;
		q->spare_bytes -= b.room;
		return b;
	}
	return (struct ptc_buffer){0};
}

/* Frees spare buffers until all is within the limit. */
static void trim_spares(struct ptc_queue *q, uint64_t limit)
{
	while (q->spares && q->bytes + q->spare_bytes > limit) {
		struct spare *s = q->spares;

		q->spares = s->next;
		q->spare_bytes -= s->room;
		free(s);
	}
}

static void give_back(struct ptc_queue *q, struct ptc_buffer b)
{
	struct spare *s = (struct spare *)(void *)b.bytes;

	if (b.room < SPARE_MIN || q->bytes + q->spare_bytes + b.room > spare_limit(q)) {
		free(b.bytes);
		return;
	}
	*s = (struct spare){q->spares, b.room};
	q->spares = s;
	q->spare_bytes += b.room;
}

/* ---- Threads ---- */

static void wait_written(struct ptc_queue *q)
{
	q->waiters++;
	pthread_cond_wait(&q->written, &q->lock);
	q->waiters--;
}

static void wake_waiters(struct ptc_queue *q)
{
	if (q->waiters)
		pthread_cond_broadcast(&q->written);
}

static void fail(struct ptc_queue *q, const struct pt_error *e)
{
	if (!q->failed)
		q->error = *e;
	q->failed = true;
	wake_waiters(q);
}

static size_t chunk_bytes(const struct job *job)
{
	return PTC_CHUNK_HEADER_BYTES + job->stored;
}

/*
 * The first jobs that are packed and are written with one write(), into batch_jobs: one, or several small
 * ones. Their number.
 */
static unsigned next_batch(struct ptc_queue *q)
{
	size_t bytes = 0;
	unsigned n = 0;

	for (struct job *job = q->first; job && job->packed && n < BATCH_JOBS; job = job->next) {
		bytes += chunk_bytes(job);
		if (n && bytes > BATCH_BYTES)
			break;
		q->batch_jobs[n++] = job;
	}
	return n;
}

static int write_batch(struct ptc_queue *q, unsigned n, struct pt_error *e)
{
	struct job *job = q->batch_jobs[0];
	uint64_t at = q->w->written;
	size_t bytes = 0;

	if (n == 1)
		return ptc_append(q->w, &job->chunk, job->buffer.bytes, job->stored, e);
	for (unsigned i = 0; i < n; i++) {
		job = q->batch_jobs[i];
		if (ptc_seal(q->w, &job->chunk, job->buffer.bytes, job->stored, at + bytes, e))
			return -1;
		memcpy(q->batch + bytes, job->buffer.bytes, chunk_bytes(job));
		bytes += chunk_bytes(job);
	}
	return ptc_write_all(q->w, q->batch, bytes, e);
}

/* Frees the first job. */
static void end_first(struct ptc_queue *q)
{
	struct job *job = q->first;

	q->first = job->next;
	if (!q->first)
		q->last = NULL;
	q->bytes -= job->buffer.room;
	give_back(q, job->buffer);
	free(job);
}

/* Writes the first jobs, as far as they are packed, unless another thread does; q->lock is held. */
static void write_packed(struct ptc_queue *q)
{
	while (!q->writing && q->first && q->first->packed) {
		unsigned n = next_batch(q);
		struct pt_error e = {0};

		if (!q->failed) {
			int r;

			q->writing = true;
			pthread_mutex_unlock(&q->lock);
			r = write_batch(q, n, &e);
			pthread_mutex_lock(&q->lock);
			q->writing = false;
			if (r)
				fail(q, &e);
		}
		while (n--)
			end_first(q);
		wake_waiters(q);
	}
}

/* A frame of so many bytes moves out of the thread's buffer into one of its size. False: no memory. */
static bool shrink(struct compressor *me, struct job *job, size_t bytes)
{
	uint8_t *p = malloc(bytes);

	if (!p)
		return false;
	memcpy(p, me->packer.stored.bytes, bytes);
	free(job->buffer.bytes);
	job->buffer.bytes = p;
	job->buffer.room = bytes;
	return true;
}

/*
 * The job's payload becomes its frame. slow_output: it will have to wait, and is to take no more memory than
 * it must. *ret_unused: a buffer that is left over. 0, or -1.
 */
static int pack(struct compressor *me, struct job *job, bool slow_output, struct ptc_buffer *ret_unused,
		struct pt_error *e)
{
	struct ptc_buffer payload = job->buffer;
	size_t bytes;

	if ((!me->packer.zstd && ptc_packer_init(&me->packer, e)) ||
	    ptc_pack(&me->packer, &job->chunk, job->level, &payload, &job->stored, e))
		return -1;
	bytes = PTC_CHUNK_HEADER_BYTES + job->stored;
	if (slow_output && bytes < payload.room / OVERSIZE && shrink(me, job, bytes))
		return 0;
	if (payload.room < SPARE_MIN) { /* it has the room of a chunk */
		memcpy(payload.bytes, me->packer.stored.bytes, bytes);
		return 0;
	}
	job->buffer = me->packer.stored;
	me->packer.stored = payload;
	/* Each thread keeps one for what is usual. */
	if (payload.room > KEPT_MAX) {
		*ret_unused = payload;
		me->packer.stored = (struct ptc_buffer){0};
	}
	return 0;
}

/* Takes the next job, or several small ones. *ret_count: how many. */
static struct job *take_jobs(struct ptc_queue *q, unsigned *ret_count)
{
	struct job *first = q->to_pack;
	size_t bytes = 0;
	unsigned n = 0;

	while (q->to_pack && n < BATCH_JOBS) {
		bytes += q->to_pack->chunk.raw_bytes;
		if (n && bytes > BATCH_BYTES)
			break;
		q->to_pack = q->to_pack->next;
		n++;
	}
	*ret_count = n;
	return first;
}

/* Packs a job that this thread has taken; q->lock is held. */
static void pack_job(struct compressor *me, struct job *job)
{
	struct ptc_queue *q = me->queue;
	bool slow_output = q->bytes > q->max_bytes / 2;
	uint64_t room = job->buffer.room;
	struct ptc_buffer unused = {0};
	struct pt_error e = {0};
	int r;

	pthread_mutex_unlock(&q->lock);
	r = pack(me, job, slow_output, &unused, &e);
	pthread_mutex_lock(&q->lock);
	q->bytes += job->buffer.room - room;
	give_back(q, unused);
	if (r)
		fail(q, &e);
}

static void *compressor_main(void *arg)
{
	struct compressor *me = arg;
	struct ptc_queue *q = me->queue;
	struct job *job;
	unsigned n;

	pthread_mutex_lock(&q->lock);
	for (;;) {
		while (!q->to_pack && !q->end)
			pthread_cond_wait(&q->work, &q->lock);
		job = take_jobs(q, &n);
		if (!job)
			break;
		while (n--) {
			struct job *next = job->next; /* the last one of all may have none yet */

			if (!q->failed)
				pack_job(me, job);
			job->packed = true;
			job = next;
		}
		wake_waiters(q);
		write_packed(q);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* 0, or an errno. */
static int start(struct compressor *c)
{
	struct sched_param normal = {.sched_priority = 0};
	pthread_attr_t attr;
	int r = pthread_attr_init(&attr);

	if (r)
		return r;
	/* Who drains the rings may be in a real-time class, and is not to wait for who compresses. */
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &normal);
	r = pt_thread_create(&c->thread, &attr, compressor_main, c);
	pthread_attr_destroy(&attr);
	return r;
}

struct ptc_queue *ptc_queue_create(struct ptc_writer *w, unsigned count, uint64_t max_bytes,
				   struct pt_error *e)
{
	struct ptc_queue *q = calloc(1, sizeof *q);

	if (!q || !(q->compressors = calloc(count, sizeof *q->compressors)) ||
	    !(q->batch = malloc(BATCH_BYTES))) {
		free(q ? q->compressors : NULL);
		free(q);
		pt_fail_no_memory(e, "compressor threads");
		return NULL;
	}
	q->w = w;
	q->max_bytes = max_bytes;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->work, NULL);
	pthread_cond_init(&q->written, NULL);
	for (unsigned i = 0; i < count; i++) {
		q->compressors[i].queue = q;
		if (start(&q->compressors[i]))
			break;
		q->started++;
	}
	if (q->started)
		return q;
	ptc_queue_destroy(q);
	pt_fail_no_memory(e, "compressor threads");
	return NULL;
}

void ptc_queue_destroy(struct ptc_queue *q)
{
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->end = q->failed = true;
	pthread_cond_broadcast(&q->work);
	pthread_mutex_unlock(&q->lock);
	for (unsigned i = 0; i < q->started; i++) {
		pthread_join(q->compressors[i].thread, NULL);
		ptc_packer_deinit(&q->compressors[i].packer);
	}
	q->bytes = 0;
	trim_spares(q, 0);
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->work);
	pthread_cond_destroy(&q->written);
	free(q->compressors);
	free(q->batch);
	free(q);
}

/* ---- Putting ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void wait_for_room(struct ptc_queue *q, size_t bytes)
{
	uint64_t began;

	if (q->failed || q->bytes == 0 || q->bytes + bytes <= q->max_bytes)
		return;
	began = now_ns();
	q->waits++;
	while (!q->failed && q->bytes && q->bytes + bytes > q->max_bytes)
		wait_written(q);
	q->wait_ns += now_ns() - began;
}

/* Moves the payload into the job: its buffer, or, when that is too large, its bytes. 0, or -1. */
static int hand_over(struct ptc_queue *q, struct job *job, struct ptc_buffer *raw, struct pt_error *e)
{
	size_t bytes = ptc_chunk_room(job->chunk.raw_bytes), room = raw->room;

	if (room / OVERSIZE <= bytes) {
		job->buffer = *raw;
		*raw = take_spare(q, room);
		return 0;
	}
	job->buffer = take_spare(q, bytes);
	if (!job->buffer.bytes)
		job->buffer = (struct ptc_buffer){malloc(bytes), bytes};
	if (!job->buffer.bytes)
		return pt_fail_no_memory(e, "writing the container");
	memcpy(job->buffer.bytes, raw->bytes, job->chunk.raw_bytes);
	return 0;
}

int ptc_queue_put(struct ptc_queue *q, const struct ptc_new_chunk *c, struct ptc_buffer *raw,
		  struct pt_error *e)
{
	struct job *job = calloc(1, sizeof *job);
	int r = 0;

	if (!job)
		return pt_fail_no_memory(e, "writing the container");
	job->chunk = *c;
	job->level = __atomic_load_n(&q->w->level, __ATOMIC_RELAXED);
	pthread_mutex_lock(&q->lock);
	wait_for_room(q, c->raw_bytes);
	if (q->failed) {
		*e = q->error;
		r = -1;
	} else {
		r = hand_over(q, job, raw, e);
	}
	if (r == 0) {
		q->bytes += job->buffer.room;
		trim_spares(q, spare_limit(q));
		if (q->last)
			q->last->next = job;
		else
			q->first = job;
		q->last = job;
		if (!q->to_pack)
			q->to_pack = job;
		pthread_cond_signal(&q->work);
	}
	pthread_mutex_unlock(&q->lock);
	if (r)
		free(job);
	return r;
}

int ptc_queue_finish(struct ptc_queue *q, struct pt_error *e)
{
	int r;

	while ((r = ptc_queue_wait(q, 500, e)) > 0)
		;
	return r;
}

int ptc_queue_wait(struct ptc_queue *q, unsigned ms, struct pt_error *e)
{
	struct timespec until;
	int r;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&q->lock);
	if (q->first && !q->failed) {
		q->waiters++;
		pthread_cond_timedwait(&q->written, &q->lock, &until);
		q->waiters--;
	}
	r = q->failed ? -1 : q->first != NULL;
	if (q->failed)
		*e = q->error;
	pthread_mutex_unlock(&q->lock);
	return r;
}

void ptc_queue_load(struct ptc_queue *q, struct ptc_load *ret)
{
	pthread_mutex_lock(&q->lock);
	*ret = (struct ptc_load){q->bytes, q->max_bytes, q->waits, q->wait_ns};
	pthread_mutex_unlock(&q->lock);
}
