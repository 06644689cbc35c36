/* images.c - see images.h. */
#include "capture/record/images.h"
#include "capture/code/elf_image.h"
#include "capture/code/kcore.h"
#include "capture/code/regular_file.h"
#include "schema/bytes.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define VDSO_MAX 65536

struct hw_images {
	struct ptc_writer *w;
	struct image_set *set;
	struct hw_kernel kernel;
	uint64_t missing;
	char why[256];	    /* of the first missing one */
	struct hw_jit *jit; /* NULL: code that is made at run time is not read */
};

struct hw_images *hw_images_create(struct ptc_writer *w)
{
	struct hw_images *im = calloc(1, sizeof *im);

	if (!im)
		return NULL;
	im->w = w;
	im->set = image_set_create();
	hw_kernel_init(&im->kernel);
	if (!im->set) {
		free(im);
		return NULL;
	}
	return im;
}

int hw_images_restart(struct hw_images *im, struct ptc_writer *w, struct pt_error *e)
{
	struct image_set *set = image_set_create();

	if (!set)
		return pt_fail_no_memory(e, "the images");
	image_set_destroy(im->set);
	im->set = set;
	im->w = w;
	return 0;
}

void hw_images_destroy(struct hw_images *im)
{
	if (!im)
		return;
	image_set_destroy(im->set);
	hw_kernel_deinit(&im->kernel);
	free(im);
}

uint64_t hw_images_missing(const struct hw_images *im, const char **ret_why)
{
	*ret_why = im->why;
	return im->missing;
}

void hw_images_jit(struct hw_images *im, struct hw_jit *j)
{
	im->jit = j;
}

void hw_images_count_missing(struct hw_images *im, const char *name, const char *why)
{
	if (!im->missing++)
		snprintf(im->why, sizeof im->why, "%.100s: %.140s", name, why);
}

static int missing(struct hw_images *im, const char *name, const char *why)
{
	hw_images_count_missing(im, name, why);
	return 0;
}

/* Our own vdso, when it is of that size: the kernel has one for all 64-bit programs. */
static int put_own_vdso(struct hw_images *im, uint64_t bytes, struct pt_error *e)
{
	FILE *f = fopen("/proc/self/maps", "re");
	int r = IMAGE_SET_SKIPPED;
	char line[512];

	while (f && fgets(line, sizeof line, f)) {
		uint64_t at, end;

		if (strstr(line, "[vdso]") && sscanf(line, "%" SCNx64 "-%" SCNx64, &at, &end) == 2 &&
		    end - at == bytes)
			r = image_set_add_bytes(im->set, im->w, "[vdso]", (void *)(uintptr_t)at, bytes, e);
	}
	if (f)
		fclose(f);
	return r;
}

/* The process's vdso; ours, when the process has ended. */
static int put_vdso(struct hw_images *im, const struct hw_mapping *m, struct pt_error *e)
{
	uint8_t *copy;
	int r;

	if (m->bytes > VDSO_MAX)
		return missing(im, "[vdso]", "too big");
	copy = malloc(m->bytes ? m->bytes : 1);
	if (!copy)
		return pt_fail_no_memory(e, "the vdso");
	struct iovec to = {copy, m->bytes}, from = {(void *)(uintptr_t)m->start, m->bytes};

	if (process_vm_readv(m->pid, &to, 1, &from, 1, 0) == (ssize_t)m->bytes)
		r = image_set_add_bytes(im->set, im->w, "[vdso]", copy, m->bytes, e);
	else
		r = put_own_vdso(im, m->bytes, e);
	free(copy);
	return r == IMAGE_SET_SKIPPED ? missing(im, "[vdso]", "its process has ended") : r;
}

struct hw_mapping hw_mapping_of(const uint8_t *p)
{
	struct perf_event_header h;

	memcpy(&h, p, sizeof h);
	return (struct hw_mapping){.pid = (int32_t)u32(p + 8),
				   .name = (const char *)p + 72,
				   .start = u64(p + 16),
				   .bytes = u64(p + 24),
				   .inode = h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID ? 0 : u64(p + 48)};
}

/* What is tried for a mapped file's code: the mapping's own link, the file by its name in the root
 * directory of the process, and here. The last two may be another file by now, with another inode. (Not the
 * device: that of btrfs and overlayfs is another one in MMAP2 than in stat().) */
#define PLACES 3

static int open_place(const struct hw_mapping *m, unsigned place, struct stat *ret)
{
	char path[96];

	switch (place) {
	case 0:
		snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, m->pid, m->start,
			 m->start + m->bytes);
		return regular_file_below("", path, ret);
	case 1:
		snprintf(path, sizeof path, "/proc/%d/root", m->pid);
		return regular_file_below(path, m->name, ret);
	default: return regular_file_below("", m->name, ret);
	}
}

int hw_images_mapping(struct hw_images *im, const struct hw_mapping *m, struct pt_error *e)
{
	struct pt_error why = {0};
	bool replaced = false;

	if (strcmp(m->name, "[vdso]") == 0)
		return put_vdso(im, m, e);
	if (im->jit && hw_jit_name(m->name))
		return hw_jit_mapped(im->jit, m->pid, m->start, m->bytes, m->time_ns, e);
	if (m->name[0] != '/' || m->name[1] == '/') /* "//anon", "[stack]": no file holds it */
		return 0;
	for (unsigned place = 0; place < PLACES; place++) {
		char path[32];
		struct stat st;
		int fd = open_place(m, place, &st), r = IMAGE_SET_SKIPPED;

		if (fd < 0)
			continue;
		if (m->inode && st.st_ino != m->inode) {
			replaced = true;
		} else {
			snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
			r = image_set_add_file(im->set, im->w, m->name, path, &why);
		}
		close(fd);
		if (r < 0)
			*e = why;
		if (r != IMAGE_SET_SKIPPED)
			return r;
	}
	return missing(im, m->name,
		       why.message[0] ? why.message
		       : replaced     ? "it was replaced since it was mapped"
				      : "not there");
}

/* ---- The kernel's ---- */

bool hw_images_open_kernel(struct hw_images *im, struct pt_error *why)
{
	return hw_kernel_files(&im->kernel, why);
}

static void undo(const void *arg, uint64_t address, uint8_t *bytes, size_t n)
{
	hw_own_pokes_undo(arg, address, bytes, n);
}

int hw_images_put_kernel(struct hw_images *im, const struct hw_own_pokes *pokes, struct pt_error *e)
{
	int r;

	im->kernel.undo = pokes ? undo : NULL;
	im->kernel.undo_arg = pokes;
	r = hw_kernel_put_all(&im->kernel, im->w, e);
	im->kernel.undo = NULL;
	return r;
}

int hw_images_put_kernel_code(struct hw_images *im, uint64_t address, uint64_t bytes, uint64_t time_ns,
			      struct pt_error *e)
{
	return hw_kernel_put_range(&im->kernel, im->w, address, bytes, time_ns, e);
}

int hw_images_put_kernel_bytes(struct hw_images *im, uint64_t address, const uint8_t *code, uint64_t bytes,
			       uint64_t time_ns, struct pt_error *e)
{
	static const char name[] = "[kernel]";
	const struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
					.pid = PTC_ANY_PID,
					.vaddr = address,
					.time_ns = time_ns,
					.name = name,
					.name_bytes = sizeof name - 1,
					.bytes = code,
					.size = bytes};

	return bytes ? ptc_put_image(im->w, &image, e) : 0;
}

int hw_images_rescan_modules(struct hw_images *im, uint64_t time_ns, struct pt_error *e)
{
	return hw_kernel_put_new(&im->kernel, im->w, time_ns, e);
}
