/*
 * test_container_threads.c - compressor threads (ptc_writer_threads()): the container is byte for byte what
 * it is without them; several AUX writers at a time; memory that is bounded when the output stands still; a
 * full disk.
 */
#include "tests/unit/container_samples.h"

#include <pthread.h>

#define STREAMS 4
#define BIG	(6u << 20)

#define PERIOD	(1u << 20)

static uint8_t *bytes; /* BIG of them, the same again after each PERIOD */

static void make_bytes(void)
{
	bytes = malloc(BIG);
	if (!bytes)
		exit(1);
	fill_random(bytes, BIG);
	for (size_t i = 4096; i < BIG; i += 64)
		memcpy(bytes + i, bytes + (random64() % 4096 & ~(uint64_t)7), 24 + random64() % 40);
	for (size_t i = PERIOD; i < BIG; i++)
		bytes[i] = bytes[i - PERIOD];
}

static void declare_streams(struct ptc_writer *w, struct pt_error *e)
{
	struct ptc_stream s = {.cpu = 0, .pid = -1, .tid = -1, .attr = UINT32_MAX};

	for (int i = 0; i < STREAMS; i++)
		CHECK(ptc_put_stream(w, &s, e) == i + 1);
}

/* ---- The same with and without ---- */

static void put_all(struct ptc_writer *w)
{
	static const int levels[] = {1, -7, -50, 3, -30};
	struct ptc_image image = test_image();
	uint64_t at[STREAMS] = {0};
	struct pt_error e;

	random_state = 4711;
	declare_streams(w, &e);
	image.bytes = bytes;
	for (int i = 0; i < 200; i++) {
		uint32_t s = (uint32_t)(random64() % STREAMS);
		uint64_t n = random64() % (random64() % 8 ? 20000 : 3000000);

		ptc_writer_level(w, levels[i / 10 % 5]);
		CHECK(ptc_put_aux(w, s + 1, AUX(at[s], 0, (uint64_t)i, bytes + i, n), &e) == 0);
		at[s] += n;
		if (i % 9 == 0)
			CHECK(ptc_put_sideband(w, 0, records, sizeof records, &e) == 0);
		if (i % 11 == 0)
			CHECK(ptc_put_round(w, (uint64_t)i, &e) == 0);
		image.size = random64() % 300000;
		image.kind = i % 2 ? PTC_IMAGE_FILE : PTC_IMAGE_MEMORY;
		if (i % 23 == 0)
			CHECK(ptc_put_meta(w, "key", "value", &e) == 0 && ptc_put_image(w, &image, &e) == 0);
	}
	CHECK(ptc_put_meta(w, "last", "1", &e) == 0);
	CHECK(ptc_writer_finish(w, &e) == 0);
}

static uint8_t *written(unsigned threads, uint64_t max_bytes, size_t *ret_bytes)
{
	int fd = memory_file();
	struct pt_error e;
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	uint8_t *ret;

	CHECK(w != NULL);
	CHECK(!threads || ptc_writer_threads(w, threads, max_bytes, &e) == 0);
	put_all(w);
	ptc_writer_destroy(w);
	ret = content(fd, ret_bytes);
	close(fd);
	return ret;
}

static void test_same(void)
{
	static const struct {
		unsigned threads;
		uint64_t max_bytes;
	} cases[] = {{1, 1}, {1, 64 << 20}, {3, 2 << 20}, {5, 64 << 20}};
	size_t n, m;
	uint8_t *without = written(0, 0, &n), *with;

	CHECK(n > 1000000);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		with = written(cases[i].threads, cases[i].max_bytes, &m);
		CHECK(m == n && memcmp(with, without, n) == 0);
		free(with);
	}
	free(without);
}

/* ---- Several at a time ---- */

struct putter {
	struct ptc_writer *w;
	uint32_t stream;
	pthread_t thread;
};

static void *put_stream(void *arg)
{
	struct putter *p = arg;
	struct pt_error e;
	struct ptc_aux_writer *a = ptc_aux_writer_create(p->w, &e);
	uint64_t at = 0;

	for (uint64_t n = p->stream; a && at < 20u << 20; n = n * 7 % 700001 + 1) {
		if (ptc_aux_writer_put(a, p->stream, AUX(at, 0, 0, bytes + at % PERIOD, n), &e))
			break;
		at += n;
	}
	ptc_aux_writer_destroy(a);
	return (void *)(uintptr_t)at;
}

/* Each stream's chunks: in order, without gaps, with the bytes that were put. */
static void check_streams(int fd, const uint64_t *put, unsigned rounds)
{
	uint64_t seq[STREAMS] = {0}, end[STREAMS] = {0};
	unsigned wrong = 0, seen = 0;
	struct ptc_chunk c = {0};
	struct ptc_reader *r;
	struct pt_error e;
	struct ptc_aux aux;
	int next;

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	while (r && (next = ptc_next(r, &c, &e)) == 1) {
		uint64_t *s = &seq[(c.stream - 1) % STREAMS], *to = &end[(c.stream - 1) % STREAMS], time;

		if (c.type == PTC_ROUND)
			wrong += ptc_parse_round(&c, &time, &e) || time != ++seen;
		if (c.type != PTC_AUX)
			continue;
		if (ptc_parse_aux(&c, &aux, &e)) {
			wrong++;
			continue;
		}
		wrong += aux.seq != (*s)++ || aux.aux_offset != *to;
		wrong += memcmp(aux.bytes, bytes + aux.aux_offset % PERIOD, aux.size) != 0;
		*to += aux.size;
	}
	CHECK(r && next == 0 && wrong == 0 && seen == rounds);
	for (int i = 0; i < STREAMS; i++)
		CHECK(end[i] == put[i] && end[i] >= 20u << 20);
	ptc_reader_destroy(r);
}

static void test_several(void)
{
	int fd = memory_file();
	struct putter putters[STREAMS];
	uint64_t put[STREAMS];
	unsigned rounds = 0;
	struct ptc_load load;
	struct pt_error e;
	struct ptc_writer *w = ptc_writer_create(fd, NULL, -50, &e);

	declare_streams(w, &e);
	CHECK(ptc_writer_threads(w, 3, 4 << 20, &e) == 0);
	for (uint32_t i = 0; i < STREAMS; i++) {
		putters[i] = (struct putter){.w = w, .stream = i + 1};
		CHECK(pthread_create(&putters[i].thread, NULL, put_stream, &putters[i]) == 0);
	}
	for (; rounds < 500; rounds++) {
		CHECK(ptc_put_round(w, rounds + 1, &e) == 0);
		ptc_writer_load(w, &load);
		CHECK(load.max_bytes == 4 << 20 && ptc_writer_bytes(w) > 0);
	}
	for (uint32_t i = 0; i < STREAMS; i++) {
		void *ret;

		pthread_join(putters[i].thread, &ret);
		put[i] = (uint64_t)(uintptr_t)ret;
	}
	CHECK(ptc_writer_finish(w, &e) == 0);
	ptc_writer_destroy(w);
	check_streams(fd, put, rounds);
	close(fd);
}

/* ---- An output that stands still, and one that takes nothing ---- */

static void *read_late(void *arg)
{
	static uint8_t room[65536];
	int fd = *(int *)arg;
	uint64_t n = 0;
	ssize_t got;

	nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	while ((got = read(fd, room, sizeof room)) > 0)
		n += (uint64_t)got;
	return (void *)(uintptr_t)n;
}

static void test_bounded(void)
{
	int pipes[2];
	uint64_t most = 0, size;
	struct ptc_load load;
	struct ptc_writer *w;
	pthread_t reader;
	struct pt_error e;
	void *got;

	CHECK(pipe(pipes) == 0 && pthread_create(&reader, NULL, read_late, &pipes[0]) == 0);
	w = ptc_writer_create(pipes[1], NULL, -50, &e);
	declare_streams(w, &e);
	CHECK(ptc_writer_threads(w, 2, 3 << 20, &e) == 0);
	for (uint64_t i = 0; i < 64; i++) {
		CHECK(ptc_put_aux(w, 1, AUX(i << 20, 0, 0, bytes + i, 1 << 20), &e) == 0);
		ptc_writer_load(w, &load);
		most = load.bytes > most ? load.bytes : most;
	}
	/*
	 * What was put last may be as much above it as its buffer is larger than its payload, or its frame
	 * is.
	 */
	CHECK(most > 2 << 20 && most < 4 << 20);
	CHECK(load.waits > 0 && load.wait_ns > 0);
	CHECK(ptc_writer_finish(w, &e) == 0);
	size = ptc_writer_bytes(w);
	ptc_writer_destroy(w);
	close(pipes[1]);
	pthread_join(reader, &got);
	CHECK((uint64_t)(uintptr_t)got == size);
	close(pipes[0]);
}

static void test_full(void)
{
	int full = open("/dev/full", O_WRONLY), fd = memory_file();
	struct pt_error e = {0};
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);

	declare_streams(w, &e);
	CHECK(ptc_writer_threads(w, 2, 64 << 20, &e) == 0);
	CHECK(ptc_put_aux(w, 1, AUX(0, 0, 0, bytes, 100), &e) == 0);
	CHECK(full >= 0 && dup2(full, fd) >= 0);
	for (uint64_t i = 0; i < 8; i++)
		ptc_put_aux(w, 2, AUX(i << 20, 0, 0, bytes, 1 << 20), &e);
	CHECK(ptc_writer_finish(w, &e) == -1 && e.kind == PT_ERR_IO && strstr(e.message, "No space left"));
	CHECK(ptc_put_round(w, 1, &e) == -1);
	ptc_writer_destroy(w);
	/* One that is given up while chunks wait. */
	w = ptc_writer_create(memory_file(), NULL, 1, &e);
	declare_streams(w, &e);
	CHECK(ptc_writer_threads(w, 1, 64 << 20, &e) == 0);
	CHECK(ptc_put_aux(w, 1, AUX(0, 0, 0, bytes, BIG), &e) == 0);
	ptc_writer_destroy(w);
	close(full);
	close(fd);
}

int main(void)
{
	make_bytes();
	test_same();
	test_several();
	test_bounded();
	test_full();
	free(bytes);
	return sum_up();
}
