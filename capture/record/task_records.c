/* task_records.c - see task_records.h. Record layouts: perf_event_open(2). */
#include "capture/record/task_records.h"
#include "capture/record/proc.h"
#include "capture/record/sample_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct comm_body {
	int32_t pid, tid;
	char comm[16];
};

struct mmap2_body {
	int32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, generation;
	uint32_t prot, flags;
	char name[4104]; /* as long as it is, with its NUL, in whole 8-byte words */
};

/* Where the records go, and what they have in common. */
struct sink {
	struct hw_bytes *to;
	const struct hw_record_origin *origin;
	struct pt_error *e;
};

/* A record; its body begins with pid and tid. */
static int add(const struct sink *s, uint32_t type, const void *body, size_t bytes)
{
	struct hw_sample_id id = {.time_ns = s->origin->time_ns, .id = s->origin->id};
	struct perf_event_header h = {type, PERF_RECORD_MISC_USER, (uint16_t)(sizeof h + bytes + sizeof id)};

	memcpy(&id.pid, body, sizeof id.pid);
	memcpy(&id.tid, (const char *)body + sizeof id.pid, sizeof id.tid);
	return hw_bytes_add(s->to, &h, sizeof h, s->e) || hw_bytes_add(s->to, body, bytes, s->e) ||
		       hw_bytes_add(s->to, &id, sizeof id, s->e)
		   ? -1
		   : 0;
}

static int add_comm(const struct sink *s, int32_t pid, int32_t tid)
{
	struct comm_body body = {pid, tid, ""};
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(body.comm, sizeof body.comm, f))
		body.comm[strcspn(body.comm, "\n")] = 0;
	fclose(f);
	return add(s, PERF_RECORD_COMM, &body, sizeof body);
}

/* 1: the process has ended. */
static int add_comms(const struct sink *s, int32_t pid)
{
	struct hw_list threads = {0};
	struct pt_error why = {0};
	int ret = 0;

	if (hw_proc_threads(&threads, pid, &why)) {
		hw_list_deinit(&threads);
		if (why.kind != PT_ERR_NO_MEMORY)
			return 1;
		*s->e = why;
		return -1;
	}
	for (size_t i = 0; i < threads.count && ret == 0; i++)
		ret = add_comm(s, pid, threads.at[i]);
	hw_list_deinit(&threads);
	return ret;
}

/* A line of /proc/PID/maps; one that is not executable adds nothing. */
static int add_mapping(const struct sink *s, int32_t pid, char *line)
{
	struct mmap2_body body = {.pid = pid, .tid = pid, .flags = MAP_PRIVATE};
	const char *name;
	char perms[8];
	uint64_t end;
	size_t n;
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &body.addr, &end,
		   perms, &body.pgoff, &body.maj, &body.min, &body.ino, &at) < 7 ||
	    perms[2] != 'x')
		return 0;
	line[strcspn(line, "\n")] = 0;
	name = line[at] ? line + at : "//anon";
	n = strnlen(name, 4095);
	memcpy(body.name, name, n);
	body.len = end - body.addr;
	body.prot = PROT_EXEC | (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0);
	return add(s, PERF_RECORD_MMAP2, &body, offsetof(struct mmap2_body, name) + ((n + 8) & ~(size_t)7));
}

static int add_mappings(const struct sink *s, int32_t pid)
{
	char path[64], *line = NULL;
	size_t room = 0;
	int ret = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/maps", hw_proc_with_memory(pid));
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (ret == 0 && getline(&line, &room, f) > 0)
		ret = add_mapping(s, pid, line);
	free(line);
	fclose(f);
	return ret;
}

int hw_task_records(struct hw_bytes *to, int32_t pid, const struct hw_record_origin *origin,
		    struct pt_error *e)
{
	struct sink s = {to, origin, e};
	int ret = add_comms(&s, pid);

	if (ret)
		return ret < 0 ? -1 : 0;
	return add_mappings(&s, pid);
}

int hw_task_names(struct hw_bytes *to, const struct hw_list *except, const struct hw_record_origin *origin,
		  struct pt_error *e)
{
	struct sink s = {to, origin, e};
	struct hw_list all = {0};
	int ret = hw_proc_threads(&all, 0, e);

	for (size_t i = 0; i < all.count && ret >= 0; i++)
		if (!hw_list_has(except, all.at[i]))
			ret = add_comms(&s, all.at[i]);
	hw_list_deinit(&all);
	return ret < 0 ? -1 : 0;
}
