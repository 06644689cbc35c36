/* machines.c - see machines.h. */
#include "capture/perfdata/machines.h"
#include "capture/perfdata/images.h"
#include "capture/perfdata/kernel.h"
#include "capture/perfdata/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MACHINES_MAX   1024
#define MISSING_LISTED 20

struct machine {
	int32_t pid; /* 0 host */
	struct perf_images *images;
	struct perf_kernel kernel;
	char *root;  /* its files are below it */
	char *cache; /* perf's build-id cache; NULL: there is none */
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
		perf_kernel_deinit(&m->all[i].kernel);
		free(m->all[i].cache);
		free(m->all[i].root);
	}
	free(m->all);
	free(m);
}

/* Whether the recording is of the kernel that runs here. */
static bool is_own_kernel(const struct perf_description *d)
{
	struct utsname u;

	return uname(&u) == 0 && d->text[PERF_TEXT_HOST] && d->text[PERF_TEXT_RELEASE] &&
	       strcmp(u.nodename, d->text[PERF_TEXT_HOST]) == 0 &&
	       strcmp(u.release, d->text[PERF_TEXT_RELEASE]) == 0;
}

static struct machine *find(const struct perf_machines *m, int32_t pid)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->all[i].pid == pid)
			return &m->all[i];
	return NULL;
}

/*
 * Where perf keeps the machine's kernel. A guest's own recording has it where any recording has its
 * machine's.
 */
static int find_kernel_folder(const struct perf_machines *m, struct machine *one, const char *directory,
			      struct pt_error *e)
{
	struct perf_kernel *k = &one->kernel;
	bool own = one->pid == 0 || k->description != m->all[0].kernel.description;

	/* Code as it ran beats what the guest has by now. */
	if (directory && (own ? path_make(&k->folder, e, "%s/kcore_dir", directory)
			      : path_make(&k->folder, e, "%s/kcore_dir__%" PRId32, directory, one->pid)))
		return -1;
	if (k->folder && access(k->folder, X_OK) == 0)
		return 0;
	free(k->folder);
	k->folder = NULL;
	if (one->pid && m->request->guest_mount)
		return path_make(&k->folder, e, "%s/%" PRId32 "/proc", m->request->guest_mount, one->pid);
	return 0;
}

static int find_cache(const struct import_perf_request *q, struct machine *one, struct pt_error *e)
{
	if (q->cache)
		return path_make(&one->cache, e, "%s", q->cache);
	if (q->symfs)
		return path_make(&one->cache, e, "%s/.debug", q->symfs);
	return getenv("HOME") ? path_make(&one->cache, e, "%s/.debug", getenv("HOME")) : 0;
}

/* As perf has it: DIR/PID is the root of guest PID. */
static int find_root(const struct import_perf_request *q, struct machine *one, struct pt_error *e)
{
	if (one->pid && q->guest_mount)
		return path_make(&one->root, e, "%s/%" PRId32, q->guest_mount, one->pid);
	return path_make(&one->root, e, "%s", q->symfs ? q->symfs : "");
}

int perf_machines_add(struct perf_machines *m, int32_t pid, const struct perf_description *description,
		      const char *directory, struct pt_error *e)
{
	const struct import_perf_request *q = m->request;
	struct machine *one, *grown;

	if (find(m, pid))
		return 0;
	if (m->count == MACHINES_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "records of more than %d guests",
			       MACHINES_MAX);
	grown = realloc(m->all, (m->count + 1) * sizeof *grown);
	if (!grown)
		return pt_fail_no_memory(e, "the machines");
	m->all = grown;
	one = &grown[m->count++];
	*one = (struct machine){.pid = pid, .kernel = {.machine_pid = pid, .description = description}};
	if (find_cache(q, one, e) || find_root(q, one, e) || find_kernel_folder(m, one, directory, e))
		return -1;
	one->kernel.root = one->root;
	one->kernel.cache = one->cache;
	one->images = perf_images_create(
	    &(struct perf_images_places){.machine_pid = pid,
					 .root = one->root,
					 .cache = one->cache,
					 .own_cache = q->symfs && !q->cache,
					 .own_kernel = pid == 0 && is_own_kernel(description)},
	    description);
	return one->images ? 0 : pt_fail_no_memory(e, "the machines");
}

/* ---- Kernels ---- */

int perf_machines_kernel_map(struct perf_machines *m, int32_t pid, const struct perf_record *rec,
			     struct pt_error *e)
{
	struct machine *one = find(m, pid);

	return one ? perf_kernel_map(&one->kernel, rec, e) : 0;
}

static const struct import_kernel_files *asked_for(const struct perf_machines *m, int32_t pid)
{
	return pid ? &m->request->guest : &m->request->host;
}

bool perf_machines_has_kernel(const struct perf_machines *m, int32_t pid)
{
	const struct import_kernel_files *asked = asked_for(m, pid);
	const struct machine *one = find(m, pid);

	return one && (one->kernel.folder || asked->kcore || asked->vmlinux || asked->kallsyms);
}

int perf_machines_kernel(struct perf_machines *m, int32_t pid, struct ptc_writer *w, struct pt_error *e)
{
	struct machine *one = find(m, pid);

	return one ? perf_kernel_put(&one->kernel, asked_for(m, pid), w, m->notes, e) : 0;
}

/* ---- Processes ---- */

int perf_machines_mapped(struct perf_machines *m, int32_t pid, const struct ordered_record *rec,
			 struct ptc_writer *w, struct pt_error *e)
{
	struct machine *one = find(m, pid);
	struct perf_mmap map;

	/* A kernel's mappings are in its kcore. */
	if (!one || !perf_mmap_read(rec->bytes, rec->size, &map) || !map.executable || map.pid == -1)
		return 0;
	return perf_images_map(one->images, w, &map, e);
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
