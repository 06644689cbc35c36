/* test_cgroup.c - control groups by name (capture/record/cgroup.h): names, and where what is mounted. */
#include "capture/record/cgroup.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_cgroup.XXXXXX";

/* Whether the group opens, and is that folder, with these mounts. */
static bool opens(const char *mounts, const char *name, const char *where)
{
	char path[200], want[200];
	struct pt_error e = {0};
	struct stat a = {0}, b = {0};
	FILE *f;
	int fd;

	snprintf(path, sizeof path, "%s/mounts", folder);
	f = fopen(path, "w");
	if (!f)
		return false;
	for (const char *p = mounts; *p; p++)
		if (*p == '@')
			fputs(folder, f);
		else
			fputc(*p, f);
	fclose(f);
	fd = hw_cgroup_open(path, name, &e);
	snprintf(want, sizeof want, "%s/%s", folder, where ? where : "");
	if (fd < 0)
		return !where && (e.kind == PT_ERR_REFUSED || e.kind == PT_ERR_IO);
	check(fstat(fd, &a) == 0 && stat(want, &b) == 0, "the folder is there");
	close(fd);
	return where && a.st_ino == b.st_ino;
}

static bool one(const char *text, int bytes)
{
	struct pt_error e;
	int n = -1;

	return hw_cgroup_name(text, &n, &e) ? bytes < 0 : n == bytes;
}

int main(void)
{
	static const char *const folders[] = {"v1", "v1/a", "v2", "v2/a", "v2/a/b"};
	char path[200];

	check(one("a", 1) && one("a/b.service", 11) && one("a,a", 1), "one name, also said twice");
	check(one("", -1) && one("a,b", -1) && one("a,", -1) && one(",a", -1) && one("a,ab", -1) &&
		  one("ab,a", -1),
	      "several, or none");
	check(mkdtemp(folder) != NULL, "a folder");
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
		check(mkdir(path, 0700) == 0, "folders");
	}
	check(opens("x / ext4 rw 0 0\nc @/v2 cgroup2 rw 0 0\n", "a/b", "v2/a/b"), "cgroup v2");
	check(opens("x / ext4 rw 0 0\nc @/v2 cgroup2 rw 0 0\n", "/a", "v2/a"), "with a slash");
	check(opens("c @/v2 cgroup2 rw 0 0\nd @/v1 cgroup rw,perf_event 0 0\n", "a", "v1/a"),
	      "v1's perf_event before v2");
	check(opens("d @/v1 cgroup rw,cpu 0 0\nc @/v2 cgroup2 rw 0 0\n", "a", "v2/a"),
	      "another controller's is not it");
	check(opens("d @/v1 cgroup rw,cpu 0 0\n", "a", NULL), "none is mounted");
	check(opens("c @/v2 cgroup2 rw 0 0\n", "none", NULL), "no such group");
	for (size_t i = sizeof folders / sizeof *folders; i-- > 0;) {
		snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
		rmdir(path);
	}
	snprintf(path, sizeof path, "%s/mounts", folder);
	unlink(path);
	rmdir(folder);
	return sum_up();
}
