/* executed_code.c - see executed_code.h. */
#include "decode/output/executed_code.h"

#include <stdlib.h>
#include <string.h>

#include "decode/code/huge_pages.h"
#include "decode/code/path_insns.h"
#include "schema/array.h"
#include "schema/hash.h"

enum {
	INSNS_MAX = 1 << 20, /* kept at once: when there are more, they are written, and new versions begin */
	TRIES = 16,	     /* versions that a path is held against, the latest first */
	SEEN = 1 << 17,	     /* slots of the cache of straight code: what cc1 runs is in it twice over, */
	NEW = 256,	     /* those that the path at hand may fill before all are emptied with it, */
	RECENT = 1 << 10     /* and of that of codes */
};

struct executed {
	uint64_t ip;
	uint32_t version, symbol;
	uint8_t len, mode, bytes[15];
	bool written;
};

/* n instructions from ip on, of one code of the graph, that are all there in that version. */
struct seen {
	uint64_t ip;
	uint32_t code, n, version;
};

struct pt_executed {
	struct pt_emit *emit;
	struct pt_hash hash; /* number n is insns[n - 1] */
	struct executed *insns;
	size_t count, room;
	uint32_t first, last;	      /* versions of those in insns */
	struct seen *seen;	      /* SEEN of them, of which a short trace touches few */
	uint32_t new[NEW], new_count; /* slots that the path at hand has filled */
	struct {
		uint32_t code, version;
	} recent[RECENT];
	/* The path at hand, and the version that it is held against. */
	struct img_space *space;
	uint32_t code, version;
	uint8_t mode;
	bool differs;
};

struct pt_executed *pt_executed_create(struct pt_emit *emit)
{
	struct pt_executed *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->seen = pt_pages_reserve(SEEN, sizeof *x->seen);
	if (!x->seen || pt_hash_init(&x->hash, 12, NULL) < 0) {
		pt_pages_release(x->seen, SEEN, sizeof *x->seen);
		free(x);
		return NULL;
	}
	x->emit = emit;
	x->first = x->last = 1;
	return x;
}

void pt_executed_destroy(struct pt_executed *x)
{
	if (!x)
		return;
	pt_hash_deinit(&x->hash);
	pt_pages_release(x->seen, SEEN, sizeof *x->seen);
	free(x->insns);
	free(x);
}

static uint64_t insn_key(uint64_t ip, uint32_t version)
{
	return pt_hash_mix(ip ^ (uint64_t)version << 48);
}

static uint64_t key_of_insn(const void *insns, uint32_t n)
{
	const struct executed *insn = (const struct executed *)insns + (n - 1);

	return insn_key(insn->ip, insn->version);
}

static struct executed *find(const struct pt_executed *x, uint64_t ip, uint32_t version)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(&x->hash, insn_key(ip, version)); (n = x->hash.slots[i]);
	     i = pt_hash_next(&x->hash, i))
		if (x->insns[n - 1].ip == ip && x->insns[n - 1].version == version)
			return &x->insns[n - 1];
	return NULL;
}

static bool add(struct pt_executed *x, const struct executed *new)
{
	if (pt_array_grow(&x->insns, x->count, &x->room, NULL) < 0)
		return false;
	x->insns[x->count++] = *new;
	return pt_hash_insert(&x->hash, insn_key(new->ip, new->version), (uint32_t)x->count, key_of_insn,
			      x->insns, NULL) == 0;
}

/* An instruction of the path: it is in the version already, or will be, or the version has another there. */
static uint32_t on_insn(void *arg, uint64_t ip, bool *ret_ok)
{
	struct pt_executed *x = arg;
	struct executed new = {.ip = ip, .version = x->version, .mode = x->mode};
	const struct executed *old = find(x, ip, x->version);
	uint8_t bytes[16];
	struct insn in;
	int len = insn_decode(bytes, img_space_read(x->space, ip, bytes, sizeof bytes), x->mode, &in);

	if (len <= 0)
		return 0;
	new.len = (uint8_t)len;
	memcpy(new.bytes, bytes, (size_t)len);
	new.symbol = pt_emit_place(x->emit, x->space, ip);
	if (!old && !add(x, &new)) {
		pt_emit_no_memory(x->emit, "the executed code");
		*ret_ok = false;
	}
	x->differs = old && (old->len != len || old->mode != x->mode || old->symbol != new.symbol ||
			     memcmp(old->bytes, bytes, (size_t)len) != 0);
	*ret_ok &= !x->differs && !x->emit->failed;
	return (uint32_t)len;
}

static bool on_straight(void *arg, uint64_t ip, uint32_t n)
{
	struct pt_executed *x = arg;
	struct seen *s = &x->seen[(pt_hash_mix(ip) + n) % SEEN];
	const struct seen at = {.ip = ip, .n = n, .code = x->code, .version = x->version};

	if (s->ip == ip && s->n == n && s->code == at.code && s->version == at.version)
		return true;
	*s = at;
	if (x->new_count++ < NEW)
		x->new[x->new_count - 1] = (uint32_t)(s - x->seen);
	return false;
}

static bool fits(struct pt_executed *x, const struct pt_path *path, uint32_t version)
{
	const struct pt_path_insns to = {.straight = on_straight, .insn = on_insn, .arg = x};

	x->version = version;
	x->differs = false;
	x->new_count = 0;
	if (pt_path_insns(x->emit->graph, path, &to))
		return true;
	/* What was new of it is not of the version, at least not all. */
	if (x->new_count > NEW)
		pt_pages_wipe(x->seen, SEEN, sizeof *x->seen);
	for (uint32_t i = 0; i < x->new_count && i < NEW; i++)
		x->seen[x->new[i]] = (struct seen){0};
	return false;
}

/* ---- Records ------------------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
	const struct executed *x = a, *y = b;

	if (x->version != y->version)
		return x->version < y->version ? -1 : 1;
	return x->ip < y->ip ? -1 : x->ip > y->ip;
}

static void put_code(struct pt_executed *x, struct executed *insn)
{
	static const uint32_t bits[] = {[INSN_64] = 64, [INSN_32] = 32, [INSN_16] = 16};
	uint8_t bytes[PTR_CODE_INSNS * sizeof insn->bytes];
	struct ptr_code r = {.version = insn->version,
			     .symbol = insn->symbol,
			     .bits = bits[insn->mode],
			     .ip = insn->ip,
			     .bytes = bytes};
	const struct executed *first = insn;
	size_t n = 0;

	while (insn && !insn->written && insn->symbol == first->symbol && insn->mode == first->mode &&
	       r.count < PTR_CODE_INSNS) {
		memcpy(bytes + n, insn->bytes, insn->len);
		n += insn->len;
		r.lens[r.count++] = insn->len;
		insn->written = true;
		insn = find(x, insn->ip + insn->len, insn->version);
	}
	pt_emit_put(x->emit, ptr_put_code(x->emit->writer, &r, &x->emit->error));
}

void pt_executed_finish(struct pt_executed *x)
{
	qsort(x->insns, x->count, sizeof *x->insns, by_place);
	memset(x->hash.slots, 0, ((size_t)x->hash.mask + 1) * sizeof *x->hash.slots);
	for (uint32_t n = 1; n <= x->count; n++)
		pt_hash_place(&x->hash, key_of_insn(x->insns, n), n);
	for (size_t i = 0; i < x->count && !x->emit->failed; i++)
		if (!x->insns[i].written)
			put_code(x, &x->insns[i]);
}

/* Writes all, and begins anew. */
static void begin_again(struct pt_executed *x)
{
	pt_executed_finish(x);
	memset(x->hash.slots, 0, ((size_t)x->hash.mask + 1) * sizeof *x->hash.slots);
	x->hash.count = 0;
	x->count = 0;
	x->first = x->last = x->last + 1;
	pt_pages_wipe(x->seen, SEEN, sizeof *x->seen);
	memset(x->recent, 0, sizeof x->recent);
}

uint32_t pt_executed_path(struct pt_executed *x, const struct pt_path *path)
{
	uint32_t *recent, code = path->code + 1;

	if (x->count >= INSNS_MAX)
		begin_again(x);
	x->space = x->emit->graph->codes[path->code]->space;
	x->code = code;
	x->mode = path->mode;
	recent = &x->recent[code % RECENT].version;
	if (x->recent[code % RECENT].code != code || *recent < x->first)
		*recent = x->last;
	x->recent[code % RECENT].code = code;
	if (fits(x, path, *recent))
		return *recent;
	for (uint32_t i = 0; i < TRIES && i <= x->last - x->first && !x->emit->failed; i++)
		if (fits(x, path, *recent = x->last - i))
			return *recent;
	/* A path that differs from itself (it cannot: its code is one version's) would fit nowhere. */
	*recent = ++x->last;
	return !x->emit->failed && fits(x, path, *recent) ? *recent : 0;
}
