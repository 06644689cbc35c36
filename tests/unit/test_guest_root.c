/* test_guest_root.c - a guest's root in a folder: the files that its records name, looked up as the
 * guest would, by build id; its kernel. */
#include "capture/code/elf_image.h"
#include "capture/code/guest_root.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof command, format, ap);
	va_end(ap);
	if (system(command)) {
		printf("cannot %s\n", command);
		exit(1);
	}
}

static uint8_t records[8192];
static uint64_t size;

static void add(const char *name, uint32_t prot, const uint8_t *build_id)
{
	size_t n = (strlen(name) + 8) & ~(size_t)7;
	struct perf_event_header h = {PERF_RECORD_MMAP2, build_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0,
				      (uint16_t)(72 + n + 32)};
	uint8_t *p = records + size;

	memset(p, 0, h.size);
	memcpy(p, &h, sizeof h);
	if (build_id) {
		p[40] = 20;
		memcpy(p + 44, build_id, 20);
	}
	memcpy(p + 64, &prot, sizeof prot);
	strcpy((char *)p + 72, name);
	size += h.size;
}

/* Images and symbols in the container: "NAME " each, the code's bytes summed up. */
static int modules; /* of the container that was read back: with their bounds */

static void read_back(int fd, char *names, size_t room, uint64_t *ret_bytes, bool *ret_guest)
{
	struct pt_error e = {0};
	struct ptc_reader *r;
	struct ptc_chunk c;
	size_t n = 0;

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	*ret_bytes = 0;
	*ret_guest = true;
	modules = 0;
	names[0] = 0;
	while (ptc_next(r, &c, &e) > 0) {
		struct ptc_symbols s;
		struct ptc_image i;

		if (c.type == PTC_IMAGE && ptc_parse_image(&c, &i, &e) == 0) {
			if (!i.continues && n < room)
				n +=
				    (size_t)snprintf(names + n, room - n, "%.*s ", (int)i.name_bytes, i.name);
			*ret_bytes += i.size;
			*ret_guest &= i.machine_pid == 7;
		}
		if (c.type == PTC_SYMBOLS && ptc_parse_symbols(&c, &s, &e) == 0) {
			struct ptc_symbol first = {0};

			*ret_guest &= s.machine_pid == 7;
			if (s.count == 1)
				memcpy(&first, s.symbols, sizeof first);
			if (first.type == PTC_SYMBOL_BOUNDS && first.value == 0xffffffffc0000000 &&
			    first.size == 4096 && !strcmp(s.strings, "[mod]"))
				modules++;
		}
	}
	ptc_reader_destroy(r);
}

static void test_files(void)
{
	int fd = memfd_create("container", 0);
	uint8_t id[20] = {0}, other[20] = {1, 2, 3};
	char names[1024], path[256];
	struct pt_error e = {0};
	struct guest_files *f;
	struct ptc_writer *w;
	const char *why;
	uint64_t bytes;
	bool guest;

	run("mkdir -p %s/usr/bin %s/etc && cp -L /bin/true %s/usr/bin/true && cp -L /bin/false "
	    "%s/usr/bin/false",
	    root, root, root, root);
	/* Both lead out of the folder for who follows them on the host. */
	run("ln -s /usr/bin %s/bin && ln -s /etc/hostname %s/etc/outside && echo text >%s/etc/text", root,
	    root, root);
	snprintf(path, sizeof path, "%s/usr/bin/true", root);
	check(elf_file_build_id(path, id, &e) == 20, "a build id");
	check(!guest_files_create("/no/such/folder", 7, &e) && e.kind == PT_ERR_IO, "no folder");
	f = guest_files_create(root, 7, &e);
	w = ptc_writer_create(fd, NULL, 1, &e);
	guest_files_known(f, "/usr/lib/there", 14, &e);
	add("/bin/true", PROT_READ | PROT_EXEC, id);
	add("/bin/true", PROT_READ | PROT_EXEC, id);
	add("/usr/bin/false", PROT_READ | PROT_EXEC, NULL);
	add("/usr/bin/true", PROT_READ | PROT_EXEC, other);
	add("/bin/nothing", PROT_READ | PROT_EXEC, NULL);
	add("/etc/outside", PROT_READ | PROT_EXEC, NULL);
	add("/etc/text", PROT_READ | PROT_EXEC, NULL);
	add("/../../../../../../etc/passwd", PROT_READ | PROT_EXEC, NULL);
	add("/usr/lib/there", PROT_READ | PROT_EXEC, NULL);
	add("/etc/data", PROT_READ, NULL);
	add("//anon", PROT_READ | PROT_EXEC, NULL);
	add("[vdso]", PROT_READ | PROT_EXEC, NULL);
	check(guest_files_records(f, w, records, size, &e) == 0, "records");
	check(guest_files_taken(f) == 2, "two files are taken");
	check(guest_files_missing(f, &why) == 5 &&
		  !strcmp(why, "/usr/bin/true: the file there is of another build"),
	      "five are not, and why");
	check(ptc_writer_finish(w, &e) == 0, "finish");
	guest_files_destroy(f);
	ptc_writer_destroy(w);
	read_back(fd, names, sizeof names, &bytes, &guest);
	check(!strcmp(names, "/bin/true /usr/bin/false ") && bytes > 0 && guest, "those, as the guest's");
	close(fd);
}

static void test_kernel(void)
{
	/* An ELF core of one segment: the text, a module's page, and what is neither. */
	struct {
		uint8_t ident[16];
		uint16_t type, machine;
		uint32_t version;
		uint64_t entry, phoff, shoff;
		uint32_t flags;
		uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
		struct {
			uint32_t type, flags;
			uint64_t offset, vaddr, paddr, filesz, memsz, align;
		} segments[2];
	} core = {{0x7f, 'E', 'L', 'F', 2, 1, 1},
		  4,
		  62,
		  1,
		  0,
		  64,
		  0,
		  0,
		  64,
		  56,
		  2,
		  0,
		  0,
		  0,
		  {{1, 5, 4096, 0xffffffff81000000, 0, 8192, 8192, 4096},
		   {1, 5, 12288, 0xffffffffc0000000, 0, 4096, 4096, 4096}}};
	int fd = memfd_create("container", 0), out;
	uint8_t code[12288];
	struct pt_error e = {0};
	struct ptc_writer *w;
	char names[256], path[256];
	uint64_t bytes;
	bool guest, any;

	w = ptc_writer_create(fd, NULL, 1, &e);
	check(guest_root_put_kernel(root, 7, w, &any, &e) == 0 && !any, "without proc");
	run("mkdir %s/proc && printf '%%s\\n' 'ffffffff81000000 T _text' 'ffffffff81000100 t idle' "
	    "'ffffffff81001800 T _etext' "
	    "'ffffffffc0000000 t init\t[mod]' >%s/proc/kallsyms && printf 'mod 4096 0 - Live "
	    "0xffffffffc0000000\\n' "
	    ">%s/proc/modules",
	    root, root, root);
	for (size_t i = 0; i < sizeof code; i++)
		code[i] = (uint8_t)(i | 1);
	snprintf(path, sizeof path, "%s/proc/kcore", root);
	out = open(path, O_WRONLY | O_CREAT, 0600);
	check(pwrite(out, &core, sizeof core, 0) == sizeof core &&
		  pwrite(out, code, sizeof code, 4096) == sizeof code,
	      "a kcore");
	close(out);
	check(guest_root_put_kernel(root, 7, w, &any, &e) == 0 && any, "a kernel");
	check(ptc_writer_finish(w, &e) == 0, "finish");
	ptc_writer_destroy(w);
	read_back(fd, names, sizeof names, &bytes, &guest);
	check(bytes == 0x1800 + 4096 && guest, "text and module, as the guest's");
	check(modules == 1, "the module's bounds");
	close(fd);
}

/* A proc that leads out of the root, for who follows it on the host; one that blocks; symbols that
 * are nowhere. */
static void test_odd_kernel(void)
{
	int fd = memfd_create("container", 0);
	struct pt_error e = {0};
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	uint64_t bytes;
	char names[256];
	bool guest, any;

	run("mv %s/proc /tmp/test_guest_root.outside.%d && ln -s /tmp/test_guest_root.outside.%d %s/proc",
	    root, (int)getpid(), (int)getpid(), root);
	check(guest_root_put_kernel(root, 7, w, &any, &e) == 0 && !any, "not a kernel from outside");
	run("rm %s/proc && mv /tmp/test_guest_root.outside.%d %s/proc", root, (int)getpid(), root);
	run("rm %s/proc/modules && mkfifo %s/proc/modules %s/proc/vmallocinfo && printf '%%s\n' '1000 T "
	    "_text' "
	    "'ffffffffffffffff T _etext' >%s/proc/kallsyms",
	    root, root, root, root);
	check(guest_root_put_kernel(root, 7, w, &any, &e) == 0, "no kernel that is everywhere");
	check(ptc_writer_finish(w, &e) == 0, "finish");
	ptc_writer_destroy(w);
	read_back(fd, names, sizeof names, &bytes, &guest);
	check(bytes == 0, "no code");
	close(fd);
}

int main(void)
{
	strcpy(root, "/tmp/test_guest_root.XXXXXX");
	if (!mkdtemp(root)) {
		perror(root);
		return 1;
	}
	test_files();
	test_kernel();
	test_odd_kernel();
	run("rm -rf %s", root);
	return sum_up();
}
