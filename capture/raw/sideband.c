/* sideband.c - see sideband.h. */
#include "capture/raw/sideband.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <linux/perf_event.h>

#define SAMPLE_ID      1 /* of the one event */
#define NAME_MAX_BYTES 4096
#define TRAILER_BYTES  32

void sideband_init(struct sideband *s, int32_t cpu, uint32_t pid, uint32_t tid)
{
	*s = (struct sideband){.cpu = cpu < 0 ? 0 : (uint32_t)cpu, .pid = pid, .tid = tid};
}

void sideband_deinit(struct sideband *s)
{
	free(s->bytes);
	*s = (struct sideband){0};
}

int sideband_put_attr(struct ptc_writer *w, struct pt_error *e)
{
	const uint64_t id = SAMPLE_ID;
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof attr,
				       .config = PERF_COUNT_SW_DUMMY,
				       .sample_period = 1,
				       .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
						      PERF_SAMPLE_IDENTIFIER,
				       .read_format = PERF_FORMAT_ID,
				       .exclude_kernel = 1,
				       .mmap = 1,
				       .mmap2 = 1,
				       .comm = 1,
				       .comm_exec = 1,
				       .task = 1,
				       .sample_id_all = 1};
	struct ptc_attr put = ptc_host_attr("dummy:u", &attr, sizeof attr, &id, 1);

	return ptc_put_attr(w, &put, e);
}

/* Appends a zeroed record with that many bytes between header and trailer; NULL: no memory. */
static uint8_t *add(struct sideband *s, uint32_t type, uint16_t misc, size_t bytes, struct pt_error *e)
{
	struct perf_event_header h = {.type = type, .misc = misc};
	uint64_t trailer[4] = {s->pid | (uint64_t)s->tid << 32, 0, s->cpu, SAMPLE_ID};
	size_t size = sizeof h + bytes + TRAILER_BYTES;
	uint8_t *p;

	if (s->count + size > s->room) {
		size_t room = 2 * (s->count + size);

		p = realloc(s->bytes, room);
		if (!p) {
			pt_fail_no_memory(e, "the sideband");
			return NULL;
		}
		s->bytes = p;
		s->room = room;
	}
	h.size = (uint16_t)size;
	p = s->bytes + s->count;
	memcpy(p, &h, sizeof h);
	memset(p + sizeof h, 0, bytes);
	memcpy(p + sizeof h + bytes, trailer, TRAILER_BYTES);
	s->count += size;
	return p + sizeof h;
}

static size_t padded(size_t n)
{
	return (n + 7) / 8 * 8;
}

int sideband_comm(struct sideband *s, const char *comm, bool exec, struct pt_error *e)
{
	size_t n = strnlen(comm, 15);
	uint8_t *p = add(s, PERF_RECORD_COMM,
			 (uint16_t)(PERF_RECORD_MISC_USER | (exec ? PERF_RECORD_MISC_COMM_EXEC : 0)),
			 8 + padded(n + 1), e);

	if (!p)
		return -1;
	memcpy(p, &s->pid, 4);
	memcpy(p + 4, &s->tid, 4);
	memcpy(p + 8, comm, n);
	return 0;
}

int sideband_mmap2(struct sideband *s, uint64_t addr, uint64_t bytes, uint64_t offset, const char *name,
		   struct pt_error *e)
{
	struct {
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		uint32_t maj, min;
		uint64_t ino, ino_generation;
		uint32_t prot, flags;
	} m = {.pid = s->pid,
	       .tid = s->tid,
	       .addr = addr,
	       .len = bytes,
	       .pgoff = offset,
	       .prot = PROT_READ | PROT_EXEC,
	       .flags = MAP_PRIVATE};
	size_t n = strlen(name);
	uint8_t *p;

	if (n >= NAME_MAX_BYTES)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "too long a file name: %.80s...", name);
	p = add(s, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, sizeof m + padded(n + 1), e);
	if (!p)
		return -1;
	memcpy(p, &m, sizeof m);
	memcpy(p + sizeof m, name, n);
	return 0;
}

int sideband_itrace_start(struct sideband *s, struct pt_error *e)
{
	uint8_t *p = add(s, PERF_RECORD_ITRACE_START, 0, 8, e);

	if (!p)
		return -1;
	memcpy(p, &s->pid, 4);
	memcpy(p + 4, &s->tid, 4);
	return 0;
}
