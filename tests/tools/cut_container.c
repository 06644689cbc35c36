/*
 * cut_container.c - a container as two, as pt-capture --switch-output makes them: cut_container SEED IN
 * FIRST SECOND Each stream is cut somewhere where tracing had stopped (after a TIP.PGD), by the seed, or
 * where it ends. The second container has all sideband, as context, and of each stream the bytes from the
 * last PSB before the cut on.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/container/copy.h"
#include "capture/pt/packet_len.h"
#include "schema/container.h"
#include "tests/tools/rewriting.h"

#define STREAMS 4096

struct stream {
	uint8_t *bytes;
	size_t count;
	uint64_t offset, psb, cut; /* positions in the stream */
} streams[STREAMS];

static void add(const struct ptc_chunk *c)
{
	struct stream *s = &streams[c->stream % STREAMS];
	struct ptc_aux aux;

	ok(ptc_parse_aux(c, &aux, &error), "AUX");
	if (!s->count)
		s->offset = aux.aux_offset;
	s->bytes = realloc(s->bytes, s->count + aux.size + 1);
	ok(s->bytes && s->offset + s->count == aux.aux_offset ? 0 : -1, "AUX data without gaps");
	memcpy(s->bytes + s->count, aux.bytes, aux.size);
	s->count += aux.size;
}

static void choose(struct stream *s)
{
	size_t *places = malloc((s->count + 1) * sizeof *places),
	       *psbs = malloc((s->count + 1) * sizeof *psbs), n = 0, psb = 0;
	int block = 0, len;
	size_t chosen;

	for (size_t at = 0; at < s->count; at += (size_t)len) {
		len = pt_packet_len(s->bytes + at, s->count - at, &block);
		if (len <= 0)
			break;
		if (pt_is_psb(s->bytes + at, s->count - at))
			psb = at;
		if ((s->bytes[at] & 0x1f) == 0x01) { /* TIP.PGD */
			psbs[n] = psb;
			places[n++] = at + (size_t)len;
		}
	}
	chosen = n ? (size_t)rand() % n : 0;
	s->psb = s->offset + (n ? psbs[chosen] : s->count);
	s->cut = s->offset + (n ? places[chosen] : s->count);
	free(places);
	free(psbs);
}

/* The part [from, to) of what the chunk has. */
static void put_part(struct ptc_writer *w, const struct ptc_chunk *c, uint64_t from, uint64_t to,
		     uint64_t flag)
{
	struct ptc_aux aux;

	ok(ptc_parse_aux(c, &aux, &error), "AUX");
	if (from < aux.aux_offset)
		from = aux.aux_offset;
	if (to > aux.aux_offset + aux.size)
		to = aux.aux_offset + aux.size;
	if (from >= to)
		return;
	aux.bytes += from - aux.aux_offset;
	aux.size = to - from;
	aux.aux_offset = from;
	aux.flags |= flag;
	ok(ptc_put_aux(w, c->stream, &aux, &error), "AUX");
}

static void put_chunk(struct ptc_writer *w, const struct ptc_chunk *c, bool second)
{
	const struct stream *s = &streams[c->stream % STREAMS];
	const uint8_t *records;
	uint64_t size;
	uint32_t attr;

	if (c->type == PTC_AUX && !second) {
		put_part(w, c, 0, s->cut, 0);
	} else if (c->type == PTC_AUX) {
		put_part(w, c, s->psb, s->cut, PTC_AUX_CONTEXT);
		put_part(w, c, s->cut, UINT64_MAX, 0);
	} else if (c->type == PTC_SIDEBAND && second) {
		ok(ptc_parse_sideband(c, &attr, &records, &size, &error), "sideband");
		ok(ptc_put_sideband_flags(w, attr, PTC_SIDEBAND_CONTEXT, records, size, &error), "sideband");
	} else {
		ok(container_copy_chunk(w, c, &error), "a chunk");
	}
}

static void each(const char *path, struct ptc_writer *w, bool second)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), more;
	struct ptc_reader *r = ptc_reader_create(fd, &error);
	struct ptc_chunk c;

	ok(r ? 0 : -1, path);
	while ((more = ptc_next(r, &c, &error)) > 0) {
		if (!w && c.type == PTC_AUX)
			add(&c);
		else if (w)
			put_chunk(w, &c, second);
	}
	ok(more, path);
	ptc_reader_destroy(r);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	srand((unsigned)atoi(argv[1]));
	each(argv[2], NULL, false);
	for (size_t i = 0; i < STREAMS; i++)
		choose(&streams[i]);
	for (int second = 0; second < 2; second++) {
		int fd = open(argv[3 + second], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &error);

		ok(w ? 0 : -1, argv[3 + second]);
		ok(container_new_uuid(w, &error), "uuid");
		if (second)
			ok(ptc_put_meta(w, "continues", "0", &error), "META");
		each(argv[2], w, second);
		ok(ptc_writer_finish(w, &error), "the end");
		ptc_writer_destroy(w);
		close(fd);
	}
	for (size_t i = 0; i < STREAMS; i++)
		free(streams[i].bytes);
	return 0;
}
