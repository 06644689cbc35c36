/* images.c - see images.h. The cache's layout: perf's util/build-id.c. */
#include "capture/perfdata/images.h"
#include "capture/code/elf_image.h"

#include <glob.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILD_ID_BYTES 20
#define HEX_BYTES      (2 * BUILD_ID_BYTES + 1)
#define VDSO	       "[vdso]"

/* A file that was mapped. */
struct mapped {
	uint8_t build_id[BUILD_ID_BYTES];
	uint32_t build_id_bytes;
	bool found;
	struct perf_image_missing missing;
};

struct perf_images {
	int32_t machine_pid;
	char *root, *cache;
	bool own_cache, own_kernel;
	struct image_set *set;
	const struct perf_file *file;
	const struct perf_file_build_id **listed; /* the recording's of this machine, by name */
	size_t listed_count, listed_of; /* listed_of: so many there were in all when they were sorted */
	void *mapped;			/* tsearch()'s, of all by name and build id */
	struct mapped **all;
	size_t count, room;
	uint64_t mapped_bytes;
};

struct perf_images *perf_images_create(int32_t machine_pid, const char *root, const char *cache,
				       bool own_cache, bool own_kernel)
{
	struct perf_images *i = calloc(1, sizeof *i);

	if (!i)
		return NULL;
	i->machine_pid = machine_pid;
	i->own_cache = own_cache;
	i->own_kernel = own_kernel;
	i->root = strdup(root);
	i->cache = cache ? strdup(cache) : NULL;
	i->set = image_set_create_for(machine_pid);
	if (!i->root || (cache && !i->cache) || !i->set) {
		perf_images_destroy(i);
		return NULL;
	}
	return i;
}

/* Of what the list of all of them frees. */
static void leave(void *node)
{
	(void)node;
}

void perf_images_destroy(struct perf_images *i)
{
	if (!i)
		return;
	tdestroy(i->mapped, leave);
	free(i->listed);
	for (size_t k = 0; k < i->count; k++) {
		free(i->all[k]->missing.name);
		free(i->all[k]->missing.why);
		free(i->all[k]);
	}
	free(i->all);
	free(i->root);
	free(i->cache);
	image_set_destroy(i->set);
	free(i);
}

static int by_listed_name(const void *a, const void *b)
{
	const struct perf_file_build_id *x = *(const struct perf_file_build_id *const *)a,
					*y = *(const struct perf_file_build_id *const *)b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x > y) - (x < y);
}

void perf_images_build_ids(struct perf_images *i, const struct perf_file *f)
{
	i->file = f;
}

/* They come as the recording is read, so they are sorted when they are asked for. */
static int sort_build_ids(struct perf_images *i, struct pt_error *e)
{
	const struct perf_file *f = i->file;
	size_t all = f ? f->build_id_count : 0;

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
		const struct perf_file_build_id *b = &f->build_ids[k];

		if (i->machine_pid ? b->pid == i->machine_pid : b->pid <= 0)
			i->listed[i->listed_count++] = b;
	}
	if (i->listed_count)
		/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
		qsort(i->listed, i->listed_count, sizeof *i->listed, by_listed_name);
	return 0;
}

uint64_t perf_images_mapped_bytes(const struct perf_images *i)
{
	return i->mapped_bytes;
}

const struct perf_image_missing *perf_images_missing(const struct perf_images *i, size_t *at)
{
	while (*at < i->count) {
		const struct mapped *m = i->all[(*at)++];

		if (!m->found)
			return &m->missing;
	}
	return NULL;
}

static void hex(char *to, const uint8_t *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		snprintf(to + 2 * (size_t)i, 3, "%02x", bytes[i]);
	to[2 * (size_t)n] = 0;
}

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The build id that the recording's table of them has for name: the first. */
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

/* Puts the file at path into the container, if it is the one: 1; 0: it is not; -1. */
static int try_path(struct perf_images *i, struct ptc_writer *w, struct mapped *m, const char *path,
		    struct pt_error *e)
{
	uint8_t build_id[BUILD_ID_BYTES];
	char has[HEX_BYTES], wants[HEX_BYTES];
	struct pt_error not_taken = {0};
	int bytes, ret;

	if (!is_file(path))
		return 0;
	bytes = elf_file_build_id(path, build_id, &not_taken);
	if (bytes < 0) {
		why(m, "%s", not_taken.message);
		return 0;
	}
	if (m->build_id_bytes && bytes &&
	    ((uint32_t)bytes != m->build_id_bytes || memcmp(build_id, m->build_id, m->build_id_bytes) != 0)) {
		hex(has, build_id, (uint32_t)bytes);
		hex(wants, m->build_id, m->build_id_bytes);
		why(m, "%s is another build (%s, not %s)", path, has, wants);
		return 0;
	}
	ret = image_set_add_file(i->set, w, m->missing.name, path, &not_taken);
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
	char id[HEX_BYTES];
	int ret;

	if (!i->cache || !m->build_id_bytes)
		return 0;
	hex(id, m->build_id, m->build_id_bytes);
	ret = try_format(i, w, m, e, "%s/.build-id/%.2s/%s/%s", i->cache, id, id + 2, leaf);
	/* Before 4.5 perf linked to the file itself. */
	if (ret == 0)
		ret = try_format(i, w, m, e, "%s/.build-id/%.2s/%s", i->cache, id, id + 2);
	if (ret == 0)
		ret = try_format(i, w, m, e, "%s/%s/%s/%s", i->cache, m->missing.name, id, leaf);
	return ret;
}

/* The vdso has no file: a copy in the cache, when there is but one, or that of this kernel. */
static int try_vdso(struct perf_images *i, struct ptc_writer *w, struct mapped *m, struct pt_error *e)
{
	struct pt_error not_taken = {0};
	const uint8_t *own;
	char *pattern;
	glob_t found;
	int ret = 0;

	if (i->cache && i->own_cache && !m->build_id_bytes) {
		if (asprintf(&pattern, "%s/\\[vdso\\]/*/vdso", i->cache) < 0)
			return pt_fail_no_memory(e, "the list of mapped files");
		if (glob(pattern, 0, NULL, &found) == 0) {
			if (found.gl_pathc == 1)
				ret = try_path(i, w, m, found.gl_pathv[0], e);
			globfree(&found);
		}
		free(pattern);
		if (ret)
			return ret;
	}
	own = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	if (!i->own_kernel || !own)
		return 0;
	ret = image_set_add_bytes(i->set, w, m->missing.name, own, 2 * (size_t)getpagesize(), &not_taken);
	if (ret < 0)
		*e = not_taken;
	return ret < 0 ? -1 : ret == IMAGE_SET_DONE;
}

static int find(struct perf_images *i, struct ptc_writer *w, struct mapped *m, struct pt_error *e)
{
	const char *name = m->missing.name;
	int ret = try_cache(i, w, m, e);

	if (ret == 0 && strcmp(name, VDSO) == 0)
		ret = try_vdso(i, w, m, e);
	if (ret == 0 && name[0] == '/' && name[1] != '/')
		ret = try_format(i, w, m, e, "%s%s", i->root, name);
	if (ret < 0)
		return -1;
	m->found = ret;
	if (!m->found && !m->missing.why)
		why(m, name[0] == '/' && name[1] != '/' ? "there is no such file" : "it is no file");
	return 0;
}

static int by_name_and_id(const void *a, const void *b)
{
	const struct mapped *x = a, *y = b;

	if (x->build_id_bytes != y->build_id_bytes)
		return x->build_id_bytes < y->build_id_bytes ? -1 : 1;
	if (x->build_id_bytes && memcmp(x->build_id, y->build_id, x->build_id_bytes) != 0)
		return memcmp(x->build_id, y->build_id, x->build_id_bytes);
	return strcmp(x->missing.name, y->missing.name);
}

static struct mapped *mapped_of(struct perf_images *i, const char *name, const uint8_t *build_id,
				uint32_t build_id_bytes, bool *is_new, struct pt_error *e)
{
	struct mapped key = {.missing.name = (char *)(uintptr_t)name}, *m;
	const struct perf_file_build_id *known;
	struct mapped *const *found;

	if (sort_build_ids(i, e))
		return NULL;
	known = build_id_bytes ? NULL : listed(i, name);
	if (known) {
		build_id = known->bytes;
		build_id_bytes = known->size;
	}
	key.build_id_bytes = build_id_bytes;
	if (build_id_bytes)
		memcpy(key.build_id, build_id, build_id_bytes);
	*is_new = false;
	found = tfind(&key, &i->mapped, by_name_and_id);
	if (found)
		return *found;
	if (i->count == i->room) {
		size_t room = i->room ? 2 * i->room : 64;
		struct mapped **grown = realloc(i->all, room * sizeof(struct mapped *));

		if (!grown) {
			pt_fail_no_memory(e, "the list of mapped files");
			return NULL;
		}
		i->all = grown;
		i->room = room;
	}
	m = malloc(sizeof *m);
	if (m) {
		*m = key;
		m->missing.name = strdup(name);
	}
	if (!m || !m->missing.name || !tsearch(m, &i->mapped, by_name_and_id)) {
		if (m)
			free(m->missing.name);
		free(m);
		pt_fail_no_memory(e, "the list of mapped files");
		return NULL;
	}
	i->all[i->count++] = m;
	*is_new = true;
	return m;
}

int perf_images_map(struct perf_images *i, struct ptc_writer *w, const char *name, const uint8_t *build_id,
		    uint32_t build_id_bytes, uint64_t mapped_bytes, struct pt_error *e)
{
	struct mapped *m;
	bool is_new;

	m = mapped_of(i, name, build_id, build_id_bytes <= BUILD_ID_BYTES ? build_id_bytes : 0, &is_new, e);
	if (!m || (is_new && find(i, w, m, e)))
		return -1;
	if (mapped_bytes > UINT64_MAX / 128 - i->mapped_bytes)
		mapped_bytes = 0;
	m->missing.mapped_bytes += mapped_bytes;
	i->mapped_bytes += mapped_bytes;
	return 0;
}
