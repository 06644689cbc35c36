/* container_write.c - see container.h. */
#include "schema/container.h"
#include "schema/container_chunk.h"
#include "schema/container_format.h"
#include "schema/container_queue.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

enum {
	/*
	 * Bytes of AUX data, of records or of an image in one chunk, at most: a reader's buffers fit into its
	 * caches, and zstd compresses as well as with more. At the fastest levels AUX data fits into the
	 * writer's second cache, too. Of files less, because a reader decompresses only those chunks that it
	 * needs.
	 */
	PIECE_MAX = 1 << 20,
	FAST_PIECE_MAX = 256 << 10,
	FILE_PIECE_MAX = 64 << 10,
	META_FLUSH_BYTES = 65536
};

/* Begins another chunk: META that waits is written first, and raw gets room for bytes. */
static int begin(struct ptc_writer *w, size_t bytes, struct pt_error *e)
{
	if (ptc_flush_meta(w, e))
		return -1;
	return ptc_reserve(&w->raw, ptc_chunk_room(bytes), e);
}

static uint8_t *set_bytes(uint8_t *p, const void *bytes, size_t n)
{
	if (n)
		memcpy(p, bytes, n);
	return p + n;
}

static uint8_t *set_str(uint8_t *p, const void *bytes, uint32_t n)
{
	return set_bytes(ptc_set32(p, n), bytes, n);
}

struct ptc_writer *ptc_writer_create(int fd, const char *name, int level, struct pt_error *e)
{
	struct ptc_writer *w = calloc(1, sizeof *w);
	uint8_t h[PTC_FILE_HEADER_BYTES];
	struct stat st;

	if (!w) {
		pt_fail_no_memory(e, "the container's writer");
		return NULL;
	}
	if (ptc_packer_init(&w->packer, e))
		goto fail;
	w->fd = fd;
	w->name = name ? name : "the container";
	w->level = level;
	w->index_wanted = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	memcpy(h, PTC_FILE_MAGIC, 8);
	ptc_set16(h + 8, PTC_MAJOR);
	ptc_set16(h + 10, PTC_MINOR);
	ptc_set32(h + 12, (uint32_t)crc32(0, h, 12));
	if (ptc_write_all(w, h, sizeof h, e))
		goto fail;
	return w;
fail:
	ptc_writer_destroy(w);
	return NULL;
}

void ptc_writer_level(struct ptc_writer *w, int level)
{
	__atomic_store_n(&w->level, level, __ATOMIC_RELAXED);
}

int ptc_writer_threads(struct ptc_writer *w, unsigned count, uint64_t max_bytes, struct pt_error *e)
{
	w->queue = ptc_queue_create(w, count, max_bytes, e);
	return w->queue ? 0 : -1;
}

void ptc_writer_load(const struct ptc_writer *w, struct ptc_load *ret)
{
	*ret = (struct ptc_load){0};
	if (w->queue)
		ptc_queue_load(w->queue, ret);
}

int ptc_writer_wait(struct ptc_writer *w, unsigned ms, struct pt_error *e)
{
	return w->queue ? ptc_queue_wait(w->queue, ms, e) : 0;
}

void ptc_writer_on_chunk(struct ptc_writer *w, void (*fn)(void *arg), void *arg)
{
	w->on_chunk = fn;
	w->arg = arg;
}

void ptc_writer_destroy(struct ptc_writer *w)
{
	if (!w)
		return;
	ptc_queue_destroy(w->queue);
	ptc_packer_deinit(&w->packer);
	free(w->raw.bytes);
	free(w->meta.bytes);
	free(w->index.bytes);
	free(w->streams);
	free(w);
}

int ptc_writer_settle(struct ptc_writer *w, struct pt_error *e)
{
	if (ptc_flush_meta(w, e))
		return -1;
	return w->queue ? ptc_queue_finish(w->queue, e) : 0;
}

int ptc_writer_finish(struct ptc_writer *w, struct pt_error *e)
{
	uint64_t index_at;
	uint8_t tail[PTC_INDEX_TAIL], *p;

	if (ptc_writer_settle(w, e))
		return -1;
	ptc_queue_destroy(w->queue);
	w->queue = NULL;
	if (begin(w, PTC_END_BYTES, e))
		return -1;
	p = ptc_set64(w->raw.bytes, w->chunks);
	p = ptc_set64(p, w->aux_bytes);
	ptc_set64(p, w->sideband_bytes);
	if (ptc_put_plain(w, PTC_END, PTC_END_BYTES, e))
		return -1;
	if (!w->index_wanted)
		return 0;
	index_at = w->written;
	if (begin(w, w->index_bytes, e))
		return -1;
	memcpy(w->raw.bytes, w->index.bytes, w->index_bytes);
	if (ptc_put_plain(w, PTC_INDEX, w->index_bytes, e))
		return -1;
	ptc_set64(tail, index_at);
	memcpy(tail + 8, PTC_INDEX_MAGIC, 8);
	return ptc_write_all(w, tail, sizeof tail, e);
}

int ptc_flush_meta(struct ptc_writer *w, struct pt_error *e)
{
	size_t n = w->meta_bytes;

	if (n == 0)
		return 0;
	if (ptc_reserve(&w->raw, n, e))
		return -1;
	memcpy(w->raw.bytes, w->meta.bytes, n);
	w->meta_bytes = 0;
	return ptc_put_plain(w, PTC_META, n, e);
}

int ptc_put_meta(struct ptc_writer *w, const char *key, const char *value, struct pt_error *e)
{
	size_t key_bytes = strlen(key), most = key_bytes + 2 * strlen(value) + 2;
	uint8_t *p;

	if (key_bytes == 0 || strpbrk(key, "=\n"))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "'%.40s' cannot be a META key", key);
	if (most > PTC_CHUNK_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "the META value of '%.40s' is too long", key);
	if (w->meta_bytes + most > META_FLUSH_BYTES && ptc_flush_meta(w, e))
		return -1;
	if (ptc_reserve(&w->meta, w->meta_bytes + most, e))
		return -1;
	p = set_bytes(w->meta.bytes + w->meta_bytes, key, key_bytes);
	*p++ = '=';
	for (; *value; value++) {
		if (*value == '\\' || *value == '\n')
			*p++ = '\\';
		*p++ = *value == '\n' ? 'n' : (uint8_t)*value;
	}
	*p++ = '\n';
	w->meta_bytes = (size_t)(p - w->meta.bytes);
	return 0;
}

int ptc_put_metaf(struct ptc_writer *w, struct pt_error *e, const char *key, const char *format, ...)
{
	char *value;
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = vasprintf(&value, format, ap);
	va_end(ap);
	if (ret < 0)
		return pt_fail_no_memory(e, "META");
	ret = ptc_put_meta(w, key, value, e);
	free(value);
	return ret;
}

int64_t ptc_put_stream(struct ptc_writer *w, const struct ptc_stream *s, struct pt_error *e)
{
	struct ptc_stream_state *grown;
	uint8_t *p;

	grown = realloc(w->streams, (w->stream_count + 1) * sizeof *grown);
	if (!grown)
		return pt_fail_no_memory(e, "a stream");
	w->streams = grown;
	grown[w->stream_count] = (struct ptc_stream_state){.snapshot = s->snapshot};
	if (begin(w, PTC_STREAM_BYTES, e))
		return -1;
	p = ptc_set32(w->raw.bytes, 1);
	p = ptc_set32(p, (uint32_t)s->cpu);
	p = ptc_set32(p, (uint32_t)s->pid);
	p = ptc_set32(p, (uint32_t)s->tid);
	p = ptc_set32(p, s->attr);
	ptc_set32(p, s->snapshot);
	if (ptc_put_chunk(w,
			  &(struct ptc_new_chunk){.type = PTC_STREAM,
						  .stream = w->stream_count + 1,
						  .raw_bytes = PTC_STREAM_BYTES},
			  e))
		return -1;
	return ++w->stream_count;
}

/* PTC_AUX's payload. */
static void set_aux(uint8_t *p, const struct ptc_aux *aux)
{
	p = ptc_set64(p, aux->seq);
	p = ptc_set64(p, aux->aux_offset);
	p = ptc_set64(p, aux->flags);
	p = ptc_set64(p, aux->time_ns);
	set_bytes(p, aux->bytes, aux->size);
}

static struct ptc_new_chunk aux_chunk(uint32_t stream, const struct ptc_aux *aux)
{
	return (struct ptc_new_chunk){.type = PTC_AUX,
				      .stream = stream,
				      .raw_bytes = PTC_AUX_HEAD + aux->size,
				      .aux_offset = aux->aux_offset};
}

/* One chunk of AUX data; aux_writer NULL: by w itself. */
static int put_piece(struct ptc_writer *w, struct ptc_aux_writer *aux_writer, uint32_t stream,
		     const struct ptc_aux *piece, struct pt_error *e)
{
	struct ptc_new_chunk c = aux_chunk(stream, piece);
	struct ptc_buffer *raw = aux_writer ? &aux_writer->raw : &w->raw;

	if (aux_writer ? ptc_reserve(raw, ptc_chunk_room(c.raw_bytes), e) : begin(w, c.raw_bytes, e))
		return -1;
	set_aux(raw->bytes, piece);
	if (aux_writer ? ptc_queue_put(w->queue, &c, raw, e) : ptc_put_chunk(w, &c, e))
		return -1;
	__atomic_fetch_add(&w->aux_bytes, piece->size, __ATOMIC_RELAXED);
	return 0;
}

static uint64_t piece_max(const struct ptc_writer *w)
{
	return (__atomic_load_n(&w->level, __ATOMIC_RELAXED) < PTC_LEVEL_FAST ? FAST_PIECE_MAX : PIECE_MAX) -
	       PTC_AUX_HEAD;
}

/* aux_writer NULL: by w itself. */
static int put_aux(struct ptc_writer *w, struct ptc_aux_writer *aux_writer, uint32_t stream,
		   const struct ptc_aux *aux, struct pt_error *e)
{
	struct ptc_aux piece = *aux;
	uint64_t left = aux->size, most = piece_max(w);
	struct ptc_stream_state *s;

	if (stream == 0 || stream > w->stream_count)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "AUX data for stream %u, which was not declared", stream);
	s = &w->streams[stream - 1];
	if ((aux->aux_offset < s->end && !s->snapshot) || aux->aux_offset + left < aux->aux_offset)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "AUX data of stream %u goes back from offset 0x%llx to 0x%llx", stream,
			       (unsigned long long)s->end, (unsigned long long)aux->aux_offset);
	do {
		piece.seq = s->seq;
		piece.size = left < most ? left : most;
		piece.flags = piece.size < left ? aux->flags & ~(uint64_t)PTC_AUX_TRUNCATED : aux->flags;
		if (put_piece(w, aux_writer, stream, &piece, e))
			return -1;
		s->seq++;
		piece.aux_offset += piece.size;
		s->end = piece.aux_offset;
		left -= piece.size;
		if (left)
			piece.bytes += piece.size;
	} while (left);
	return 0;
}

int ptc_put_aux(struct ptc_writer *w, uint32_t stream, const struct ptc_aux *aux, struct pt_error *e)
{
	return put_aux(w, NULL, stream, aux, e);
}

/* ---- AUX writers ---- */

struct ptc_aux_writer *ptc_aux_writer_create(struct ptc_writer *w, struct pt_error *e)
{
	struct ptc_aux_writer *a = calloc(1, sizeof *a);

	if (!a)
		pt_fail_no_memory(e, "an AUX writer");
	else
		a->w = w;
	return a;
}

void ptc_aux_writer_destroy(struct ptc_aux_writer *a)
{
	if (!a)
		return;
	free(a->raw.bytes);
	free(a);
}

int ptc_aux_writer_put(struct ptc_aux_writer *a, uint32_t stream, const struct ptc_aux *aux,
		       struct pt_error *e)
{
	return put_aux(a->w, a, stream, aux, e);
}

int ptc_put_attr(struct ptc_writer *w, const struct ptc_attr *a, struct pt_error *e)
{
	uint64_t size = 20 + (uint64_t)a->name_bytes + a->attr_bytes + (uint64_t)a->count * 8;
	uint8_t *p;

	if (size > PTC_CHUNK_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "event '%.*s' has too many ids for one chunk",
			       (int)(a->name_bytes < 40 ? a->name_bytes : 40), a->name);
	if (begin(w, size, e))
		return -1;
	p = ptc_set32(w->raw.bytes, w->attr_count);
	p = set_str(p, a->name, a->name_bytes);
	p = set_str(p, a->attr, a->attr_bytes);
	p = ptc_set32(p, a->count);
	p = set_bytes(p, a->ids, (size_t)a->count * 8);
	ptc_set32(p, (uint32_t)a->machine_pid);
	if (ptc_put_plain(w, PTC_ATTR, size, e))
		return -1;
	w->attr_count++;
	return 0;
}

int ptc_put_format(struct ptc_writer *w, const struct ptc_tracepoint *t, struct pt_error *e)
{
	uint64_t size = 20 + (uint64_t)t->system_bytes + t->name_bytes + t->format_bytes;
	uint8_t *p;

	if (size > PTC_CHUNK_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "the format of tracepoint %u is too long",
			       t->id);
	if (begin(w, size, e))
		return -1;
	p = ptc_set32(w->raw.bytes, (uint32_t)t->machine_pid);
	p = ptc_set32(p, t->id);
	p = set_str(p, t->system, t->system_bytes);
	p = set_str(p, t->name, t->name_bytes);
	set_str(p, t->format, t->format_bytes);
	return ptc_put_plain(w, PTC_FORMAT, size, e);
}

int ptc_put_sideband(struct ptc_writer *w, uint32_t attr, const void *records, uint64_t size,
		     struct pt_error *e)
{
	return ptc_put_sideband_flags(w, attr, 0, records, size, e);
}

int ptc_put_sideband_flags(struct ptc_writer *w, uint32_t attr, uint32_t flags, const void *records,
			   uint64_t size, struct pt_error *e)
{
	const uint8_t *from = records;

	while (size) {
		uint64_t n = 0;
		uint8_t *p;

		while (size - n >= 8) {
			uint16_t record = ptc_get16(from + n + 6);

			if (record < 8 || record > size - n || n + record > PIECE_MAX)
				break;
			n += record;
		}
		if (n == 0)
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				       "a sideband record with a wrong size");
		if (begin(w, PTC_SIDEBAND_HEAD + n, e))
			return -1;
		p = ptc_set32(w->raw.bytes, attr);
		p = ptc_set32(p, flags);
		set_bytes(p, from, n);
		if (ptc_put_plain(w, PTC_SIDEBAND, PTC_SIDEBAND_HEAD + n, e))
			return -1;
		w->sideband_bytes += n;
		from += n;
		size -= n;
	}
	return 0;
}

/* Bytes of an image's payload before the image's own. */
static uint64_t image_head(const struct ptc_image *image)
{
	return 56 + image->build_id_bytes + (uint64_t)image->name_bytes;
}

/* The chunk with n bytes of the image from done on. */
static int put_image_piece(struct ptc_writer *w, const struct ptc_image *image, uint64_t done, uint64_t n,
			   struct pt_error *e)
{
	uint64_t head = image_head(image);
	struct ptc_new_chunk c = {.type = PTC_IMAGE, .head_bytes = head, .raw_bytes = head + n};
	uint8_t *p;

	if (begin(w, c.raw_bytes, e))
		return -1;
	p = ptc_set32(w->raw.bytes, image->kind);
	p = ptc_set32(p, (uint32_t)image->machine_pid);
	p = ptc_set32(p, (uint32_t)image->pid);
	p = ptc_set32(p, image->continues || done);
	p = ptc_set64(p, image->offset + done);
	p = ptc_set64(p, image->vaddr + done);
	p = ptc_set64(p, image->time_ns);
	p = set_str(p, image->build_id, image->build_id_bytes);
	p = set_str(p, image->name, image->name_bytes);
	p = ptc_set64(p, n);
	set_bytes(p, n ? image->bytes + done : NULL, n);
	return ptc_put_chunk(w, &c, e);
}

int ptc_put_image(struct ptc_writer *w, const struct ptc_image *image, struct pt_error *e)
{
	/* cppcheck-suppress ctunullpointer ; it takes the argument of another function for this one */
	size_t most = image->kind == PTC_IMAGE_FILE ? FILE_PIECE_MAX : PIECE_MAX;
	uint64_t done = 0;

	if (image_head(image) > PTC_CHUNK_MAX / 2 || image->build_id_bytes > 20)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "an image with too long a name or build id");
	do {
		uint64_t left = image->size - done, n = left < most ? left : most;

		if (put_image_piece(w, image, done, n, e))
			return -1;
		done += n;
	} while (done < image->size);
	return 0;
}

/* Symbols i... that fit into one chunk with head bytes before them; *ret_strings: bytes of their names. */
static uint32_t symbols_that_fit(const struct ptc_symbols *s, uint32_t i, uint64_t head,
				 uint64_t *ret_strings)
{
	uint64_t bytes = head, strings = 0;
	uint32_t n = 0;

	for (; i < s->count; i++, n++) {
		uint64_t name = strlen(s->strings + s->symbols[i].name) + 1;

		if (bytes + PTC_SYMBOL_BYTES + name > PTC_CHUNK_MAX)
			break;
		bytes += PTC_SYMBOL_BYTES + name;
		strings += name;
	}
	*ret_strings = strings;
	return n;
}

int ptc_put_symbols(struct ptc_writer *w, const struct ptc_symbols *symbols, struct pt_error *e)
{
	uint64_t head = 32 + symbols->build_id_bytes + (uint64_t)symbols->name_bytes;
	uint32_t first = 0;

	if (head > PTC_CHUNK_MAX / 2 || symbols->build_id_bytes > 20)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "symbols with too long a name or build id");
	while (first < symbols->count) {
		uint64_t strings, size;
		uint32_t n = symbols_that_fit(symbols, first, head, &strings), name = 0;
		uint8_t *p, *to;

		if (n == 0)
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "a symbol with too long a name");
		size = head + (uint64_t)n * PTC_SYMBOL_BYTES + strings;
		if (begin(w, size, e))
			return -1;
		p = ptc_set32(w->raw.bytes, (uint32_t)symbols->machine_pid);
		p = ptc_set32(p, (uint32_t)symbols->pid);
		p = ptc_set32(p, symbols->absolute);
		p = ptc_set32(p, n);
		p = set_str(p, symbols->build_id, symbols->build_id_bytes);
		p = set_str(p, symbols->name, symbols->name_bytes);
		to = ptc_set64(p + (size_t)n * PTC_SYMBOL_BYTES, strings);
		for (uint32_t i = first; i < first + n; i++) {
			const char *string = symbols->strings + symbols->symbols[i].name;
			size_t bytes = strlen(string) + 1;

			p = ptc_set64(p, symbols->symbols[i].value);
			p = ptc_set64(p, symbols->symbols[i].size);
			p = ptc_set32(p, name);
			p = ptc_set32(p, symbols->symbols[i].type);
			to = set_bytes(to, string, bytes);
			name += (uint32_t)bytes;
		}
		if (ptc_put_plain(w, PTC_SYMBOLS, size, e))
			return -1;
		first += n;
	}
	return 0;
}

int ptc_put_round(struct ptc_writer *w, uint64_t time_ns, struct pt_error *e)
{
	if (begin(w, 8, e))
		return -1;
	ptc_set64(w->raw.bytes, time_ns);
	return ptc_put_plain(w, PTC_ROUND, 8, e);
}

uint64_t ptc_writer_bytes(const struct ptc_writer *w)
{
	return __atomic_load_n(&w->written, __ATOMIC_RELAXED);
}
