/* segment_decoder.c - see segment_decoder.h: a decoder, and the code that its graph has of a space. */
#include "decode/flow/segment_decoder.h"

#include <stdlib.h>

#include "schema/apart.h"
#include "schema/array.h"

/* Of its graph, at first. */
#define DECODER_BYTES (PT_GRAPH_BYTES / 2)

/* ---- The decoder ------------------------------------------------------------------------------------ */

static bool read_later(void *arg, struct pt_code *code)
{
	const struct pt_segment_decoder *d = arg;

	return d->config.read_code(d->config.arg, code->space, code->later_ip);
}

struct pt_segment_decoder *pt_segment_decoder_create(const struct pt_segment_config *config)
{
	struct pt_segment_decoder *d = pt_alloc_apart(sizeof *d);
	struct pt_error e;

	if (!d)
		return NULL;
	d->config = *config;
	if (pt_graph_init(&d->graph, &e) < 0) {
		free(d);
		return NULL;
	}
	if (config->stats && pt_graph_count_stats(&d->graph, &e) < 0) {
		pt_segment_decoder_destroy(d);
		return NULL;
	}
	if (config->graph_bytes) {
		pt_graph_limit(&d->graph, config->graph_bytes);
	} else {
		pt_graph_limit(&d->graph, DECODER_BYTES);
		pt_graph_may_grow(&d->graph, config->graphs);
	}
	if (config->read_code)
		d->graph.read_later = read_later;
	d->graph.read_later_arg = d;
	return d;
}

void pt_segment_decoder_destroy(struct pt_segment_decoder *d)
{
	if (!d)
		return;
	pt_graph_deinit(&d->graph);
	free(d->codes);
	free(d);
}

const struct pt_graph *pt_segment_decoder_graph(const struct pt_segment_decoder *d)
{
	return &d->graph;
}

bool pt_segment_decoder_sums(const struct pt_segment_decoder *d)
{
	return d->config.sums;
}

bool pt_segment_decoder_is_full(const struct pt_segment_decoder *d)
{
	return d->graph.cache_full;
}

void pt_segment_decoder_empty(struct pt_segment_decoder *d)
{
	pt_graph_recycle(&d->graph);
}

bool pt_segment_decoder_grows(const struct pt_segment_decoder *d)
{
	return !d->config.graph_bytes && d->graph.limit_bytes > DECODER_BYTES;
}

/* ---- Codes ------------------------------------------------------------------------------------------ */

static struct segment_known_code *known_code(struct pt_segment_decoder *d, struct img_space *space)
{
	struct segment_known_code *known;

	for (size_t i = d->code_count; i-- > 0;)
		if (d->codes[i].space == space)
			return &d->codes[i];
	if (pt_array_grow(&d->codes, d->code_count, &d->code_room, NULL) < 0)
		return NULL;
	known = &d->codes[d->code_count];
	*known = (struct segment_known_code){.space = space, .code = pt_graph_code(&d->graph, space)};
	if (!known->code)
		return NULL;
	known->code->peeks = true;
	d->code_count++;
	return known;
}

/* As the space is now, unless the task has used it already: its version is that of the task, then. */
static struct pt_code *renewed(struct pt_segment_decoder *d, struct img_space *space)
{
	struct segment_known_code *known = known_code(d, space);

	if (!known)
		return NULL;
	if (known->task == d->task_count)
		return known->code;
	known->task = d->task_count;
	if (known->code->later)
		pt_code_renew(&d->graph, known->code);
	else
		pt_code_refresh(&d->graph, known->code);
	known->code->later = false;
	return known->code;
}

struct pt_code *pt_segment_code_of(struct pt_segment_decoder *d, struct img_space *space)
{
	struct pt_code *code;

	if (!space)
		return NULL;
	img_store_read_begin(d->config.store);
	code = renewed(d, space);
	img_store_read_end(d->config.store);
	if (code && !d->graph.full)
		return code;
	d->ended = true;
	return NULL;
}
