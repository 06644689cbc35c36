/* ring.c - see ring.h. */
#include "capture/tracecmd/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define WINDOW_BYTES ((size_t)64 << 10)
#define PAGE_LEAST   64
#define PAGE_MAX     ((uint32_t)16 << 20)
#define CHUNK_MAX    ((uint32_t)256 << 20)

static int damaged(const struct dat_ring *r, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_BAD_INPUT, r->at, "%s: the data of CPU %u is damaged", r->path, r->cpu);
}

/* ---- Bytes ---- */

/* The next n bytes of the CPU's data, which has them. */
static int read_bytes(struct dat_ring *r, void *to, size_t n, struct pt_error *e)
{
	if (n > r->end - r->at)
		return damaged(r, e);
	for (size_t done = 0; done < n;) {
		ssize_t got = pread(r->fd, (uint8_t *)to + done, n - done, (off_t)(r->at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return pt_fail_errno(e, "cannot read %s", r->path);
		if (got == 0)
			return pt_fail(e, PT_ERR_TRUNCATED, r->at + done, "%s ends before its data", r->path);
		done += (size_t)got;
	}
	r->at += n;
	return 0;
}

/* Room for n bytes of pages. What follows them is 0. */
static int need_window(struct dat_ring *r, size_t n, struct pt_error *e)
{
	if (n > r->window_room) {
		free(r->window);
		r->window = malloc(n + r->page_bytes + DAT_PAGE_SLACK);
		r->window_room = r->window ? n : 0;
		if (!r->window)
			return pt_fail_no_memory(e, "the trace.dat");
	}
	memset(r->window + n, 0, r->page_bytes + DAT_PAGE_SLACK);
	return 0;
}

static int decompress(const struct dat_ring *r, const uint8_t *packed, size_t packed_bytes, size_t n,
		      struct pt_error *e)
{
	bool done = false, no_memory = false;
	unsigned long bytes = n;
	size_t got;
	int status;

	if (r->compression == TRACE_DAT_ZLIB) {
		status = uncompress(r->window, &bytes, packed, packed_bytes);
		done = status == Z_OK;
		no_memory = status == Z_MEM_ERROR;
	} else if (r->compression == TRACE_DAT_ZSTD) {
		got = ZSTD_decompress(r->window, n, packed, packed_bytes);
		done = got > 0 && !ZSTD_isError(got);
		no_memory = ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation;
	}
	if (no_memory)
		return pt_fail_no_memory(e, "the trace.dat");
	return done ? 0 : damaged(r, e);
}

/* u32 bytes, u32 bytes when it is decompressed, and that many compressed ones. */
static int read_chunk(struct dat_ring *r, struct pt_error *e)
{
	uint32_t sizes[2];
	uint8_t *packed;
	int ret;

	if (read_bytes(r, sizes, sizeof sizes, e))
		return -1;
	if (sizes[0] > CHUNK_MAX || sizes[1] > CHUNK_MAX)
		return damaged(r, e);
	packed = malloc((size_t)sizes[0] + 1);
	if (!packed)
		return pt_fail_no_memory(e, "the trace.dat");
	ret = need_window(r, sizes[1], e);
	if (ret == 0)
		ret = read_bytes(r, packed, sizes[0], e);
	if (ret == 0)
		ret = decompress(r, packed, sizes[0], sizes[1], e);
	free(packed);
	r->window_bytes = sizes[1];
	return ret;
}

static int read_pages(struct dat_ring *r, struct pt_error *e)
{
	size_t room =
	    r->page_bytes > WINDOW_BYTES ? r->page_bytes : WINDOW_BYTES / r->page_bytes * r->page_bytes;

	r->window_bytes = r->end - r->at < room ? r->end - r->at : room;
	return need_window(r, r->window_bytes, e) ? -1 : read_bytes(r, r->window, r->window_bytes, e);
}

/* ---- Pages ---- */

/* 1; 0: there are no more pages; -1. */
static int next_page(struct dat_ring *r, struct pt_error *e)
{
	r->page_at += r->page_bytes;
	while (r->page_at >= r->window_bytes) {
		r->page_at = 0;
		r->window_bytes = 0;
		if (r->compression == TRACE_DAT_PLAIN ? r->at == r->end : r->chunks == 0)
			return 0;
		if (r->compression == TRACE_DAT_PLAIN ? read_pages(r, e) : read_chunk(r, e))
			return -1;
		r->chunks -= r->compression != TRACE_DAT_PLAIN;
	}
	return dat_page_load(r->page, r->window + r->page_at, r->page_bytes) ? 1 : damaged(r, e);
}

int dat_ring_event(struct dat_ring *r, struct dat_raw *ret, struct pt_error *e)
{
	while (r->page) {
		int got = r->window_bytes ? dat_page_event(r->page, ret) : 0;

		if (got > 0)
			return 1;
		if (got < 0)
			return damaged(r, e);
		got = next_page(r, e);
		if (got <= 0)
			return got;
	}
	return 0;
}

void dat_ring_next(struct dat_ring *r)
{
	dat_page_next(r->page);
}

int dat_ring_open(struct dat_ring *ret, const struct dat_library *l, const struct dat_ring_place *place,
		  struct pt_error *e)
{
	const struct trace_dat_cpu *data = &place->buffer->cpus[place->cpu];
	bool compressed = place->buffer->compressed;

	/* (What the file says of the length of compressed data is without the number of chunks.) */
	*ret = (struct dat_ring){.fd = place->fd,
				 .path = place->path,
				 .cpu = place->cpu,
				 .compression = compressed ? place->head->compression : TRACE_DAT_PLAIN,
				 .page_bytes = place->buffer->page_bytes,
				 .at = data->offset,
				 .end = compressed ? INT64_MAX : data->offset + data->bytes};
	if (data->bytes == 0)
		return 0;
	if (ret->page_bytes < PAGE_LEAST || ret->page_bytes > PAGE_MAX)
		return damaged(ret, e);
	if (ret->compression != TRACE_DAT_PLAIN && read_bytes(ret, &ret->chunks, sizeof ret->chunks, e))
		return -1;
	ret->page = dat_page_create(l, place->head->long_bytes, e);
	return ret->page ? 0 : -1;
}

void dat_ring_close(struct dat_ring *r)
{
	dat_page_destroy(r->page);
	free(r->window);
	*r = (struct dat_ring){0};
}
