/*
 * test_ring.c - rounds (capture/record/drain.h) against a double of the kernel as the rings' writer: head and
 * tail, wrap, truncation, LOST records, data whose record comes a round later or never, a slow reader;
 * schedules that are written down and random ones. What is checked is the container.
 */
#include "capture/record/drain.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A schedule is random, by its seed: the same test whichever it is. */
static void held(bool ok, const char *what, uint64_t seed)
{
	char text[1200];

	snprintf(text, sizeof text, "schedule %" PRIu64 ": %s", seed, what);
	check(ok, text);
}

/* ---- The kernel ------------------------------------------------------------------------------ */

#define DATA	   4096u
#define AUX	   8192u
#define PAGE	   4096u
#define RINGS	   3
#define PSB_PERIOD 512u

struct piece { /* of AUX data, as it was published */
	uint64_t offset, size, flags, first_ns;
};

struct kernel_ring {
	struct perf_event_mmap_page *page;
	uint8_t *data, *aux;
	uint64_t lost; /* records dropped since the last LOST record */
	uint64_t made, dropped;
	uint64_t own;		 /* of those made: they are used, and not put */
	uint64_t unpublished_ns; /* when the next AUX byte that will be published was made */
	struct piece *pieces;
	size_t piece_count;
	bool task, on;
	bool wide; /* all tasks' switches are recorded, too */
	int32_t cpu;
};

struct kernel {
	struct kernel_ring rings[RINGS];
	uint64_t now_ns, random;
};

static uint64_t roll(struct kernel *k, uint64_t n)
{
	k->random ^= k->random << 13;
	k->random ^= k->random >> 7;
	k->random ^= k->random << 17;
	return k->random % n;
}

static uint8_t pattern(uint64_t offset, unsigned ring)
{
	if (offset % PSB_PERIOD < 16)
		return offset % 2 ? 0x82 : 0x02; /* a PSB */
	return (uint8_t)(offset * 31 + (offset >> 8) * 7 + ring * 101);
}

static bool put_bytes(struct kernel_ring *r, const void *record, size_t n)
{
	uint64_t head = r->page->data_head;

	if (head + n - __atomic_load_n(&r->page->data_tail, __ATOMIC_ACQUIRE) > DATA)
		return false;
	for (size_t i = 0; i < n; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): of a struct's bytes */
		r->data[(head + i) % DATA] = ((const uint8_t *)record)[i];
	__atomic_store_n(&r->page->data_head, head + n, __ATOMIC_RELEASE);
	return true;
}

static bool put_record(struct kernel *k, struct kernel_ring *r, uint32_t type, uint16_t misc,
		       const void *body, size_t n)
{
	struct {
		struct perf_event_header h;
		uint64_t id, lost;
		struct {
			int32_t pid, tid;
			uint64_t time;
			uint32_t cpu, zero;
			uint64_t id;
		} trailer;
	} lost = {{PERF_RECORD_LOST, 0, sizeof lost}, 1, r->lost, {1, 1, k->now_ns, 0, 0, 1}};
	uint8_t record[256];
	struct perf_event_header h = {type, misc, (uint16_t)(sizeof h + n + sizeof lost.trailer)};
	uint64_t head = r->page->data_head;

	r->made++;
	memcpy(record, &h, sizeof h);
	if (n)
		memcpy(record + sizeof h, body, n);
	memcpy(record + sizeof h + n, &lost.trailer, sizeof lost.trailer);
	/* Both or none, as __perf_output_begin() reserves room for both. */
	if (r->lost &&
	    (head + sizeof lost + h.size - __atomic_load_n(&r->page->data_tail, __ATOMIC_ACQUIRE) > DATA ||
	     !put_bytes(r, &lost, sizeof lost))) {
		r->lost++;
		r->dropped++;
		return false;
	}
	if (r->lost)
		r->lost = 0;
	if (put_bytes(r, record, h.size))
		return true;
	r->lost++;
	r->dropped++;
	return false;
}

/*
 * How much the CPU writes before it stops, as intel_pt computes it (pt_buffer_reset_markers(), regions of a
 * page). If the stop is not before the tail, it writes over what was not read.
 */
static uint64_t room_of(const struct kernel_ring *r)
{
	uint64_t head = r->page->aux_head, tail = __atomic_load_n(&r->page->aux_tail, __ATOMIC_ACQUIRE), size,
		 pages, stop;

	if (head - tail >= AUX)
		return 0;
	size = AUX - 1 - (head - tail);
	if (head % PAGE + size + 1 < PAGE)
		return 0; /* it cannot stop inside a region */
	pages = size / PAGE + ((head + size + 1) % PAGE == 0);
	stop = (head / PAGE + pages) * PAGE % AUX;
	return stop > head % AUX ? stop - head % AUX : stop + AUX - head % AUX;
}

/* The tracer has made n bytes and they are published; what has no room is gone. */
static void publish(struct kernel *k, unsigned index, uint64_t n)
{
	struct kernel_ring *r = &k->rings[index];
	uint64_t head = r->page->aux_head, room = room_of(r), body[3];
	struct piece *p;

	if (n == 0)
		return;
	body[0] = head;
	body[2] = n > room ? PERF_AUX_FLAG_TRUNCATED : 0;
	if (n > room)
		n = room;
	body[1] = n;
	for (uint64_t i = 0; i < n; i++)
		r->aux[(head + i) % AUX] = pattern(head + i, index);
	r->pieces = realloc(r->pieces, (r->piece_count + 1) * sizeof *r->pieces);
	p = &r->pieces[r->piece_count++];
	*p = (struct piece){head, n, 0, r->unpublished_ns};
	if (put_record(k, r, PERF_RECORD_AUX, 0, body, sizeof body))
		p->flags = body[2];
	__atomic_store_n(&r->page->aux_head, head + n, __ATOMIC_RELEASE);
	r->unpublished_ns = ++k->now_ns;
}

static void switch_task(struct kernel *k, unsigned index, bool in)
{
	struct kernel_ring *r = &k->rings[index];

	if (r->on == in)
		return;
	r->on = in;
	r->own +=
	    put_record(k, r, PERF_RECORD_SWITCH, in ? 0 : PERF_RECORD_MISC_SWITCH_OUT, NULL, 0) && r->wide;
	if (r->wide)
		put_record(k, r, PERF_RECORD_SWITCH_CPU_WIDE, in ? 0 : PERF_RECORD_MISC_SWITCH_OUT,
			   "12345678", 8);
	k->now_ns++;
	if (in)
		r->unpublished_ns = k->now_ns;
	else
		publish(k, index, roll(k, 300) + 1);
}

static int memory(void)
{
	int fd = memfd_create("container", MFD_CLOEXEC);

	if (fd < 0) {
		perror("memfd_create");
		exit(1);
	}
	return fd;
}

/* ---- The container --------------------------------------------------------------------------- */

static uint64_t u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

/* The time at which the AUX byte at that offset was made, at the earliest: the beginning of its piece. */
static uint64_t made_ns(const struct kernel_ring *r, uint64_t offset)
{
	for (size_t i = 0; i < r->piece_count; i++)
		if (offset < r->pieces[i].offset + r->pieces[i].size)
			return r->pieces[i].first_ns;
	return UINT64_MAX;
}

static bool read_sideband(const uint8_t *p, uint64_t size, uint64_t round_ns, uint64_t *records,
			  uint64_t *lost)
{
	bool ok = true;

	while (size) {
		struct perf_event_header h;

		memcpy(&h, p, sizeof h);
		if (h.type == PERF_RECORD_LOST)
			*lost += u64(p + 16);
		else
			++*records;
		ok &= u64(p + h.size - 24) >= round_ns;
		p += h.size;
		size -= h.size;
	}
	return ok;
}

static void check_container(struct kernel *k, int fd, uint64_t seed)
{
	uint64_t at[RINGS] = {0}, round_ns = 0, records = 0, lost = 0, made = 0, dropped = 0, still = 0,
		 truncated = 0;
	uint64_t truncated_made = 0;
	bool bytes_ok = true, offsets_ok = true, rounds_ok = true, sideband_ok = true, flags_ok = true;
	struct pt_error e = {0};
	struct ptc_reader *reader;
	struct ptc_chunk c;
	int n;

	lseek(fd, 0, SEEK_SET);
	reader = ptc_reader_create(fd, &e);
	while ((n = ptc_next(reader, &c, &e)) > 0) {
		const uint8_t *p;
		struct ptc_aux a;
		uint64_t size;
		uint32_t attr;

		if (c.type == PTC_ROUND)
			ptc_parse_round(&c, &round_ns, &e);
		if (c.type == PTC_SIDEBAND && ptc_parse_sideband(&c, &attr, &p, &size, &e) == 0)
			sideband_ok &= read_sideband(p, size, round_ns, &records, &lost);
		if (c.type != PTC_AUX || ptc_parse_aux(&c, &a, &e))
			continue;
		unsigned i = c.stream - 1;
		struct kernel_ring *r = &k->rings[i];

		offsets_ok &= a.aux_offset == at[i];
		at[i] += a.size;
		for (uint64_t b = 0; b < a.size; b++)
			bytes_ok &= a.bytes[b] == pattern(a.aux_offset + b, i);
		rounds_ok &= !a.size || made_ns(r, a.aux_offset) >= round_ns;
		truncated += (a.flags & PTC_AUX_TRUNCATED) != 0;
		for (size_t q = 0; q < r->piece_count && a.flags & PTC_AUX_TRUNCATED; q++)
			if (r->pieces[q].offset + r->pieces[q].size == a.aux_offset + a.size &&
			    r->pieces[q].flags)
				goto placed;
		flags_ok &= !(a.flags & PTC_AUX_TRUNCATED);
	placed:;
	}
	held(n == 0, "the container is whole", seed);
	held(offsets_ok, "AUX data without a hole, each byte once", seed);
	held(bytes_ok, "AUX bytes as they were made", seed);
	held(rounds_ok, "no AUX data older than a round that was put before it", seed);
	held(sideband_ok, "no record older than a round that was put before it", seed);
	held(flags_ok, "losses of AUX data where they were", seed);
	for (unsigned i = 0; i < RINGS; i++) {
		struct kernel_ring *r = &k->rings[i];

		held(at[i] == r->page->aux_head, "all published AUX data", seed);
		made += r->made - r->own;
		dropped += r->dropped;
		still += r->lost;
		for (size_t p = 0; p < r->piece_count; p++)
			truncated_made += r->pieces[p].flags != 0;
	}
	held(records == made - dropped, "each record once", seed);
	held(lost == dropped - still, "each dropped record is reported", seed);
	held(truncated == truncated_made, "each loss of AUX data is reported", seed);
	ptc_reader_destroy(reader);
}

/* ---- Schedules -------------------------------------------------------------------------------------- */

struct bench {
	struct kernel k;
	struct hw_drain d;
	struct hw_drain_ring rings[RINGS];
	struct hw_aux_tail tails[RINGS];
	int fd;
	bool concurrent;	/* the kernel works on while a round runs */
	bool threads;		/* AUX data is read by drain threads */
	pthread_t spill_thread; /* empties what fills up, at any time */
	bool spills, end;
};

static void free_rings(struct kernel *k)
{
	for (unsigned i = 0; i < RINGS; i++) {
		free(k->rings[i].page);
		free(k->rings[i].data);
		free(k->rings[i].aux);
		free(k->rings[i].pieces);
	}
}

static void *spill_thread(void *arg)
{
	struct bench *b = arg;

	while (!__atomic_load_n(&b->end, __ATOMIC_RELAXED))
		hw_drain_spill(&b->d);
	return NULL;
}

/* During a round: the kernel does not wait for its reader. */
static int on_record(void *arg, const struct hw_record *record, struct pt_error *e)
{
	struct bench *b = arg;
	unsigned i = (unsigned)roll(&b->k, RINGS);

	(void)record, (void)e;
	if (b->concurrent && (!b->k.rings[i].task || b->k.rings[i].on) && roll(&b->k, 4) == 0)
		publish(&b->k, i, roll(&b->k, 2000));
	return 0;
}

static void on_chunk(void *arg)
{
	hw_drain_spill(arg);
}

static void begin(struct bench *b, uint64_t seed, bool concurrent)
{
	struct pt_error e = {0};

	memset(b, 0, sizeof *b);
	b->k.random = seed * 0x9E3779B97F4A7C15u + 1;
	b->k.now_ns = 1000;
	b->concurrent = concurrent;
	b->fd = memory();
	b->d.w = ptc_writer_create(b->fd, NULL, -7, &e);
	for (unsigned i = 0; i < RINGS; i++) {
		struct kernel_ring *r = &b->k.rings[i];
		struct ptc_stream s = {.cpu = (int32_t)i, .pid = -1, .tid = -1, .attr = UINT32_MAX};

		r->page = calloc(1, 4096);
		r->data = calloc(1, DATA);
		r->aux = calloc(1, AUX);
		r->task = i == 2;
		r->wide = seed % 4 < 2;
		r->unpublished_ns = b->k.now_ns;
		b->rings[i] = (struct hw_drain_ring){.ring = {r->page, r->data, DATA, r->aux, AUX},
						     .cpu = (int32_t)i,
						     .tid = -1,
						     .task = r->task,
						     .all_switches = r->wide,
						     .published_ns = b->k.now_ns,
						     .stream = (uint32_t)ptc_put_stream(b->d.w, &s, &e)};
	}
	b->d.rings = b->rings;
	b->d.tails = b->tails;
	b->d.ring_count = RINGS;
	b->threads = seed % 3 == 0;
	if (b->threads)
		b->d.threads = ptc_writer_threads(b->d.w, 2, (seed % 2 ? 1 : 64) << 20, &e)
				   ? NULL
				   : hw_drain_threads_create(&b->d, NULL, &e);
	held(!b->threads || b->d.threads, "drain threads", seed);
	b->d.on_record = on_record;
	b->d.arg = b;
	ptc_writer_on_chunk(b->d.w, on_chunk, &b->d);
	b->spills = seed % 5 == 0;
	if (b->spills)
		held(pthread_create(&b->spill_thread, NULL, spill_thread, b) == 0, "a thread", seed);
}

static void round_(struct bench *b, uint64_t seed)
{
	struct pt_error e = {0};
	uint64_t now = b->k.now_ns;
	int r;

	r = hw_drain_round(&b->d, now, &e);
	if (r)
		held(false, e.message, seed);
	b->k.now_ns++;
}

static unsigned tails;

/* What the next container would begin with. */
static void check_tails(struct bench *b, uint64_t seed)
{
	for (unsigned i = 0; i < RINGS; i++) {
		struct hw_aux_tail *t = &b->tails[i];
		uint64_t from = t->end - t->bytes.count;
		bool same = t->end == b->rings[i].taken && (!t->bytes.count || from % PSB_PERIOD == 0);

		for (size_t n = 0; same && n < t->bytes.count; n++)
			same = t->bytes.bytes[n] == pattern(from + n, i);
		held(same, "from a PSB to the last byte that the container has", seed);
		tails += t->bytes.count != 0;
		hw_aux_tail_deinit(t);
	}
}

static void end(struct bench *b, uint64_t seed)
{
	struct pt_error e = {0};

	b->concurrent = false;
	__atomic_store_n(&b->end, true, __ATOMIC_RELAXED);
	if (b->spills)
		pthread_join(b->spill_thread, NULL);
	round_(b, seed);
	round_(b, seed);
	held(hw_drain_settle(&b->d, &e) == 0, "settle", seed);
	check_tails(b, seed);
	hw_drain_threads_destroy(b->d.threads);
	held(ptc_writer_finish(b->d.w, &e) == 0, "finish", seed);
	check_container(&b->k, b->fd, seed);
	ptc_writer_destroy(b->d.w);
	hw_drain_deinit(&b->d);
	free_rings(&b->k);
	close(b->fd);
}

static void random_schedule(uint64_t seed)
{
	static struct bench b;
	unsigned slowness;

	begin(&b, seed, seed & 1);
	slowness = 2 + (unsigned)roll(&b.k, 40); /* how much happens between two rounds */
	for (unsigned i = 0; i < 400; i++) {
		unsigned ring = (unsigned)roll(&b.k, RINGS);
		struct kernel_ring *r = &b.k.rings[ring];
		uint8_t body[120] = {0};

		b.k.now_ns += roll(&b.k, 50);
		switch (roll(&b.k, 4)) {
		case 0:
		case 1:
			if (!r->task || r->on)
				publish(&b.k, ring, roll(&b.k, roll(&b.k, 8) ? 900 : 12000));
			break;
		case 2: put_record(&b.k, r, PERF_RECORD_COMM, 0, body, roll(&b.k, 15) * 8); break;
		default:
			/* Others come and go where the traced task is not; any, where a whole CPU is traced. A
			 * round may come between the two records of a switch. */
			if (!r->task || (r->wide && !r->on && roll(&b.k, 2)))
				put_record(&b.k, r, PERF_RECORD_SWITCH_CPU_WIDE,
					   roll(&b.k, 2) ? PERF_RECORD_MISC_SWITCH_OUT : 0, "12345678", 8);
			else
				switch_task(&b.k, ring, roll(&b.k, 2));
		}
		if (roll(&b.k, slowness) == 0)
			round_(&b, seed);
	}
	end(&b, seed);
}

/*
 * A buffer that is full to the last byte; one that is read when it is empty; a loss without a byte; and
 * again.
 */
static void written_schedules(void)
{
	static struct bench b;
	uint64_t others;

	begin(&b, 1, false);
	publish(&b.k, 0, AUX);
	round_(&b, 1000);
	round_(&b, 1000);
	publish(&b.k, 0, AUX + 1);
	publish(&b.k, 0, 1);
	round_(&b, 1000);
	publish(&b.k, 0, 100);
	end(&b, 1000);
	held(b.d.losses.truncated == 2, "two losses are counted", 1000);

	/* AUX's own records are dropped: the data comes a round later, without flags. */
	begin(&b, 2, false);
	for (unsigned i = 0; i < 200; i++)
		put_record(&b.k, &b.k.rings[0], PERF_RECORD_COMM, 0, "12345678", 8);
	publish(&b.k, 0, 500);
	round_(&b, 1001);
	put_record(&b.k, &b.k.rings[0], PERF_RECORD_COMM, 0, "12345678",
		   8); /* the next one that fits reports them */
	end(&b, 1001);
	held(b.d.losses.records > 0, "dropped records are counted", 1001);

	/* A ring whose task is away does not hold back the rounds of others. */
	begin(&b, 3, false);
	b.rings[0].task = b.rings[1].task = true;
	b.k.rings[0].task = b.k.rings[1].task = true;
	switch_task(&b.k, 0, true);
	publish(&b.k, 0, 10);
	round_(&b, 1002);
	/* What drain threads take is in the next one's time. */
	held(hw_drain_settle(&b.d, &(struct pt_error){0}) == 0, "settle", 1002);
	round_(&b, 1002);
	held(b.d.round_ns > 1000, "a round is put although two rings never had a task", 1002);
	end(&b, 1002);

	/* Nor does one where others come. */
	begin(&b, 4, false);
	b.rings[0].task = b.rings[1].task = true;
	b.k.rings[0].task = b.k.rings[1].task = true;
	switch_task(&b.k, 0, true);
	put_record(&b.k, &b.k.rings[1], PERF_RECORD_SWITCH_CPU_WIDE, 0, "12345678", 8);
	others = b.k.now_ns;
	for (unsigned i = 0; i < 3; i++) {
		publish(&b.k, 0, 10);
		round_(&b, 1003);
	}
	held(b.k.rings[1].wide && b.d.round_ns > others, "a round is put although others run elsewhere",
	     1003);
	end(&b, 1003);
}

static unsigned restarts;

static void on_restart(void *arg, size_t ring)
{
	struct bench *b = arg;

	restarts += ring == 0;
	/* As perf_aux_output_begin(): without room it is off at once, and nothing says so. */
	check(room_of(&b->k.rings[0]) > 0, "an event is started again when there is room");
}

/*
 * What lost AUX data has switched off starts again as soon as there is room: between rounds, as these
 * can take long. Not while it is to be off.
 */
static void restart_after_loss(void)
{
	static struct bench b;

	begin(&b, 5, false);
	b.d.arg = &b;
	b.d.restart = on_restart;
	publish(&b.k, 0, 100);
	hw_drain_spill(&b.d);
	check(restarts == 0, "nothing was lost");
	for (unsigned i = 1; i <= 5; i++) {
		publish(&b.k, 0, AUX + 1);
		hw_drain_spill(&b.d);
		check(restarts == i, "started again without a round");
	}
	hw_drain_spill(&b.d);
	check(restarts == 5, "once");
	hw_drain_allow_restart(&b.d, false);
	publish(&b.k, 0, AUX + 1);
	hw_drain_spill(&b.d);
	round_(&b, 1004);
	check(restarts == 5, "not while it is to be off");
	hw_drain_allow_restart(&b.d, true);
	hw_drain_spill(&b.d);
	check(restarts == 6, "but then");
	publish(&b.k, 0, AUX + 1);
	round_(&b, 1004);
	round_(&b, 1004);
	check(restarts == 7, "by rounds, too");
	end(&b, 1004);
	check(b.d.losses.truncated == 7, "each loss is counted");
}

/* What drain threads cannot write is the round's error. */
static void full_disk(void)
{
	static struct bench b;
	struct pt_error e = {0};
	int full = open("/dev/full", O_WRONLY);

	begin(&b, 3, false);
	b.d.tails = NULL;
	publish(&b.k, 0, AUX);
	publish(&b.k, 1, AUX);
	held(b.threads && dup2(full, b.fd) >= 0, "/dev/full, with drain threads", 1003);
	for (unsigned i = 0; i < 3 && !e.kind; i++)
		if (hw_drain_round(&b.d, b.k.now_ns, &e) == 0 && hw_drain_settle(&b.d, &e) == 0)
			ptc_flush_meta(b.d.w, &e);
	if (!e.kind)
		ptc_writer_finish(b.d.w, &e);
	held(e.kind == PT_ERR_IO, "a full disk is an error", 1003);
	close(full);
	hw_drain_threads_destroy(b.d.threads);
	ptc_writer_destroy(b.d.w);
	hw_drain_deinit(&b.d);
	close(b.fd);
	free_rings(&b.k);
}

static int32_t children, at_record; /* that were reported: in all, and when the first record was put */

static void on_forked(void *arg, int32_t child, int32_t parent)
{
	(void)arg;
	children += child == 7 && parent == 6;
}

static int after_forks(void *arg, const struct hw_record *record, struct pt_error *e)
{
	(void)arg, (void)e;
	if (record->header.type == PERF_RECORD_MMAP2)
		at_record = children;
	return 0;
}

/* Each CPU has a ring: what a child has mapped may be in another one than that it was begun. */
static void forks_first(void)
{
	static const uint32_t process[4] = {7, 6, 7, 6}, thread[4] = {6, 6, 8, 6};
	static struct bench b;

	begin(&b, 1, false);
	b.d.on_record = after_forks;
	b.d.forked = on_forked;
	put_record(&b.k, &b.k.rings[0], PERF_RECORD_MMAP2, 0, process, sizeof process);
	put_record(&b.k, &b.k.rings[1], PERF_RECORD_FORK, 0, process, sizeof process);
	put_record(&b.k, &b.k.rings[1], PERF_RECORD_FORK, 0, thread, sizeof thread);
	round_(&b, 1005);
	check_same(children, 1, "processes that were begun; a thread is none");
	check_same(at_record, 1, "before another ring's record was put");
	end(&b, 1005);
}

int main(void)
{
	written_schedules();
	forks_first();
	restart_after_loss();
	full_disk();
	for (uint64_t seed = 1; seed <= 300; seed++)
		random_schedule(seed);
	check(tails, "there are some");
	return sum_up();
}
