/* packets_print.c - pt-decode --packets. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decode/output/packets_print.h"
#include "decode/packet/errata.h"
#include "decode/packet/packet.h"

struct printer {
	struct printer *next;
	uint32_t id;
	uint64_t offset; /* of buffer[0] */
	uint8_t *buffer;
	size_t size, room;
	unsigned bip_bytes;
	bool synced, any;
	uint32_t errata; /* enum pt_erratum: of the CPU that was traced */
};

static void drain(struct printer *s, FILE *out, bool last, uint64_t *errors)
{
	const uint8_t *p = s->buffer, *end = s->buffer + s->size;

	while (p < end) {
		struct pt_packet k;
		char text[80];
		int n;

		if (!s->synced) {
			const uint8_t *next = pt_find_psb(p, end);

			if (!next) {
				p = end - p >= PT_PACKET_MAX ? end - (PT_PACKET_MAX - 1) : p;
				break;
			}
			p = next;
			s->synced = true;
		}
		n = pt_packet_decode(p, end, s->bip_bytes, &k);
		if (s->errata)
			n = pt_errata_packet(s->errata, p, end, last, n, &k);
		if (n == PT_NEED_MORE_BYTES) {
			if (last) {
				fprintf(out, "%06" PRIx64 " ERR cut\n",
					s->offset + (uint64_t)(p - s->buffer));
				++*errors;
			}
			break;
		}
		if (n < 0) {
			fprintf(out, "%06" PRIx64 " ERR bad packet\n", s->offset + (uint64_t)(p - s->buffer));
			++*errors;
			s->synced = false;
			s->bip_bytes = 0;
			p++;
			continue;
		}
		if (k.type == PT_BBP)
			s->bip_bytes = k.n;
		else if (k.type == PT_BEP || k.type == PT_PSB || k.type == PT_OVF)
			s->bip_bytes = 0;
		pt_packet_text(&k, text, sizeof text);
		if (k.type == PT_PAD && n > 1)
			snprintf(text, sizeof text, "%d bytes: a TMA that is corrupt (SKZ84)", n);
		fprintf(out, "%06" PRIx64 " %s%s%s\n", s->offset + (uint64_t)(p - s->buffer),
			pt_type_name(k.type), text[0] ? " " : "", text);
		p += n;
	}
	s->offset += (uint64_t)(p - s->buffer);
	s->size = (size_t)(end - p);
	if (s->size)
		memmove(s->buffer, p, s->size);
}

static int take(struct printer *s, const struct ptc_aux *aux, FILE *out, uint64_t *errors, struct pt_error *e)
{
	const uint8_t *p = aux->bytes;
	uint64_t n = aux->size, at = aux->aux_offset;

	if (s->any && at < s->offset + s->size) { /* a snapshot's overlap */
		uint64_t skip = s->offset + s->size - at;

		if (skip > n)
			skip = n;
		p += skip;
		n -= skip;
		at += skip;
	}
	if (!s->any || at != s->offset + s->size) {
		if (s->any) {
			drain(s, out, true, errors);
			fprintf(out, "%06" PRIx64 " ERR lost\n", s->offset);
			++*errors;
		}
		s->size = 0;
		s->offset = at;
		s->synced = false;
	}
	s->any = true;
	if (s->size + n > s->room) {
		uint8_t *b = realloc(s->buffer, s->size + n);

		if (!b)
			return pt_fail_no_memory(e, NULL);
		s->buffer = b;
		s->room = s->size + n;
	}
	if (n)
		memcpy(s->buffer + s->size, p, n);
	s->size += n;
	drain(s, out, false, errors);
	return 0;
}

/* Puts a stream before the others, of a CPU (-1: any), whose errata it has. 0, or -1. */
static int add(struct printer **all, uint32_t id, int32_t cpu, const struct ptc_meta *meta,
	       struct pt_error *e)
{
	struct printer *s = calloc(1, sizeof *s);

	if (!s)
		return pt_fail_no_memory(e, NULL);
	s->id = id;
	s->errata = pt_errata_of((uint32_t)ptc_meta_cpu_number(meta, cpu, "cpu_family", 0),
				 (uint32_t)ptc_meta_cpu_number(meta, cpu, "cpu_model", 0));
	s->next = *all;
	*all = s;
	return 0;
}

/* Moves a stream from one list to the front of another; false: it is not there. */
static bool move(struct printer **from, uint32_t id, struct printer **to)
{
	for (struct printer *s; (s = *from); from = &s->next) {
		if (s->id != id)
			continue;
		*from = s->next;
		s->next = *to;
		*to = s;
		return true;
	}
	return false;
}

int pt_packets_print(struct ptc_reader *r, FILE *out, uint64_t *ret_errors, struct pt_error *e)
{
	struct printer *all = NULL, *declared = NULL, *s, *last = NULL;
	struct ptc_meta *meta = ptc_meta_create();
	struct ptc_chunk c;
	struct ptc_stream stream;
	struct ptc_aux aux;
	int n;

	*ret_errors = 0;
	if (!meta)
		return pt_fail_no_memory(e, NULL);
	while ((n = ptc_next(r, &c, e)) > 0) {
		if (c.type == PTC_META && (n = ptc_meta_add(meta, &c, e)) < 0)
			break;
		if (c.type == PTC_STREAM && ((n = ptc_parse_stream(&c, &stream, e)) < 0 ||
					     (n = add(&declared, c.stream, stream.cpu, meta, e)) < 0))
			break;
		if (c.type != PTC_AUX)
			continue;
		n = ptc_parse_aux(&c, &aux, e);
		if (n < 0)
			break;
		for (s = all; s && s->id != c.stream; s = s->next)
			;
		if (!s && !move(&declared, c.stream, &all) && (n = add(&all, c.stream, -1, meta, e)) < 0)
			break;
		s = s ? s : all;
		if (s != last && (last || s->id != 1))
			fprintf(out, "# stream %u\n", s->id);
		last = s;
		n = take(s, &aux, out, ret_errors, e);
		if (n < 0)
			break;
	}
	while (all) {
		s = all;
		if (s->size && s->synced) {
			if (s != last)
				fprintf(out, "# stream %u\n", s->id);
			drain(s, out, true, ret_errors);
		}
		all = s->next;
		free(s->buffer);
		free(s);
	}
	while ((s = declared)) { /* without AUX data */
		declared = s->next;
		free(s);
	}
	ptc_meta_destroy(meta);
	return n < 0 ? -1 : 0;
}
