/* kept_paths.c - see kept_paths.h. */
#include "decode/output/kept_paths.h"

#include <stdlib.h>

#include "schema/array.h"

static void deinit(struct pt_kept_path *p)
{
	free(p->edges);
	free(p->insns);
	free(p->text_bytes);
	free(p->texts);
}

static bool copy_edges(struct pt_kept_path *to, const struct pt_graph *g, const struct pt_path *path)
{
	to->count = path->count;
	to->tail_insns = path->tail_insns;
	to->edges = malloc(((size_t)path->count + 1) * sizeof *to->edges);
	to->insns = malloc(((size_t)path->count + 1) * sizeof *to->insns);
	if (!to->edges || !to->insns)
		return false;
	for (uint32_t i = 0; i < path->count; i++) {
		to->edges[i] = g->edges[g->path_edges[path->first + i]];
		to->insns[i] = pt_path_insns_before(g, path, i);
	}
	return true;
}

static bool copy_texts(struct pt_kept_path *to, const struct pt_insn_texts *texts, uint32_t path)
{
	const uint32_t *insns = pt_insn_texts_of(texts, path, &to->count);
	size_t bytes = 0, at = 0;

	to->text_bytes = malloc(((size_t)to->count + 1) * sizeof *to->text_bytes);
	if (!to->text_bytes)
		return false;
	for (uint32_t i = 0; i < to->count; i++) {
		pt_insn_text(texts, insns[i], &to->text_bytes[i]);
		bytes += to->text_bytes[i];
	}
	to->texts = malloc(bytes + 1);
	if (!to->texts)
		return false;
	for (uint32_t i = 0; i < to->count; i++) {
		uint32_t n;
		const char *text = pt_insn_text(texts, insns[i], &n);

		memcpy(to->texts + at, text, n);
		at += n;
	}
	return true;
}

/* A free item; SIZE_MAX: no memory. */
static size_t take_item(struct pt_kept_paths *k)
{
	size_t item = k->free;

	if (item) {
		k->free = k->items[item - 1].next;
		return item - 1;
	}
	if (pt_array_grow(&k->items, k->count, &k->room, NULL) < 0)
		return SIZE_MAX;
	return k->count++;
}

static void give_item(struct pt_kept_paths *k, size_t item)
{
	k->items[item] = (struct pt_kept_path){.next = k->free};
	k->free = item + 1;
}

size_t pt_keep_path(struct pt_kept_paths *k, const struct pt_graph *g, uint32_t path,
		    const struct pt_insn_texts *texts)
{
	struct pt_kept_path new = {.users = 1};
	size_t item = take_item(k);

	if (item == SIZE_MAX)
		return SIZE_MAX;
	if (texts ? copy_texts(&new, texts, path) : copy_edges(&new, g, &g->paths[path])) {
		k->items[item] = new;
		return item;
	}
	deinit(&new);
	give_item(k, item);
	return SIZE_MAX;
}

void pt_kept_path_share(struct pt_kept_paths *k, size_t item)
{
	k->items[item].users++;
}

void pt_kept_path_release(struct pt_kept_paths *k, size_t item)
{
	if (--k->items[item].users)
		return;
	deinit(&k->items[item]);
	give_item(k, item);
}

void pt_kept_paths_deinit(struct pt_kept_paths *k)
{
	for (size_t i = 0; i < k->count; i++)
		deinit(&k->items[i]);
	free(k->items);
	*k = (struct pt_kept_paths){0};
}
