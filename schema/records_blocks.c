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
	BLOCKS = 5, /* with a pool: one is filled, and four wait until a thread has ended what it is at */
	BLOCK_ROOM = PTR_BLOCK_HEADER_BYTES + PTR_BLOCK_MAX,
	WAITED_DIVISOR = 4 /* many have waited: more than one of so many */
};

struct ptr_blocks {
	int fd;
	const char *name;	 /* in messages */
	uint8_t *blocks[BLOCKS]; /* header and payload: block n at n % room */
	uint32_t bytes[BLOCKS];	 /* of the payload */
	unsigned room;		 /* how many there are; without a pool one */
	bool failed;		 /* error says why */
	struct pt_error error;
	/* Blocks: that were put, of these, that were written, that waited for another one to be written. */
	_Atomic uint64_t put, written;
	uint64_t waited;

	struct pt_thread_pool *pool; /* NULL: who puts a block writes it */
	/* Of what follows, and failed, error, put and written, where there is more than one block. Without it
	 * only whether there is something to write is asked, and error is read once failed is set. */
	pthread_mutex_t mutex;
	pthread_cond_t done;
	bool busy;  /* a block is being written */
	bool waits; /* who puts blocks, until it is */
};

struct ptr_blocks *ptr_blocks_create(int fd, const char *name, struct pt_error *e)
{
	struct ptr_blocks *b = calloc(1, sizeof *b);

	if (b)
		b->blocks[0] = malloc(BLOCK_ROOM);
	if (b && b->blocks[0]) {
		b->room = 1;
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

/* The first one that was not written. */
static int write_block(const struct ptr_blocks *b, struct pt_error *e)
{
	uint8_t *block = b->blocks[b->written % b->room];
	uint32_t size = b->bytes[b->written % b->room];

	memcpy(block, PTR_BLOCK_MAGIC, 4);
	ptr_store_u32(block + 4, (uint32_t)b->written);
	ptr_store_u32(block + 8, size);
	ptr_store_u32(block + 12, ptc_crc32c(block + PTR_BLOCK_HEADER_BYTES, size));
	ptr_store_u32(block + 16, (uint32_t)crc32(0, block, 16));
	return b->fd == PTR_NO_FILE ? 0 : write_all(b, block, PTR_BLOCK_HEADER_BYTES + size, e);
}

static int failed(const struct ptr_blocks *b, struct pt_error *e)
{
	*e = b->error;
	return -1;
}

/* ---- In a pool's threads ---------------------------------------------------------------------------- */

/* Writes a block, if no other thread does; after a failure all are dropped. The mutex is held. False: there is
 * none to write. */
static bool write_first(struct ptr_blocks *b)
{
	struct pt_error e;
	int r;

	if (b->written == b->put || b->busy)
		return false;
	if (b->failed) {
		b->written = b->put;
		return true;
	}
	b->busy = true;
	pthread_mutex_unlock(&b->mutex);
	r = write_block(b, &e);
	pthread_mutex_lock(&b->mutex);
	b->busy = false;
	b->written++;
	if (r < 0) {
		b->failed = true;
		b->error = e;
	}
	if (b->waits)
		pthread_cond_signal(&b->done);
	return true;
}

static bool work(void *arg, unsigned thread)
{
	struct ptr_blocks *b = arg;
	bool done;

	(void)thread;
	if (b->written == b->put)
		return false;
	pthread_mutex_lock(&b->mutex);
	done = write_first(b);
	pthread_mutex_unlock(&b->mutex);
	return done;
}

void ptr_blocks_use_pool(struct ptr_blocks *b, struct pt_thread_pool *pool)
{
	b->pool = pool;
	if (!pool || b->room > 1 || b->put) /* a block that was put is where it is */
		return;
	while (b->room < BLOCKS && (b->blocks[b->room] = malloc(BLOCK_ROOM)))
		b->room++;
	if (b->room == 1) {
		b->pool = NULL;
		return;
	}
	pthread_mutex_init(&b->mutex, NULL);
	pthread_cond_init(&b->done, NULL);
	pt_thread_pool_add(pool, work, b);
}

/* Until no more than so many blocks are to be written; this thread writes them where no other one does. The
 * mutex is held. */
static void wait_until(struct ptr_blocks *b, uint64_t few)
{
	while (b->put - b->written > few) {
		if (write_first(b))
			continue;
		b->waits = true;
		pthread_cond_wait(&b->done, &b->mutex);
		b->waits = false;
	}
}

/* Gives the block to the pool's threads. There is another one to be filled then. */
static int give(struct ptr_blocks *b, struct pt_error *e)
{
	bool bad;

	pthread_mutex_lock(&b->mutex);
	b->put++;
	b->waited += b->busy && b->put - b->written == b->room;
	wait_until(b, b->room - 1);
	bad = b->failed;
	pthread_mutex_unlock(&b->mutex);
	if (bad)
		return failed(b, e);
	if (b->pool)
		pt_thread_pool_wake(b->pool);
	return 0;
}

void ptr_blocks_destroy(struct ptr_blocks *b)
{
	if (!b)
		return;
	if (b->room > 1) {
		pthread_cond_destroy(&b->done);
		pthread_mutex_destroy(&b->mutex);
	}
	for (unsigned i = 0; i < b->room; i++)
		free(b->blocks[i]);
	free(b);
}

/* ---- Blocks ----------------------------------------------------------------------------------------- */

uint8_t *ptr_blocks_room(struct ptr_blocks *b)
{
	return b->blocks[b->put % b->room] + PTR_BLOCK_HEADER_BYTES;
}

int ptr_blocks_put(struct ptr_blocks *b, uint32_t size, struct pt_error *e)
{
	b->bytes[b->put % b->room] = size;
	if (b->room > 1)
		return give(b, e);
	if (!b->failed && write_block(b, &b->error) < 0)
		b->failed = true;
	if (b->failed)
		return failed(b, e);
	b->put++;
	b->written++;
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
	if (b->room > 1) {
		pthread_mutex_lock(&b->mutex);
		wait_until(b, 0);
		pthread_mutex_unlock(&b->mutex);
	}
	return b->failed ? failed(b, e) : 0;
}
