/*
 * test_kernel_loads.c - modules that are loaded while the kernel is recorded (hw_kernel_put_loaded(),
 * capture/code/kcore.h): which code is put as valid from when, and what is unknown from when. The kernel's
 * files are the test's, below a folder.
 */
#include "capture/code/kcore.h"
#include "tests/unit/check.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT	UINT64_C(0xffffffff81000000)
#define MODULES UINT64_C(0xffffffffc0000000)
enum { PAGE = 4096, PAGES = 64, TEXT_OFFSET = PAGE, MODULES_OFFSET = 3 * PAGE };

static char root[] = "/tmp/pt-kernel-loads-XXXXXX";
static int kcore;

/* ---- The kernel's files ---- */

static void write_file(const char *name, const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "%s/proc/%s", root, name);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		exit(1);
}

/* Fills a page of module space; 0: it is empty. */
static void set_page(unsigned page, int byte)
{
	uint8_t bytes[PAGE];

	memset(bytes, byte, sizeof bytes);
	if (pwrite(kcore, bytes, sizeof bytes, MODULES_OFFSET + (off_t)page * PAGE) != PAGE)
		exit(1);
}

/* "NAME PAGE" of each module, each of one page. */
static void set_modules(const char *const names[], const unsigned pages[], size_t n)
{
	char text[1024] = "";
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%s 4096 0 - Live 0x%016llx\n", names[i],
				       (unsigned long long)(MODULES + (uint64_t)pages[i] * PAGE));
	write_file("modules", text);
}

static void make_files(void)
{
	const Elf64_Ehdr h = {
	    .e_ident = ELFMAG, .e_phoff = sizeof h, .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2};
	const Elf64_Phdr p[] = {
	    {.p_type = PT_LOAD, .p_offset = TEXT_OFFSET, .p_vaddr = TEXT, .p_memsz = 2 * PAGE},
	    {.p_type = PT_LOAD, .p_offset = MODULES_OFFSET, .p_vaddr = MODULES, .p_memsz = PAGES * PAGE}};
	char path[64];

	if (!mkdtemp(root))
		exit(1);
	snprintf(path, sizeof path, "%s/proc", root);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/proc/kcore", root);
	kcore = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (pwrite(kcore, &h, sizeof h, 0) != sizeof h || pwrite(kcore, p, sizeof p, sizeof h) != sizeof p ||
	    ftruncate(kcore, MODULES_OFFSET + PAGES * PAGE))
		exit(1);
	/* Two pages of text that are not the same. */
	if (pwrite(kcore, "\x90", 1, TEXT_OFFSET) != 1 || pwrite(kcore, "\x91", 1, TEXT_OFFSET + PAGE) != 1)
		exit(1);
	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff81002000 T _etext\n");
	write_file("vmallocinfo", "");
}

static void remove_files(void)
{
	static const char *const names[] = {"kcore", "kallsyms", "vmallocinfo", "modules", ""};
	char path[64];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/proc/%s", root, names[i]);
		remove(path);
	}
	rmdir(root);
}

/* ---- What is put ---- */

struct put {
	unsigned page, pages;
	uint64_t time_ns;
	int byte; /* UNKNOWN, or the code's first */
};
enum { UNKNOWN = -1 };

static struct put puts_[64];
static size_t count;

static int on_unknown(void *arg, uint64_t start, uint64_t end, uint64_t time_ns, struct pt_error *e)
{
	(void)arg;
	(void)e;
	puts_[count++] = (struct put){(unsigned)((start - MODULES) / PAGE), (unsigned)((end - start) / PAGE),
				      time_ns, UNKNOWN};
	return 0;
}

static void read_images(int fd)
{
	struct pt_error e = {0};
	struct ptc_reader *r;
	struct ptc_image i;
	struct ptc_chunk c;

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	while (r && count < 64 && ptc_next(r, &c, &e) > 0)
		if (c.type == PTC_IMAGE && ptc_parse_image(&c, &i, &e) == 0 && i.vaddr >= MODULES)
			puts_[count++] = (struct put){(unsigned)((i.vaddr - MODULES) / PAGE),
						      (unsigned)(i.size / PAGE), i.time_ns, i.bytes[0]};
	ptc_reader_destroy(r);
}

static struct hw_kernel kernel;

static uint64_t clock_ns(const void *arg)
{
	return *(const uint64_t *)arg;
}

/* A look after these loads, at now_ns. */
static void look(const struct hw_module_load *loads, size_t n, uint64_t now_ns)
{
	const struct hw_module_loads all = {loads, n, clock_ns, on_unknown, &now_ns};
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct pt_error e = {0};
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);

	count = 0;
	check(w && hw_kernel_put_loaded(&kernel, w, &all, &e) == 0 && ptc_writer_finish(w, &e) == 0,
	      "a look");
	ptc_writer_destroy(w);
	read_images(fd);
	close(fd);
}

static bool has(struct put p)
{
	for (size_t i = 0; i < count; i++)
		if (puts_[i].page == p.page && puts_[i].pages == p.pages && puts_[i].time_ns == p.time_ns &&
		    puts_[i].byte == p.byte)
			return true;
	return false;
}

static void first_look(void)
{
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct pt_error e = {0};
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);

	hw_kernel_init(&kernel);
	kernel.root = root;
	count = 0;
	check(hw_kernel_files(&kernel, &e) && hw_kernel_put_all(&kernel, w, &e) == 0 &&
		  ptc_writer_finish(w, &e) == 0,
	      "the kernel as it is at first");
	ptc_writer_destroy(w);
	read_images(fd);
	close(fd);
	check(count == 2 && has((struct put){0, 1, 0, 0x11}) && has((struct put){20, 1, 0, 0x22}),
	      "a module, and code that is no module's, from the start");
}

int main(void)
{
	make_files();
	set_page(0, 0x11);
	set_page(20, 0x22);
	set_modules((const char *const[]){"aa"}, (const unsigned[]){0}, 1);
	first_look();

	set_page(2, 0x33);
	set_modules((const char *const[]){"aa", "bb"}, (const unsigned[]){0, 2}, 2);
	look((const struct hw_module_load[]){{"bb", 100}}, 1, 150);
	check(count == 1 && has((struct put){2, 1, 100, 0x33}), "a module is loaded: from then on");

	/* bb and cc are gone, dd is where bb was. */
	set_page(2, 0x44);
	set_modules((const char *const[]){"aa", "dd"}, (const unsigned[]){0, 2}, 2);
	look((const struct hw_module_load[]){{"cc", 200}, {"dd", 240}}, 2, 250);
	check(count == 2 && has((struct put){2, 1, 200, UNKNOWN}) && has((struct put){2, 1, 240, 0x44}),
	      "one in the place of another: unknown from the first load on, known from its own on");

	/* A module that is patched, in a round with a load. */
	set_page(0, 0x12);
	set_page(4, 0x55);
	set_modules((const char *const[]){"aa", "dd", "ee"}, (const unsigned[]){0, 2, 4}, 3);
	look((const struct hw_module_load[]){{"ee", 300}}, 1, 350);
	check(count == 1 && has((struct put){4, 1, 300, 0x55}),
	      "what is patched has records, and is not put");

	/* Code of no module: changed, new. */
	set_page(20, 0x23);
	set_page(22, 0x66);
	look((const struct hw_module_load[]){{"ff", 400}, {"gg", 410}}, 2, 450);
	check(count == 3 && has((struct put){20, 1, 400, UNKNOWN}) && has((struct put){20, 1, 450, 0x23}) &&
		  has((struct put){22, 1, 450, 0x66}),
	      "of code of no module it is not known since when it is there");
	set_page(24, 0x77);
	look((const struct hw_module_load[]){{"hh", 500}}, 1, 550);
	check(count == 1 && has((struct put){24, 1, 550, 0x77}), "also where one module was loaded");

	/* Gone. */
	set_page(4, 0);
	set_page(24, 0);
	set_modules((const char *const[]){"aa", "dd"}, (const unsigned[]){0, 2}, 2);
	look((const struct hw_module_load[]){{"ii", 600}, {"jj", 610}}, 2, 650);
	check(count == 2 && has((struct put){4, 1, 600, UNKNOWN}) && has((struct put){24, 1, 600, UNKNOWN}),
	      "what is gone is unknown from the first load on");

	/* Loaded again, where it was: it may be another one of that name. */
	look((const struct hw_module_load[]){{"dd", 700}}, 1, 750);
	check(count == 2 && has((struct put){2, 1, 700, UNKNOWN}) && has((struct put){2, 1, 700, 0x44}),
	      "loaded again");
	hw_kernel_deinit(&kernel);
	close(kcore);
	remove_files();
	return sum_up();
}
