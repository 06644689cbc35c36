/* executed_code.c - see executed_code.h. */
#include "decode/output/executed_code.h"

#include <stdlib.h>
#include <string.h>

#include "decode/code/huge_pages.h"
#include "decode/code/path_insns.h"
#include "decode/output/executed_lines.h"
#include "schema/hash.h"

enum {
	LINES_MAX =
	    1 << 17, /* kept at once, 21 MB: when there are more, they are written, and new versions begin */
	TRIES = 16,  /* versions that a path is held against, the latest first */
	SEEN = 1 << 17,	  /* slots of the cache of straight code: what cc1 runs is in it twice over, */
	NEW = 256,	  /* those that the path at hand may fill before all are emptied with it, */
	RECENT = 1 << 10, /* and of that of codes */
	DECODED = 16	  /* bytes for an instruction */
};

/* n instructions from ip on, of one code of the graph, that are all there in that version. */
struct seen {
	uint64_t ip;
	uint32_t code, n, version;
};

struct pt_executed {
	struct pt_emit *emit;
	struct pt_executed_lines lines;
	uint32_t first, last;	      /* versions of those in lines */
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
	/* Its last instruction's place, which is that of [from, until). */
	struct {
		uint64_t from, until;
		uint32_t number;
	} place;
	/* Bytes of its code, from ip on. */
	struct {
		uint64_t ip;
		const uint8_t *bytes;
		size_t n;
	} at_hand;
};

struct pt_executed *pt_executed_create(struct pt_emit *emit)
{
	struct pt_executed *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->seen = pt_pages_reserve(SEEN, sizeof *x->seen);
	if (!x->seen || pt_executed_lines_init(&x->lines, NULL) < 0) {
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
	pt_executed_lines_deinit(&x->lines);
	pt_pages_release(x->seen, SEEN, sizeof *x->seen);
	free(x);
}

/* Instructions of a path follow each other, mostly in one function. */
static uint32_t place_of(struct pt_executed *x, uint64_t ip)
{
	if (ip < x->place.from || ip >= x->place.until) {
		x->place.from = ip;
		x->place.number = pt_emit_place_until(x->emit, x->space, ip, &x->place.until);
	}
	return x->place.number;
}

/* The bytes at ip, DECODED of them if there are so many; buffer has that room: they may lie in two mappings. */
static const uint8_t *bytes_at(struct pt_executed *x, uint64_t ip, uint8_t *buffer, size_t *ret_n)
{
	uint64_t offset = ip - x->at_hand.ip;

	if (offset >= x->at_hand.n || x->at_hand.n - offset < DECODED) {
		x->at_hand.ip = ip;
		x->at_hand.n = img_space_code(x->space, ip, &x->at_hand.bytes);
		offset = 0;
	}
	*ret_n = DECODED;
	if (x->at_hand.n - offset >= DECODED)
		return x->at_hand.bytes + offset;
	*ret_n = img_space_read(x->space, ip, buffer, DECODED);
	return buffer;
}

/* An instruction of the path: it is in the version already, or will be, or the version has another there. */
static uint32_t on_insn(void *arg, uint64_t ip, bool *ret_ok)
{
	struct pt_executed *x = arg;
	static const uint8_t bits[] = {[INSN_64] = 64, [INSN_32] = 32, [INSN_16] = 16};
	struct pt_executed_insn new = {.ip = ip, .version = x->version, .bits = bits[x->mode]};
	enum pt_executed_added added;
	uint8_t buffer[DECODED];
	struct insn in;
	size_t n;
	const uint8_t *bytes = bytes_at(x, ip, buffer, &n);
	int len = insn_decode(bytes, n, x->mode, &in);

	if (len <= 0)
		return 0;
	new.len = (uint32_t)len;
	new.bytes = bytes;
	new.symbol = place_of(x, ip);
	added = pt_executed_lines_add(&x->lines, &new);
	if (added == PT_EXECUTED_NO_MEMORY)
		pt_emit_no_memory(x->emit, "the executed code");
	x->differs = added == PT_EXECUTED_DIFFERS;
	*ret_ok &= added == PT_EXECUTED_THERE && !x->emit->failed;
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

static int put_code(void *arg, const struct ptr_code *r)
{
	struct pt_executed *x = arg;

	pt_emit_put(x->emit, ptr_put_code(x->emit->writer, r, &x->emit->error));
	return x->emit->failed ? -1 : 0;
}

void pt_executed_finish(struct pt_executed *x)
{
	bool memory;

	if (!x->emit->failed && pt_executed_lines_put(&x->lines, put_code, x, &memory) < 0 && !memory)
		pt_emit_no_memory(x->emit, "the executed code");
}

/* Writes all, and begins anew. */
static void begin_again(struct pt_executed *x)
{
	pt_executed_finish(x);
	pt_executed_lines_empty(&x->lines);
	x->first = x->last = x->last + 1;
	pt_pages_wipe(x->seen, SEEN, sizeof *x->seen);
	memset(x->recent, 0, sizeof x->recent);
}

uint32_t pt_executed_path(struct pt_executed *x, const struct pt_path *path)
{
	uint32_t *recent, code = path->code + 1;

	if (x->lines.count >= LINES_MAX)
		begin_again(x);
	x->space = x->emit->graph->codes[path->code]->space;
	x->code = code;
	x->mode = path->mode;
	x->place.until = 0;
	x->at_hand.n = 0;
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
