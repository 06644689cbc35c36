/* trace_dat.c - see trace_dat.h. */
#include "capture/tracecmd/trace_dat.h"
#include "capture/tracecmd/ring.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENT_LEAST 8 /* common_type, _flags, _preempt_count, _pid */

/* A CPU of a buffer. */
struct cpu {
	struct dat_ring ring;
	struct dat_raw head; /* its oldest event that was not delivered, if has_head */
	bool has_head;
};

struct trace_dat {
	char *path;
	int fd;
	struct trace_dat_head head;
	struct dat_library *library;
	struct cpu *cpus; /* of all buffers, once events are read */
	size_t cpu_count;
	struct cpu *now; /* its event was delivered last; NULL: none */
};

bool trace_dat_is(const char *path)
{
	char head[10];
	struct stat st;
	/* A pipe has its bytes once: who asks what they are has them. */
	int fd = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool is = fd >= 0 && read(fd, head, sizeof head) == sizeof head &&
		  memcmp(head, TRACE_DAT_MAGIC, sizeof head) == 0;

	if (fd >= 0)
		close(fd);
	return is;
}

static int open_all(struct trace_dat *t, const char *path, struct pt_error *e)
{
	t->path = strdup(path);
	if (!t->path)
		return pt_fail_no_memory(e, NULL);
	t->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0)
		return pt_fail_errno(e, "cannot open %s", path);
	t->library = dat_library_open(path, e);
	return t->library ? trace_dat_head_read(&t->head, path, e) : -1;
}

struct trace_dat *trace_dat_open(const char *path, struct pt_error *e)
{
	struct trace_dat *t = calloc(1, sizeof *t);

	if (!t) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	t->fd = -1;
	if (open_all(t, path, e)) {
		trace_dat_close(t);
		return NULL;
	}
	return t;
}

void trace_dat_close(struct trace_dat *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->cpu_count; i++)
		dat_ring_close(&t->cpus[i].ring);
	free(t->cpus);
	dat_library_close(t->library);
	trace_dat_head_deinit(&t->head);
	if (t->fd >= 0)
		close(t->fd);
	free(t->path);
	free(t);
}

const struct trace_dat_head *trace_dat_head(const struct trace_dat *t)
{
	return &t->head;
}

const struct dat_library *trace_dat_library(const struct trace_dat *t)
{
	return t->library;
}

enum trace_dat_clock trace_dat_clock(const struct trace_dat *t)
{
	const char *c = trace_dat_clock_name(t);

	if (!strcmp(c, "x86-tsc") || !strcmp(c, "tsc2nsec"))
		return TRACE_DAT_TSC;
	if (!strcmp(c, "local") || !strcmp(c, "global") || !strcmp(c, "perf"))
		return TRACE_DAT_PERF;
	return TRACE_DAT_OTHER;
}

const char *trace_dat_clock_name(const struct trace_dat *t)
{
	return t->head.clock[0] ? t->head.clock : "local"; /* ftrace's own choice */
}

const struct trace_dat_shift *trace_dat_shift(const struct trace_dat *t, uint32_t cpu)
{
	return cpu < t->head.shift_count && t->head.shifts[cpu].known ? &t->head.shifts[cpu] : NULL;
}

int trace_dat_guest_cpus(const struct trace_dat *t, const struct trace_dat *guest, const char **ret_name,
			 const int **ret_tids)
{
	return dat_library_guest_cpus(t->library, guest->library, ret_name, ret_tids);
}

bool trace_dat_number(const struct trace_dat *t, const struct trace_dat_event *event, const char *field,
		      uint64_t *ret)
{
	return dat_library_number(t->library, event->id, &event->raw, field, ret);
}

/* ---- Events ---- */

/* The CPU's event where its ring is. */
static int take_head(struct cpu *c, struct pt_error *e)
{
	int got = dat_ring_event(&c->ring, &c->head, e);

	c->has_head = got > 0;
	return got < 0 ? -1 : 0;
}

/* The oldest event of each CPU of each buffer. */
static int open_cpus(struct trace_dat *t, struct pt_error *e)
{
	size_t count = 0;

	for (size_t b = 0; b < t->head.buffer_count; b++)
		count += t->head.buffers[b].cpu_count;
	t->cpus = calloc(count + 1, sizeof *t->cpus);
	if (!t->cpus)
		return pt_fail_no_memory(e, NULL);
	for (size_t b = 0; b < t->head.buffer_count; b++)
		for (uint32_t cpu = 0; cpu < t->head.buffers[b].cpu_count; cpu++) {
			struct cpu *c = &t->cpus[t->cpu_count++];
			const struct dat_ring_place place = {.head = &t->head,
							     .buffer = &t->head.buffers[b],
							     .cpu = cpu,
							     .fd = t->fd,
							     .path = t->path};

			if (dat_ring_open(&c->ring, t->library, &place, e) || take_head(c, e))
				return -1;
		}
	return 0;
}

int trace_dat_next(struct trace_dat *t, struct trace_dat_event *ret, struct pt_error *e)
{
	struct cpu *first = NULL;

	if (!t->cpus && open_cpus(t, e))
		return -1;
	if (t->now) {
		dat_ring_next(&t->now->ring);
		if (take_head(t->now, e))
			return -1;
		t->now = NULL;
	}
	for (struct cpu *c = t->cpus; c < t->cpus + t->cpu_count; c++)
		if (c->has_head && (!first || c->head.time < first->head.time))
			first = c;
	if (!first)
		return 0;
	t->now = first;
	if (first->head.bytes < EVENT_LEAST)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "the trace.dat has an event of %u bytes",
			       first->head.bytes);
	*ret = (struct trace_dat_event){.raw = first->head, .cpu = (int32_t)first->ring.cpu};
	dat_library_ids(t->library, &ret->raw, &ret->id, &ret->tid);
	return 1;
}
