/* proc.c - see proc.h. */
#include "capture/record/proc.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_PID_NAMESPACE_INODE 0xeffffffc
#define ONLINE			  "/sys/devices/system/cpu/online"

int hw_proc_cpus(struct hw_list *ret, struct pt_error *e)
{
	char line[4096] = "0";
	FILE *f = fopen(ONLINE, "re");

	if (f && !fgets(line, sizeof line, f))
		strcpy(line, "0");
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	return hw_list_parse(ret, line, ONLINE, e);
}

int hw_proc_threads(struct hw_list *l, int32_t pid, struct pt_error *e)
{
	char path[64] = "/proc";
	struct dirent *d;
	int ret = 0;
	DIR *dir;

	if (pid)
		snprintf(path, sizeof path, "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "there is no process %d", pid);
	while (ret == 0 && (d = readdir(dir))) {
		char *end;
		long n = strtol(d->d_name, &end, 10);

		if (*end == 0 && n > 0)
			ret = hw_list_add(l, (int32_t)n, e);
	}
	closedir(dir);
	hw_list_sort(l);
	return ret;
}

static int add_children(struct hw_list *l, int32_t pid, int32_t tid, struct pt_error *e)
{
	char path[64];
	int ret = 0;
	int32_t child;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, tid);
	f = fopen(path, "re");
	while (f && ret == 0 && fscanf(f, "%d", &child) == 1)
		ret = hw_list_add(l, child, e);
	if (f)
		fclose(f);
	return ret;
}

int hw_proc_children(struct hw_list *l, int32_t pid, struct pt_error *e)
{
	struct hw_list threads = {0};
	struct pt_error why = {0};
	int ret = 0;

	if (hw_proc_threads(&threads, pid, &why) && why.kind == PT_ERR_NO_MEMORY) {
		*e = why;
		ret = -1;
	}
	for (size_t i = 0; ret == 0 && i < threads.count; i++)
		ret = add_children(l, pid, threads.at[i], e);
	hw_list_deinit(&threads);
	hw_list_sort(l);
	return ret;
}

/* The number of a user by name, in /etc/passwd, or by number. False: there is none of that name. */
static bool uid_of(const char *user, uid_t *ret)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd entry = {0}, *p = NULL;
	char text[4096]; /* of one line; a longer one ends the search */
	unsigned long number;
	char *end;

	while (f && fgetpwent_r(f, &entry, text, sizeof text, &p) == 0 && strcmp(p->pw_name, user) != 0)
		p = NULL;
	if (p)
		*ret = p->pw_uid;
	if (f)
		fclose(f);
	if (p)
		return true;
	number = strtoul(user, &end, 10);
	*ret = (uid_t)number;
	return user[0] >= '0' && user[0] <= '9' && !*end && number < UINT32_MAX;
}

int hw_proc_of_user(struct hw_list *l, const char *user, struct pt_error *e)
{
	struct hw_list all = {0};
	size_t before = l->count;
	char path[64];
	struct stat st;
	uid_t uid;
	int ret;

	if (!uid_of(user, &uid))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "there is no user '%s'", user);
	ret = hw_proc_threads(&all, 0, e);
	for (size_t i = 0; ret == 0 && i < all.count; i++) {
		snprintf(path, sizeof path, "/proc/%d", all.at[i]);
		if (all.at[i] != getpid() && stat(path, &st) == 0 && st.st_uid == uid &&
		    !hw_list_has(l, all.at[i]))
			ret = hw_list_add(l, all.at[i], e);
	}
	hw_list_deinit(&all);
	if (ret == 0 && l->count == before)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "user %s has no processes", user);
	return ret;
}

int32_t hw_proc_of_thread(int32_t tid)
{
	char path[64], line[256];
	int32_t pid = -1;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "Tgid: %d", &pid) == 1)
			break;
	if (f)
		fclose(f);
	return pid;
}

/* Whether nothing is left of a thread but its exit status. */
static bool is_zombie(const char *path)
{
	char line[256], *name_end;
	bool zombie = true;
	FILE *f = fopen(path, "re");

	/* "TID (NAME) STATE ...": a name may have parentheses, what follows it has none. */
	if (f && fgets(line, sizeof line, f) && (name_end = strrchr(line, ')')) && name_end[1] == ' ')
		zombie = name_end[2] == 'Z' || name_end[2] == 'X';
	if (f)
		fclose(f);
	return zombie;
}

bool hw_proc_has_ended(int32_t tid)
{
	struct hw_list threads = {0};
	struct pt_error why = {0};
	bool ended = true;
	char path[64];

	if (hw_proc_threads(&threads, tid, &why) && why.kind == PT_ERR_NO_MEMORY)
		ended = false;
	for (size_t i = 0; ended && i < threads.count; i++) {
		snprintf(path, sizeof path, "/proc/%d/task/%d/stat", tid, threads.at[i]);
		ended = is_zombie(path);
	}
	hw_list_deinit(&threads);
	return ended;
}

/* /proc/TID/exe has no target when the thread has no memory: it has ended, or is the kernel's. */
static bool has_memory(int32_t tid)
{
	char path[32], target[1];

	snprintf(path, sizeof path, "/proc/%d/exe", tid);
	return readlink(path, target, sizeof target) >= 0 || errno != ENOENT;
}

int32_t hw_proc_with_memory(int32_t pid)
{
	struct hw_list threads = {0};
	struct pt_error why = {0};
	int32_t ret = pid;

	if (has_memory(pid))
		return pid;
	if (hw_proc_threads(&threads, pid, &why) == 0)
		for (size_t i = 0; i < threads.count && ret == pid; i++)
			if (threads.at[i] != pid && has_memory(threads.at[i]))
				ret = threads.at[i];
	hw_list_deinit(&threads);
	return ret;
}

bool hw_proc_in_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != FIRST_PID_NAMESPACE_INODE;
}
