/* container_seek.c - finds the chunks of AUX data of a container that is a file. See container.h. */
#include "schema/container.h"
#include "schema/container_format.h"
#include "schema/container_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/array.h"

/* n bytes at an offset of the container. 1; 0: it ends before; -1: PT_ERR_IO. */
static int read_bytes(const struct ptc_reader *r, uint64_t offset, uint8_t *to, size_t n, struct pt_error *e)
{
	for (size_t have = 0; have < n;) {
		ssize_t got = pread(r->fd, to + have, n - have, r->begin + (off_t)(offset + have));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return pt_fail_errno(e, "cannot read the container");
		if (!got)
			return 0;
		have += (size_t)got;
	}
	return 1;
}

static int cut(uint64_t offset, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_TRUNCATED, offset, "the container is cut");
}

int ptc_read_at(struct ptc_reader *r, uint64_t offset, struct ptc_chunk *ret, struct pt_error *e)
{
	uint8_t h[PTC_CHUNK_HEADER_BYTES];
	uint64_t stored;
	int n;

	if (r->begin < 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "the container is no file");
	n = read_bytes(r, offset, h, sizeof h, e);
	if (n <= 0)
		return n < 0 ? -1 : cut(offset, e);
	if (ptc_check_header(r, h, offset, e) < 0)
		return -1;
	stored = u64(h + 16);
	if (ptc_reader_reserve(&r->stored, &r->stored_room, stored ? stored : 1, e))
		return -1;
	n = read_bytes(r, offset + sizeof h, r->stored, stored, e);
	if (n <= 0)
		return n < 0 ? -1 : cut(offset, e);
	if (ptc_unpack(r, h, offset, e) < 0)
		return -1;
	*ret = (struct ptc_chunk){.type = (enum ptc_type)ptc_get16(h + 4),
				  .stream = u32(h + 8),
				  .offset = offset,
				  .data = r->raw,
				  .size = u64(h + 24)};
	return 0;
}

/* ---- The list --------------------------------------------------------------------------------------- */

struct list {
	struct ptc_aux_at *items;
	size_t count, room;
};

static int add(struct list *l, uint64_t offset, uint32_t stream, struct pt_error *e)
{
	if (pt_array_grow(&l->items, l->count, &l->room, e) < 0)
		return -1;
	l->items[l->count++] = (struct ptc_aux_at){.offset = offset, .stream = stream};
	return 0;
}

/* 1: from the index; 0: there is none that can be read; -1: no memory. */
static int list_by_index(struct ptc_reader *r, struct list *l, struct pt_error *e)
{
	uint8_t tail[PTC_INDEX_TAIL];
	struct pt_error ignored = {0};
	struct ptc_chunk c;
	struct stat st;

	if (fstat(r->fd, &st) < 0 || st.st_size - r->begin < (off_t)sizeof tail ||
	    read_bytes(r, (uint64_t)(st.st_size - r->begin) - sizeof tail, tail, sizeof tail, &ignored) <=
		0 ||
	    memcmp(tail + 8, PTC_INDEX_MAGIC, 8) != 0 || u64(tail) > (uint64_t)(st.st_size - r->begin) ||
	    ptc_read_at(r, u64(tail), &c, &ignored) < 0 || c.type != PTC_INDEX)
		return 0;
	for (uint64_t at = 0; c.size - at >= PTC_INDEX_BYTES; at += PTC_INDEX_BYTES)
		if (ptc_get16(c.data + at + 8) == PTC_AUX &&
		    add(l, u64(c.data + at), u32(c.data + at + 12), e) < 0)
			return -1;
	return 1;
}

/* From header to header, up to the first that is none. */
static int list_by_headers(const struct ptc_reader *r, struct list *l, struct pt_error *e)
{
	uint64_t offset = PTC_FILE_HEADER_BYTES;
	uint8_t h[PTC_CHUNK_HEADER_BYTES];
	struct pt_error ignored = {0};
	int n;

	while ((n = read_bytes(r, offset, h, sizeof h, e)) > 0 &&
	       ptc_check_header(r, h, offset, &ignored) == 0) {
		if (ptc_get16(h + 4) == PTC_AUX && add(l, offset, u32(h + 8), e) < 0)
			return -1;
		if (ptc_get16(h + 4) == PTC_END)
			break;
		offset += sizeof h + u64(h + 16);
	}
	return n < 0 ? -1 : 0;
}

int ptc_aux_list(struct ptc_reader *r, struct ptc_aux_at **ret, size_t *ret_count, struct pt_error *e)
{
	struct list l = {0};
	int n;

	if (r->begin < 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "the container is no file");
	n = list_by_index(r, &l, e);
	if (n == 0)
		n = list_by_headers(r, &l, e);
	if (n < 0) {
		free(l.items);
		return -1;
	}
	*ret = l.items;
	*ret_count = l.count;
	return 0;
}
