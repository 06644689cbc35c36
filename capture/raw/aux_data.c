/* aux_data.c - see aux_data.h. */
#include "capture/raw/aux_data.h"
#include "capture/raw/byte_source.h"
#include "capture/pt/packet_len.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_MAX   ((size_t)1 << 20)
#define PIECE_LEAST ((size_t)64 << 10)

/* A buffer that is being read: its next piece, [bytes, bytes + piece). */
struct reader {
	struct byte_source *source;
	uint8_t *bytes;
	size_t count, piece;
	uint64_t offset;   /* of bytes[0] in the AUX data */
	uint64_t start_ns; /* no byte of the piece is older; 0 unknown */
	uint64_t next_ns;  /* the same of the bytes after it */
	bool ended;
};

/* The piece ends before a PSB with its time, or where the room ends. */
static void cut(struct reader *r, const struct perf_file_clock *clock)
{
	uint64_t tsc;

	r->piece = r->count;
	r->next_ns = r->start_ns;
	for (size_t at = PIECE_LEAST; clock->mult && at + PT_PSB_BYTES <= r->count; at++) {
		const uint8_t *psb;

		if (!pt_is_psb(r->bytes + at, r->count - at)) {
			psb = memchr(r->bytes + at + 1, 0x02, r->count - at - 1);
			if (!psb)
				return;
			at = (size_t)(psb - r->bytes) - 1;
			continue;
		}
		if (pt_psb_plus(r->bytes + at, r->count - at, &tsc) > 0) {
			uint64_t ns = perf_tsc_to_ns(clock, tsc);

			if (ns > r->start_ns)
				r->next_ns = ns;
			r->piece = at;
			return;
		}
	}
}

static int next_piece(struct reader *r, const struct perf_file_clock *clock, struct pt_error *e)
{
	r->count -= r->piece;
	r->offset += r->piece;
	r->start_ns = r->next_ns;
	memmove(r->bytes, r->bytes + r->piece, r->count);
	if (!r->ended) {
		ssize_t got = byte_source_read(r->source, r->bytes + r->count, PIECE_MAX - r->count, e);

		if (got < 0)
			return -1;
		r->ended = (size_t)got < PIECE_MAX - r->count;
		r->count += (size_t)got;
	}
	cut(r, clock);
	return 0;
}

static int open_one(struct reader *r, const struct raw_aux *aux, const struct perf_file_clock *clock,
		    struct pt_error *e)
{
	r->source = byte_source_open(aux->path, e);
	if (!r->source)
		return -1;
	r->bytes = malloc(PIECE_MAX);
	if (!r->bytes)
		return pt_fail_no_memory(e, NULL);
	if (next_piece(r, clock, e))
		return -1;
	return r->count ? 0
			: pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: the AUX data is empty", aux->path);
}

/* The reader with the oldest piece; count: all are at their end. */
static size_t oldest_of(const struct reader *readers, size_t count)
{
	size_t oldest = count;

	for (size_t i = 0; i < count; i++)
		if (readers[i].count && (oldest == count || readers[i].start_ns < readers[oldest].start_ns))
			oldest = i;
	return oldest;
}

static int put_pieces(struct reader *readers, size_t count, const struct perf_file_clock *clock,
		      struct ptc_writer *w, struct pt_error *e)
{
	uint64_t round_ns = 0;
	size_t oldest;

	while ((oldest = oldest_of(readers, count)) < count) {
		struct reader *r = &readers[oldest];

		if (r->start_ns > round_ns) {
			round_ns = r->start_ns;
			if (ptc_put_round(w, round_ns, e))
				return -1;
		}
		if (ptc_put_aux(
			w, (uint32_t)oldest + 1,
			&(struct ptc_aux){.aux_offset = r->offset, .bytes = r->bytes, .size = r->piece}, e) ||
		    next_piece(r, clock, e))
			return -1;
	}
	return ptc_put_round(w, UINT64_MAX, e);
}

int raw_aux_streams(const struct raw_aux *aux, size_t count, struct ptc_writer *w, struct pt_error *e)
{
	for (size_t i = 0; i < count; i++) {
		bool of_cpu = aux[i].cpu >= 0; /* the sideband says who runs there */
		struct ptc_stream stream = {.cpu = aux[i].cpu,
					    .pid = of_cpu ? -1 : aux[i].pid,
					    .tid = of_cpu ? -1 : aux[i].tid,
					    .attr = UINT32_MAX};

		if (ptc_put_stream(w, &stream, e) < 0)
			return -1;
	}
	return 0;
}

int raw_aux_put(const struct raw_aux *aux, size_t count, const struct perf_file_clock *clock,
		struct ptc_writer *w, struct pt_error *e)
{
	struct reader *readers = calloc(count + 1, sizeof *readers);
	int ret = 0;

	if (!readers)
		return pt_fail_no_memory(e, NULL);
	for (size_t i = 0; i < count && ret == 0; i++)
		ret = open_one(&readers[i], &aux[i], clock, e);
	if (ret == 0)
		ret = put_pieces(readers, count, clock, w, e);
	for (size_t i = 0; i < count; i++) {
		byte_source_close(readers[i].source);
		free(readers[i].bytes);
	}
	free(readers);
	return ret;
}
