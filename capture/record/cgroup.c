/* cgroup.c - see cgroup.h. */
#include "capture/record/cgroup.h"

#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>

int hw_cgroup_mount(const char *mounts, char *ret, size_t room, const char *option, struct pt_error *e)
{
	FILE *f = setmntent(mounts, "re");
	const struct mntent *m;
	int found = -1;

	while (f && found < 1 && (m = getmntent(f))) {
		int v1 = !strcmp(m->mnt_type, "cgroup") && hasmntopt(m, "perf_event");

		if (v1 || (found < 0 && !strcmp(m->mnt_type, "cgroup2"))) {
			snprintf(ret, room, "%s", m->mnt_dir);
			found = v1;
		}
	}
	if (f)
		endmntent(f);
	if (found >= 0)
		return 0;
	return pt_fail(
	    e, PT_ERR_REFUSED, PT_NO_OFFSET,
	    "%s: no control groups are mounted here that perf events belong to (cgroup2, or cgroup "
	    "with perf_event)",
	    option);
}

int hw_cgroup_open(const char *mounts, const char *name, struct pt_error *e)
{
	char where[2048], path[4200];
	int fd;

	if (hw_cgroup_mount(mounts, where, sizeof where, "--cgroup", e))
		return -1;
	snprintf(path, sizeof path, "%s/%.2000s", where, name + strspn(name, "/"));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return pt_fail_errno(e, "--cgroup %s: cannot open %s", name, path);
	return fd;
}

int hw_cgroup_name(const char *text, int *ret_bytes, struct pt_error *e)
{
	size_t n = strcspn(text, ",");

	for (const char *at = text; n && *at; at += n) {
		at += *at == ',';
		if (strcspn(at, ",") != n || strncmp(at, text, n) != 0)
			n = 0;
	}
	if (!n || n > 2000)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--cgroup %s: one name: a CPU traces for one event at a time, so several "
			       "groups are traced by the one "
			       "around them",
			       text);
	*ret_bytes = (int)n;
	return 0;
}
