/* image_set.c - see image_set.h. */
#include "capture/code/image_set.h"
#include "capture/code/elf_image.h"
#include "capture/code/regular_file.h"
#include "schema/array.h"

#include <inttypes.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct range { /* half-open */
	uint64_t start, end;
};

/* Which content of a file it is. */
struct identity {
	uint64_t device, inode, size, mtime_ns;
};

/* What the container has under a name, as of the last time. */
struct known {
	char *name;
	bool begun;	      /* an image of this name, be it an empty one */
	bool unread;	      /* that is: what is mapped was not read */
	struct identity file; /* zeroed: of no file, or not whole */
	bool young;	      /* read soon after a write: another one may have the same time */
	uint64_t generation;  /* of the file's inode; 0: not known */
	uint64_t size;	      /* of bytes */
	void *bytes;	      /* of an image in memory */
	uint8_t build_id[ELF_BUILD_ID_BYTES];
	uint32_t build_id_bytes;
	/* Of a file that is no ELF file: what was put. */
	struct range *ranges;
	size_t range_count, range_room;
};

struct image_set {
	struct elf_target to;
	void *known; /* tsearch()'s, of struct known */
	int (*on_change)(void *arg, struct pt_error *e);
	void *arg;
};

struct image_set *image_set_create_for(int32_t machine_pid)
{
	struct image_set *s = calloc(1, sizeof *s);

	if (s)
		s->to.machine_pid = machine_pid;
	return s;
}

struct image_set *image_set_create(void)
{
	return image_set_create_for(0);
}

void image_set_ask_servers(struct image_set *s)
{
	s->to.ask_servers = true;
}

void image_set_on_change(struct image_set *s, int (*fn)(void *arg, struct pt_error *e), void *arg)
{
	s->on_change = fn;
	s->arg = arg;
}

static void known_free(void *of)
{
	struct known *k = of;

	free(k->name);
	free(k->bytes);
	free(k->ranges);
	free(k);
}

void image_set_destroy(struct image_set *s)
{
	if (!s)
		return;
	tdestroy(s->known, known_free);
	free(s->to.buffer);
	free(s);
}

static int by_name(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static struct known *find_known(const struct image_set *s, const char *name)
{
	const struct known key = {.name = (char *)(uintptr_t)name};
	struct known *const *found = tfind(&key, &s->known, by_name);

	return found ? *found : NULL;
}

/* The entry of that name, a new empty one if there is none; NULL: PT_ERR_NO_MEMORY. */
static struct known *known_of(struct image_set *s, const char *name, struct pt_error *e)
{
	struct known *k = find_known(s, name);

	if (k)
		return k;
	k = calloc(1, sizeof *k);
	if (k && (k->name = strdup(name)) && tsearch(k, &s->known, by_name))
		return k;
	if (k)
		known_free(k);
	pt_fail_no_memory(e, "the images");
	return NULL;
}

uint32_t image_set_build_id(const struct image_set *s, const char *name, const uint8_t **ret)
{
	const struct known *k = find_known(s, name);

	*ret = k && k->build_id_bytes ? k->build_id : NULL;
	return k ? k->build_id_bytes : 0;
}

/* Another image is put under the name. Until it is whole, the container has none of what was known. */
static int begin(struct image_set *s, struct known *k, struct pt_error *e)
{
	if (k->begun && s->on_change && s->on_change(s->arg, e))
		return -1;
	free(k->bytes);
	free(k->ranges);
	k->bytes = NULL;
	k->ranges = NULL;
	k->range_count = k->range_room = 0;
	k->size = k->generation = 0;
	k->file = (struct identity){0};
	k->build_id_bytes = 0;
	k->unread = k->young = false;
	k->begun = true;
	return 0;
}

static void has_build_id(struct known *k, const struct elf_source *src)
{
	k->build_id_bytes = src->build_id_bytes;
	memcpy(k->build_id, src->build_id, sizeof k->build_id);
}

/* ---- Files that are no ELF files ---- */

static bool has_range(const struct known *k, const struct range *r)
{
	for (size_t i = 0; i < k->range_count; i++)
		if (k->ranges[i].start <= r->start && r->end <= k->ranges[i].end)
			return true;
	return false;
}

/* What is mapped of it, at its offsets. An image_set_result, or -1. */
static int add_raw(struct image_set *s, struct known *k, const struct elf_source *src,
		   const struct image_file *file, struct pt_error *e)
{
	uint64_t left = file->offset < src->size ? src->size - file->offset : 0;
	struct range r = {file->offset, file->offset + (file->bytes < left ? file->bytes : left)};
	struct elf_segment bytes = {r.start, r.start, r.end - r.start, 0};
	int ret;

	if (r.start == r.end) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: it ends before what is mapped", src->path);
		return IMAGE_SET_SKIPPED;
	}
	if (has_range(k, &r))
		return IMAGE_SET_DONE;
	if (bytes.file_bytes > IMAGE_RAW_BYTES_MAX) {
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			"%s: not an ELF file, and more than %" PRIu64 " MB of it are mapped as code",
			src->path, IMAGE_RAW_BYTES_MAX >> 20);
		return IMAGE_SET_SKIPPED;
	}
	if (pt_array_grow(&k->ranges, k->range_count, &k->range_room, e))
		return -1;
	ret = elf_source_put_bytes(src, &s->to, &bytes, k->range_count > 0, e);
	if (ret == 0)
		k->ranges[k->range_count++] = r;
	return ret;
}

/* ---- Files ---- */

static struct identity identity_of(const struct stat *st)
{
	return (struct identity){st->st_dev, st->st_ino, (uint64_t)st->st_size,
				 (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec};
}

/* What is written now may get the same time. */
static bool is_young(const struct identity *file)
{
	struct timespec real;
	uint64_t now_ns;

	if (clock_gettime(CLOCK_REALTIME, &real))
		return false;
	now_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
	return file->mtime_ns <= now_ns && now_ns - file->mtime_ns <= file_time_lag_ns();
}

static bool is_same(const struct elf_source *src, const struct identity *was)
{
	struct identity now;
	struct stat st;

	if (fstat(src->fd, &st))
		return false;
	now = identity_of(&st);
	return memcmp(&now, was, sizeof now) == 0;
}

/* The file is open, and not in the container. An image_set_result, or -1. */
static int add_new(struct image_set *s, struct known *k, struct elf_source *src,
		   const struct image_file *file, struct pt_error *e)
{
	bool raw;
	int ret;

	if (elf_source_begin(src, e)) {
		raw = e->kind == PT_ERR_BAD_INPUT && file->bytes;
		if (!raw)
			return e->kind == PT_ERR_NO_MEMORY ? -1 : IMAGE_SET_SKIPPED;
		return begin(s, k, e) ? -1 : add_raw(s, k, src, file, e);
	}
	if (begin(s, k, e))
		return -1;
	ret = elf_source_put(src, &s->to, e);
	if (ret == IMAGE_SET_DONE)
		has_build_id(k, src);
	return ret;
}

int image_set_add_file(struct image_set *s, struct ptc_writer *w, const struct image_file *file,
		       struct pt_error *e)
{
	struct elf_source src = {.fd = -1, .name = file->name};
	struct stat st = {0};
	struct identity now;
	struct known *k;
	int ret = IMAGE_SET_SKIPPED;
	bool put = true;

	s->to.w = w;
	if (elf_source_open(&src, file->path, &st, e))
		goto out;
	ret = -1;
	k = known_of(s, file->name, e);
	if (!k)
		goto out;
	now = identity_of(&st);
	if (memcmp(&k->file, &now, sizeof now) != 0 || k->young) {
		bool young = is_young(&now);

		ret = add_new(s, k, &src, file, e);
		if (ret == IMAGE_SET_DONE) {
			k->file = now;
			k->young = young;
		}
	} else {
		put = k->range_count;
		ret = put ? add_raw(s, k, &src, file, e) : IMAGE_SET_DONE;
	}
	if (ret == IMAGE_SET_DONE && put && !is_same(&src, &now)) {
		pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "%s: it was written while it was read", src.path);
		ret = image_set_add_unread(s, w, file->name, e) ? -1 : IMAGE_SET_SKIPPED;
	}
	if (ret == IMAGE_SET_DONE && file->generation)
		k->generation = file->generation;
out:
	elf_source_close(&src);
	return ret;
}

bool image_set_has(const struct image_set *s, const struct image_file *file, uint64_t inode)
{
	const struct range r = {file->offset, file->offset + file->bytes};
	const struct known *k = find_known(s, file->name);

	return k && inode && k->file.inode == inode && k->generation == file->generation &&
	       (!k->range_count || has_range(k, &r));
}

/* ---- Others ---- */

int image_set_add_bytes(struct image_set *s, struct ptc_writer *w, const char *name, const void *bytes,
			size_t size, struct pt_error *e)
{
	struct elf_source src = {.fd = -1, .name = name, .path = name, .size = size};
	struct known *k = known_of(s, name, e);
	int ret = -1;

	s->to.w = w;
	if (!k)
		return -1;
	if (k->bytes && k->size == size && memcmp(k->bytes, bytes, size) == 0)
		return IMAGE_SET_DONE;
	src.bytes = malloc(size ? size : 1);
	if (!src.bytes)
		return pt_fail_no_memory(e, "the images");
	memcpy(src.bytes, bytes, size);
	if (elf_source_begin(&src, e))
		ret = e->kind == PT_ERR_NO_MEMORY ? -1 : IMAGE_SET_SKIPPED;
	else if (begin(s, k, e) == 0)
		ret = elf_source_put(&src, &s->to, e);
	elf_source_close(&src);
	if (ret == IMAGE_SET_DONE) {
		k->size = size;
		k->bytes = src.bytes;
		has_build_id(k, &src);
	} else {
		free(src.bytes);
	}
	return ret;
}

static int put_memory(struct image_set *s, const struct image_file *file, const uint8_t *bytes,
		      bool continues, struct pt_error *e)
{
	const struct ptc_image image = {.kind = PTC_IMAGE_FILE,
					.machine_pid = s->to.machine_pid,
					.pid = PTC_ANY_PID,
					.name = file->name,
					.name_bytes = (uint32_t)strlen(file->name),
					.offset = file->offset,
					.vaddr = file->offset,
					.size = file->bytes,
					.bytes = bytes,
					.continues = continues};

	return ptc_put_image(s->to.w, &image, e);
}

int image_set_add_memory(struct image_set *s, struct ptc_writer *w, const struct image_file *file,
			 uint64_t inode, const uint8_t *bytes, struct pt_error *e)
{
	const struct identity identity = {.inode = inode};
	struct range r = {file->offset, file->offset + file->bytes};
	struct known *k = known_of(s, file->name, e);

	s->to.w = w;
	if (!k)
		return -1;
	if (memcmp(&k->file, &identity, sizeof identity) != 0 || k->generation != file->generation) {
		if (begin(s, k, e))
			return -1;
		k->file = identity;
		k->generation = file->generation;
	}
	if (has_range(k, &r))
		return 0;
	if (pt_array_grow(&k->ranges, k->range_count, &k->range_room, e) ||
	    put_memory(s, file, bytes, k->range_count > 0, e))
		return -1;
	k->ranges[k->range_count++] = r;
	return 0;
}

int image_set_add_unread(struct image_set *s, struct ptc_writer *w, const char *name, struct pt_error *e)
{
	struct ptc_image image = {.kind = PTC_IMAGE_FILE,
				  .machine_pid = s->to.machine_pid,
				  .pid = PTC_ANY_PID,
				  .name = name,
				  .name_bytes = (uint32_t)strlen(name)};
	struct known *k = known_of(s, name, e);

	if (!k)
		return -1;
	if (k->unread)
		return 0;
	if (begin(s, k, e))
		return -1;
	k->unread = true;
	return ptc_put_image(w, &image, e);
}
