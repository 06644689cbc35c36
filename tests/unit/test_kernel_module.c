/* test_kernel_module - capture/code/kernel_module.h: a module's code is relocated by the kernel's
 * rules, for each type of relocation. */
#include "capture/code/kernel_module.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START 0xffffffffc0000000u

/* Each function is 16 bytes long. GOTPCREL is of no module's; a NONE must change nothing. */
static const char source[] =
    ".text\n"
    "f0: .reloc ., R_X86_64_NONE, f3\n movabs $0x1122334455667788, %rax\n .balign 16, 0x90\n"
    "f1: movabs $f3, %rax\n .balign 16, 0x90\n"
    "f2: call f3_far\n .balign 16, 0x90\n"
    "f3: mov f3@GOTPCREL(%rip), %rcx\n .balign 16, 0x90\n"
    "f4: call nowhere\n mov $f3, %eax\n .balign 16, 0x90\n"
    ".section .text.far, \"ax\"\n"
    ".globl f3_far\nf3_far: ret\n .balign 16, 0x90\n";

static uint8_t code[256];
static bool there[256];

/* What the container has of the module. */
static void read_back(int fd)
{
	struct pt_error e;
	struct ptc_reader *r;
	struct ptc_chunk c;

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	while (r && ptc_next(r, &c, &e) > 0) {
		struct ptc_image image;

		if (c.type != PTC_IMAGE || ptc_parse_image(&c, &image, &e) < 0)
			continue;
		for (uint64_t i = 0; i < image.size && image.vaddr - START + i < sizeof code; i++) {
			code[image.vaddr - START + i] = image.bytes[i];
			there[image.vaddr - START + i] = true;
		}
	}
	ptc_reader_destroy(r);
}

static bool has(unsigned at, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!there[at + i])
			return false;
	return true;
}

static uint64_t number(unsigned at, unsigned n)
{
	uint64_t v = 0;

	memcpy(&v, code + at, n);
	return v;
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	FILE *as = chdir(tmp ? tmp : "/tmp") == 0 ? popen("as -o module.o -", "w") : NULL;
	FILE *out = tmpfile();
	struct kernel_module module = {.name = "[m]", .start = START, .end = START + 4096};
	struct kernel_output to = {0};
	unsigned unknown = 0;
	struct pt_error e = {0};

	if (!as || !out || fputs(source, as) < 0 || pclose(as) != 0) {
		printf("no assembler\n");
		return 1;
	}
	module.bytes = kernel_module_read("module.o", &module.size, &e);
	to.w = ptc_writer_create(fileno(out), NULL, 1, &e);
	check(module.bytes && to.w, "the module is read");
	if (!module.bytes || !to.w)
		return sum_up();
	check(kernel_put_module(&module, NULL, &to, &unknown, &e) == 0, "it is written");
	check(ptc_writer_finish(to.w, &e) == 0, "the container is finished");
	read_back(fileno(out));
	check(has(0, 10) && number(2, 8) == 0x1122334455667788u, "NONE changes nothing");
	check(has(16, 10) && number(18, 8) == START + 48, "64 is an address");
	check(has(32, 5) && START + 32 + 5 + (uint64_t)(int64_t)(int32_t)number(33, 4) == START + 80,
	      "PLT32 is a distance");
	check(!has(51, 1) && has(48, 3), "what an unknown type stands for is left out");
	check(!has(64, 1), "a call to an unknown symbol is left out");
	check(has(69, 5) && number(70, 4) == (uint32_t)(START + 48), "32 is a short address");
	check(unknown == 2, "and both are counted");
	ptc_writer_destroy(to.w);
	kernel_ranges_deinit(&to.written);
	free((void *)(uintptr_t)module.bytes);
	unlink("module.o");
	return sum_up();
}
