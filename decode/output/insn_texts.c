/* insn_texts.c - see insn_texts.h. */
#include "decode/output/insn_texts.h"

#include <stdlib.h>

#include "decode/code/path_insns.h"
#include "schema/array.h"
#include "schema/hash.h"

struct insn_text {
	uint64_t ip, at; /* at: in text */
	uint32_t code, bytes;
	uint8_t mode, len; /* len: of the instruction; 0: it could not be decoded */
};

struct pt_insn_texts {
	const struct pt_graph *graph;
	const struct pt_text *text;
	struct pt_text_buffer buffer; /* all texts, one after the other */
	struct pt_hash hash;
	struct insn_text *insns; /* number n is insns[n - 1] */
	size_t insn_count, insn_room;
	uint32_t *sequence; /* of each path: how many instructions, then their numbers */
	size_t sequence_count, sequence_room;
	size_t *paths; /* where in sequence, and 1; 0: not there. By the path's number */
	size_t path_room;
	struct img_space *space; /* of the path at hand, with its code and mode */
	uint32_t code;
	uint8_t mode;
};

struct pt_insn_texts *pt_insn_texts_create(const struct pt_graph *graph, const struct pt_text *text)
{
	struct pt_insn_texts *t = calloc(1, sizeof *t);

	if (!t || pt_hash_init(&t->hash, 12, NULL) < 0) {
		free(t);
		return NULL;
	}
	t->graph = graph;
	t->text = text;
	return t;
}

void pt_insn_texts_destroy(struct pt_insn_texts *t)
{
	if (!t)
		return;
	pt_hash_deinit(&t->hash);
	free(t->buffer.text);
	free(t->insns);
	free(t->sequence);
	free(t->paths);
	free(t);
}

void pt_insn_texts_clear(struct pt_insn_texts *t)
{
	memset(t->hash.slots, 0, ((size_t)t->hash.mask + 1) * sizeof *t->hash.slots);
	t->hash.count = 0;
	t->insn_count = t->sequence_count = 0;
	t->buffer.length = 0;
	for (size_t i = 0; i < t->path_room; i++)
		t->paths[i] = 0;
}

static uint64_t insn_key(uint64_t ip, uint32_t code)
{
	return pt_hash_mix(ip ^ (uint64_t)code << 48);
}

static uint64_t key_of_insn(const void *insns, uint32_t n)
{
	const struct insn_text *insn = (const struct insn_text *)insns + (n - 1);

	return insn_key(insn->ip, insn->code);
}

/* Decodes and describes the instruction at ip. Its number; 0: no memory. */
static uint32_t insn_add(struct pt_insn_texts *t, uint64_t ip)
{
	uint8_t bytes[16];
	struct insn_text new = {.ip = ip, .code = t->code, .mode = t->mode, .at = t->buffer.length};
	struct pt_insn_description d = {.space = t->space, .ip = ip, .bytes = bytes, .mode = t->mode};
	struct insn in;
	int len = insn_decode(bytes, img_space_read(t->space, ip, bytes, sizeof bytes), t->mode, &in);

	if (len > 0) {
		d.len = new.len = (uint8_t)len;
		t->text->describe(t->text->arg, &d, &t->buffer);
		new.bytes = (uint32_t)(t->buffer.length - new.at);
	}
	if (t->buffer.failed || t->insn_count >= UINT32_MAX - 1 ||
	    pt_array_grow(&t->insns, t->insn_count, &t->insn_room, NULL) < 0)
		return 0;
	t->insns[t->insn_count++] = new;
	if (pt_hash_insert(&t->hash, insn_key(ip, t->code), (uint32_t)t->insn_count, key_of_insn, t->insns,
			   NULL) < 0)
		return 0;
	return (uint32_t)t->insn_count;
}

/* The number of the instruction at ip of the code at hand; 0: no memory. */
static uint32_t insn_of(struct pt_insn_texts *t, uint64_t ip)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(&t->hash, insn_key(ip, t->code)); (n = t->hash.slots[i]);
	     i = pt_hash_next(&t->hash, i)) {
		const struct insn_text *insn = &t->insns[n - 1];

		if (insn->ip == ip && insn->code == t->code && insn->mode == t->mode)
			return n;
	}
	return insn_add(t, ip);
}

static bool sequence_add(struct pt_insn_texts *t, uint32_t value)
{
	if (pt_array_grow(&t->sequence, t->sequence_count, &t->sequence_room, NULL) < 0)
		return false;
	t->sequence[t->sequence_count++] = value;
	return true;
}

static uint32_t on_insn(void *arg, uint64_t ip, bool *ret_ok)
{
	struct pt_insn_texts *t = arg;
	uint32_t n = insn_of(t, ip);

	*ret_ok = n != 0;
	if (!n || !t->insns[n - 1].len)
		return 0;
	*ret_ok = sequence_add(t, n);
	return t->insns[n - 1].len;
}

/* Room in paths for that number. */
static bool path_room(struct pt_insn_texts *t, size_t path)
{
	size_t room = t->path_room ? t->path_room : 1024;
	size_t *grown;

	if (path < t->path_room)
		return true;
	while (room <= path)
		room *= 2;
	grown = realloc(t->paths, room * sizeof *grown);
	if (!grown)
		return false;
	memset(grown + t->path_room, 0, (room - t->path_room) * sizeof *grown);
	t->paths = grown;
	t->path_room = room;
	return true;
}

bool pt_insn_texts_add(struct pt_insn_texts *t, const struct pt_path *path)
{
	const struct pt_path_insns to = {.insn = on_insn, .arg = t};
	size_t number = (size_t)(path - t->graph->paths), at = t->sequence_count;

	if (!path_room(t, number))
		return false;
	if (t->paths[number])
		return true;
	t->space = t->graph->codes[path->code]->space;
	t->code = path->code;
	t->mode = path->mode;
	if (!sequence_add(t, 0) || !pt_path_insns(t->graph, path, &to))
		return false;
	t->sequence[at] = (uint32_t)(t->sequence_count - at - 1);
	t->paths[number] = at + 1;
	return true;
}

const uint32_t *pt_insn_texts_of(const struct pt_insn_texts *t, uint32_t path, uint32_t *ret_count)
{
	const uint32_t *sequence = t->sequence + (t->paths[path] - 1);

	*ret_count = sequence[0];
	return sequence + 1;
}

const char *pt_insn_text(const struct pt_insn_texts *t, uint32_t insn, uint32_t *ret_bytes)
{
	*ret_bytes = t->insns[insn - 1].bytes;
	return t->buffer.text + t->insns[insn - 1].at;
}
