/* test_code_map.c - executed instructions by address and version (export/code_map.h): found, followed, not
 * twice. */
#include <string.h>

#include "export/code_map.h"
#include "tests/unit/check.h"

static struct code_map map;
static struct pt_error error;

/* A record of n instructions of one length. */
static int add(uint32_t version, uint64_t ip, uint32_t n, uint8_t len)
{
	static const uint8_t bytes[PTR_CODE_INSNS * 15];
	struct ptr_code r = {
	    .version = version, .symbol = 7, .bits = 64, .ip = ip, .count = n, .bytes = bytes};

	memset(r.lens, len, n);
	return code_map_add(&map, &r, &error);
}

static uint32_t at(uint32_t version, uint64_t ip)
{
	return code_map_find(&map, version, ip);
}

int main(void)
{
	bool found = true, follow = true;

	check(code_map_init(&map, &error) == 0, "made");
	check(!at(1, 0x1000), "none");

	/* 64 instructions of 15 bytes: over the ends of 15 lines. */
	check(add(1, 0x1001, 64, 15) == 0 && map.count == 64, "a record");
	for (uint32_t i = 0; i < 64; i++) {
		found &= at(1, 0x1001 + 15 * (uint64_t)i) == i + 1;
		follow &= code_map_next(&map, i + 1) == (i < 63 ? i + 2 : 0);
	}
	check(found && follow, "each is found, and followed by the next");
	check(!at(1, 0x1000) && !at(1, 0x1002) && !at(1, 0x1001 + 15 * 64) && !at(2, 0x1001),
	      "and nothing else");

	/* Into the middle of the others, and back to them. */
	check(add(1, 0x100f, 1, 1) == 0, "in the middle of an instruction");
	check(at(1, 0x100f) == 65 && code_map_next(&map, 65) == 2, "it leads to the other record's");
	check(code_map_block(&map, 65)->count == 1 && code_map_block(&map, 64)->first == 1, "their records");

	check(add(2, 0x1001, 2, 3) == 0 && at(2, 0x1004) == 67 && at(1, 0x1010) == 2, "another version");
	check(add(1, 0x1001 + 15 * 64, 3, 4) == 0 && code_map_next(&map, 64) == 68,
	      "a record after another one");

	check(add(1, 0x1001, 1, 15) < 0 && error.kind == PT_ERR_BAD_INPUT &&
		  strstr(error.message, "1001 twice"),
	      "an instruction twice");
	code_map_deinit(&map);

	memset(&map, 0, sizeof map);
	check(code_map_init(&map, &error) == 0, "made again");
	for (uint32_t i = 0; i < 20000; i++)
		found &= add(1 + i % 3, 0x400000 + 96 * (uint64_t)i, 8, 12) == 0;
	for (uint32_t i = 0; i < 20000; i++)
		found &= at(1 + i % 3, 0x400000 + 96 * (uint64_t)i + 84) == 8 * i + 8;
	check(found, "many");
	check(map.held == 20000 * 96, "their bytes");
	code_map_deinit(&map);
	return sum_up();
}
