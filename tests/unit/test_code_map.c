/* test_code_map.c - executed instructions by address and version (export/code_map.h): found, followed, not
 * twice, in order; and the same when most of it is in the scratch files. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "export/code_map.h"
#include "tests/unit/check.h"

static struct code_map map;
static struct pt_error error;
static FILE *files[CODE_MAP_SCRATCHES];

static void begin(void)
{
	int scratch[CODE_MAP_SCRATCHES];

	for (int i = 0; i < CODE_MAP_SCRATCHES; i++) {
		files[i] = tmpfile();
		scratch[i] = files[i] ? fileno(files[i]) : -1;
	}
	check(code_map_init(&map, scratch, &error) == 0, "made");
}

static void end(void)
{
	code_map_deinit(&map);
	for (int i = 0; i < CODE_MAP_SCRATCHES; i++)
		if (files[i])
			fclose(files[i]);
}

/* A record of n instructions of one length, whose bytes are the low ones of their addresses. */
static int add(uint32_t version, uint64_t ip, uint32_t n, uint8_t len)
{
	uint8_t bytes[PTR_CODE_INSNS * PTR_INSN_BYTES];
	struct ptr_code r = {
	    .version = version, .symbol = 7, .bits = 64, .ip = ip, .count = n, .bytes = bytes};

	memset(r.lens, len, n);
	for (uint32_t i = 0; i < n * len; i++)
		bytes[i] = (uint8_t)(ip + i);
	return code_map_add(&map, &r, &error);
}

/* UINT32_MAX: an error. */
static uint32_t at(uint32_t version, uint64_t ip)
{
	uint32_t ret;

	return code_map_find(&map, version, ip, &ret, &error) < 0 ? UINT32_MAX : ret;
}

static uint32_t walk(uint32_t from, uint32_t steps)
{
	uint32_t ret;

	return code_map_walk(&map, from, steps, &ret, &error) < 0 ? UINT32_MAX : ret;
}

static void test_few(void)
{
	bool found = true, follow = true;

	begin();
	check(!at(1, 0x1000), "none");
	/* 64 instructions of 15 bytes: over the ends of 15 lines. */
	check(add(1, 0x1001, 64, 15) == 0 && map.count == 64, "a record");
	for (uint32_t i = 0; i < 64; i++) {
		found &= at(1, 0x1001 + 15 * (uint64_t)i) == i + 1;
		follow &= walk(i + 1, 1) == (i < 63 ? i + 2 : 64);
	}
	check(found && follow, "each is found, and followed by the next");
	check(!at(1, 0x1000) && !at(1, 0x1002) && !at(1, 0x1001 + 15 * 64) && !at(2, 0x1001),
	      "and nothing else");

	/* Into the middle of the others, and back to them. */
	check(add(1, 0x100f, 1, 1) == 0, "in the middle of an instruction");
	check(at(1, 0x100f) == 65 && walk(65, 1) == 2, "it leads to the other record's");

	check(add(2, 0x1001, 2, 3) == 0 && at(2, 0x1004) == 67 && at(1, 0x1010) == 2, "another version");
	check(add(1, 0x1001 + 15 * 64, 3, 4) == 0 && walk(64, 1) == 68, "a record after another one");
	check(walk(1, 0) == 1 && walk(1, 63) == 64 && walk(65, 64) == 68 && walk(1, 1000) == 70,
	      "steps over the ends of records, up to the last");

	check(add(1, 0x1001, 1, 15) < 0 && error.kind == PT_ERR_BAD_INPUT &&
		  strstr(error.message, "1001 twice"),
	      "an instruction twice");
	end();
}

/* What code_map_next() has is the next record by version and address, whole: 8 instructions of 12 bytes. */
static bool is_next(struct ptr_code *last, const struct ptr_code *b)
{
	bool after = b->version > last->version || (b->version == last->version && b->ip > last->ip);

	for (uint32_t i = 0; i < 96; i++)
		after &= b->bytes[i] == (uint8_t)(b->ip + i);
	for (uint32_t i = 0; i < 8; i++)
		after &= b->lens[i] == 12;
	*last = *b;
	return after && b->count == 8 && b->symbol == 7 && b->bits == 64;
}

/* n records of 8 instructions, from the highest address down, and what takes turns with them in one line. */
static void test_many(uint32_t n)
{
	struct ptr_code last = {0}, b;
	bool added = true, found = true, followed = true, ordered = true;
	uint32_t blocks = 0, sum = 0, first;
	int more;

	begin();
	for (uint32_t i = 0; i < n; i++)
		added &= add(1 + i % 3, 0x400000 + 96 * (uint64_t)(n - i), 8, 12) == 0;
	for (uint32_t i = 0; i < n; i++) {
		found &= at(1 + i % 3, 0x400000 + 96 * (uint64_t)(n - i) + 84) == 8 * i + 8;
		followed &= walk(8 * i + 1, 7) == 8 * i + 8 && walk(8 * i + 1, 20) == 8 * i + 8;
	}
	check(added && map.count == 8 * (size_t)n, "many are added");
	check(found, "many are found");
	check(followed, "many are followed");
	code_map_rewind(&map);
	while ((more = code_map_next(&map, &b, &first, &error)) > 0) {
		ordered &= is_next(&last, &b);
		blocks++;
		sum += first / 8;
	}
	check(more == 0 && blocks == n, "each record is there in the end");
	check(ordered, "by version and address, with its bytes");
	check(sum == (uint32_t)((uint64_t)n * (n - 1) / 2), "with its number");
	end();
}

/* A file that cannot be written is an error, and nothing is made up. */
static void test_full(void)
{
	static const struct rlimit small = {1 << 20, RLIM_INFINITY};
	uint64_t ip = 0;
	int r = 0;

	begin();
	check(setrlimit(RLIMIT_FSIZE, &small) == 0, "files have an end");
	while (r == 0 && ip < (uint64_t)1 << 32)
		r = add(1, ip += 96, 8, 12);
	check(r < 0 && error.kind == PT_ERR_IO, "a scratch file is full");
	end();
}

int main(void)
{
	test_few();
	test_many(20000);
	test_many(600000); /* more of everything than is in memory */
	signal(SIGXFSZ, SIG_IGN);
	test_full();
	return sum_up();
}
