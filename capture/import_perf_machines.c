/* import_perf_machines.c - see import_perf_machines.h. */
#include "capture/import_perf_machines.h"
#include "capture/import_kernel.h"
#include "capture/import_perf_images.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MACHINES_MOST  1024
#define MISSING_LISTED 20

struct machine {
	int32_t pid; /* 0 host */
	const struct perf_file *file;
	struct perf_images *images;
	char *kernel_folder; /* with kcore, kallsyms, modules; NULL: there is none */
};

struct perf_machines {
	const struct import_perf_request *request;
	struct import_perf_notes *notes;
	struct machine *all;
	size_t count;
};

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for the code");
}

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
	if (m->count == MACHINES_MOST)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "records of more than %d guests",
			       MACHINES_MOST);
	grown = realloc(m->all, (m->count + 1) * sizeof *grown);
	if (!grown)
		return no_memory(e);
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
	free(root);
	free(cache);
	if (!one->images)
		return no_memory(e);
	perf_images_build_ids(one->images, file);
	return 0;
}

/* ---- Kernels ---- */

/* What was asked for, or FOLDER/NAME if it can be read; NULL. To be freed. */
static char *kernel_file(const char *asked, const char *folder, const char *name, bool *failed)
{
	char *path;

	if (asked)
		return join(failed, "%s", asked);
	if (!folder)
		return NULL;
	path = join(failed, "%s/%s", folder, name);
	if (path && access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

int perf_machines_kernel(struct perf_machines *m, int32_t pid, struct ptc_writer *w, struct pt_error *e)
{
	const struct import_kernel_files *asked = pid ? &m->request->guest : &m->request->host;
	struct machine *one = find(m, pid);
	struct pt_error why = {.offset = PT_NO_OFFSET};
	struct kernel_symbols *symbols = NULL;
	bool failed = false;
	char *kcore, *kallsyms;
	uint64_t bytes = 0;
	int ret = 0;

	if (!one)
		return 0;
	kcore = kernel_file(asked->kcore, one->kernel_folder, "kcore", &failed);
	kallsyms = kernel_file(asked->kallsyms, one->kernel_folder, "kallsyms", &failed);
	if (failed)
		ret = no_memory(e);
	if (ret == 0 && kcore)
		ret = kernel_put_kcore(kcore, w, pid, &bytes, e);
	if (ret == 0 && kallsyms) {
		symbols = kernel_symbols_read(kallsyms, &why);
		if (symbols)
			ret = kernel_symbols_put(symbols, w, pid, e);
		else
			import_perf_note(m->notes, "the kernel's functions have no names: %s", why.message);
	}
	if (ret == 0 && bytes == 0) {
		if (pid)
			import_perf_note(m->notes, "there is no code of the kernel of guest %" PRId32, pid);
		else
			import_perf_note(m->notes,
					 "there is no code of the kernel: record with `perf record --kcore`, "
					 "or give --kcore");
	}
	kernel_symbols_destroy(symbols);
	free(kcore);
	free(kallsyms);
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
		return no_memory(e);
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
		size_t n;

		if (m->all[i].pid)
			snprintf(guest, sizeof guest, " of guest %" PRId32, m->all[i].pid);
		for (n = 0; (missing = perf_images_missing(images, n)); n++) {
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
