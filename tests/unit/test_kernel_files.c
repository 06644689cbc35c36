/* test_kernel_files - capture/code/kernel_files.h: all segments of a kcore or vmlinux are ranges of
 * one image. */
#include "capture/code/kernel_files.h"
#include "tests/unit/check.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS 3
#define BYTES	 4096

static const uint64_t vaddrs[SEGMENTS] = {0xffffffff81000000, 0xffffffff82000000, 0xffffffffc0000000};

static void check_of(const char *what, bool ok, const char *text)
{
	char whole[200];

	snprintf(whole, sizeof whole, "%s: %s", what, text);
	check(ok, whole);
}

/* An ELF file with one page of each address. */
static void make_elf(char *path, uint16_t type)
{
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph[SEGMENTS];
	} head = {.eh = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_type = type,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof head.eh,
			 .e_ehsize = sizeof head.eh,
			 .e_phentsize = sizeof head.ph[0],
			 .e_phnum = SEGMENTS}};
	uint8_t code[BYTES];
	int fd = mkstemp(path);
	bool written;

	for (int i = 0; i < SEGMENTS; i++)
		head.ph[i] = (Elf64_Phdr){.p_type = PT_LOAD,
					  .p_flags = PF_R | PF_X,
					  .p_offset = (uint64_t)BYTES * (uint64_t)(i + 1),
					  .p_vaddr = vaddrs[i],
					  .p_filesz = BYTES,
					  .p_memsz = BYTES};
	written = pwrite(fd, &head, sizeof head, 0) == (ssize_t)sizeof head;
	for (int i = 0; i < SEGMENTS; i++) {
		memset(code, 0x90 + i, sizeof code);
		written &= pwrite(fd, code, sizeof code, BYTES * (i + 1)) == BYTES;
	}
	check(written, "the ELF file is made");
	close(fd);
}

static void read_back(int fd, const char *what)
{
	struct pt_error e;
	struct ptc_reader *r;
	struct ptc_chunk c;
	unsigned count = 0;

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	while (r && ptc_next(r, &c, &e) > 0) {
		struct ptc_image image;

		if (c.type != PTC_IMAGE)
			continue;
		check_of(what, ptc_parse_image(&c, &image, &e) == 0, "an image");
		check_of(what, image.continues == (count > 0),
			 "the segments after the first continue its image");
		check_of(what,
			 count < SEGMENTS && image.vaddr == vaddrs[count] && image.size == BYTES &&
			     image.bytes[0] == 0x90 + count,
			 "each segment's bytes are at its address");
		check_of(what,
			 image.kind == PTC_IMAGE_MEMORY && image.machine_pid == 7 && image.pid == PTC_ANY_PID,
			 "it is memory of the machine");
		count++;
	}
	check_of(what, count == SEGMENTS, "all segments are there");
	ptc_reader_destroy(r);
}

static void check_file(uint16_t type)
{
	const char *what = type == ET_CORE ? "kcore" : "vmlinux";
	char elf[] = "/tmp/pt-kernel.XXXXXX", container[] = "/tmp/pt-kernel.XXXXXX";
	struct kernel_output to = {.machine_pid = 7};
	struct pt_error e;
	int fd = mkstemp(container);

	make_elf(elf, type);
	to.w = ptc_writer_create(fd, NULL, 1, &e);
	check_of(what,
		 (type == ET_CORE ? kernel_put_kcore(elf, NULL, &to, &e)
				  : kernel_put_vmlinux(elf, vaddrs[0], NULL, &to, &e)) == 0,
		 "it is written");
	check_of(what, ptc_writer_finish(to.w, &e) == 0, "the container is complete");
	ptc_writer_destroy(to.w);
	check_of(what,
		 to.written.count == SEGMENTS &&
		     kernel_ranges_cover(&to.written, vaddrs[1], vaddrs[1] + BYTES) &&
		     !kernel_ranges_cover(&to.written, vaddrs[1], vaddrs[1] + BYTES + 1),
		 "what was written is known");
	kernel_ranges_deinit(&to.written);
	read_back(fd, what);
	close(fd);
	unlink(container);
	unlink(elf);
}

int main(void)
{
	check_file(ET_CORE);
	check_file(ET_EXEC);
	return sum_up();
}
