/* container_chunk.c - see container_chunk.h. */
#include "schema/container_chunk.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "schema/container_format.h"
#include "schema/container_queue.h"
#include "schema/crc32c.h"

enum { FIRST_ROOM = 65536 };

int ptc_reserve(struct ptc_buffer *b, size_t bytes, struct pt_error *e)
{
	uint8_t *grown;
	size_t room = b->room ? 2 * b->room : FIRST_ROOM;

	if (bytes <= b->room)
		return 0;
	/* What grows bit by bit doubles; a big payload gets no more than it needs. */
	if (room < bytes)
		room = (bytes + FIRST_ROOM - 1) / FIRST_ROOM * FIRST_ROOM;
	grown = realloc(b->bytes, room);
	if (!grown)
		return pt_fail_no_memory(e, "writing the container");
	b->bytes = grown;
	b->room = room;
	return 0;
}

size_t ptc_chunk_room(size_t raw_bytes)
{
	return PTC_CHUNK_HEADER_BYTES + ZSTD_compressBound(raw_bytes);
}

int ptc_write_all(struct ptc_writer *w, const uint8_t *bytes, size_t n, struct pt_error *e)
{
	while (n) {
		ssize_t done = write(w->fd, bytes, n);

		if (done < 0) {
			struct pollfd wait = {.fd = w->fd, .events = POLLOUT};

			if (errno == EINTR)
				continue;
			if (errno == EAGAIN && (poll(&wait, 1, -1) >= 0 || errno == EINTR))
				continue;
			return pt_fail_errno(e, "cannot write %s", w->name);
		}
		bytes += done;
		n -= (size_t)done;
		__atomic_fetch_add(&w->written, (uint64_t)done, __ATOMIC_RELAXED);
	}
	return 0;
}

/* ---- Compressing ---- */

int ptc_packer_init(struct ptc_packer *p, struct pt_error *e)
{
	*p = (struct ptc_packer){.zstd = ZSTD_createCCtx(), .level = INT_MAX};
	return p->zstd ? 0 : pt_fail_no_memory(e, "zstd");
}

void ptc_packer_deinit(struct ptc_packer *p)
{
	ZSTD_freeCCtx(p->zstd);
	free(p->stored.bytes);
}

/*
 * Below PTC_LEVEL_FAST zstd finds little anyway: with 2048 places to look at, which stay in the first cache,
 * and matches of 7 bytes and more it is a third faster, and PT bytes become a twentieth larger.
 */
static void set_level(struct ptc_packer *p, int level)
{
	bool fastest = level < PTC_LEVEL_FAST;

	if (level == p->level)
		return;
	p->level = level;
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_hashLog, fastest ? 11 : 0);
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_minMatch, fastest ? 7 : 0);
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_contentSizeFlag, 1);
}

/* The frame's first block ends after the chunk's head_bytes. */
static size_t compress_apart(ZSTD_CCtx *zstd, const struct ptc_new_chunk *c, ZSTD_inBuffer *in,
			     ZSTD_outBuffer *out)
{
	size_t r = ZSTD_CCtx_reset(zstd, ZSTD_reset_session_only);

	if (!ZSTD_isError(r))
		r = ZSTD_CCtx_setPledgedSrcSize(zstd, c->raw_bytes);
	in->size = c->head_bytes;
	if (!ZSTD_isError(r))
		r = ZSTD_compressStream2(zstd, out, in, ZSTD_e_flush);
	in->size = c->raw_bytes;
	return ZSTD_isError(r) ? r : ZSTD_compressStream2(zstd, out, in, ZSTD_e_end);
}

int ptc_pack(struct ptc_packer *p, const struct ptc_new_chunk *c, int level, const struct ptc_buffer *raw,
	     size_t *ret, struct pt_error *e)
{
	size_t bound = ZSTD_compressBound(c->raw_bytes), r;
	ZSTD_inBuffer in = {raw->bytes, c->raw_bytes, 0};
	ZSTD_outBuffer out;

	if (ptc_reserve(&p->stored, ptc_chunk_room(c->raw_bytes), e))
		return -1;
	set_level(p, level);
	out = (ZSTD_outBuffer){p->stored.bytes + PTC_CHUNK_HEADER_BYTES, bound, 0};
	if (c->head_bytes) {
		r = compress_apart(p->zstd, c, &in, &out);
		if (r && !ZSTD_isError(r))
			return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "zstd does not end a chunk");
	} else {
		r = out.pos = ZSTD_compress2(p->zstd, out.dst, bound, raw->bytes, c->raw_bytes);
	}
	if (ZSTD_isError(r))
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "zstd cannot compress a chunk: %s",
			       ZSTD_getErrorName(r));
	*ret = out.pos;
	return 0;
}

/* ---- Writing ---- */

static int add_to_index(struct ptc_writer *w, const struct ptc_new_chunk *c, uint64_t at, struct pt_error *e)
{
	uint8_t *p;

	if (w->chunks > PTC_INDEX_MAX) {
		w->index_wanted = false;
		return 0;
	}
	if (ptc_reserve(&w->index, w->index_bytes + PTC_INDEX_BYTES, e))
		return -1;
	p = w->index.bytes + w->index_bytes;
	p = ptc_set64(p, at);
	p = ptc_set16(p, (uint16_t)c->type);
	p = ptc_set16(p, 0);
	p = ptc_set32(p, c->stream);
	p = ptc_set64(p, c->raw_bytes);
	ptc_set64(p, c->aux_offset);
	w->index_bytes += PTC_INDEX_BYTES;
	return 0;
}

int ptc_seal(struct ptc_writer *w, const struct ptc_new_chunk *c, uint8_t *packed, size_t stored, uint64_t at,
	     struct pt_error *e)
{
	bool later = c->head_bytes;
	uint8_t *h = packed;

	memcpy(h, PTC_CHUNK_MAGIC, 4);
	h = ptc_set16(h + 4, (uint16_t)c->type);
	h = ptc_set16(h, later ? PTC_CHUNK_LATER : 0);
	h = ptc_set32(h, c->stream);
	h = ptc_set32(h, (uint32_t)w->chunks);
	h = ptc_set64(h, stored);
	h = ptc_set64(h, c->raw_bytes);
	h = ptc_set32(h, later ? ptc_crc32c(packed + PTC_CHUNK_HEADER_BYTES, stored) : 0);
	ptc_set32(h, (uint32_t)crc32(0, packed, 36));
	w->chunks++;
	return w->index_wanted && c->type != PTC_INDEX ? add_to_index(w, c, at, e) : 0;
}

int ptc_append(struct ptc_writer *w, const struct ptc_new_chunk *c, uint8_t *packed, size_t stored,
	       struct pt_error *e)
{
	return ptc_seal(w, c, packed, stored, w->written, e) ||
		       ptc_write_all(w, packed, PTC_CHUNK_HEADER_BYTES + stored, e)
		   ? -1
		   : 0;
}

int ptc_put_chunk(struct ptc_writer *w, const struct ptc_new_chunk *c, struct pt_error *e)
{
	size_t stored;

	if (w->queue ? ptc_queue_put(w->queue, c, &w->raw, e)
		     : ptc_pack(&w->packer, c, w->level, &w->raw, &stored, e) ||
			   ptc_append(w, c, w->packer.stored.bytes, stored, e))
		return -1;
	if (w->on_chunk)
		w->on_chunk(w->arg);
	return 0;
}

int ptc_put_plain(struct ptc_writer *w, enum ptc_type type, size_t raw_bytes, struct pt_error *e)
{
	return ptc_put_chunk(w, &(struct ptc_new_chunk){.type = type, .raw_bytes = raw_bytes}, e);
}
