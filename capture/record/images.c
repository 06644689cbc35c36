/* images.c - files' code; see images.h. */
#include "capture/record/images.h"
#include "capture/code/elf_image.h"
#include "capture/code/kcore.h"

#include <inttypes.h>
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
	char why[256]; /* the first missing one */
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

static int missing(struct hw_images *im, const char *name, const char *why)
{
	if (!im->missing++)
		snprintf(im->why, sizeof im->why, "%.100s: %.140s", name, why);
	return 0;
}

/* The process's vdso; when it has gone, ours: the kernel has one for all 64-bit programs. */
static int vdso(struct hw_images *im, int32_t pid, uint64_t start, uint64_t bytes, struct pt_error *e)
{
	uint8_t *copy;
	int r = IMAGE_SET_SKIPPED;

	if (bytes > VDSO_MAX)
		return missing(im, "[vdso]", "too big");
	copy = malloc(bytes ? bytes : 1);
	if (!copy)
		return pt_fail_no_memory(e, "the vdso");
	struct iovec to = {copy, bytes}, from = {(void *)(uintptr_t)start, bytes};

	if (process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)bytes) {
		r = image_set_add_bytes(im->set, im->w, "[vdso]", copy, bytes, e);
	} else {
		char line[512];
		FILE *f = fopen("/proc/self/maps", "re");

		while (f && fgets(line, sizeof line, f)) {
			uint64_t at, end;

			if (strstr(line, "[vdso]") && sscanf(line, "%" SCNx64 "-%" SCNx64, &at, &end) == 2 &&
			    end - at == bytes)
				r = image_set_add_bytes(im->set, im->w, "[vdso]", (void *)(uintptr_t)at,
							bytes, e);
		}
		if (f)
			fclose(f);
	}
	free(copy);
	if (r == IMAGE_SET_SKIPPED)
		return missing(im, "[vdso]", "its process has ended");
	return r;
}

int hw_images_mapping(struct hw_images *im, int32_t pid, const char *name, uint64_t start, uint64_t bytes,
		      uint64_t inode, struct pt_error *e)
{
	char path[3][4200];
	struct pt_error why = {0};
	struct stat st;
	bool other = false;

	if (strcmp(name, "[vdso]") == 0)
		return vdso(im, pid, start, bytes, e);
	if (name[0] != '/' || name[1] == '/') /* "//anon", "[stack]": no file holds it */
		return 0;
	snprintf(path[0], sizeof path[0], "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start,
		 start + bytes);
	snprintf(path[1], sizeof path[1], "/proc/%d/root%s", pid, name);
	snprintf(path[2], sizeof path[2], "%s", name);
	for (unsigned i = 0; i < 3; i++) {
		int r;

		if (stat(path[i], &st))
			continue;
		if (inode && st.st_ino != inode) {
			other = true;
			continue;
		}
		r = image_set_add_file(im->set, im->w, name, path[i], &why);
		if (r < 0)
			*e = why;
		if (r != IMAGE_SET_SKIPPED)
			return r;
	}
	return missing(im, name,
		       why.message[0] ? why.message
		       : other	      ? "it was replaced since it was mapped"
				      : "not there");
}

bool hw_kernel_open(struct hw_images *im, struct pt_error *why)
{
	return hw_kernel_files(&im->kernel, why);
}

int hw_kernel_put(struct hw_images *im, struct pt_error *e)
{
	return hw_kernel_put_all(&im->kernel, im->w, e);
}

int hw_kernel_code(struct hw_images *im, uint64_t address, uint64_t bytes, uint64_t time_ns,
		   struct pt_error *e)
{
	return hw_kernel_put_range(&im->kernel, im->w, address, bytes, time_ns, e);
}

int hw_kernel_rescan(struct hw_images *im, uint64_t time_ns, struct pt_error *e)
{
	return hw_kernel_put_new(&im->kernel, im->w, time_ns, e);
}
