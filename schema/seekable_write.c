/* seekable_write.c - see seekable.h. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "schema/file_io.h"
#include "schema/seekable.h"
#include "schema/seekable_format.h"
#include "schema/thread.h"

enum { THREADS_MAX = 64 };

/* A file that is being packed. Threads take frame after frame, and write them in their order. */
struct packing {
	int to, from;
	uint64_t bytes; /* of from */
	int level;
	uint32_t count;	      /* frames */
	uint32_t *entries;    /* of the table: two a frame, what it has packed and unpacked */
	pthread_mutex_t lock; /* around what follows */
	pthread_cond_t turn_changed;
	uint32_t next;	  /* that no thread has taken */
	uint32_t turn;	  /* the frame that is written next */
	uint64_t written; /* bytes */
	bool failed;
	struct pt_error error; /* the first one */
};

/* What a thread packs with. */
struct packer {
	ZSTD_CCtx *zstd;
	uint8_t *raw, *packed; /* a frame */
	size_t room;	       /* of packed */
};

static int read_raw(int fd, uint8_t *to, size_t n, uint64_t offset, struct pt_error *e)
{
	size_t got;

	if (pt_read_at(fd, to, n, offset, &got, "reading what is to be compressed", e))
		return -1;
	return got == n ? 0
			: pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "what is to be compressed has become shorter");
}

static int write_packed(int fd, const void *bytes, size_t n, uint64_t offset, struct pt_error *e)
{
	return pt_write_at(fd, bytes, n, offset, "writing what is compressed", e);
}

/* ---- Frames ----------------------------------------------------------------------------------------- */

static int packer_init(struct packer *p, int level, struct pt_error *e)
{
	*p = (struct packer){.zstd = ZSTD_createCCtx(),
			     .raw = malloc(PT_SEEKABLE_FRAME_BYTES),
			     .room = ZSTD_compressBound(PT_SEEKABLE_FRAME_BYTES)};
	p->packed = malloc(p->room);
	if (!p->zstd || !p->raw || !p->packed)
		return pt_fail_no_memory(e, "compressed frames");
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
	return 0;
}

static void packer_deinit(struct packer *p)
{
	ZSTD_freeCCtx(p->zstd);
	free(p->raw);
	free(p->packed);
}

static uint32_t frame_bytes(const struct packing *w, uint32_t frame)
{
	uint64_t rest = w->bytes - (uint64_t)frame * PT_SEEKABLE_FRAME_BYTES;

	return rest < PT_SEEKABLE_FRAME_BYTES ? (uint32_t)rest : PT_SEEKABLE_FRAME_BYTES;
}

/* Packs the frame. Its size, or 0. */
static size_t pack(const struct packing *w, struct packer *p, uint32_t frame, struct pt_error *e)
{
	uint32_t n = frame_bytes(w, frame);
	size_t packed;

	if (read_raw(w->from, p->raw, n, (uint64_t)frame * PT_SEEKABLE_FRAME_BYTES, e))
		return 0;
	packed = ZSTD_compress2(p->zstd, p->packed, p->room, p->raw, n);
	if (!ZSTD_isError(packed))
		return packed;
	pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "zstd cannot compress a frame: %s",
		ZSTD_getErrorName(packed));
	return 0;
}

/* The lock is held. */
static void fail(struct packing *w, const struct pt_error *e)
{
	if (!w->failed)
		w->error = *e;
	w->failed = true;
	pthread_cond_broadcast(&w->turn_changed);
}

/* Writes the frame that was packed when its turn has come. The lock is held. */
static void write_frame(struct packing *w, const struct packer *p, uint32_t frame, size_t packed)
{
	struct pt_error e;
	uint64_t at;
	int r;

	while (w->turn != frame && !w->failed)
		pthread_cond_wait(&w->turn_changed, &w->lock);
	if (w->failed)
		return;
	at = w->written;
	pthread_mutex_unlock(&w->lock);
	r = write_packed(w->to, p->packed, packed, at, &e);
	pthread_mutex_lock(&w->lock);
	if (r) {
		fail(w, &e);
		return;
	}
	w->entries[2 * (size_t)frame] = (uint32_t)packed;
	w->entries[2 * (size_t)frame + 1] = frame_bytes(w, frame);
	w->written += packed;
	w->turn++;
	pthread_cond_broadcast(&w->turn_changed);
}

static bool interrupted(const struct pt_seekable_options *options, struct pt_error *e)
{
	if (!options->interrupted || !options->interrupted(options->arg))
		return false;
	pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted");
	return true;
}

/* Frames until none is left, or it fails. options: the caller's thread's; NULL in another. */
static void pack_frames(struct packing *w, const struct pt_seekable_options *options)
{
	struct packer p;
	struct pt_error e;
	int r = packer_init(&p, w->level, &e);

	pthread_mutex_lock(&w->lock);
	if (r)
		fail(w, &e);
	while (!w->failed && w->next < w->count) {
		uint32_t frame = w->next++;
		size_t packed;

		pthread_mutex_unlock(&w->lock);
		packed = pack(w, &p, frame, &e);
		if (packed && options && interrupted(options, &e))
			packed = 0;
		pthread_mutex_lock(&w->lock);
		if (packed)
			write_frame(w, &p, frame, packed);
		else
			fail(w, &e);
	}
	pthread_mutex_unlock(&w->lock);
	packer_deinit(&p);
}

static void *run(void *packing)
{
	pack_frames(packing, NULL);
	return NULL;
}

/* Fewer threads, where the system has no more, are enough. */
static void pack_all(struct packing *w, const struct pt_seekable_options *options)
{
	pthread_t threads[THREADS_MAX];
	unsigned started = 0;

	while (started + 1 < options->threads && started + 1 < w->count && started < THREADS_MAX &&
	       pt_thread_create(&threads[started], NULL, run, w) == 0)
		started++;
	pack_frames(w, options);
	while (started)
		pthread_join(threads[--started], NULL);
}

/* ---- The table -------------------------------------------------------------------------------------- */

static void put_u32(uint8_t *to, uint32_t value)
{
	memcpy(to, &value, sizeof value); /* this machine's order is the format's: little endian */
}

static int write_table(const struct packing *w, struct pt_error *e)
{
	size_t entries = (size_t)w->count * 8;
	size_t n = SEEKABLE_SKIPPABLE_HEADER_BYTES + entries + SEEKABLE_FOOTER_BYTES;
	uint8_t *table = calloc(1, n), *footer;
	int ret;

	if (!table)
		return pt_fail_no_memory(e, "the table of compressed frames");
	put_u32(table, SEEKABLE_SKIPPABLE_MAGIC);
	put_u32(table + 4, (uint32_t)(n - SEEKABLE_SKIPPABLE_HEADER_BYTES));
	if (entries)
		memcpy(table + SEEKABLE_SKIPPABLE_HEADER_BYTES, w->entries, entries);
	footer = table + n - SEEKABLE_FOOTER_BYTES;
	put_u32(footer, w->count);
	put_u32(footer + 5, SEEKABLE_MAGIC);
	ret = write_packed(w->to, table, n, w->written, e);
	free(table);
	return ret;
}

int pt_seekable_write(int to, int from, uint64_t bytes, const struct pt_seekable_options *options,
		      struct pt_error *e)
{
	struct packing w = {.to = to, .from = from, .bytes = bytes, .level = options->level};
	uint64_t count = (bytes + PT_SEEKABLE_FRAME_BYTES - 1) / PT_SEEKABLE_FRAME_BYTES;

	if (count > SEEKABLE_FRAMES_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%" PRIu64 " bytes are more than a compressed file can have", bytes);
	w.count = (uint32_t)count;
	w.entries = malloc((count ? count : 1) * 2 * sizeof *w.entries);
	if (!w.entries)
		return pt_fail_no_memory(e, "the table of compressed frames");
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.turn_changed, NULL);
	pack_all(&w, options);
	pthread_cond_destroy(&w.turn_changed);
	pthread_mutex_destroy(&w.lock);
	if (w.failed && e)
		*e = w.error;
	/* Asked here too: other threads may have packed all frames. */
	else if (!w.failed && (interrupted(options, e) || write_table(&w, e)))
		w.failed = true;
	free(w.entries);
	return w.failed ? -1 : 0;
}
