/* container_chunk.c - see container_chunk.h. */
#include "schema/container_chunk.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "schema/container_format.h"
#include "schema/crc32c.h"

enum { FIRST_ROOM = 65536 };

int ptc_reserve(struct ptc_buffer *b, size_t bytes, struct pt_error *e)
{
	uint8_t *grown;
	size_t room = b->room ? b->room : FIRST_ROOM;

	if (bytes <= b->room)
		return 0;
	while (room < bytes)
		room *= 2;
	grown = realloc(b->bytes, room);
	if (!grown)
		return pt_fail_no_memory(e, "writing the container");
	b->bytes = grown;
	b->room = room;
	return 0;
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
			return pt_fail_errno(e, "cannot write the container");
		}
		bytes += done;
		n -= (size_t)done;
		w->written += (uint64_t)done;
	}
	return 0;
}

int ptc_pack(ZSTD_CCtx *zstd, const struct ptc_buffer *raw, size_t raw_bytes, struct ptc_buffer *stored,
	     size_t *ret, struct pt_error *e)
{
	size_t bound = ZSTD_compressBound(raw_bytes);

	if (ptc_reserve(stored, PTC_CHUNK_HEADER_BYTES + bound, e))
		return -1;
	*ret = ZSTD_compress2(zstd, stored->bytes + PTC_CHUNK_HEADER_BYTES, bound, raw->bytes, raw_bytes);
	if (ZSTD_isError(*ret))
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "zstd cannot compress a chunk: %s",
			       ZSTD_getErrorName(*ret));
	return 0;
}

int ptc_pack_apart(struct ptc_writer *w, size_t head_bytes, size_t raw_bytes, size_t *ret, struct pt_error *e)
{
	size_t bound = ZSTD_compressBound(raw_bytes), r;
	ZSTD_inBuffer in = {w->raw.bytes, head_bytes, 0};
	ZSTD_outBuffer out;

	if (ptc_reserve(&w->stored, PTC_CHUNK_HEADER_BYTES + bound, e))
		return -1;
	out = (ZSTD_outBuffer){w->stored.bytes + PTC_CHUNK_HEADER_BYTES, bound, 0};
	r = ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_only);
	if (!ZSTD_isError(r))
		r = ZSTD_CCtx_setPledgedSrcSize(w->zstd, raw_bytes);
	if (!ZSTD_isError(r))
		r = ZSTD_compressStream2(w->zstd, &out, &in, ZSTD_e_flush);
	in.size = raw_bytes;
	if (!ZSTD_isError(r))
		r = ZSTD_compressStream2(w->zstd, &out, &in, ZSTD_e_end);
	if (r)
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "zstd cannot compress a chunk: %s",
			       ZSTD_isError(r) ? ZSTD_getErrorName(r) : "it does not end");
	*ret = out.pos;
	return 0;
}

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

int ptc_append(struct ptc_writer *w, const struct ptc_new_chunk *c, uint8_t *packed, size_t stored,
	       struct pt_error *e)
{
	uint64_t at = w->written;
	bool later = c->type == PTC_IMAGE; /* ptc_pack_apart() made it */
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
	if (ptc_write_all(w, packed, PTC_CHUNK_HEADER_BYTES + stored, e))
		return -1;
	w->chunks++;
	return w->index_wanted && c->type != PTC_INDEX ? add_to_index(w, c, at, e) : 0;
}

int ptc_put_chunk(struct ptc_writer *w, const struct ptc_new_chunk *c, struct pt_error *e)
{
	size_t stored;

	if (ptc_pack(w->zstd, &w->raw, c->raw_bytes, &w->stored, &stored, e) ||
	    ptc_append(w, c, w->stored.bytes, stored, e))
		return -1;
	if (w->on_chunk)
		w->on_chunk(w->arg);
	return 0;
}

int ptc_put_plain(struct ptc_writer *w, enum ptc_type type, size_t raw_bytes, struct pt_error *e)
{
	return ptc_put_chunk(w, &(struct ptc_new_chunk){.type = type, .raw_bytes = raw_bytes}, e);
}
