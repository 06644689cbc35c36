/* guest_kernel.c - see guest_kernel.h. */
#include "capture/guest_kernel.h"
#include "capture/guest_root.h"
#include "capture/import_kernel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int guest_kernels_add(struct guest_kernels *g, enum guest_kernel_file which, const char *argument,
		      struct pt_error *e)
{
	struct guest_kernel *one = NULL;
	const char *path;
	int32_t pid;
	int fd;

	if (split(argument, &pid, &path, e))
		return -1;
	fd = open(path, which == GUEST_ROOT ? O_PATH | O_DIRECTORY | O_CLOEXEC : O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return pt_fail_errno(e, "cannot read %s", path);
	close(fd);
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
	struct kernel_ranges written = {0};
	struct kernel_symbols *symbols;
	int ret = 0;

	if (k->kcore) {
		ret = kernel_put_kcore(k->kcore, NULL, w, k->pid, &written, e);
		if (ret == 0 && !written.count)
			ret = pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s has no code of a kernel",
				      k->kcore);
		kernel_ranges_deinit(&written);
	}
	if (ret == 0 && k->kallsyms) {
		symbols = kernel_symbols_read(k->kallsyms, e);
		ret = symbols ? kernel_symbols_put(symbols, w, k->pid, e) : -1;
		kernel_symbols_destroy(symbols);
	}
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
	return 0;
}
