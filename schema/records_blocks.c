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
#include "schema/thread.h"

enum {
	BLOCK_ROOM = PTR_BLOCK_HEADER_BYTES + PTR_BLOCK_MAX,
	WAITED_DIVISOR = 4 /* many have waited: more than one of so many */
};

struct ptr_blocks {
	int fd;
	const char *name; /* in messages */
	uint32_t count;
	uint8_t *filled; /* header and payload */
	uint8_t *other;	 /* the same, NULL without a thread */
	bool failed;	 /* error says why */
	struct pt_error error;

	pthread_t thread;
	bool has_thread;
	uint64_t put,
	    waited; /* blocks: that the thread got; of these, that it had to write another one before */
	pthread_mutex_t mutex; /* of what follows, and failed, error and count while there is a thread */
	pthread_cond_t changed;
	uint8_t *written; /* the block that the thread writes, NULL none */
	uint32_t written_bytes;
	bool waits; /* somebody, until that is written */
	bool ends;
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

/* ---- The thread ------------------------------------------------------------------------------------- */

static void *write_blocks(void *arg)
{
	struct ptr_blocks *b = arg;
	struct pt_error e;
	int r;

	pthread_mutex_lock(&b->mutex);
	for (;;) {
		while (!b->written && !b->ends)
			pthread_cond_wait(&b->changed, &b->mutex);
		if (!b->written)
			break;
		pthread_mutex_unlock(&b->mutex);
		r = write_block(b, b->written, b->written_bytes, &e);
		pthread_mutex_lock(&b->mutex);
		b->count++;
		b->written = NULL;
		if (r < 0) {
			b->failed = true;
			b->error = e;
		}
		if (b->waits)
			pthread_cond_signal(&b->changed);
	}
	pthread_mutex_unlock(&b->mutex);
	return NULL;
}

void ptr_blocks_use_thread(struct ptr_blocks *b)
{
	b->other = malloc(BLOCK_ROOM);
	if (!b->other)
		return;
	pthread_mutex_init(&b->mutex, NULL);
	pthread_cond_init(&b->changed, NULL);
	b->has_thread = pt_thread_create(&b->thread, NULL, write_blocks, b) == 0;
	if (!b->has_thread) {
		pthread_cond_destroy(&b->changed);
		pthread_mutex_destroy(&b->mutex);
	}
}

/* The mutex is held: the thread has nothing to write then. */
static void wait_until_written(struct ptr_blocks *b)
{
	b->waits = true;
	while (b->written)
		pthread_cond_wait(&b->changed, &b->mutex);
	b->waits = false;
}

static int failed(const struct ptr_blocks *b, struct pt_error *e)
{
	*e = b->error;
	return -1;
}

/* Gives the block to the thread, when it has written the one before. */
static int give(struct ptr_blocks *b, uint32_t size, struct pt_error *e)
{
	uint8_t *next = b->other;
	int r = 0;

	pthread_mutex_lock(&b->mutex);
	b->put++;
	b->waited += b->written != NULL;
	wait_until_written(b);
	if (b->failed) {
		r = failed(b, e);
	} else {
		b->written = b->other = b->filled;
		b->filled = next;
		b->written_bytes = size;
	}
	pthread_mutex_unlock(&b->mutex);
	pthread_cond_signal(&b->changed); /* not before: whom it wakes would wait for the mutex */
	return r;
}

void ptr_blocks_destroy(struct ptr_blocks *b)
{
	if (!b)
		return;
	if (b->has_thread) {
		pthread_mutex_lock(&b->mutex);
		b->ends = true;
		pthread_cond_broadcast(&b->changed);
		pthread_mutex_unlock(&b->mutex);
		pthread_join(b->thread, NULL);
		pthread_cond_destroy(&b->changed);
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
	if (b->has_thread)
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

	if (!b->has_thread)
		return b->failed ? failed(b, e) : 0;
	pthread_mutex_lock(&b->mutex);
	wait_until_written(b);
	bad = b->failed;
	pthread_mutex_unlock(&b->mutex);
	return bad ? failed(b, e) : 0;
}
