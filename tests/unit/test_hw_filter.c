/*
 * test_hw_filter.c - address filters by names: of this very file, where the dynamic linker says where its
 * functions are, and of a kallsyms.
 */
#include "capture/record/filter.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char kallsyms[64], self[4096];

static void is(const char *text, const char *wanted)
{
	struct pt_error e = {0};
	char *got = hw_filter_resolve(text, kallsyms, &e), what[9000];

	snprintf(what, sizeof what, "'%s': '%s', not '%s'", text, got ? got : e.message, wanted);
	check(got && strcmp(got, wanted) == 0, what);
	free(got);
}

static void refused(const char *text, enum pt_error_kind kind, const char *message)
{
	struct pt_error e = {0};
	char *got = hw_filter_resolve(text, kallsyms, &e), what[2000];

	snprintf(what, sizeof what, "'%s': '%s', without '%s'", text, got ? got : e.message, message);
	check(!got && e.kind == kind && strstr(e.message, message), what);
	free(got);
}

/* ---- A file: this one ---- */

static uint64_t wanted_address, wanted_offset;

static int find_segment(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t at = wanted_address - info->dlpi_addr - p->p_vaddr;

		if (p->p_type == PT_LOAD && at < p->p_filesz) {
			wanted_offset = at + p->p_offset;
			return 1;
		}
	}
	return 0;
}

static uint64_t offset_of(const void *function)
{
	wanted_address = (uint64_t)(uintptr_t)function;
	wanted_offset = UINT64_MAX;
	dl_iterate_phdr(find_segment, NULL);
	return wanted_offset;
}

/* Its size is exactly the assembler's. */
void first_of_two(void);
void second_of_two(void);
__asm__(".text\n.globl first_of_two\n.type first_of_two, @function\nfirst_of_two:\nnop\nnop\nret\n"
	".size first_of_two, .-first_of_two\n"
	".globl second_of_two\n.type second_of_two, @function\nsecond_of_two:\nnop\nret\n.size "
	"second_of_two, .-second_of_two\n");

static void test_file(void)
{
	uint64_t first = offset_of((const void *)(uintptr_t)first_of_two),
		 second = offset_of((const void *)(uintptr_t)second_of_two);
	char text[9000], wanted[9000];
	struct stat st = {0};

	stat(self, &st);
	snprintf(text, sizeof text, "filter first_of_two @ %s", self);
	snprintf(wanted, sizeof wanted, "filter 0x%" PRIx64 "/0x3@%s", first, self);
	is(text, wanted);
	snprintf(text, sizeof text, "filter first_of_two/second_of_two@%s", self);
	snprintf(wanted, sizeof wanted, "filter 0x%" PRIx64 "/0x%" PRIx64 "@%s", first, second + 2 - first,
		 self);
	is(text, wanted);
	snprintf(text, sizeof text, "start first_of_two#g @%s,stop second_of_two @%s", self, self);
	snprintf(wanted, sizeof wanted, "start 0x%" PRIx64 "@%s,stop 0x%" PRIx64 "@%s", first, self, second,
		 self);
	is(text, wanted);
	snprintf(text, sizeof text, "tracestop second_of_two / 16 @%s", self);
	snprintf(wanted, sizeof wanted, "stop 0x%" PRIx64 "/0x10@%s", second, self);
	is(text, wanted);
	snprintf(text, sizeof text, "filter * @%s", self);
	snprintf(wanted, sizeof wanted, "filter 0x0/0x%" PRIx64 "@%s", (uint64_t)st.st_size, self);
	is(text, wanted);
	snprintf(text, sizeof text, "filter 0x1000 / 0x20 @%s", self);
	snprintf(wanted, sizeof wanted, "filter 0x1000/0x20@%s", self);
	is(text, wanted);
	snprintf(text, sizeof text, "filter nothing_here @%s", self);
	refused(text, PT_ERR_USAGE, "has no function 'nothing_here'");
	snprintf(text, sizeof text, "filter second_of_two / first_of_two @%s", self);
	refused(text, PT_ERR_USAGE, "is before");
	snprintf(text, sizeof text, "start * @%s", self);
	refused(text, PT_ERR_USAGE, "not at *");
	refused("filter main @/no/such/file", PT_ERR_IO, "/no/such/file");
	refused("filter main @/etc/passwd", PT_ERR_BAD_INPUT, "no ELF file");
}

/* ---- The kernel ---- */

static void test_kernel(void)
{
	is("filter vfs_read", "filter 0xffffffff81000100/0x80");
	is("filter vfs_read#g", "filter 0xffffffff81000100/0x80");
	is("filter twice #2", "filter 0xffffffff81000280/0x40");
	is("filter vfs_read / vfs_write", "filter 0xffffffff81000100/0x100");
	is("start vfs_read , stop alias", "start 0xffffffff81000100,stop 0xffffffff81000180");
	/* Another name of the same function does not make it shorter, and data ends one. */
	is("filter vfs_write", "filter 0xffffffff81000180/0x80");
	is("filter before_data", "filter 0xffffffff810002c0/0xd40");
	is("filter 0xffffffff81000000/0x10 filter vfs_read",
	   "filter 0xffffffff81000000/0x10,filter 0xffffffff81000100/0x80");
	is("filter *", "filter 0xffffffff81000000/0x40000000");
	refused("filter twice", PT_ERR_USAGE, "#1 local 0xffffffff81000200, #2 local 0xffffffff81000280");
	refused("filter twice#3", PT_ERR_USAGE, "has 2 functions 'twice'");
	refused("filter twice#g", PT_ERR_USAGE, "no global function");
	refused("filter data", PT_ERR_USAGE, "no function 'data'");
	refused("filter last", PT_ERR_USAGE, "say its size");
	refused("filter 0x1000", PT_ERR_USAGE, "a size is missing");
	refused("", PT_ERR_USAGE, "nothing");
	refused("trace vfs_read", PT_ERR_USAGE, "no action");
	refused("filter vfs_read#", PT_ERR_USAGE, "no number");
	refused("filter vfs_read /", PT_ERR_USAGE, "no name");
	refused("filter 0x1g/2", PT_ERR_USAGE, "no number");
}

int main(void)
{
	static const char text[] = "ffffffff81000000 T _text\n"
				   "ffffffff81000100 T vfs_read\n"
				   "ffffffff81000180 T vfs_write\n"
				   "ffffffff81000180 T alias\n"
				   "ffffffff81000200 t twice\n"
				   "ffffffff81000280 t twice\n"
				   "ffffffff810002c0 t before_data\n"
				   "ffffffff81001000 D data\n"
				   "ffffffffc1000000 t last\t[module]\n";
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	int fd;

	strcpy(kallsyms, "/tmp/test_hw_filter.XXXXXX");
	fd = mkstemp(kallsyms);
	if (n <= 0 || fd < 0 || write(fd, text, sizeof text - 1) != sizeof text - 1) {
		perror(kallsyms);
		return 1;
	}
	test_file();
	test_kernel();
	if (ftruncate(fd, 0))
		return 1;
	refused("filter vfs_read", PT_ERR_BAD_INPUT, "shows no addresses");
	close(fd);
	unlink(kallsyms);
	return sum_up();
}
