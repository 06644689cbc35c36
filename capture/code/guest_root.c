/* guest_root.c - see guest_root.h. */
#include "capture/code/guest_root.h"
#include "capture/code/elf_image.h"
#include "capture/code/image_set.h"
#include "capture/code/kcore.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct guest_files {
	int dir;
	struct image_set *set;
	void *known; /* tsearch()'s, of names */
	uint64_t taken, missing;
	char why[320];
};

int guest_root_put_kernel(const char *dir, int32_t pid, struct ptc_writer *w, bool *ret_any,
			  struct pt_error *e)
{
	struct pt_error why = {0};
	struct hw_kernel k;
	int ret = 0;

	hw_kernel_init(&k);
	k.root = dir;
	k.machine_pid = pid;
	/* Symbols do without code. */
	(void)hw_kernel_files(&k, &why);
	*ret_any = k.kallsyms >= 0;
	if (*ret_any)
		ret = hw_kernel_put_all(&k, w, e);
	*ret_any &= k.text_start != 0;
	hw_kernel_deinit(&k);
	return ret;
}

struct guest_files *guest_files_create(const char *dir, int32_t pid, struct pt_error *e)
{
	struct guest_files *f = calloc(1, sizeof *f);

	if (!f || !(f->set = image_set_create_for(pid))) {
		free(f);
		pt_fail_no_memory(e, "a guest's files");
		return NULL;
	}
	f->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (f->dir >= 0)
		return f;
	pt_fail_errno(e, "cannot open the folder %s", dir);
	guest_files_destroy(f);
	return NULL;
}

void guest_files_destroy(struct guest_files *f)
{
	if (!f)
		return;
	if (f->dir >= 0)
		close(f->dir);
	image_set_destroy(f->set);
	tdestroy(f->known, free);
	free(f);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

int guest_files_known(struct guest_files *f, const char *name, uint32_t name_bytes, struct pt_error *e)
{
	char *copy = strndup(name, name_bytes);
	char *const *node = copy ? tsearch(copy, &f->known, by_name) : NULL;

	if (!node || *node != copy)
		free(copy);
	return node ? 0 : pt_fail_no_memory(e, "a guest's files");
}

static int missing(struct guest_files *f, const char *name, const char *why)
{
	if (!f->missing++)
		snprintf(f->why, sizeof f->why, "%.150s: %.160s", name, why);
	return 0;
}

/* As the guest would open it. */
static int open_in(const struct guest_files *f, const char *name)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, f->dir, name, &how, sizeof how);
}

static int take(struct guest_files *f, struct ptc_writer *w, const char *name, const uint8_t *build_id,
		uint32_t build_id_bytes, struct pt_error *e)
{
	struct pt_error why = {0};
	uint8_t id[20] = {0};
	char path[64];
	int fd = open_in(f, name), r;

	if (fd < 0) {
		pt_fail_errno(&why, "it cannot be opened");
		return missing(f, name, why.message);
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (build_id_bytes && (elf_file_build_id(path, id, &why) != (int)build_id_bytes ||
			       memcmp(id, build_id, build_id_bytes) != 0)) {
		close(fd);
		if (why.kind == PT_ERR_NO_MEMORY)
			return pt_fail_no_memory(e, "an image");
		return missing(f, name, why.message[0] ? why.message : "the file there is of another build");
	}
	r = image_set_add_file(f->set, w, &(struct image_file){.name = name, .path = path}, &why);
	close(fd);
	if (r < 0) {
		*e = why;
		return -1;
	}
	if (r == IMAGE_SET_SKIPPED)
		return missing(f, name, why.message);
	f->taken++;
	return 0;
}

int guest_files_records(struct guest_files *f, struct ptc_writer *w, const uint8_t *records, uint64_t size,
			struct pt_error *e)
{
	for (uint64_t at = 0; at < size;) {
		const uint8_t *p = records + at;
		struct perf_event_header h;
		const char *name = (const char *)p + 72;
		uint32_t prot, id_bytes = 0;
		size_t n;

		memcpy(&h, p, sizeof h);
		at += h.size;
		if (h.type != PERF_RECORD_MMAP2 || h.size < 80)
			continue;
		memcpy(&prot, p + 64, sizeof prot);
		n = strnlen(name, h.size - 72u);
		if (n == h.size - 72u || !(prot & PROT_EXEC) || name[0] != '/' || name[1] == '/' ||
		    tfind(name, &f->known, by_name))
			continue;
		if (h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
			id_bytes = p[40] <= 20 ? p[40] : 0;
		if (guest_files_known(f, name, (uint32_t)n, e) || take(f, w, name, p + 44, id_bytes, e))
			return -1;
	}
	return 0;
}

uint64_t guest_files_taken(const struct guest_files *f)
{
	return f->taken;
}

uint64_t guest_files_missing(const struct guest_files *f, const char **ret_why)
{
	*ret_why = f->why;
	return f->missing;
}
