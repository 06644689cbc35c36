/* cgroup_records.c - see cgroup_records.h. */
#include "capture/record/cgroup_records.h"
#include "capture/record/cgroup.h"
#include "capture/record/sample_id.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The hierarchy, and where its records go. */
struct walk {
	char path[PATH_MAX]; /* of the group at hand */
	size_t mount;	     /* so many bytes of it are the mount's */
	struct hw_bytes *to;
	const struct hw_record_origin *origin;
	struct pt_error *e;
};

/* The number that PERF_SAMPLE_CGROUP has of it. */
static bool number_of(const char *path, uint64_t *ret)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + sizeof *ret];
	} u = {.handle.handle_bytes = sizeof *ret};
	int mount;

	if (name_to_handle_at(AT_FDCWD, path, &u.handle, &mount, 0) || u.handle.handle_bytes != sizeof *ret)
		return false;
	memcpy(ret, u.room + sizeof(struct file_handle), sizeof *ret);
	return true;
}

/* {u64 id; path, with its NUL in whole 8-byte words} after the header. */
static int add_record(struct walk *w)
{
	static const char zeros[8];
	const char *path = w->path[w->mount] ? w->path + w->mount : "/";
	size_t n = strlen(path), pad = 8 - n % 8;
	struct hw_sample_id id = {.time_ns = w->origin->time_ns, .id = w->origin->id};
	struct perf_event_header h = {.type = PERF_RECORD_CGROUP};
	uint64_t number;

	if (!number_of(w->path, &number))
		return 0;
	h.size = (uint16_t)(sizeof h + sizeof number + n + pad + sizeof id);
	return hw_bytes_add(w->to, &h, sizeof h, w->e) || hw_bytes_add(w->to, &number, sizeof number, w->e) ||
		       hw_bytes_add(w->to, path, n, w->e) || hw_bytes_add(w->to, zeros, pad, w->e) ||
		       hw_bytes_add(w->to, &id, sizeof id, w->e)
		   ? -1
		   : 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as groups are in one another, and a path is long */
static int add_with_all_in_it(struct walk *w, size_t length)
{
	const struct dirent *d;
	int ret = add_record(w);
	DIR *folder = ret ? NULL : opendir(w->path);

	while (folder && ret == 0 && (d = readdir(folder))) {
		size_t n = strlen(d->d_name);

		if (d->d_type != DT_DIR || d->d_name[0] == '.' || length + n + 2 > sizeof w->path)
			continue;
		snprintf(w->path + length, sizeof w->path - length, "/%s", d->d_name);
		ret = add_with_all_in_it(w, length + n + 1);
		w->path[length] = 0;
	}
	if (folder)
		closedir(folder);
	return ret;
}

int hw_cgroup_records(struct hw_bytes *to, const char *mounts, const struct hw_record_origin *origin,
		      struct pt_error *e)
{
	struct walk w = {.to = to, .origin = origin, .e = e};

	if (hw_cgroup_mount(mounts, w.path, sizeof w.path, "--all-cgroups", e))
		return -1;
	w.mount = strlen(w.path);
	return add_with_all_in_it(&w, w.mount);
}
