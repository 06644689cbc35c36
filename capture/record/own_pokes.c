/* own_pokes.c - see own_pokes.h. */
#include "capture/record/own_pokes.h"
#include "capture/record/ring.h"
#include "capture/record/sample_id.h"
#include "schema/array.h"
#include "schema/bytes.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define DATA ((size_t)16384) /* a key's places are a few dozen, a record of one has 64 bytes */

/* The bytes of struct text_poke_event before the old ones. */
#define POKE_BYTES 20

struct cpu_ring {
	int fd;
	struct hw_ring ring;
};

/* A TEXT_POKE record. */
struct poke {
	uint64_t time_ns, address;
	uint16_t old_bytes, new_bytes;
	size_t old_at; /* its old bytes in the records */
};

struct hw_own_pokes {
	struct cpu_ring *rings;
	size_t count;
	struct hw_bytes records;
	struct poke *pokes; /* the last first */
	size_t poke_count, poke_room;
};

/* False: not permitted, or no memory. */
static bool open_ring(struct hw_own_pokes *p, int32_t cpu, bool raw_clock)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
				    .size = sizeof a,
				    .config = PERF_COUNT_SW_DUMMY,
				    .sample_period = 1,
				    .sample_type = HW_SAMPLE_TYPE};
	void *pages;
	int fd;

	a.exclude_kernel = a.sample_id_all = a.text_poke = 1;
	a.use_clockid = raw_clock;
	a.clockid = raw_clock ? CLOCK_MONOTONIC_RAW : 0;
	fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	pages = mmap(NULL, PAGE + DATA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED) {
		close(fd);
		return false;
	}
	p->rings[p->count++] =
	    (struct cpu_ring){fd, {.page = pages, .data = (uint8_t *)pages + PAGE, .data_size = DATA}};
	return true;
}

struct hw_own_pokes *hw_own_pokes_open(const struct hw_list *cpus, bool raw_clock)
{
	struct hw_own_pokes *p = calloc(1, sizeof *p);

	if (p)
		p->rings = calloc(cpus->count + 1, sizeof *p->rings);
	for (size_t i = 0; p && i < cpus->count; i++)
		if (!p->rings || !open_ring(p, cpus->at[i], raw_clock)) {
			hw_own_pokes_close(p);
			p = NULL;
		}
	return p;
}

void hw_own_pokes_close(struct hw_own_pokes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->count; i++) {
		munmap(p->rings[i].ring.page, PAGE + DATA);
		close(p->rings[i].fd);
	}
	free(p->rings);
	hw_bytes_deinit(&p->records);
	free(p->pokes);
	free(p);
}

/* False: it is another record. */
static bool read_poke(const uint8_t *record, const struct perf_event_header *h, struct poke *ret)
{
	struct hw_sample_id id;

	if (h->type != PERF_RECORD_TEXT_POKE || h->size < POKE_BYTES + sizeof id)
		return false;
	ret->address = u64(record + 8);
	memcpy(&ret->old_bytes, record + 16, sizeof ret->old_bytes);
	memcpy(&ret->new_bytes, record + 18, sizeof ret->new_bytes);
	memcpy(&id, record + h->size - sizeof id, sizeof id);
	ret->time_ns = id.time_ns;
	return (size_t)ret->old_bytes + ret->new_bytes <= h->size - POKE_BYTES - sizeof id;
}

/* What else there is, as of lost records, is left out. */
static int add_pokes(struct hw_own_pokes *p, const struct hw_bytes *all, uint64_t id, struct pt_error *e)
{
	struct perf_event_header h;

	for (size_t at = 0; at < all->count; at += h.size) {
		uint8_t *record = all->bytes + at;
		struct poke poke;

		memcpy(&h, record, sizeof h);
		if (!read_poke(record, &h, &poke))
			continue;
		poke.old_at = p->records.count + POKE_BYTES;
		memcpy(record + h.size - sizeof id, &id, sizeof id);
		if (hw_bytes_add(&p->records, record, h.size, e) ||
		    pt_array_grow(&p->pokes, p->poke_count, &p->poke_room, e))
			return -1;
		p->pokes[p->poke_count++] = poke;
	}
	return 0;
}

static int last_first(const void *a, const void *b)
{
	const struct poke *x = a, *y = b;

	return pt_compare_u64(&y->time_ns, &x->time_ns);
}

int hw_own_pokes_take(struct hw_own_pokes *p, uint64_t id, const struct hw_bytes **ret, struct pt_error *e)
{
	struct hw_bytes all = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->count; i++)
		r = hw_ring_records(&p->rings[i].ring, &all, e);
	if (r == 0)
		r = add_pokes(p, &all, id, e);
	if (p->poke_count)
		qsort(p->pokes, p->poke_count, sizeof *p->pokes, last_first);
	hw_bytes_deinit(&all);
	*ret = &p->records;
	return r;
}

void hw_own_pokes_undo(const struct hw_own_pokes *p, uint64_t address, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < p->poke_count; i++)
		for (uint64_t k = 0; k < p->pokes[i].old_bytes; k++)
			if (p->pokes[i].address + k - address < n)
				bytes[p->pokes[i].address + k - address] =
				    p->records.bytes[p->pokes[i].old_at + k];
}
