/* import_kernel.c - see import_kernel.h. */
#include "capture/import_kernel.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES   ((size_t)4 << 20)
#define SEGMENTS_MAX 4096
#define KERNEL_HALF  0x8000000000000000u
#define PAGE	     4096u
#define REGION_GAP   ((uint64_t)2 << 20) /* symbols farther apart are of different regions */
#define NAME_MOST    1024

struct symbol {
	uint64_t addr;
	uint32_t name; /* offset into names */
	char type;     /* nm's */
};

struct kernel_symbols {
	struct symbol *symbols; /* by address */
	size_t count, room;
	char *names;
	size_t names_bytes, names_room;
};

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for the kernel's symbols");
}

static bool add_symbol(struct kernel_symbols *s, uint64_t addr, char type, const char *name)
{
	size_t n = strlen(name) + 1;

	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 65536;
		struct symbol *grown = realloc(s->symbols, room * sizeof *grown);

		if (!grown)
			return false;
		s->symbols = grown;
		s->room = room;
	}
	if (s->names_bytes + n > s->names_room) {
		size_t room = 2 * (s->names_bytes + n) + ((size_t)1 << 20);
		char *grown = room <= UINT32_MAX ? realloc(s->names, room) : NULL;

		if (!grown)
			return false;
		s->names = grown;
		s->names_room = room;
	}
	memcpy(s->names + s->names_bytes, name, n);
	s->symbols[s->count++] =
	    (struct symbol){.addr = addr, .name = (uint32_t)s->names_bytes, .type = type};
	s->names_bytes += n;
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

struct kernel_symbols *kernel_symbols_read(const char *path, struct pt_error *e)
{
	struct kernel_symbols *s = calloc(1, sizeof *s);
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;

	if (!s || !file) {
		if (!file)
			pt_fail_errno(e, "cannot read %s", path);
		else
			no_memory(e);
		goto fail;
	}
	/* "ffffffff81000000 T _text", "ffffffffc0201000 t irq_bypass\t[irqbypass]" */
	while (getline(&line, &room, file) > 0) {
		char name[NAME_MOST], type;
		unsigned long long addr;

		if (sscanf(line, "%llx %c %1023s", &addr, &type, name) != 3 || addr < KERNEL_HALF)
			continue;
		if (!add_symbol(s, addr, type, name)) {
			no_memory(e);
			goto fail;
		}
	}
	if (ferror(file)) {
		pt_fail_errno(e, "cannot read %s", path);
		goto fail;
	}
	if (s->count == 0) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			"%s has no addresses (kernel.kptr_restrict hides them from who is not root)", path);
		goto fail;
	}
	qsort(s->symbols, s->count, sizeof *s->symbols, by_address);
	free(line);
	fclose(file);
	return s;
fail:
	free(line);
	if (file)
		fclose(file);
	kernel_symbols_destroy(s);
	return NULL;
}

void kernel_symbols_destroy(struct kernel_symbols *s)
{
	if (!s)
		return;
	free(s->symbols);
	free(s->names);
	free(s);
}

uint64_t kernel_symbols_find(const struct kernel_symbols *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->names + s->symbols[i].name, name) == 0)
			return s->symbols[i].addr;
	return 0;
}

/* Up to the next symbol of any kind; the last one of a region up to its page's end. */
static uint64_t size_of(const struct kernel_symbols *s, size_t i)
{
	uint64_t addr = s->symbols[i].addr;

	for (size_t k = i + 1; k < s->count; k++)
		if (s->symbols[k].addr != addr) {
			if (s->symbols[k].addr - addr < REGION_GAP)
				return s->symbols[k].addr - addr;
			break;
		}
	return PAGE - addr % PAGE;
}

int kernel_symbols_put(const struct kernel_symbols *s, struct ptc_writer *w, int32_t machine_pid,
		       struct pt_error *e)
{
	struct ptc_symbols put = {.machine_pid = machine_pid,
				  .pid = PTC_ANY_PID,
				  .absolute = 1,
				  .name = KERNEL_IMAGE_NAME,
				  .name_bytes = sizeof KERNEL_IMAGE_NAME - 1,
				  .strings = s->names,
				  .strings_bytes = s->names_bytes};
	struct ptc_symbol *code = malloc(s->count * sizeof *code);
	int ret;

	if (!code)
		return no_memory(e);
	for (size_t i = 0; i < s->count; i++)
		if (strchr("tTwW", s->symbols[i].type))
			code[put.count++] = (struct ptc_symbol){.value = s->symbols[i].addr,
								.size = size_of(s, i),
								.name = s->symbols[i].name,
								.type = (uint8_t)s->symbols[i].type};
	put.symbols = code;
	ret = ptc_put_symbols(w, &put, e);
	free(code);
	return ret;
}

static int read_at(int fd, const char *path, uint64_t offset, void *to, size_t n, struct pt_error *e)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, (uint8_t *)to + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return pt_fail_errno(e, "cannot read %s", path);
		if (got == 0)
			return pt_fail(e, PT_ERR_TRUNCATED, offset + done, "%s is cut", path);
		done += (size_t)got;
	}
	return 0;
}

static int put_segment(int fd, const char *path, const Elf64_Phdr *ph, struct ptc_writer *w,
		       struct ptc_image *image, uint8_t *buffer, struct pt_error *e)
{
	for (uint64_t done = 0, n; done < ph->p_filesz; done += n) {
		n = ph->p_filesz - done < COPY_BYTES ? ph->p_filesz - done : COPY_BYTES;
		if (read_at(fd, path, ph->p_offset + done, buffer, n, e))
			return -1;
		image->vaddr = ph->p_vaddr + done;
		image->bytes = buffer;
		image->size = n;
		if (ptc_put_image(w, image, e))
			return -1;
		image->continues = 1;
	}
	return 0;
}

/* Adds to the list; false: no memory. */
static bool add_range(struct kernel_ranges *r, uint64_t start, uint64_t end)
{
	struct kernel_range *grown = realloc(r->all, (r->count + 1) * sizeof *grown);

	if (!grown)
		return false;
	r->all = grown;
	grown[r->count++] = (struct kernel_range){start, end};
	return true;
}

bool kernel_ranges_cover(const struct kernel_ranges *r, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < r->count; i++)
		if (start >= r->all[i].start && end <= r->all[i].end)
			return true;
	return false;
}

void kernel_ranges_deinit(struct kernel_ranges *r)
{
	free(r->all);
	*r = (struct kernel_ranges){0};
}

/* An ELF file's program headers, in new memory. NULL: *e says why. */
static Elf64_Phdr *read_headers(int fd, const char *path, uint16_t type, unsigned *ret_count,
				struct pt_error *e)
{
	Elf64_Ehdr eh;
	Elf64_Phdr *ph;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		pt_fail_errno(e, "cannot read %s", path);
		return NULL;
	}
	if ((uint64_t)st.st_size < sizeof eh) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s is no ELF file of x86-64", path);
		return NULL;
	}
	if (read_at(fd, path, 0, &eh, sizeof eh, e))
		return NULL;
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_ident[EI_DATA] != ELFDATA2LSB || eh.e_machine != EM_X86_64 || eh.e_type != type ||
	    eh.e_phentsize != sizeof *ph || eh.e_phnum == 0 || eh.e_phnum > SEGMENTS_MAX) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s is no %s of x86-64", path,
			type == ET_CORE ? "ELF core" : "linked ELF file");
		return NULL;
	}
	ph = malloc(eh.e_phnum * sizeof *ph);
	if (!ph) {
		no_memory(e);
		return NULL;
	}
	if (read_at(fd, path, eh.e_phoff, ph, eh.e_phnum * sizeof *ph, e)) {
		free(ph);
		return NULL;
	}
	*ret_count = 0;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD || ph[i].p_filesz == 0 || ph[i].p_vaddr < KERNEL_HALF)
			continue;
		if (ph[i].p_offset > (uint64_t)st.st_size ||
		    ph[i].p_filesz > (uint64_t)st.st_size - ph[i].p_offset ||
		    ph[i].p_filesz > UINT64_MAX - ph[i].p_vaddr) {
			pt_fail(e, PT_ERR_BAD_INPUT, eh.e_phoff + i * sizeof *ph,
				"%s has no bytes 0x%llx to 0x%llx, which a segment names", path,
				(unsigned long long)ph[i].p_offset,
				(unsigned long long)ph[i].p_offset + ph[i].p_filesz);
			free(ph);
			return NULL;
		}
		ph[(*ret_count)++] = ph[i];
	}
	return ph;
}

/* Writes the segments; executable_only: those. Their addresses are moved by slide. */
static int put_segments(int fd, const char *path, const Elf64_Phdr *ph, unsigned count, bool executable_only,
			uint64_t slide, struct ptc_writer *w, int32_t machine_pid, struct kernel_ranges *ret,
			struct pt_error *e)
{
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .machine_pid = machine_pid,
				  .pid = PTC_ANY_PID,
				  .name = KERNEL_IMAGE_NAME,
				  .name_bytes = sizeof KERNEL_IMAGE_NAME - 1};
	uint8_t *buffer = malloc(COPY_BYTES);

	if (!buffer)
		return no_memory(e);
	for (unsigned i = 0; i < count; i++) {
		Elf64_Phdr moved = ph[i];

		if (executable_only && !(ph[i].p_flags & PF_X))
			continue;
		moved.p_vaddr += slide;
		if (put_segment(fd, path, &moved, w, &image, buffer, e)) {
			free(buffer);
			return -1;
		}
		if (!add_range(ret, moved.p_vaddr, moved.p_vaddr + moved.p_filesz)) {
			free(buffer);
			return no_memory(e);
		}
	}
	free(buffer);
	return 0;
}

int kernel_put_kcore(const char *path, struct ptc_writer *w, int32_t machine_pid, struct kernel_ranges *ret,
		     struct pt_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), done = -1;
	Elf64_Phdr *ph;
	unsigned count;

	if (fd < 0)
		return pt_fail_errno(e, "cannot read %s", path);
	ph = read_headers(fd, path, ET_CORE, &count, e);
	if (ph)
		done = put_segments(fd, path, ph, count, false, 0, w, machine_pid, ret, e);
	free(ph);
	close(fd);
	return done;
}

int kernel_put_vmlinux(const char *path, uint64_t text, struct ptc_writer *w, int32_t machine_pid,
		       struct kernel_ranges *ret, struct pt_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), done = -1;
	uint64_t lowest = UINT64_MAX;
	Elf64_Phdr *ph;
	unsigned count;

	if (fd < 0)
		return pt_fail_errno(e, "cannot read %s", path);
	ph = read_headers(fd, path, ET_EXEC, &count, e);
	/* _text is where the linker's script puts the first segment. */
	for (unsigned i = 0; ph && i < count; i++)
		if ((ph[i].p_flags & PF_X) && ph[i].p_vaddr < lowest)
			lowest = ph[i].p_vaddr;
	if (ph && lowest == UINT64_MAX)
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s has no code of a kernel", path);
	else if (ph)
		done = put_segments(fd, path, ph, count, true, text - lowest, w, machine_pid, ret, e);
	free(ph);
	close(fd);
	return done;
}
