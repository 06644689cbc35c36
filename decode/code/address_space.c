/* address_space.c - see address_space.h. */
#include "decode/code/address_space.h"

#include <stdlib.h>
#include <string.h>

#include "decode/code/image_used.h"
#include "schema/array.h"

void img_space_init(struct img_space *sp)
{
	memset(sp, 0, sizeof *sp);
}

void img_space_of(struct img_space *sp, struct img_store *store, int32_t machine_pid, int32_t pid)
{
	sp->store = store;
	sp->machine_pid = machine_pid;
	sp->pid = pid;
}

/* The space has no mappings. Those that no other space shares are freed. */
static void drop_maps(struct img_space *sp)
{
	if (!sp->sharers || --*sp->sharers == 0) {
		free(sp->maps);
		free(sp->sharers);
	}
	if (sp->copied_bytes)
		img_store_give_bytes(sp->store, sp->copied_bytes);
	sp->maps = NULL;
	sp->sharers = NULL;
	sp->count = sp->room = sp->gap = 0;
	sp->copied_bytes = 0;
}

void img_space_deinit(struct img_space *sp)
{
	drop_maps(sp);
}

/* ---- Mappings --------------------------------------------------------------------------------------- */

int img_space_copy(struct img_space *to, struct img_space *from, struct pt_error *e)
{
	if (to == from)
		return 0;
	if (!from->sharers) {
		from->sharers = malloc(sizeof *from->sharers);
		if (!from->sharers)
			return pt_fail_no_memory(e, "mappings");
		*from->sharers = 1;
	}
	++*from->sharers;
	drop_maps(to);
	to->maps = from->maps;
	to->count = from->count;
	to->room = from->room;
	to->gap = from->gap;
	to->sharers = from->sharers;
	to->hint = 0;
	to->generation++;
	to->changes++;
	return 0;
}

/* Before the mappings change: those that are shared are copied, as far as the store's limit lets them. */
static int own(struct img_space *sp, struct pt_error *e)
{
	size_t bytes = sp->count * sizeof *sp->maps, count = sp->count;
	struct img_map *maps;

	if (!sp->sharers || *sp->sharers == 1)
		return 0;
	if (sp->store && !img_store_take_bytes(sp->store, bytes))
		return pt_fail_no_memory(e, "mappings");
	maps = malloc(bytes + 1);
	if (!maps) {
		if (sp->store)
			img_store_give_bytes(sp->store, bytes);
		return pt_fail_no_memory(e, "mappings");
	}
	for (size_t i = 0; i < count; i++)
		maps[i] = *img_space_at(sp, i);
	drop_maps(sp);
	sp->maps = maps;
	sp->count = sp->room = sp->gap = count;
	sp->copied_bytes = sp->store ? bytes : 0;
	return 0;
}

void img_space_clear(struct img_space *sp)
{
	drop_maps(sp);
	sp->hint = 0;
	sp->generation++;
	sp->changes++;
}

size_t img_space_after(const struct img_space *sp, uint64_t ip)
{
	size_t lo = 0, hi = sp->count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (img_space_at(sp, mid)->end > ip)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static bool equal(const struct img_map *a, const struct img_map *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset && a->file == b->file;
}

/* Makes room for two more maps. */
static int grow(struct img_space *sp, struct pt_error *e)
{
	size_t after = sp->count - sp->gap, room = sp->room;

	while (sp->room < sp->count + 2)
		if (pt_array_grow(&sp->maps, sp->room, &sp->room, e) < 0)
			return -1;
	if (sp->room > room && after)
		memmove(sp->maps + sp->room - after, sp->maps + room - after, after * sizeof *sp->maps);
	return 0;
}

/* The gap comes before map i. */
static void move_gap(struct img_space *sp, size_t i)
{
	size_t size = sp->room - sp->count;

	if (i < sp->gap)
		memmove(sp->maps + i + size, sp->maps + i, (sp->gap - i) * sizeof *sp->maps);
	else if (i > sp->gap)
		memmove(sp->maps + sp->gap, sp->maps + sp->gap + size, (i - sp->gap) * sizeof *sp->maps);
	sp->gap = i;
}

int img_space_map(struct img_space *sp, uint64_t start, uint64_t end, uint64_t offset, struct img_file *file,
		  struct pt_error *e)
{
	struct img_map new = {.start = start, .end = end, .offset = offset, .file = file}, right = {0};
	size_t n, from, to;

	if (end <= start)
		return 0;
	sp->changes++;
	from = img_space_after(sp, start);
	for (to = from; to < sp->count && img_space_at(sp, to)->start < end; to++)
		;
	if (to - from == 1 && equal(img_space_at(sp, from), &new))
		return 0; /* recorded twice */
	/* In the middle of another map it makes three of one. */
	if (own(sp, e) < 0 || grow(sp, e) < 0)
		return -1;
	move_gap(sp, to);
	if (to > from) {
		struct img_map *last = &sp->maps[to - 1];

		sp->generation++;
		if (last->end > end) {
			right = *last;
			right.offset += end - last->start;
			right.start = end;
		}
		if (sp->maps[from].start < start) {
			sp->maps[from].end = start;
			from++;
		}
	}
	/* Instead of [from, to), before the gap, come the new map and `right`. */
	n = 1 + (right.end != 0);
	sp->gap = from + n;
	sp->count = sp->count - (to - from) + n;
	sp->maps[from] = new;
	if (right.end)
		sp->maps[from + 1] = right;
	sp->hint = 0;
	return 0;
}

bool img_space_overlaps(const struct img_space *sp, uint64_t start, uint64_t end)
{
	size_t i = img_space_after(sp, start);

	return i < sp->count && img_space_at(sp, i)->start < end;
}

/* The space that has ip's mappings. */
static struct img_space *at_ip(struct img_space *sp, uint64_t ip)
{
	return ip >> 63 && sp->upper ? sp->upper : sp;
}

static uint64_t file_offset(const struct img_map *m, uint64_t ip)
{
	return m->offset + (ip - m->start);
}

const struct img_map *img_space_find(struct img_space *sp, uint64_t ip)
{
	size_t i;

	sp = at_ip(sp, ip);
	i = sp->hint;
	if (i < sp->count && ip >= img_space_at(sp, i)->start && ip < img_space_at(sp, i)->end)
		return img_space_at(sp, i);
	i = img_space_after(sp, ip);
	if (i >= sp->count || ip < img_space_at(sp, i)->start)
		return NULL;
	sp->hint = (uint32_t)i;
	return img_space_at(sp, i);
}

/* ---- Code ------------------------------------------------------------------------------------------- */

size_t img_space_code(struct img_space *sp, uint64_t ip, const uint8_t **ret)
{
	const struct img_map *m = img_space_find(sp, ip);
	size_t n = m && m->file ? img_file_code(m->file, file_offset(m, ip), ret) : 0;

	return n > 0 && n > m->end - ip ? m->end - ip : n;
}

size_t img_space_read(struct img_space *sp, uint64_t ip, uint8_t *buffer, size_t n)
{
	size_t got = 0;

	while (got < n) {
		const uint8_t *p;
		size_t k = img_space_code(sp, ip + got, &p);

		if (k == 0)
			break;
		if (k > n - got)
			k = n - got;
		memcpy(buffer + got, p, k);
		got += k;
	}
	return got;
}

void img_space_use(struct img_space *sp, uint64_t start, uint64_t end)
{
	for (uint64_t at = start; at < end; at = (at | (IMG_USED_GRAIN - 1)) + 1) {
		const struct img_map *m = img_space_find(sp, at);

		if (!m || !m->file || !img_file_use(m->file, file_offset(m, at)))
			return;
		if ((at | (IMG_USED_GRAIN - 1)) == UINT64_MAX)
			return;
	}
}

bool img_space_write(struct img_space *sp, uint64_t start, const uint8_t *bytes, size_t n)
{
	bool changed = false;

	for (size_t i = 0, k; i < n; i += k) {
		const struct img_map *m = img_space_find(sp, start + i);
		const uint8_t *p;

		k = img_space_code(sp, start + i, &p);
		if (k == 0 || !img_file_is_memory(m->file)) {
			k = 1;
			continue;
		}
		if (k > n - i)
			k = n - i;
		if (memcmp(p, bytes + i, k) == 0)
			continue;
		changed = true;
		img_file_write(m->file, file_offset(m, start + i), bytes + i, k);
	}
	if (changed) {
		sp->generation++;
		sp->changes++;
	}
	return changed;
}

/* ---- Symbols ---------------------------------------------------------------------------------------- */

int img_space_name(struct img_space *sp, uint64_t start, uint64_t end, const char *name, struct pt_error *e)
{
	struct ptc_symbol symbol = {.value = start, .size = end - start, .type = 't'};
	struct ptc_symbols t = {.machine_pid = sp->machine_pid,
				.pid = sp->pid,
				.absolute = 1,
				.count = 1,
				.name = name,
				.name_bytes = (uint32_t)strlen(name),
				.symbols = &symbol,
				.strings = name,
				.strings_bytes = strlen(name) + 1};

	return sp->store ? img_store_symbols(sp->store, &t, e) : 0;
}

static int absolute_symbol(const struct img_space *sp, const struct img_map *m, uint64_t ip,
			   struct img_symbol *ret)
{
	struct img_symbol found;

	if (!sp->store || img_store_absolute_symbol(sp->store, sp->machine_pid, sp->pid, ip, &found) < 0 ||
	    found.start < m->start)
		return -1;
	if (found.end > m->end)
		found.end = m->end;
	*ret = found;
	return 0;
}

int img_space_symbol(struct img_space *sp, uint64_t ip, struct img_symbol *ret)
{
	const struct img_map *m = img_space_find(sp, ip);

	if (!m || !m->file)
		return -1;
	if (!img_file_has_symbols(m->file))
		return absolute_symbol(at_ip(sp, ip), m, ip, ret);
	return img_file_symbol(m->file, file_offset(m, ip), ip, m->end, ret);
}
