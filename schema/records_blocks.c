/* records_blocks.c - see records_blocks.h. */
#include "schema/records_blocks.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "schema/crc32c.h"
#include "schema/records_format.h"
#include "schema/thread_pool.h"

enum {
	BLOCK_ROOM = PTR_BLOCK_HEADER_BYTES + PTR_BLOCK_MAX,
	WAITED_DIVISOR = 4 /* many have waited: more than one of so many */
};

struct ptr_blocks {
	int fd;
	const char *name; /* in messages */
	uint32_t count;
	uint8_t *filled; /* header and payload */
	uint8_t *other;	 /* the same, NULL without a pool */
	bool failed;	 /* error says why */
	struct pt_error error;

	struct pt_thread_pool *pool; /* NULL: who puts a block writes it */
	uint64_t put, waited;	     /* blocks; of these, that another one was being written */
	pthread_mutex_t mutex; /* of what follows, and failed, error and count, where other is not NULL */
	pthread_cond_t written;
	/* The block that is to be written; NULL: none. Without the mutex only whether there is one is asked. */
	_Atomic(uint8_t *) full;
	uint32_t full_bytes;
	bool busy;  /* it is being written */
	bool waits; /* who puts blocks, until it is */
};

struct ptr_blocks *ptr_blocks_create(int fd, const char *name, struct pt_error *e)
{
	struct ptr_blocks *b = calloc(1, sizeof *b);

	if (b)
		b->filled = malloc(BLOCK_ROOM);
	if (b && b->filled) {
		b->fd = fd;
		b->name = name;
		return b;
	}
	free(b);
	pt_fail_no_memory(e, "the record stream");
	return NULL;
}

static int write_all(const struct ptr_blocks *b, const uint8_t *p, size_t n, struct pt_error *e)
{
	while (n) {
		ssize_t done = write(b->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return pt_fail_errno(e, "cannot write %s", b->name);
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

static int write_block(const struct ptr_blocks *b, uint8_t *block, uint32_t size, struct pt_error *e)
{
	memcpy(block, PTR_BLOCK_MAGIC, 4);
	ptr_store_u32(block + 4, b->count);
	ptr_store_u32(block + 8, size);
	ptr_store_u32(block + 12, ptc_crc32c(block + PTR_BLOCK_HEADER_BYTES, size));
	ptr_store_u32(block + 16, (uint32_t)crc32(0, block, 16));
	return b->fd == PTR_NO_FILE ? 0 : write_all(b, block, PTR_BLOCK_HEADER_BYTES + size, e);
}

/* ---- In a pool's threads ---------------------------------------------------------------------------- */

/* Writes the block that is full, if no other thread does. The mutex is held. False: there is none to write. */
static bool write_full(struct ptr_blocks *b)
{
	struct pt_error e;
	int r;

	if (!b->full || b->busy)
		return false;
	b->busy = true;
	pthread_mutex_unlock(&b->mutex);
	r = write_block(b, b->full, b->full_bytes, &e);
	pthread_mutex_lock(&b->mutex);
	b->busy = false;
	b->full = NULL;
	b->count++;
	if (r < 0) {
		b->failed = true;
		b->error = e;
	}
	if (b->waits)
		pthread_cond_signal(&b->written);
	return true;
}

static bool work(void *arg, unsigned thread)
{
	struct ptr_blocks *b = arg;
	bool done;

	(void)thread;
	if (!b->full)
		return false;
	pthread_mutex_lock(&b->mutex);
	done = write_full(b);
	pthread_mutex_unlock(&b->mutex);
	return done;
}

void ptr_blocks_use_pool(struct ptr_blocks *b, struct pt_thread_pool *pool)
{
	b->pool = pool;
	if (!pool || b->other)
		return;
	b->other = malloc(BLOCK_ROOM);
	if (!b->other) {
		b->pool = NULL;
		return;
	}
	pthread_mutex_init(&b->mutex, NULL);
	pthread_cond_init(&b->written, NULL);
	pt_thread_pool_add(pool, work, b);
}

/* No block is to be written then. The mutex is held. */
static void wait_until_written(struct ptr_blocks *b)
{
	while (b->full) {
		if (write_full(b))
			continue;
		b->waits = true;
		pthread_cond_wait(&b->written, &b->mutex);
		b->waits = false;
	}
}

static int failed(const struct ptr_blocks *b, struct pt_error *e)
{
	*e = b->error;
	return -1;
}

/* Gives the block to the pool's threads, when the one before is written. */
static int give(struct ptr_blocks *b, uint32_t size, struct pt_error *e)
{
	uint8_t *next = b->other;
	int r = 0;

	pthread_mutex_lock(&b->mutex);
	b->put++;
	b->waited += b->busy;
	wait_until_written(b);
	if (b->failed) {
		r = failed(b, e);
	} else {
		b->full = b->other = b->filled;
		b->filled = next;
		b->full_bytes = size;
	}
	pthread_mutex_unlock(&b->mutex);
	if (r == 0 && b->pool)
		pt_thread_pool_wake(b->pool);
	return r;
}

void ptr_blocks_destroy(struct ptr_blocks *b)
{
	if (!b)
		return;
	if (b->other) {
		pthread_cond_destroy(&b->written);
		pthread_mutex_destroy(&b->mutex);
	}
	free(b->filled);
	free(b->other);
	free(b);
}

/* ---- Blocks ----------------------------------------------------------------------------------------- */

uint8_t *ptr_blocks_room(struct ptr_blocks *b)
{
	return b->filled + PTR_BLOCK_HEADER_BYTES;
}

int ptr_blocks_put(struct ptr_blocks *b, uint32_t size, struct pt_error *e)
{
	if (b->other)
		return give(b, size, e);
	if (b->failed)
		return failed(b, e);
	if (write_block(b, b->filled, size, &b->error) < 0) {
		b->failed = true;
		return failed(b, e);
	}
	b->count++;
	return 0;
}

int ptr_blocks_put_header(struct ptr_blocks *b, const uint8_t *header, size_t n, struct pt_error *e)
{
	return b->fd == PTR_NO_FILE ? 0 : write_all(b, header, n, e);
}

bool ptr_blocks_wait(const struct ptr_blocks *b)
{
	return b->waited * WAITED_DIVISOR > b->put;
}

int ptr_blocks_finish(struct ptr_blocks *b, struct pt_error *e)
{
	bool bad;

	if (!b->other)
		return b->failed ? failed(b, e) : 0;
	pthread_mutex_lock(&b->mutex);
	wait_until_written(b);
	bad = b->failed;
	pthread_mutex_unlock(&b->mutex);
	return bad ? failed(b, e) : 0;
}
