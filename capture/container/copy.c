/* copy.c - see copy.h. */
#include "capture/container/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

int container_new_uuid(struct ptc_writer *w, struct pt_error *e)
{
	unsigned char id[16];
	char hex[33];

	if (getrandom(id, sizeof id, 0) != sizeof id)
		return pt_fail_errno(e, "no random number for the container's name");
	for (size_t i = 0; i < sizeof id; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	return ptc_put_meta(w, "uuid", hex, e);
}

int container_copy_meta(struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_meta *m = ptc_meta_create();
	const char *key, *value;
	int r;

	if (!m)
		return pt_fail_no_memory(e, NULL);
	r = ptc_meta_add(m, c, e);
	for (size_t i = 0; r == 0 && ptc_meta_pair(m, i, &key, &value); i++)
		if (strcmp(key, "uuid") != 0)
			r = ptc_put_meta(w, key, value, e);
	ptc_meta_destroy(m);
	return r;
}

static int copy_attr(struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_attr a;

	return ptc_parse_attr(c, &a, e) < 0 ? -1 : ptc_put_attr(w, &a, e);
}

int container_put_symbols(struct ptc_writer *w, struct ptc_symbols symbols, struct pt_error *e)
{
	struct ptc_symbol *aligned = malloc(((size_t)symbols.count + 1) * sizeof *aligned);
	int ret;

	if (!aligned)
		return pt_fail_no_memory(e, "symbols");
	memcpy(aligned, symbols.symbols, symbols.count * sizeof *aligned);
	symbols.symbols = aligned;
	ret = ptc_put_symbols(w, &symbols, e);
	free(aligned);
	return ret;
}

int container_copy_chunk(struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_tracepoint format;
	struct ptc_symbols symbols;
	struct ptc_stream stream;
	struct ptc_image image;
	struct ptc_aux aux;
	const uint8_t *records;
	uint64_t size, time_ns;
	uint32_t attr;

	switch (c->type) {
	case PTC_META: return container_copy_meta(w, c, e);
	case PTC_STREAM:
		return ptc_parse_stream(c, &stream, e) < 0 || ptc_put_stream(w, &stream, e) < 0 ? -1 : 0;
	case PTC_AUX: return ptc_parse_aux(c, &aux, e) < 0 ? -1 : ptc_put_aux(w, c->stream, &aux, e);
	case PTC_ATTR: return copy_attr(w, c, e);
	case PTC_FORMAT: return ptc_parse_format(c, &format, e) < 0 ? -1 : ptc_put_format(w, &format, e);
	case PTC_SIDEBAND:
		return ptc_parse_sideband(c, &attr, &records, &size, e) < 0
			   ? -1
			   : ptc_put_sideband_flags(w, attr, ptc_sideband_flags(c), records, size, e);
	case PTC_IMAGE: return ptc_parse_image(c, &image, e) < 0 ? -1 : ptc_put_image(w, &image, e);
	case PTC_SYMBOLS:
		return ptc_parse_symbols(c, &symbols, e) < 0 ? -1 : container_put_symbols(w, symbols, e);
	case PTC_ROUND: return ptc_parse_round(c, &time_ns, e) < 0 ? -1 : ptc_put_round(w, time_ns, e);
	default: return 0;
	}
}
