/* proc.c - see proc.h. Record layouts: struct perf_event_mmap_page's neighbours in the kernel's perf_event.h. */
#include "capture/record/proc.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int add(struct hw_bytes *to, uint32_t type, const void *body, size_t bytes, int32_t pid, int32_t tid,
	       uint64_t time_ns, uint64_t id, struct pt_error *e)
{
	struct {
		int32_t pid, tid;
		uint64_t time;
		uint32_t cpu, zero;
		uint64_t id;
	} trailer = {pid, tid, time_ns, 0, 0, id};
	struct perf_event_header h = {type, PERF_RECORD_MISC_USER,
				      (uint16_t)(sizeof h + bytes + sizeof trailer)};

	return hw_bytes_add(to, &h, sizeof h, e) || hw_bytes_add(to, body, bytes, e) ||
		       hw_bytes_add(to, &trailer, sizeof trailer, e)
		   ? -1
		   : 0;
}

static int comm(struct hw_bytes *to, int32_t pid, int32_t tid, uint64_t time_ns, uint64_t id,
		struct pt_error *e)
{
	struct {
		int32_t pid, tid;
		char comm[16];
	} r = {pid, tid, ""};
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(r.comm, sizeof r.comm, f))
		r.comm[strcspn(r.comm, "\n")] = 0;
	fclose(f);
	return add(to, PERF_RECORD_COMM, &r, sizeof r, pid, tid, time_ns, id, e);
}

static int mappings(struct hw_bytes *to, int32_t pid, uint64_t time_ns, uint64_t id, struct hw_images *images,
		    struct pt_error *e)
{
	char path[64], *line = NULL;
	size_t room = 0;
	int ret = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (ret == 0 && getline(&line, &room, f) > 0) {
		struct {
			int32_t pid, tid;
			uint64_t addr, len, pgoff;
			uint32_t maj, min;
			uint64_t ino, generation;
			uint32_t prot, flags;
			char name[4104];
		} r = {.pid = pid, .tid = pid, .flags = MAP_PRIVATE};
		const char *name;
		uint64_t end;
		char perms[8];
		size_t n;
		int at = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &r.addr,
			   &end, perms, &r.pgoff, &r.maj, &r.min, &r.ino, &at) < 7 ||
		    perms[2] != 'x')
			continue;
		line[strcspn(line, "\n")] = 0;
		name = line[at] ? line + at : "//anon";
		n = strnlen(name, 4095);
		memcpy(r.name, name, n);
		r.len = end - r.addr;
		r.prot = PROT_EXEC | (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0);
		if (images && hw_images_mapping(images, pid, r.name, r.addr, r.len, r.ino, e))
			ret = -1;
		else
			ret = add(to, PERF_RECORD_MMAP2, &r,
				  offsetof(__typeof__(r), name) + ((n + 8) & ~(size_t)7), pid, pid, time_ns,
				  id, e);
	}
	free(line);
	fclose(f);
	return ret;
}

/* 1: it has gone. */
static int names(struct hw_bytes *to, int32_t pid, uint64_t time_ns, uint64_t id, struct pt_error *e)
{
	struct hw_list threads = {0};
	struct pt_error why = {0};
	int ret = 0;

	if (hw_threads(&threads, pid, &why)) {
		free(threads.at);
		if (why.kind != PT_ERR_NO_MEMORY)
			return 1;
		*e = why;
		return -1;
	}
	for (size_t i = 0; i < threads.count && ret == 0; i++)
		ret = comm(to, pid, threads.at[i], time_ns, id, e);
	free(threads.at);
	return ret;
}

int hw_proc_records(struct hw_bytes *to, int32_t pid, uint64_t time_ns, uint64_t id, struct hw_images *images,
		    struct pt_error *e)
{
	int ret = names(to, pid, time_ns, id, e);

	return ret ? (ret < 0 ? -1 : 0) : mappings(to, pid, time_ns, id, images, e);
}

int hw_proc_names(struct hw_bytes *to, const struct hw_list *but, uint64_t time_ns, uint64_t id,
		  struct pt_error *e)
{
	struct hw_list all = {0};
	int ret = hw_threads(&all, 0, e);

	for (size_t i = 0; i < all.count && ret >= 0; i++)
		if (!hw_list_has(but, all.at[i]))
			ret = names(to, all.at[i], time_ns, id, e);
	free(all.at);
	return ret < 0 ? -1 : 0;
}

/* ---- Lists ------------------------------------------------------------------------------------------ */

int hw_list_add(struct hw_list *l, int32_t v, struct pt_error *e)
{
	if ((l->count & (l->count - 1)) == 0) {
		int32_t *grown = realloc(l->at, (l->count ? 2 * l->count : 1) * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, "a list");
		l->at = grown;
	}
	l->at[l->count++] = v;
	return 0;
}

bool hw_list_has(const struct hw_list *l, int32_t v)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->at[i] == v)
			return true;
	return false;
}

int hw_list_parse(struct hw_list *ret, const char *text, const char *what, struct pt_error *e)
{
	const char *p = text;

	while (*p) {
		char *end;
		long first = strtol(p, &end, 10), last = first;

		if (end == p || first < 0)
			break;
		p = end;
		if (*p == '-') {
			last = strtol(p + 1, &end, 10);
			if (end == p + 1)
				break;
			p = end;
		}
		if (last < first || last > INT32_MAX || last - first > 65536)
			break;
		for (long v = first; v <= last; v++)
			if (!hw_list_has(ret, (int32_t)v) && hw_list_add(ret, (int32_t)v, e))
				return -1;
		if (*p == 0)
			return 0;
		if (*p++ != ',')
			break;
	}
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s %s: not a list like 1,4-7", what, text);
}

int hw_online(struct hw_list *ret, struct pt_error *e)
{
	char line[4096] = "0";
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");

	if (f && !fgets(line, sizeof line, f))
		strcpy(line, "0");
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	return hw_list_parse(ret, line, "/sys/devices/system/cpu/online", e);
}

int hw_threads(struct hw_list *ret, int32_t pid, struct pt_error *e)
{
	char path[64] = "/proc";
	struct dirent *d;
	DIR *dir;

	if (pid)
		snprintf(path, sizeof path, "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "there is no process %d", pid);
	while ((d = readdir(dir))) {
		char *end;
		long tid = strtol(d->d_name, &end, 10);

		if (*end || tid <= 0 || hw_list_has(ret, (int32_t)tid))
			continue;
		if (hw_list_add(ret, (int32_t)tid, e)) {
			closedir(dir);
			return -1;
		}
	}
	closedir(dir);
	return 0;
}

int32_t hw_process_of(int32_t tid)
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
