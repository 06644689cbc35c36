/* test_jitdump.c - capture/code/jitdump.h over made-up files: what is loaded and moved, cuts and damage. */
#include "capture/code/jitdump.h"
#include "tests/unit/check.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t file[4096];
static size_t file_bytes;
static char path[64];

static void put(const void *from, size_t n)
{
	memcpy(file + file_bytes, from, n);
	file_bytes += n;
}

static void put_header(uint32_t magic, uint32_t machine, uint64_t flags)
{
	const uint32_t head[6] = {magic, 1, 40, machine, 0, 77};
	const uint64_t rest[2] = {5, flags};

	file_bytes = 0;
	put(head, sizeof head);
	put(rest, sizeof rest);
}

/* code: a string. claimed: how long the record says that it is. */
static void put_load(uint64_t time, uint64_t address, uint64_t index, const char *code, uint64_t claimed)
{
	const uint32_t head[2] = {0, (uint32_t)(16 + 40 + 2 + strlen(code))}, who[2] = {77, 77};
	const uint64_t where[4] = {address, address, claimed, index};

	put(head, sizeof head);
	put(&time, sizeof time);
	put(who, sizeof who);
	put(where, sizeof where);
	put("f", 2);
	put(code, strlen(code));
}

static void put_move(uint64_t time, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	const uint32_t head[2] = {1, 16 + 48}, who[2] = {77, 77};
	const uint64_t where[5] = {to, from, to, size, index};

	put(head, sizeof head);
	put(&time, sizeof time);
	put(who, sizeof who);
	put(where, sizeof where);
}

static int open_file(struct jitdump **ret, size_t bytes, struct pt_error *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, file, bytes) != (ssize_t)bytes)
		exit(1);
	close(fd);
	return jitdump_open(ret, path, e);
}

static bool is(const struct jitdump_code *c, uint64_t time, uint64_t address, const char *code)
{
	return c->timestamp == time && c->address == address && c->size == strlen(code) &&
	       memcmp(c->bytes, code, c->size) == 0 && strcmp(c->name, "f") == 0;
}

static void put_three(void)
{
	const uint32_t other[4] = {3, 16, 9, 0}; /* CODE_CLOSE, and what is not known here */

	put_header(0x4a695444, EM_X86_64, 1);
	put_load(10, 0x1000, 1, "abc", 3);
	put(other, sizeof other);
	put_load(20, 0x2000, 2, "de", 2);
	put_move(30, 0x1000, 0x3000, 3, 1);
	put_move(35, 0x9000, 0x9100, 3, 9); /* of code that was never loaded */
}

static void test_whole(void)
{
	struct pt_error e = {0};
	struct jitdump_code c;
	struct jitdump *d;

	put_three();
	check(open_file(&d, file_bytes, &e) == 0, "a jitdump");
	check(jitdump_has_tsc(d) && jitdump_pid(d) == 77, "its header");
	check(jitdump_next(d, &c, &e) == 1 && is(&c, 10, 0x1000, "abc"), "first code");
	check(jitdump_next(d, &c, &e) == 1 && is(&c, 20, 0x2000, "de"), "second code, after other records");
	check(jitdump_next(d, &c, &e) == 1 && is(&c, 30, 0x3000, "abc"), "moved code has its bytes and name");
	check(jitdump_next(d, &c, &e) == 0 && !jitdump_unfinished(d),
	      "the end; a move of nothing is nothing");
	jitdump_close(d);
}

/* Cut at each byte: what is whole before the cut, and no more. */
static void test_cuts(void)
{
	bool ok = true;

	put_three();
	for (size_t n = 0; n < file_bytes; n++) {
		struct pt_error e = {0};
		struct jitdump_code c;
		struct jitdump *d;
		int got, count = 0;

		if (open_file(&d, n, &e)) {
			ok &= n < 40 && e.kind == PT_ERR_BAD_INPUT;
			continue;
		}
		while ((got = jitdump_next(d, &c, &e)) > 0)
			count++;
		ok &= got == 0 &&
		      count == (n >= 40 + 61) + (n >= 40 + 61 + 16 + 60) + (n >= 40 + 61 + 16 + 60 + 64);
		jitdump_close(d);
	}
	check(ok, "cut anywhere");
}

static void test_damage(void)
{
	const uint32_t none[4] = {0, 7, 0, 0};
	struct pt_error e = {0};
	struct jitdump_code c;
	struct jitdump *d;

	put_header(0x44546a4a, EM_X86_64, 0);
	check(open_file(&d, file_bytes, &e) < 0 && e.kind == PT_ERR_BAD_INPUT, "another byte order");
	put_header(0x4a695444, EM_AARCH64, 0);
	check(open_file(&d, file_bytes, &e) < 0 && strstr(e.message, "machine 183"), "another machine");
	put_header(0x4a695444, EM_X86_64, 0);
	put_load(1, 0x1000, 1, "abc", 4);
	check(open_file(&d, file_bytes, &e) == 0 && !jitdump_has_tsc(d), "times of another clock");
	check(jitdump_next(d, &c, &e) < 0 && e.kind == PT_ERR_BAD_INPUT && e.offset == 40,
	      "more code than its record has");
	jitdump_close(d);
	put_header(0x4a695444, EM_X86_64, 0);
	put_load(1, UINT64_MAX - 1, 1, "abc", 3);
	check(open_file(&d, file_bytes, &e) == 0 && jitdump_next(d, &c, &e) < 0,
	      "code past the last address");
	jitdump_close(d);
	put_header(0x4a695444, EM_X86_64, 0);
	put(none, sizeof none);
	check(open_file(&d, file_bytes, &e) == 0 && jitdump_next(d, &c, &e) < 0 && e.offset == 40,
	      "a record without room for its header");
	jitdump_close(d);
	unlink(path);
	check(mkfifo(path, 0600) == 0 && jitdump_open(&d, path, &e) < 0 && e.kind == PT_ERR_IO,
	      "a FIFO is not waited for");
}

int main(void)
{
	const char *folder = getenv("TMPDIR");

	snprintf(path, sizeof path, "%s/jit-77.dump", folder ? folder : "/tmp");
	test_whole();
	test_cuts();
	test_damage();
	unlink(path);
	return sum_up();
}
