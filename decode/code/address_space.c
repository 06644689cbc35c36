/* address_space.c - see address_space.h. */
#include "decode/code/address_space.h"

#include <stdlib.h>
#include <string.h>

#include "decode/code/image_used.h"

/* asm/vsyscall.h: the same in every process, and never reported as mapped. */
#define VSYSCALL       0xffffffffff600000u
#define VSYSCALL_BYTES 4096

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
		img_map_list_deinit(&sp->maps);
		free(sp->sharers);
	}
	if (sp->copied_bytes)
		img_store_give_bytes(sp->store, sp->copied_bytes);
	sp->maps = (struct img_map_list){0};
	sp->sharers = NULL;
	sp->copied_bytes = 0;
}

void img_space_deinit(struct img_space *sp)
{
	drop_maps(sp);
	sp->hint = NULL;
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
	to->sharers = from->sharers;
	to->hint = NULL;
	to->generation++;
	to->changes++;
	return 0;
}

/* Before the mappings change: those that are shared are copied, as far as the store's limit lets them. */
static int own(struct img_space *sp, struct pt_error *e)
{
	size_t bytes = sp->maps.count * sizeof(struct img_map);
	struct img_map_list maps = {0};

	if (!sp->sharers || *sp->sharers == 1)
		return 0;
	if (sp->store && !img_store_take_bytes(sp->store, bytes))
		return pt_fail_no_memory(e, "mappings");
	if (img_map_list_copy(&maps, &sp->maps, e) < 0) {
		if (sp->store)
			img_store_give_bytes(sp->store, bytes);
		return -1;
	}
	drop_maps(sp);
	sp->maps = maps;
	sp->copied_bytes = sp->store ? bytes : 0;
	return 0;
}

void img_space_clear(struct img_space *sp)
{
	drop_maps(sp);
	sp->hint = NULL;
	sp->generation++;
	sp->changes++;
}

const struct img_map *img_space_after(const struct img_space *sp, uint64_t ip)
{
	return img_map_list_at(&sp->maps, img_map_list_after(&sp->maps, ip));
}

/*
 * Takes [start, end) from what is mapped there. *place is that of the first map after it. -1:
 * PT_ERR_NO_MEMORY.
 */
static int unmap(struct img_space *sp, uint64_t start, uint64_t end, struct img_map_place *place,
		 struct pt_error *e)
{
	struct img_map *m = img_map_list_at(&sp->maps, *place), left;

	if (!m || m->start >= end)
		return 0;
	sp->generation++;
	if (m->start < start) {
		left = *m;
		left.end = start;
		m->offset += start - m->start;
		m->start = start;
		if (img_map_list_insert(&sp->maps, place, &left, e) < 0)
			return -1;
		*place = img_map_list_after(&sp->maps, start);
	}
	while ((m = img_map_list_at(&sp->maps, *place)) && m->end <= end)
		img_map_list_remove(&sp->maps, place);
	if (m && m->start < end) {
		m->offset += end - m->start;
		m->start = end;
	}
	return 0;
}

static int map(struct img_space *sp, const struct img_map *new, struct pt_error *e)
{
	const struct img_map *m;
	struct img_map_place place;

	if (new->end <= new->start)
		return 0;
	sp->changes++;
	sp->hint = NULL;
	place = img_map_list_after(&sp->maps, new->start);
	m = img_map_list_at(&sp->maps, place);
	if (m && m->start == new->start && m->end == new->end && m->offset == new->offset &&
	    m->file == new->file && m->unread == new->unread)
		return 0; /* recorded twice */
	if (own(sp, e) < 0)
		return -1;
	place = img_map_list_after(&sp->maps, new->start);
	if (unmap(sp, new->start, new->end, &place, e) < 0)
		return -1;
	return img_map_list_insert(&sp->maps, &place, new, e);
}

int img_space_map(struct img_space *sp, uint64_t start, uint64_t end, uint64_t offset, struct img_file *file,
		  struct pt_error *e)
{
	return map(sp, &(struct img_map){.start = start, .end = end, .offset = offset, .file = file}, e);
}

int img_space_map_unread(struct img_space *sp, uint64_t start, uint64_t end, uint64_t offset,
			 struct img_file *unread, struct pt_error *e)
{
	return map(sp, &(struct img_map){.start = start, .end = end, .offset = offset, .unread = unread}, e);
}

bool img_space_overlaps(const struct img_space *sp, uint64_t start, uint64_t end)
{
	const struct img_map *m = img_space_after(sp, start);

	return m && m->start < end;
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
	const struct img_map *m;

	sp = at_ip(sp, ip);
	m = sp->hint;
	if (m && ip >= m->start && ip < m->end)
		return m;
	m = img_space_after(sp, ip);
	if (!m || ip < m->start)
		return NULL;
	sp->hint = m;
	return m;
}

/* ---- Code ------------------------------------------------------------------------------------------- */

size_t img_space_code(struct img_space *sp, uint64_t ip, const uint8_t **ret)
{
	const struct img_map *m = img_space_find(sp, ip);
	size_t n = m && m->file ? img_file_code(m->file, file_offset(m, ip), ret) : 0;

	return n > 0 && n > m->end - ip ? m->end - ip : n;
}

size_t img_space_peek(const struct img_space *sp, uint64_t ip, const uint8_t **ret, bool *ret_later)
{
	const struct img_map *m;
	size_t n;

	*ret_later = false;
	m = img_space_after(ip >> 63 && sp->upper ? sp->upper : sp, ip);
	if (!m || ip < m->start || !m->file)
		return 0;
	n = img_file_peek(m->file, file_offset(m, ip), ret, ret_later);
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

/*
 * A process's mapping is of one making: a symbol from before it names what was there before. A kernel's
 * code comes in pieces (of a range that was too long for one, or of a trimmed container), and its symbols
 * go across them.
 */
static int absolute_symbol(const struct img_space *sp, const struct img_map *m, uint64_t ip,
			   struct img_symbol *ret)
{
	struct img_symbol found = {.until = UINT64_MAX};
	bool kernel = sp->pid == PTC_ANY_PID;
	int r = sp->store ? img_store_absolute_symbol(sp->store, sp->machine_pid, sp->pid, ip, &found) : -1;

	ret->until = found.until < m->end ? found.until : m->end;
	if (r < 0 || (found.start < m->start && !kernel))
		return -1;
	found.until = ret->until;
	if (found.end > m->end && (!kernel || found.end == UINT64_MAX))
		found.end = m->end;
	*ret = found;
	return 0;
}

int img_space_symbol(struct img_space *sp, uint64_t ip, struct img_symbol *ret)
{
	const struct img_map *m = img_space_find(sp, ip);

	ret->until = ip + 1;
	if (!m)
		return -1;
	if (!m->file || !img_file_has_symbols(m->file))
		return absolute_symbol(at_ip(sp, ip), m, ip, ret);
	return img_file_symbol(m->file, file_offset(m, ip), ip, m->end, ret);
}

int img_space_unnamed(struct img_space *sp, uint64_t ip, struct img_symbol *ret)
{
	const struct img_map *m = img_space_find(sp, ip);
	struct img_file *f = m ? m->file ? m->file : m->unread : NULL;
	struct pt_error e;

	if (!m && ip - VSYSCALL < VSYSCALL_BYTES && at_ip(sp, ip)->store) {
		*ret = (struct img_symbol){
		    .name = "",
		    .start = VSYSCALL,
		    .end = VSYSCALL + VSYSCALL_BYTES,
		    .file =
			img_store_unread(at_ip(sp, ip)->store, at_ip(sp, ip)->machine_pid, "[vsyscall]", &e),
		    .index = IMG_UNNAMED,
		    .until = ip + 1};
		return ret->file ? 0 : -1;
	}
	if (!f)
		return -1;
	img_file_unnamed(f, file_offset(m, ip), ip, ret);
	/* What has no file behind it has no offsets but its own. */
	if (img_file_is_memory(f) || strcmp(img_file_name(f), "//anon") == 0)
		ret->start = m->start;
	ret->end = m->end;
	if (ret->until > m->end || ret->until <= ip)
		ret->until = m->end;
	return 0;
}
