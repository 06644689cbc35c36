/* image.c - see image.h. */
#include "decode/code/image.h"

#include "decode/code/absolute_symbols.h"
#include "decode/code/arena.h"
#include "decode/code/image_names.h"
#include "decode/code/image_used.h"
#include "decode/code/symbols.h"
#include "schema/array.h"
#include "schema/hash.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct segment {
	uint64_t offset, vaddr, size; /* of the file; vaddr relates symbols to offsets */
	uint64_t last_max; /* offset of the last byte of it, or of one before it in the file's order */
	size_t number;	   /* how many came before it: of one offset, they are in this order */
	uint8_t *bytes;	   /* NULL: still in the container */
	struct ptc_kept
	    *kept; /* where they are or were in the container; then bytes lie in the store's arena */
};

struct img_file {
	struct img_file *next;
	struct img_store *store;
	char *name;
	char build_id[41];
	int32_t machine_pid, pid;
	bool memory, absolute;	  /* absolute: its symbols are addresses, it has no code */
	uint32_t number;	  /* of the store's files, as they were added */
	struct segment *segments; /* sorted by offset when they are looked at (sort_segments()) */
	size_t segment_count, segment_room;
	bool segments_unsorted;
	struct img_symbols symbols;
	struct img_used *used; /* NULL: not tracked */
};

/* The absolute symbols of a process, or of a machine's kernel. */
struct named_space {
	int32_t machine_pid, pid;
	struct img_absolute_symbols symbols;
};

struct img_store {
	struct img_file *files; /* newest first */
	uint32_t file_count;
	struct img_names names;	 /* of files with code, but not of memory */
	struct img_names unread; /* of those without code (img_store_unread()) */
	struct named_space **spaces;
	size_t space_count, space_room;
	struct pt_hash space_hash; /* numbers of spaces, from 1 */
	struct img_arena *arena;
	bool track_used;
	struct ptc_reader *reader; /* of the container */
	uint64_t bytes, limit;	   /* of code and symbols */
	bool failed;		   /* an image could not be read: error says why */
	struct pt_error error;
	pthread_rwlock_t
	    lock;	   /* readers: other threads; writer: the store's thread while it changes something */
	unsigned changing; /* how often that has begun and not ended */
};

struct img_store *img_store_create(void)
{
	struct img_store *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->limit = UINT64_MAX;
	pthread_rwlock_init(&s->lock, NULL);
	return s;
}

void img_store_read_begin(struct img_store *s)
{
	pthread_rwlock_rdlock(&s->lock);
}

void img_store_read_end(struct img_store *s)
{
	pthread_rwlock_unlock(&s->lock);
}

void img_store_change_begin(struct img_store *s)
{
	if (s->changing++ == 0)
		pthread_rwlock_wrlock(&s->lock);
}

void img_store_change_end(struct img_store *s)
{
	if (--s->changing == 0)
		pthread_rwlock_unlock(&s->lock);
}

void img_store_limit(struct img_store *s, uint64_t bytes)
{
	s->limit = bytes;
}

bool img_store_take_bytes(struct img_store *s, uint64_t bytes)
{
	if (bytes > s->limit - s->bytes)
		return false;
	s->bytes += bytes;
	return true;
}

void img_store_give_bytes(struct img_store *s, uint64_t bytes)
{
	s->bytes -= bytes;
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
	img_symbols_deinit(&f->symbols);
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
	for (size_t i = 0; i < s->space_count; i++) {
		img_absolute_deinit(&s->spaces[i]->symbols);
		free(s->spaces[i]);
	}
	free(s->spaces);
	pt_hash_deinit(&s->space_hash);
	img_names_deinit(&s->names);
	img_names_deinit(&s->unread);
	img_arena_destroy(s->arena);
	pthread_rwlock_destroy(&s->lock);
	free(s);
}

/* A build id in hex. */
static void hex(char *to, const uint8_t *bytes, size_t n)
{
	if (n > 20)
		n = 20;
	for (size_t i = 0; i < n; i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
	to[2 * n] = 0;
}

/* What a file is known by. */
struct identity {
	int32_t machine_pid;
	const char *name; /* no NUL ends it */
	size_t name_bytes;
	char build_id[41]; /* hex, "" unknown */
};

static struct identity identity(int32_t machine_pid, const char *name, size_t name_bytes,
				const uint8_t *build_id, size_t build_id_bytes)
{
	struct identity id = {.machine_pid = machine_pid, .name = name, .name_bytes = name_bytes};

	hex(id.build_id, build_id, build_id_bytes);
	return id;
}

static struct identity identity_of(const struct ptc_image *image)
{
	return identity(image->machine_pid, image->name, image->name_bytes, image->build_id,
			image->build_id_bytes);
}

/* A new file, which cannot be found by its name yet. */
static struct img_file *file_add(struct img_store *s, const struct identity *id, struct pt_error *e)
{
	struct img_file *f = calloc(1, sizeof *f);

	if (!f || !(f->name = strndup(id->name ? id->name : "", id->name_bytes)) ||
	    (s->track_used && !(f->used = img_used_create()))) {
		if (f)
			file_destroy(f);
		pt_fail_no_memory(e, "the code images");
		return NULL;
	}
	f->store = s;
	f->machine_pid = id->machine_pid;
	memcpy(f->build_id, id->build_id, sizeof f->build_id);
	f->number = s->file_count++;
	f->next = s->files;
	s->files = f;
	return f;
}

/* file_add() of a file that mappings name. */
static struct img_file *named_file_add(struct img_store *s, const struct identity *id, struct pt_error *e)
{
	struct img_file *f = file_add(s, id, e);
	struct img_name name;

	if (!f)
		return NULL;
	name = (struct img_name){f->machine_pid, f->name, strlen(f->name), f->build_id};
	return img_names_add(&s->names, &name, f, e) ? NULL : f;
}

static struct img_file *find(struct img_store *s, const struct identity *id)
{
	struct img_name name = {id->machine_pid, id->name, id->name_bytes, id->build_id};

	return img_names_find(&s->names, &name);
}

struct img_file *img_store_find(struct img_store *s, int32_t machine_pid, const char *name,
				const uint8_t *build_id, size_t build_id_bytes)
{
	struct identity id = identity(machine_pid, name, strlen(name), build_id, build_id_bytes);

	return find(s, &id);
}

struct img_file *img_store_unread(struct img_store *s, int32_t machine_pid, const char *name,
				  struct pt_error *e)
{
	struct identity id = identity(machine_pid, name, strlen(name), NULL, 0);
	struct img_name key = {machine_pid, name, id.name_bytes, id.build_id};
	struct img_file *f = img_names_find(&s->unread, &key);

	if (f)
		return f;
	f = file_add(s, &id, e);
	if (!f)
		return NULL;
	key.name = f->name;
	key.build_id = f->build_id;
	return img_names_add(&s->unread, &key, f, e) ? NULL : f;
}

/* ---- Code ------------------------------------------------------------------------------------------- */

static void set_last_max(struct img_file *f, size_t i)
{
	struct segment *seg = &f->segments[i];
	uint64_t bytes = seg->size - 1, left = UINT64_MAX - seg->offset;

	seg->last_max = seg->offset + (bytes < left ? bytes : left);
	if (i && seg[-1].last_max > seg->last_max)
		seg->last_max = seg[-1].last_max;
}

static int segment_add(struct img_store *s, struct img_file *f, const struct ptc_image *image,
		       struct pt_error *e)
{
	struct segment seg = {
	    .offset = image->offset, .vaddr = image->vaddr, .size = image->size, .number = f->segment_count};

	if (image->size == 0)
		return 0;
	if (!f->segments) { /* most files have one, and they can be many */
		f->segments = malloc(sizeof *f->segments);
		f->segment_room = f->segments != NULL;
	}
	if (!f->segments || pt_array_grow(&f->segments, f->segment_count, &f->segment_room, e) < 0)
		return pt_fail_no_memory(e, "the code images");
	if (image->later) {
		seg.kept = ptc_keep(s->reader, image->later, e);
		if (!seg.kept)
			return -1;
	} else {
		seg.bytes = img_store_take_bytes(s, image->size) ? malloc(image->size) : NULL;
		if (!seg.bytes)
			return pt_fail_no_memory(e, "the code images");
		memcpy(seg.bytes, image->bytes, image->size);
	}
	f->segments_unsorted |= f->segment_count && f->segments[f->segment_count - 1].offset > image->offset;
	f->segments[f->segment_count] = seg;
	set_last_max(f, f->segment_count++);
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Segments may come in any order, and many before the first is looked at: they are sorted together. */
static void sort_segments(struct img_file *f)
{
	if (!f->segments_unsorted)
		return;
	img_store_change_begin(f->store);
	f->segments_unsorted = false;
	qsort(f->segments, f->segment_count, sizeof *f->segments, by_offset);
	for (size_t i = 0; i < f->segment_count; i++)
		set_last_max(f, i);
	img_store_change_end(f->store);
}

/* Of sorted segments the first that holds the file's byte at offset, NULL when none: those before it all end
 * before that. */
static struct segment *sorted_segment_at(const struct img_file *f, uint64_t offset)
{
	size_t lo = 0, hi = f->segment_count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->segments[mid].last_max < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < f->segment_count && f->segments[lo].offset <= offset ? &f->segments[lo] : NULL;
}

static struct segment *segment_at(struct img_file *f, uint64_t offset)
{
	sort_segments(f);
	return sorted_segment_at(f, offset);
}

/* n bytes that live as long as the store. NULL: no memory. */
static uint8_t *arena_take(struct img_store *s, size_t n)
{
	return img_store_take_bytes(s, img_arena_grows_by(s->arena, n)) ? img_arena_take(&s->arena, n) : NULL;
}

/* Reads the bytes from the container if they are still there. False when that failed: then the store has
 * failed. */
static bool segment_read(struct img_store *s, struct segment *seg)
{
	const uint8_t *bytes;
	uint8_t *room;

	if (seg->bytes)
		return true;
	if (s->failed)
		return false;
	room = arena_take(s, ptc_kept_room(seg->kept));
	if (!room) {
		s->failed = true;
		pt_fail_no_memory(&s->error, "the code images");
		return false;
	}
	bytes = ptc_kept_read(s->reader, seg->kept, room, &s->error);
	s->failed = !bytes;
	if (bytes) /* img_file_peek() of other threads finds them now */
		__atomic_store_n(&seg->bytes, room + (bytes - room), __ATOMIC_RELEASE);
	return bytes != NULL;
}

int img_store_image(struct img_store *s, const struct ptc_image *image, struct pt_error *e)
{
	struct identity id = identity_of(image);
	struct img_file *f = find(s, &id);
	int r;

	/* Begun anew under the same name: the file was replaced, or is recorded twice. */
	if (f && (!image->continues || strcmp(f->build_id, id.build_id) != 0))
		f = NULL;
	if (!f)
		f = named_file_add(s, &id, e);
	if (!f)
		return -1;
	img_store_change_begin(s);
	r = segment_add(s, f, image, e);
	img_store_change_end(s);
	return r;
}

struct img_file *img_store_memory(struct img_store *s, const struct ptc_image *image, struct pt_error *e)
{
	struct ptc_image by_address = *image;
	struct identity id = identity_of(image);
	struct img_file *f = file_add(s, &id, e);

	if (!f)
		return NULL;
	f->memory = true;
	f->pid = image->pid;
	by_address.offset = image->vaddr;
	return segment_add(s, f, &by_address, e) < 0 ? NULL : f;
}

/* ---- Symbols ---------------------------------------------------------------------------------------- */

static uint64_t space_key(int32_t machine_pid, int32_t pid)
{
	return pt_hash_mix((uint64_t)(uint32_t)machine_pid << 32 | (uint32_t)pid);
}

static uint64_t key_of_space(const void *spaces, uint32_t n)
{
	const struct named_space *space = ((struct named_space *const *)spaces)[n - 1];

	return space_key(space->machine_pid, space->pid);
}

static struct named_space *find_space(const struct img_store *s, int32_t machine_pid, int32_t pid)
{
	uint32_t n;

	if (!s->space_count)
		return NULL;
	for (uint32_t i = pt_hash_first(&s->space_hash, space_key(machine_pid, pid));
	     (n = s->space_hash.slots[i]); i = pt_hash_next(&s->space_hash, i))
		if (s->spaces[n - 1]->machine_pid == machine_pid && s->spaces[n - 1]->pid == pid)
			return s->spaces[n - 1];
	return NULL;
}

/* The space, made when it is new. NULL: no memory. */
static struct named_space *space_of(struct img_store *s, int32_t machine_pid, int32_t pid, struct pt_error *e)
{
	struct named_space *space = find_space(s, machine_pid, pid);

	if (space)
		return space;
	if ((!s->space_hash.slots && pt_hash_init(&s->space_hash, 4, e)) ||
	    pt_array_grow(&s->spaces, s->space_count, &s->space_room, e))
		return NULL;
	space = calloc(1, sizeof *space);
	if (!space) {
		pt_fail_no_memory(e, "symbols");
		return NULL;
	}
	space->machine_pid = machine_pid;
	space->pid = pid;
	s->spaces[s->space_count] = space;
	if (pt_hash_insert(&s->space_hash, space_key(machine_pid, pid), (uint32_t)s->space_count + 1,
			   key_of_space, s->spaces, e)) {
		free(space);
		return NULL;
	}
	s->space_count++;
	return space;
}

/* The file keeps their names. */
static int add_absolute(struct img_store *s, const struct identity *id, const struct ptc_symbols *chunk,
			struct pt_error *e)
{
	struct named_space *space = space_of(s, chunk->machine_pid, chunk->pid, e);
	struct img_file *f = space ? file_add(s, id, e) : NULL;

	if (!f || img_symbols_add(&f->symbols, chunk, e))
		return -1;
	f->absolute = true;
	f->pid = chunk->pid;
	img_symbols_settle(&f->symbols);
	if (img_absolute_add(&space->symbols, f->symbols.all, f->symbols.count, f,
			     img_symbols_are_bounds(&f->symbols) ? 0 : f->number, e))
		return -1;
	free(f->symbols.all);
	f->symbols.all = NULL;
	f->symbols.count = 0;
	return 0;
}

int img_store_symbols(struct img_store *s, const struct ptc_symbols *chunk, struct pt_error *e)
{
	struct identity id = identity(chunk->machine_pid, chunk->name, chunk->name_bytes, chunk->build_id,
				      chunk->build_id_bytes);
	struct img_file *f = chunk->absolute ? NULL : find(s, &id);

	if (!f && !chunk->absolute)
		return 0;
	if (!img_store_take_bytes(s, img_symbols_bytes(chunk)))
		return pt_fail_no_memory(e, "symbols");
	return f ? img_symbols_add(&f->symbols, chunk, e) : add_absolute(s, &id, chunk, e);
}

int img_store_absolute_symbol(const struct img_store *s, int32_t machine_pid, int32_t pid, uint64_t ip,
			      struct img_symbol *ret)
{
	const struct named_space *space = find_space(s, machine_pid, pid);
	uint64_t until = UINT64_MAX;
	const struct img_absolute_symbol *found =
	    space ? img_absolute_find(&space->symbols, ip, &until) : NULL;
	const struct img_file *file = found ? found->file : NULL;

	ret->until = until;
	if (!found)
		return -1;
	*ret = (struct img_symbol){.name = file->symbols.strings + found->name,
				   .start = found->start,
				   .end = found->end,
				   .file = file,
				   .index = found->name,
				   .until = until};
	return 0;
}

/* ---- One file --------------------------------------------------------------------------------------- */

const char *img_file_name(const struct img_file *f)
{
	return f->name;
}

const char *img_file_short_name(const struct img_file *f)
{
	const char *slash = strrchr(f->name, '/');

	return strcmp(f->name, "//anon") == 0 ? "[anon]" : slash ? slash + 1 : f->name;
}

const char *img_file_build_id(const struct img_file *f)
{
	return f->build_id;
}

bool img_file_is_memory(const struct img_file *f)
{
	return f->memory;
}

bool img_file_has_code(const struct img_file *f)
{
	return f->segment_count > 0;
}

bool img_file_has_symbols(const struct img_file *f)
{
	return f->symbols.count > 0;
}

size_t img_file_code(struct img_file *f, uint64_t offset, const uint8_t **ret)
{
	struct segment *seg = segment_at(f, offset);

	if (!seg || !segment_read(f->store, seg))
		return 0;
	*ret = seg->bytes + (offset - seg->offset);
	img_file_use(f, offset);
	return seg->size - (offset - seg->offset);
}

size_t img_file_peek(const struct img_file *f, uint64_t offset, const uint8_t **ret, bool *ret_later)
{
	const struct segment *seg = f->segments_unsorted ? NULL : sorted_segment_at(f, offset);
	const uint8_t *bytes = seg ? __atomic_load_n(&seg->bytes, __ATOMIC_ACQUIRE) : NULL;

	*ret_later = f->segments_unsorted || (seg && !bytes);
	if (!bytes)
		return 0;
	*ret = bytes + (offset - seg->offset);
	return seg->size - (offset - seg->offset);
}

bool img_file_use(struct img_file *f, uint64_t offset)
{
	if (f->used)
		img_used_add(f->used, offset);
	return f->used != NULL;
}

void img_file_write(struct img_file *f, uint64_t offset, const uint8_t *bytes, size_t n)
{
	struct segment *seg = segment_at(f, offset);

	memcpy(seg->bytes + (offset - seg->offset), bytes, n);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int img_file_symbol(struct img_file *f, uint64_t offset, uint64_t ip, uint64_t map_end,
		    struct img_symbol *ret)
{
	const struct segment *seg = segment_at(f, offset);
	const struct img_symbol_entry *symbol;
	uint64_t value, bias, until;

	ret->until = ip + 1;
	if (!seg)
		return -1;
	value = seg->vaddr + (offset - seg->offset);
	symbol = img_symbols_find(&f->symbols, value, &until);
	ret->until = ip + least(least(until - value, map_end - ip), seg->last_max - offset + 1);
	if (!symbol)
		return -1;
	until = ret->until;
	bias = ip - value;
	*ret = (struct img_symbol){.name = f->symbols.strings + symbol->name,
				   .start = symbol->value + bias,
				   .end = symbol->end == UINT64_MAX ? map_end : symbol->end + bias,
				   .file = f,
				   .index = symbol->name,
				   .until = until};
	return 0;
}

void img_file_unnamed(struct img_file *f, uint64_t offset, uint64_t ip, struct img_symbol *ret)
{
	const struct segment *here = segment_at(f, offset), *seg = f->memory ? NULL : here;

	if (!seg && f->segment_count && !f->memory) /* a part that was left out */
		seg = f->segments;
	*ret = (struct img_symbol){.name = "",
				   .start = ip - offset + (seg ? seg->offset - seg->vaddr : 0),
				   .file = f,
				   .index = IMG_UNNAMED,
				   .until = here ? ip + (here->last_max - offset) + 1 : ip + 1};
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
