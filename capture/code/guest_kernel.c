/* guest_kernel.c - see guest_kernel.h. */
#include "capture/code/guest_kernel.h"
#include "capture/code/guest_root.h"
#include "capture/code/kernel_files.h"
#include "capture/code/kernel_symbols.h"
#include "capture/code/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)1 << 20)

/* The pid before the colon and where the file's name begins; 0: there is none, the argument is a name. */
static int split(const char *argument, int32_t *ret_pid, const char **ret_path, struct pt_error *e)
{
	size_t digits = strspn(argument, "0123456789");
	long pid;

	*ret_pid = 0;
	*ret_path = argument;
	if (!digits || argument[digits] != ':')
		return 0;
	pid = strtol(argument, NULL, 10);
	if (pid <= 0 || pid > INT32_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s: %.*s is no pid", argument, (int)digits,
			       argument);
	*ret_pid = (int32_t)pid;
	*ret_path = argument + digits + 1;
	return 0;
}

/* The image's file, and its size: 0, or -1. */
static int open_image(const struct guest_image *image, int *ret_fd, uint64_t *ret_size, struct pt_error *e)
{
	char *path = strndup(image->path, image->path_bytes);
	struct stat st = {0};
	int ret = 0;

	*ret_fd = path ? regular_file_open(path, &st) : -1;
	if (!path)
		ret = pt_fail_no_memory(e, NULL);
	else if (*ret_fd < 0 && errno != ENOEXEC)
		ret = pt_fail_errno(e, "cannot read %s", path);
	else if (*ret_fd < 0 || st.st_size <= 0)
		ret = pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s is no file with code in it", path);
	else if (image->address + (uint64_t)st.st_size < image->address)
		ret = pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s does not fit in after 0x%llx", path,
			      (unsigned long long)image->address);
	if (ret && *ret_fd >= 0)
		close(*ret_fd);
	*ret_size = (uint64_t)st.st_size;
	free(path);
	return ret;
}

static int add_image(struct guest_kernels *g, size_t of, const char *path, struct pt_error *e)
{
	const char *colon = strrchr(path, ':');
	struct guest_image image = {.of = of, .path = path};
	uint64_t size;
	char *end = NULL;
	int fd;

	errno = 0;
	if (colon && colon != path && colon[1] && !strchr(" +-", colon[1]))
		image.address = strtoull(colon + 1, &end, 16);
	if (!end || *end || errno)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--guest-image %s: expected [PID:]FILE:ADDRESS, which is hexadecimal", path);
	image.path_bytes = (size_t)(colon - path);
	if (g->image_count == GUEST_IMAGES_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "more than %d images of guests",
			       GUEST_IMAGES_MAX);
	if (open_image(&image, &fd, &size, e))
		return -1;
	close(fd);
	g->images[g->image_count++] = image;
	return 0;
}

static int readable(const char *path, int flags, struct pt_error *e)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		return pt_fail_errno(e, "cannot read %s", path);
	close(fd);
	return 0;
}

int guest_kernels_add(struct guest_kernels *g, enum guest_kernel_file which, const char *argument,
		      struct pt_error *e)
{
	struct guest_kernel *one = NULL;
	const char *path;
	int32_t pid;

	if (split(argument, &pid, &path, e))
		return -1;
	if (which != GUEST_IMAGE && readable(path, which == GUEST_ROOT ? O_PATH | O_DIRECTORY : O_RDONLY, e))
		return -1;
	for (size_t i = 0; i < g->count; i++)
		if (g->at[i].pid == pid)
			one = &g->at[i];
	if (!one && g->count == GUEST_KERNELS_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "kernels of more than %d guests",
			       GUEST_KERNELS_MAX);
	if (!one) {
		one = &g->at[g->count++];
		*one = (struct guest_kernel){.pid = pid};
	}
	if (which == GUEST_IMAGE)
		return add_image(g, (size_t)(one - g->at), path, e);
	if (which == GUEST_ROOT)
		one->root = path;
	else if (which == GUEST_KCORE)
		one->kcore = path;
	else
		one->kallsyms = path;
	return 0;
}

int guest_kernels_resolve(struct guest_kernels *g, int32_t pid, struct pt_error *e)
{
	struct guest_kernel *unsaid = NULL;

	for (size_t i = 0; i < g->count; i++)
		if (!g->at[i].pid)
			unsaid = &g->at[i];
	for (size_t i = 0; unsaid && i < g->count; i++)
		if (g->at[i].pid == pid)
			return pt_fail(
			    e, PT_ERR_USAGE, PT_NO_OFFSET,
			    "the kernel of VM %d is given with its pid and without: say the pid of each",
			    pid);
	if (unsaid)
		unsaid->pid = pid;
	return 0;
}

static int put(const struct guest_kernel *k, struct ptc_writer *w, struct pt_error *e)
{
	struct kernel_output to = {.w = w, .machine_pid = k->pid};
	struct kernel_symbols *symbols;
	int ret = 0;

	if (k->kcore) {
		ret = kernel_put_kcore(k->kcore, NULL, &to, e);
		if (ret == 0 && !to.written.count)
			ret = pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s has no code of a kernel",
				      k->kcore);
		kernel_ranges_deinit(&to.written);
	}
	if (ret == 0 && k->kallsyms) {
		symbols = kernel_symbols_read(k->kallsyms, e);
		ret = symbols ? kernel_symbols_put(symbols, w, k->pid, e) : -1;
		kernel_symbols_destroy(symbols);
	}
	return ret;
}

static int put_image(const struct guest_image *from, int32_t pid, struct ptc_writer *w, struct pt_error *e)
{
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .machine_pid = pid,
				  .pid = PTC_ANY_PID,
				  .name = from->path,
				  .name_bytes = (uint32_t)from->path_bytes,
				  .vaddr = from->address};
	uint8_t *buffer = malloc(PIECE_BYTES);
	uint64_t size = 0, done = 0;
	ssize_t got = 1;
	int fd = -1, ret;

	ret = buffer ? open_image(from, &fd, &size, e) : pt_fail_no_memory(e, NULL);
	while (ret == 0 && done < size && got > 0) {
		got = file_read_at(fd, buffer, size - done < PIECE_BYTES ? size - done : PIECE_BYTES, done);
		if (got < 0)
			ret = pt_fail_errno(e, "cannot read %.*s", (int)from->path_bytes, from->path);
		image.bytes = buffer;
		image.size = (uint64_t)got;
		if (got > 0)
			ret = ptc_put_image(w, &image, e);
		image.vaddr += (uint64_t)got;
		done += (uint64_t)got;
	}
	if (fd >= 0)
		close(fd);
	free(buffer);
	return ret;
}

int guest_kernels_put(const struct guest_kernels *g, struct ptc_writer *w, const char **ret_empty,
		      struct pt_error *e)
{
	*ret_empty = NULL;
	for (size_t i = 0; i < g->count; i++) {
		const struct guest_kernel *k = &g->at[i];
		bool any = true;

		if (put(k, w, e))
			return -1;
		if (k->root && !k->kcore && !k->kallsyms &&
		    guest_root_put_kernel(k->root, k->pid, w, &any, e))
			return -1;
		if (!any)
			*ret_empty = k->root;
	}
	for (size_t i = 0; i < g->image_count; i++)
		if (put_image(&g->images[i], g->at[g->images[i].of].pid, w, e))
			return -1;
	return 0;
}
