/* kernel.c - see kernel.h. */
#include "capture/perfdata/kernel.h"
#include "capture/code/kernel_files.h"
#include "capture/code/kernel_symbols.h"
#include "capture/code/kernel_module.h"
#include "capture/code/text_line.h"
#include "capture/perfdata/path.h"
#include "schema/array.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPS_MAX	4096
#define KERNEL_NAME_MAX 256
#define KERNEL_HALF	((uint64_t)1 << 63)
#define TEXT_MAX	((uint64_t)64 << 20) /* of a kernel of unknown length */

void perf_kernel_deinit(struct perf_kernel *k)
{
	for (size_t i = 0; i < k->map_count; i++)
		free(k->maps[i].name);
	free(k->maps);
	free(k->folder);
	pt_hash_deinit(&k->map_hash);
	*k = (struct perf_kernel){0};
}

/* ---- Where its code is ---- */

static uint64_t key_of(const void *maps, uint32_t n)
{
	return pt_hash_mix(((const struct perf_kernel_map *)maps)[n - 1].start);
}

static bool has_map_at(const struct perf_kernel *k, uint64_t start)
{
	uint32_t n;

	if (!k->map_hash.slots)
		return false;
	for (uint32_t i = pt_hash_first(&k->map_hash, pt_hash_mix(start)); (n = k->map_hash.slots[i]);
	     i = pt_hash_next(&k->map_hash, i))
		if (k->maps[n - 1].start == start)
			return true;
	return false;
}

/* The first map at an address counts: perf writes them again when it switches files. */
static int add_map(struct perf_kernel *k, const struct perf_kernel_map *map, struct pt_error *e)
{
	struct perf_kernel_map *to;

	if (map->end < map->start || k->map_count == MAPS_MAX || has_map_at(k, map->start))
		return 0;
	if (pt_array_grow(&k->maps, k->map_count, &k->map_room, e) ||
	    (!k->map_hash.slots && pt_hash_init(&k->map_hash, 6, e)))
		return -1;
	to = &k->maps[k->map_count];
	*to = *map;
	to->name = strdup(map->name);
	if (!to->name)
		return pt_fail_no_memory(e, "the kernel's mappings");
	k->map_count++;
	return pt_hash_insert(&k->map_hash, pt_hash_mix(map->start), (uint32_t)k->map_count, key_of, k->maps,
			      e);
}

int perf_kernel_map(struct perf_kernel *k, const struct perf_record *rec, struct pt_error *e)
{
	char name[KERNEL_NAME_MAX];
	struct perf_kernel_map map;
	struct perf_mmap m;

	if (!perf_mmap_read(rec->bytes, rec->size, &m) || m.pid != -1 || m.start < KERNEL_HALF)
		return 0;
	snprintf(name, sizeof name, "%.*s", (int)m.name_bytes, m.name);
	map = (struct perf_kernel_map){.start = m.start, .end = m.start + m.bytes, .name = name};
	/*
	 * "[kernel.kallsyms]_text", "[guest.kernel.kallsyms]_text"; the offset is the address of that symbol.
	 */
	if (strncmp(name, "[kernel.kallsyms]", 17) == 0 || strncmp(name, "[guest.kernel.kallsyms", 22) == 0)
		map.text = m.offset ? m.offset : m.start;
	return add_map(k, &map, e);
}

/* /proc/modules: "kvm 1146880 1 kvm_intel, Live 0xffffffffc0206000". What is no such line is passed over. */
static int read_modules(struct perf_kernel *k, const char *path, struct pt_error *e)
{
	FILE *file = fopen(path, "re");
	char line[16384]; /* it has the names of all modules that use this one */
	bool cut;
	int ret = 0;

	if (!file)
		return pt_fail_errno(e, "cannot read %s", path);
	while (ret == 0 && text_line(file, line, sizeof line, &cut)) {
		char name[KERNEL_NAME_MAX - 2], bracketed[KERNEL_NAME_MAX];
		unsigned long long bytes, start;
		struct perf_kernel_map map;

		if (sscanf(line, "%253s %llu %*s %*s %*s 0x%llx", name, &bytes, &start) != 3 ||
		    start < KERNEL_HALF)
			continue;
		snprintf(bracketed, sizeof bracketed, "[%s]", name);
		map = (struct perf_kernel_map){.start = start, .end = start + bytes, .name = bracketed};
		ret = add_map(k, &map, e);
	}
	fclose(file);
	return ret;
}

/* ---- Where its files are ---- */

struct paths {
	char *kcore, *vmlinux, *kallsyms, *modules; /* NULL: there is none */
	const char *module_folder;		    /* with modules' files; NULL: not said */
};

static void paths_deinit(struct paths *p)
{
	free(p->kcore);
	free(p->vmlinux);
	free(p->kallsyms);
	free(p->modules);
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The kernel's own build id, as the recording lists it. */
static const struct perf_file_build_id *kernel_build_id(const struct perf_kernel *k)
{
	for (size_t i = 0; i < k->description->build_id_count; i++) {
		const struct perf_file_build_id *b = &k->description->build_ids[i];

		if (strstr(b->name, "kernel.kallsyms]") && (b->pid <= 0 || b->pid == k->machine_pid))
			return b;
	}
	return NULL;
}

/* The last copy of kcore that `perf buildid-cache --kcore` has made, where there is no folder. */
static int find_cached_folder(struct perf_kernel *k, struct pt_error *e)
{
	const struct perf_file_build_id *id = kernel_build_id(k);
	char *pattern, text[41];
	glob_t found;
	int ret = 0;

	if (k->folder || !k->cache || !id)
		return 0;
	perf_build_id_text(text, id->bytes, id->size);
	if (path_make(&pattern, e, "%s/\\[kernel.kcore\\]/%s/*", k->cache, text))
		return -1;
	if (glob(pattern, 0, NULL, &found) == 0) {
		if (found.gl_pathc)
			ret = path_make(&k->folder, e, "%s", found.gl_pathv[found.gl_pathc - 1]);
		globfree(&found);
	}
	free(pattern);
	return ret;
}

/*
 * *ret: the file that was asked for, whatever it is; else FOLDER/NAME if it is a file that can be read; else
 * NULL.
 */
static int find_file(const struct perf_kernel *k, const char *asked, const char *name, char **ret,
		     struct pt_error *e)
{
	struct stat st;

	*ret = NULL;
	if (asked)
		return path_make(ret, e, "%s", asked);
	if (!k->folder)
		return 0;
	if (path_make(ret, e, "%s/%s", k->folder, name))
		return -1;
	if (access(*ret, R_OK) != 0 || stat(*ret, &st) != 0 || !S_ISREG(st.st_mode)) {
		free(*ret);
		*ret = NULL;
	}
	return 0;
}

static int find_files(const struct perf_kernel *k, const struct import_kernel_files *asked, struct paths *ret,
		      struct pt_error *e)
{
	const char *modules = asked->modules;

	*ret = (struct paths){0};
	if (modules && is_folder(modules)) {
		ret->module_folder = modules;
		modules = NULL;
	}
	/* Whoever names a vmlinux wants it, not a kcore from elsewhere. */
	if (asked->vmlinux && path_make(&ret->vmlinux, e, "%s", asked->vmlinux))
		return -1;
	if ((asked->kcore || !asked->vmlinux) && find_file(k, asked->kcore, "kcore", &ret->kcore, e))
		return -1;
	return find_file(k, asked->kallsyms, "kallsyms", &ret->kallsyms, e) ||
		       find_file(k, modules, "modules", &ret->modules, e)
		   ? -1
		   : 0;
}

/* A module's copy in the build-id cache. *ret NULL: there is none. */
static int find_cached_module(const struct perf_kernel *k, const char *name, char **ret, struct pt_error *e)
{
	const struct perf_description *d = k->description;

	*ret = NULL;
	for (size_t i = 0; !*ret && k->cache && i < d->build_id_count; i++) {
		const struct perf_file_build_id *b = &d->build_ids[i];
		char id[41];

		if (strcmp(b->name, name) != 0 || (k->machine_pid ? b->pid != k->machine_pid : b->pid > 0))
			continue;
		perf_build_id_text(id, b->bytes, b->size);
		if (path_make(ret, e, "%s/.build-id/%.2s/%s/elf", k->cache, id, id + 2))
			return -1;
		if (access(*ret, R_OK)) {
			free(*ret);
			*ret = NULL;
		}
	}
	return 0;
}

/*
 * A module's file: in the folder that the user names, as the machine has it, or in the build-id cache. *ret
 * NULL: there is none.
 */
static int find_module(const struct perf_kernel *k, const char *folder, const char *name, char **ret,
		       struct pt_error *e)
{
	const char *release = k->description->text[PERF_TEXT_RELEASE];

	*ret = folder ? kernel_module_find(folder, NULL, name) : NULL;
	if (!*ret && release)
		*ret = kernel_module_find(k->root, release, name);
	return *ret ? 0 : find_cached_module(k, name, ret, e);
}

/* ---- Into the container ---- */

struct put {
	struct perf_kernel *kernel;
	struct paths paths;
	struct kernel_symbols *symbols; /* NULL: none */
	struct kernel_output to;
	unsigned unknown; /* places of modules that were left out */
	struct import_perf_notes *notes;
};

/* Where the kernel's text begins: from its mapping, else its symbols. 0 unknown. */
static uint64_t text_of(const struct put *p)
{
	for (size_t i = 0; i < p->kernel->map_count; i++)
		if (p->kernel->maps[i].text)
			return p->kernel->maps[i].text;
	return p->symbols ? kernel_symbols_find(p->symbols, "_text") : 0;
}

/* What of /proc/kcore is code: the mappings, else where there are symbols. */
static int wanted_ranges(const struct put *p, struct kernel_ranges *ret, struct pt_error *e)
{
	const struct perf_kernel *k = p->kernel;
	uint64_t text = text_of(p);

	for (size_t i = 0; i < k->map_count; i++) {
		uint64_t start = k->maps[i].text ? k->maps[i].text : k->maps[i].start;

		if (!kernel_ranges_add(ret, start, k->maps[i].end))
			return pt_fail_no_memory(e, "the kernel's code");
	}
	if (k->map_count == 0 && text && !kernel_ranges_add(ret, text, text + TEXT_MAX))
		return pt_fail_no_memory(e, "the kernel's code");
	return 0;
}

static int put_kcore(struct put *p, struct pt_error *e)
{
	struct kernel_ranges wanted = {0};
	int ret = wanted_ranges(p, &wanted, e);

	if (ret == 0)
		ret = kernel_put_kcore(p->paths.kcore, &wanted, &p->to, e);
	kernel_ranges_deinit(&wanted);
	return ret;
}

static int put_vmlinux(struct put *p, struct pt_error *e)
{
	const char *path = p->paths.vmlinux;
	uint64_t text = text_of(p);

	if (!text) {
		import_perf_note(p->notes, "%s is of no use: nothing says where the kernel's text is", path);
		return 0;
	}
	if (kernel_put_vmlinux(path, text, p->symbols, &p->to, e))
		return -1;
	if (p->to.written.count)
		import_perf_note(p->notes,
				 "the kernel's code is from %s, as it was linked: what a kernel patches when "
				 "it runs (alternatives, static branches) is not in it. There decoding ends, "
				 "or takes a branch that that kernel did not. perf record --kcore has the "
				 "code that ran",
				 path);
	return 0;
}

/* The module's code from its file; a note when it is not what is needed. */
static int put_module(struct put *p, const struct perf_kernel_map *map, const char *path, struct pt_error *e)
{
	struct pt_error why = {.offset = PT_NO_OFFSET};
	struct kernel_module module = {.name = map->name, .start = map->start, .end = map->end};
	uint8_t *bytes = kernel_module_read(path, &module.size, &why);
	int ret = 0;

	module.bytes = bytes;
	if (bytes)
		ret = kernel_put_module(&module, p->symbols, &p->to, &p->unknown, &why);
	free(bytes);
	if (!bytes || (ret && why.kind == PT_ERR_BAD_INPUT)) {
		import_perf_note(p->notes, "%s is not taken: %s", path, why.message);
		return 0;
	}
	if (ret)
		*e = why;
	return ret;
}

/*
 * Modules that no kcore has, from their files. Without symbols, nothing says that a file is the right build,
 * or where it calls.
 */
static int put_modules(struct put *p, struct pt_error *e)
{
	const struct perf_kernel *k = p->kernel;

	for (size_t i = 0; p->symbols && i < k->map_count; i++) {
		const struct perf_kernel_map *map = &k->maps[i];
		char *path;
		int ret;

		if (map->text || kernel_ranges_cover(&p->to.written, map->start, map->start + 1))
			continue;
		if (find_module(k, p->paths.module_folder, map->name, &path, e))
			return -1;
		ret = path ? put_module(p, map, path, e) : 0;
		free(path);
		if (ret)
			return -1;
	}
	if (p->unknown)
		import_perf_note(p->notes,
				 "%u places of kernel modules cannot be relocated (no symbol, or an unknown "
				 "type): left out",
				 p->unknown);
	return 0;
}

static void note_missing(const struct put *p)
{
	const struct perf_kernel *k = p->kernel;
	uint64_t all = 0;
	char guest[64] = "";

	if (k->machine_pid)
		snprintf(guest, sizeof guest, " of guest %" PRId32, k->machine_pid);
	if (p->to.written.count == 0) {
		import_perf_note(
		    p->notes, "no code of the kernel%s: record with `perf record --kcore`, or give --%skcore",
		    guest, k->machine_pid ? "guest" : "");
		return;
	}
	for (size_t i = 0; i < k->map_count; i++)
		all += k->maps[i].end - k->maps[i].start;
	for (size_t i = 0; i < k->map_count; i++) {
		const struct perf_kernel_map *map = &k->maps[i];
		uint64_t begin = map->text ? map->text : map->start;

		/* (A mapping's end includes the data that follows the code.) */
		if (!kernel_ranges_cover(&p->to.written, begin, begin + 1))
			import_perf_note(
			    p->notes, "no code for %s of the kernel%s, %.0f %% of its mapped code", map->name,
			    guest, all ? 100.0 * (double)(map->end - map->start) / (double)all : 0.0);
	}
}

static int put_all(struct put *p, const struct import_kernel_files *asked, struct pt_error *e)
{
	struct pt_error why = {.offset = PT_NO_OFFSET};
	int ret = 0;

	if (p->paths.kallsyms && !(p->symbols = kernel_symbols_read(p->paths.kallsyms, &why)))
		import_perf_note(p->notes, "the kernel's functions have no names: %s", why.message);
	if (p->paths.modules && read_modules(p->kernel, p->paths.modules, e))
		return -1;
	if (p->paths.kcore)
		ret = put_kcore(p, e);
	else if (p->paths.vmlinux)
		ret = put_vmlinux(p, e);
	if (ret || put_modules(p, e) ||
	    (p->symbols && kernel_symbols_put(p->symbols, p->to.w, p->kernel->machine_pid, e)))
		return -1;
	if (!asked->code_given)
		note_missing(p);
	return 0;
}

int perf_kernel_put(struct perf_kernel *k, const struct import_kernel_files *asked, struct ptc_writer *w,
		    struct import_perf_notes *notes, struct pt_error *e)
{
	struct put p = {.kernel = k, .to = {.w = w, .machine_pid = k->machine_pid}, .notes = notes};
	int ret = find_cached_folder(k, e);

	if (ret == 0)
		ret = find_files(k, asked, &p.paths, e);
	if (ret == 0)
		ret = put_all(&p, asked, e);
	kernel_ranges_deinit(&p.to.written);
	kernel_symbols_destroy(p.symbols);
	paths_deinit(&p.paths);
	return ret;
}
