/* images.c - see images.h. The cache's layout: perf's util/build-id.c. */
#include "capture/perfdata/images.h"
#include "capture/code/elf_image.h"
#include "capture/code/image_set.h"
#include "capture/code/regular_file.h"
#include "capture/perfdata/path.h"
#include "schema/array.h"
#include "schema/hash.h"

#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define VDSO "[vdso]"

/* A file that was mapped. */
struct mapped {
	uint8_t build_id[ELF_BUILD_ID_BYTES];
	uint32_t build_id_bytes;	   /* 0 unknown */
	bool found, raw;		   /* raw: it is no ELF file, of which each mapping's bytes are put */
	uint64_t offset, bytes;		   /* the mapping at hand */
	struct perf_image_missing missing; /* its name, and when it was not found, why */
};

struct perf_images {
	struct perf_images_places places;
	const struct perf_description *description;
	struct image_set *set;
	const struct perf_file_build_id **listed; /* the description's of this machine, by name */
	size_t listed_count, listed_of; /* listed_of: description->build_id_count when they were sorted */
	struct mapped *all;
	size_t count, room;
	struct pt_hash by_name; /* numbers of all, from 1, by name and build id */
	uint64_t mapped_bytes;
};

struct perf_images *perf_images_create(const struct perf_images_places *places,
				       const struct perf_description *description)
{
	struct perf_images *i = calloc(1, sizeof *i);

	if (!i)
		return NULL;
	i->places = *places;
	i->description = description;
	i->set = image_set_create_for(places->machine_pid);
	if (!i->set || pt_hash_init(&i->by_name, 6, NULL)) {
		perf_images_destroy(i);
		return NULL;
	}
	image_set_ask_servers(i->set);
	return i;
}

void perf_images_destroy(struct perf_images *i)
{
	if (!i)
		return;
	for (size_t k = 0; k < i->count; k++) {
		free(i->all[k].missing.name);
		free(i->all[k].missing.why);
	}
	free(i->all);
	free(i->listed);
	pt_hash_deinit(&i->by_name);
	image_set_destroy(i->set);
	free(i);
}

uint64_t perf_images_mapped_bytes(const struct perf_images *i)
{
	return i->mapped_bytes;
}

const struct perf_image_missing *perf_images_missing(const struct perf_images *i, size_t *at)
{
	while (*at < i->count) {
		const struct mapped *m = &i->all[(*at)++];

		if (!m->found)
			return &m->missing;
	}
	return NULL;
}

/* ---- The recording's list of build ids ---- */

static int by_listed_name(const void *a, const void *b)
{
	const struct perf_file_build_id *x = *(const struct perf_file_build_id *const *)a,
					*y = *(const struct perf_file_build_id *const *)b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x > y) - (x < y);
}

/* They come as the recording is read, so they are sorted when they are asked for. */
static int sort_build_ids(struct perf_images *i, struct pt_error *e)
{
	const struct perf_description *d = i->description;
	int32_t pid = i->places.machine_pid;
	size_t all = d->build_id_count;

	if (all == i->listed_of)
		return 0;
	free(i->listed);
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	i->listed = malloc((all + 1) * sizeof *i->listed);
	i->listed_count = i->listed_of = 0;
	if (!i->listed)
		return pt_fail_no_memory(e, "the list of mapped files");
	i->listed_of = all;
	for (size_t k = 0; k < all; k++) {
		const struct perf_file_build_id *b = &d->build_ids[k];

		if (pid ? b->pid == pid : b->pid <= 0)
			i->listed[i->listed_count++] = b;
	}
	if (i->listed_count)
		/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
		qsort(i->listed, i->listed_count, sizeof *i->listed, by_listed_name);
	return 0;
}

/* The first entry of a name. NULL: there is none. */
static const struct perf_file_build_id *listed(const struct perf_images *i, const char *name)
{
	size_t low = 0, high = i->listed_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(i->listed[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < i->listed_count && strcmp(i->listed[low]->name, name) == 0 ? i->listed[low] : NULL;
}

/* ---- Files ---- */

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Says why the file is missing. */
static void why(struct mapped *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void why(struct mapped *m, const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) >= 0) {
		free(m->missing.why);
		m->missing.why = text;
	}
	va_end(ap);
}

/* Puts the file at path into the container, if it is the one: 1; 0: it is not; -1. shown: what messages
 * call it. */
static int try_file(struct perf_images *i, struct ptc_writer *w, struct mapped *m, const char *path,
		    const char *shown, struct pt_error *e)
{
	uint8_t build_id[ELF_BUILD_ID_BYTES];
	char has[41], wants[41];
	struct pt_error not_taken = {0};
	int bytes, ret;

	bytes = elf_file_build_id(path, build_id, &not_taken);
	if (bytes < 0 && not_taken.kind == PT_ERR_NO_MEMORY) {
		*e = not_taken;
		return -1;
	}
	m->raw = bytes < 0 && not_taken.kind == PT_ERR_BAD_INPUT && !m->build_id_bytes;
	if (bytes < 0 && !m->raw) {
		why(m, "%s", not_taken.message);
		return 0;
	}
	if (m->build_id_bytes && bytes > 0 &&
	    ((uint32_t)bytes != m->build_id_bytes || memcmp(build_id, m->build_id, m->build_id_bytes) != 0)) {
		perf_build_id_text(has, build_id, (uint32_t)bytes);
		perf_build_id_text(wants, m->build_id, m->build_id_bytes);
		why(m, "%s is another build (%s, not %s)", shown, has, wants);
		return 0;
	}
	ret = image_set_add_file(
	    i->set, w,
	    &(struct image_file){
		.name = m->missing.name, .path = path, .offset = m->offset, .bytes = m->bytes},
	    &not_taken);
	if (ret < 0) {
		*e = not_taken;
		return -1;
	}
	if (ret == IMAGE_SET_SKIPPED) {
		why(m, "%s", not_taken.message);
		return 0;
	}
	return 1;
}

static int try_path(struct perf_images *i, struct ptc_writer *w, struct mapped *m, const char *path,
		    struct pt_error *e)
{
	return is_file(path) ? try_file(i, w, m, path, path, e) : 0;
}

/* The file by its own name could not be opened, by errno. 0, or -1: it could be at another time, which what
 * code the container has must not depend on. */
static int not_opened(struct mapped *m, const char *root, struct pt_error *e)
{
	if (pt_errno_may_pass(errno))
		return pt_fail_errno(e, "cannot open %s%s", root, m->missing.name);
	if (errno != ENOENT && errno != ENOTDIR)
		why(m, "%s", errno == ENOEXEC ? "it is no file" : strerror(errno));
	return 0;
}

/* The file by its own name. */
static int try_root(struct perf_images *i, struct ptc_writer *w, struct mapped *m, struct pt_error *e)
{
	const char *root = i->places.root, *name = m->missing.name;
	char path[32], *shown;
	struct stat st;
	int fd = regular_file_below(root, name, &st), ret;

	if (fd < 0)
		return not_opened(m, root, e);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ret = path_make(&shown, e, "%s%s", root, name);
	if (ret == 0) {
		ret = try_file(i, w, m, path, shown, e);
		free(shown);
	}
	close(fd);
	return ret;
}

/* try_path() of a path that is made as printf() does. */
static int try_format(struct perf_images *i, struct ptc_writer *w, struct mapped *m, struct pt_error *e,
		      const char *format, ...) __attribute__((format(printf, 5, 6)));
static int try_format(struct perf_images *i, struct ptc_writer *w, struct mapped *m, struct pt_error *e,
		      const char *format, ...)
{
	char *path;
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = vasprintf(&path, format, ap);
	va_end(ap);
	if (ret < 0)
		return pt_fail_no_memory(e, "the list of mapped files");
	ret = try_path(i, w, m, path, e);
	free(path);
	return ret;
}

static int try_cache(struct perf_images *i, struct ptc_writer *w, struct mapped *m, struct pt_error *e)
{
	const char *leaf = strcmp(m->missing.name, VDSO) == 0 ? "vdso" : "elf";
	char id[41];
	int ret;

	if (!i->places.cache || !m->build_id_bytes)
		return 0;
	perf_build_id_text(id, m->build_id, m->build_id_bytes);
	ret = try_format(i, w, m, e, "%s/.build-id/%.2s/%s/%s", i->places.cache, id, id + 2, leaf);
	/* Before 4.5 perf linked to the file itself. */
	if (ret == 0)
		ret = try_format(i, w, m, e, "%s/.build-id/%.2s/%s", i->places.cache, id, id + 2);
	if (ret == 0)
		ret = try_format(i, w, m, e, "%s/%s/%s/%s", i->places.cache, m->missing.name, id, leaf);
	return ret;
}

/* The only copy of a vDSO in the cache. */
static int try_cached_vdso(struct perf_images *i, struct ptc_writer *w, struct mapped *m, struct pt_error *e)
{
	char *pattern;
	glob_t found;
	int ret = 0;

	if (path_make(&pattern, e, "%s/\\[vdso\\]/*/vdso", i->places.cache))
		return -1;
	if (glob(pattern, 0, NULL, &found) == 0) {
		if (found.gl_pathc == 1)
			ret = try_path(i, w, m, found.gl_pathv[0], e);
		globfree(&found);
	}
	free(pattern);
	return ret;
}

/* The vDSO has no file: one in the cache is taken, or that of this kernel. */
static int try_vdso(struct perf_images *i, struct ptc_writer *w, struct mapped *m, struct pt_error *e)
{
	const uint8_t *own = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct pt_error not_taken = {0};
	int ret = 0;

	if (i->places.cache && i->places.own_cache && !m->build_id_bytes)
		ret = try_cached_vdso(i, w, m, e);
	if (ret)
		return ret;
	if (!i->places.own_kernel || !own)
		return 0;
	ret = image_set_add_bytes(i->set, w, m->missing.name, own, 2 * (size_t)getpagesize(), &not_taken);
	if (ret < 0)
		*e = not_taken;
	return ret < 0 ? -1 : ret == IMAGE_SET_DONE;
}

/* Looks for the file everywhere. 0, or -1. */
static int find(struct perf_images *i, struct ptc_writer *w, struct mapped *m, struct pt_error *e)
{
	const char *name = m->missing.name;
	int ret = try_cache(i, w, m, e);

	if (ret == 0 && strcmp(name, VDSO) == 0)
		ret = try_vdso(i, w, m, e);
	if (ret == 0 && name[0] == '/' && name[1] != '/')
		ret = try_root(i, w, m, e);
	if (ret < 0)
		return -1;
	m->found = ret;
	if (!m->found && !m->missing.why)
		why(m, name[0] == '/' && name[1] != '/' ? "there is no such file" : "it is no file");
	return 0;
}

/* ---- Mappings ---- */

/* What a mapping is of: the file's name, NUL-terminated, and build id. */
struct key {
	const char *name;
	const uint8_t *build_id;
	uint32_t build_id_bytes;
};

/* FNV-1a, 64 bits. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	for (const uint8_t *p = bytes; n; n--, p++)
		hash = (hash ^ *p) * 0x100000001b3u;
	return hash;
}

static uint64_t hash_of(const struct key *key)
{
	uint64_t hash = hash_bytes(0xcbf29ce484222325u, key->name, strlen(key->name));

	return pt_hash_mix(hash_bytes(hash, key->build_id, key->build_id_bytes));
}

static uint64_t mapped_hash(const void *all, uint32_t n)
{
	const struct mapped *m = (const struct mapped *)all + (n - 1);

	return hash_of(&(struct key){m->missing.name, m->build_id, m->build_id_bytes});
}

static bool is_of(const struct mapped *m, const struct key *key)
{
	return m->build_id_bytes == key->build_id_bytes &&
	       (!m->build_id_bytes || memcmp(m->build_id, key->build_id, m->build_id_bytes) == 0) &&
	       strcmp(m->missing.name, key->name) == 0;
}

/* The entry of a mapped file; *is_new: it was added. NULL: no memory. */
static struct mapped *mapped_of(struct perf_images *i, const struct key *key, bool *is_new,
				struct pt_error *e)
{
	uint64_t hash = hash_of(key);
	struct mapped *m;
	uint32_t n;

	*is_new = false;
	for (uint32_t at = pt_hash_first(&i->by_name, hash); (n = i->by_name.slots[at]);
	     at = pt_hash_next(&i->by_name, at))
		if (is_of(&i->all[n - 1], key))
			return &i->all[n - 1];
	if (pt_array_grow(&i->all, i->count, &i->room, e))
		return NULL;
	m = &i->all[i->count];
	*m = (struct mapped){.build_id_bytes = key->build_id_bytes, .missing.name = strdup(key->name)};
	if (!m->missing.name) {
		pt_fail_no_memory(e, "the list of mapped files");
		return NULL;
	}
	if (key->build_id_bytes)
		memcpy(m->build_id, key->build_id, key->build_id_bytes);
	if (pt_hash_insert(&i->by_name, hash, (uint32_t)i->count + 1, mapped_hash, i->all, e)) {
		free(m->missing.name);
		return NULL;
	}
	i->count++;
	*is_new = true;
	return m;
}

static int map_file(struct perf_images *i, struct ptc_writer *w, struct key *key, const struct perf_mmap *map,
		    struct pt_error *e)
{
	uint64_t mapped_bytes = map->bytes;
	const struct perf_file_build_id *known;
	struct mapped *m;
	bool is_new;

	if (sort_build_ids(i, e))
		return -1;
	known = key->build_id_bytes ? NULL : listed(i, key->name);
	if (known) {
		key->build_id = known->bytes;
		key->build_id_bytes = known->size;
	}
	m = mapped_of(i, key, &is_new, e);
	if (!m)
		return -1;
	m->offset = map->offset;
	m->bytes = map->bytes;
	if ((is_new || m->raw) && find(i, w, m, e))
		return -1;
	/* (Sums are for percentages: what a damaged recording makes too large for them does not count.) */
	if (mapped_bytes > UINT64_MAX / 128 - i->mapped_bytes)
		mapped_bytes = 0;
	m->missing.mapped_bytes += mapped_bytes;
	i->mapped_bytes += mapped_bytes;
	return 0;
}

int perf_images_map(struct perf_images *i, struct ptc_writer *w, const struct perf_mmap *map,
		    struct pt_error *e)
{
	char *name = strndup(map->name, map->name_bytes);
	struct key key = {name, map->build_id, map->build_id_bytes};
	int ret = name ? map_file(i, w, &key, map, e) : pt_fail_no_memory(e, "the list of mapped files");

	free(name);
	return ret;
}
