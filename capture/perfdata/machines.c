/* machines.c - see machines.h. */
#include "capture/perfdata/machines.h"
#include "capture/code/kernel_files.h"
#include "capture/perfdata/images.h"
#include "capture/code/kernel_module.h"
#include "capture/code/text_line.h"

#include <glob.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MACHINES_MAX	1024
#define MISSING_LISTED	20
#define MAPS_MAX	4096
#define KERNEL_NAME_MAX 256
#define KERNEL_HALF	((uint64_t)1 << 63)
#define TEXT_MAX	((uint64_t)64 << 20) /* of a kernel, when nobody says how long it is */

/* The kernel's text, or a module. */
struct kernel_map {
	uint64_t start, end;
	uint64_t text; /* of the kernel itself: its symbol _text; 0 */
	char *name;
};

struct machine {
	int32_t pid; /* 0 host */
	const struct perf_file *file;
	struct perf_images *images;
	char *root;	     /* its files are below it */
	char *cache;	     /* perf's build-id cache; NULL: there is none */
	char *kernel_folder; /* with kcore, kallsyms, modules; NULL: there is none */
	struct kernel_map *maps;
	size_t map_count, map_room;
};

struct perf_machines {
	const struct import_perf_request *request;
	struct import_perf_notes *notes;
	struct machine *all;
	size_t count;
};

struct perf_machines *perf_machines_create(const struct import_perf_request *request,
					   struct import_perf_notes *notes)
{
	struct perf_machines *m = calloc(1, sizeof *m);

	if (m) {
		m->request = request;
		m->notes = notes;
	}
	return m;
}

void perf_machines_destroy(struct perf_machines *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++) {
		perf_images_destroy(m->all[i].images);
		free(m->all[i].kernel_folder);
		free(m->all[i].cache);
		free(m->all[i].root);
		for (size_t k = 0; k < m->all[i].map_count; k++)
			free(m->all[i].maps[k].name);
		free(m->all[i].maps);
	}
	free(m->all);
	free(m);
}

/* A path in new memory; *failed when there is none. */
static char *join(bool *failed, const char *format, ...) __attribute__((format(printf, 2, 3)));
static char *join(bool *failed, const char *format, ...)
{
	char *path;
	va_list ap;
	int bytes;

	va_start(ap, format);
	bytes = vasprintf(&path, format, ap);
	va_end(ap);
	if (bytes >= 0)
		return path;
	*failed = true;
	return NULL;
}

/* Whether the recording is of the kernel that runs here. */
static bool is_own_kernel(const struct perf_file *f)
{
	struct utsname u;

	return uname(&u) == 0 && f->text[PERF_TEXT_HOST] && f->text[PERF_TEXT_RELEASE] &&
	       strcmp(u.nodename, f->text[PERF_TEXT_HOST]) == 0 &&
	       strcmp(u.release, f->text[PERF_TEXT_RELEASE]) == 0;
}

static struct machine *find(struct perf_machines *m, int32_t pid)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->all[i].pid == pid)
			return &m->all[i];
	return NULL;
}

/* Where perf keeps the machine's kernel. A guest's own recording has it as any has. */
static char *kernel_folder(const struct perf_machines *m, int32_t pid, const struct perf_file *file,
			   bool *failed)
{
	bool own = pid == 0 || file != m->all[0].file;
	char *folder = NULL;

	/* Code as it ran beats what the guest has by now. */
	if (file->directory)
		folder = own ? join(failed, "%s/kcore_dir", file->directory)
			     : join(failed, "%s/kcore_dir__%" PRId32, file->directory, pid);
	if (folder && access(folder, X_OK) == 0)
		return folder;
	free(folder);
	if (pid && m->request->guest_mount)
		return join(failed, "%s/%" PRId32 "/proc", m->request->guest_mount, pid);
	return NULL;
}

int perf_machines_add(struct perf_machines *m, int32_t pid, const struct perf_file *file, struct pt_error *e)
{
	const struct import_perf_request *q = m->request;
	struct machine *one = find(m, pid), *grown;
	char *root, *cache = NULL;
	bool failed = false;

	if (one)
		return 0;
	if (m->count == MACHINES_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "records of more than %d guests",
			       MACHINES_MAX);
	grown = realloc(m->all, (m->count + 1) * sizeof *grown);
	if (!grown)
		return pt_fail_no_memory(e, "the code");
	m->all = grown;
	one = &grown[m->count];
	*one = (struct machine){.pid = pid, .file = file};
	if (m->count == 0)
		m->count = 1; /* kernel_folder() compares with the first machine's file */
	else
		m->count++;
	if (q->cache)
		cache = join(&failed, "%s", q->cache);
	else if (q->symfs)
		cache = join(&failed, "%s/.debug", q->symfs);
	else if (getenv("HOME"))
		cache = join(&failed, "%s/.debug", getenv("HOME"));
	/* perf: DIR/PID is the root of guest PID. */
	root = pid && q->guest_mount ? join(&failed, "%s/%" PRId32, q->guest_mount, pid)
				     : join(&failed, "%s", q->symfs ? q->symfs : "");
	one->kernel_folder = kernel_folder(m, pid, file, &failed);
	if (!failed)
		one->images = perf_images_create(pid, root, cache, q->symfs && !q->cache,
						 pid == 0 && is_own_kernel(file));
	one->root = root;
	one->cache = cache;
	if (!one->images)
		return pt_fail_no_memory(e, "the code");
	perf_images_build_ids(one->images, file);
	return 0;
}

/* ---- Kernels ---- */

/* What was asked for, whatever it is, or FOLDER/NAME if it can be read and is a file; NULL. To be freed. */
static char *kernel_file(const char *asked, const char *folder, const char *name, bool *failed)
{
	struct stat st;
	char *path;

	if (asked)
		return join(failed, "%s", asked);
	if (!folder)
		return NULL;
	path = join(failed, "%s/%s", folder, name);
	if (path && access(path, R_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		return path;
	free(path);
	return NULL;
}

/* Once by name: a recording tells them again when perf switches files. */
static int add_map(struct machine *one, uint64_t start, uint64_t bytes, uint64_t text, const char *name,
		   struct pt_error *e)
{
	struct kernel_map *grown;

	if (bytes > UINT64_MAX - start || one->map_count == MAPS_MAX)
		return 0;
	for (size_t i = 0; i < one->map_count; i++)
		if (one->maps[i].start == start)
			return 0;
	if (one->map_count == one->map_room) {
		size_t room = one->map_room ? 2 * one->map_room : 64;

		grown = realloc(one->maps, room * sizeof *grown);
		if (!grown)
			return pt_fail_no_memory(e, "the code");
		one->maps = grown;
		one->map_room = room;
	}
	grown = &one->maps[one->map_count];
	*grown =
	    (struct kernel_map){.start = start, .end = start + bytes, .text = text, .name = strdup(name)};
	if (!grown->name)
		return pt_fail_no_memory(e, "the code");
	one->map_count++;
	return 0;
}

int perf_machines_kernel_map(struct perf_machines *m, int32_t pid, const struct perf_record *rec,
			     struct pt_error *e)
{
	size_t fixed = rec->type == PERF_RECORD_MMAP2 ? 8 + 64 : 8 + 32;
	struct machine *one = find(m, pid);
	uint64_t start, bytes, text;
	char name[KERNEL_NAME_MAX];
	int32_t process;
	bool is_kernel;

	if (!one || (rec->type != PERF_RECORD_MMAP && rec->type != PERF_RECORD_MMAP2) || rec->size <= fixed)
		return 0;
	memcpy(&process, rec->bytes + 8, 4);
	memcpy(&start, rec->bytes + 16, 8);
	memcpy(&bytes, rec->bytes + 24, 8);
	memcpy(&text, rec->bytes + 32, 8);
	if (process != -1 || start < KERNEL_HALF)
		return 0;
	snprintf(name, sizeof name, "%.*s", (int)(rec->size - fixed), (const char *)rec->bytes + fixed);
	/* "[kernel.kallsyms]_text", "[guest.kernel.kallsyms]_text"; its offset is the address of that symbol. */
	is_kernel =
	    strncmp(name, "[kernel.kallsyms]", 17) == 0 || strncmp(name, "[guest.kernel.kallsyms", 22) == 0;
	return add_map(one, start, bytes, is_kernel ? text ? text : start : 0, name, e);
}

/* /proc/modules: "kvm 1146880 1 kvm_intel, Live 0xffffffffc0206000". What is no such line is passed over. */
static int read_modules(struct machine *one, const char *path, struct pt_error *e)
{
	FILE *file = fopen(path, "re");
	char line[16384]; /* it tells all modules that use one */
	bool cut;
	int ret = 0;

	if (!file)
		return pt_fail_errno(e, "cannot read %s", path);
	while (ret == 0 && text_line(file, line, sizeof line, &cut)) {
		char name[KERNEL_NAME_MAX - 2], bracketed[KERNEL_NAME_MAX];
		unsigned long long bytes, start;

		if (sscanf(line, "%253s %llu %*s %*s %*s 0x%llx", name, &bytes, &start) != 3 ||
		    start < KERNEL_HALF)
			continue;
		snprintf(bracketed, sizeof bracketed, "[%s]", name);
		ret = add_map(one, start, bytes, 0, bracketed, e);
	}
	fclose(file);
	return ret;
}

/* The kernel's own build id, as the recording lists it. */
static const struct perf_file_build_id *kernel_build_id(const struct machine *one)
{
	for (size_t i = 0; i < one->file->build_id_count; i++)
		if (strstr(one->file->build_ids[i].name, "kernel.kallsyms]") &&
		    (one->file->build_ids[i].pid <= 0 || one->file->build_ids[i].pid == one->pid))
			return &one->file->build_ids[i];
	return NULL;
}

/* A copy of kcore that `perf buildid-cache --kcore` has made: the last one. */
static int cached_folder(struct machine *one, struct pt_error *e)
{
	const struct perf_file_build_id *id = kernel_build_id(one);
	bool failed = false;
	char *pattern, text[41] = "";
	glob_t found;

	if (one->kernel_folder || !one->cache || !id)
		return 0;
	for (uint32_t i = 0; i < id->size && i < 20; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", id->bytes[i]);
	pattern = join(&failed, "%s/\\[kernel.kcore\\]/%s/*", one->cache, text);
	if (!pattern)
		return pt_fail_no_memory(e, "the code");
	if (glob(pattern, 0, NULL, &found) == 0) {
		if (found.gl_pathc)
			one->kernel_folder = join(&failed, "%s", found.gl_pathv[found.gl_pathc - 1]);
		globfree(&found);
	}
	free(pattern);
	return failed ? pt_fail_no_memory(e, "the code") : 0;
}

/* Where the kernel's text begins: from its mapping, else its symbols. 0 unknown. */
static uint64_t text_of(const struct machine *one, const struct kernel_symbols *symbols)
{
	for (size_t i = 0; i < one->map_count; i++)
		if (one->maps[i].text)
			return one->maps[i].text;
	return symbols ? kernel_symbols_find(symbols, "_text") : 0;
}

static void note_kernel(struct perf_machines *m, const struct machine *one,
			const struct kernel_ranges *written)
{
	uint64_t all = 0;
	char guest[64] = "";

	if (one->pid)
		snprintf(guest, sizeof guest, " of guest %" PRId32, one->pid);
	if (written->count == 0) {
		import_perf_note(
		    m->notes, "no code of the kernel%s: record with `perf record --kcore`, or give --%skcore",
		    guest, one->pid ? "guest" : "");
		return;
	}
	for (size_t i = 0; i < one->map_count; i++)
		all += one->maps[i].end - one->maps[i].start;
	for (size_t i = 0; i < one->map_count; i++) {
		const struct kernel_map *map = &one->maps[i];
		uint64_t begin = map->text ? map->text : map->start;

		/* (Their ends are told with the data that follows the code.) */
		if (!kernel_ranges_cover(written, begin, begin + 1))
			import_perf_note(
			    m->notes, "no code for %s of the kernel%s, %.0f %% of its mapped code", map->name,
			    guest, all ? 100.0 * (double)(map->end - map->start) / (double)all : 0.0);
	}
}

struct kernel_paths {
	char *kcore, *vmlinux, *kallsyms, *modules;
	const char *module_folder; /* where modules' files are; NULL: nobody said */
};

/* A module's file: in the folder that the user names, as the machine has it, or in the build-id cache. NULL: there is none. */
static char *module_file(const struct machine *one, const char *folder, const char *name)
{
	const char *release = one->file->text[PERF_TEXT_RELEASE];
	char *path = folder ? kernel_module_find(folder, NULL, name) : NULL;

	if (!path && release)
		path = kernel_module_find(one->root, release, name);

	for (size_t i = 0; !path && one->cache && i < one->file->build_id_count; i++) {
		const struct perf_file_build_id *b = &one->file->build_ids[i];
		char id[41] = "";
		bool failed = false;

		if (strcmp(b->name, name) != 0 || (one->pid ? b->pid != one->pid : b->pid > 0))
			continue;
		for (uint32_t k = 0; k < b->size && k < 20; k++)
			snprintf(id + 2 * (size_t)k, 3, "%02x", b->bytes[k]);
		path = join(&failed, "%s/.build-id/%.2s/%s/elf", one->cache, id, id + 2);
		if (path && access(path, R_OK)) {
			free(path);
			path = NULL;
		}
	}
	return path;
}

/* Modules that no kcore has, from their files. */
static int put_modules(struct perf_machines *m, struct machine *one, const char *folder,
		       const struct kernel_symbols *symbols, struct kernel_output *to, struct pt_error *e)
{
	unsigned unknown = 0;
	int ret = 0;

	/* Without them, nothing says that it is the right build, or where it calls. */
	for (size_t i = 0; symbols && ret == 0 && i < one->map_count; i++) {
		const struct kernel_map *map = &one->maps[i];
		struct pt_error why = {.offset = PT_NO_OFFSET};
		struct kernel_module module = {.name = map->name, .start = map->start, .end = map->end};
		uint8_t *bytes;
		char *path;

		if (map->text || kernel_ranges_cover(&to->written, map->start, map->start + 1))
			continue;
		path = module_file(one, folder, map->name);
		if (!path)
			continue;
		module.bytes = bytes = kernel_module_read(path, &module.size, &why);
		if (bytes)
			ret = kernel_put_module(&module, symbols, to, &unknown, &why);
		if (!bytes || (ret && why.kind == PT_ERR_BAD_INPUT)) {
			import_perf_note(m->notes, "%s is not taken: %s", path, why.message);
			ret = 0;
		}
		if (ret)
			*e = why;
		free(bytes);
		free(path);
	}
	if (unknown)
		import_perf_note(
		    m->notes, "%u places of kernel modules cannot be relocated (no symbol, or an unknown type): left out", unknown);
	return ret;
}

/* What of /proc/kcore is code: the mappings, else where there are symbols. */
static int wanted_ranges(const struct machine *one, uint64_t text, struct kernel_ranges *ret,
			 struct pt_error *e)
{
	for (size_t i = 0; i < one->map_count; i++) {
		uint64_t start = one->maps[i].text ? one->maps[i].text : one->maps[i].start;

		if (!kernel_ranges_add(ret, start, one->maps[i].end))
			return pt_fail_no_memory(e, "the code");
	}
	if (one->map_count == 0 && text && !kernel_ranges_add(ret, text, text + TEXT_MAX))
		return pt_fail_no_memory(e, "the code");
	return 0;
}

static int put_kernel(struct perf_machines *m, struct machine *one, const struct kernel_paths *paths,
		      struct ptc_writer *w, struct pt_error *e)
{
	struct pt_error why = {.offset = PT_NO_OFFSET};
	struct kernel_output to = {.w = w, .machine_pid = one->pid};
	struct kernel_symbols *symbols = NULL;
	struct kernel_ranges wanted = {0};
	uint64_t text;
	int ret = 0;

	if (paths->kallsyms && !(symbols = kernel_symbols_read(paths->kallsyms, &why)))
		import_perf_note(m->notes, "the kernel's functions have no names: %s", why.message);
	if (paths->modules)
		ret = read_modules(one, paths->modules, e);
	text = text_of(one, symbols);
	if (ret == 0)
		ret = wanted_ranges(one, text, &wanted, e);
	if (ret == 0 && paths->kcore)
		ret = kernel_put_kcore(paths->kcore, &wanted, &to, e);
	else if (ret == 0 && paths->vmlinux && !text)
		import_perf_note(m->notes, "%s is of no use: nothing says where the kernel's text is",
				 paths->vmlinux);
	else if (ret == 0 && paths->vmlinux)
		ret = kernel_put_vmlinux(paths->vmlinux, text, symbols, &to, e);
	if (ret == 0 && !paths->kcore && to.written.count)
		import_perf_note(
		    m->notes,
		    "the kernel's code is from %s, as it was linked: what a kernel patches when it "
		    "runs (alternatives, static branches) is not in it; there decoding ends, or goes "
		    "where that kernel did not. perf record --kcore has the code that ran",
		    paths->vmlinux);
	if (ret == 0)
		ret = put_modules(m, one, paths->module_folder, symbols, &to, e);
	if (ret == 0 && symbols)
		ret = kernel_symbols_put(symbols, w, one->pid, e);
	if (ret == 0)
		note_kernel(m, one, &to.written);
	kernel_ranges_deinit(&to.written);
	kernel_ranges_deinit(&wanted);
	kernel_symbols_destroy(symbols);
	return ret;
}

bool perf_machines_has_kernel(struct perf_machines *m, int32_t pid)
{
	const struct import_kernel_files *asked = pid ? &m->request->guest : &m->request->host;
	const struct machine *one = find(m, pid);

	return one && (one->kernel_folder || asked->kcore || asked->vmlinux || asked->kallsyms);
}

int perf_machines_kernel(struct perf_machines *m, int32_t pid, struct ptc_writer *w, struct pt_error *e)
{
	const struct import_kernel_files *asked = pid ? &m->request->guest : &m->request->host;
	struct machine *one = find(m, pid);
	struct kernel_paths paths;
	bool failed = false;
	struct stat st;
	int ret;

	if (!one)
		return 0;
	if (cached_folder(one, e))
		return -1;
	/* Who names a vmlinux wants it, not another kcore. */
	paths.kcore = asked->vmlinux && !asked->kcore
			  ? NULL
			  : kernel_file(asked->kcore, one->kernel_folder, "kcore", &failed);
	paths.vmlinux = kernel_file(asked->vmlinux, NULL, NULL, &failed);
	paths.kallsyms = kernel_file(asked->kallsyms, one->kernel_folder, "kallsyms", &failed);
	paths.modules = kernel_file(asked->modules, one->kernel_folder, "modules", &failed);
	paths.module_folder = NULL;
	if (paths.modules && stat(paths.modules, &st) == 0 && S_ISDIR(st.st_mode)) {
		/* The files themselves. */
		free(paths.modules);
		paths.modules = kernel_file(NULL, one->kernel_folder, "modules", &failed);
		paths.module_folder = asked->modules;
	}
	ret = failed ? pt_fail_no_memory(e, "the code") : put_kernel(m, one, &paths, w, e);
	free(paths.kcore);
	free(paths.vmlinux);
	free(paths.kallsyms);
	free(paths.modules);
	return ret;
}

/* ---- Processes ---- */

int perf_machines_mapped(struct perf_machines *m, int32_t pid, const struct ordered_record *rec,
			 struct ptc_writer *w, struct pt_error *e)
{
	struct machine *one = find(m, pid);
	size_t fixed = 8 + 32;
	struct perf_event_header h;
	const uint8_t *p = rec->bytes + 8, *build_id = NULL;
	uint32_t prot = PROT_EXEC, build_id_bytes = 0;
	uint64_t length;
	int32_t process;
	char *name;
	int ret;

	memcpy(&h, rec->bytes, sizeof h);
	if (h.type == PERF_RECORD_MMAP2)
		fixed = 8 + 64;
	if (!one || rec->size <= fixed)
		return 0;
	memcpy(&process, p, 4);
	memcpy(&length, p + 16, 8);
	if (h.type == PERF_RECORD_MMAP2) {
		memcpy(&prot, p + 56, 4);
		if (h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			build_id_bytes = p[32] <= 20 ? p[32] : 20;
			build_id = p + 36;
		}
	} else if (h.misc & PERF_RECORD_MISC_MMAP_DATA) {
		return 0;
	}
	/* A kernel's mappings are told by its kcore. */
	if (!(prot & PROT_EXEC) || process == -1)
		return 0;
	name = strndup((const char *)rec->bytes + fixed, rec->size - fixed);
	if (!name)
		return pt_fail_no_memory(e, "the code");
	ret = perf_images_map(one->images, w, name, build_id, build_id_bytes, length, e);
	free(name);
	return ret;
}

void perf_machines_note_missing(struct perf_machines *m)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct perf_images *images = m->all[i].images;
		uint64_t all = perf_images_mapped_bytes(images), rest = 0;
		const struct perf_image_missing *missing;
		char guest[64] = "";
		size_t n, at = 0;

		if (m->all[i].pid)
			snprintf(guest, sizeof guest, " of guest %" PRId32, m->all[i].pid);
		for (n = 0; (missing = perf_images_missing(images, &at)); n++) {
			if (n >= MISSING_LISTED) {
				rest += missing->mapped_bytes;
				continue;
			}
			import_perf_note(m->notes, "no code for %.500s%s, %.0f %% of the mapped code: %.500s",
					 missing->name, guest,
					 all ? 100.0 * (double)missing->mapped_bytes / (double)all : 0.0,
					 missing->why ? missing->why : "out of memory");
		}
		if (n > MISSING_LISTED)
			import_perf_note(
			    m->notes, "no code for %zu further files%s, %.0f %% of the mapped code",
			    n - MISSING_LISTED, guest, all ? 100.0 * (double)rest / (double)all : 0.0);
	}
}
