/* image.c - see image.h. */
#include "decode/code/image.h"

#include "decode/code/image_used.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct segment {
	uint64_t offset, vaddr, size; /* of the file; vaddr relates symbols to offsets */
	uint8_t *bytes;		      /* NULL: in the container still */
	struct ptc_kept *kept; /* not NULL: there they are or were, and bytes are in a room of the store */
};

struct symbol {
	uint64_t value, end;
	uint32_t name;
	uint16_t rank; /* 0 is best: of symbols at one address the global one names it */
	bool sizeless; /* its end is where the next one begins */
};

struct img_file {
	struct img_file *next;
	struct img_store *store;
	char *name;
	char build_id[41];
	int32_t machine_pid, pid;
	bool memory, absolute;	  /* absolute: its symbols are addresses, it has no code */
	struct segment *segments; /* sorted by offset */
	size_t segment_count, segment_room;
	uint64_t longest;	/* segment */
	struct symbol *symbols; /* sorted by value, one for each value */
	size_t symbol_count;
	char *strings;
	size_t strings_bytes;
	struct img_used *used; /* NULL: nobody asks */
};

/* Of many images. */
#define ROOM_BYTES ((size_t)2 << 20)
struct room {
	struct room *next;
	uint8_t *at;
	size_t left;
	uint8_t bytes[];
};

struct img_store {
	struct img_file *files; /* newest first */
	struct room *rooms;
	bool track_used;
	struct ptc_reader *reader; /* of the container */
	uint64_t bytes, most;	   /* of code and symbols */
	bool failed;		   /* an image could not be read: error says why */
	struct pt_error error;
};

struct img_store *img_store_create(void)
{
	struct img_store *s = calloc(1, sizeof *s);

	if (s)
		s->most = UINT64_MAX;
	return s;
}

void img_store_limit(struct img_store *s, uint64_t bytes)
{
	s->most = bytes;
}

static bool has_room(struct img_store *s, uint64_t bytes)
{
	if (bytes > s->most - s->bytes)
		return false;
	s->bytes += bytes;
	return true;
}

void img_store_reader(struct img_store *s, struct ptc_reader *reader)
{
	s->reader = reader;
}

bool img_store_failed(const struct img_store *s, struct pt_error *e)
{
	if (s->failed)
		*e = s->error;
	return s->failed;
}

static void segment_free(struct segment *seg)
{
	if (!seg->kept)
		free(seg->bytes);
	free(seg->kept);
}

static void file_destroy(struct img_file *f)
{
	for (size_t i = 0; i < f->segment_count; i++)
		segment_free(&f->segments[i]);
	free(f->segments);
	img_used_destroy(f->used);
	free(f->symbols);
	free(f->strings);
	free(f->name);
	free(f);
}

void img_store_destroy(struct img_store *s)
{
	if (!s)
		return;
	while (s->files) {
		struct img_file *f = s->files;

		s->files = f->next;
		file_destroy(f);
	}
	while (s->rooms) {
		struct room *r = s->rooms;

		s->rooms = r->next;
		free(r);
	}
	free(s);
}

static void hex(char *to, const uint8_t *bytes, size_t n)
{
	if (n > 20)
		n = 20;
	for (size_t i = 0; i < n; i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
	to[2 * n] = 0;
}

static struct img_file *file_add(struct img_store *s, int32_t machine_pid, const char *name,
				 size_t name_bytes, const uint8_t *build_id, size_t build_id_bytes,
				 struct pt_error *e)
{
	struct img_file *f = calloc(1, sizeof *f);

	if (!f || !(f->name = strndup(name, name_bytes))) {
		free(f);
		pt_fail_no_memory(e, "the code images");
		return NULL;
	}
	if (s->track_used && !(f->used = img_used_create())) {
		file_destroy(f);
		pt_fail_no_memory(e, "the code images");
		return NULL;
	}
	f->store = s;
	f->machine_pid = machine_pid;
	hex(f->build_id, build_id, build_id_bytes);
	f->next = s->files;
	s->files = f;
	return f;
}

static struct img_file *find(struct img_store *s, int32_t machine_pid, const char *name, size_t name_bytes,
			     const char *build_id)
{
	struct img_file *f;

	for (f = s->files; f; f = f->next) {
		if (f->memory || f->absolute || f->machine_pid != machine_pid)
			continue;
		if (build_id[0] && f->build_id[0]
			? strcmp(build_id, f->build_id) == 0
			: strlen(f->name) == name_bytes && !memcmp(f->name, name, name_bytes))
			return f;
	}
	return NULL;
}

struct img_file *img_store_find(struct img_store *s, int32_t machine_pid, const char *name,
				const uint8_t *build_id, size_t build_id_bytes)
{
	char id[41];

	hex(id, build_id, build_id_bytes);
	return find(s, machine_pid, name, strlen(name), id);
}

static int segment_add(struct img_store *s, struct img_file *f, const struct ptc_image *image,
		       struct pt_error *e)
{
	struct segment seg = {.offset = image->offset, .vaddr = image->vaddr, .size = image->size};
	size_t i;

	if (image->size == 0)
		return 0;
	if (f->segment_count == f->segment_room) {
		size_t room = f->segment_room ? 2 * f->segment_room : 4;
		struct segment *grown = realloc(f->segments, room * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, "the code images");
		f->segments = grown;
		f->segment_room = room;
	}
	if (image->later) {
		seg.kept = ptc_keep(s->reader, image->later, e);
		if (!seg.kept)
			return -1;
	} else {
		seg.bytes = has_room(s, image->size) ? malloc(image->size) : NULL;
		if (!seg.bytes)
			return pt_fail_no_memory(e, "the code images");
		memcpy(seg.bytes, image->bytes, image->size);
	}
	for (i = f->segment_count; i > 0 && f->segments[i - 1].offset > image->offset; i--)
		;
	memmove(&f->segments[i + 1], &f->segments[i], (f->segment_count++ - i) * sizeof seg);
	f->segments[i] = seg;
	if (image->size > f->longest)
		f->longest = image->size;
	return 0;
}

/* The first segment that holds the file's byte at offset, NULL when none. */
static struct segment *segment_at(const struct img_file *f, uint64_t offset)
{
	size_t lo = 0, hi = f->segment_count;

	/* The first that is not too far before it to reach it. */
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->segments[mid].offset <= offset && offset - f->segments[mid].offset >= f->longest)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < f->segment_count && f->segments[lo].offset <= offset; lo++)
		if (offset - f->segments[lo].offset < f->segments[lo].size)
			return &f->segments[lo];
	return NULL;
}

/* n bytes that live as long as the store. NULL: no memory. */
static uint8_t *room_for(struct img_store *s, size_t n)
{
	struct room *r = s->rooms;
	size_t size = n > ROOM_BYTES / 2 ? sizeof *r + n : ROOM_BYTES;

	if (!r || n > r->left) {
		/* Filled here and there, and then walked at random: as a huge page it is one page fault and one TLB entry. */
		if (!has_room(s, size))
			return NULL;
		r = aligned_alloc(ROOM_BYTES, (size + ROOM_BYTES - 1) / ROOM_BYTES * ROOM_BYTES);
		if (!r)
			return NULL;
		madvise(r, size, MADV_HUGEPAGE);
		*r = (struct room){.next = s->rooms, .at = r->bytes, .left = size - sizeof *r};
		s->rooms = r;
	}
	r->at += n;
	r->left -= n;
	return r->at - n;
}

/* False when the container does not give the bytes: the store has failed. */
static bool segment_read(struct img_store *s, struct segment *seg)
{
	const uint8_t *bytes;
	uint8_t *room;

	if (seg->bytes)
		return true;
	if (s->failed)
		return false;
	room = room_for(s, ptc_kept_room(seg->kept));
	if (!room) {
		s->failed = true;
		pt_fail_no_memory(&s->error, "the code images");
		return false;
	}
	bytes = ptc_kept_read(s->reader, seg->kept, room, &s->error);
	s->failed = !bytes;
	if (bytes)
		seg->bytes = room + (bytes - room);
	return bytes != NULL;
}

int img_store_image(struct img_store *s, const struct ptc_image *image, struct pt_error *e)
{
	struct img_file *f;
	char id[41];

	hex(id, image->build_id, image->build_id_bytes);
	f = find(s, image->machine_pid, image->name, image->name_bytes, id);
	/* Begun anew under the same name: the file was replaced, or is told twice. */
	if (f && (!image->continues || strcmp(f->build_id, id) != 0))
		f = NULL;
	if (!f)
		f = file_add(s, image->machine_pid, image->name, image->name_bytes, image->build_id,
			     image->build_id_bytes, e);
	return f ? segment_add(s, f, image, e) : -1;
}

struct img_file *img_store_memory(struct img_store *s, const struct ptc_image *image, struct pt_error *e)
{
	struct ptc_image at0 = *image;
	struct img_file *f = file_add(s, image->machine_pid, image->name, image->name_bytes, image->build_id,
				      image->build_id_bytes, e);

	if (!f)
		return NULL;
	f->memory = true;
	f->pid = image->pid;
	at0.offset = image->vaddr; /* a memory image's offsets are its addresses */
	return segment_add(s, f, &at0, e) < 0 ? NULL : f;
}

static int by_value(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Sorts the count symbols of f, keeps one for each value, and tells where each ends. */
static void symbols_settle(struct img_file *f, size_t count)
{
	struct symbol *all = f->symbols;
	size_t n = 0;

	qsort(all, count, sizeof *all, by_value);
	for (size_t i = 0; i < count; i++) {
		if (n && all[n - 1].value == all[i].value) {
			if (all[n - 1].sizeless && !all[i].sizeless) {
				all[n - 1].end = all[i].end;
				all[n - 1].sizeless = false;
			}
			continue;
		}
		all[n++] = all[i];
	}
	for (size_t i = 0; i < n; i++)
		if (all[i].sizeless)
			all[i].end = i + 1 < n ? all[i + 1].value : UINT64_MAX;
	f->symbol_count = n;
}

/* Adds t to the symbols that f has. */
static int symbols_add(struct img_file *f, const struct ptc_symbols *t, struct pt_error *e)
{
	size_t n = f->symbol_count, base = f->strings_bytes;
	struct symbol *symbols;
	char *strings;

	if (base + t->strings_bytes >= UINT32_MAX ||
	    !has_room(f->store, t->strings_bytes + (uint64_t)t->count * sizeof *symbols))
		return pt_fail_no_memory(e, "the code images");
	symbols = realloc(f->symbols, (n + t->count + 1) * sizeof *symbols);
	if (symbols)
		f->symbols = symbols;
	strings = realloc(f->strings, base + t->strings_bytes + 1);
	if (strings)
		f->strings = strings;
	if (!symbols || !strings)
		return pt_fail_no_memory(e, "the code images");
	memcpy(strings + base, t->strings, t->strings_bytes);
	strings[base + t->strings_bytes] = 0;
	f->strings_bytes = base + t->strings_bytes + 1;
	for (uint32_t i = 0; i < t->count; i++) {
		struct ptc_symbol sym;

		memcpy(&sym, (const uint8_t *)t->symbols + i * sizeof sym, sizeof sym);
		if (sym.name >= t->strings_bytes)
			continue;
		symbols[n++] = (struct symbol){.value = sym.value,
					       .end = sym.value + sym.size,
					       .name = (uint32_t)(base + sym.name),
					       .rank = sym.type == 'T'			    ? 0
						       : sym.type == 'W' || sym.type == 'w' ? 1
											    : 2,
					       .sizeless = sym.size == 0};
	}
	symbols_settle(f, n);
	return 0;
}

int img_store_symbols(struct img_store *s, const struct ptc_symbols *t, struct pt_error *e)
{
	struct img_file *f;
	char id[41];

	hex(id, t->build_id, t->build_id_bytes);
	if (t->absolute) {
		f = file_add(s, t->machine_pid, t->name, t->name_bytes, t->build_id, t->build_id_bytes, e);
		if (!f)
			return -1;
		f->absolute = true;
		f->pid = t->pid;
	} else if (!(f = find(s, t->machine_pid, t->name, t->name_bytes, id))) {
		return 0; /* symbols of code that nobody has */
	}
	return symbols_add(f, t, e);
}

uint64_t img_store_address(const struct img_store *s, int32_t machine_pid, int32_t pid, const char *name)
{
	for (const struct img_file *f = s->files; f; f = f->next) {
		if (!f->absolute || f->machine_pid != machine_pid || f->pid != pid)
			continue;
		for (size_t i = 0; i < f->symbol_count; i++)
			if (!strcmp(f->strings + f->symbols[i].name, name))
				return f->symbols[i].value;
	}
	return 0;
}

const char *img_file_name(const struct img_file *f)
{
	return f->name;
}

const char *img_file_build_id(const struct img_file *f)
{
	return f->build_id;
}

void img_space_init(struct img_space *sp)
{
	static uint32_t generations;

	memset(sp, 0, sizeof *sp);
	sp->generation = ++generations;
}

void img_space_of(struct img_space *sp, struct img_store *store, int32_t machine_pid, int32_t pid)
{
	sp->store = store;
	sp->machine_pid = machine_pid;
	sp->pid = pid;
}

void img_space_deinit(struct img_space *sp)
{
	free(sp->maps);
	sp->maps = NULL;
	sp->count = sp->room = 0;
}

int img_space_copy(struct img_space *to, const struct img_space *from, struct pt_error *e)
{
	struct img_map *maps = NULL;

	if (from->count && !(maps = malloc(from->count * sizeof *maps)))
		return pt_fail_no_memory(e, "the code images");
	if (from->count)
		memcpy(maps, from->maps, from->count * sizeof *maps);
	free(to->maps);
	to->maps = maps;
	to->count = to->room = from->count;
	to->hint = 0;
	to->generation++;
	to->changes++;
	return 0;
}

void img_space_clear(struct img_space *sp)
{
	sp->count = 0;
	sp->hint = 0;
	sp->generation++;
	sp->changes++;
}

size_t img_space_after(const struct img_space *sp, uint64_t ip)
{
	size_t lo = 0, hi = sp->count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (sp->maps[mid].end > ip)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

int img_space_map(struct img_space *sp, uint64_t start, uint64_t end, uint64_t offset, struct img_file *file,
		  struct pt_error *e)
{
	struct img_map right = {0};
	size_t i, from, to;

	if (end <= start)
		return 0;
	if (sp->count + 2 > sp->room) {
		size_t room = sp->room ? sp->room * 2 : 16;
		struct img_map *maps = realloc(sp->maps, room * sizeof *maps);

		if (!maps)
			return pt_fail_no_memory(e, "the code images");
		sp->maps = maps;
		sp->room = room;
	}
	sp->changes++;
	from = img_space_after(sp, start);
	for (to = from; to < sp->count && sp->maps[to].start < end; to++)
		;
	if (to - from == 1 && sp->maps[from].start == start && sp->maps[from].end == end &&
	    sp->maps[from].file == file && sp->maps[from].offset == offset)
		return 0; /* told twice */
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
	/* [from, to) goes; the new one and `right` come. */
	i = 1 + (right.end != 0);
	memmove(&sp->maps[from + i], &sp->maps[to], (sp->count - to) * sizeof *sp->maps);
	sp->count = sp->count - (to - from) + i;
	sp->maps[from] = (struct img_map){.start = start, .end = end, .offset = offset, .file = file};
	if (right.end)
		sp->maps[from + 1] = right;
	sp->hint = 0;
	return 0;
}

bool img_space_overlaps(const struct img_space *sp, uint64_t start, uint64_t end)
{
	size_t i = img_space_after(sp, start);

	return i < sp->count && sp->maps[i].start < end;
}

const struct img_map *img_space_find(struct img_space *sp, uint64_t ip)
{
	size_t i;

	if (ip >> 63 && sp->upper)
		sp = sp->upper;
	i = sp->hint;
	if (i < sp->count && ip >= sp->maps[i].start && ip < sp->maps[i].end)
		return &sp->maps[i];
	i = img_space_after(sp, ip);
	if (i >= sp->count || ip < sp->maps[i].start)
		return NULL;
	sp->hint = (uint32_t)i;
	return &sp->maps[i];
}

size_t img_space_code(struct img_space *sp, uint64_t ip, const uint8_t **ret)
{
	const struct img_map *m = img_space_find(sp, ip);
	struct segment *seg;
	uint64_t offset, at, n;

	if (!m || !m->file)
		return 0;
	offset = m->offset + (ip - m->start);
	seg = segment_at(m->file, offset);
	if (!seg || !segment_read(m->file->store, seg))
		return 0;
	at = offset - seg->offset;
	n = seg->size - at;
	if (n > m->end - ip)
		n = m->end - ip;
	*ret = seg->bytes + at;
	if (m->file->used)
		img_used_add(m->file->used, offset);
	return n;
}

void img_space_use(struct img_space *sp, uint64_t start, uint64_t end)
{
	for (uint64_t at = start; at < end; at = (at | (IMG_USED_GRAIN - 1)) + 1) {
		const struct img_map *m = img_space_find(sp, at);

		if (!m || !m->file || !m->file->used)
			return;
		img_used_add(m->file->used, m->offset + (at - m->start));
		if ((at | (IMG_USED_GRAIN - 1)) == UINT64_MAX)
			return;
	}
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

bool img_space_write(struct img_space *sp, uint64_t start, const uint8_t *bytes, size_t n)
{
	bool changed = false;

	for (size_t i = 0, k; i < n; i += k) {
		const struct img_map *m = img_space_find(sp, start + i);
		const uint8_t *p;

		k = img_space_code(sp, start + i, &p);
		if (k == 0 || !m->file->memory) {
			k = 1;
			continue;
		}
		if (k > n - i)
			k = n - i;
		if (memcmp(p, bytes + i, k) == 0)
			continue;
		changed = true;
		for (size_t s = 0; s < m->file->segment_count; s++) {
			struct segment *seg = &m->file->segments[s];

			if (seg->bytes && p >= seg->bytes && p < seg->bytes + seg->size)
				memcpy(seg->bytes + (p - seg->bytes), bytes + i, k);
		}
	}
	if (changed) {
		sp->generation++;
		sp->changes++;
	}
	return changed;
}

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

/* The symbol of f that covers value, NULL when none. */
static const struct symbol *covering(const struct img_file *f, uint64_t value)
{
	size_t lo = 0, hi = f->symbol_count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->symbols[mid].value > value)
			hi = mid;
		else
			lo = mid + 1;
	}
	/* A symbol without size may cover it, or an outer one whose inner neighbours do not: a few back. */
	for (size_t i = lo, tries = 0; i > 0 && tries < 4; i--, tries++)
		if (value < f->symbols[i - 1].end)
			return &f->symbols[i - 1];
	return NULL;
}

/* Absolute symbols come in tables, one a module or so: the one that begins last before ip names it. */
static int absolute_symbol(const struct img_space *sp, const struct img_map *m, uint64_t ip,
			   struct img_symbol *ret)
{
	const struct symbol *best = NULL;
	uint64_t end = m->end;

	for (const struct img_file *f = sp->store ? sp->store->files : NULL; f; f = f->next) {
		const struct symbol *sym;

		if (!f->absolute || f->machine_pid != sp->machine_pid || f->pid != sp->pid)
			continue;
		sym = covering(f, ip);
		if (!sym || (best && sym->value <= best->value))
			continue;
		best = sym;
		ret->file = f;
	}
	if (!best || best->value < m->start)
		return -1;
	ret->name = ret->file->strings + best->name;
	ret->start = best->value;
	ret->end = best->end < end ? best->end : end;
	ret->index = best->name;
	return 0;
}

int img_space_symbol(struct img_space *sp, uint64_t ip, struct img_symbol *ret)
{
	const struct img_map *m = img_space_find(sp, ip);
	const struct img_file *f;
	const struct symbol *sym;
	const struct segment *seg;
	uint64_t value, offset, bias;

	if (!m || !(f = m->file))
		return -1;
	if (!f->symbol_count)
		return absolute_symbol(ip >> 63 && sp->upper ? sp->upper : sp, m, ip, ret);
	offset = m->offset + (ip - m->start);
	seg = segment_at(f, offset);
	if (!seg)
		return -1;
	value = seg->vaddr + (offset - seg->offset);
	bias = ip - value;
	sym = covering(f, value);
	if (!sym)
		return -1;
	ret->name = f->strings + sym->name;
	ret->start = sym->value + bias;
	ret->end = sym->end == UINT64_MAX ? m->end : sym->end + bias;
	ret->file = f;
	ret->index = sym->name;
	return 0;
}

void img_store_track_used(struct img_store *s)
{
	s->track_used = true;
}

int img_store_print_used(const struct img_store *s, FILE *to, struct pt_error *e)
{
	for (const struct img_file *f = s->files; f; f = f->next) {
		char prefix[128];

		if (!f->used)
			continue;
		snprintf(prefix, sizeof prefix, "%s %d %d %s", f->memory ? "memory" : "file",
			 (int)f->machine_pid, f->memory ? (int)f->pid : 0,
			 f->build_id[0] ? f->build_id : "-");
		if (img_used_print(f->used, prefix, f->name, to, e) < 0)
			return -1;
	}
	return 0;
}
