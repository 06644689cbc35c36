/*
 * container_samples.h - what the tests of the container share: CHECK, files in memory, a small container that
 * has every type of chunk.
 */
#ifndef TESTS_CONTAINER_SAMPLES_H
#define TESTS_CONTAINER_SAMPLES_H

#include "schema/container.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void fill_random(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(random64() >> 32);
}

static int memory_file(void)
{
	int fd = memfd_create("container", MFD_CLOEXEC);

	if (fd < 0) {
		perror("memfd_create");
		exit(1);
	}
	return fd;
}

static int file_of(const uint8_t *bytes, size_t n)
{
	int fd = memory_file();

	if (write(fd, bytes, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) != 0) {
		perror("write");
		exit(1);
	}
	return fd;
}

static uint8_t *content(int fd, size_t *ret_bytes)
{
	off_t n = lseek(fd, 0, SEEK_END);
	uint8_t *bytes = malloc((size_t)n);

	if (!bytes || pread(fd, bytes, (size_t)n, 0) != n) {
		perror("pread");
		exit(1);
	}
	*ret_bytes = (size_t)n;
	return bytes;
}

/* ---- All types, there and back ---- */

static const uint64_t ids[] = {7, 0x1122334455667788u};
static const uint8_t build_id[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
static const uint8_t records[] = {3, 0, 0, 0, 2, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, /* one record */
				  4, 0, 0, 0, 0, 0, 8,	0};			   /* another */
static const struct ptc_symbol symbols[] = {
    {0x401000, 16, 0, 'T'}, {0x401010, 0, 5, 't'}, {0xffffffff81000000u, 99, 0, 'W'}};

static struct ptc_image test_image(void)
{
	return (struct ptc_image){.kind = PTC_IMAGE_FILE,
				  .machine_pid = 77,
				  .pid = PTC_ANY_PID,
				  .offset = 0x1000,
				  .vaddr = 0x401000,
				  .time_ns = 5,
				  .build_id = build_id,
				  .build_id_bytes = 20,
				  .name = "/bin/true",
				  .name_bytes = 9,
				  .bytes = (const uint8_t *)"\x90\x90\xc3",
				  .size = 3};
}

/* For ptc_put_aux(). */
#define AUX(at, flag, time, data, n)                                                                         \
	&(struct ptc_aux)                                                                                    \
	{                                                                                                    \
		.aux_offset = (at), .flags = (flag), .time_ns = (time), .bytes = (const uint8_t *)(data),    \
		.size = (n)                                                                                  \
	}

/* A small container with every type. */
static inline void write_all_types(int fd)
{
	struct pt_error e;
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 3, &e);
	struct ptc_stream stream = {.cpu = 3, .pid = -1, .tid = -1, .attr = 0, .snapshot = 0};
	struct ptc_image image = test_image();
	struct ptc_symbols s = {.machine_pid = 77,
				.pid = PTC_ANY_PID,
				.absolute = 1,
				.count = 3,
				.build_id = build_id,
				.build_id_bytes = 20,
				.name = "/bin/true",
				.name_bytes = 9,
				.symbols = symbols,
				.strings = "main\0exit",
				.strings_bytes = 10};

	struct ptc_tracepoint tracepoint = {.machine_pid = 77,
					    .id = 1234,
					    .system = "kvm",
					    .system_bytes = 3,
					    .name = "kvm_exit",
					    .name_bytes = 8,
					    .format = "name: kvm_exit\nID: 1234\n",
					    .format_bytes = 24};
	struct ptc_attr pt_attr = ptc_host_attr("intel_pt//u", "0123456789", 10, ids, 2);
	struct ptc_attr guest_attr = ptc_host_attr("dummy:u", "01234567", 8, ids, 1);

	guest_attr.machine_pid = 77;
	CHECK(w != NULL);
	CHECK(ptc_put_meta(w, "command", "a\nb\\n=c", &e) == 0);
	CHECK(ptc_put_metaf(w, &e, "mtc_freq", "%d", 3) == 0);
	CHECK(ptc_put_attr(w, &pt_attr, &e) == 0);
	CHECK(ptc_put_attr(w, &guest_attr, &e) == 0);
	CHECK(ptc_put_format(w, &tracepoint, &e) == 0);
	CHECK(ptc_put_stream(w, &stream, &e) == 1);
	stream.snapshot = 1;
	CHECK(ptc_put_stream(w, &stream, &e) == 2);
	CHECK(ptc_put_image(w, &image, &e) == 0);
	CHECK(ptc_put_symbols(w, &s, &e) == 0);
	CHECK(ptc_put_sideband(w, 9, records, sizeof records, &e) == 0);
	CHECK(ptc_put_meta(w, "command", "second", &e) == 0);
	CHECK(ptc_put_aux(w, 1, AUX(100, PTC_AUX_PARTIAL, 1234, "abcdef", 6), &e) == 0);
	CHECK(ptc_put_aux(w, 1, AUX(106, PTC_AUX_TRUNCATED, 0, NULL, 0), &e) == 0);
	CHECK(ptc_put_aux(w, 2, AUX(50, 0, 0, "xyz", 3), &e) == 0);
	CHECK(ptc_put_aux(w, 2, AUX(40, 0, 0, "uvw", 3), &e) == 0);
	CHECK(ptc_put_round(w, 4321, &e) == 0);
	CHECK(ptc_writer_finish(w, &e) == 0);
	CHECK(ptc_writer_bytes(w) == (uint64_t)lseek(fd, 0, SEEK_END));
	ptc_writer_destroy(w);
}

struct chunk_copy {
	enum ptc_type type;
	uint32_t stream;
	uint64_t offset, end;
	uint8_t *data;
	size_t size;
};

/* What a good container holds. */
static inline struct chunk_copy *copy_chunks(const uint8_t *bytes, size_t n, size_t *ret_count)
{
	int fd = file_of(bytes, n);
	struct pt_error e;
	struct ptc_reader *r = ptc_reader_create(fd, &e);
	struct chunk_copy *copies = NULL;
	struct ptc_chunk c;
	size_t count = 0;

	while (r && ptc_next(r, &c, &e) == 1) {
		struct chunk_copy *grown = realloc(copies, (count + 1) * sizeof *copies);

		if (!grown)
			exit(1);
		copies = grown;
		copies[count] = (struct chunk_copy){
		    c.type, c.stream, c.offset, ptc_reader_bytes(r), malloc(c.size + 1), c.size};
		memcpy(copies[count++].data, c.data, c.size);
	}
	ptc_reader_destroy(r);
	close(fd);
	*ret_count = count;
	return copies;
}

static inline void free_chunks(struct chunk_copy *chunks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(chunks[i].data);
	free(chunks);
}

#endif
