/* jit_process.c - see jit_process.h. */
#include "capture/record/jit_process.h"
#include "capture/record/jit.h"
#include "capture/record/proc.h"
#include "schema/array.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mapping {
	uint64_t start, end;
	bool fixed;
};

struct mappings {
	struct mapping *at;
	size_t count, room;
};

bool jit_is_anonymous(const char *name)
{
	return !name[0] || !strcmp(name, "//anon") || !strncmp(name, "[anon", 5) || !strcmp(name, "[heap]") ||
	       !strncmp(name, "[stack", 6);
}

bool jit_is_memory_file(const char *name)
{
	static const char *const heads[] = {"/memfd:", "/dev/zero", "/SYSV", "/dev/shm/", "anon_inode:"};

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		if (!strncmp(name, heads[i], strlen(heads[i])))
			return true;
	return false;
}

/* A line of /proc/PID/maps: START-END PERMS OFFSET DEV INODE NAME. 1: it is no such memory. */
static int parse_line(char *line, struct mapping *ret)
{
	char perms[8];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*x %*s %*u %n", &ret->start, &ret->end, perms, &at) <
		3 ||
	    !at || perms[2] != 'x')
		return 1;
	line[strcspn(line, "\n")] = 0;
	if (!jit_is_anonymous(line + at) && !jit_is_memory_file(line + at))
		return 1;
	ret->fixed = perms[1] != 'w' && perms[3] == 'p' && jit_is_anonymous(line + at);
	return 0;
}

/* 1: the process has ended. */
static int read_mappings(struct mappings *ret, int32_t pid, struct pt_error *e)
{
	char path[64], *line = NULL;
	struct mapping one;
	size_t room = 0;
	int r = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return 1;
	while (r == 0 && getline(&line, &room, f) > 0) {
		if (parse_line(line, &one))
			continue;
		r = pt_array_grow(&ret->at, ret->count, &ret->room, e);
		if (r == 0)
			ret->at[ret->count++] = one;
	}
	free(line);
	fclose(f);
	return r ? -1 : 0;
}

static uint64_t all_bytes(const struct mappings *m)
{
	uint64_t n = 0;

	for (size_t i = 0; i < m->count; i++)
		n += m->at[i].end - m->at[i].start;
	return n < JIT_BYTES_MAX ? n : JIT_BYTES_MAX;
}

/* Reads what can be read; pages that cannot are left out. */
static int read_pages(struct jit_reading *r, int memory, const struct mappings *m, struct pt_error *e)
{
	uint64_t room = all_bytes(m);
	uint8_t *to;

	r->bytes = to = malloc(room ? room : 1);
	if (!r->bytes)
		return pt_fail_no_memory(e, "code that is made at run time");
	for (size_t i = 0; i < m->count; i++) {
		const struct mapping *one = &m->at[i];
		uint64_t at = one->start;

		while (at < one->end && room) {
			size_t wanted = one->end - at < room ? one->end - at : room;
			ssize_t got = pread(memory, to, wanted, (off_t)at);
			size_t whole = got > 0 ? (size_t)got & ~(JIT_PAGE - 1) : 0;

			for (size_t k = 0; k < whole; k += JIT_PAGE) {
				if (pt_array_grow(&r->pages, r->count, &r->room, e))
					return -1;
				r->pages[r->count++] = (struct jit_page){at + k, one->fixed, to + k};
			}
			to += whole;
			room -= whole;
			at += whole ? whole : JIT_PAGE;
		}
	}
	return 0;
}

static bool are_same(const struct mappings *a, const struct mappings *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (a->at[i].start != b->at[i].start || a->at[i].end != b->at[i].end ||
		    a->at[i].fixed != b->at[i].fixed)
			return false;
	return true;
}

int jit_reading_create(struct jit_reading **ret, int32_t pid, uint64_t (*now_ns)(const void *arg),
		       const void *arg, struct pt_error *e)
{
	struct jit_reading *r = calloc(1, sizeof *r);
	struct mappings before = {0}, after = {0};
	char path[64];
	int got, memory;

	*ret = NULL;
	pid = hw_proc_with_memory(pid);
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (!r || memory < 0) {
		free(r);
		if (memory >= 0)
			close(memory);
		return r || memory < 0 ? 0 : pt_fail_no_memory(e, "code that is made at run time");
	}
	r->start_ns = now_ns(arg);
	got = read_mappings(&before, pid, e);
	if (got == 0)
		got = read_pages(r, memory, &before, e);
	if (got == 0)
		got = read_mappings(&after, pid, e);
	r->end_ns = now_ns(arg);
	r->steady = are_same(&before, &after);
	free(before.at);
	free(after.at);
	close(memory);
	if (got)
		jit_reading_destroy(r);
	else
		*ret = r;
	return got < 0 ? -1 : 0;
}

void jit_reading_destroy(struct jit_reading *r)
{
	if (!r)
		return;
	free(r->pages);
	free(r->bytes);
	free(r);
}
